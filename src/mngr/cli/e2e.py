"""e2e view: what end-to-end tests have left, on one page. The page itself is made by mngr/e2e/view.py."""

from __future__ import annotations

import os

from mngr.cli.output import JSON_OPTION, clean, notice, print_json
from mngr.errors import MngrError, UsageError
from mngr.fleet.outcome import counted
from mngr.grammar import Args, Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.e2e.view import Built, Part, View

_DEFAULT = os.path.join(".test_output", "e2e")


@command(
    "e2e view",
    summary="show transcripts and recordings of end-to-end tests on one page",
    usage=[
        "e2e view [DIR] [--output DIR] [--tutorial FILE]... [--open] [--json]",
        "e2e view [DIR] --serve [--port PORT] [--output DIR] [--tutorial FILE]... [--open]",
    ],
    about="""Writes a folder of static files, which can be opened from the disk, put on any web server, or kept as an
artifact of a build, and prints the path of its index.html. It shows all runs below DIR and their tests: the cited
blocks, transcripts with colours, and the recordings, which can be played and jump to any step. The tutorial is a page
of it, each block with the tests that cite it, their last verdict and their recordings. All of it can be reached by the
keyboard: ? shows how.

Written again, only what has changed is read and written.

With --serve, the folder is served on 127.0.0.1 and follows the tests while they run. The address is printed as the
first line; Ctrl-C ends it.

--json prints an object with `index` (the path of the page), the numbers of `runs` and `tests`, of tests `written` since
they are new or have changed, whether there is a `player` for recordings, and the list `problems` (`path`, `what`).""",
    arguments=[
        Argument(
            name="DIR", help=f"what pytest has written, or one run of it; {_DEFAULT}", optional=True, completes="dirs"
        )
    ],
    options=[
        option("--output DIR", "write the folder there instead of into DIR/view", completes="dirs"),
        option(
            "--tutorial FILE", "show this tutorial instead of those that the run names", many=True, completes="files"
        ),
        option("--serve", "serve it on 127.0.0.1, up to date while tests run"),
        option("--port PORT", "serve on this port instead of a free one"),
        option("--open", "open it in your browser"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr e2e view --open", "what the last runs of pytest in this directory did"),
        ("mngr e2e view --serve", "watch tests while they run"),
        ("mngr e2e view .test_output/e2e --output site --tutorial tutorial.sh", "for a web server"),
    ],
)
def view(args: Args) -> int:
    from mngr.e2e.view import NotOurs

    if args.flag("serve") and args.flag("json"):
        raise UsageError("--json tells what was written: it does not go with --serve")
    if args.text("port") and not args.flag("serve"):
        raise UsageError("--port goes with --serve")
    try:
        return _serve(args) if args.flag("serve") else _write(args)
    except NotOurs as error:
        raise MngrError(
            str(error), "--output takes a new or empty directory, or a view that was written before"
        ) from None


def _write(args: Args) -> int:
    built = _view(args).build()
    if args.flag("json"):
        told = {"index": str(built.page), "runs": built.runs, "tests": built.tests, "written": built.written}
        print_json({**told, "player": built.player, "problems": [problem._asdict() for problem in built.problems]})
    else:
        print(built.page)
        _tell(built)
    if args.flag("open"):
        _open(built.page.resolve().as_uri())
    return 0


def _serve(args: Args) -> int:
    from threading import Event

    from mngr.e2e.serve import ViewServer

    port = args.text("port") or "0"
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--port takes a number up to 65535, not {port!r}")
    view = _view(args)
    try:
        server = ViewServer(view, int(port))
    except OSError as error:
        if error.filename:
            raise
        raise MngrError(f"port {port}: {error.strerror}", "without --port, a free one is taken") from None
    with server:
        print(server.url, flush=True)
        _tell(server.built)
        if args.flag("open"):
            _open(server.url)
        Event().wait()
    return 0


def _view(args: Args) -> View:
    from pathlib import Path

    from mngr.e2e.view import View

    source = Path(args.word(0) or _DEFAULT)
    if not source.is_dir():
        hint = "pytest writes it when a test uses the fixture e2e" if args.word(0) is None else None
        raise UsageError(f"{source}: no such directory", hint)
    output = args.text("output")
    tutorials = args.many("tutorial")
    for path in tutorials:
        _parts(path)  # what the user names has to be there
    return View(source, Path(output) if output else source / "view", tutorials, _parts_or_problem)


def _parts_or_problem(path: str) -> list[Part]:
    """A tutorial that a run of last month names may be gone, and is told on the page."""
    try:
        return _parts(path)
    except MngrError as error:
        raise ValueError(error.message) from None


def _parts(path: str) -> list[Part]:
    from mngr.e2e.view import Part
    from mngr.tutorial.blocks import read_tutorial

    tutorial = read_tutorial(path)
    parts = [Part(block.section, block.line, block.text, block.id) for block in tutorial.blocks]
    parts += [Part(blank.section, blank.line, blank.text) for blank in tutorial.blanks]
    return sorted(parts, key=lambda part: part.line)


def _tell(built: Built) -> None:
    notice(f"{counted(built.tests, 'test')} in {counted(built.runs, 'run')}")
    if built.problems:
        path, what = built.problems[0]
        more = f", and {counted(len(built.problems) - 1, 'more problem')}" if built.problems[1:] else ""
        notice(f"{clean(path)}: {clean(what)}{more}; the page lists them")
    if not built.player:
        notice("recordings cannot be played: mngr was installed without asciinema-player (make player in its checkout)")


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        notice(f"no browser could be started: {url}")
