"""What `make proof` sends: messages with texts of their own, in random order, to random agents, by several senders at
once. Some find an agent idle; for the others there are errands that see to it that it is at work, or that two senders
come at the same time."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import count
from random import Random
from typing import NamedTuple

from world import World

_SENDERS = 4
_PAUSE = 6.0  # seconds between two errands of a sender, at most: the machine must have time for twenty programs too
_BATCH = 5  # agents that get the same text in one call


class Call(NamedTuple):
    """One `mngr message`."""

    names: list[str]
    text: str


class Sent(NamedTuple):
    """What became of one message: one call is as many messages as it has agents."""

    name: str
    text: str
    outcome: str
    seconds: float


class Errand(NamedTuple):
    """What a sender does after a pause: steps, one after the other; the calls of a step begin at the same time."""

    pause: float
    steps: list[list[Call]]


def plan(chance: Random, names: list[str], messages: int) -> list[Errand]:
    """A fifth of the messages goes to several agents in one call; a fifth to an agent that somebody else is sending to;
    a fifth are pairs of which the first gives work and the second follows at once. The rest comes one by one."""
    number = count(1)

    def call(work: str, *to: str) -> Call:
        return Call(list(to), f"message {next(number)}\n{work}")

    def any_work() -> str:
        return chance.choice((_quick(), _quick(), _tool(chance), _stream(chance)))

    batch = min(_BATCH, len(names))
    errands = [[[call(any_work(), *chance.sample(names, batch))]] for _ in range(messages // 5 // _BATCH)]
    for _ in range(messages // 5 // 2):
        name = chance.choice(names)
        errands.append([[call(any_work(), name), call(any_work(), name)]])
        name = chance.choice(names)
        errands.append([[call(chance.choice((_tool(chance), _stream(chance))), name)], [call(any_work(), name)]])
    planned = sum(len(call.names) for steps in errands for step in steps for call in step)
    errands += [[[call(any_work(), names[turn % len(names)])]] for turn in range(messages - planned)]
    chance.shuffle(errands)
    return [Errand(chance.uniform(0, _PAUSE), steps) for steps in errands]


def _quick() -> str:
    return "SAY: noted"


def _tool(chance: Random) -> str:
    return f"RUN: sleep {chance.uniform(1, 4):.1f}"


def _stream(chance: Random) -> str:
    return f"PACE: 0.1\nSAY: {'word ' * chance.randint(10, 40)}".rstrip()


def send(world: World, errands: list[Errand]) -> Iterator[Sent]:
    """All of them, each message as soon as its outcome is known."""
    with ThreadPoolExecutor(_SENDERS) as pool:
        running = [pool.submit(_run, world, errand) for errand in errands]
        try:
            for done in as_completed(running):
                yield from done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _run(world: World, errand: Errand) -> list[Sent]:
    time.sleep(errand.pause)
    sent = []
    for step in errand.steps:
        with ThreadPoolExecutor(len(step)) as together:
            for found in together.map(lambda call: _message(world, call), step):
                sent += found
    return sent


def _message(world: World, call: Call) -> list[Sent]:
    begin = time.monotonic()
    argv = world.mngr("message", *call.names, "--json", "-m", call.text)
    done = subprocess.run(argv, cwd=world.repo, env=world.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    told = {row["name"]: row for row in json.loads(done.stdout or "[]")}
    return [Sent(name, call.text, _outcome(told.get(name), done.stderr), seconds) for name in call.names]


def _outcome(row: dict[str, str] | None, errors: str) -> str:
    if row is None:
        return f"no outcome: {errors.strip()}"
    return row["did"] if row["ok"] else f"{row['did']}: {row['why']}"
