"""A circuit breaker: when tasks end one after the other before any of them has asked its model, the fault is not theirs
(a missing program, a wrong setup command, a login that is over), and the others would only end the same way. Then
dispatch pauses until a person has looked. What ends later, after work that was paid for, is a pattern that people want
to hear of too, but no reason to stop: that is what alerts are for.

Those that fail are the quickest to end, and some programs never ask a model. So whoever hands in a result speaks
against a fault of all, also when that happens after dispatch was paused: then it goes on by itself. It counts only if
its agent was made no earlier than those that failed: one that was logged in before says nothing of those that are not.
"""

from __future__ import annotations

from mngr.record import Record
from mngr.swarm import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.swarm.state import Run, Task

_FIRST, _OF_THE_FIRST = 5, 3
_SAYS_NOTHING = (words.SKIPPED, words.CANCELLED)  # nobody tried it, or nobody let it


class Pattern(Record):
    why: str  # no more agents should be started
    since: float  # who was sent from then on, and hands in a result, speaks against it


def pattern(run: Run) -> Pattern | None:
    """None: no reason is known."""
    endings = [task for task in run.endings if task.outcome not in _SAYS_NOTHING]
    in_a_row = run.settings["alert-after"]
    for stage in words.BEFORE_ANY_MODEL_CALL:
        early = [task for task in endings[:_FIRST] if _ended_at(task, stage)]
        if len(early) >= _OF_THE_FIRST and not speaks_against(run, run.looked_at):
            return Pattern(why=_told(f"{len(early)} of the first {_FIRST} tasks", early), since=run.looked_at)
        last = endings[-in_a_row:]
        if len(last) == in_a_row and all(_ended_at(task, stage) for task in last):
            since = min(task.launched_at or task.settled_at or 0.0 for task in last)
            if not speaks_against(run, since):
                return Pattern(why=_told(f"{in_a_row} tasks in a row", last), since=since)
    return None


def speaks_against(run: Run, since: float) -> Task | None:
    """One that was sent since then, and has handed in a result, whether or not anybody has looked at that yet."""
    for task in run.tasks.values():
        has_result = words.STAGES.index(task.stage) >= words.STAGES.index(words.RESULT)
        if has_result and task.launched_at is not None and task.launched_at >= since:
            return task
    return None


def alerts(run: Run) -> list[tuple[str, int]]:
    """What many tasks ended by, and how many by now, as far as nobody has been told of it."""
    counts: dict[str, int] = {}
    for task in run.tasks.values():
        if task.is_bad and task.outcome not in _SAYS_NOTHING:
            name = f"{task.outcome} at {task.stage}"
            counts[name] = counts.get(name, 0) + 1
    enough = run.settings["alert-after"]
    return [(name, count) for name, count in counts.items() if count >= enough and name not in run.alerts]


def _ended_at(task: Task, stage: str) -> bool:
    return task.is_bad and task.stage == stage and task.spend.messages == 0


def _told(who: str, tasks: list[Task]) -> str:
    outcome, why = (_most_common([getattr(task, what) for task in tasks]) for what in ("outcome", "why"))
    return f"{who} ended at {tasks[0].stage} ({outcome}) before any model call" + (f": {why}" if why else "")


def _most_common(texts: list[str]) -> str:
    return max(texts, key=texts.count)
