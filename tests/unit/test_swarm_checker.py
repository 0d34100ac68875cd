"""The checker, as it is sent: the real program with real git and real pytest, in a checkout of its own."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mngr.process import quote
from mngr.swarm.recipe import Home as Work
from mngr.swarm.testing import checker
from mngr.swarm.testing.judge import check_of
from tests.agents import commit, entries
from tests.home import Home, is_alive, wait_until

PYTEST = f"{quote(sys.executable)} -m pytest"
SHELF = "def first(things):\n    return things[0]\n"
FIXED = "def first(things):\n    return things[:1]\n"
TEST = """\
import pytest
from shelf import first

def test_empty():
    assert first([]) == []

@pytest.mark.slow
@pytest.mark.parametrize("name", ["a b", "ü::["])
def test_one(name):
    assert name in first([name])

def test_left_alone():
    assert 0
"""


@pytest.fixture(autouse=True)
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pytest that the projects are tested with: it starts in half the time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def project(home: Home, files: dict[str, str]) -> Path:
    """A repository of that, which the checker will be in."""
    home.cwd = home.root / "checkout"
    home.cwd.mkdir()
    home.run("git", "init", "-q")
    add(home, files)
    return home.cwd


def add(home: Home, files: dict[str, str]) -> str:
    for name, text in files.items():
        (home.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (home.cwd / name).write_text(text)
    return commit(home, home.cwd, "A commit")


def checked(
    home: Home, test: str, base: str, head: str, *, line: str = PYTEST, limit: float = 60.0, flags: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What it writes, run as an agent is."""
    own = home.root / "agent"
    (own / "artifacts").mkdir(parents=True)
    work = Work(directory="", repo="", base=base, head=head)
    check = check_of(work, test, pytest=line, flags=list(flags), limit=limit)
    env = {
        **home.env,
        "MNGR_INPUT": check.input,
        "MNGR_RESULT": str(own / "result.json"),
        "MNGR_ARTIFACTS": str(own / "artifacts"),
    }
    done = subprocess.run(check.command, cwd=home.cwd, env=env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((own / "result.json").read_text())
    return found


def test_a_branch_is_run_before_after_and_without_its_fix(home: Home) -> None:
    """Whatever the project's own settings leave away: markers, later tests after a failure, other processes."""
    settings = '[pytest]\naddopts = -x -m "not slow" -n 2\nmarkers = slow\n'
    ignored = ".pytest_cache\n__pycache__\n.venv/\n"
    top = project(
        home, {"pytest.ini": settings, ".gitignore": ignored, "shelf/__init__.py": SHELF, "tests/test_it.py": TEST}
    )
    base = commit(home, top, "Base")
    added = """
def test_new():
    assert first([]) == []

class TestMore:
    def test_idle(self):
        assert first([1])

def helper():
    pass

if False:
    def test_never_run():
        pass
"""
    add(home, {"shelf/__init__.py": FIXED})
    head = add(home, {"tests/test_it.py": TEST.replace("in first", "== '' or name in first") + added})
    (top / ".venv").symlink_to("/nowhere")  # set up, and not ignored: the rule is for a directory

    found = checked(home, "tests/test_it.py::test_empty", base, head)

    assert found == {
        "resolves": {"shelf": "shelf"},
        "before": "failed",
        "after": "passed",
        "without fix": "missing",
        "said": "",
        "others": [
            {
                "test": "tests/test_it.py::test_one",
                "is": "changed",
                "head": "passed",
                "base": "passed",
                "without fix": "passed",
            },
            {
                "test": "tests/test_it.py::test_new",
                "is": "new",
                "head": "passed",
                "base": "missing",
                "without fix": "failed",
            },
            {
                "test": "tests/test_it.py::TestMore::test_idle",
                "is": "new",
                "head": "passed",
                "base": "missing",
                "without fix": "passed",
            },
            {
                "test": "tests/test_it.py::test_never_run",
                "is": "new",
                "head": "missing",
                "base": "missing",
                "without fix": "missing",
            },
        ],
        "dropped": 0,
        "error": "",
    }
    assert home.run("git", "rev-parse", "HEAD").strip() == head
    assert home.run("git", "status", "--porcelain") == "?? .venv\n"
    assert entries(home.root / "agent" / "artifacts") == ["base.txt", "head.txt", "without-fix.txt"]


def test_what_a_run_leaves_does_not_reach_the_next(home: Home) -> None:
    """Nor does what Python has compiled: versions of a module can have the same size, and the same second."""
    test = """\
import os, shelf
def test_it():
    assert not os.path.exists("here")
    open("here", "w").close()
    assert shelf.N == 1
"""
    top = project(home, {"shelf.py": "N = 1\n", "conftest.py": "", "a b/test_it.py": test})
    base = commit(home, top, "Base")
    head = add(home, {"shelf.py": "N = 2\n"})
    compiled = top / "__pycache__" / "shelf.other-38.pyc"
    compiled.parent.mkdir()
    compiled.touch()
    found = checked(home, "a b/test_it.py::test_it", base, head)
    assert not compiled.exists()
    assert (found["before"], found["after"], found["said"]) == ("passed", "failed", "assert 2 == 1")
    assert found["others"] == []


def test_a_file_that_breaks_on_the_branch_is_an_error_there_and_nowhere_else(home: Home) -> None:
    top = project(home, {"test_it.py": "def test_it(): pass\n", "test_other.py": "def test_other(): pass\n"})
    base = commit(home, top, "Base")
    added = {
        "test_it.py": "import nothing_like_it\ndef test_it(): pass\n",
        "test_other.py": "def test_other(): assert 1\n",
        "test_new.py": "import pytest\npytest.skip('x', allow_module_level=True)\ndef test_new(): pass\n",
    }
    found = checked(home, "test_it.py::test_it", base, add(home, added))
    assert (found["before"], found["after"], found["error"]) == ("passed", "error", "")
    assert [(other["test"], other["head"]) for other in found["others"]] == [
        ("test_new.py::test_new", "skipped"),
        ("test_other.py::test_other", "passed"),
    ]


def test_a_run_that_takes_too_long_is_ended_with_all_it_started(home: Home) -> None:
    """And there is nothing to compare when there are no commits: it is run once."""
    hang = """\
import pathlib, subprocess
def test_hang():
    child = subprocess.Popen(["sleep", "300"])
    pathlib.Path("../pid").write_text(str(child.pid))
    child.wait()
"""
    top = project(home, {"test_it.py": hang})
    head = commit(home, top, "Head")
    found = checked(home, "test_it.py::test_hang", head, head, limit=4.0)
    assert (found["before"], found["after"]) == ("timed out", "timed out")
    pid = home.root / "pid"
    if pid.exists():  # a busy machine may not have come so far
        wait_until(lambda: not is_alive(int(pid.read_text())))
    assert entries(home.root / "agent" / "artifacts") == ["head.txt"]


def test_a_run_has_time_for_all_its_tests(home: Home) -> None:
    """And says how many functions were too many."""
    base = commit(home, project(home, {"README": ""}), "Base")
    slow = "import time\ndef test_slow(): time.sleep(6.5)\n"
    many = "".join(f"def helper_{number}(): pass\n" for number in range(502))
    head = add(home, {"test_it.py": f"def test_it(): pass\n{slow}{many}"})
    found = checked(home, "test_it.py::test_it", base, head, limit=6.0)
    assert found["others"] == [
        {"test": "test_it.py::test_slow", "is": "new", "head": "passed", "base": "missing", "without fix": "missing"}
    ]
    assert (found["after"], found["dropped"]) == ("passed", 3)


def test_the_time_for_a_run_has_an_end(tmp_path: Path) -> None:
    """And the check as a whole has time for all its runs."""
    work = Work(directory="", repo="", base="a", head="b")
    check = check_of(work, "t", pytest=PYTEST, flags=[], limit=60.0)
    runner = checker.Runner(json.loads(check.input.partition("\n")[0]), str(tmp_path))
    assert [runner.time_for(tests) for tests in (1, 3, 10, 501)] == [60.0, 180.0, 600.0, 600.0]
    assert check.timeout > 3 * 600.0
    unchanged = check_of(work.replace(head="a"), "t", pytest=PYTEST, flags=[], limit=60.0)
    assert 60.0 < unchanged.timeout < 600.0


def test_a_package_from_elsewhere_is_seen(home: Home) -> None:
    """By tests that start programs: that they are in the directory of the package helps them as little as us. The root
    of this pytest is below the top, and its line sets PYTHONPATH."""
    other = home.root / "other"
    (other / "shelf").mkdir(parents=True)
    (other / "shelf" / "__init__.py").touch()
    test = "def test_it(request):\n    assert request.config.getoption('--extra') == 'a b'\n"
    option = "def pytest_addoption(parser): parser.addoption('--extra')\n"
    files = {"sub/pytest.ini": "[pytest]\n", "sub/test_it.py": test, "sub/conftest.py": option, "shelf/__init__.py": ""}
    top = project(home, files)
    head = commit(home, top, "Head")
    line = f"PYTHONPATH={quote(str(other))} {PYTEST}"
    found = checked(home, "sub/test_it.py::test_it", head, head, line=line, flags=("--extra", "a b"))
    assert found["after"] == "passed"
    assert found["resolves"] == {"shelf": str(other / "shelf")}


def test_a_pytest_that_does_not_run_says_nothing_about_the_branch(home: Home) -> None:
    top = project(home, {"test_it.py": "def test_it(): pass\n"})
    base = commit(home, top, "Base")
    head = add(home, {"test_it.py": "def test_it(): assert 1\n"})
    found = checked(home, "test_it.py::test_it", base, head, line="echo no pytest here; exit 3;")
    assert found["error"] == "pytest ended with 3 before it had any tests: no pytest here"
    assert found["after"] == "error"


def test_a_commit_that_is_not_there_is_told(home: Home) -> None:
    top = project(home, {"test_it.py": "def test_it(): pass\n"})
    found = checked(home, "test_it.py::test_it", "f" * 40, commit(home, top, "Head"))
    assert list(found) == ["error"]
    assert found["error"].startswith("git diff-tree failed: ")


def run_alone(home: Home, job: dict[str, Any]) -> dict[str, Any]:
    """What it answers when it is to run tests in what is checked out."""
    (home.root / "job").write_text(json.dumps(job))
    line = [sys.executable, checker.__file__, "run", str(home.root / "job"), str(home.root / "answer")]
    done = subprocess.run(line, cwd=home.cwd, env=home.env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads((home.root / "answer").read_text())
    return found


def test_tests_are_run_alone_in_what_is_checked_out(home: Home) -> None:
    """However it differs from its commit. A function stands for its tests, a file for whether it can be collected."""
    top = project(home, {"shelf/__init__.py": SHELF, "test_it.py": TEST, "test_broken.py": "import nothing_like_it\n"})
    (top / "shelf" / "__init__.py").write_text(FIXED)
    tests = [f"test_it.py::{name}" for name in ("test_left_alone", "test_one", "test_empty", "gone")]
    job = {
        "pytest": PYTEST,
        "flags": ["-W", "ignore"],
        "tests": [*tests, "test_it.py", "test_broken.py", "test_broken.py::test_it", "test_none.py"],
        "timeout": 60.0,
        "longest": 60.0,
        "packages": None,
        "kinds": [],
    }
    assert run_alone(home, job) == {
        "resolves": {"shelf": "shelf"},
        "outcomes": {
            "test_it.py::test_left_alone": ["failed", "assert 0"],
            "test_it.py::test_one": ["passed", ""],
            "test_it.py::test_empty": ["passed", ""],
            "test_it.py::gone": ["missing", ""],
            "test_it.py": ["passed", ""],
            "test_broken.py": ["error", "ModuleNotFoundError: No module named 'nothing_like_it'"],
            "test_broken.py::test_it": ["error", "ModuleNotFoundError: No module named 'nothing_like_it'"],
            "test_none.py": ["missing", ""],
        },
        "error": "",
    }


def test_a_job_that_is_none_is_told(home: Home) -> None:
    project(home, {"a": ""})
    assert run_alone(home, {"tests": ["t"]}) == {"error": "KeyError: 'packages'"}


def test_it_is_plain_enough_for_old_interpreters() -> None:
    tree = ast.parse(Path(checker.__file__).read_text(), feature_version=(3, 8))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


# What a run has told


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([], "missing"),
        ([{"collected": {}}], "missing"),
        ([{"collected": {"f::t": "f::t"}}], "error"),
        ([{"collected": {"f::t": "f::t"}}, {"test": "f::t", "outcome": "passed", "said": ""}], "passed"),
        (
            [{"collected": {"f::t[1]": "f::t", "f::t[2]": "f::t"}}]
            + [
                {"test": f"f::t[{n}]", "outcome": outcome, "said": ""} for n, outcome in [(1, "skipped"), (2, "passed")]
            ],
            "skipped",
        ),
        (
            [{"collected": {"f::t": "f::t"}}]
            + [{"test": "f::t", "outcome": outcome, "said": ""} for outcome in ("passed", "error")],
            "error",
        ),
        ([{"file": "f", "outcome": "error"}, {"collected": {}}], "error"),
    ],
)
def test_the_worst_of_a_test_counts(tmp_path: Path, events: list[dict[str, Any]], outcome: str) -> None:
    (tmp_path / "events").write_text("".join(json.dumps(event) + "\n" for event in events) + '{"half a li')
    run = checker.Run()
    run.read(str(tmp_path / "events"))
    assert run.outcome("f::t") == outcome


