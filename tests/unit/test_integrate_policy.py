"""Which paths are tests, documentation and the tutorial: as it is said, as the project lets one see, as is usual."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mngr.config import Config, Setting
from mngr.errors import UsageError
from mngr.integrate.picking.policy import Policy, policy
from mngr.swarm.testing.kinds import DOCS, IMPLEMENTATION, TEST, TUTORIAL
from tests.histories import LINK, Content, History, kinds, scratch

CHECKS = {"checks/test_a.py": "x\n", "checks/__init__.py": "", "checks/helpers.py": "x\n", "checks/test_b.py": "x\n"}


def project(tmp_path: Path, files: Mapping[str, Content] | None = None, **settings: list[str]) -> Policy:
    history = History(tmp_path / "repo")
    history.commit("main", {"src/a.py": "x\n", **(files or {})})
    return kinds(scratch(history), **settings)


def test_what_is_usual_without_settings(tmp_path: Path) -> None:
    found = project(tmp_path)
    expected = {"tests/a": TEST, "docs/a.md": DOCS, "README.md": DOCS, "tutorial.sh": TUTORIAL, "a.py": IMPLEMENTATION}
    assert {path: found.kind_of(path) for path in expected} == expected


@pytest.mark.parametrize(
    ("glob", "fitting", "others"),
    [
        ("checks/", ["checks/a", "lib/checks/deep/a"], ["checks", "mychecks/a"]),
        ("/checks", ["checks/a", "checks"], ["lib/checks/a", "checks2/a"]),
        ("./checks", ["checks/a"], ["lib/checks/a"]),
        ("lib/checks", ["lib/checks/a/b", "lib/checks"], ["x/lib/checks/a"]),
        ("*_spec.py", ["a_spec.py", "lib/a_spec.py"], ["a_spec.pyc", "spec.py"]),
        ("lib/*.py", ["lib/a.py"], ["lib/deep/a.py", "lib/a.pyi"]),
        ("lib/**/x.py", ["lib/x.py", "lib/a/b/x.py"], ["x.py", "lib/ax.py"]),
        ("**/x.py", ["x.py", "a/x.py"], ["ax.py"]),
        ("lib/**", ["lib/a", "lib/a/b"], ["lib"]),
        ("a?.py", ["ab.py"], ["a.py", "a/.py"]),
        ("[ab]*.py", ["ax.py", "lib/b.py"], ["c.py"]),
        ("[!ab]*.py", ["c.py"], ["a.py"]),
        ("a+b(c).py", ["a+b(c).py"], ["aab(c).py"]),
        ("[z-a]", ["[z-a]"], ["z"]),
    ],
)
def test_patterns_are_written_as_in_gitignore(tmp_path: Path, glob: str, fitting: list[str], others: list[str]) -> None:
    found = project(tmp_path, tests=[glob], docs=[], tutorial=[])
    assert {path: found.kind_of(path) for path in fitting} == dict.fromkeys(fitting, TEST)
    assert {path: found.kind_of(path) for path in others} == dict.fromkeys(others, IMPLEMENTATION)


@pytest.mark.parametrize("glob", ["", "/", "!a.py"])
def test_a_pattern_that_says_nothing_is_refused(tmp_path: Path, glob: str) -> None:
    with pytest.raises(UsageError, match=r"integrate\.docs has a pattern that says nothing"):
        project(tmp_path, docs=[glob])


def test_what_is_said_replaces_what_is_usual_of_that_kind(tmp_path: Path) -> None:
    found = project(tmp_path, tests=["checks/"], docs=["tests/README.md"], tutorial=["docs/first.sh"])
    expected = {
        "checks/a.py": TEST,
        "tests/test_a.py": IMPLEMENTATION,
        "tests/README.md": DOCS,
        "README.md": IMPLEMENTATION,
        "docs/first.sh": TUTORIAL,
        "tutorial.sh": IMPLEMENTATION,
    }
    assert {path: found.kind_of(path) for path in expected} == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["./checks/"]\n'),
        ("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = "checks other"\n'),
        ("pyproject.toml", '[tool.pytest]\ntestpaths = ["checks"]\n'),
        ("pytest.ini", "[pytest]\ntestpaths =\n    checks\n    other\n"),
        ("tox.ini", "[tox]\nx = %(y)s\n[pytest]\ntestpaths = checks\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths = check?\n"),
    ],
)
def test_pytests_settings_say_where_tests_are(tmp_path: Path, name: str, text: str) -> None:
    found = project(tmp_path, {**CHECKS, name: text})
    assert found.kind_of("checks/data/a.json") == TEST
    assert found.kind_of("src/checks/a.py") == IMPLEMENTATION


@pytest.mark.parametrize("place", [".", "src", "..", "/", "checks/../src", "nowhere"])
def test_the_program_is_no_test_wherever_pytest_looks(tmp_path: Path, place: str) -> None:
    """Projects with doctests name it."""
    files = {"src/b.py": "x\n", "src/test_a.py": "x\n", "pytest.ini": f"[pytest]\ntestpaths = {place}\n"}
    found = project(tmp_path, {**CHECKS, **files})
    assert found.kind_of("src/a.py") == IMPLEMENTATION


def test_names_of_test_files_are_known_from_pytest(tmp_path: Path) -> None:
    text = "[pytest]\npython_files = check_*.py tests.py *.py\ntestpaths = proofs\n"
    found = project(tmp_path, {"pytest.ini": text, "proofs/check_b.py": "x\n"})
    expected = {"src/check_a.py": TEST, "tests.py": TEST, "src/a.py": IMPLEMENTATION, "check_a.txt": IMPLEMENTATION}
    expected |= {"src/check_a.txt": IMPLEMENTATION, "proofs/data.json": TEST}
    assert {path: found.kind_of(path) for path in expected} == expected


def test_the_first_of_pytests_files_counts(tmp_path: Path) -> None:
    files = {**CHECKS, "pytest.ini": "", "tox.ini": "[pytest]\ntestpaths = checks\n"}
    assert project(tmp_path, files).kind_of("checks/a.json") == IMPLEMENTATION


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", "[tool.pytest\n"),
        ("pyproject.toml", "tool = 3\n"),
        ("pyproject.toml", "[tool.pytest]\ntestpaths = 3\n"),
        ("pytest.ini", "no section\n"),
        ("pytest.ini", '[pytest]\ntestpaths = "checks\n'),
        ("setup.cfg", b"\xff\xfe\0"),
        ("tox.ini", (LINK, "checks")),
    ],
)
def test_settings_that_cannot_be_read_say_nothing(tmp_path: Path, name: str, content: Content) -> None:
    assert project(tmp_path, {**CHECKS, name: content}).kind_of("checks/a.json") == IMPLEMENTATION


def test_tutorials_are_known_from_pytest_the_configuration_and_the_run(tmp_path: Path) -> None:
    history = History(tmp_path / "repo")
    text = '[tool.pytest.ini_options]\ne2e_tutorials = ["docs/one.md", "../x.sh"]\n'
    history.commit("main", {"pyproject.toml": text})
    config = Config({"commands.swarm_run.tutorial": Setting(value="two.sh", origin="here")})
    found = policy(scratch(history), config, tutorial=["./three.txt"])
    expected = {"docs/one.md": TUTORIAL, "two.sh": TUTORIAL, "three.txt": TUTORIAL, "tutorial.sh": TUTORIAL}
    expected |= {"docs/two.sh": IMPLEMENTATION, "lib/two.sh": IMPLEMENTATION}
    assert {path: found.kind_of(path) for path in expected} == expected
