"""What an agent's work is worth: what it claims, against its repository and what the check found."""

from __future__ import annotations

from typing import Any

import pytest

from mngr.swarm import words
from mngr.swarm.recipe import Home as Work
from mngr.swarm.recipe import Judgement
from mngr.swarm.testing.judge import judge
from tests.agents import commit
from tests.home import Home

TEST = "tests/test_it.py::test_it"
PASSES: dict[str, Any] = {"before": "passed", "after": "passed", "without fix": "missing", "others": [], "resolves": {}}
FIXED: dict[str, Any] = {**PASSES, "before": "failed"}


@pytest.fixture
def work(home: Home) -> Work:
    """A branch with a change of the program and one of a test."""
    home.cwd = home.root / "repo"
    (home.cwd / "tests").mkdir(parents=True)
    home.run("git", "init", "-q")
    base = commit(home, home.cwd, "Base")
    commits = []
    for name in ("shelf.py", "tests/test_it.py"):
        (home.cwd / name).touch()
        commits.append(commit(home, home.cwd, name))
    return Work(directory="", repo=str(home.cwd), branch="b", base=base, head=commits[-1], commits=commits)


def claim(work: Work, **members: Any) -> dict[str, Any]:
    """That there are these commits, by the beginnings of their hashes."""
    kinds = ("implementation", "test")
    changes = [
        {"kind": kind, "commit": commit[:8], "summary": "s", "importance": "low"}
        for kind, commit in zip(kinds, work.commits, strict=False)
    ]
    said = {"test": TEST, "passed_before": False, "passed_after": True, "changes": changes}
    return {**said, "escalations": [], "blocked": None, "summary": "s", **members}


def judged(work: Work, checked: dict[str, Any], **members: Any) -> Judgement:
    return judge(claim(work, **members), work, checked, TEST)


def test_the_check_decides(work: Work) -> None:
    nothing = work.replace(commits=[], head=work.base)
    assert judged(work, FIXED).outcome == words.FIXED
    assert judged(work, {**FIXED, "before": "timed out"}).outcome == words.FIXED
    assert judged(work, PASSES).outcome == words.IMPROVED
    assert judged(nothing, PASSES).outcome == words.UNCHANGED


def test_a_skipped_test_may_stay_so_and_is_not_fixed_by_being_run(work: Work) -> None:
    skipped = {**PASSES, "before": "skipped", "after": "skipped"}
    nothing = work.replace(commits=[], head=work.base)
    left = judged(nothing, skipped, passed_before=None, passed_after=None)
    assert (left.outcome, left.why) == (words.UNCHANGED, "")
    assert left.notes == [f"{TEST} is skipped, or expected to fail, and was left so"]
    assert judged(work, {**skipped, "after": "passed"}).outcome == words.IMPROVED
    for checked in (skipped, {**skipped, "before": "passed"}, {**skipped, "before": "failed"}):
        found = judged(work, checked)
        assert (found.outcome, found.why) == (words.FAILED, f"{TEST} is skipped on its branch")


def test_claim_and_check_stand_side_by_side(work: Work) -> None:
    found = judged(work, PASSES)
    assert found.check["before"] == {"claim": False, "check": "passed"}
    assert found.check["after"] == {"claim": True, "check": "passed"}
    assert found.notes == ["the result says that the test did not pass before; the check says: passed"]
    assert judged(work, FIXED).notes == []


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("failed", f"{TEST} fails on its branch: assert 1 == 2"),
        ("missing", f"{TEST} is no longer there on its branch: assert 1 == 2"),
        ("timed out", f"{TEST} timed out on its branch: assert 1 == 2"),
    ],
)
def test_a_claim_that_does_not_hold_has_failed(work: Work, after: str, why: str) -> None:
    found = judged(work, {**FIXED, "after": after, "said": "assert 1 == 2"})
    assert (found.outcome, found.why) == (words.FAILED, why)
    assert found.notes == [f"the result says that the test passed after; the check says: {after}"]


def test_a_blocked_agent_says_what_is_needed(work: Work) -> None:
    for checked in ({}, FIXED, {"error": "no pytest"}):
        found = judged(work, checked, blocked="a key for the server")
        assert (found.outcome, found.why) == (words.BLOCKED, "a key for the server")


def test_what_could_not_be_checked_is_nobodys_fault(work: Work) -> None:
    for checked, why in (({}, "the work was not checked"), ({"error": "no pytest"}, "no pytest")):
        found = judged(work, checked)
        assert (found.outcome, found.why) == (words.INFRASTRUCTURE, why)


