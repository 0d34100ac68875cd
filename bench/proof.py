"""`make proof`: twenty real agents and two hundred messages, judged by what the scripted model server saw. Each message
must arrive once, each change of an agent's state be shown within a second, and nobody be in a wrong state in the end.

Everything random comes from one number, which is printed: PROOF_SEED=N sends the same messages again. What the machine
does meanwhile cannot be repeated, so the table has it too: the load, and what a bare shell took all the while."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from random import Random, randrange

from observers import TimedLedger, Watcher, Yardstick
from programs import install
from traffic import Sent, plan, send
from verdict import ARRIVED, LIMIT, Delays, Line, arrivals, delays, turns
from world import CommandFailed, World

from mngr.agents import session_id
from mngr.dev.exchange import Json
from mngr.dev.model_server import ModelServer

_QUIET = 3.0  # seconds without a request after which nothing is under way any more
_PATIENCE = 60  # seconds for the last turns
_ROW = "{:<44} {:>6} {:>9} {:>9} {:>9}"


class Proof:
    def __init__(self, world: World, ledger: TimedLedger, agents: int) -> None:
        self.world, self.ledger = world, ledger
        self.names = [f"p-{number}" for number in range(1, agents + 1)]
        self.sent: list[Sent] = []
        self.delays: list[Delays] = []
        self._agents: dict[str, str] = {}  # conversation to name
        self._began = time.monotonic()

    def run(self, chance: Random, messages: int) -> list[str]:
        """What is wrong, when all is done."""
        with Yardstick() as yardstick:
            self._create()
            with Watcher(self.world) as watcher:
                for one in send(self.world, plan(chance, self.names, messages)):
                    self.sent.append(one)
                    if len(self.sent) % 20 == 0:
                        self._say(f"{len(self.sent)} of {messages} messages are sent")
                self._settle()
                wrong = self._end()
        wrong += self._judge(watcher.lines)
        self._print(yardstick)
        return wrong

    def _create(self) -> None:
        count = len(self.names)
        self._say(f"creating {count} agents")
        self.world.run(
            self.world.mngr("create", "p", "claude", "--count", str(count), "--", "--dangerously-skip-permissions"),
            self.world.mngr("wait", "--all", "--for", "waiting", "--timeout", "180"),
        )
        self._agents = {session_id(agent["id"]): agent["name"] for agent in self._list()}
        self._say("all are ready")

    def _settle(self) -> None:
        """Until the server has heard everything, and nothing for a while. What never comes is for the judge."""
        self._say("waiting for the last turns")
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            last = max((entry["end"] for entry in self.ledger.entries()), default=0)
            if len(self._heard()) >= len(self.sent) and not self.ledger.open() and time.time() - last > _QUIET:
                return
            time.sleep(0.1)

    def _end(self) -> list[str]:
        wrong = [
            f"{agent['name']} is {agent['state']} ({agent['reason']}) in the end"
            for agent in self._list()
            if (agent["state"], agent["reason"]) != ("waiting", "turn over")
        ]
        if count := self.ledger.open():
            wrong.append(f"the model server has {count} open requests in the end")
        return wrong

    def _judge(self, lines: dict[str, list[Line]]) -> list[str]:
        by_name: defaultdict[str, list[Json]] = defaultdict(list)
        for name, entry in self._requests():
            by_name[name].append(entry)
        wrong = arrivals(self.sent, self._heard())
        for name in self.names:
            found, more = delays(name, lines[name], turns(by_name[name]))
            self.delays.append(found)
            wrong += more
        return wrong

    def _list(self) -> list[Json]:
        argv = self.world.mngr("list", "--all", "--json")
        told = subprocess.run(argv, cwd=self.world.repo, env=self.world.env, check=True, capture_output=True, text=True)
        found: list[Json] = json.loads(told.stdout)
        return found

    def _heard(self) -> list[tuple[str, str]]:
        """Who was told what."""
        return [(name, text) for name, entry in self._requests() for text in entry["new_user_texts"]]

    def _requests(self) -> list[tuple[str, Json]]:
        """Those of turns, without those in which the program asks for a title, and whose they are."""
        entries = (entry for entry in self.ledger.entries() if entry["tools"])
        return [(self._agents.get(entry["conversation"], "somebody else"), entry) for entry in entries]

    def _say(self, what: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"{minutes}:{seconds:02}  {what}, load {os.getloadavg()[0]:.1f}", flush=True)

    def _print(self, yardstick: Yardstick) -> None:
        print()
        print(_ROW.format("SECONDS", "COUNT", "MEDIAN", "P99", "MAX"))
        for outcome in ARRIVED:
            _print_row(f"message, until {outcome}", [one.seconds for one in self.sent if one.outcome == outcome])
        _print_row("turn begins, until shown as running", [late for found in self.delays for late in found.begins])
        _print_row("turn ends, until shown as waiting", [late for found in self.delays for late in found.ends])
        _print_row("a bare shell meanwhile", yardstick.seconds)
        went_on = sum(found.went_on for found in self.delays)
        print("\nA turn that is shown before its first request came is negative.")
        print(f"{went_on} turns followed another at once, with no change to show.")
        before, cores = yardstick.loads[0], os.cpu_count() or 1
        print(f"{cores} cores, load {before:.1f} before, {max(yardstick.loads):.1f} at most.")
        if before > cores:
            print("The machine had more to do than it could before this began: a delay may be its own.")


def _print_row(what: str, seconds: list[float]) -> None:
    order = sorted(seconds)
    if order:
        points = (order[len(order) // 2], order[math.ceil(0.99 * len(order)) - 1], order[-1])
        print(_ROW.format(what, len(order), *(f"{point:.3f}" for point in points)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/proof.py", description="Prove that messages arrive and states hold.")
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--messages", type=int, default=200)
    args = parser.parse_args()
    seed = int(os.environ.get("PROOF_SEED") or randrange(1_000_000))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C, with everything cleared away
    print(f"{args.agents} agents, {args.messages} messages, PROOF_SEED={seed}")
    server, ledger = ModelServer(), TimedLedger()
    server.ledger = ledger
    try:
        with server, World() as world:
            install(world, server)
            wrong = Proof(world, ledger, args.agents).run(Random(seed), args.messages)
    except CommandFailed as failure:
        wrong = [str(failure)]
    except KeyboardInterrupt:
        return 130
    for line in wrong:
        print(f"WRONG  {line}")
    if not wrong:
        print(f"Each message arrived once, and each change was shown within {LIMIT:g} s.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
