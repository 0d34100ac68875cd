"""How many agents may be at work: what an account takes, how runs share it, and whether a host has room."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mngr.fleet.machine import Machine
from mngr.swarm import settings, slots
from mngr.swarm.account import Account, Share, fair
from mngr.swarm.log import Writer
from mngr.swarm.room import room
from mngr.swarm.slots import COOLDOWN, LONGEST, MOST, ROUND, START, Controller

NOW = 1_700_000_000.0


def agents(count: int) -> list[str]:
    return [f"a{number}" for number in range(count)]


def busy_round(controller: Controller, now: float) -> Controller:
    """All slots in use, and everybody asks."""
    return controller.observed(now, controller.limit, agents(controller.limit))


def begun(limit: int = START, **more: object) -> Controller:
    return Controller(limit=limit, began=NOW, seen=NOW, **more)  # type: ignore[arg-type]


def test_it_doubles_until_the_first_rate_limit_and_then_grows_by_one() -> None:
    controller, now = begun(), NOW
    limits = []
    for _ in range(3):
        now += ROUND
        controller = busy_round(controller, now)
        limits.append(controller.limit)
    assert limits == [8, 16, 32]
    assert controller.why == "16 agents at work met no limit in 30 s"
    controller = controller.limited(now)
    assert (controller.limit, controller.why) == (16, "rate limit")
    now += COOLDOWN
    controller = busy_round(controller.observed(now, 16), now + ROUND)
    assert controller.limit == 17


@pytest.mark.parametrize(
    ("seconds", "using", "asked", "grows"),
    [
        (ROUND, 4, 4, True),
        (ROUND - 1, 4, 4, False),  # too short
        (ROUND, 3, 4, False),  # a slot was free
        (ROUND, 4, 3, False),  # one agent has not asked yet
    ],
)
def test_a_round_is_long_enough_saturated_and_has_asked(seconds: float, using: int, asked: int, grows: bool) -> None:
    assert (begun().observed(NOW + seconds, using, agents(asked)).limit > START) is grows


def test_one_agent_that_asks_often_is_no_evidence() -> None:
    controller = begun()
    for second in range(100):
        controller = controller.observed(NOW + second, START, ["a1"])
    assert controller.limit == START


def test_all_slots_need_to_be_in_use_only_for_a_moment() -> None:
    controller = begun().observed(NOW + 1, START).observed(NOW + ROUND, START - 1, agents(START))
    assert controller.limit == 2 * START


def test_agents_that_meet_one_limit_one_by_one_cut_once() -> None:
    controller = begun(limit=40)
    for second in range(int(COOLDOWN)):
        controller = controller.limited(NOW + second)
    assert controller.limit == 20
    assert controller.limited(NOW + COOLDOWN).limit == 10


def test_it_is_never_less_than_one() -> None:
    assert begun(limit=1).limited(NOW).limit == 1


def test_the_cooldown_lasts_until_the_reset_and_at_most_a_quarter_of_an_hour() -> None:
    controller = begun(limit=40).limited(NOW, NOW + 300)
    assert controller.why == "rate limit, over in 300 s"
    assert controller.limited(NOW + 299).limit == 20
    assert controller.limited(NOW + 300).limit == 10
    assert begun(limit=40).limited(NOW, NOW + 5 * 3600).limited(NOW + LONGEST).limit == 10


def test_it_does_not_grow_during_the_cooldown() -> None:
    controller = begun(limit=8).limited(NOW)
    assert busy_round(controller, NOW + COOLDOWN - 1).limit == 4


def test_nobody_is_started_before_a_limit_is_known_to_be_over() -> None:
    controller = begun(limit=8).limited(NOW, NOW + 20)
    assert controller.slots(NOW + 19) == 0
    assert controller.slots(NOW + 20) == 4


def test_other_api_errors_begin_the_round_anew_and_cut_nothing() -> None:
    controller = begun().observed(NOW + 20, START, agents(START)).failed(NOW + 25)
    assert controller.limit == START
    assert busy_round(controller, NOW + ROUND).limit == START
    assert busy_round(controller, NOW + 25 + ROUND).limit == 2 * START


def test_a_clock_that_steps_back_prolongs_nothing_for_long() -> None:
    controller = begun(limit=8).limited(NOW).observed(NOW - 86400, 4)
    assert controller.limit == 4
    assert controller.limited(NOW - 86400 + LONGEST).limit == 2
    assert busy_round(begun().observed(NOW - 86400, 4), NOW - 86400 + ROUND).limit == 2 * START


@pytest.mark.parametrize(("edited", "taken"), [(-3, 1), (10**9, MOST)])
def test_a_limit_that_cannot_be_is_taken_for_the_nearest_that_can(edited: int, taken: int) -> None:
    assert begun(limit=edited).observed(NOW, 0).limit == taken


def test_what_nobody_has_looked_at_for_long_is_forgotten() -> None:
    controller = begun(limit=1, doubles=False).observed(NOW + slots.FORGOTTEN + 1, 0)
    assert (controller.limit, controller.doubles) == (START, True)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["observed", "limited", "failed"]),
            st.floats(-4000, 4000, allow_nan=False),
            st.integers(0, 300),
        ),
        max_size=60,
    )
)
@example([("limited", 0.0, 0), ("observed", 1700.0, 0), ("observed", -1690.0, 0), ("limited", 0.0, 0)])
@example([("limited", 0.0, 0), ("observed", 30.0, 0), ("limited", 29.0, 0), ("limited", 1.0, 0)])
def test_whatever_happens_it_stays_within_its_bounds_and_cuts_once_per_cooldown(
    happened: list[tuple[str, float, int]],
) -> None:
    controller, now, cut_at = begun(), NOW, None
    for what, seconds, number in happened:
        now += seconds
        before = controller
        if what == "observed":
            controller = controller.observed(now, number, agents(number))
        elif what == "limited":
            controller = controller.limited(now, now + number * 10 if number % 2 else None)
        else:
            controller = controller.failed(now)
        assert 1 <= controller.limit <= MOST
        assert Controller.from_dict(json.loads(json.dumps(controller.to_dict()))) == controller
        if now - before.seen > slots.FORGOTTEN or now < before.seen - 1:
            cut_at = None  # it knows nothing any more, or the clock was set back, which ends the cooldown
        if controller.limit < before.limit and now - before.seen <= slots.FORGOTTEN:
            assert what == "limited"
            assert cut_at is None or now - cut_at >= COOLDOWN
            cut_at = now


class Runs:
    """Runs that use one account; they are at work until the test is over, or `end` is called."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.account = Account(str(home), "claude")
        self.file = home / "accounts" / "claude.json"
        self.locks: dict[str, Writer] = {}

    def begin(self, run: str) -> None:
        directory = self.home / "runs" / run
        directory.mkdir(parents=True)
        self.locks[run] = Writer(str(directory))
        self.locks[run].__enter__()

    def end(self, run: str) -> None:
        self.locks.pop(run).__exit__(None, None, None)

    def share(self, run: str, using: int, wanted: int, now: float = NOW, **seen: object) -> Share:
        return self.account.share(run, now, using=using, wanted=wanted, **seen)  # type: ignore[arg-type]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    for run in list(runs.locks):
        runs.end(run)


