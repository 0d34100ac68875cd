"""The state of an agent: one function over the evidence, for every verb. `explain` prints the same evidence.

Precedence: the process, then what the launcher and the program's hooks wrote, corrected by its session log and its
screen where those show what no hook tells (see fleet/second_look.py). Missing data is never read as failure
nor as success: what cannot be told is `unknown`."""

from __future__ import annotations

from mngr.model import DONE, FAILED, RUNNING, STARTING, STATES, STOPPED, UNKNOWN, WAITING, Agent
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from datetime import tzinfo


_PLAIN = "command"  # a program that tells nothing of itself: it runs as long as it lives


class Pane(Record):
    """The agent's own pane, as tmux tells it, or the kernel of one that lives."""

    dead: bool
    status: int | None
    signal: int | None
    pid: int


class Written(Record):
    """The `state` file: the last thing that the launcher, a hook or a verb wrote."""

    state: str
    time: float
    reason: str


class Ended(Record):
    """The `exit` file."""

    time: float
    status: int | None
    signal: int | None


class Seen(Record):
    """What its screen and its session log say, where they contradict what was written."""

    state: str
    reason: str


class Evidence(Record):
    id: str
    agent: Agent | None = None
    told: str = ""  # agent.json as it is
    damage: str | None = None  # why that could not be read
    written: Written | None = None
    ended: Ended | None = None
    pane: Pane | None = None
    is_of_kernel: bool = False  # that there is no pane is said by somebody who knows only of processes
    creating: bool = False  # a create of it has not finished
    creator_alive: bool = False
    tmux_trouble: str | None = None  # tmux gave no answer, so that no pane means nothing
    seen: Seen | None = None
    survivor: int | None = None  # pid of its program, alive without a session


class Verdict(Record):
    state: str
    reason: str
    since: float | None
    because: str  # one sentence for explain
    exit_code: int | None = None  # of done and failed, where there is one


def needs_a_second_look(e: Evidence) -> bool:
    """No session, and nothing says why: its program may have outlived the tmux server."""
    stopped = e.written is not None and e.written.state == STOPPED
    return e.pane is None and e.agent is not None and not (e.ended or stopped or e.creating or e.tmux_trouble)


def ends_unseen(e: Evidence) -> bool:
    """Its terminal is closed, and nobody has said how its program ended."""
    pane = e.pane
    return pane is not None and pane.dead and e.ended is None and pane.status is None and pane.signal is None


def verdict(e: Evidence) -> Verdict:
    since = e.written.time if e.written else None
    if e.agent is None:
        return Verdict(
            state=UNKNOWN, reason="damaged", since=since, because=f"its agent.json cannot be read: {e.damage}"
        )
    if e.creating and e.creator_alive and e.pane is None and e.ended is None:
        return Verdict(state=STARTING, reason="", since=since, because="the create of it has not finished")
    if e.creating and not e.creator_alive:
        return Verdict(
            state=FAILED,
            reason="create was interrupted",
            since=since,
            because="it was being created, and whoever did it is gone",
        )
    if e.tmux_trouble:
        return Verdict(state=UNKNOWN, reason="tmux does not answer", since=since, because=e.tmux_trouble)
    if e.pane is None:
        return _without_session(e, since)
    if not e.pane.dead and e.ended is None:
        return _alive(e, since)
    if e.written is not None and e.written.state == STOPPED:
        return Verdict(state=STOPPED, reason="", since=since, because="it was stopped by us, whatever its exit code")
    told = e.pane if e.pane.status is not None or e.pane.signal is not None else e.ended
    if told is None:
        return Verdict(
            state=RUNNING, reason="ending", since=since, because="its terminal is closed, its exit status not yet known"
        )
    # its launcher tells how it ended as its last act, and those who hear it look while that still lives
    pane = "its pane is dead" if e.pane.dead else "its program has ended"
    because = f"{pane}: {how_it_ended(told.status, told.signal)}"
    return _ending(told.status, told.signal, e.ended.time if e.ended else since, because)


def _alive(e: Evidence, since: float | None) -> Verdict:
    assert e.pane is not None
    because = f"process {e.pane.pid} lives in its pane"
    if e.seen is not None:
        claim = e.written.state if e.written else "nothing"
        because += f"; the last thing written is {claim}, but its screen and log say {e.seen.state}"
        return Verdict(state=e.seen.state, reason=e.seen.reason, since=since, because=because)
    told = e.written.state if e.written else ""
    if told not in (STARTING, WAITING) or (told == STARTING and e.agent and e.agent.kind == _PLAIN):
        reason = e.written.reason if e.written and e.written.state == RUNNING else ""
        return Verdict(state=RUNNING, reason=reason, since=since, because=because)
    assert e.written is not None
    because += f", and the last thing written is {told}"
    return Verdict(state=told, reason=e.written.reason, since=since, because=because)


