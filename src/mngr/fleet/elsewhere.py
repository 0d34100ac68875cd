"""The agents of several hosts at once. What is not known of one that cannot be reached is never read as gone."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.fleet import asking
from mngr.fleet.fleet import LOCAL
from mngr.fleet.last_seen import LastSeen
from mngr.fleet.side_by_side import Threads
from mngr.fleet.survey import OUT_OF_REACH, Status, ask, conclude, is_enough, look_closer, survey_host
from mngr.model import DONE, FAILED, STOPPED, UNKNOWN
from mngr.state import Evidence, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts.lines import Question
    from mngr.model import Ref


def survey_all(fleet: Fleet, far: list[str], refs: Iterable[Ref]) -> list[Status]:
    """This machine and these, side by side: all of them take as long as the slowest. What goes wrong here is raised."""
    asked, silent = asking.begin(fleet, far)
    others = _Others(fleet, far, refs, silent)
    try:
        with Threads(others.look) as looking:
            for name in far:
                if name not in asked and name not in silent:
                    looking.start(name)
            near = survey_host(fleet, fleet.host(LOCAL))
            for name in asking.as_answered(asked):
                if not others.hear(name, asked[name]):
                    looking.start(name)
        return near + others.statuses()
    finally:
        asking.drop(asked)


class _Others:
    """The agents of other machines. Those of whom an answer says enough are done with it; others are looked at again,
    beside what is still awaited."""

    def __init__(self, fleet: Fleet, far: list[str], refs: Iterable[Ref], silent: dict[str, MngrError]) -> None:
        self._fleet = fleet
        self._refs: dict[str, dict[str, Ref]] = {name: {} for name in far}
        for ref in refs:
            if ref.host in self._refs:
                self._refs[ref.host][ref.id] = ref
        self._last = {name: LastSeen(fleet, name) for name in far}
        self._found: dict[str, list[Status]] = {}
        self._told: dict[str, list[Evidence]] = {}
        self._silent = silent

    def hear(self, name: str, begun: Question) -> bool:
        """Is that all?"""
        try:
            evidence = ask(self._fleet.host(name), begun, self._last[name])
            if is_enough(evidence):
                self._conclude(name, evidence)
            else:
                self._told[name] = evidence
        except MngrError as error:
            self._silent[name] = error
        return name not in self._told

    def look(self, name: str) -> None:
        try:
            host = self._fleet.host(name)
            evidence = self._told[name] if name in self._told else ask(host, None, self._last[name])
            self._conclude(name, look_closer(host, evidence))
        except MngrError as error:
            self._silent[name] = error

    def _conclude(self, name: str, evidence: list[Evidence]) -> None:
        there = conclude(self._fleet, self._fleet.host(name), evidence, self._last[name])
        self._found[name] = [status for status in there if status.id in self._refs[name]]
        self._last[name].keep(self._found[name])

    def statuses(self) -> list[Status]:
        return [status for name in self._refs for status in self._of(name)]

    def _of(self, name: str) -> list[Status]:
        if name in self._found:
            return self._found[name]
        error = None if self._is_stopped(name) else self._silent[name]
        return [_as_last_seen(ref, self._last[name], error) for ref in self._refs[name].values()]

    def _is_stopped(self, name: str) -> bool:
        try:
            return self._fleet.is_stopped(name)
        except MngrError:
            return False  # nobody can tell


def look_at(fleet: Fleet, name: str, refs: Iterable[Ref]) -> list[Status]:
    """All agents there, and not only these of ours, of which is kept how they were seen. Raises HostUnreachable."""
    found = survey_host(fleet, fleet.host(name))
    ids = {ref.id for ref in refs}
    LastSeen(fleet, name).keep(status for status in found if status.id in ids)
    return found


def _as_last_seen(ref: Ref, last: LastSeen, error: MngrError | None) -> Status:
    agent, state = last.agent(ref.id), last.state(ref.id)
    if error is None:
        ended = state if state in (DONE, FAILED) else STOPPED
        verdict = Verdict(state=ended, reason="its host is stopped", since=None, because="mngr stopped its host")
    else:
        was = f"; it was {state}" if state else ""
        reason = f"{OUT_OF_REACH}{was}"
        verdict = Verdict(state=UNKNOWN, reason=reason, since=None, because=error.message)
    damage = None if agent else error.message if error else "nothing was ever seen of it"
    evidence = Evidence(id=ref.id, agent=agent, damage=damage)
    return Status(id=ref.id, name=ref.name, host=ref.host, agent=agent, verdict=verdict, evidence=evidence)
