"""wait: until agents are in one of some states. Follows the feed and wakes on the event."""

from __future__ import annotations

import time

from mngr import registry
from mngr.errors import MngrError, NoSuchAgent, TimedOut
from mngr.fleet.fleet import LOCAL
from mngr.fleet.follow import Feed, followable
from mngr.fleet.survey import Status, survey_host
from mngr.model import DONE, FAILED, STOPPED, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mngr.fleet.fleet import Fleet
    from mngr.model import Ref

WANTS_YOU = (WAITING, DONE, FAILED, STOPPED)
_ENDS = (DONE, FAILED, STOPPED)
_PULSE = 1.0  # a turn that somebody interrupts, or a dialog, shows only on a program's screen: that is looked at again
_SLOW = 20.0  # and who is killed before it could tell anything, or outlives the tmux server for a while, tells nobody


def wait(
    fleet: Fleet,
    refs: Iterable[Ref],
    states: Sequence[str] = WANTS_YOU,
    *,
    any: bool = False,
    timeout: float | None = None,
    reached: Callable[[Status], None] = lambda _: None,
) -> list[Status]:
    """Until all of them (or any one) are in one of `states`; those that are. `reached` hears of each at once.
    TimedOut after `timeout` seconds; MngrError when it can no longer happen: one has ended in another way."""
    wanted = {ref.id: ref for ref in refs}
    deadline = None if timeout is None else time.monotonic() + timeout
    arrived: dict[str, Status] = {}
    with Feed(followable(fleet, {ref.host for ref in wanted.values()})) as feed:
        _look(fleet, wanted, states, arrived, reached, any=any)
        events = feed.events(deadline, pulse=_PULSE if _some_report(wanted.values()) else _SLOW)
        while not _enough(wanted, arrived, any=any):
            event = next(events, None)
            if event is None:
                missing = [ref.name for ref in wanted.values() if ref.id not in arrived]
                raise TimedOut(f"not {' or '.join(states)} within {timeout:g} s: {', '.join(missing[:8])}")
            if not event or event.get("agent") in wanted:
                try:
                    _look(fleet, wanted, states, arrived, reached, any=any)
                except TimedOut:
                    pass  # a busy machine: it is looked at again
    return list(arrived.values())


def _some_report(refs: Iterable[Ref]) -> bool:
    return bool([ref for ref in refs if ref.kind != "command" and registry.type_of(ref).reports])


def _enough(wanted: dict[str, Ref], arrived: dict[str, Status], *, any: bool) -> bool:
    return bool(arrived) if any else len(arrived) == len(wanted)


def _look(
    fleet: Fleet,
    wanted: dict[str, Ref],
    states: Sequence[str],
    arrived: dict[str, Status],
    reached: Callable[[Status], None],
    *,
    any: bool,
) -> None:
    now = {status.id: status for status in _survey(fleet, {ref.host for ref in wanted.values()}) if status.id in wanted}
    lost: list[str] = []
    for id, ref in wanted.items():
        status = now.get(id)
        if status is not None and status.state in states:
            if id not in arrived:
                reached(status)
            arrived[id] = status
            continue
        arrived.pop(id, None)  # it was there, and went on: all must be there at the same time
        if status is None:
            lost.append(f"{ref.name} is not there any more")
        elif status.state in _ENDS and all_ends(states):
            reason = f" ({status.verdict.reason})" if status.verdict.reason else ""
            lost.append(f"{ref.name} is {status.state}{reason}")
    if lost and (len(lost) == len(wanted) or not any) and not _enough(wanted, arrived, any=any):
        kind = NoSuchAgent if lost[0].endswith("any more") else MngrError
        raise kind(f"it cannot become {' or '.join(states)}: {'; '.join(lost[:5])}")


def _survey(fleet: Fleet, names: set[str]) -> list[Status]:
    """Agents of these hosts alone: another one that cannot be reached must not keep us waiting. Those of a host that is
    away are unknown, which is a state that passes."""
    if names == {LOCAL}:
        return survey_host(fleet, fleet.host(LOCAL))
    from mngr.fleet.elsewhere import survey_all

    return survey_all(fleet, sorted(names - {LOCAL}), fleet.names.all())


def all_ends(states: Sequence[str]) -> bool:
    """Only a new start can lead from one end to another, so waiting for one in the other is in vain."""
    return set(states) <= set(_ENDS)
