"""The budget holds, however many agents spend it, and however they do that. `make proof` has fifty at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.swarm.state import Run
from tests.home import Home, Mngr, wait_until
from tests.swarm import Swarm, outcomes

INPUT, OUTPUT = 18_000, 2_000  # tokens of a call, at most


@pytest.fixture
def swarm(home: Home, repo: Path) -> Iterator[Swarm]:
    swarm = Swarm(home, repo)
    yield swarm
    swarm.end()


def spender(seed: int) -> str:
    """At random, at the pace of a fast model, and for longer than anybody can pay."""
    dice = random.Random(seed)
    costs = [f"cost {dice.randrange(INPUT)} {dice.randrange(OUTPUT)}" for _ in range(30)]
    return "".join(f"{cost}\nsay More.\nthink {dice.uniform(1, 2):.2f}\n" for cost in costs) + "finish Enough.\n"


def most_at_once(swarm: Swarm) -> int:
    busy, most = set(), 0
    for event in swarm.events("a"):
        if event["event"] == "launched":
            busy.add(event["task"])
        elif event["event"] == "ended":
            busy.discard(event["task"])
        most = max(most, len(busy))
    return most


def started(run: Run) -> list[str]:
    return [task.id for task in run.tasks.values() if task.attempt]


@pytest.mark.proof
def test_many_agents_that_spend_at_random_keep_to_the_tokens(swarm: Swarm) -> None:
    """They have five calls each, and there are five tasks more than can be paid for."""
    limit, agents = 780_000, 15
    swarm.play(**{f"t{number}": spender(number) for number in range(agents + 5)})
    run = swarm("begin", "a", f"max-tokens={limit}", f"max-agents={agents}", "keep=none")
    assert most_at_once(swarm) == agents
    assert limit * 0.95 < run.spent().tokens <= limit + agents * (INPUT + OUTPUT)
    assert outcomes(run) == dict.fromkeys(run.tasks, "over budget")
    assert len(started(run)) < agents + 5


def test_agents_that_spend_at_random_keep_to_the_money(home: Home, swarm: Swarm) -> None:
    """Nobody knows yet what an agent costs: each begins with a share of what there is."""
    (home.mngr_home / "prices.toml").write_text("[models.replay]\ninput = 1\noutput = 5\n")
    limit, agents, dearest = 0.3, 8, (INPUT * 1 + OUTPUT * 5) / 1e6
    swarm.play(**{f"t{number}": spender(number) for number in range(agents)})
    run = swarm("begin", "a", f"budget={limit}usd", f"max-agents={agents}", "keep=none")
    assert limit * 0.95 < run.spent().usd <= limit + agents * dearest
    assert outcomes(run) == dict.fromkeys(run.tasks, "over budget")


def test_a_budget_that_is_raised_lets_the_others_start(home: Home, mngr: Mngr, swarm: Swarm) -> None:
    waits = f"cost 1000 0\nsay So.\nuntil [ -e {home.root}/go ]; do think 0.05; done\nfinish Done.\n"
    swarm.play(first=waits, second=waits, third=waits)
    process = swarm.start("begin", "a", "max-tokens=50k", "max-agents=3")

    def at_work() -> int:
        try:
            return [event["event"] for event in swarm.events("a")].count("briefed")
        except (FileNotFoundError, ValueError):
            return 0

    wait_until(lambda: at_work() == 1, 30, "the only one that can be paid for")
    mngr.ok("swarm", "set", "a", "max-tokens=101k")
    wait_until(lambda: at_work() == 2, 30, "another one")
    (home.root / "go").touch()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    run = swarm.load("a")
    assert outcomes(run) == dict.fromkeys(run.tasks, "unchanged")  # what the first two left pays for the third
    assert run.spent().tokens == 3000
