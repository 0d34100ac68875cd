"""Tests on trees, with real git and the real pytest, in checkouts of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr.integrate.checking.checkout import Checkout
from mngr.integrate.checking.suite import COLLECTING, How, Suite, shards
from mngr.integrate.picking.scratch import Scratch
from mngr.process import quote
from tests.home import is_alive, wait_until
from tests.integration import Commit, Project

PYTEST = f"{quote(sys.executable)} -m pytest -p no:cacheprovider"
IGNORED = "__pycache__\nleft-*\n"


@pytest.fixture(autouse=True)
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pytest that the projects are tested with: it starts in half the time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def suite(scratch: Scratch, path: Path, **how: object) -> Suite:
    values = {"pytest": PYTEST, "workers": 2, "limit": 60.0, **how}
    return Suite(scratch, str(path / "integration"), How(**values))  # type: ignore[arg-type]


def trees(scratch: Scratch, project: Project) -> dict[str, str]:
    """Of the base, and of each branch."""
    return {
        "base": scratch.tree_of(scratch.base),
        **{name: scratch.tree_of(head) for name, head in project.heads.items()},
    }


def words(found: dict[str, object]) -> dict[str, str]:
    return {test.rpartition("/")[2]: getattr(outcome, "word") for test, outcome in found.items()}  # noqa: B009


TESTS = """\
import os, sys
import pytest
from shelf import N

def test_passes():
    assert N == 1

def test_fails():
    assert N == 2, "N is small"

@pytest.mark.parametrize("n", [1, 2, "ü ["])
def test_many(n):
    assert n != 2

@pytest.mark.skip
def test_skipped():
    pass

class TestIn:
    def test_error(self, nobody_has_this):
        pass
