"""What is to be done about one agent, from what is known of it: a pure function, so that every case can be tried. The
engine does what it says, and writes it down.

One look is no evidence of standstill: samples are kept in the log, and only several of them over a long enough time,
with the same log, the same screen and an idle processor, make an agent stuck."""

from __future__ import annotations

import binascii
import random

from mngr.record import Record
from mngr.state import reset_time
from mngr.swarm import words
from mngr.swarm.state import Sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.swarm.state import Task

GO_ON, END, PARK, NUDGE, RESTART, RELAUNCH = "go on", "end", "park", "nudge", "restart", "relaunch"
NO_RESULT, STANDSTILL, API_ERROR = "no result", "standstill", "api error"  # why an agent is nudged
QUIET = 1.0  # seconds that a turn must have been over
LAST_WORDS = 20.0  # seconds that an agent has to end its turn, once its result is there
TIME_TO_APPEAR = 10.0  # for an agent that was being made when our predecessor died, or its host went away
TIME_TO_START = 300.0
TIME_TO_COME_BACK = 900.0  # for a host that does not answer
ASKING = 5.0  # seconds that a dialog must have been in front, or an agent stopped, before it counts
MOST_PARKS = 20
LONGEST_PARK = 8 * 86400.0
IDLE = 0.05  # of a processor: what programs use for blinking and for looking around
FEWEST_SAMPLES = 3


class Look(Record):
    """One agent as it was seen."""

    state: str  # "" when it is not there any more
    reason: str = ""
    since: float = 0.0  # seconds that it has been seen in this very state
    result: str | None = None  # what tells this result from another; None: there is none
    result_since: float = 0.0  # seconds that it has been there
    sample: Sample | None = None
    interrupted: bool = False  # its create was
    reports: bool = True  # its program tells its state
    inherited: bool = False  # it is seen for the first time by whoever goes on with the run


class Act(Record):
    do: str
    ending: str = ""
    why: str = ""
    until: float = 0.0  # wall clock


def judge(task: Task, look: Look, settings: dict[str, Any], clock: float, now: float) -> Act:
    """`clock`: seconds that it has been at work; `now`: wall clock."""
    if look.state == "":
        return Act(do=END, ending=words.LOST, why="its agent is not there any more: somebody has removed it")
    if look.interrupted:
        return Act(do=RELAUNCH, why="the launch was interrupted")
    if look.result is not None:
        if look.state in ("running", "starting") and look.result_since < LAST_WORDS and look.reports:
            return Act(do=GO_ON)
        return Act(do=END)
    verdict = _BY_STATE[look.state](task, look, settings, now)
    if verdict.do == GO_ON and task.phase != words.PARKED and clock >= settings["timeout"]:
        return Act(do=END, ending=words.TIMED_OUT, why=f"no result within {settings['timeout']:g} s")
    return verdict


def _unknown(task: Task, look: Look, settings: dict[str, Any], now: float) -> Act:
    """Missing data is no failure; only after a long time it is a loss."""
    if look.since < TIME_TO_COME_BACK:
        return Act(do=GO_ON)
    return Act(do=END, ending=words.LOST, why=f"nothing is known of its agent: {look.reason}")


def _starting(task: Task, look: Look, settings: dict[str, Any], now: float) -> Act:
    if look.since < TIME_TO_START:
        return Act(do=GO_ON)
    return Act(do=END, ending=words.INFRASTRUCTURE, why=f"its program was not ready within {TIME_TO_START:g} s")


def _running(task: Task, look: Look, settings: dict[str, Any], now: float) -> Act:
    if not is_still(task, look.sample, settings["stuck-after"]):
        return Act(do=GO_ON)
    if STANDSTILL not in task.nudges:
        return Act(do=NUDGE, why=STANDSTILL)
    span = settings["stuck-after"]
    return Act(do=END, ending=words.STUCK, why=f"nothing moved for {span:g} s, and again after a nudge")


