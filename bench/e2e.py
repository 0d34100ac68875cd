"""What the test framework adds: to one command, and to one test with all its artifacts. The floors run the same command
by a bare `subprocess.run` in the same shell. Then the ledger of a large tutorial, and the page of a large run."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from figure import Figure, Sizes
from world import MNGR, PYTHON, CommandFailed

from mngr.e2e.artifacts import Artifacts, Run
from mngr.e2e.command import shell
from mngr.e2e.redaction import Redaction
from mngr.e2e.sandbox import Sandbox
from mngr.e2e.session import E2eSession

_COMMANDS = 50  # in one sample: one alone is too short to be timed
_OURS = """\
import pytest
@pytest.mark.parametrize("n", range({count}))
def test_it(e2e, n):
    assert e2e.run("true").exit_code == 0
"""
_BARE = """\
import pytest, subprocess
@pytest.mark.parametrize("n", range({count}))
def test_it(tmp_path, n):
    assert subprocess.run(["bash", "-c", "true"], cwd=tmp_path, capture_output=True).returncode == 0
"""


def e2e(sizes: Sizes) -> Iterator[Figure]:
    with TemporaryDirectory(prefix="mngr-b-") as place:
        yield _command(Path(place) / "one", sizes.runs)
        yield _test(Path(place), sizes)
        yield _ledger(Path(place), sizes)
        yield _view(Path(place), sizes)


def _command(place: Path, runs: int) -> Figure:
    place.mkdir()
    about = {"test": "t", "name": "t", "file": "t.py", "line": 1, "docstring": None}
    sandbox = Sandbox()
    redaction = Redaction()
    run = Run(place, place, "run", [], [])
    session = E2eSession(sandbox, redaction, Artifacts(run.directory_of("t"), about, redaction))

    def ours(_: int) -> float:
        return _each(lambda: session.run("true"))

    def floor(_: int) -> float:
        return _each(
            lambda: subprocess.run([shell(), "-c", "true"], cwd=session.dir, env=session.env, capture_output=True)
        )

    figure = Figure("e2e.run of one command", over=0.005).take_turns(runs, ours, floor)
    session.close("passed", 0, None)
    return figure


def _each(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(_COMMANDS):
        action()
    return (time.perf_counter() - begin) / _COMMANDS


def _test(place: Path, sizes: Sizes) -> Figure:
    def run(name: str, source: str) -> float:
        file = place / f"test_{name}.py"
        file.write_text(source.format(count=sizes.group))
        return _run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)], place) / sizes.group

    figure = Figure("a test with artifacts", over=0.05)
    return figure.take_turns(sizes.few_runs, lambda _: run("ours", _OURS), lambda _: run("bare", _BARE))


def _ledger(place: Path, sizes: Sizes) -> Figure:
    blocks = [f"# block {n}\nprogram verb-{n} --option {n}\n" for n in range(10 * sizes.group)]
    (place / "tutorial.sh").write_text("\n".join(blocks))
    tests = place / "ledger"
    tests.mkdir()
    for file in range(30):
        cited = [blocks[(file * sizes.group + n) % len(blocks)] for n in range(sizes.group)]
        text = "".join(f'def test_{n}(e2e):\n    e2e.write_tutorial_block("""{b}""")\n\n' for n, b in enumerate(cited))
        (tests / f"test_{file}.py").write_text(text)
    count = f"{10 * sizes.group} blocks, {30 * sizes.group} tests"
    argv = [MNGR, "tutorial", "check", "tutorial.sh", "ledger"]
    parse = "import ast, pathlib\nfor p in pathlib.Path('ledger').glob('*.py'): ast.parse(p.read_bytes())"
    figure = Figure(f"tutorial check, {count}")
    return figure.take_turns(sizes.few_runs, lambda _: _run(argv, place), lambda _: _run([PYTHON, "-c", parse], place))


def _view(place: Path, sizes: Sizes) -> Figure:
    """Written whole each time; the floor copies what it reads."""
    count = 10 * sizes.group
    (place / "test_many.py").write_text(_OURS.format(count=count))
    workers = ["-n", str(os.cpu_count() or 1)]
    _run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--e2e-run", "many", *workers, "test_many.py"], place)
    runs = place / ".test_output" / "e2e"

    def ours(run: int) -> float:
        return _run([MNGR, "e2e", "view", str(runs), "--output", str(place / f"view-{run}")], place)

    def floor(run: int) -> float:
        return _run(["cp", "-r", str(runs / "many"), str(place / f"copy-{run}")], place)

    return Figure(f"e2e view of {count} tests").take_turns(sizes.few_runs, ours, floor)


def _run(argv: list[str], cwd: Path) -> float:
    begin = time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True)
    passed = time.perf_counter() - begin
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
    return passed
