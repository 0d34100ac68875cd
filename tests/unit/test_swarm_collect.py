"""Collecting tests with a real pytest, in projects that make it hard; and what is said when it cannot be done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mngr.errors import MngrError, TimedOut
from mngr.swarm.testing import collect as collecting
from mngr.swarm.testing.collect import Found, collect, with_path
from mngr.swarm.testing.recipe import TestRecipe

PYTEST = f"{sys.executable} -m pytest"

SETTINGS = """\
[pytest]
addopts = -n 2 -q --strict-markers --strict-config --doctest-modules -W error
testpaths = tests src
markers =
    release: what is run before one
"""

# Reverses the tests, as plugins that shuffle do, and makes tests out of files that are no Python.
CONFTEST = """\
import pytest

@pytest.fixture
def sample():
    return 1

def pytest_collection_modifyitems(items):
    items.reverse()

def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".yaml":
        return Cases.from_parent(parent, path=file_path)

class Cases(pytest.File):
    def collect(self):
        yield Case.from_parent(self, name="first case")

class Case(pytest.Item):
    def runtest(self):
        pass
"""

TESTS = '''\
import unittest

import pytest
from helpers import Base, session

LIST = """
    # what is there
    mngr list
"""

def careless(function):
    def wrapper():
        return function()
    return wrapper

@pytest.mark.release
@pytest.mark.parametrize("text", ["a b", "\u00e4", "a::b", "[x]", "c/d.py::e", "it's $HOME"])
def test_odd_words(text):
    """Survives.

    All of it."""

class TestOuter:
    class TestInner:
        def test_method(self, sample):
            session.write_tutorial_block("""
                mngr create one
                  mngr stop one
            """)
            session.write_tutorial_block(text=LIST + "# and more")

class TestInherits(Base):
    pass

class Unit(unittest.TestCase):
    def test_unit(self):
        pass

@careless
def test_careless():
    """Said below a decorator that hides it."""

def make():
    def test():
        pass
    return test

test_made = make()
exec("def test_from_text(): pass")
'''

HELPERS = '''\
class Base:
    def test_inherited(self):
        """From the base."""

class session:
    @staticmethod
    def write_tutorial_block(text):
        pass
'''

PROGRAM = '''\
def one():
    """
    >>> one()
    1
    """
    return 1
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("a project")
    texts = {
        "pytest.ini": SETTINGS,
        "tests/conftest.py": CONFTEST,
        "tests/test_odd.py": TESTS,
        "tests/helpers.py": HELPERS,
        "tests/cases.yaml": "",
        "src/app.py": PROGRAM,
    }
    for name, text in texts.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(text)
    return top


@pytest.fixture(scope="module")
def found(project: Path) -> list[Found]:
    """The line sets PYTHONPATH itself, without which the tests cannot be imported."""
    line = f'PYTHONPATH="$PWD/src" {PYTEST} -o pythonpath=tests'
    return collect(str(project), [], [], line)


def one(found: list[Found], name: str) -> Found:
    (test,) = [test for test in found if test.name == name]
    return test


def test_every_test_is_found_in_the_order_of_its_file_whatever_plugins_did(found: list[Found]) -> None:
    assert [test.id for test in found] == [
        "tests/cases.yaml::first case",
        "tests/test_odd.py::test_odd_words[a b]",
        "tests/test_odd.py::test_odd_words[\\xe4]",
        "tests/test_odd.py::test_odd_words[a::b]",
        "tests/test_odd.py::test_odd_words[[x]]",
        "tests/test_odd.py::test_odd_words[c/d.py::e]",
        "tests/test_odd.py::test_odd_words[it's $HOME]",
        "tests/test_odd.py::TestOuter::TestInner::test_method",
        "tests/test_odd.py::TestInherits::test_inherited",
        "tests/test_odd.py::Unit::test_unit",
        "tests/test_odd.py::test_careless",
        "tests/test_odd.py::test_made",
        "tests/test_odd.py::test_from_text",
        "src/app.py::app.one",
    ]


def test_by_their_ids_the_same_tests_are_found_again(project: Path, found: list[Found]) -> None:
    python = [test.id for test in found if test.file == "tests/test_odd.py"]
    again = collect(str(project), python, ["-o", "pythonpath=tests"], PYTEST)
    assert again == [test for test in found if test.id in python]


def test_a_test_says_what_it_is_about(found: list[Found]) -> None:
    test = one(found, "test_odd_words[a::b]")
    assert (test.function, test.doc) == ("test_odd_words", "Survives.\n\nAll of it.")
    assert test.markers == ["parametrize", "release"]
    assert (test.file, test.source) == ("tests/test_odd.py", "tests/test_odd.py")
    assert TESTS.splitlines()[test.line - 1].startswith("def test_odd_words")


def test_fixtures_and_cited_blocks_are_found(found: list[Found]) -> None:
    test = one(found, "test_method")
    assert test.function == "TestOuter.TestInner.test_method"
    assert test.fixtures == ["tests/conftest.py"]
    assert test.blocks == ["mngr create one\n  mngr stop one", "    # what is there\n    mngr list\n# and more"]


@pytest.mark.parametrize(
    ("name", "function", "source"),
    [
        ("test_inherited", "Base.test_inherited", "tests/helpers.py"),
        ("test_unit", "Unit.test_unit", "tests/test_odd.py"),
        ("test_careless", "test_careless", "tests/test_odd.py"),
        ("test_made", "make", "tests/test_odd.py"),
        ("test_from_text", "test_from_text", ""),
        ("first case", "first case", ""),
        ("app.one", "app.one", ""),
    ],
)
def test_where_a_function_is_written_is_known_or_left_open(
    found: list[Found], name: str, function: str, source: str
) -> None:
    test = one(found, name)
    assert (test.function, test.source) == (function, source)


def test_the_text_below_a_careless_decorator_is_read(found: list[Found]) -> None:
    assert one(found, "test_careless").doc == "Said below a decorator that hides it."
    assert one(found, "test_inherited").doc == "From the base."


def test_ids_are_for_where_pytest_runs_and_files_for_the_top(tmp_path: Path) -> None:
    """The root that pytest finds is neither."""
    inner = tmp_path / "packages" / "one"
    (inner / "tests").mkdir(parents=True)
    (inner / "pytest.ini").write_text("[pytest]\n")
    (inner / "tests" / "test_it.py").write_text("def test_it(): pass\n")
    (from_top,) = collect(str(tmp_path), ["packages/one/tests"], [], PYTEST)
    (from_inside,) = collect(str(tmp_path), [], [], f"cd packages && {PYTEST}")
    assert from_top.id == "packages/one/tests/test_it.py::test_it"
    assert from_inside.id == "one/tests/test_it.py::test_it"
    assert from_top.file == from_inside.file == "packages/one/tests/test_it.py"


def test_what_was_deselected_is_not_there(project: Path) -> None:
    flags = ["-o", "pythonpath=tests", "-m", "release", "-k", "HOME"]
    (left,) = collect(str(project), ["tests"], flags, PYTEST)
    assert left.name == "test_odd_words[it's $HOME]"


def failure(top: Path, pytest_line: str, *paths: str, flags: tuple[str, ...] = ()) -> MngrError:
    with pytest.raises(MngrError) as caught:
        collect(str(top), list(paths), list(flags), pytest_line)
    return caught.value


def test_errors_are_told_with_the_first_file_and_how_to_see_the_rest(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("import no_such_thing\n")
    (tmp_path / "test_b.py").write_text("def test_b(:\n")
    (tmp_path / "test_c.py").write_text("def test_c(): pass\n")
    error = failure(tmp_path, PYTEST)
    wanted = "test_a.py cannot be collected: ModuleNotFoundError: No module named 'no_such_thing' (and 1 more)"
    assert error.message == wanted
    assert error.hint == f"see it all: {PYTEST} --collect-only"


def test_zero_tests_are_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    error = failure(tmp_path, PYTEST, "test_a.py", flags=("-k", "other"))
    assert error.message == "no tests collected in test_a.py: 1 deselected by -k other"


def test_a_path_that_is_not_there_is_told_in_the_words_of_pytest(tmp_path: Path) -> None:
    assert "file or directory not found: nowhere" in failure(tmp_path, PYTEST, "nowhere").message


def test_tests_of_another_project_are_refused(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    error = failure(tmp_path / "here", PYTEST, "../test_a.py")
    assert error.message == "../test_a.py::test_a is outside of the project: no agent would have it"


def test_a_line_that_runs_no_pytest_is_told(tmp_path: Path) -> None:
    missing = failure(tmp_path, "no-such-program -m pytest")
    assert missing.message.startswith("no-such-program -m pytest cannot be run: ")
    assert missing.hint == "--pytest CMD says how pytest is run in this project"
    without = failure(tmp_path, "echo 'No module named pytest' >&2; false")
    assert without.message.endswith("could not collect the tests: No module named pytest")
    assert without.hint == missing.hint
    assert "was killed by signal 9" in failure(tmp_path, "kill -9 $$;").message


def test_what_is_written_by_half_does_not_count(tmp_path: Path) -> None:
    error = failure(tmp_path, """printf '{"tests": [' >"$MNGR_COLLECTED"; echo broken >&2; false""")
    assert error.message.endswith("could not collect the tests: broken")


def test_there_is_a_deadline_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "DEADLINE", 0.1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert isinstance(failure(tmp_path, "sleep 60 #"), TimedOut)
    assert os.listdir(tmp_path) == []


def test_an_environment_is_taken_as_given_with_its_path(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": "/one:/two", "COLOUR": "blue"}
    with pytest.raises(MngrError) as caught:
        collect(str(tmp_path), [], [], 'echo "$COLOUR ${PYTHONPATH#*:} ${HOME-none}"; false', env)
    assert caught.value.message.endswith(": blue /one:/two none")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("PYTHONPATH=src python -m pytest", "PYTHONPATH=/p:src python -m pytest"),
        ('env PYTHONPATH="$PWD/a b" pytest', 'env PYTHONPATH=/p:"$PWD/a b" pytest'),
        ("MY_PYTHONPATH=src pytest", "MY_PYTHONPATH=src pytest"),
        ("pytest", "pytest"),
    ],
)
def test_our_directory_goes_in_front_where_a_line_sets_the_path(line: str, wanted: str) -> None:
    assert with_path(line, "/p") == wanted


def test_the_interpreter_of_the_project_is_used_where_a_work_dir_has_it(tmp_path: Path) -> None:
    """A clone has no .venv of its own until a setup has made one; and this machine's is on this machine alone."""
    top = tmp_path / "a project"
    identity = ["-c", "user.name=A", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    subprocess.run(["git", *identity, "-C", str(top), "commit", "-q", "--allow-empty", "-m", "x"], check=True)

    def line(setup: str | None, here: bool) -> str:
        return TestRecipe.planned(str(top), home=str(tmp_path), setup=setup, here=here).pytest

    assert line("make venv", True) == line(None, True) == "python3 -m pytest"
    (top / ".venv" / "bin").mkdir(parents=True)
    (top / ".venv" / "bin" / "python").symlink_to(sys.executable)
    assert line("make venv", True) == line("make venv", False) == ".venv/bin/python -m pytest"
    assert line(None, True) == f"'{os.path.realpath(top)}/.venv/bin/python' -m pytest"
    assert line(None, False) == "python3 -m pytest"