"""


def test_tests_are_collected_and_run_on_any_tree(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {
            "shelf.py": "N = 1\n",
            "conftest.py": "",
            "tests/test_it.py": TESTS,
            "tests/test_other.py": "def test_o(): 0\n",
        },
        one=[{"shelf.py": "N = 2\n", "tests/test_other.py": "import nothing_like_it\ndef test_o(): 0\n"}],
    )
    scratch = project.scratch()
    tried = suite(scratch, tmp_path)
    at = trees(scratch, project)
    there = tried.collect(at["base"])
    assert [test.rpartition("/")[2] for test in there] == [
        "test_it.py::test_passes",
        "test_it.py::test_fails",
        "test_it.py::test_many[1]",
        "test_it.py::test_many[2]",
        "test_it.py::test_many[\\xfc []",
        "test_it.py::test_skipped",
        "test_it.py::TestIn::test_error",
        "test_other.py::test_o",
    ]
    assert tried.collect(at["one"])[-1] == "tests/test_other.py"

    asked = [*there, "tests/test_it.py::test_many", "tests/test_it.py::gone", "tests/no.py::t", "tests/test_other.py"]
    found = tried.run_all({at["base"]: asked, at["one"]: asked})
    assert words({**found[at["base"]]}) == {
        "test_it.py::test_passes": "passed",
        "test_it.py::test_fails": "failed",
        "test_it.py::test_many[1]": "passed",
        "test_it.py::test_many[2]": "failed",
        "test_it.py::test_many[\\xfc []": "passed",
        "test_it.py::test_skipped": "skipped",
        "test_it.py::TestIn::test_error": "error",
        "test_other.py::test_o": "passed",
        "test_it.py::test_many": "failed",
        "test_it.py::gone": "missing",
        "no.py::t": "missing",
        "test_other.py": "passed",
    }
    base, one = found[at["base"]], found[at["one"]]
    assert base["tests/test_it.py::test_fails"].said == "AssertionError: N is small"
    changed = {test for test in asked if base[test].word != one[test].word}
    assert changed == {
        *(f"tests/test_it.py::{name}" for name in ("test_passes", "test_fails")),
        *("tests/test_other.py::test_o", "tests/test_other.py"),
    }
    broken = one["tests/test_other.py"]
    assert (broken.word, broken.said) == ("error", "ModuleNotFoundError: No module named 'nothing_like_it'")
    assert one["tests/test_other.py::test_o"] == broken
    assert project.git("status", "--porcelain") == ""


def test_what_is_known_is_not_run_again_unless_it_is_asked_for(tmp_path: Path) -> None:
    """Nor by the next one. Another way to run tests has its own outcomes."""
    count = f"def test_it():\n    open({str(tmp_path / 'count')!r}, 'a').write('x')\n    assert 0\n"
    scratch = Project(tmp_path, {"test_it.py": count}).scratch()
    tree = scratch.tree_of(scratch.base)
    runs = tmp_path / "count"
    for again, many in [(False, 1), (False, 1), (True, 2), (True, 2), (False, 2)]:
        found = suite(scratch, tmp_path).run(tree, ["test_it.py::test_it"], again=again)
        assert found["test_it.py::test_it"].word == "failed"
        assert len(runs.read_text()) == many
    suite(scratch, tmp_path, flags=["-q"]).run(tree, ["test_it.py::test_it"])
    assert len(runs.read_text()) == 3
    assert suite(scratch, tmp_path, workers=1).collect(tree) == ["test_it.py::test_it"]
    assert suite(scratch, tmp_path, pytest="exit 3;").run(tree, ["test_it.py::test_it"])["test_it.py::test_it"].said


def test_what_came_of_the_environment_can_be_forgotten(tmp_path: Path) -> None:
    missing = tmp_path / "installed"
    scratch = Project(tmp_path, {"a": ""}).scratch()
    tree, how = scratch.tree_of(scratch.base), How(check=f"cat {quote(str(missing))}")
    place = str(tmp_path / "integration")
    assert Suite(scratch, place, how).run(tree, [how.check])[how.check].is_red
    missing.write_text("")
    assert Suite(scratch, place, how).run(tree, [how.check])[how.check].is_red
    assert Suite(scratch, place, how, forget=True).run(tree, [how.check])[how.check].is_green


def test_another_interpreter_of_the_same_name_has_its_own_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = Project(tmp_path, {"test_it.py": "def test_it(): pass\n"}).scratch()
    tree = scratch.tree_of(scratch.base)
    path = os.environ["PATH"]
    words = []
    for name, line in (("one", "exit 1"), ("two", f'exec {quote(sys.executable)} "$@"')):
        program = tmp_path / name / "our-python"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{path}")
        found = suite(scratch, tmp_path, pytest="our-python -m pytest").run(tree, ["test_it.py::test_it"])
        words.append(found["test_it.py::test_it"].word)
    assert words == ["error", "passed"]


def test_the_collection_can_be_asked_for_like_a_test(tmp_path: Path) -> None:
    project = Project(
        tmp_path, {"test_it.py": "def test_it(): pass\n"}, one=[{"test_exit.py": "import sys\nsys.exit(0)\n"}]
    )
    scratch = project.scratch()
    at, tried = trees(scratch, project), suite(scratch, tmp_path)
    found = tried.run_all({at["base"]: [COLLECTING], at["one"]: [COLLECTING, "test_it.py::test_it"]})
    assert found[at["base"]][COLLECTING].word == "passed"
    assert words(dict(found[at["one"]])) == {COLLECTING: "error", "test_it.py::test_it": "passed"}
    assert tried.unknown({at["one"]: [COLLECTING]}) == {}


def test_what_a_run_leaves_does_not_reach_the_next(tmp_path: Path) -> None:
    """Files, ignored or not, changed or removed ones, bytecode, and a lock of git."""
    test = """\
import os, shelf
def test_it():
    assert not [name for name in os.listdir() if name.startswith(("here", "left"))]
    assert open("tracked").read() == "tracked"
    os.makedirs("left-dir/locked/inside")
    os.chmod("left-dir/locked", 0)
    for name in ("here", "left-over", "left-ignored", "tracked", ".git/index.lock"):
        with open(name, "w") as file:
            file.write("x")
    os.remove("other")
    assert shelf.N == 1
"""
    base: Commit = {"shelf.py": "N = 1\n", ".gitignore": IGNORED, "tracked": "tracked", "other": "", "test_it.py": test}
    project = Project(tmp_path, base, one=[{"shelf.py": "N = 2\n"}], two=[{"shelf.py": "N = 1 \n"}])
    scratch = project.scratch()
    tried = suite(scratch, tmp_path, workers=1)
    found = [
        tried.run(tree, ["test_it.py::test_it"])["test_it.py::test_it"] for tree in trees(scratch, project).values()
    ]
    assert [(each.word, each.said) for each in found] == [("passed", ""), ("failed", "assert 2 == 1"), ("passed", "")]


def test_a_test_that_hangs_or_takes_pytest_down_costs_the_others_nothing(tmp_path: Path) -> None:
    """And what it has started is ended, in a session of its own too."""
    pids = tmp_path / "pids"
    hang = f"""\
