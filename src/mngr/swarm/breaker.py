"""A circuit breaker: when tasks end one after the other before any of them has asked its model, the fault is not theirs
(a missing program, a wrong setup command, a login that is over), and the others would only end the same way. Then
dispatch pauses until a person has looked. What ends later, after work that was paid for, is a pattern that people want
to hear of too, but no reason to stop: that is what alerts are for."""

from __future__ import annotations

from mngr.swarm import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.swarm.state import Run, Task

_FIRST, _OF_THE_FIRST = 5, 3
_SAYS_NOTHING = (words.SKIPPED, words.CANCELLED)  # nobody tried it, or nobody let it


def pattern(run: Run) -> str | None:
    """Why no more agents should be started; None: no reason is known."""
    endings = [task for task in run.endings if task.outcome not in _SAYS_NOTHING]
    in_a_row = run.settings["alert-after"]
    for stage in words.BEFORE_ANY_MODEL_CALL:
        early = [task for task in endings[:_FIRST] if _ended_at(task, stage)]
        if len(early) >= _OF_THE_FIRST:
            return _told(f"{len(early)} of the first {_FIRST} tasks", early)
        last = endings[-in_a_row:]
        if len(last) == in_a_row and all(_ended_at(task, stage) for task in last):
            return _told(f"{in_a_row} tasks in a row", last)
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
