"""The budget: what is reserved, extended and stopped, and that no agents can break it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.swarm import budget, words
from mngr.swarm.budget import EXTEND, STOP, Decision
from mngr.swarm.learn import Expectation
from mngr.swarm.state import Run, Task


def expecting(usd: float | None = 1.0, tokens: int = 1000) -> Expectation:
    return Expectation(usd=usd, tokens=tokens, agents=9, spread=(tokens, tokens))


class Swarm:
    """A run whose log is written by hand."""

    def __init__(self, tasks: int, **limits: float) -> None:
        self.run = Run("/nowhere/r1")
        plan = [{"task": f"t{number}"} for number in range(tasks)]
        named = {key.replace("_", "-"): value for key, value in limits.items()}
        self.run.apply({"event": "planned", "tasks": plan, "settings": named})

    def task(self, number: int) -> Task:
        return self.run.tasks[f"t{number}"]

    def log(self, event: str, number: int, **members: Any) -> None:
        self.run.apply({"event": event, "task": f"t{number}", **members})

    def launch(self, number: int, expected: Expectation | None = None) -> bool:
        reserve = budget.reserve(self.run, self.task(number), expected or expecting())
        if reserve is None:
            return False
        self.log("intended", number, name="x", host="local", usd=reserve.usd, tokens=reserve.tokens)
        self.log("launched", number, id=f"a{number}", host="local")
        return True

    def spend(self, number: int, usd: float = 0.0, tokens: int = 0, unpriced: int = 0) -> None:
        """So much more."""
        now = self.task(number).spend
        self.log(
            "spent",
            number,
            messages=now.messages + 1,
            usd=now.usd + usd,
            tokens=now.tokens + tokens,
            unpriced=now.unpriced + unpriced,
        )

    def review(self, expected: Expectation | None = None) -> list[Decision]:
        """Decided, and done."""
        decisions = budget.review(self.run, expected or expecting())
        for decision in decisions:
            number = int(decision.task[1:])
            if decision.act == EXTEND:
                self.log("extended", number, usd=decision.usd, tokens=decision.tokens)
            else:
                self.settle(number, words.OVER_BUDGET)
        return decisions

    def settle(self, number: int, outcome: str = words.FIXED) -> None:
        self.log("ended", number)
        self.log("settled", number, outcome=outcome)

    def promised(self, unit: str) -> float:
        held = [max(getattr(task.spend, unit), getattr(task.reserve, unit)) for task in self.run.tasks.values()]
        return float(sum(held))


def test_without_limits_nothing_is_refused_or_reviewed() -> None:
    swarm = Swarm(2)
    assert swarm.launch(0, expecting(usd=None))
    swarm.spend(0, usd=1e6, tokens=10**9)
    assert budget.free(swarm.run) == {}
    assert swarm.review() == []
    assert not budget.is_used_up(swarm.run, expecting())


def test_what_is_expected_is_reserved_before_and_settled_after() -> None:
    swarm = Swarm(3, budget=3.0, max_tokens=9000)
    assert swarm.launch(0)
    assert budget.free(swarm.run) == {"usd": 2.0, "tokens": 8000}
    swarm.spend(0, usd=0.25, tokens=100)
    assert budget.free(swarm.run) == {"usd": 2.0, "tokens": 8000}
    swarm.settle(0)
    assert budget.free(swarm.run) == {"usd": 2.75, "tokens": 8900}


@pytest.mark.parametrize("limits", [{"budget": 1.5}, {"max_tokens": 1500}, {"budget": 99.0, "max_tokens": 1500}])
def test_what_cannot_be_reserved_is_not_started_until_others_leave_it(limits: dict[str, float]) -> None:
    swarm = Swarm(3, **limits)
    assert swarm.launch(0)
    assert not swarm.launch(1)
    assert not budget.is_used_up(swarm.run, expecting())
    swarm.spend(0, usd=0.25, tokens=250)
    swarm.settle(0)
    assert swarm.launch(1)
    swarm.spend(1, usd=0.5, tokens=500)
    assert budget.is_used_up(swarm.run, expecting())


def test_nothing_is_started_without_any_budget() -> None:
    swarm = Swarm(1, budget=0.0)
    assert not swarm.launch(0, expecting(usd=None))
    assert budget.is_used_up(swarm.run, expecting(usd=None))


def test_a_reserve_is_extended_by_half_then_by_what_is_left_and_then_the_agent_is_stopped() -> None:
    swarm = Swarm(1, budget=1.75)
    swarm.launch(0)
    swarm.spend(0, usd=0.75)
    assert swarm.review() == []
    swarm.spend(0, usd=0.25)
    assert swarm.review() == [Decision(task="t0", act=EXTEND, usd=1.5, tokens=1000)]
    swarm.spend(0, usd=0.5)
    assert swarm.review() == [Decision(task="t0", act=EXTEND, usd=1.75, tokens=1000)]
    swarm.spend(0, usd=0.5)
    assert swarm.review() == [Decision(task="t0", act=STOP)]
    assert budget.free(swarm.run) == {"usd": -0.25}


def test_a_reserve_that_is_not_used_up_stays_to_the_last_digit() -> None:
    swarm = Swarm(1, budget=5.0)
    swarm.launch(0, expecting(usd=0.7))
    for _ in range(6):
        swarm.spend(0, usd=0.1)
        assert swarm.review() == []


def test_a_reserve_is_not_extended_by_what_comes_from_adding_up_fractions() -> None:
    swarm = Swarm(1, budget=1.0 + 1e-9)
    swarm.launch(0)
    swarm.spend(0, usd=1.0)
    assert swarm.review() == [Decision(task="t0", act=STOP)]


def test_free_budget_goes_to_one_agent_only_once() -> None:
    swarm = Swarm(2, budget=2.5)
    swarm.launch(0)
    swarm.launch(1)
    swarm.spend(0, usd=1.0)
    swarm.spend(1, usd=1.0)
    assert [(decision.act, decision.usd) for decision in swarm.review()] == [(EXTEND, 1.5), (STOP, 0.0)]


def test_each_limit_stops_on_its_own() -> None:
    swarm = Swarm(1, budget=100.0, max_tokens=1000)
    swarm.launch(0)
    swarm.spend(0, usd=0.01, tokens=1000)
    assert swarm.review() == [Decision(task="t0", act=STOP)]


def test_an_agent_whose_result_may_be_sent_back_keeps_its_reserve() -> None:
    swarm = Swarm(1, budget=2.0)
    swarm.launch(0)
    swarm.log("ended", 0)
    swarm.log("home", 0)
    assert budget.free(swarm.run) == {"usd": 1.0}
    swarm.log("checking", 0, name="x-check")
    assert budget.free(swarm.run) == {"usd": 2.0}


def test_a_second_attempt_is_reserved_on_top_of_what_the_first_one_used() -> None:
    swarm = Swarm(1, budget=2.0)
    swarm.launch(0)
    swarm.spend(0, usd=0.5)
    swarm.log("relaunch", 0)
    assert budget.free(swarm.run) == {"usd": 1.5}
    assert swarm.launch(0)
    assert budget.free(swarm.run) == {"usd": 0.5}
    assert swarm.review() == []


def test_where_nobody_knows_what_agents_cost_the_waiting_tasks_share_evenly() -> None:
    swarm = Swarm(4, budget=2.0)
    unknown = expecting(usd=None)
    assert swarm.launch(0, unknown)
    assert swarm.task(0).reserve.usd == 0.5
    swarm.spend(0, usd=0.5)
    assert swarm.review(unknown) == [Decision(task="t0", act=EXTEND, usd=1.25, tokens=1000)]


def test_a_budget_that_is_set_while_agents_work_gives_each_a_reserve() -> None:
    swarm = Swarm(2)
    unknown = expecting(usd=None)
    swarm.launch(0, unknown)
    swarm.launch(1, unknown)
    swarm.run.apply({"event": "set", "key": "budget", "value": 4.0})
    assert [decision.act for decision in swarm.review(unknown)] == [EXTEND, EXTEND]
    assert 0 < swarm.promised("usd") <= 4.0


def test_when_the_budget_is_lowered_agents_give_back_what_they_have_not_used() -> None:
    swarm = Swarm(2, budget=10.0)
    swarm.launch(0)
    swarm.launch(1)
    swarm.spend(0, usd=0.5)
    swarm.run.apply({"event": "set", "key": "budget", "value": 1.25})
    assert [(decision.act, decision.usd) for decision in swarm.review()] == [(EXTEND, 0.75), (EXTEND, 0.5)]
    swarm.run.apply({"event": "set", "key": "budget", "value": 0.25})
    assert [decision.act for decision in swarm.review()] == [STOP, STOP]


def test_messages_without_a_price_are_told() -> None:
    swarm = Swarm(2, budget=1.0)
    assert budget.warning(swarm.run) == ""
    swarm.spend(0, tokens=5, unpriced=1)
    assert budget.warning(swarm.run) == "1 message has no price: the budget does not count it, max-tokens does"
    swarm.spend(1, tokens=5, unpriced=2)
    assert budget.warning(swarm.run) == "3 messages have no price: the budget does not count them, max-tokens does"
    swarm.run.apply({"event": "set", "key": "budget", "value": None})
    assert budget.warning(swarm.run) == ""


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    unit=st.sampled_from(["usd", "tokens"]),
    slots=st.sampled_from([1, 7, 50]),
    expected=st.sampled_from([1, 40, 700]),
    known=st.booleans(),
    limit=st.sampled_from([20, 900, 5_000, 30_000]),
    dearest=st.sampled_from([1, 60, 900]),
)
def test_whatever_agents_spend_the_budget_is_exceeded_by_at_most_one_call_of_each_agent_at_work(
    seed: int, unit: str, slots: int, expected: int, known: bool, limit: int, dearest: int
) -> None:
    """Agents call one by one or all at once, for any amount up to the dearest, and end at any time. In cents, so that
    sums of fractions are among it."""
    luck = random.Random(seed)
    scale = 0.01 if unit == "usd" else 1
    what = expecting(usd=expected * scale if known else None, tokens=expected)
    most = limit * scale
    swarm = Swarm(80, **{"budget" if unit == "usd" else "max_tokens": most})
    waiting = list(range(80))
    for _ in range(150):
        working = [int(task.id[1:]) for task in swarm.run.in_phase(words.RUNNING)]
        while waiting and len(working) < slots and swarm.launch(waiting[0], what):
            working.append(waiting.pop(0))
        if not working:
            break
        assert swarm.promised(unit) <= most + 1e-6
        for number in luck.sample(working, luck.randint(1, len(working))):
            amount: Any = luck.randint(1, dearest) * scale
            swarm.spend(number, **{unit: amount})
        assert getattr(swarm.run.spent(), unit) <= most + len(working) * dearest * scale + 1e-6
        swarm.review(what)
        if luck.random() < 0.3:
            swarm.settle(luck.choice(working))
