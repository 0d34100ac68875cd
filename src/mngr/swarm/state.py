"""A run as it is: a fold over its log, and nothing else. The engine, `status`, `show`, the report and `resume` all see
the run through this one function, so that what one of them says is what the others would.

Unknown events and members are passed over: an older mngr reads the log of a newer one."""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.swarm import words
from mngr.swarm.log import EVENTS, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Spend:
    """What an agent has used: absolute figures, so that reading them twice changes nothing. `tokens` are those that
    count against a limit: fresh input, cache writes and output, not what is read from a cache."""

    __slots__ = ("messages", "tokens", "unpriced", "usd")

    def __init__(self, messages: int = 0, tokens: int = 0, usd: float = 0.0, unpriced: int = 0) -> None:
        self.messages, self.tokens, self.usd, self.unpriced = messages, tokens, usd, unpriced

    def __add__(self, other: Spend) -> Spend:
        return Spend(
            self.messages + other.messages,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.unpriced + other.unpriced,
        )


class Sample:
    """What an agent showed of itself at one moment, to tell work from standstill."""

    __slots__ = ("cpu", "elapsed", "log", "screen")

    def __init__(self, elapsed: float, log: int, screen: str, cpu: float) -> None:
        self.elapsed, self.log, self.screen, self.cpu = elapsed, log, screen, cpu


class Task:
    """One unit of work, and everything the log says about it."""

    def __init__(self, id: str, title: str, data: dict[str, Any]) -> None:
        self.id, self.title, self.data = id, title, data
        self.phase = words.PENDING
        self.stage = words.LAUNCH
        self.attempt = 0  # launches that were tried
        self.restarts = 0
        self.not_before = 0.0  # wall clock; a retry waits so long
        self.name = self.agent = self.host = self.branch = self.base = ""
        self.launched_at = self.ended_at = self.settled_at = None  # type: float | None
        self.briefed = False
        self.elapsed = 0.0  # seconds of work under our eyes, without those that it was parked
        self.samples: list[Sample] = []  # since something last changed
        self.reserve = Spend()
        self.spend = Spend()
        self.parked_until: float | None = None
        self.parked_at: float | None = None
        self.parks = 0
        self.throttled = 0.0  # seconds parked
        self.nudges: list[str] = []
        self.returned = 0  # times that a result was sent back, and
        self.refused = ""  # what tells the last one that was from others
        self.ending = ""  # what the end of its agent looked like, before anything was checked; "" for a result
        self.why = ""
        self.evidence: dict[str, Any] = {}
        self.home: dict[str, Any] = {}
        self.checker = ""  # the agent that checks it
        self.check: dict[str, Any] = {}
        self.outcome = ""
        self.claim: dict[str, Any] = {}
        self.notes: list[str] = []  # what a person should know of it
        self.cleared = ""

    @property
    def is_over(self) -> bool:
        return self.phase == words.SETTLED

    @property
    def is_bad(self) -> bool:
        return self.is_over and self.outcome not in (*words.GOOD, words.SKIPPED)

    @property
    def is_unbegun(self) -> bool:
        """It is settled although nobody was sent: `resume` may try again."""
        return self.is_over and not self.agent and self.outcome in (words.OVER_BUDGET, words.INFRASTRUCTURE)


