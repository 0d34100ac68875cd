"""The agents of several hosts at once. What was last seen on each is kept (`seen/<host>`, a cache): of a host that
cannot be reached now it is all that is known, and what is not known is never read as gone."""

from __future__ import annotations

import os
from _thread import get_ident

from mngr import jsonline
from mngr.errors import MngrError
from mngr.fleet.fleet import LOCAL
from mngr.fleet.side_by_side import at_once
from mngr.fleet.survey import OUT_OF_REACH, Status, survey_host
from mngr.hosts import place as places
from mngr.model import DONE, FAILED, STOPPED, UNKNOWN, Agent
from mngr.state import Evidence, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.model import Ref


def survey_all(fleet: Fleet, names: list[str]) -> list[Status]:
    """Side by side: all of them take as long as the slowest. What goes wrong on this machine is raised."""
    refs: dict[str, dict[str, Ref]] = {name: {} for name in names}
    for ref in fleet.names.all():
        refs.setdefault(ref.host, {})[ref.id] = ref
    found: dict[str, list[Status]] = {}

    def ask(name: str) -> None:
        found[name] = survey_host(fleet, fleet.host(LOCAL)) if name == LOCAL else _survey(fleet, name, refs[name])

    at_once(sorted(names, key=lambda name: name == LOCAL), ask)  # this machine last: its answer needs no thread
    return [status for name in names for status in found[name]]


def _survey(fleet: Fleet, name: str, refs: dict[str, Ref]) -> list[Status]:
    """Of agents that we know by name: a host can have those of others too."""
    cache = os.path.join(fleet.home, "seen", name)
    try:
        place = fleet.places.find(name)
        if place is not None and place.state == places.STOPPED:
            return [_as_last_seen(ref, _recall(cache), None) for ref in refs.values()]
        return [status for status in look_at(fleet, name, refs.values()) if status.id in refs]
    except MngrError as error:
        return [_as_last_seen(ref, _recall(cache), error) for ref in refs.values()]


def look_at(fleet: Fleet, name: str, refs: Iterable[Ref]) -> list[Status]:
    """All agents there, and not only these of ours, of which is kept how they were seen. Raises HostUnreachable."""
    found = survey_host(fleet, fleet.host(name))
    ours = {ref.id for ref in refs}
    _remember(os.path.join(fleet.home, "seen", name), [status for status in found if status.id in ours])
    return found


def _as_last_seen(ref: Ref, seen: dict[str, tuple[Agent, str]], error: MngrError | None) -> Status:
    agent, state = seen.get(ref.id, (None, ""))
    if error is None:
        ended = state if state in (DONE, FAILED) else STOPPED
        verdict = Verdict(state=ended, reason="its host is stopped", since=None, because="mngr stopped its host")
    else:
        last = f"; it was {state}" if state else ""
        reason = f"{OUT_OF_REACH}{last}"
        verdict = Verdict(state=UNKNOWN, reason=reason, since=None, because=error.message)
    damage = None if agent else error.message if error else "nothing was ever seen of it"
    evidence = Evidence(id=ref.id, agent=agent, damage=damage)
    return Status(id=ref.id, name=ref.name, host=ref.host, agent=agent, verdict=verdict, evidence=evidence)


def _remember(cache: str, found: list[Status]) -> None:
    """What is written is what changed: a list that shows the same again writes nothing."""
    lines = [jsonline.dumps({"state": s.state, "agent": s.agent.to_dict()}) + "\n" for s in found if s.agent]
    text = "".join(lines)
    try:
        with open(cache, encoding="utf-8") as file:
            if file.read() == text:
                return
    except (OSError, ValueError):
        pass
    fresh = f"{cache}.{os.getpid()}.{get_ident()}"
    try:
        os.makedirs(os.path.dirname(cache), mode=0o700, exist_ok=True)
        with open(fresh, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(fresh, cache)
    except OSError:
        pass  # a cache: a full disk must not keep anybody from seeing their agents


def _recall(cache: str) -> dict[str, tuple[Agent, str]]:
    seen: dict[str, tuple[Agent, str]] = {}
    try:
        with open(cache, encoding="utf-8") as file:
            for line in file:
                told = jsonline.loads(line)
                agent = Agent.from_dict(told["agent"])
                seen[agent.id] = (agent, str(told["state"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return seen
