"""Patterns in how tasks end: which of them pause a run, and which are told."""

from __future__ import annotations

import pytest

from mngr.swarm import breaker, settings, words
from mngr.swarm.state import Run

LAUNCH = ("launch", words.INFRASTRUCTURE)
GOOD = ("verify", words.FIXED)


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
    [[LAUNCH, LAUNCH, LAUNCH], [GOOD, LAUNCH, GOOD, LAUNCH, LAUNCH], [LAUNCH, LAUNCH, LAUNCH, *[GOOD] * 9]],
)
def test_three_of_the_first_five_are_a_pattern(endings: list[tuple[str, str]]) -> None:
    told = "3 of the first 5 tasks ended at launch (infrastructure) before any model call: no such program"
    assert breaker.pattern(ended(*endings)) == told


def test_so_many_in_a_row_are_a_pattern() -> None:
    told = "4 tasks in a row ended at ready (blocked) before any model call"
    assert breaker.pattern(ended(*[GOOD] * 6, *[("ready", words.BLOCKED)] * 4, why="")) == told


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
    assert (breaker.pattern(run) or "").endswith(": no such program")


def test_what_ended_before_a_person_looked_does_not_count_again() -> None:
    run = ended(*[LAUNCH] * 4)
    run.apply({"event": "unpaused"})
    assert breaker.pattern(run) is None


def test_alerts_are_by_stage_and_outcome_and_told_once() -> None:
    run = ended(*[("work", words.FAILED)] * 5, *[("work", words.STUCK)] * 4, *[LAUNCH] * 3, *[GOOD] * 5, messages=3)
    assert breaker.alerts(run) == [("failed at work", 5), ("stuck at work", 4)]
    run.apply({"event": "alerted", "pattern": "failed at work", "count": 5})
    assert breaker.alerts(run) == [("stuck at work", 4)]
