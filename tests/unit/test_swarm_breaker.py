"""Patterns in how tasks end: which of them pause a run, and which are told."""

from __future__ import annotations

import pytest

from mngr.swarm import breaker, settings, words
from mngr.swarm.state import Run

LAUNCH = ("launch", words.INFRASTRUCTURE)
GOOD = ("verify", words.FIXED)
FAILED = ("work", words.FAILED)  # after model calls


def why(run: Run) -> str | None:
    found = breaker.pattern(run)
    return found.why if found else None


def launch(run: Run, task: str, time: float) -> None:
    run.apply({"event": "launched", "task": task, "stage": "ready", "id": task, "host": "local", "time": time})


def hand_in(run: Run, task: str) -> None:
    run.apply({"event": "ended", "task": task, "stage": "result"})


def ended(*endings: tuple[str, str], messages: int = 0, why: str = "no such program", after: int = 4) -> Run:
    run = Run("/nowhere/r1")
    plan = [{"task": f"t{number}"} for number in range(20)]
    run.apply({"event": "planned", "tasks": plan, "settings": {**settings.defaults(), "alert-after": after}})
    for number, (stage, outcome) in enumerate(endings):
        if messages:
            run.apply({"event": "spent", "task": f"t{number}", "messages": messages, "tokens": 5, "usd": 0.0})
        run.apply({"event": "settled", "task": f"t{number}", "stage": stage, "outcome": outcome, "why": why})
    return run


@pytest.mark.parametrize(
    "endings",
    [[LAUNCH, LAUNCH, LAUNCH], [FAILED, LAUNCH, FAILED, LAUNCH, LAUNCH], [LAUNCH, LAUNCH, LAUNCH, *[FAILED] * 9]],
)
def test_three_of_the_first_five_are_a_pattern(endings: list[tuple[str, str]]) -> None:
    told = "3 of the first 5 tasks ended at launch (infrastructure) before any model call: no such program"
    assert why(ended(*endings)) == told


def test_so_many_in_a_row_are_a_pattern() -> None:
    told = "4 tasks in a row ended at ready (blocked) before any model call"
    run = ended(*[GOOD] * 6, *[("ready", words.BLOCKED)] * 4, why="")
    for number, task in enumerate(run.tasks.values()):
        task.launched_at = float(number)  # those that ended well were logged in before
    assert why(run) == told


@pytest.mark.parametrize(
    "endings",
    [
        [],
        [LAUNCH, LAUNCH],
        [LAUNCH, LAUNCH, GOOD, GOOD, GOOD, LAUNCH],  # the third is not of the first five
        [LAUNCH, LAUNCH, ("setup", words.FAILED), ("ready", words.STUCK), GOOD],  # not one stage
        [*[GOOD] * 5, *[LAUNCH] * 3, GOOD, LAUNCH],  # not in a row
        [("work", words.FAILED)] * 9,  # after model calls
        [("launch", words.SKIPPED)] * 9,
        [("launch", words.CANCELLED)] * 9,
        [("launch", words.UNCHANGED)] * 9,
    ],
)
def test_what_is_no_pattern(endings: list[tuple[str, str]]) -> None:
    assert breaker.pattern(ended(*endings)) is None


def test_a_stage_does_not_count_once_a_model_was_asked() -> None:
    assert breaker.pattern(ended(*[LAUNCH] * 9, messages=1)) is None


def test_skipped_tasks_are_not_among_the_first_five() -> None:
    assert breaker.pattern(ended(*[("launch", words.SKIPPED)] * 9, *[LAUNCH] * 3)) is not None


def test_the_most_common_reason_is_told() -> None:
    run = ended(LAUNCH, LAUNCH, LAUNCH)
    run.tasks["t0"].why = "something else"
    assert (why(run) or "").endswith(": no such program")


def test_what_ended_before_a_person_looked_does_not_count_again() -> None:
    run = ended(*[LAUNCH] * 4)
    run.apply({"event": "unpaused"})
    assert breaker.pattern(run) is None


@pytest.mark.parametrize("place", [0, 9])
def test_who_hands_in_a_result_speaks_against_a_fault_of_all_from_the_beginning(place: int) -> None:
    """Those that fail end first: whoever has handed in a result is still being checked."""
    run = ended(*[("ready", words.FAILED)] * 3)
    launch(run, f"t{place + 3}", float(place))
    assert why(run) is not None
    hand_in(run, f"t{place + 3}")
    assert why(run) is None


def test_who_was_sent_before_those_that_fail_in_a_row_says_nothing_of_them() -> None:
    run = ended()
    for number in range(12):
        launch(run, f"t{number}", float(number))
    for number in (0, 1, 7, 8, 9, 10):
        stage, outcome = GOOD if number < 2 else ("ready", words.BLOCKED)
        run.apply({"event": "settled", "task": f"t{number}", "stage": stage, "outcome": outcome, "why": ""})
    found = breaker.pattern(run)
    assert found is not None
    assert (found.why, found.since) == ("4 tasks in a row ended at ready (blocked) before any model call", 7.0)
    hand_in(run, "t6")
    assert breaker.speaks_against(run, found.since) is None
    assert why(run) is not None
    hand_in(run, "t11")
    assert breaker.speaks_against(run, found.since) is run.tasks["t11"]
    assert why(run) is None


def test_after_a_person_has_looked_earlier_results_say_nothing() -> None:
    run = ended(GOOD, *[LAUNCH] * 4)
    launch(run, "t0", 1.0)
    run.tasks["t0"].stage = "verify"
    run.apply({"event": "unpaused", "time": 5.0})
    for number in range(6, 9):
        run.apply({"event": "settled", "task": f"t{number}", "stage": "launch", "outcome": words.INFRASTRUCTURE})
    assert why(run) is not None


def test_alerts_are_by_stage_and_outcome_and_told_once() -> None:
    run = ended(*[("work", words.FAILED)] * 5, *[("work", words.STUCK)] * 4, *[LAUNCH] * 3, *[GOOD] * 5, messages=3)
    assert breaker.alerts(run) == [("failed at work", 5), ("stuck at work", 4)]
    run.apply({"event": "alerted", "pattern": "failed at work", "count": 5})
    assert breaker.alerts(run) == [("stuck at work", 4)]
