"""Where the work of an integration comes from: what runs have verified, or branches that are named."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mngr.errors import MngrError, UsageError
from mngr.integrate.sources import branches, of_branches, of_runs
from mngr.swarm import words
from tests.runs import Log

ONE, TWO, THREE = "tests/test_a.py::test_one", "tests/test_a.py::test_two", "tests/test_a.py::test_three"
TASKS = {"one": ONE, "two": TWO, "three": THREE}


class Repo:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.base = self.commit("base")

    def git(self, *line: str) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        done = subprocess.run(["git", *who, *line], cwd=self.path, env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, name: str) -> str:
        (self.path / name).write_text(name)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"Add {name}")
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, *files: str, at: str = "main") -> list[str]:
        """A branch with a commit for each file."""
        self.git("checkout", "-q", "-b", name, at)
        made = [self.commit(file) for file in files]
        self.git("checkout", "-q", "main")
        return made


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@contextmanager
def run(home: Path, repo: Repo, name: str = "r1", **plan: Any) -> Iterator[Log]:
    about = {"project": str(repo.path), "base": repo.base, **plan}
    with Log(home, name, TASKS, data={"one": {"test": ONE}}, plan=about) as log:
        yield log


def settle(log: Log, task: str, commits: list[str], outcome: str = words.FIXED, **members: Any) -> None:
    log.launch(task)
    log.bring_home(task, commits[-1] if commits else "b" * 40, commits)
    log.settle(task, outcome, **members)


def test_a_verified_branch_comes_with_everything_the_run_knows_of_it(home: Path, repo: Repo) -> None:
    made = repo.branch("mngr/r1-one", "src.py", "test.py")
    claim = {
        "summary": "off by one",
        "changes": [
            {"commit": made[0][:8], "kind": "implementation", "importance": "high", "summary": "it"},
            {"commit": made[1], "kind": "test", "importance": "low", "summary": "its test"},
        ],
        "escalations": [{"kind": "shared pattern", "summary": "others too"}],
    }
    with run(home, repo) as log:
        settle(log, "one", made, claim=claim, check={"before": {"check": "failed"}, "after": {"check": "passed"}})
        settle(log, "two", [], words.UNCHANGED)
        settle(log, "three", [], words.FAILED, why="no result")
    found = of_runs(str(home), ["r1"])
    (source,) = found.sources
    assert (source.branch, source.head, source.agent, source.run) == ("mngr/r1-one", made[1], "r1-one", "r1")
    assert (source.test, source.outcome, source.summary) == (ONE, "fixed", "off by one")
    assert {commit: each["importance"] for commit, each in source.claims.items()} == {made[0]: "high", made[1]: "low"}
    assert source.check["before"]["check"] == "failed"
    assert source.escalations == [{"kind": "shared pattern", "summary": "others too"}]
    assert source.directory == str(home / "runs" / "r1" / "tasks" / "r1-one")
    assert (found.base, found.repo, found.notes) == (repo.base, str(repo.path), [])
    assert [(each.task, each.outcome, each.branch) for each in found.passed] == [(THREE, "failed", "")]


def test_a_branch_of_a_task_that_did_not_end_well_is_named_and_not_taken(home: Path, repo: Repo) -> None:
    good, bad = repo.branch("mngr/r1-one", "good"), repo.branch("mngr/r1-two", "bad")
    with run(home, repo) as log:
        settle(log, "one", good)
        settle(log, "two", bad, words.FAILED, why="its test fails")
        settle(log, "three", [], words.SKIPPED, why="it cannot matter")
    found = of_runs(str(home), [])
    assert [source.branch for source in found.sources] == ["mngr/r1-one"]
    (passed,) = found.passed
    assert (passed.branch, passed.head, passed.outcome, passed.why) == (
        "mngr/r1-two",
        bad[0],
        "failed",
        "its test fails",
    )


def test_what_was_verified_counts_and_not_what_the_branch_is_now(home: Path, repo: Repo) -> None:
    made = repo.branch("mngr/r1-one", "good")
    with run(home, repo) as log:
        settle(log, "one", made)
    repo.git("checkout", "-q", "mngr/r1-one")
    repo.commit("later")
    assert [source.head for source in of_runs(str(home), ["r1"]).sources] == made


def test_commits_that_are_no_longer_there_are_told(home: Path, repo: Repo) -> None:
    good = repo.branch("mngr/r1-one", "good")
    with run(home, repo) as log:
        settle(log, "one", good)
        settle(log, "two", ["1" * 40])
    found = of_runs(str(home), ["r1"])
    assert [source.branch for source in found.sources] == ["mngr/r1-one"]
    assert "1111111111 is not in the repository any more" in found.passed[0].why


def test_a_run_all_of_whose_work_is_missing_says_so(home: Path, repo: Repo) -> None:
    with run(home, repo) as log:
        settle(log, "one", ["1" * 40])
        settle(log, "two", ["2" * 40])
    with pytest.raises(MngrError, match="2 branches ended well, but the commits are not in the repository any more"):
        of_runs(str(home), ["r1"])


def test_a_run_that_is_going_on_is_refused(home: Path, repo: Repo) -> None:
    made = repo.branch("mngr/r1-one", "good")
    with run(home, repo) as log:
        settle(log, "one", made)
        with pytest.raises(MngrError, match="r1 is still going on"):
            of_runs(str(home), ["r1"])
    assert of_runs(str(home), ["r1"]).notes == ["r1 is not done: 2 tasks are not settled, and not part of this"]


def test_a_run_without_branches_says_so(home: Path, repo: Repo) -> None:
    with run(home, repo) as log:
        settle(log, "one", [], words.DONE)
    with pytest.raises(MngrError, match="nothing to integrate in r1: no agent has handed in a commit"):
        of_runs(str(home), ["r1"])


def test_a_run_with_bad_branches_only_says_so(home: Path, repo: Repo) -> None:
    with run(home, repo) as log:
        settle(log, "one", repo.branch("mngr/r1-one", "bad"), words.FAILED)
    with pytest.raises(MngrError, match="1 branch, but no task that ended well has one"):
        of_runs(str(home), ["r1"])


def test_no_run_at_all_and_an_unknown_run_are_told(home: Path, repo: Repo) -> None:
    with pytest.raises(MngrError, match="there is no run yet"):
        of_runs(str(home), [])
    with run(home, repo):
        pass
    with pytest.raises(MngrError, match="there is no run r2"):
        of_runs(str(home), ["r2"])


def test_several_runs_are_integrated_onto_the_latest_base(home: Path, repo: Repo) -> None:
    early = repo.branch("mngr/r1-one", "early")
    with run(home, repo) as log:
        settle(log, "one", early)
    later = repo.commit("more")
    late = repo.branch("mngr/r2-one", "late")
    with run(home, repo, "r2", base=later) as log:
        settle(log, "one", late)
    for order in (["r1", "r2"], ["r2", "r1"]):
        found = of_runs(str(home), order)
        assert found.base == later
        assert [source.run for source in found.sources] == order


def test_runs_whose_bases_have_grown_apart_are_refused(home: Path, repo: Repo) -> None:
    (side,) = repo.branch("side", "side")
    repo.commit("more")
    for name, base in (("r1", side), ("r2", repo.git("rev-parse", "main"))):
        made = repo.branch(f"mngr/{name}-one", f"of-{name}", at=base)
        with run(home, repo, name, base=base) as log:
            settle(log, "one", made)
    with pytest.raises(MngrError, match=r"none contains the others: r1 at .*, r2 at "):
        of_runs(str(home), ["r1", "r2"])


def test_runs_of_two_repositories_are_refused(home: Path, repo: Repo, tmp_path: Path) -> None:
    other = Repo(tmp_path / "other")
    for name, each in (("r1", repo), ("r2", other)):
        made = each.branch(f"mngr/{name}-one", "file")
        with run(home, each, name) as log:
            settle(log, "one", made)
    with pytest.raises(UsageError, match="2 repositories"):
        of_runs(str(home), ["r1", "r2"])


def test_a_run_whose_repository_is_gone_is_told(home: Path, repo: Repo) -> None:
    with run(home, repo, project="/nowhere/at/all"):
        pass
    with pytest.raises(MngrError, match="/nowhere/at/all, which is not there any more"):
        of_runs(str(home), ["r1"])


def test_the_work_of_a_run_outlives_the_work_tree_that_it_was_begun_in(home: Path, repo: Repo, tmp_path: Path) -> None:
    gone = tmp_path / "linked"
    made = repo.branch("mngr/r1-one", "good")
    with run(home, repo, project=str(gone), common=str(repo.path / ".git")) as log:
        settle(log, "one", made)
        settle(log, "two", [], words.UNCHANGED)
        settle(log, "three", [], words.UNCHANGED)
    found = of_runs(str(home), ["r1"])
    assert (found.repo, [source.head for source in found.sources]) == (str(repo.path), made)
    assert found.notes == [f"{gone} is not there any more: the work of r1 is taken from {repo.path}"]


# Branches


def test_branches_come_in_the_order_in_which_they_are_named_and_once(repo: Repo) -> None:
    heads = {name: repo.branch(name, name.replace("/", "-"))[-1] for name in ("work/b", "work/a", "other")}
    found, notes = of_branches(str(repo.path), ["other", "work/*", "refs/heads/work/a"])
    assert notes == []
    assert [(source.branch, source.head) for source in found] == [
        (name, heads[name]) for name in ("other", "work/a", "work/b")
    ]


def test_a_pattern_does_not_fit_the_branch_that_is_made(repo: Repo) -> None:
    repo.branch("work/a", "a")
    repo.branch("work/all", "all")
    assert [source.branch for source in of_branches(str(repo.path), ["work/*"], "work/all")[0]] == ["work/a"]
    with pytest.raises(UsageError, match="work/all cannot be integrated into itself"):
        of_branches(str(repo.path), ["work/a", "work/all"], "work/all")


def test_an_unknown_branch_names_the_nearest(repo: Repo) -> None:
    repo.branch("fix-login", "a")
    with pytest.raises(UsageError) as caught:
        of_branches(str(repo.path), ["fix-logn"])
    assert caught.value.hint == "did you mean fix-login?"
    with pytest.raises(UsageError, match="there is no branch work/"):
        of_branches(str(repo.path), ["work/*"])


def test_branches_of_a_remote_are_known_and_local_ones_go_first(repo: Repo, tmp_path: Path) -> None:
    theirs = repo.branch("shared", "theirs")
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", str(repo.path), str(copy)], check=True, capture_output=True)
    found = branches(str(copy))
    assert found["origin/shared"] == theirs[0]
    assert of_branches(str(copy), ["origin/shared"])[0][0].head == theirs[0]


def test_a_pattern_fits_branches_of_a_remote_only_if_it_names_the_remote(repo: Repo, tmp_path: Path) -> None:
    repo.branch("shared", "theirs")
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", str(repo.path), str(copy)], check=True, capture_output=True)
    assert [source.branch for source in of_branches(str(copy), ["*"])[0]] == ["main"]
    for pattern in ("origin/*", "refs/remotes/origin/*"):
        found, _ = of_branches(str(copy), [pattern])
        assert [source.branch for source in found] == ["origin/main", "origin/shared"]


def test_a_pattern_does_not_fit_what_an_integration_has_made(repo: Repo) -> None:
    repo.branch("work/a", "a")
    repo.branch("work/made", "b")
    repo.branch("work/on-top", "c", at="work/made")
    repo.git("checkout", "-q", "work/made")
    repo.git("commit", "-q", "--amend", "-m", f"Made\n\nKind: docs\nPicked-from: {repo.base}")
    found, notes = of_branches(str(repo.path), ["work/*"])
    assert [source.branch for source in found] == ["work/a", "work/on-top"]
    assert notes == ["work/made is not taken: an integration has made it; name it to have it"]
    assert [source.branch for source in of_branches(str(repo.path), ["work/made"])[0]] == ["work/made"]