class Run:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.id = os.path.basename(directory)
        self.plan: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}
        self.changes: list[dict[str, Any]] = []  # of settings: key, value, who, time
        self.tasks: dict[str, Task] = {}
        self.started_at: float | None = None
        self.finished_at: float | None = None
        self.orchestrators = 0
        self.paused = ""  # why dispatch stands still
        self.paused_since: float | None = None  # a result of one that was launched from then on speaks against it
        self.looked_at = 0.0  # when a person has mended what made it pause
        self.pauses: list[str] = []
        self.cancelled = ""  # by whom
        self.endings: list[Task] = []  # settled, in that order, for the breaker
        self.alerts: dict[str, int] = {}
        self.limits: list[dict[str, Any]] = []  # changes of the number of slots, with their reasons
        self.controls_read = 0  # bytes of control.jsonl that have been acted on
        self.last_event = 0.0

    # What many ask

    def spent(self) -> Spend:
        total = Spend()
        for task in self.tasks.values():
            total = total + task.spend
        return total

    def in_phase(self, *phases: str) -> list[Task]:
        return [task for task in self.tasks.values() if task.phase in phases]

    def counts(self) -> dict[str, int]:
        """How many tasks are in each phase, those that are settled by their ending."""
        found: dict[str, int] = {}
        for task in self.tasks.values():
            word = task.outcome if task.is_over else task.phase
            found[word] = found.get(word, 0) + 1
        return found

    @property
    def is_done(self) -> bool:
        return bool(self.plan) and all(task.is_over for task in self.tasks.values())

    # The fold

    def apply(self, event: dict[str, Any]) -> None:
        when = event.get("time")
        self.last_event = when if isinstance(when, int | float) else self.last_event
        kind = str(event.get("event"))
        if kind in _OF_RUN:
            _OF_RUN[kind](self, event)
        elif kind in _OF_TASK and (task := self.tasks.get(str(event.get("task")))):
            if stage := event.get("stage"):
                task.stage = stage
            _OF_TASK[kind](task, event)
            if kind == "settled":
                self.endings.append(task)


def load(directory: str) -> Run:
    """From the whole log."""
    run = Run(directory)
    for event in Reader(os.path.join(directory, EVENTS)).events():
        run.apply(event)
    if not run.plan:
        raise MngrError(f"{directory} has no run in it: it was interrupted before it was planned", f"rm -r {directory}")
    return run


# Events of the run


def _planned(run: Run, event: dict[str, Any]) -> None:
    run.plan = {key: value for key, value in event.items() if key not in ("event", "tasks")}
    run.settings = dict(event.get("settings") or {})
    for each in event.get("tasks") or []:
        task = Task(each["task"], each.get("title", each["task"]), each.get("data") or {})
        task.name = each.get("name", "")
        if why := each.get("skip"):
            task.phase, task.outcome, task.why = words.SETTLED, words.SKIPPED, why
        run.tasks[task.id] = task


def _started(run: Run, event: dict[str, Any]) -> None:
    run.orchestrators += 1
    run.started_at = run.started_at or event.get("time")
    run.finished_at = None


def _set(run: Run, event: dict[str, Any]) -> None:
    run.settings[event["key"]] = event["value"]
    run.changes.append(event)


def _read(run: Run, event: dict[str, Any]) -> None:
    run.controls_read = event["bytes"]


def _paused(run: Run, event: dict[str, Any]) -> None:
    run.paused, run.paused_since = event["why"], event.get("since")
    run.pauses.append(event["why"])


def _unpaused(run: Run, event: dict[str, Any]) -> None:
    run.paused, run.paused_since = "", None
    if not event.get("why"):  # a person has looked at it: what ended before does not count again
        run.endings = []
        run.looked_at = event.get("time") or 0.0


def _cancelled(run: Run, event: dict[str, Any]) -> None:
    run.cancelled = event.get("who") or "somebody"


def _alerted(run: Run, event: dict[str, Any]) -> None:
    run.alerts[event["pattern"]] = event.get("count", 0)


def _limit(run: Run, event: dict[str, Any]) -> None:
    run.limits.append(event)


def _finished(run: Run, event: dict[str, Any]) -> None:
    run.finished_at = event.get("time")


_OF_RUN: dict[Any, Callable[[Run, dict[str, Any]], None]] = {
    "planned": _planned,
    "started": _started,
    "set": _set,
    "controls": _read,
    "paused": _paused,
    "unpaused": _unpaused,
    "cancelled": _cancelled,
    "alerted": _alerted,
    "limit": _limit,
    "finished": _finished,
}


# Events of a task


def _intended(task: Task, event: dict[str, Any]) -> None:
    """Before anything is made, so that whoever resumes knows what to look for."""
    task.phase, task.stage = words.LAUNCHING, words.LAUNCH
    task.attempt += 1
    task.name, task.host = event["name"], event["host"]
    task.reserve = Spend(tokens=event.get("tokens", 0), usd=event.get("usd", 0.0))