def test_a_package_that_is_not_the_checkouts_proves_nothing(work: Work) -> None:
    found = judged(work, {**FIXED, "resolves": {"shelf": "src/shelf", "desk": "/elsewhere/desk"}})
    assert found.outcome == words.INFRASTRUCTURE
    assert found.why.startswith("desk comes from /elsewhere/desk, not from the checkout: ")
    assert judged(work, {**FIXED, "resolves": {"shelf": "src/shelf"}}).outcome == words.FIXED


def test_commits_that_are_not_on_the_branch_are_problems(work: Work) -> None:
    first, second = claim(work)["changes"]
    found = judged(work, FIXED, changes=[first, {**second, "commit": "0" * 12}])
    assert found.outcome == words.FAILED
    assert found.why == "000000000000 is no commit of its branch (and 1 more)"
    assert found.check["problems"][1] == f"commit {work.commits[1][:10]} is not in the result"
    found = judged(work, FIXED, changes=[first, second, {**second, "commit": ""}])
    assert found.why == " is more than one commit of its branch"


def test_commits_that_did_not_come_home_are_nobodys_fault(work: Work) -> None:
    for away in (work.replace(commits=[*work.commits, "0" * 40]), work.replace(repo=f"{work.repo}/tests/none")):
        found = judged(away, FIXED)
        assert found.outcome == words.INFRASTRUCTURE
        assert found.why.startswith("not all commits of b are in ")


def test_commits_of_another_kind_than_declared_are_problems(work: Work) -> None:
    first, second = claim(work)["changes"]
    found = judged(work, FIXED, changes=[{**first, "kind": "test"}, second])
    assert found.outcome == words.FAILED
    assert found.why == (f"commit {work.commits[0][:10]} is declared as test, but changes shelf.py (implementation)")


def test_a_merge_is_what_it_brings(home: Home, work: Work) -> None:
    """And a file may be called like a commit."""
    home.run("git", "switch", "-q", "-c", "side", work.base)
    (home.cwd / "side.py").touch()
    (home.cwd / work.commits[1]).touch()
    side = commit(home, home.cwd, "side")
    home.run("git", "switch", "-q", "-")
    home.run("git", "merge", "-q", "--no-edit", side)
    merge = home.run("git", "rev-parse", "HEAD").strip()
    work = work.replace(commits=[*work.commits, merge], head=merge)
    change = {"kind": "docs", "commit": merge, "summary": "s", "importance": "low"}
    found = judged(work, FIXED, changes=[*claim(work)["changes"], change])
    assert found.why.endswith(f"changes {work.commits[1]} (implementation), side.py (implementation)")


def test_other_tests_of_the_branch_must_pass_too(work: Work) -> None:
    def other(name: str, how: str, head: str, base: str = "missing", without: str = "missing") -> dict[str, str]:
        return {"test": name, "is": how, "head": head, "base": base, "without fix": without}

    good = [
        other("new", "new", "passed", without="failed"),
        other("idle", "new", "passed", without="passed"),
        other("changed", "changed", "passed", "failed", "passed"),
        other("skipped", "new", "skipped"),
        other("no better", "changed", "failed", "failed"),
    ]
    found = judged(work, {**FIXED, "others": good})
    assert found.outcome == words.FIXED
    assert found.notes == [
        "idle also passes without the fix",
        "skipped is new and was skipped",
        "no better was changed, and fails as it did before",
    ]
    for bad, why in [
        (other("bad", "new", "failed"), "bad, new on the branch, fails"),
        (other("bad", "changed", "error", "passed"), "bad, changed on the branch, ends in an error"),
        (other("bad", "new", "missing"), "bad, new on the branch, is not run by pytest"),
    ]:
        found = judged(work, {**FIXED, "others": [*good, bad]})
        assert (found.outcome, found.why) == (words.FAILED, why)


def test_tests_that_were_not_looked_at_are_told(work: Work) -> None:
    found = judged(work, {**FIXED, "dropped": 3})
    assert found.outcome == words.FIXED
    assert found.notes == ["too many new or changed functions in its test files: 3 not looked at"]
    assert judged(work, {**FIXED, "dropped": 0}).notes == []


def test_a_person_is_told_what_does_not_decide(work: Work) -> None:
    found = judged(work.replace(dirty=2), {**FIXED, "without fix": "passed"}, test="tests/test_it.py::test_other")
    assert found.outcome == words.FIXED
    assert found.notes == [
        "2 files of its work dir not committed, and so not part of what was checked",
        f"the result speaks of tests/test_it.py::test_other, not of {TEST}",
        f"{TEST}, as it is now, also passes without the change of the program",
    ]