def test_what_has_not_been_finished_in_time_has_timed_out(tmp_path: Path) -> None:
    run = checker.Run()
    run.timed_out = True
    assert run.outcome("f::t") == "timed out"
    run.collected = {"f::t": "f::t", "f::u": "f::u"}
    run.outcomes = {"f::t": "passed"}
    assert [run.outcome(test) for test in ("f::t", "f::u", "f::v")] == ["passed", "timed out", "missing"]


def test_a_test_that_has_ended_the_run_is_settled_and_those_behind_it_are_not() -> None:
    run = checker.Run()
    run.collected = {"f::t[1]": "f::t", "f::t[2]": "f::t", "f::u": "f::u", "f::v": "f::v"}
    run.outcomes = {"f::t[1]": "passed", "f::v": "passed"}
    run.at, run.code = "f::t[2]", -11
    assert [run.is_settled(test) for test in ("f::t", "f::t[1]", "f::u", "f::v", "f::gone")] == [
        *(True, True, False, True, True)
    ]
    assert run.finding("f::t") == ["error", "pytest ended with -11 in the middle of it"]
    run.timed_out, run.code = True, None
    assert run.finding("f::t") == ["timed out", ""]
    assert checker.Run().is_settled("f::t")  # it did not even collect: another start would end the same way
