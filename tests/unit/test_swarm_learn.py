"""What an agent will probably use, from the logs of earlier runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mngr.swarm import words
from mngr.swarm.learn import Expectation, earlier, expected, of_tasks
from mngr.swarm.state import load


def write_run(
    home: Path,
    tokens: list[int],
    *,
    project: str = "greet",
    type: str = "claude",
    price: float | None = 0.5,
    messages: int = 3,
    outcome: str = words.FIXED,
) -> Path:
    """A run in which agents used so many tokens."""
    number = len(list(home.glob("runs/*"))) + 1
    tasks = [f"t{count}" for count in range(len(tokens))]
    plan = [{"task": task} for task in tasks]
    events: list[dict[str, Any]] = [{"event": "planned", "project": project, "type": type, "tasks": plan}]
    for task, used in zip(tasks, tokens, strict=True):
        cost = {"usd": used * (price or 0), "unpriced": messages if price is None else 0}
        events.append({"event": "spent", "task": task, "messages": messages, "tokens": used, **cost})
        events.append({"event": "settled", "task": task, "outcome": outcome})
    directory = home / "runs" / f"r{number}"
    directory.mkdir(parents=True)
    lines = [json.dumps({"time": number * 1000 + at, **event}) for at, event in enumerate(events)]
    (directory / "events.jsonl").write_text("\n".join(lines) + "\n")
    return directory


def learnt_from(home: Path) -> Expectation:
    return expected(earlier(str(home), "greet", "claude"))


def test_without_earlier_agents_it_is_a_guess(tmp_path: Path) -> None:
    guess = Expectation(usd=None, tokens=50_000, agents=0, spread=(20_000, 50_000))
    assert learnt_from(tmp_path) == guess
    write_run(tmp_path, [100, 200])
    assert learnt_from(tmp_path) == guess


def test_three_agents_in_four_use_no_more(tmp_path: Path) -> None:
    write_run(tmp_path, [100, 200, 300, 400])
    write_run(tmp_path, [500, 600, 700, 800])
    learnt = learnt_from(tmp_path)
    assert learnt == Expectation(usd=350.0, tokens=700, agents=8, spread=(300, 800))


@pytest.mark.parametrize(
    "how", [{"project": "other"}, {"type": "codex"}, {"messages": 0}, {"outcome": words.CANCELLED}]
)
def test_agents_that_say_nothing_about_this_one_do_not_count(tmp_path: Path, how: dict[str, Any]) -> None:
    write_run(tmp_path, [9, 9, 9, 9], **how)
    assert learnt_from(tmp_path).agents == 0


def test_only_the_latest_agents_count(tmp_path: Path) -> None:
    write_run(tmp_path, [10_000] * 150)
    write_run(tmp_path, [5] * 150)
    write_run(tmp_path, [7] * 150)
    learnt = learnt_from(tmp_path)
    assert (learnt.agents, learnt.tokens, learnt.spread) == (200, 7, (7, 7))


def test_agents_of_the_run_itself_come_first_and_count_once(tmp_path: Path) -> None:
    own = write_run(tmp_path, [5] * 150)
    write_run(tmp_path, [7] * 150)
    others = earlier(str(tmp_path), "greet", "claude", besides=own.name)
    assert [spend.tokens for spend in others] == [7] * 150
    spends = [*of_tasks(load(str(own)).tasks.values()), *others]
    learnt = expected(spends)
    assert (len(spends), learnt.agents, learnt.spread) == (300, 200, (5, 7))


def test_costs_of_which_a_part_has_no_price_are_not_learnt(tmp_path: Path) -> None:
    write_run(tmp_path, [100, 200, 300], price=None)
    assert learnt_from(tmp_path).usd is None


@pytest.mark.parametrize(
    "damage", ["", "no JSON\n", "[1]\n", '{"event": "planned", "project": "greet", "type": "claude", "tasks": 5}\n']
)
def test_a_damaged_log_teaches_nothing(tmp_path: Path, damage: str) -> None:
    (write_run(tmp_path, [9, 9, 9]) / "events.jsonl").write_text(damage)
    write_run(tmp_path, [100, 200, 300])
    assert learnt_from(tmp_path).agents == 3
