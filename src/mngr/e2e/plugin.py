"""The pytest plugin: the fixture `e2e`, its options, and what a failure shows. pytest finds it by its entry point, in
every project of an environment that mngr is installed in; so it imports nothing before a test asks for the fixture."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.e2e.artifacts import Artifacts, Run
    from mngr.e2e.redaction import Redaction
    from mngr.e2e.session import E2eSession

_WORDS = ("yes", "on-failure", "no")
_SESSION = pytest.StashKey["E2eSession"]()
_REPORT = pytest.StashKey[pytest.TestReport]()  # of the setup that did not pass, or of the call
_RUN_NAME = pytest.StashKey[str]()
_RUN = pytest.StashKey["Run"]()
_APPLIED = pytest.StashKey[Any]()  # what snapshot.apply did
_KEPT_HERE = pytest.StashKey[list[tuple[str, str]]]()
_KEPT = "e2e environment kept"  # a user property of a test: the only thing that xdist carries from a teardown


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("e2e", "end-to-end tests of command lines (mngr.e2e)")
    group.addoption(
        "--e2e-artifacts",
        choices=_WORDS,
        default="yes",
        help="keep transcripts and recordings in .test_output/e2e (default: yes)",
    )
    group.addoption(
        "--e2e-keep",
        choices=_WORDS,
        default="no",
        help="keep the directory of a test and what it left in the background, and tell how to enter and remove them "
        "(default: no)",
    )
    group.addoption("--e2e-run", metavar="NAME", help="name of this run (default: date and time)")
    group.addoption("--e2e-update", action="store_true", help="rewrite snapshots that do not match, in the tests")
    parser.addini("e2e_tutorials", "tutorial files that the tests cite, for the combined view", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--e2e-run")
    if name and (os.sep in name or name.startswith(".") or name in ("latest", "view")):
        raise pytest.UsageError(f"--e2e-run: {name!r} is no name for a directory")
    worker = getattr(config, "workerinput", None)
    config.stash[_RUN_NAME] = worker["e2e_run"] if worker else name or time.strftime(f"%Y-%m-%d_%H-%M-%S_{os.getpid()}")


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if config.getoption("--e2e-run") and not hasattr(config, "workerinput") and not config.option.collectonly:
        _run_of(config).begin_anew()


def pytest_collection_finish() -> None:
    """What is there by now stays, and pytest looks through all of it at its end, twice: a fifth of a short run."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of xdist: all its workers are one run."""
    node.workerinput["e2e_run"] = node.config.stash[_RUN_NAME]


@pytest.fixture
def e2e(request: pytest.FixtureRequest) -> Iterator[E2eSession]:
    """Commands and terminals of this test, in a home, directory and environment of its own: mngr.e2e.E2eSession."""
    from mngr.e2e import snapshot
    from mngr.e2e.redaction import Redaction
    from mngr.e2e.sandbox import Sandbox
    from mngr.e2e.session import E2eSession

    item, config = request.node, request.config
    redaction = Redaction()
    session = E2eSession(Sandbox(), redaction, _artifacts(item, redaction))
    item.stash[_SESSION] = session
    begin = time.monotonic()
    edits = _run_of(config).edits if config.getoption("--e2e-update") else None
    with snapshot.at_work(edits, session.variables):
        yield session
    status, failure = _outcome(item)
    keep = _applies(config.getoption("--e2e-keep"), status)
    session.close(status, time.monotonic() - begin, failure, keep)
    if keep:
        item.user_properties.append((_KEPT, str(session.root)))
        config.stash.setdefault(_KEPT_HERE, []).append((item.nodeid, str(session.root)))


def _applies(word: str, status: str) -> bool:
    return word == "yes" or (word == "on-failure" and status == "failed")


def _artifacts(item: pytest.Item, redaction: Redaction) -> Artifacts | None:
    if item.config.getoption("--e2e-artifacts") == "no":
        return None
    import inspect

    from mngr.e2e.artifacts import Artifacts

    file, line, _ = item.location
    written = inspect.getdoc(getattr(item, "function", None))
    about = {"test": item.nodeid, "name": item.name, "file": file, "line": (line or 0) + 1, "docstring": written}
    return Artifacts(_run_of(item.config).directory_of(item.nodeid), about, redaction)


