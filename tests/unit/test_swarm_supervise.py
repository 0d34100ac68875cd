"""What is done about an agent, case by case."""

from __future__ import annotations

import pytest

from mngr.swarm import settings as tuning
from mngr.swarm import supervise, words
from mngr.swarm.state import Sample, Task
from mngr.swarm.supervise import API_ERROR, NO_RESULT, STANDSTILL, Act, Look, is_still, judge, moved

NOW = 1_700_000_000.0
SETTINGS = {**tuning.defaults(), "stuck-after": 60.0, "timeout": 600.0, "retries": 2}


def task(**members: object) -> Task:
    made = Task("t", "a test", {})
    made.phase, made.briefed = words.RUNNING, True
    for name, value in members.items():
        setattr(made, name, value)
    return made


def look(state: str, reason: str = "", **members: object) -> Look:
    return Look(state=state, reason=reason, **members)  # type: ignore[arg-type]


def act(one: Task, seen: Look, clock: float = 10.0) -> Act:
    return judge(one, seen, SETTINGS, clock, NOW)


@pytest.mark.parametrize(
    ("seen", "do", "ending"),
    [
        (look(""), "end", words.LOST),
        (look("failed", "create was interrupted", interrupted=True), "relaunch", ""),
        (look("failed", "exit 3"), "end", words.FAILED),
        (look("failed", "signal 9", since=9.0), "restart", ""),
        (look("failed", "exit 137, signal 9", since=9.0), "restart", ""),
        (look("failed", "exit 137, signal 9", since=0.0), "go on", ""),
        (look("done"), "end", words.FAILED),
        (look("stopped", "session gone", since=9.0), "restart", ""),
        (look("stopped", inherited=True), "restart", ""),
        (look("stopped", since=1.0), "go on", ""),
        (look("stopped", since=9.0), "end", words.CANCELLED),
        (look("starting", since=10.0), "go on", ""),
        (look("starting", since=400.0), "end", words.INFRASTRUCTURE),
        (look("unknown", "host cannot be reached", since=60.0), "go on", ""),
        (look("unknown", "host cannot be reached", since=1000.0), "end", words.LOST),
        (look("running"), "go on", ""),
        (look("waiting", "turn over", since=0.2), "go on", ""),
        (look("waiting", "turn over", since=3.0), "nudge", ""),
        (look("waiting", "permission: Bash", since=1.0), "go on", ""),
        (look("waiting", "permission: Bash", since=9.0), "end", words.BLOCKED),
        (look("waiting", "question", since=9.0), "end", words.BLOCKED),
        (look("waiting", "api error: 500", since=1.0), "go on", ""),
        (look("waiting", "api error: 500", since=9.0), "nudge", ""),
        (look("waiting", "rate limit: resets in 20s"), "park", ""),
    ],
)
def test_each_state_has_its_answer(seen: Look, do: str, ending: str) -> None:
    found = act(task(), seen)
    assert (found.do, found.ending) == (do, ending)


def test_a_result_counts_when_the_turn_is_over_or_has_had_time_to_be() -> None:
    assert act(task(), look("running", result="1-2", result_since=1.0)).do == "go on"
    assert act(task(), look("waiting", "turn over", result="1-2")) == Act(do="end")
    assert act(task(), look("running", result="1-2", result_since=30.0)) == Act(do="end")
    assert act(task(), look("failed", "exit 1", result="1-2")) == Act(do="end")  # what it did afterwards is its own
    assert act(task(), look("running", result="1-2", reports=False)) == Act(do="end")


def test_time_is_up_only_for_one_that_would_go_on() -> None:
    assert act(task(), look("running"), 600.0).ending == words.TIMED_OUT
    assert act(task(), look("waiting", "rate limit: resets in 20s"), 600.0).do == "park"
    assert act(task(phase=words.PARKED), look("waiting", "rate limit: resets in 20s"), 600.0).do == "go on"
    assert act(task(), look("waiting", "turn over", result="1-2"), 600.0) == Act(do="end")


def test_one_that_nobody_has_told_its_task_is_asked_for_no_result() -> None:
    assert act(task(briefed=False), look("waiting", "ready")).do == "go on"


def test_without_a_result_it_is_nudged_once() -> None:
    assert act(task(), look("waiting", "turn over", since=3.0)).why == NO_RESULT
    assert act(task(nudges=[NO_RESULT]), look("waiting", "turn over", since=3.0)).ending == words.FAILED


def test_what_is_no_fault_of_its_own_is_tried_again_as_often_as_the_settings_say() -> None:
    assert act(task(restarts=1), look("stopped", "session gone", since=9.0)).do == "restart"
    assert act(task(restarts=2), look("stopped", "session gone")).ending == words.INFRASTRUCTURE
    assert act(task(nudges=[API_ERROR] * 2), look("waiting", "api error: 500", since=60.0)).do == "nudge"
    assert act(task(nudges=[API_ERROR] * 3), look("waiting", "api error: 500", since=60.0)).ending == "infrastructure"


def test_it_is_parked_until_the_limit_is_over() -> None:
    assert act(task(), look("waiting", "rate limit: try again in 20s")).until == pytest.approx(NOW + 20, abs=1)
    unknown = act(task(), look("waiting", "rate limit: 429")).until
    assert NOW + 10 < unknown < NOW + 60
    assert act(task(parks=3), look("waiting", "rate limit: 429")).until > unknown
    assert act(task(parks=20), look("waiting", "rate limit: 429")).ending == words.RATE_LIMITED


def still(*times: float, cpu: float = 0.0) -> list[Sample]:
    return [Sample(elapsed, 100, "abc", cpu) for elapsed in times]


def test_one_sample_is_no_evidence_of_standstill() -> None:
    assert not is_still(task(samples=still(0)), Sample(100, 100, "abc", 0), 60)
    assert not is_still(task(samples=still(0, 20, 40)), Sample(50, 100, "abc", 0), 60)
    assert not is_still(task(samples=still(0, 20, 40)), None, 60)
    assert is_still(task(samples=still(0, 20, 40)), Sample(61, 100, "abc", 0), 60)


@pytest.mark.parametrize("after", [Sample(70, 101, "abc", 0), Sample(70, 100, "abd", 0), Sample(70, 100, "abc", 10)])
def test_a_word_a_change_of_the_screen_or_work_is_life(after: Sample) -> None:
    before = still(0, 20, 40)
    assert moved(before[-1], after)
    assert not is_still(task(samples=before), after, 60)


def test_what_a_program_needs_to_blink_is_no_work() -> None:
    assert not moved(Sample(0, 1, "a", 0.0), Sample(60, 1, "a", 1.2))
    assert moved(Sample(0, 1, "a", 9.0), Sample(60, 1, "a", 1.0))  # a process of it has ended


def test_stuck_is_nudged_once_and_then_ended() -> None:
    seen = look("running", sample=Sample(61, 100, "abc", 0))
    assert act(task(samples=still(0, 20, 40)), seen) == Act(do="nudge", why=STANDSTILL)
    ended = act(task(samples=still(0, 20, 40), nudges=[STANDSTILL]), seen)
    assert (ended.do, ended.ending) == ("end", words.STUCK)


def test_every_state_of_an_agent_has_an_answer() -> None:
    from mngr.model import STATES

    assert set(supervise._BY_STATE) == set(STATES)
