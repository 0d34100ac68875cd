"""The project of `make demo`, and the trajectories that are played on it: the planted bugs fail the tests they should
and no others, and what the agents change mends them. How a swarm plays them is tested elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from importlib.resources import files
from pathlib import Path

import pytest

from tests.home import BIN, Mngr

DEMO = Path(__file__).parents[2] / "demo"
TRAJECTORIES = {file.stem: file for file in (DEMO / "trajectories").glob("test-*.sh")}
BLOCKED = "test_lookup_asks_the_library"
SAME = [
    ("test-unread-keeps-the-numbers", "test-a-tag-filter-keeps-the-numbers"),
    ("test-tags-ignore-case", "test-a-tag-is-kept-once"),
]
CONFLICT = ("test-a-wrong-number-is-an-error", "test-a-damaged-file-is-an-error")
FIXED = {*sum(SAME, ()), *CONFLICT, "test-search-finds-authors", "test-csv-quotes-commas"}
NOTHING_CHANGED = {"test-lookup-asks-the-library", "test-list-marks-what-is-read"}  # blocked, and stuck
# As much of the steps as changes files or names the test; `edit` is strict: a trajectory means one place and no other.
STEPS = """
test() { echo "$1"; }
for step in cost say think run before after commit escalate finish blocked limit hang; do
  eval "$step() { :; }"
done
edit() { "$PYTHON" -S -c '
import sys
file, old, new = sys.argv[1:]
text = open(file).read()
text.count(old) == 1 or sys.exit(f"{file} has this {text.count(old)} times: {old}")
open(file, "w").write(text.replace(old, new))' "$@" || exit; }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_of_the_sample(tmp_path / "shelf")


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each trajectory changes in the sample."""
    project = copy_of_the_sample(tmp_path_factory.mktemp("played") / "shelf")
    return {slug: changes(file, project) for slug, file in TRAJECTORIES.items()}


def test_the_planted_bugs_fail_their_tests_and_no_others(project: Path) -> None:
    outcomes = run_tests(project)
    assert len(outcomes) == 24
    assert {slug_of(test) for test, passed in outcomes.items() if not passed} == FIXED | {slug_of(BLOCKED)}
    assert set(TRAJECTORIES) <= {slug_of(test) for test in outcomes}


def test_together_the_agents_mend_everything_but_what_needs_a_key(
    project: Path, patches: dict[str, str], mngr: Mngr
) -> None:
    wanted = dict.fromkeys(patch for slug, patch in patches.items() if slug != CONFLICT[0])
    for patch in wanted:
        if patch:
            git(project, "apply", "-", input=patch)
    outcomes = run_tests(project)
    assert [test for test, passed in outcomes.items() if not passed] == [BLOCKED]
    assert len(outcomes) == 25  # one agent adds a test
    mngr.ok("tutorial", "check", "tutorial.sh", "tests", cwd=project)


def test_who_is_to_change_something_does(patches: dict[str, str]) -> None:
    assert {slug for slug, patch in patches.items() if not patch} == NOTHING_CHANGED
    assert set(patches) > FIXED
    for slug, patch in patches.items():
        places = set(re.findall(r"^\+\+\+ b/(\w+)", patch, re.MULTILINE))
        assert places <= ({"shelf", "README"} if slug in FIXED else {"tests"}), slug


def test_duplicates_of_a_fix_are_the_same_patch(patches: dict[str, str]) -> None:
    for one, other in SAME:
        assert patches[one] == patches[other]


def test_one_pair_is_in_conflict(project: Path, patches: dict[str, str]) -> None:
    one, other = (patches[slug] for slug in CONFLICT)
    git(project, "apply", "--check", "-", input=other)
    git(project, "apply", "-", input=one)
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "apply", "--check", "-", input=other)


@pytest.mark.parametrize("test", ["tests/test_books.py::test_add_shows_the_number", "tests/a_b.py::test_c[markdown]"])
def test_an_agent_without_a_trajectory_of_its_own_finds_its_test_in_the_prompt(tmp_path: Path, test: str) -> None:
    prompt = files("mngr.swarm.testing").joinpath("prompts", "test.md").read_text()
    assert play(DEMO / "trajectories" / "default.sh", tmp_path, prompt.replace("$test", test)) == f"{test}\n"


def test_the_tutorial_of_the_sample_is_in_step(project: Path, mngr: Mngr) -> None:
    assert "12 blocks" in mngr.ok("tutorial", "check", "tutorial.sh", "tests", cwd=project)


def slug_of(test: str) -> str:
    return re.sub("[^a-z0-9]+", "-", test.lower()).strip("-")


def copy_of_the_sample(where: Path) -> Path:
    shutil.copytree(DEMO / "sample", where, ignore=shutil.ignore_patterns("__pycache__", ".test_output"))
    git(where, "init", "-q")
    git(where, "add", "-A")
    return where


def changes(trajectory: Path, project: Path) -> str:
    """As a patch; the project is as before afterwards."""
    assert slug_of(play(trajectory, project).rpartition("::")[2]) == trajectory.stem
    patch = git(project, "diff")
    git(project, "checkout", "-q", "--", ".")
    return patch


def play(trajectory: Path, project: Path, prompt: str = "") -> str:
    """Gives the test that it says it is about."""
    line = ["sh", "-c", f"{STEPS}\n. {trajectory}"]
    env = {"PATH": os.environ["PATH"], "PYTHON": str(BIN / "python"), "MNGR_INPUT": prompt, "MNGR_ARTIFACTS": ""}
    return subprocess.run(line, cwd=project, env=env, text=True, stdout=subprocess.PIPE, check=True, timeout=60).stdout


def git(project: Path, *words: str, input: str = "") -> str:
    return subprocess.run(
        ["git", *words], cwd=project, input=input, text=True, capture_output=True, check=True, timeout=60
    ).stdout


def run_tests(project: Path) -> dict[str, bool]:
    """Test to whether it passes."""
    report = project.parent / "report.xml"
    line = [str(BIN / "python"), "-m", "pytest", "-q", f"--junitxml={report}", "--e2e-artifacts=no"]
    env = {"PATH": os.environ["PATH"], "HOME": str(project.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(line, cwd=project, env=env, text=True, capture_output=True, timeout=60)
    assert report.exists(), done.stdout + done.stderr
    return {case.attrib["name"]: len(case) == 0 for case in ElementTree.parse(report).iter("testcase")}