def _without_session(e: Evidence, since: float | None) -> Verdict:
    if e.written is not None and e.written.state == STOPPED:
        return Verdict(state=STOPPED, reason="", since=since, because="it was stopped by us")
    if e.ended is not None:
        because = f"it ended ({how_it_ended(e.ended.status, e.ended.signal)}) and has no session"
        return _ending(e.ended.status, e.ended.signal, e.ended.time, because)
    if e.survivor is not None:
        because = (
            f"process {e.survivor} is its program, alive, but there is no session: the tmux server was ended under it"
        )
        return Verdict(state=UNKNOWN, reason="alive without a session", since=since, because=because)
    return Verdict(
        state=STOPPED, reason="session gone", since=since, because="there is no session, and no exit was recorded"
    )


def how_it_ended(status: int | None, signal: int | None) -> str:
    return f"signal {signal}" if signal is not None else f"status {status}"


def _ending(status: int | None, signal: int | None, since: float | None, because: str) -> Verdict:
    if signal is not None:
        return Verdict(state=FAILED, reason=f"signal {signal}", since=since, because=because)
    if status is None:
        return Verdict(state=UNKNOWN, reason="no exit status", since=since, because=because)
    if status == 0:
        return Verdict(state=DONE, reason="", since=since, because=because, exit_code=0)
    by_signal = f", signal {status - 128}" if 128 < status < 160 else ""
    return Verdict(state=FAILED, reason=f"exit {status}{by_signal}", since=since, because=because, exit_code=status)


def read_written(text: str) -> Written | None:
    """`STATE TIME [REASON]`; None for anything else, which is how an empty or garbled file reads."""
    words = text.strip().split(" ", 2)
    if len(words) < 2 or words[0] not in STATES or (time := _number(words[1])) is None:
        return None
    return Written(state=words[0], time=time, reason=words[2] if len(words) > 2 else "")


def read_ended(text: str) -> Ended | None:
    """`TIME STATUS SIGNAL`, a dash for what does not apply."""
    words = text.split()
    if len(words) != 3 or (time := _number(words[0])) is None:
        return None
    return Ended(time=time, status=_whole(words[1]), signal=_whole(words[2]))


def read_pane(line: str) -> tuple[str, Pane] | None:
    """One line of tmux.PANE_FIELDS."""
    words = line.split("|")
    if len(words) != 5 or (pid := _whole(words[4])) is None:
        return None
    return words[0], Pane(dead=words[1] == "1", status=_whole(words[2]), signal=_whole(words[3]), pid=pid)


_FURTHEST = 8 * 86400.0  # seconds: no limit is longer than a week
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_ISO = r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_EPOCH = r"\b(\d{10})(?:\d{3})?\b"  # in seconds or milliseconds
_SPAN = r"(?:\bin|\bafter:?)\s+((?:\d+(?:\.\d+)?\s*(?:ms|[smhd])[a-z]*,?\s*(?:and\s+)?)+|\d+\b)"
_CLOCK = rf"""
    \b (?: resets? | again | until | at ) \s+ (?: at \s+ )?
    (?: ( {"|".join(_MONTHS)} ) [a-z]* \s+ (\d\d?) (?:st|nd|rd|th)? ,? \s+ (?: (\d{{4}}) ,? \s+ )? (?: at \s+ )? )?
    (\d\d?) (?: : (\d\d) )? \s* ([ap]m)? \b (?: \s* \( ([A-Z][\w/+-]*) \) )?"""


def reset_time(reason: str, now: float) -> float | None:
    """When a rate limit ends, by the reason of a waiting state, in the words of whatever program or server gave it. A
    time of day without a zone is this machine's, and the next one, or one that has just been. None: it does not say, or
    nothing that can be."""
    import re

    if found := re.search(_ISO, reason):
        moment = _iso(found[0])
    elif found := re.search(_EPOCH, reason):
        moment = float(found[1])
    elif found := re.search(_SPAN, reason, re.IGNORECASE):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*(ms|[smhd]?)", found[1].lower())
        moment = now + sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    elif found := re.search(_CLOCK, reason, re.IGNORECASE | re.VERBOSE):
        moment = _clock(found, now)
    else:
        return None
    return moment if moment is not None and abs(moment - now) <= _FURTHEST else None


def _iso(text: str) -> float | None:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _clock(found: re.Match[str], now: float) -> float | None:
    from datetime import datetime, timedelta

    month, day, year, hour, minute, half, zone = found.groups()
    if minute is None and half is None:
        return None  # a number, but no time
    today = datetime.fromtimestamp(now, _zone(zone))
    hours = int(hour) % 12 + 12 * (half.lower() == "pm") if half else int(hour)
    try:
        moment = today.replace(hour=hours, minute=int(minute or 0), second=0, microsecond=0)
        if month:
            moment = moment.replace(int(year or today.year), _MONTHS.index(month.lower()) + 1, int(day))
            if not year and moment < today - timedelta(days=180):
                moment = moment.replace(today.year + 1)
        elif moment < today - timedelta(minutes=15):  # one that has just passed is over, and not tomorrow's
            moment += timedelta(days=1)
        return moment.timestamp()
    except (ValueError, OverflowError):
        return None


def _zone(name: str | None) -> tzinfo | None:
    """None: this machine's own, also in the place of one that nobody knows."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):
        return None


def _number(text: str) -> float | None:
    return float(text) if text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) < 20 else None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
