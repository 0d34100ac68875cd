"""Who looks on while `make proof` runs: the model server's own clock, mngr's feed of events, and a yardstick for the
machine. None of them asks the agents anything."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import defaultdict
from threading import Event, Thread
from typing import Self

from verdict import Line
from world import World

from mngr.dev.exchange import Json, Turn, Usage
from mngr.dev.ledger import Ledger


class TimedLedger(Ledger):
    """Knows when each answer was complete, and how many are not yet."""

    def __init__(self) -> None:
        super().__init__()
        self._open: set[int] = set()

    def begin(self, path: str, turn: Turn | None) -> Json:
        entry = super().begin(path, turn)
        self._open.add(entry["n"])
        return entry

    def complete(self, entry: Json, answered: Json, status: int | None, usage: Usage | None, id: str | None) -> None:
        entry["end"] = time.time()
        super().complete(entry, answered, status, usage, id)
        self._open.remove(entry["n"])

    def open(self) -> int:
        return len(self._open)


class Watcher:
    """`mngr events --follow`: the states of each agent, with the time at which the line came."""

    def __init__(self, world: World) -> None:
        self.lines: defaultdict[str, list[Line]] = defaultdict(list)
        argv = world.mngr("events", "--all", "--follow", "--jsonl")
        self._child = subprocess.Popen(
            argv, cwd=world.repo, env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self._thread = Thread(target=self._read, name="watcher")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        self._thread.join()
        self._child.wait()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for text in self._child.stdout:
            at, event = time.time(), json.loads(text)
            if event["event"] in ("running", "waiting"):
                self.lines[event["name"]].append(Line(at, event["event"], event.get("reason", "")))


class Yardstick:
    """What the machine takes meanwhile for the least that a hook is: a shell that starts one program."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.loads: list[float] = [os.getloadavg()[0]]
        self._over = Event()
        self._thread = Thread(target=self._measure, name="yardstick")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._over.wait(0.5):
            begin = time.monotonic()
            subprocess.run(["sh", "-c", "date; :"], stdout=subprocess.DEVNULL)
            self.seconds.append(time.monotonic() - begin)
            self.loads.append(os.getloadavg()[0])