def test_a_run_alone_has_all_slots(runs: Runs) -> None:
    runs.begin("r1")
    assert runs.share("r1", 0, 10).free == START
    assert runs.share("r1", 3, 10).free == 1


def test_two_runs_share_what_one_run_learns(runs: Runs) -> None:
    runs.begin("r1")
    runs.begin("r2")
    runs.share("r1", 4, 10)
    assert runs.share("r2", 0, 10).free == 0  # nothing is free, though a half would be its share
    assert runs.share("r1", 3, 10).free == 0
    assert runs.share("r2", 0, 10).free == 1
    assert runs.share("r2", 0, 10, limits=[None]).limit == 2
    share = runs.share("r1", 3, 10)
    assert (share.limit, share.why) == (2, "rate limit")


def test_what_a_run_does_not_want_is_the_others(runs: Runs) -> None:
    runs.begin("r1")
    runs.begin("r2")
    runs.share("r1", 1, 0)
    assert runs.share("r2", 0, 10).free == 3


def test_a_run_that_died_holds_nothing(runs: Runs) -> None:
    runs.begin("r1")
    runs.begin("r2")
    runs.share("r1", 4, 10)
    runs.end("r1")
    assert runs.share("r2", 0, 10).free == START


def test_what_agents_do_in_all_runs_counts_for_the_growth(runs: Runs) -> None:
    runs.begin("r1")
    runs.begin("r2")
    runs.share("r1", 2, 10)
    runs.share("r2", 2, 10, NOW + 1, asked=["b1", "b2"])
    assert runs.share("r1", 2, 10, NOW + ROUND, asked=["a1", "a2"]).limit == 2 * START


def test_api_errors_of_a_run_pause_the_growth(runs: Runs) -> None:
    runs.begin("r1")
    runs.share("r1", 4, 10)
    assert runs.share("r1", 4, 10, NOW + ROUND, asked=agents(4), errors=1).limit == START


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "no JSON",
        "[" * 100_000,
        "\udcff",
        "[]",
        '{"controller": {}}',
        '{"controller": {"limit": "many"}, "runs": {}}',
        '{"controller": {"limit": 50}, "runs": {"r1": 5}}',
        '{"controller": {"limit": 50}, "runs": []}',
    ],
)
def test_a_damaged_file_is_replaced(runs: Runs, damage: str) -> None:
    runs.begin("r1")
    runs.share("r1", 4, 10, limits=[None])
    runs.file.write_text(damage, encoding="utf-8", errors="surrogateescape")
    assert runs.share("r1", 0, 10).free == START
    assert json.loads(runs.file.read_text())["controller"]["limit"] == START


@given(st.integers(0, 200), st.dictionaries(st.sampled_from(["r1", "r2", "r3", "r4"]), st.integers(0, 300), min_size=1))
def test_slots_are_divided_fairly_and_none_is_wasted(count: int, demands: dict[str, int]) -> None:
    given = fair(count, demands)
    assert sum(given.values()) == min(count, sum(demands.values()))
    assert all(0 <= given[run] <= demands[run] for run in demands)
    least = min((given[run] for run in demands if given[run] < demands[run]), default=max(given.values()))
    assert max(given.values()) <= least + 1


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (Machine(cores=2, load=8.0, memory_total=1000, memory_free=100), ""),
        (Machine(cores=2, load=8.2, memory_total=1000, memory_free=100), "its load is 4.1 for each core (max-load=4)"),
        (
            Machine(cores=2, load=0.0, memory_total=1000, memory_free=60),
            "only 6% of its memory is free (min-memory=10)",
        ),
        (Machine(cores=None, load=900.0, memory_total=None, memory_free=0), ""),
        (Machine(cores=2, load=None, memory_total=1000, memory_free=None), ""),
    ],
)
def test_a_host_refuses_by_what_it_tells(machine: Machine, why: str) -> None:
    assert room(machine, settings.defaults()) == why
