"""Where runs are, and which there are."""

from __future__ import annotations

import os

from mngr import jsonline
from mngr.errors import MngrError
from mngr.swarm.log import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def runs_directory(home: str) -> str:
    return os.path.join(home, "runs")


def known_runs(home: str) -> list[str]:
    """Their names, the latest last."""
    try:
        found = [entry for entry in os.scandir(runs_directory(home)) if entry.is_dir()]
    except FileNotFoundError:
        return []
    return [entry.name for entry in sorted(found, key=_begun) if os.path.exists(os.path.join(entry.path, EVENTS))]


def find_run(home: str, name: str | None) -> str:
    """The directory of that run; of the latest one when none is named."""
    from mngr.address import is_name, nearest

    known = known_runs(home)
    if name is None:
        if not known:
            raise MngrError("there is no run yet", "mngr swarm run tests begins one")
        name = known[-1]
    if not is_name(name) or name not in known:
        close = nearest(name, known)
        raise MngrError(f"there is no run {name}", f"did you mean {close}?" if close else "mngr swarm list has them")
    return os.path.join(runs_directory(home), name)


def first_event(directory: str) -> dict[str, Any]:
    """What a run was asked for, without the rest of its log; empty if that cannot be read."""
    try:
        with open(os.path.join(directory, EVENTS), "rb") as file:
            event = jsonline.loads(file.readline().decode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _begun(entry: os.DirEntry[str]) -> tuple[float, str]:
    """By its first event, as far as it can be read: a copy of a run has other times."""
    when = first_event(entry.path).get("time")
    return (float(when) if isinstance(when, int | float) else 0.0, entry.name)