def _run_of(config: pytest.Config) -> Run:
    if _RUN not in config.stash:
        from mngr.e2e.artifacts import Run

        argv = ["pytest", *map(str, config.invocation_params.args)]
        tutorials = config.getini("e2e_tutorials")
        config.stash[_RUN] = Run(config.rootpath, _runs(config), config.stash[_RUN_NAME], argv, tutorials)
    return config.stash[_RUN]


def _outcome(item: pytest.Item) -> tuple[str, str | None]:
    """As far as it is known when the fixture is taken down. Without any report, pytest itself was ended."""
    report = item.stash.get(_REPORT, None)
    if report is None:
        return "failed", None
    return report.outcome, report.longreprtext if report.failed else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    session = item.stash.get(_SESSION, None)
    if session and (report.when == "call" or not report.passed):
        item.stash[_REPORT] = report
        if report.failed:
            transcript = session.folded() or "(no command was run)\n"
            report.sections.append(("e2e transcript", _sendable(transcript)))
            report.sections.append(("e2e replay", _sendable(_replay(item, session.artifacts))))
    if session and report.when == "teardown":
        _settle(item, session, report)
    return report


def _settle(item: pytest.Item, session: E2eSession, report: pytest.TestReport) -> None:
    """Now it is known what came of the test: another fixture may have failed after ours."""
    status, _ = _outcome(item)
    try:
        if report.failed:
            session.amend("failed", report.longreprtext)
        if session.artifacts and not _applies(item.config.getoption("--e2e-artifacts"), status):
            import shutil

            shutil.rmtree(session.artifacts)
    except OSError as error:  # a full disk must not cost the report of everything else
        report.sections.append(("e2e artifacts", f"they could not be written: {error}\n"))


def _replay(item: pytest.Item, artifacts: Path | None) -> str:
    import shlex

    node = _shown(item.path) + item.nodeid[item.nodeid.find("::") :]
    text = f"pytest {shlex.quote(node)} --e2e-keep yes    # then enter what is left\n"
    return text + (f"{_shown(artifacts)}/transcript.txt has all of it\n" if artifacts else "")


def _shown(path: Path) -> str:
    """As one would type it here, if there is a here: a test may have left us in a directory that is gone."""
    try:
        return os.path.relpath(path)
    except OSError:
        return str(path)


def _sendable(text: str) -> str:
    """Under xdist a report travels as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput") or not _was_used(config):
        return
    run = _run_of(config)
    try:
        run.finish()
    except (OSError, ValueError):
        pass  # a full disk: pytest has something to say too
    if config.getoption("--e2e-update"):
        from mngr.e2e import snapshot

        applied = config.stash[_APPLIED] = snapshot.apply(run.edits)
        if applied.conflicts and not session.exitstatus:
            session.exitstatus = 1


def _was_used(config: pytest.Config) -> bool:
    """Without importing anything for those who did not."""
    return (_runs(config) / config.stash[_RUN_NAME]).is_dir()


def _runs(config: pytest.Config) -> Path:
    """Where runs leave what people may look at. Of an agent of mngr, what lies in $MNGR_ARTIFACTS is brought home."""
    place = os.environ.get("MNGR_ARTIFACTS")
    return (Path(place) if place else config.rootpath / ".test_output") / "e2e"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    kept = [
        (report.nodeid, root)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "teardown"
        for name, root in report.user_properties
        if name == _KEPT
    ]
    kept += [pair for pair in config.stash.get(_KEPT_HERE, []) if pair not in kept]  # after Ctrl-C there is no report
    write = terminalreporter.write_line
    for test, root in kept:
        write(f"e2e: kept {test}: enter with {root}/enter, remove with {root}/remove")
    applied = config.stash.get(_APPLIED, None)
    if applied:
        for line in applied.tell():
            write(f"e2e: {line}")
    if _was_used(config):
        directory = _shown(_run_of(config).directory)
        write(f"e2e: transcripts and recordings in {directory} (mngr e2e view shows them)")
