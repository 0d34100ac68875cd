"""A run is a fold over its log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mngr.errors import MngrError
from mngr.swarm import words
from mngr.swarm.log import EVENTS
from mngr.swarm.runs import find_run, known_runs
from mngr.swarm.state import Run, load

PLANNED: dict[str, Any] = {
    "event": "planned",
    "settings": {"retries": 2},
    "tasks": [{"task": "t", "title": "a test", "name": "r1-t", "data": {"x": 1}}, {"task": "s", "skip": "old"}],
}
AT_WORK: list[dict[str, Any]] = [
    {"event": "intended", "task": "t", "name": "r1-t", "host": "local", "tokens": 50},
    {"event": "launched", "task": "t", "id": "1234", "host": "local", "branch": "mngr/r1-t", "time": 10.0},
    {"event": "briefed", "task": "t"},
]


def folded(*events: dict[str, Any]) -> Run:
    run = Run("/nowhere/r1")
    for event in (PLANNED, *events):
        run.apply(event)
    return run


def test_a_task_goes_through_its_phases() -> None:
    home = {"event": "home", "task": "t", "head": "abc", "commits": ["abc"]}
    ways: list[tuple[dict[str, Any], str]] = [
        *zip(AT_WORK, (words.LAUNCHING, words.RUNNING, words.RUNNING), strict=True),
        ({"event": "parked", "task": "t", "until": 99.0, "time": 20.0}, words.PARKED),
        ({"event": "unparked", "task": "t", "seconds": 5.0}, words.RUNNING),
        ({"event": "ended", "task": "t", "stage": words.RESULT}, words.ENDED),
        ({"event": "returned", "task": "t", "result": "1-2"}, words.RUNNING),
        ({"event": "ended", "task": "t"}, words.ENDED),
        ({"event": "reopened", "task": "t"}, words.RUNNING),
        ({"event": "ended", "task": "t"}, words.ENDED),
        (home, words.HOME),
        ({"event": "checking", "task": "t", "name": "r1-t-check"}, words.CHECKING),
        ({"event": "checked", "task": "t", "check": {"ok": True}}, words.CHECKED),
        ({"event": "settled", "task": "t", "outcome": "fixed"}, words.SETTLED),
    ]
    run = folded()
    task = run.tasks["t"]
    for event, phase in ways:
        run.apply(event)
        assert task.phase == phase, event
    assert (task.outcome, task.check, task.home["commits"], task.returned) == ("fixed", {"ok": True}, ["abc"], 1)
    assert (task.throttled, task.reserve.tokens, task.stage) == (5.0, 0, words.RESULT)
    assert run.is_done
    assert run.counts() == {"fixed": 1, "skipped": 1}
    assert run.endings == [task]  # nobody ended what was skipped


def test_a_launch_that_is_tried_again_begins_anew_but_keeps_what_was_spent() -> None:
    spent = {"event": "spent", "task": "t", "messages": 2, "tokens": 30, "usd": 0.5}
    run = folded(*AT_WORK, spent, {"event": "relaunch", "task": "t", "why": "no disk", "not_before": 70.0})
    task = run.tasks["t"]
    assert (task.phase, task.agent, task.briefed, task.attempt) == (words.PENDING, "", False, 1)
    assert (task.spend.tokens, task.reserve.tokens, task.not_before) == (30, 0, 70.0)


def test_a_clock_that_was_set_back_takes_no_time_away() -> None:
    parked = {"event": "parked", "task": "t", "until": 2000.0, "time": 1000.0}
    run = folded(*AT_WORK, parked, {"event": "ended", "task": "t", "ending": words.CANCELLED, "time": 10.0})
    assert run.tasks["t"].throttled == 0.0
    assert run.tasks["t"].parked_at is None


def test_samples_are_those_since_something_moved() -> None:
    sample = {"event": "sampled", "task": "t", "log": 1, "screen": "a", "cpu": 0.0}
    run = folded(*AT_WORK, *({**sample, "elapsed": at, "moved": at == 3.0} for at in (1.0, 2.0, 3.0, 4.0)))
    assert [kept.elapsed for kept in run.tasks["t"].samples] == [3.0, 4.0]
    run.apply({"event": "nudged", "task": "t", "why": "standstill"})
    assert run.tasks["t"].samples == []


def test_what_a_person_has_looked_at_does_not_count_again() -> None:
    settled = {"event": "settled", "task": "t", "outcome": words.INFRASTRUCTURE}
    run = folded(settled, {"event": "paused", "why": "3 in a row"}, {"event": "unpaused"})
    assert (run.endings, run.paused, run.pauses) == ([], "", ["3 in a row"])


def test_events_of_a_newer_mngr_change_nothing() -> None:
    run = folded({"event": "sung", "task": "t"}, {"event": "briefed", "task": "nobody"}, {}, {"event": ["x"]})
    assert run.tasks["t"].phase == words.PENDING
    assert not run.tasks["t"].briefed


def write(directory: Path, *events: dict[str, Any]) -> str:
    directory.mkdir(parents=True)
    (directory / EVENTS).write_text("".join(json.dumps(event) + "\n" for event in events))
    return str(directory)


def test_a_run_that_was_never_planned_says_so(tmp_path: Path) -> None:
    with pytest.raises(MngrError, match="has no run in it"):
        load(write(tmp_path / "runs" / "r1", {"event": "started"}))


def test_runs_are_known_by_when_they_began(tmp_path: Path) -> None:
    for name, time in (("b", 1.0), ("a", 2.0), ("r10", "long ago"), ("c", 3)):
        write(tmp_path / "runs" / name, {**PLANNED, "time": time})
    (tmp_path / "runs" / "empty").mkdir()
    assert known_runs(str(tmp_path)) == ["r10", "b", "a", "c"]
    assert find_run(str(tmp_path), None).endswith("/runs/c")
    with pytest.raises(MngrError, match=r"there is no run r1$") as caught:
        find_run(str(tmp_path), "r1")
    assert "r10" in str(caught.value.hint)
