"""The budget is kept by promises. Before an agent is started, what it will probably use is reserved for it; the
promises to all agents together are never more than the budget, and an agent is stopped when it has used up its own,
unless free budget is left to extend it. So the budget is exceeded only by calls that are under way when agents reach
their reserves: at most one for each agent at work, whatever they do.

Money and tokens are counted apart, each against its own limit, if there is one. A reserve is a cap on all that a task
uses, what earlier attempts used included."""

from __future__ import annotations

from mngr.record import Record
from mngr.swarm import words
from mngr.swarm.state import Spend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.swarm.learn import Expectation
    from mngr.swarm.state import Run, Task

EXTEND, STOP = "extend", "stop"

_SETTING = {"usd": "budget", "tokens": "max-tokens"}
_KIND = {"usd": float, "tokens": int}
_SPENDING = (words.LAUNCHING, words.RUNNING, words.PARKED)
_HOLDING = (*_SPENDING, words.ENDED, words.HOME)  # a result that is not valid is sent back, and the agent goes on
_DUST = 1e-6  # of a dollar: smaller differences come from adding up fractions


class Decision(Record):
    task: str
    act: str  # EXTEND: its reserve is `usd` and `tokens` from now on; STOP: it has used it up, and nothing is left
    usd: float = 0.0
    tokens: int = 0


def free(run: Run) -> dict[str, float]:
    """What is neither used nor promised, by `usd` and `tokens`; what has no limit is not in it. It is less than nothing
    when calls went beyond a reserve, or the budget was lowered."""
    return {unit: limit - sum(_held(task, unit) for task in run.tasks.values()) for unit, limit in _limits(run).items()}


def reserve(run: Run, task: Task, expected: Expectation) -> Spend | None:
    """For a task that is to be started; None: not now. Where nobody knows what agents use, the tasks that wait have an
    even share of what is free: little, perhaps, but it is extended while something is left."""
    promised = {"usd": expected.usd or 0.0, "tokens": expected.tokens}
    for unit, left in free(run).items():
        if not _affords(left, promised[unit]):
            return None
        promised[unit] = promised[unit] or left / max(1, len(run.in_phase(words.PENDING)))
    return Spend(usd=task.spend.usd + promised["usd"], tokens=task.spend.tokens + int(promised["tokens"]))


def is_used_up(run: Run, expected: Expectation) -> bool:
    """Nothing can be started any more, even if the agents at work leave everything that they have not used yet."""
    used = run.spent()
    return not all(
        _affords(limit - getattr(used, unit), getattr(expected, unit) or 0) for unit, limit in _limits(run).items()
    )


def review(run: Run, expected: Expectation) -> list[Decision]:
    """What follows from what the agents at work have used by now. To be asked each time that it has become more."""
    spending = run.in_phase(*_SPENDING)
    caps = {task.id: {"usd": task.reserve.usd, "tokens": task.reserve.tokens} for task in spending}
    stopped = set()
    for unit, left in free(run).items():
        keep = _part_to_keep(spending, unit, left)
        for task in spending:
            used = getattr(task.spend, unit)
            unused = _held(task, unit) - used
            if unused == 0:  # its reserve is used up
                unused = _KIND[unit](max(0, min(left, _step(expected, unit, left / len(spending)))))
                left -= unused
            elif keep < 1:
                unused = _KIND[unit](unused * keep)
            else:
                continue
            if unused > _DUST:
                caps[task.id][unit] = used + unused
            else:
                stopped.add(task.id)
    decisions = []
    for task in spending:
        usd, tokens = caps[task.id]["usd"], int(caps[task.id]["tokens"])
        if task.id in stopped:
            decisions.append(Decision(task=task.id, act=STOP))
        elif (usd, tokens) != (task.reserve.usd, task.reserve.tokens):
            decisions.append(Decision(task=task.id, act=EXTEND, usd=usd, tokens=tokens))
    return decisions


def warning(run: Run) -> str:
    """What the budget does not see; "" if it sees everything."""
    unpriced = run.spent().unpriced
    if run.settings.get("budget") is None or not unpriced:
        return ""
    messages, them = ("1 message has", "it") if unpriced == 1 else (f"{unpriced} messages have", "them")
    return f"{messages} no price: the budget does not count {them}, max-tokens does"


def _limits(run: Run) -> dict[str, float]:
    found = {unit: run.settings.get(setting) for unit, setting in _SETTING.items()}
    return {unit: limit for unit, limit in found.items() if limit is not None}


def _held(task: Task, unit: str) -> float:
    used: float = getattr(task.spend, unit)
    return max(used, getattr(task.reserve, unit)) if task.phase in _HOLDING else used


def _affords(left: float, amount: float) -> bool:
    return left > 0 and left >= amount


def _part_to_keep(spending: list[Task], unit: str, left: float) -> float:
    """When more is promised than there is, everybody gives back the same part of what they have not used yet."""
    unused = sum(_held(task, unit) - getattr(task.spend, unit) for task in spending)
    return max(0.0, 1 + left / unused) if left < -_DUST and unused else 1.0


def _step(expected: Expectation, unit: str, share: float) -> float:
    """By which a reserve is extended: half of what an agent is expected to use; of its share, where nobody knows."""
    return float(getattr(expected, unit) or share) / 2
