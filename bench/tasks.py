"""A run of a swarm, as a program that can be measured and killed: tasks that replays do, and nobody else.

    python bench/tasks.py begin NAME COUNT TRAJECTORY [SETTING=VALUE...]
    python bench/tasks.py resume NAME

TRAJECTORY is a file that all of them play, or a directory, whose files they play in turns. With KILL_AFTER="EVENTS
SECONDS" it kills itself, so long after it has written so many events."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import mngr
from mngr.swarm import settings as tuning
from mngr.swarm.api import resume, run
from mngr.swarm.recipe import Check, Home, Judgement, Piece, Recipe
from mngr.swarm.runs import runs_directory
from mngr.swarm.state import Run

_LOOK = 'test -d done && echo \'{"done": true}\' >"$MNGR_RESULT"'


class Tasks(Recipe):
    name = "tasks"

    def __init__(self, count: int, trajectory: str) -> None:
        self._count, self._trajectory = count, Path(trajectory)

    def arguments(self) -> dict[str, Any]:
        return {"count": self._count, "trajectory": str(self._trajectory)}

    def pieces(self) -> list[Piece]:
        """The end of its name says what a task plays."""
        kinds = sorted(path.stem for path in self._trajectory.glob("*.sh")) or ["all"]
        names = [f"t{number}-{kinds[number % len(kinds)]}" for number in range(self._count)]
        return [Piece(title=name, prompt=f"Play {name}.") for name in names]

    def check(self, data: dict[str, Any], home: Home) -> Check | None:
        return Check(command=["sh", "-c", _LOOK], timeout=60) if home.commits else None

    def judge(self, data: dict[str, Any], home: Home, checked: dict[str, Any] | None) -> Judgement:
        if not home.commits:
            return Judgement(outcome="unchanged")
        return Judgement(outcome="improved" if checked == {"done": True} else "failed", why=str(checked))


def main(verb: str, name: str, *words: str) -> None:
    fleet, heard = mngr.Fleet(), _heard(os.environ.get("KILL_AFTER"))
    if verb == "resume":
        resume(fleet, os.path.join(runs_directory(fleet.home), name), heard=heard)
        return
    count, trajectory, *given = words
    settings = {key: tuning.read(key, value) for key, value in (setting.split("=", 1) for setting in given)}
    request = mngr.Request(type="replay", args=[trajectory])
    # However busy the machine is: what is measured is the run, not its patience.
    calm = {"max-load": 1e6, "min-memory": 0.0}
    run(fleet, Tasks(int(count), trajectory), request, heard, name=name, settings={**calm, **settings})


def _heard(kill_after: str | None) -> Any:
    if kill_after is None:
        return lambda *_: None
    events, seconds = kill_after.split()
    left = int(events)

    def heard(run: Run, event: dict[str, Any]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            threading.Timer(float(seconds), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()

    return heard


if __name__ == "__main__":
    from tasks import main as begin_or_resume  # by its name, or the log would say that the recipe is of __main__

    begin_or_resume(*sys.argv[1:])
