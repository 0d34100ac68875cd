"""An account is used by all runs of this MNGR_HOME at the same time, and its rate limits are theirs together. So there
is one controller for it, in `accounts/<account>.json`, and beside it what each run has at work and would like to start.
A run that has died is known by its lock, which ended with it; nobody has to sign off."""

from __future__ import annotations

import fcntl
import os

from mngr import jsonline
from mngr.record import Record
from mngr.swarm.log import is_taken
from mngr.swarm.runs import runs_directory
from mngr.swarm.slots import Controller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Share(Record):
    free: int  # agents that the run may start now
    limit: int  # of all runs together, and
    why: str  # it is so


class Account:
    def __init__(self, home: str, name: str) -> None:
        self.home = home
        self.path = os.path.join(home, "accounts", f"{name}.json")

    def share(
        self,
        run: str,
        now: float,
        *,
        using: int,
        wanted: int,
        asked: Iterable[str] = (),
        limits: Iterable[float | None] = (),
        errors: int = 0,
    ) -> Share:
        """The run has `using` agents at work and would start `wanted` more. What it has seen since the last time: who
        `asked` a model, for each rate limit when it is over, and how many other API errors there were."""
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        with open(f"{self.path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            controller, runs = self._read()
            runs = {other: held for other, held in runs.items() if other != run and self._lives(other)}
            runs[run] = (using, wanted)
            at_work = sum(used for used, _ in runs.values())
            for reset in limits:
                controller = controller.limited(now, reset)
            if errors:
                controller = controller.failed(now)
            controller = controller.observed(now, at_work, asked)
            self._write(controller, runs)
        slots = controller.slots(now)
        mine = fair(slots, {other: used + more for other, (used, more) in runs.items()})[run]
        return Share(free=max(0, min(mine - using, slots - at_work)), limit=controller.limit, why=controller.why)

    def _lives(self, run: str) -> bool:
        return is_taken(os.path.join(runs_directory(self.home), run))

    def _read(self) -> tuple[Controller, dict[str, tuple[int, int]]]:
        """What is damaged is learnt again."""
        try:
            with open(self.path, encoding="utf-8") as file:
                kept = jsonline.loads(file.read())
            controller = Controller.from_dict(kept["controller"])
            return controller, {run: (int(used), int(more)) for run, (used, more) in kept["runs"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return Controller(), {}

    def _write(self, controller: Controller, runs: dict[str, tuple[int, int]]) -> None:
        """A full disk costs what was learnt, and not the run."""
        kept: dict[str, Any] = {
            "controller": controller.to_dict(),
            "runs": {run: list(held) for run, held in runs.items()},
        }
        try:
            with open(f"{self.path}.new", "w", encoding="utf-8") as file:
                file.write(jsonline.dumps(kept) + "\n")
            os.replace(f"{self.path}.new", self.path)
        except OSError:
            pass


def fair(slots: int, demands: dict[str, int]) -> dict[str, int]:
    """Nobody gets more than they can use, and nobody less than another while they could use more, give or take the one
    slot that cannot be divided."""
    given: dict[str, int] = {}
    for run, demand in sorted(demands.items(), key=lambda item: (item[1], item[0])):
        given[run] = min(demand, slots // (len(demands) - len(given)))
        slots -= given[run]
    return given
