"""`mngr integrate` on the branches of tests/real/history.py: real code, and real tests to verify it with. All real
changes come in, letter for letter; only where two branches do the same in two ways, one is left out until a person has
chosen. The agent that is asked about conflicts is tests/real/answers.py.

To verify them takes more than a minute, and is for `make proof`. Without it, and without ALL_BRANCHES, it is some of
the thirty, among which are a fix that two have made, rivals, and additions to the same place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.home import Home, Mngr
from tests.real import answers
from tests.real.history import CODE, DOCS, MODULES, NEW, RIVALS, TESTS, History, build, home_of, real_changes, release
from tests.real.pieces import Module

Told = dict[str, Any]
TOP = Path(__file__).parents[2]
ALL = bool(os.environ.get("ALL_BRANCHES"))
SOME = [f"work/{number}" for number in ("05", "13", "16", "18", "19", "23", "29", "30")]
# Whatever is installed beside our own pytest, the project needs none of it, and each of many starts would load it.
PYTEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest"
HALF_DONE = "# somebody is in the middle of something\n"


@pytest.fixture
def home() -> Iterator[Home]:
    """Without the agent programs that other tests in here need."""
    home = Home()
    yield home
    home.remove()


def made(home: Home, branches: Collection[str] = (), attributes: bool = True) -> History:
    """Of these branches, or of all."""
    home.cwd = home.root / "project"
    home.cwd.mkdir()
    history = build(home.cwd, attributes)
    chosen = [branch for branch in history.branches if not branches or branch in branches]
    commits = home.run("git", "rev-list", *chosen, f"^{history.base}").split()
    functions = {function for number, function, _ in real_changes() if f"work/{number:02}" in chosen}
    return history.replace(
        branches=chosen,
        commits=len(commits),
        changes={name: parts for name, parts in history.changes.items() if name in functions},
        duplicates={twin: real for twin, real in history.duplicates.items() if {twin, real} <= set(commits)},
        conflicts={rival: real for rival, real in history.conflicts.items() if {rival, real} <= set(commits)},
    )


def integrate(mngr: Mngr, history: History, *more: str, code: int) -> Told:
    agent = [word for each in (sys.executable, answers.__file__, history.path) for word in ("--agent-arg", each)]
    words = ["integrate", *history.branches, "--base", "main", "--into", "all", "--pytest", PYTEST]
    words += ["--type", "command", *agent, "-e", f"PYTHONPATH={TOP}", "--json"]
    result = mngr(*words, *more, timeout=900)
    assert result.code == code, result.out + result.err
    told: Told = json.loads(result.out)
    return told


@pytest.mark.proof
def test_many_branches_become_one_that_is_ranked_and_green(mngr: Mngr, home: Home) -> None:
    history = made(home)
    (home.cwd / "setup.cfg").write_text(HALF_DONE)
    before = home.run("git", "for-each-ref")
    told = integrate(mngr, history, code=6)
    nothing_else_has_changed(home, before, told)
    every_commit_is_accounted_for(home, history, told)
    what_is_left_out_is_a_rival_with_both_sides(home, history, told)
    fixes_follow_the_rest_in_the_order_of_their_rank(home, history, told)
    duplicates_are_one_commit_that_names_everybody(home, history, told)
    everything_is_in(home, history, but=RIVALS)
    clone = cloned(home)
    reverts_are_as_they_are_told(home, told, clone)
    assert told["still_red"] == told["red_at_base"] == told["flaky"] == told["aside"] == []
    assert sum(told["tests"].values()) == number_of_tests(home, clone)
    for commit in (told["tip"], told["steps"][0]["commit"]):
        is_green(home, commit, clone)

    outcomes = Path(told["directory"], "outcomes.jsonl")
    known = outcomes.read_bytes()
    again = integrate(mngr, history, "--reintegrate", code=6)
    assert [step["commit"] for step in again["steps"]] == [step["commit"] for step in told["steps"]]
    assert outcomes.read_bytes() == known, "no test has been run"


@pytest.mark.proof
def test_with_the_choices_of_a_person_nothing_is_left_out(mngr: Mngr, home: Home) -> None:
    """Also where git sees a conflict in what was added to the same place."""
    history = made(home, () if ALL else SOME, attributes=False)
    told = integrate(mngr, history, "--no-verify", code=6)
    for agent in mngr.json("list"):
        mngr.ok("destroy", "-f", agent["name"])
    worse = [each for each in told["left"] if each["commit"] in history.conflicts]
    better = [each for each in told["left"] if each not in worse]
    drop = [word for each in worse for word in ("--drop", each["name"])]
    how = ["--no-verify", "--reintegrate", "-e", f"CHOSEN={' '.join(RIVALS)}", *drop]
    chosen = integrate(mngr, history, *how, code=0)
    assert (chosen["left"], len(chosen["dropped"])) == ([], len(worse))
    resolved = [pick["commit"] for step in chosen["steps"] for pick in step["picks"] if pick["how"] == "resolved"]
    assert better
    assert sorted(resolved) == sorted(each["commit"] for each in better)
    assert mngr.json("list") == []
    everything_is_in(home, history)
    clone = cloned(home)
    assert not ALL or number_of_tests(home, clone) == history.tests_when_complete
    is_green(home, chosen["tip"], clone)


def nothing_else_has_changed(home: Home, before: str, told: Told) -> None:
    assert home.run("git", "for-each-ref") == f"{told['tip']} commit\trefs/heads/all\n{before}"
    assert home.run("git", "status", "--porcelain", "--branch") == "## main\n M setup.cfg\n"
    assert (home.cwd / "setup.cfg").read_text() == HALF_DONE


def every_commit_is_accounted_for(home: Home, history: History, told: Told) -> None:
    changes = [*(pick for step in told["steps"] for pick in step["picks"]), *told["left"]]
    commits = {each["commit"] for change in changes for each in (change, *change["also"])}
    assert commits == set(home.run("git", "rev-list", *history.branches, f"^{history.base}").split())
    assert len(commits) == history.commits


def what_is_left_out_is_a_rival_with_both_sides(home: Home, history: History, told: Told) -> None:
    assert len(told["left"]) == len(history.conflicts)
    pairs = {*history.conflicts.items(), *((real, rival) for rival, real in history.conflicts.items())}
    for left in told["left"]:
        assert any((left["commit"], other["commit"]) in pairs for other in left["against"])
        assert answers.DECLINED in left["why"]
        assert left["hunks"]
        for hunk in left["hunks"]:
            assert hunk["ours"] != hunk["theirs"]
            assert hunk["ours"] in home.run("git", "show", f"all:{hunk['path']}")
            assert hunk["theirs"] in home.run("git", "show", f"{left['commit']}:{hunk['path']}")


def fixes_follow_the_rest_in_the_order_of_their_rank(home: Home, history: History, told: Told) -> None:
    """Nobody was sent to a test, and nothing was called severe: so it is how many made it, then how small it is. One
    that another one of its branch has pulled up says so."""
    rest, *fixes = told["steps"]
    commits = [step["commit"] for step in told["steps"]]
    assert home.run("git", "rev-list", "--reverse", "main..all").split() == commits
    assert (rest["kind"], {step["kind"] for step in fixes}) == ("rest", {"fix"})
    assert [step["rank"] for step in fixes] == list(range(1, len(history.changes) + 1))
    free = [step["picks"][0] for step in fixes if not any(each.startswith("before ") for each in step["reasons"])]
    by_rule = [(-len(fix["also"]), fix["added"] + fix["removed"]) for fix in free]
    assert by_rule == sorted(by_rule)


def duplicates_are_one_commit_that_names_everybody(home: Home, history: History, told: Told) -> None:
    found = set()
    for step in told["steps"]:
        first = step["picks"][0]
        if step["kind"] == "fix" and first["also"]:
            found.add(frozenset(each["commit"] for each in (first, *first["also"])))
            trailers = home.run("git", "log", "-1", "--format=%(trailers:key=Also-fixed-by,valueonly)", step["commit"])
            assert trailers.split() == [each["branch"] for each in first["also"]]
    assert found == {frozenset(pair) for pair in history.duplicates.items()}


def everything_is_in(home: Home, history: History, but: Collection[str] = ()) -> None:
    """As it is when all is complete, letter for letter. Where the project asks git to join what two have added to the
    same place, git may have swallowed the blank lines between."""
    later = release(NEW)
    texts = {
        (path, commit): home.run("git", "show", f"{commit}:{path}")
        for path in (*MODULES, DOCS)
        for commit in ("all", "complete")
    }
    for _, function, tests in real_changes():
        if function not in history.changes:
            continue
        for name, directory in ((function, CODE), (tests, TESTS)):
            path = home_of(name, later, directory)
            here, there = (Module(texts[path, commit]).find(name) for commit in ("all", "complete"))
            assert here
            assert there
            assert name in but or here.text.strip("\n") == there.text.strip("\n")
        line = f".. autofunction:: {function}\n"
        assert (line in texts[DOCS, "all"]) == (line in texts[DOCS, "complete"])


def reverts_are_as_they_are_told(home: Home, told: Told, clone: Path) -> None:
    for step in told["steps"][1:]:
        words = ["git", "revert", "--no-commit", step["commit"]]
        done = subprocess.run(words, cwd=clone, env=home.env, capture_output=True)
        assert (done.returncode == 0) == step["reverts"]["clean"], step["subject"]
        home.run("git", "reset", "--quiet", "--hard", cwd=clone)


def cloned(home: Home) -> Path:
    clone = home.root / "clone"
    home.run("git", "clone", "--quiet", "--branch", "all", str(home.cwd), str(clone))
    return clone


def number_of_tests(home: Home, clone: Path) -> int:
    return sum("::" in line for line in home.run("sh", "-c", f"{PYTEST} -q --collect-only", cwd=clone).splitlines())


def is_green(home: Home, commit: str, clone: Path) -> None:
    home.run("git", "checkout", "--quiet", "--detach", commit, cwd=clone)
    home.run("sh", "-c", f"{PYTEST} -q tests", cwd=clone)