def _waiting(task: Task, look: Look, settings: dict[str, Any], now: float) -> Act:
    reason = look.reason
    if reason.startswith("rate limit"):
        return _limited(task, look, now)
    if reason.startswith(("api error", "turn failed")):
        return _troubled(task, look, settings)
    if reason.startswith(("permission", "question", "dialog")):
        if look.since < ASKING:
            return Act(do=GO_ON)
        return Act(do=END, ending=words.BLOCKED, why=f"it waits for a person: {reason}")
    if not task.briefed or look.since < QUIET:  # another turn may begin at once
        return Act(do=GO_ON)
    if NO_RESULT not in task.nudges:
        return Act(do=NUDGE, why=NO_RESULT)
    return Act(
        do=END, ending=words.FAILED, why="it ended its turn without a result, and again when it was asked for one"
    )


def _limited(task: Task, look: Look, now: float) -> Act:
    if task.phase == words.PARKED:
        return Act(do=GO_ON)  # the engine wakes it
    if task.parks >= MOST_PARKS:
        return Act(do=END, ending=words.RATE_LIMITED, why=f"{look.reason}, for the {task.parks + 1}th time")
    until = reset_time(look.reason, now)
    if until is None:
        until = now + backoff(task.parks)
    return Act(do=PARK, why=look.reason, until=min(max(until, now + 1.0), now + LONGEST_PARK))


def _troubled(task: Task, look: Look, settings: dict[str, Any]) -> Act:
    """Its model's server, or its turn, failed: told to go on after a while, as often as anything is tried again."""
    tried = task.nudges.count(API_ERROR)
    if tried >= settings["retries"] + 1:
        return Act(do=END, ending=words.INFRASTRUCTURE, why=look.reason)
    pause = min(5.0 * 3**tried, 120.0) * (0.75 + _share(task) / 2)
    return Act(do=NUDGE, why=API_ERROR) if look.since >= pause else Act(do=GO_ON)


def _stopped(task: Task, look: Look, settings: dict[str, Any], now: float) -> Act:
    if look.inherited:
        return Act(do=RESTART, why="it was stopped while nobody worked on the run")
    if look.reason != "session gone":
        if look.since < ASKING:
            return Act(do=GO_ON)  # whoever stops it may be about to destroy it
        return Act(do=END, ending=words.CANCELLED, why="somebody has stopped it")
    return _again(task, look, settings, "its terminal went away, as after a restart of the machine or of tmux")


def _failed(task: Task, look: Look, settings: dict[str, Any], now: float) -> Act:
    if "signal" in look.reason:  # nobody ends itself so: the machine was out of memory, or somebody did it
        return _again(task, look, settings, f"its program was killed: {look.reason}")
    return Act(do=END, ending=words.FAILED, why=f"its program failed: {look.reason}")


def _done(task: Task, look: Look, settings: dict[str, Any], now: float) -> Act:
    return Act(do=END, ending=words.FAILED, why="its program ended without a result")


def _again(task: Task, look: Look, settings: dict[str, Any], why: str) -> Act:
    """Later each time, and not all at the same moment: what ended one may have ended many."""
    if task.restarts < settings["retries"]:
        return Act(do=RESTART, why=why) if look.since >= 3.0**task.restarts * _share(task) else Act(do=GO_ON)
    return Act(do=END, ending=words.INFRASTRUCTURE, why=f"{why}; it was started {task.restarts + 1} times")


_BY_STATE = {
    "unknown": _unknown,
    "starting": _starting,
    "running": _running,
    "waiting": _waiting,
    "stopped": _stopped,
    "failed": _failed,
    "done": _done,
}


def moved(before: Sample, after: Sample) -> bool:
    """Has it done anything in between?"""
    if before.log != after.log or before.screen != after.screen or after.cpu < before.cpu:
        return True  # less CPU time: a process of it has ended
    return after.cpu - before.cpu > IDLE * max(after.elapsed - before.elapsed, 0.0) + 0.5


def is_still(task: Task, latest: Sample | None, span: float) -> bool:
    """By samples that are in the log, over the whole span, and by the latest look."""
    samples = task.samples
    if latest is None or len(samples) < FEWEST_SAMPLES or latest.elapsed - samples[0].elapsed < span:
        return False
    return not moved(samples[-1], latest)


def _share(task: Task) -> float:
    """Between 0 and 1, its own: jitter that is the same at every look."""
    return binascii.crc32(task.id.encode()) % 1000 / 1000


def backoff(times: int, first: float = 20.0, most: float = 900.0) -> float:
    """With jitter, so that those who failed together do not come back together."""
    return min(first * 2.0**times, most) * random.uniform(0.75, 1.25)
