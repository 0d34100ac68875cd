"""A run from Python: what `mngr swarm run`, `resume` and `cancel` are made of. docs/swarm.md has a whole pipeline."""

from __future__ import annotations

import os

import mngr
from mngr.errors import MngrError
from mngr.registry import resolve
from mngr.swarm.begin import begin, read_request
from mngr.swarm.engine import Engine
from mngr.swarm.log import Writer, ask
from mngr.swarm.state import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mngr.swarm.recipe import Recipe
    from mngr.swarm.state import Run


def run(
    fleet: mngr.Fleet,
    recipe: Recipe,
    request: mngr.Request,
    heard: Callable[[Run, dict[str, Any]], None] = lambda *_: None,
    **options: Any,
) -> Run:
    """An agent for each task of the recipe, until all of them are accounted for. `request` says how agents are made;
    the options are those of `begin`. `heard` is told every event. Ctrl-C leaves them at work, and `resume` goes on."""
    return resume(fleet, begin(fleet, recipe, request, **options), recipe, heard)


def resume(
    fleet: mngr.Fleet,
    directory: str,
    recipe: Recipe | None = None,
    heard: Callable[[Run, dict[str, Any]], None] = lambda *_: None,
) -> Run:
    """Goes on with a run, from whatever point its log has reached. Without a recipe, it is the one of the log."""
    with Writer(directory) as writer:
        found = load(directory)
        engine = Engine(
            fleet,
            writer,
            found,
            recipe or _restored(found),
            read_request(directory),
            lambda event: heard(found, event),
        )
        engine.work()
    return found


def cancel(fleet: mngr.Fleet, directory: str, who: str) -> Run:
    """For a run that nobody is at: its agents are ended, and everything they have made is brought home."""
    ask(directory, {"wish": "cancel", "who": who})
    return resume(fleet, directory)


def stop_agents(fleet: mngr.Fleet, run: str) -> int:
    """All of the run that work; they stay, and `resume` starts them again. How many there were."""
    found = mngr.statuses(fleet, mngr.Selection(labels={"run": run}))
    alive = [
        status.agent.ref for status in found if status.agent and status.state in ("starting", "running", "waiting")
    ]
    if alive:
        mngr.stop(fleet, alive)
    return len(alive)


def _restored(run: Run) -> Recipe:
    reference = run.plan["recipe"]
    try:
        made: Recipe = resolve(reference).restored(run.plan["arguments"])
    except (ImportError, AttributeError) as error:
        raise MngrError(
            f"{run.id} was made by {reference}, which cannot be loaded: {error}",
            f"go on from the script that made it: mngr.swarm.resume(fleet, {os.fspath(run.directory)!r}, recipe)",
        ) from None
    return made
