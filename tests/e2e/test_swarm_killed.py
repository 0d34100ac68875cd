"""Whoever works on a run is killed, again and again, at moments that nobody chose; what comes out is what would have
come out anyway: no task lost, none done twice, the same costs. `make proof` does it a hundred times."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mngr.swarm.state import Run
from tests.home import Home
from tests.swarm import GOOD, Swarm

KILLS = 13  # in each of the two runs
FINE = 'cost 500 50\nsay "Fine."\nthink 0.1\nbefore pass\nafter pass\nfinish "It was fine."\n'
TASKS = {
    "good": GOOD,
    "slow": 'cost 700 70\nsay "Slowly."\nthink 0.6\n' + GOOD,
    "fine": FINE,
    "wrong": "printf 'no json' | result\n# turn\n" + FINE,
    "needs": 'cost 300 30\nsay "Hm."\nblocked "a key"\n',
    "fails": "cost 200 20\nsay Oh.\nfail 3\n",
}
SETTINGS = ("max-agents=3", "keep=none")


def accounting(run: Run) -> dict[str, Any]:
    return {
        task.id: (task.outcome, task.spend.messages, task.spend.tokens, len(task.home["commits"]), task.cleared)
        for task in run.tasks.values()
    }


@pytest.mark.parametrize("seed", range(2))
def test_killed_and_resumed_it_comes_to_the_same(home: Home, repo: Path, seed: int) -> None:
    swarm = Swarm(home, repo)
    swarm.play(**TASKS)
    words, killed = ["begin", "a", *SETTINGS], 0
    while killed < KILLS:
        process = swarm.start(*words, KILL_SEED=f"{seed}-{killed}")
        out, err = process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, out + err
        killed += 1
        if (home.mngr_home / "runs" / "a" / "events.jsonl").exists():
            words = ["resume", "a"]
    run = swarm("resume", "a")
    assert killed == KILLS, swarm.events("a")
    assert accounting(run) == {
        "good": ("improved", 2, 2200, 1, "destroyed"),
        "slow": ("improved", 3, 2970, 1, "destroyed"),
        "fine": ("unchanged", 1, 550, 0, "destroyed"),
        "wrong": ("unchanged", 1, 550, 0, "destroyed"),
        "needs": ("blocked", 1, 330, 0, "destroyed"),
        "fails": ("failed", 1, 220, 0, "destroyed"),
    }
    ids = [event["id"] for event in swarm.events("a") if event["event"] == "launched"]
    assert len(ids) == len(set(ids)) == len(TASKS)
    made = [json.loads(line) for line in (home.mngr_home / "feed").read_text().splitlines()]
    undone = {event["agent"] for event in made if event["event"] == "undone"}  # a create that was killed takes it back
    workers = {event["agent"] for event in made if event["event"] == "created"} - undone
    assert set(ids) <= workers
    assert not list((home.mngr_home / "agents").iterdir())
    assert os.listdir(home.mngr_home / "names") == [".lock"]
    assert swarm.world.run("git", "branch", "--list", "mngr/*", "--format=%(refname:short)", cwd=repo).split() == [
        "mngr/a-good",
        "mngr/a-slow",
    ]
