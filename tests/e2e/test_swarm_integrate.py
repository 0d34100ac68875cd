"""mngr swarm integrate, and what the other verbs of the swarm tell of it: over runs whose logs the tests write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mngr.swarm import words
from tests.home import Home, Mngr
from tests.runs import Log
from tests.shelf import BIGGEST, MEAN, OTHER_MEAN, SMALLEST, Files, Shelf, test_of

BIGGEST_TEST = "tests/test_biggest.py::test_biggest"
TASKS = {"one": BIGGEST_TEST, "two": "tests/test_two.py::test_two", "bad": "tests/test_bad.py::test_bad"}


@pytest.fixture
def shelf(home: Home) -> Shelf:
    return Shelf(home)


def write_run(home: Home, shelf: Shelf, name: str = "r1", tasks: dict[str, str] = TASKS, **plan: Any) -> Log:
    about = {"project": str(shelf.top), "base": shelf.base, **plan}
    return Log(home.mngr_home, name, tasks, plan=about)


def settle(log: Log, task: str, commits: list[str], outcome: str = words.FIXED, **members: Any) -> None:
    log.launch(task)
    log.bring_home(task, commits[-1], commits)
    log.settle(task, outcome, **members)
    log("cleared", task, how="destroyed")


@pytest.fixture
def run(home: Home, shelf: Shelf) -> Path:
    """r1 is done: one task fixed, one improved, one failed; all three have a branch."""
    test: Files = {"tests/test_biggest.py": test_of("biggest", "[1, 2]", "2")}
    one = shelf.branch("mngr/r1-one", ("Test biggest", test), ("Mend biggest", BIGGEST))
    two = shelf.branch("mngr/r1-two", ("Say more", {"MORE.md": "more\n"}), ("Mend smallest", SMALLEST))
    bad = shelf.branch("mngr/r1-bad", ("Make it worse", MEAN))
    claim = {
        "summary": "it took the smallest",
        "changes": [{"commit": one[1], "kind": "implementation", "importance": "high"}],
    }
    with write_run(home, shelf, notes={"integrate": True}) as log:
        settle(log, "two", two, words.IMPROVED)
        settle(log, "one", one, claim=claim)
        settle(log, "bad", bad, words.FAILED, why="its test still fails")
    return log.directory


def test_what_a_run_has_verified_becomes_a_branch_with_its_agents_and_tests(
    mngr: Mngr, shelf: Shelf, run: Path
) -> None:
    result = mngr("swarm", "integrate", "--no-verify", "--no-agent", "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    assert (report["into"], report["base"]) == ("mngr/r1-integrated", shelf.base)
    assert shelf.subjects("mngr/r1-integrated")[1:] == ["Mend biggest", "Mend smallest"]
    message = shelf.message("mngr/r1-integrated~1")
    assert {"Agent: r1-one", "Run: r1", f"Test: {BIGGEST_TEST}"} <= set(message.splitlines())
    assert report["steps"][1]["reasons"][:2] == ["fixes 1 test", "declared high"]
    assert [(each["branch"], each["why"]) for each in report["passed"]] == [("mngr/r1-bad", "its test still fails")]
    assert Path(report["directory"]) == run / "integration"
    assert report["costs"]["agents"] == 3


def test_work_that_is_missing_is_named_and_is_a_failure(home: Home, mngr: Mngr, shelf: Shelf) -> None:
    good = shelf.branch("mngr/r1-one", ("Mend biggest", BIGGEST))
    with write_run(home, shelf, tasks={task: TASKS[task] for task in ("one", "two")}) as log:
        settle(log, "one", good)
        settle(log, "two", ["2" * 40])
    result = mngr("swarm", "integrate", "r1", "--no-verify")
    assert result.code == 6
    line = "mngr/r1-two: fixed, but its last commit 2222222222 is not in the repository any more"
    assert f"missing (1)\n  {line}" in result.out
    assert "not taken" not in result.out
    body = (log.directory / "integration" / "pull-request.md").read_text()
    assert "Work that is missing" in body
    assert "nobody could finish" not in body


def test_the_verbs_of_the_swarm_tell_of_the_branch(mngr: Mngr, shelf: Shelf, run: Path) -> None:
    assert mngr.json("swarm", "status", "r1")["integrated"] is None
    assert "integrated" not in mngr.ok("swarm", "status")
    mngr.ok("swarm", "integrate", "r1", "--no-verify")
    told = mngr.json("swarm", "status", "r1")["integrated"]
    assert (told["branch"], told["commits"], told["left"]) == ("mngr/r1-integrated", 3, 0)
    assert told["commit"] == shelf.git("rev-parse", "mngr/r1-integrated")
    for words_ in (["swarm", "status"], ["swarm", "show", "r1"]):
        assert "integrated: mngr/r1-integrated (3 commits)" in mngr.ok(*words_).splitlines()


def test_a_resumed_run_is_integrated_at_its_end_as_it_was_begun(mngr: Mngr, shelf: Shelf, run: Path) -> None:
    result = mngr("swarm", "resume", "r1", timeout=120)
    assert result.code == 6, result.err  # one of its tasks has failed
    assert "\nmngr/r1-integrated: 3 commits on " in result.out
    tip = shelf.git("rev-parse", "mngr/r1-integrated")
    assert "Verified-by: mngr" in shelf.message(f"{tip}~1")
    again = mngr("swarm", "resume", "r1", "--json", timeout=120)
    assert json.loads(again.out)["integrated"]["commit"] == tip


@pytest.mark.parametrize("plan", [{}, {"notes": {"integrate": False}}])
def test_a_run_that_was_not_begun_so_is_left_as_it_is(
    home: Home, mngr: Mngr, shelf: Shelf, plan: dict[str, Any]
) -> None:
    made = shelf.branch("mngr/r1-one", ("Mend biggest", BIGGEST))
    with write_run(home, shelf, tasks={"one": BIGGEST_TEST}, **plan) as log:
        settle(log, "one", made)
    said = mngr.ok("swarm", "resume", "r1")
    assert "mngr/r1-integrated" not in shelf.git("branch", "--list", "mngr/*")
    assert ("mngr swarm integrate r1" in said) == bool(plan)


def test_a_cancelled_run_is_not_integrated(home: Home, mngr: Mngr, shelf: Shelf) -> None:
    made = shelf.branch("mngr/r1-one", ("Mend biggest", BIGGEST))
    with write_run(home, shelf, tasks={"one": BIGGEST_TEST}, notes={"integrate": True}) as log:
        settle(log, "one", made)
        log("cancelled", who="ada")
    mngr("swarm", "resume", "r1")
    assert "mngr/r1-integrated" not in shelf.git("branch", "--list", "mngr/*")


def test_what_is_in_the_way_of_an_integration_takes_nothing_from_the_run(mngr: Mngr, shelf: Shelf, run: Path) -> None:
    shelf.git("branch", "mngr/r1-integrated")
    result = mngr("swarm", "resume", "r1")
    assert result.code == 6
    assert "r1: done, 1 fixed, 1 improved, 1 failed" in result.out
    assert "r1 is not integrated: there is a branch mngr/r1-integrated already" in result.err
    assert "mngr swarm integrate r1 tries it again" in result.err


def test_a_run_that_is_going_on_is_not_integrated(home: Home, mngr: Mngr, shelf: Shelf) -> None:
    made = shelf.branch("mngr/r1-one", ("Mend biggest", BIGGEST))
    with write_run(home, shelf) as log:
        settle(log, "one", made)
        result = mngr("swarm", "integrate", "r1")
    assert (result.code, result.err.splitlines()[0]) == (1, "mngr: r1 is still going on")
    assert not (log.directory / "integration").exists()


def test_several_runs_become_one_branch(home: Home, mngr: Mngr, shelf: Shelf, run: Path) -> None:
    late = shelf.branch("mngr/r2-one", ("A mean of nothing", OTHER_MEAN))
    with write_run(home, shelf, "r2", {"one": "tests/test_mean.py::test_mean"}) as log:
        settle(log, "one", late)
    report = mngr.json("swarm", "integrate", "r1", "r2", "--into", "both", "--no-verify", "--dry-run")
    assert report["runs"] == ["r1", "r2"]
    assert report["counts"]["fixes"] == 3
    assert "both" not in shelf.git("branch", "--list").split()
