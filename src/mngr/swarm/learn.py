"""What one more agent will probably use, learnt from the agents of earlier runs. The logs of the runs are all there is
to it: a run that is deleted is forgotten, and nothing can disagree with them."""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.record import Record
from mngr.swarm import words
from mngr.swarm.runs import first_event, known_runs, runs_directory
from mngr.swarm.state import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.swarm.state import Spend, Task

_LATEST = 200  # agents; what older ones used says little about today's project
_ENOUGH = 3
_UNKNOWN = (20_000, 50_000)  # tokens of context that a coding agent fills before it has done much


class Expectation(Record):
    usd: float | None  # None: nobody knows
    tokens: int
    agents: int  # that it was learnt from; 0: it is a guess
    spread: tuple[int, int]  # tokens of a cheap one and of a dear one, for estimates


def earlier(home: str, project: str, type: str, *, besides: str = "") -> list[Spend]:
    """What the latest agents of this type on this project used, in other runs than the one `besides`."""
    found: list[Spend] = []
    for name in reversed([name for name in known_runs(home) if name != besides]):
        directory = os.path.join(runs_directory(home), name)
        plan = first_event(directory)
        if plan.get("project") == project and plan.get("type") == type:
            found += _of_run(directory)
        if len(found) >= _LATEST:
            break
    return found[:_LATEST]


def of_tasks(tasks: Iterable[Task]) -> list[Spend]:
    """The latest first."""
    settled = [task for task in tasks if task.phase == words.SETTLED and _tells(task)]
    return [task.spend for task in sorted(settled, key=lambda task: task.settled_at or 0.0, reverse=True)]


def expected(known: Sequence[Spend]) -> Expectation:
    """Of one more: rather too much than too little, since what was reserved too much comes back, and what was too
    little has to be found."""
    known = known[:_LATEST]
    if len(known) < _ENOUGH:
        low, tokens = _UNKNOWN
        return Expectation(usd=None, tokens=tokens, agents=0, spread=(low, tokens))
    used = [spend.tokens for spend in known]
    tokens = int(_quantile(used, 0.75))
    costs = [spend.usd for spend in known if not spend.unpriced]
    return Expectation(
        usd=_quantile(costs, 0.75) if len(costs) >= _ENOUGH else None,
        tokens=tokens,
        agents=len(known),
        spread=(int(_quantile(used, 0.25)), int(_quantile(used, 0.9))),
    )


def _of_run(directory: str) -> list[Spend]:
    """A log that cannot be read teaches nothing."""
    try:
        return of_tasks(load(directory).tasks.values())
    except (OSError, MngrError, KeyError, TypeError, ValueError, AttributeError):
        return []


def _tells(task: Task) -> bool:
    """One that was cancelled would have gone on to use more."""
    return task.spend.messages > 0 and task.outcome != words.CANCELLED


def _quantile(values: Sequence[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)]
