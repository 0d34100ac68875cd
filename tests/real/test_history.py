"""The history that tests/real/history.py makes: that it is what it says, so that what is integrated of it can be
believed. Without the source packages, and no way to download them, nothing is skipped: it fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.real.history import CODE, COPIES, NEW, RIVALS, TESTS, History, build, home_of, real_changes, release
from tests.real.pieces import Module

pytestmark = pytest.mark.proof  # what is integrated of it in tests/real/test_integrate_history.py would show it, too


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return build(tmp_path_factory.mktemp("history"))


def git(history: History, *words: str, code: int = 0, input: str = "") -> str:
    somebody = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(["git", "-C", history.path, *somebody, *words], input=input, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def run_tests(history: History, commit: str, place: Path, *options: str) -> str:
    git(history, "worktree", "add", "--quiet", "--detach", str(place), commit)
    done = subprocess.run([*history.command, *options], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def collected(history: History, commit: str, place: Path) -> int:
    return sum("::" in line for line in run_tests(history, commit, place, "--collect-only").splitlines())


def patch_id(history: History, commit: str) -> str:
    return git(history, "patch-id", "--stable", input=git(history, "diff-tree", "-p", commit)).split()[0]


def branch_of(history: History, commit: str) -> str:
    return git(history, "branch", "--contains", commit, "--format=%(refname:short)").strip()


def test_its_branches_have_the_commits_it_tells_of(history: History) -> None:
    heads = git(history, "for-each-ref", "--format=%(refname:short)", "refs/heads/work").split()
    assert heads == history.branches
    assert len(heads) == 30
    assert int(git(history, "rev-list", "--count", "--branches=work/*", f"^{history.base}")) == history.commits == 81
    assert len(history.changes) == len(real_changes()) == 34
    assert len(history.duplicates) == len(COPIES) == 5
    assert len(history.conflicts) == len(RIVALS) == 3


def test_it_is_the_same_every_time(history: History, tmp_path: Path) -> None:
    assert build(tmp_path) == history.replace(path=str(tmp_path))


def test_complete_has_each_change_as_the_later_release_has_it(history: History) -> None:
    later = release(NEW)
    for _, function, tests in real_changes():
        for name, directory in ((function, CODE), (tests, TESTS)):
            path = home_of(name, later, directory)
            base, complete = (Module(git(history, "show", f"{commit}:{path}")) for commit in (history.base, "complete"))
            assert complete.find(name) == Module(later[path]).find(name) != base.find(name)


@pytest.mark.parametrize("state", ["base", "complete"])
def test_it_is_green_before_and_with_everything(history: History, state: str, tmp_path: Path) -> None:
    run_tests(history, getattr(history, state), tmp_path / "run")
    expected = {"base": history.tests_at_base, "complete": history.tests_when_complete}
    assert collected(history, getattr(history, state), tmp_path / "count") == expected[state]


def test_duplicates_do_the_same_on_another_branch(history: History) -> None:
    for twin, real in history.duplicates.items():
        assert patch_id(history, twin) == patch_id(history, real)
        assert branch_of(history, twin) != branch_of(history, real)


def test_conflicting_commits_cannot_both_be_merged(history: History) -> None:
    for rival, real in history.conflicts.items():
        alone = git(history, "commit-tree", "-p", history.base, "-m", "rival", rebased(history, rival)).strip()
        git(history, "merge-tree", "--write-tree", alone, real, code=1)


def rebased(history: History, commit: str) -> str:
    """The tree of the base with just this commit."""
    before = git(history, "rev-parse", f"{commit}^").strip()
    base = git(history, "commit-tree", "-p", before, "-m", "base", f"{history.base}^{{tree}}").strip()
    return git(history, "merge-tree", "--write-tree", base, commit).strip()


def test_all_other_branches_merge_with_each_other(history: History) -> None:
    crowded = [tuple(next(iter(history.changes[function].values())) for function in pair) for pair in history.crowded]
    pairs = [{branch_of(history, commit) for commit in pair} for pair in (*history.conflicts.items(), *crowded)]
    for one, other in pairs:
        git(history, "merge-tree", "--write-tree", one, other, code=1)
    merged: list[str] = []
    tip = history.base
    for branch in history.branches:
        if not any({branch, other} in pairs for other in merged):
            tree = git(history, "merge-tree", "--write-tree", tip, branch).strip()
            tip = git(history, "commit-tree", "-p", tip, "-p", branch, "-m", f"with {branch}", tree).strip()
            merged.append(branch)
    assert len(merged) >= 20
