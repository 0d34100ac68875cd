"""`make proof`, of the swarm. Whoever works on a run is killed a hundred times, at moments that nobody chose, and what
comes out is what would have come out anyway: no task lost, none done twice, the same costs. Then fifty agents at once
spend at random, and together never more than the budget and one call each.

Everything random comes from one number, which is printed: PROOF_SEED=N rolls the same dice again. The logs of runs that
went wrong are kept in .test_output/proof."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random, randrange
from typing import Any, NamedTuple

from world import PYTHON, CommandFailed, World

from mngr.swarm import words
from mngr.swarm.state import load

_TASKS = str(Path(__file__).with_name("tasks.py"))
_LOGS = Path(__file__).parents[1] / ".test_output" / "proof"
_PATIENCE = 900  # seconds for one orchestrator
_TASKS_OF_A_RUN, _KILLS_OF_A_RUN = 60, 25
_MOST_EVENTS, _MOST_SECONDS = 30, 0.5  # that one lives
_GOOD = """\
cost 1000 100
say "I begin."
write "done/$MNGR_AGENT_NAME" </dev/null
run ls done
commit docs "Done"
finish "It is done."
"""
_FINE = 'cost 500 50\nsay "Fine."\nthink 0.1\nfinish "It was fine."\n'


class Kind(NamedTuple):
    """What agents play, and what must come of each."""

    trajectory: str
    outcome: str
    messages: int
    tokens: int
    commits: int = 0


_KINDS = {
    "good": Kind(_GOOD, "improved", 2, 2200, 1),
    "slow": Kind('cost 700 70\nsay "Slowly."\nthink 0.8\n' + _GOOD, "improved", 3, 2970, 1),
    "fine": Kind(_FINE, "unchanged", 1, 550),
    "wrong": Kind("printf 'no json' | result\n# turn\n" + _FINE, "unchanged", 1, 550),
    "fails": Kind("cost 200 20\nsay Oh.\nfail 3\n", "failed", 1, 220),
}
_PRICES = "[models.replay]\ninput = 100\noutput = 100\ncache_read = 0\ncache_write_5m = 0\ncache_write_1h = 0\n"
_DEAREST = 10_000  # tokens of a call, at 100 USD for a million of them
_USD = 1e-4


class Proof:
    def __init__(self, world: World, chance: Random) -> None:
        self.world, self.chance = world, chance
        self._began = time.monotonic()

    # Killed

    def killed(self, kills: int) -> list[str]:
        self._lay({name: kind.trajectory for name, kind in _KINDS.items()})
        wrong, done, number = [], 0, 0
        while done < kills:
            number += 1
            done += self._kill(f"k{number}", min(kills - done, _KILLS_OF_A_RUN))
            wrong += self._kept(f"k{number}", self._account(f"k{number}"))
            self._say(f"{done} of {kills} orchestrators are killed, {number * _TASKS_OF_A_RUN} tasks are accounted for")
        return wrong

    def _kill(self, run: str, most: int) -> int:
        """Works on a run to its end, through so many deaths at most. How many there were."""
        begin = ["begin", run, str(_TASKS_OF_A_RUN), self._trajectories, "max-agents=8", "keep=none"]
        kills = 0
        while kills < most:
            is_begun = (self._directory(run) / "events.jsonl").exists()
            span = f"{self.chance.randrange(1, _MOST_EVENTS)} {self.chance.uniform(0, _MOST_SECONDS):.3f}"
            if self._work(["resume", run] if is_begun else begin, span) == 0:
                return kills
            kills += 1
        self._work(["resume", run])
        return kills

    def _account(self, name: str) -> list[str]:
        run = load(str(self._directory(name)))
        wrong = []
        for task in run.tasks.values():
            kind = _KINDS[task.id.rpartition("-")[2]]
            spend, commits = task.spend, task.home.get("commits", [])
            came = (task.outcome, spend.messages, spend.tokens, len(commits), task.cleared)
            if came != (*kind[1:], "destroyed"):
                wrong.append(f"{task.name} came to {came} ({task.why}), not {(*kind[1:], 'destroyed')}")
        launched = Counter(event["task"] for event in self._events(name) if event["event"] == "launched")
        wrong += [f"{name}-{task} was launched {times} times" for task, times in launched.items() if times > 1]
        branches = self._output("git", "branch", "--list", f"mngr/{name}-*", "--format=%(refname:short)").split()
        with_work = [f"mngr/{task.name}" for task in run.tasks.values() if task.home.get("commits")]
        if sorted(branches) != sorted(with_work):
            wrong.append(f"{name} left branches {set(branches) ^ set(with_work)}")
        if left := json.loads(self._output(*self.world.mngr("list", "--json"))):
            wrong.append(f"{name} left agents: {', '.join(agent['name'] for agent in left)}")
        return wrong

    # Spending

    def spends(self, agents: int) -> list[str]:
        """Twice as many tasks as slots, and half the money that they would use."""
        calls = [
            [self.chance.randrange(_DEAREST // 10, _DEAREST) for _ in range(self.chance.randrange(2, 16))]
            for _ in range(2 * agents)
        ]
        self._lay({f"n{number}": self._spender(tokens) for number, tokens in enumerate(calls)})
        (self.world.root / "m").mkdir(exist_ok=True)
        (self.world.root / "m" / "prices.toml").write_text(_PRICES)
        wanted, dearest = sum(map(sum, calls)) * _USD, max(map(max, calls)) * _USD
        budget = round(wanted / 2, 2)
        settings = [f"max-agents={agents}", f"budget={budget}", "wind-down=5", "keep=all"]
        self._say(f"{agents} agents at a time, which want {wanted:.2f} USD, have {budget:.2f}")
        self._work(["begin", "m", str(len(calls)), self._trajectories, *settings])
        run = load(str(self._directory("m")))
        spent, most = run.spent().usd, self._most_at_work("m")
        self._say(f"they have spent {spent:.2f}; the dearest call was {dearest:.2f}, and {most} were at work at once")
        wrong = [] if spent <= budget + most * dearest else [f"{spent:.2f} USD were spent, of {budget:.2f}"]
        if abs((logged := self._logged() * _USD) - spent) > 0.01:
            wrong.append(f"by their logs they have spent {logged:.2f} USD, and not {spent:.2f}")
        if words.OVER_BUDGET not in run.counts() or spent < budget / 2 or most < agents:
            wrong.append(f"the budget was not tried: {run.counts()}, {most} at once")
        return self._kept("m", wrong)

    def _spender(self, calls: list[int]) -> str:
        """What a call costs is in the log when its answer comes."""
        lines = [f"think {self.chance.uniform(1, 4):.1f}\ncost {tokens} 0\nsay 'On with it.'" for tokens in calls]
        return "\n".join([*lines, "finish 'It is done.'\n"])

    def _most_at_work(self, run: str) -> int:
        busy, most = set(), 0
        for event in self._events(run):
            if event["event"] == "launched":
                busy.add(event["task"])
            elif event["event"] in ("ended", "relaunch"):
                busy.discard(event["task"])
            most = max(most, len(busy))
        return most

    def _logged(self) -> int:
        """Tokens, from the session logs of all agents that are still there."""
        logs = (self.world.root / "m" / "agents").glob("*/replay.jsonl")
        records = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
        return sum(record["usage"]["input"] for record in records if "usage" in record)

    # What both use

    @property
    def _trajectories(self) -> str:
        return str(self.world.root / "trajectories")

    def _lay(self, trajectories: dict[str, str]) -> None:
        place = Path(self._trajectories)
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for name, text in trajectories.items():
            (place / f"{name}.sh").write_text(text)

    def _kept(self, run: str, wrong: list[str]) -> list[str]:
        if wrong:
            _LOGS.mkdir(parents=True, exist_ok=True)
            shutil.copy(self._directory(run) / "events.jsonl", _LOGS / f"{run}.jsonl")
        return wrong

    def _directory(self, run: str) -> Path:
        return self.world.root / "m" / "runs" / run

    def _events(self, run: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self._directory(run) / "events.jsonl").read_text().splitlines()]

    def _work(self, argv: list[str], kill_after: str | None = None) -> int:
        """An orchestrator, to its end: 0, or that it was killed, if it was to be."""
        env = self.world.env if kill_after is None else {**self.world.env, "KILL_AFTER": kill_after}
        done = subprocess.run(
            [PYTHON, _TASKS, *argv], cwd=self.world.repo, env=env, capture_output=True, text=True, timeout=_PATIENCE
        )
        if done.returncode not in ((0,) if kill_after is None else (0, -signal.SIGKILL)):
            raise CommandFailed(f"{' '.join(argv)} exited {done.returncode}: {done.stdout}{done.stderr}")
        return done.returncode

    def _output(self, *argv: str) -> str:
        return subprocess.run(
            argv, cwd=self.world.repo, env=self.world.env, check=True, capture_output=True, text=True
        ).stdout

    def _say(self, what: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"{minutes}:{seconds:02}  {what}, load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/proof_swarm.py", description="Prove that a swarm loses nothing.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--agents", type=int, default=50)
    args = parser.parse_args()
    seed = int(os.environ.get("PROOF_SEED") or randrange(1_000_000))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, with everything cleared away
    print(f"{args.kills} kills, {args.agents} spending agents, PROOF_SEED={seed}")
    try:
        with World() as world:
            proof = Proof(world, Random(seed))
            wrong = [*proof.killed(args.kills), *proof.spends(args.agents)]
    except (CommandFailed, subprocess.TimeoutExpired) as failure:
        wrong = [str(failure)]
    except KeyboardInterrupt:
        return 130
    for line in wrong:
        print(f"WRONG  {line}")
    if not wrong:
        print("Every task is accounted for once, and the budget held.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