def _launched(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.RUNNING
    task.agent, task.host = event["id"], event["host"]
    task.branch, task.base = event.get("branch") or "", event.get("base") or ""
    task.launched_at = event.get("time")


def _relaunch(task: Task, event: dict[str, Any]) -> None:
    """It was not made, or nothing is left of it, through no fault of its own: again, a little later."""
    task.phase = words.PENDING
    task.agent = ""
    task.briefed = False
    task.samples = []
    task.why = event.get("why", "")
    task.not_before = event.get("not_before", 0.0)
    task.reserve = Spend()


def _briefed(task: Task, event: dict[str, Any]) -> None:
    task.briefed = True


def _sampled(task: Task, event: dict[str, Any]) -> None:
    task.elapsed = event["elapsed"]
    sample = Sample(event["elapsed"], event["log"], event["screen"], event["cpu"])
    if event.get("moved"):
        task.samples = []
    task.samples.append(sample)


def _spent(task: Task, event: dict[str, Any]) -> None:
    task.spend = Spend(event["messages"], event["tokens"], event["usd"], event.get("unpriced", 0))


def _extended(task: Task, event: dict[str, Any]) -> None:
    task.reserve = Spend(tokens=event.get("tokens", 0), usd=event.get("usd", 0.0))


def _parked(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.PARKED
    task.parked_at, task.parked_until = event.get("time"), event["until"]
    task.parks += 1
    task.why = event.get("why", "")


def _unparked(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.RUNNING
    task.throttled += event.get("seconds", 0.0)
    task.parked_at = task.parked_until = None
    task.samples = []


def _nudged(task: Task, event: dict[str, Any]) -> None:
    task.nudges.append(event["why"])
    task.samples = []


def _restarted(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.RUNNING
    task.restarts += 1
    task.samples = []


def _returned(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.RUNNING
    task.returned += 1
    task.refused = event.get("result") or ""
    task.ending = task.why = ""
    task.home, task.samples = {}, []


def _ended(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.ENDED
    task.ended_at = event.get("time")
    task.ending, task.why = event.get("ending", ""), event.get("why", "")
    task.evidence = event.get("evidence") or {}
    if task.parked_at is not None:
        task.throttled += max(0.0, (event.get("time") or task.parked_at) - task.parked_at)
        task.parked_at = task.parked_until = None


def _reopened(task: Task, event: dict[str, Any]) -> None:
    """Nobody has acted on its end yet, and it is looked at again; or nobody was sent, and it is tried once more."""
    task.phase = words.RUNNING if task.agent else words.PENDING
    task.ended_at, task.evidence = None, {}
    task.outcome = task.why = ""
    task.attempt, task.not_before = (task.attempt, task.not_before) if task.agent else (0, 0.0)


def _home(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.HOME
    task.home = {key: value for key, value in event.items() if key not in ("time", "event", "task", "stage")}


def _checking(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.CHECKING
    task.checker = event["name"]


def _checked(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.CHECKED
    task.check = event.get("check") or {}


def _settled(task: Task, event: dict[str, Any]) -> None:
    task.phase = words.SETTLED
    task.outcome, task.why = event["outcome"], event.get("why", "")
    task.claim, task.notes = event.get("claim") or {}, event.get("notes") or []
    task.check = event.get("check") or task.check
    task.settled_at = event.get("time")
    task.reserve = Spend()


def _cleared(task: Task, event: dict[str, Any]) -> None:
    task.cleared = event["how"]


def _nothing(task: Task, event: dict[str, Any]) -> None:
    """Its stage is all it says."""


_OF_TASK: dict[Any, Callable[[Task, dict[str, Any]], None]] = {
    "intended": _intended,
    "launched": _launched,
    "relaunch": _relaunch,
    "briefed": _briefed,
    "reached": _nothing,
    "sampled": _sampled,
    "spent": _spent,
    "extended": _extended,
    "parked": _parked,
    "unparked": _unparked,
    "nudged": _nudged,
    "restarted": _restarted,
    "returned": _returned,
    "ended": _ended,
    "reopened": _reopened,
    "home": _home,
    "checking": _checking,
    "checked": _checked,
    "settled": _settled,
    "cleared": _cleared,
}