import os, subprocess, pytest
def test_before(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_hangs(n):
    if n == 2:
        children = [subprocess.Popen(["sleep", "300"], start_new_session=new) for new in (True, False)]
        open({str(pids)!r}, "a").write("".join(f"{{child.pid}}\\n" for child in children))
        children[0].wait()
def test_dies():
    os._exit(7)
def test_exits():
    pytest.exit("enough")
def test_after(): assert 0
"""
    scratch = Project(tmp_path, {"test_it.py": hang, "test_other.py": "def test_other(): pass\n"}).scratch()
    names = ["test_before", "test_hangs", "test_dies", "test_exits", "test_after"]
    asked = [*(f"test_it.py::{name}" for name in names), "test_other.py::test_other"]
    found = suite(scratch, tmp_path, limit=5.0, workers=1).run(scratch.tree_of(scratch.base), asked)
    assert words({**found}) == {
        "test_it.py::test_before": "passed",
        "test_it.py::test_hangs": "timed out",
        "test_it.py::test_dies": "error",
        "test_it.py::test_exits": "error",
        "test_it.py::test_after": "failed",
        "test_other.py::test_other": "passed",
    }
    assert found["test_it.py::test_dies"].said == "pytest ended with 7 in the middle of it"
    assert len(pids.read_text().split()) == 2
    assert [pid for pid in pids.read_text().split() if is_alive(int(pid))] == []


def test_an_interruption_ends_what_is_running_and_keeps_what_is_done(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    slow = f"""\
import os, time
def test_slow():
    with open({str(pid)!r} + ".new", "w") as file: file.write(str(os.getpid()))
    os.replace({str(pid)!r} + ".new", {str(pid)!r})
    time.sleep(300)
"""
    project = Project(tmp_path, {"test_it.py": slow}, one=[{"test_it.py": "def test_slow(): pass\n"}])
    scratch = project.scratch()
    at = trees(scratch, project)
    tried = suite(scratch, tmp_path, workers=1)

    def interrupt() -> None:
        wait_until(pid.exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        tried.run_all({at["one"]: ["test_it.py::test_slow"], at["base"]: ["test_it.py::test_slow"]})
    thread.join()
    assert not is_alive(int(pid.read_text()))
    again = suite(scratch, tmp_path)
    assert list(again.unknown({tree: ["test_it.py::test_slow"] for tree in at.values()})) == [at["base"]]
    tried.close()
    assert not (tmp_path / "integration" / "checkouts").exists()


def test_tests_end_with_whoever_has_asked_for_them(tmp_path: Path) -> None:
    """Killed without a chance to say so."""
    pid = tmp_path / "pid"
    slow = f"""\
import os, time
def test_slow():
    with open({str(pid)!r} + ".new", "w") as file: file.write(str(os.getpid()))
    os.replace({str(pid)!r} + ".new", {str(pid)!r})
    time.sleep(300)
"""
    project = Project(tmp_path, {"test_it.py": slow})
    program = f"""\
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.checking.suite import How, Suite
scratch = Scratch({str(project.path)!r}, "main", {str(tmp_path / "integration")!r})
how = How(pytest={PYTEST!r}, workers=1)
Suite(scratch, {str(tmp_path / "integration")!r}, how).run(scratch.tree_of(scratch.base), ["test_it.py::test_slow"])
"""
    asker = subprocess.Popen([sys.executable, "-c", program])
    wait_until(pid.exists)
    asker.kill()
    asker.wait()
    wait_until(lambda: not is_alive(int(pid.read_text())))


# The checkout


def test_a_checkout_is_set_up_once_and_again_when_what_is_installed_differs(tmp_path: Path) -> None:
    test = "import os\ndef test_it(): assert os.path.exists('made/here') and os.path.exists('.env')\n"
    project = Project(
        tmp_path,
        {"test_it.py": test, "requirements.txt": "a\n"},
        one=[{"a.py": "1\n"}],
        two=[{"requirements.txt": "b\n"}],
        three=[{"requirements.txt": "fail\n"}],
    )
    (project.path / ".env").write_text("SECRET=1\n")
    scratch = project.scratch()
    log = quote(str(tmp_path / "log"))
    setup = f"mkdir -p made && touch made/here && cat requirements.txt >>{log} && ! grep fail requirements.txt"
    tried = suite(scratch, tmp_path, workers=1, setup=setup, copy=[".e*", "nothing"])
    at = trees(scratch, project)
    found = {name: tried.run(tree, ["test_it.py::test_it"])["test_it.py::test_it"] for name, tree in at.items()}
    assert {name: each.word for name, each in found.items()} == {
        "base": "passed",
        "one": "passed",
        "two": "passed",
        "three": "error",
    }
    assert found["three"].said.startswith("setup ended with 1: mkdir")
    assert (tmp_path / "log").read_text() == "a\nb\nfail\n"


def test_a_setup_that_fails_at_the_base_is_an_error(tmp_path: Path) -> None:
    scratch = Project(tmp_path, {"test_it.py": "def test_it(): pass\n"}).scratch()
    tried = suite(scratch, tmp_path, setup="echo no such thing; exit 3")
    with pytest.raises(MngrError, match=r"setup ended with 3: echo no such thing; exit 3: no such thing"):
        tried.run(scratch.tree_of(scratch.base), ["test_it.py::test_it"])


def test_a_package_from_elsewhere_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "other" / "shelf").mkdir(parents=True)
    (tmp_path / "other" / "shelf" / "__init__.py").touch()
    files: Commit = {"shelf/__init__.py": "", "tests/test_it.py": "import shelf\ndef test_it(): pass\n"}
    scratch = Project(tmp_path, files).scratch()
    line = f"PYTHONPATH={quote(str(tmp_path / 'other'))} {PYTEST.replace(' -m pytest', ' -P -m pytest')}"
    with pytest.raises(MngrError, match=r"shelf comes from .*/other/shelf, not from the checkout") as caught:
        suite(scratch, tmp_path, pytest=line).run(scratch.tree_of(scratch.base), ["tests/test_it.py::test_it"])
    assert "--setup" in (caught.value.hint or "")


def test_tests_do_not_see_tokens_nor_settings_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = """\
import os
def test_it():
    names = "GH_TOKEN GITHUB_TOKEN GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE MNGR_RESULT".split()
    assert [name for name in names if name in os.environ] == []
    assert os.environ["OTHER"] == "kept"
"""
    scratch = Project(tmp_path, {"test_it.py": test}).scratch()
    for name in ("GH_TOKEN", "GITHUB_TOKEN", "GIT_DIR", "MNGR_RESULT"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("OTHER", "kept")
    found = suite(scratch, tmp_path).run(scratch.tree_of(scratch.base), ["test_it.py::test_it"])
    assert found["test_it.py::test_it"].word == "passed"


def test_a_command_is_a_test_by_its_exit_code(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a": ""}, one=[{"bad": "too bad\n"}])
    scratch = project.scratch()
    tried = suite(scratch, tmp_path, check="! cat bad 2>/dev/null")
    at = trees(scratch, project)
    [command] = tried.collect(at["base"])
    assert tried.run(at["base"], [command])[command].word == "passed"
    red = tried.run(at["one"], [command])[command]
    assert (red.word, red.said) == ("failed", "too bad")


def test_a_checkout_has_its_tree_and_nothing_of_the_user_is_touched(tmp_path: Path) -> None:
    """Names that are no text, links and programs too."""
    files: Commit = {"\udcff name": "x", "run": ("100755", "#!/bin/sh\n"), "link": ("120000", "run"), "d/e.py": "1\n"}
    project = Project(tmp_path, files)
    scratch = project.scratch("no \udcff text")
    refs = project.git("for-each-ref")
    checkout = Checkout(scratch, os.path.join(tmp_path, "own \udcff"), How(), threading.Event())
    checkout.switch(scratch.tree_of(scratch.base))
    there = {os.fsencode(name) for name in os.listdir(checkout.top)}
    assert there == {b"\xff name", b"run", b"link", b"d", b".git"}
    assert os.readlink(os.path.join(checkout.top, "link")) == "run"
    assert os.access(os.path.join(checkout.top, "run"), os.X_OK)
    assert (project.git("for-each-ref"), project.git("status", "--porcelain")) == (refs, "")


@pytest.mark.parametrize(
    ("tests", "many", "parts"),
    [
        (["a::1", "a::2", "b::1"], 2, [["a::1", "a::2"], ["b::1"]]),
        (["a::1", "b::1", "a::2"], 1, [["a::1", "a::2", "b::1"]]),
        (["a::1"], 4, [["a::1"]]),
        (["a::1", "b::1", "c::1", "c::2"], 2, [["c::1", "c::2"], ["a::1", "b::1"]]),
        ([], 2, []),
    ],
)
def test_tests_of_a_file_stay_together(tests: list[str], many: int, parts: list[list[str]]) -> None:
    assert shards(tests, many) == parts
