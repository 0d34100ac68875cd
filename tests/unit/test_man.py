"""Man pages: they say what the declarations say, roff prints them without complaint, the committed ones are fresh."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mngr.cli import man
from mngr.grammar import Argument, Command, option
from mngr.version import VERSION

COMMITTED = Path(__file__).parents[2] / "man"


def verb(name: str, **declared: object) -> Command:
    return Command(**{"name": name, "summary": f"do {name}", "usage": (name,), "run": lambda _: 0, **declared})  # type: ignore[arg-type]


NASTY = (
    ".SH not a heading",
    "'br not a request",
    r"a back\slash, \fBnot bold\fR and \n",
    "--dashes and read-only",
    "~/.mngr and ^C and 'quotes' and \"double\" ones",
    "100% of $HOME, a\tb",
    "na\u00efve \u2192 \U0001f600",
)
LAUNCH = verb(
    "launch",
    summary="start an agent",
    usage=("launch [NAME[@HOST]] [--mode MODE] [-- ARGS...]",),
    about="\n\n".join(("Uses `git worktree add`.", *NASTY)),
    aliases=("go",),
    arguments=(Argument(name="NAME", help="what to call it", optional=True),),
    options=(option("--[no-]connect", "attach at once"), option("--mode MODE", "how", choices=["worktree", "clone"])),
    rest="ARGS",
    examples=(("mngr launch fix -- sh -c 'echo \\$HOME'\n.second line", "run a line of shell"),),
)
COMMANDS = {
    command.name: command
    for command in (LAUNCH, verb("list"), verb("snapshot create"), verb("snapshot list"), verb("secret", hidden=True))
}


def rendered(text: str) -> str:
    """As a reader sees it, on a terminal too wide for any line to be broken."""
    typeset = ["-man", "-Tutf8", "-P-cbou", "-rLL=999n"]
    if shutil.which("groff"):
        argv = ["groff", *typeset]
    else:
        assert shutil.which("mandoc"), "neither groff nor mandoc is here: make system"
        argv = ["sh", "-c", "mandoc -man -Tutf8 -Owidth=999 | col -bx"]
    return subprocess.run(argv, input=text, capture_output=True, encoding="utf-8", check=True).stdout


def complaints(path: Path) -> str:
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", path], capture_output=True, text=True)
        return done.stdout + done.stderr
    assert shutil.which("mandoc"), "neither groff nor mandoc is here: make system"
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", path], capture_output=True, text=True)
    told = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in told if "missing date" not in line)  # a date would make every build differ


def test_a_page_has_its_sections_in_the_usual_order() -> None:
    headings = [line[4:] for line in man.page(LAUNCH).splitlines() if line.startswith(".SH ")]
    assert headings == [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "ARGUMENTS",
        "OPTIONS",
        "EXAMPLES",
        "EXIT STATUS",
        "SEE ALSO",
    ]


def test_a_reader_sees_the_very_characters_of_the_declaration() -> None:
    seen = [line.strip() for line in rendered(man.page(LAUNCH)).splitlines()]
    for text in NASTY:
        assert " ".join(text.split()) in seen
    for line in (
        "mngr-launch - start an agent",
        "mngr launch [NAME[@HOST]] [--mode MODE] [-- ARGS...]",
        "Uses git worktree add.",
        "mngr go is the same verb.",
        "NAME   what to call it",
        "--[no-]connect",
        "how; one of worktree, clone",
        "mngr launch fix -- sh -c 'echo \\$HOME'",
        ".second line",
        "6      some of many failed",
    ):
        assert line in seen


@pytest.mark.parametrize("name", ["mngr.1", "mngr-launch.1", "mngr-snapshot-create.1"])
def test_roff_has_nothing_to_complain_about(name: str, tmp_path: Path) -> None:
    man.write(str(tmp_path), COMMANDS)
    assert complaints(tmp_path / name) == ""


def test_roff_complaints_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "bad.1").write_text(man.page(LAUNCH) + ".NOSUCHMACRO\n\\fXoops\n")
    assert complaints(tmp_path / "bad.1")


def test_a_page_refers_to_its_family_or_to_its_group() -> None:
    def see_also(name: str) -> str:
        return rendered(man.page(COMMANDS[name], COMMANDS)).partition("SEE ALSO\n")[2].splitlines()[0].strip()

    assert see_also("snapshot create") == "mngr(1), mngr-snapshot-list(1)"
    assert see_also("list") == "mngr(1)"


def test_the_overview_refers_to_every_verb_but_the_hidden_ones() -> None:
    seen = rendered(man.overview(COMMANDS))
    for name in ("mngr-launch(1)", "mngr-list(1)", "mngr-snapshot-create(1)", "mngr-snapshot-list(1)"):
        assert name in seen
    assert "secret" not in seen


def test_a_page_tells_the_version_and_no_date() -> None:
    assert man.page(LAUNCH).splitlines()[1] == f'.TH MNGR\\-LAUNCH 1 "" "mngr {VERSION}" "mngr manual"'


def test_writing_removes_the_pages_of_verbs_that_are_gone_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mngr-gone.1").write_text("old")
    (tmp_path / "README").write_text("mine")
    man.write(str(tmp_path), COMMANDS)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "README",
        "mngr-launch.1",
        "mngr-list.1",
        "mngr-snapshot-create.1",
        "mngr-snapshot-list.1",
        "mngr.1",
    ]


def test_the_check_names_what_is_stale_missing_or_gone(tmp_path: Path) -> None:
    man.write(str(tmp_path), COMMANDS)
    assert man.check(str(tmp_path), COMMANDS) == []
    (tmp_path / "mngr-gone.1").write_text("old")
    (tmp_path / "mngr-list.1").unlink()
    with (tmp_path / "mngr.1").open("a") as page:
        page.write("edited\n")
    assert man.check(str(tmp_path), COMMANDS) == [
        "mngr-gone.1: of a verb that does not exist",
        "mngr-list.1: missing",
        "mngr.1: out of date",
    ]


def test_the_command_writes_all_pages_and_its_check_agrees_until_one_is_changed(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "mngr.cli.man", *words], capture_output=True, text=True)

    pages = str(tmp_path / "pages")
    assert run(pages).returncode == 0
    assert (tmp_path / "pages" / "mngr-help.1").exists()
    assert run("--check", pages).returncode == 0
    (tmp_path / "pages" / "mngr-help.1").unlink()
    stale = run("--check", pages)
    assert stale.returncode == 1
    assert "mngr-help.1: missing" in stale.stderr
    assert run("--chekc", pages).returncode != 0


def test_the_committed_pages_are_those_of_the_verbs(tmp_path: Path) -> None:
    man.write(str(tmp_path), man.own())
    fresh = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = {path.name: path.read_bytes() for path in COMMITTED.iterdir()}
    stale = sorted(name for name in fresh.keys() | committed.keys() if fresh.get(name) != committed.get(name))
    assert stale == [], "make man writes them anew"


def test_roff_has_nothing_to_complain_about_in_any_committed_page() -> None:
    pages = sorted(COMMITTED.glob("*.1"))
    assert pages
    assert {page.name: told for page in pages if (told := complaints(page))} == {}
