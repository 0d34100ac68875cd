"""Where new agents go: a host that is known, one that is met for the first time, or one that is made for them. Those
that mngr made stop with their last agent, and go with it: nobody pays for what they forgot.

A verb may be killed at any line. So a record says `running` from before a host can run until after it has stopped, it
is there before the host is made, has no home until that is finished, and is `going` before anything is taken away: the
next verb that needs the host takes up from there."""

from __future__ import annotations

from mngr import hosts, registry
from mngr.address import check_name, is_name, made_up_name
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.fleet import last_seen
from mngr.fleet.fleet import LOCAL
from mngr.fleet.host_lock import InUse, JustStopped, Lock
from mngr.fleet.outcome import counted
from mngr.fleet.side_by_side import at_once
from mngr.hosts.place import GOING, RUNNING, STOPPED, Place
from mngr.hosts.probe import arrive
from mngr.model import RUNNING as WORKS
from mngr.model import STARTING, UNKNOWN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from mngr.address import Address
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.survey import Status
    from mngr.hosts import Host, Provider
    from mngr.model import Ref

    T = TypeVar("T")
    Tell = Callable[[str], None]

_MAY_RUN = (STARTING, WORKS, WAITING, UNKNOWN)
# What would go with a host that no agent of ours is on: work that destroy parked, snapshots, which outlive their
# agents, and agents that we do not know.
_HOLDS = """
for file in "$H"/trash/*; do [ ! -f "$file" ] || echo "parked $(sed -n 2p "$file")"; done
for agent in "$H"/snapshots/*/; do [ ! -d "$agent" ] || echo "snapshots ${agent%/}"; done
for agent in "$H"/agents/*/; do [ ! -d "$agent" ] || echo "agent ${agent%/}"; done
"""


def _silent(_: str) -> None: ...


def host_for(
    fleet: Fleet, address: Address, wish: str, options: Mapping[str, str], tell: Tell = _silent
) -> tuple[Host, bool]:
    """Where a new agent with this address goes, and whether that was made just now. `wish`: a name for a new host that
    has none, if it is free."""
    if address.provider is None:
        if address.host not in (None, LOCAL):
            raise UsageError(f"there is no host {address.host!r}", f"HOST.PROVIDER, as in {address.host}.ssh")
        if options:
            raise UsageError("--with describes a host that is made: this one is here", "say where: NAME@.docker")
        return fleet.host(LOCAL), False
    provider = registry.provider(address.provider)
    if address.provider == LOCAL:
        check_options(provider, options)
        return fleet.host(LOCAL), False
    if address.host is None:
        return _nameless(fleet, provider, wish, options, tell)
    name = f"{check_name(address.host, 'host')}.{address.provider}"
    place = fleet.places.find(name)
    if place is not None and place.home and place.state == RUNNING:
        _refuse_options(name, options)
        return fleet.host(name), False
    check_options(provider, options)
    if provider.makes:
        return _ready(fleet, provider, name, options, tell, new=False)
    known = place.options if place else {}
    try:
        fleet.places.keep(arrive(provider, Place(name=name, options={**known, **options})))
    except HostUnreachable as error:
        way = f"mngr host add {name} --with target=USER@MACHINE says where it is"
        raise HostUnreachable(error.message, error.hint or (way if "target" in provider.options else None)) from None
    return fleet.host(name), False


def check_options(provider: Provider, options: Mapping[str, str]) -> None:
    for key in options:
        if key not in provider.options:
            known = ", ".join(provider.options)
            raise UsageError(
                f"a {provider.name} host has no option {key!r}", f"there are {known}" if known else "it has none"
            )


def _refuse_options(name: str, options: Mapping[str, str]) -> None:
    if options:
        raise UsageError(f"{name} exists: --with is for a new host", "name another, or mngr host remove it")


def _nameless(fleet: Fleet, provider: Provider, wish: str, options: Mapping[str, str], tell: Tell) -> tuple[Host, bool]:
    if not provider.makes:
        raise UsageError(f"which {provider.name} host?", f"name it, as in NAME@BOX.{provider.name}")
    check_options(provider, options)
    for _ in range(100):
        name = f"{wish}.{provider.name}"
        if is_name(wish) and fleet.places.find(name) is None:
            try:
                return _ready(fleet, provider, name, options, tell, new=True)
            except _Taken:
                pass  # by another create, a moment ago
        wish = made_up_name()
    raise MngrError(
        f"no free name for a new {provider.name} host was found", f"name one, as in NAME@BOX.{provider.name}"
    )


class _Taken(MngrError):
    pass


def _ready(
    fleet: Fleet, provider: Provider, name: str, options: Mapping[str, str], tell: Tell, *, new: bool
) -> tuple[Host, bool]:
    with Lock(fleet, name):
        place = fleet.places.find(name)
        left = place if place is not None and (place.state == GOING or not place.home) else None
        if left is not None:
            _take_away(fleet, left)  # what a killed create or remove has left
            place = None
        fleet.forget(name)  # how it was reached before it changed
        if place is None:
            try:
                _make(fleet, provider, name, options, tell)
            except MngrError:
                if left is None or left.host not in provider.find():
                    raise
                _take_away(fleet, left)  # what the killed create had asked for has come only now
                _make(fleet, provider, name, options, tell)
            return fleet.host(name), True
        if new:
            raise _Taken(name)
        _refuse_options(name, options)
        if place.state == STOPPED:
            tell(f"starting {name}")
            _start(fleet, place)
    return fleet.host(name), False


def _make(fleet: Fleet, provider: Provider, name: str, options: Mapping[str, str], tell: Tell) -> None:
    """The record comes first: what a killed create leaves can be found and removed by its name."""
    place = Place(name=name, made=True, options=dict(options))
    fleet.places.keep(place, new=True)
    try:
        place = place.replace(id=provider.make(place.host, options, tell))
    except BaseException:
        # The provider has taken back what it made. Whatever has that name now was there before, work and all.
        forget(fleet, name)
        raise
    try:
        fleet.places.keep(place)
        fleet.places.keep(arrive(provider, place))
    except BaseException:
        _take_away(fleet, place)
        raise


def on_duty(fleet: Fleet, host: Host, act: Callable[[Host], T]) -> T:
    """`act`, while nobody stops or removes the host; one that was stopped a moment ago is started again."""
    while True:
        try:
            with InUse(fleet, host.name):
                return act(fleet.host(host.name))
        except JustStopped:
            if not fleet.is_stopped(host.name):
                raise
            start(fleet, fleet.place(host.name))


def remove(fleet: Fleet, place: Place) -> None:
    """One that was made is taken away, with everything in it; one that stands somewhere is forgotten. Refused while an
    agent of ours is there, which may have come just now."""
    with Lock(fleet, place.name):
        if refs := agents_on(fleet, place.name):
            raise MngrError(
                f"{place.name} has {counted(len(refs), 'agent')}: {', '.join(ref.name for ref in refs[:5])}"
            )
        _take_away(fleet, fleet.places.find(place.name) or place)


def _take_away(fleet: Fleet, place: Place) -> None:
    provider = registry.provider(place.provider)
    if place.made:
        fleet.places.keep(place.replace(state=GOING))
        provider.remove(place)
    elif part := getattr(provider, "part", None):
        part(place)
    forget(fleet, place.name)


def give_up(fleet: Fleet, place: Place, refs: list[Ref]) -> None:
    """A host that is gone for good, with the agents on it: nobody goes there."""
    with Lock(fleet, place.name):
        for ref in refs:
            fleet.names.release(ref)
        try:
            if part := getattr(registry.provider(place.provider), "part", None):
                part(place)
        except UsageError:
            pass  # its provider is gone, too
        forget(fleet, place.name)


def is_away(fleet: Fleet, name: str) -> bool:
    """Whether mngr has stopped or removed it."""
    if name == LOCAL:
        return False
    place = fleet.places.find(name)
    return place is None or place.state != RUNNING


def is_gone(place: Place) -> bool:
    """Its provider says so. One that cannot be asked does not."""
    try:
        return place.made and place.host not in registry.provider(place.provider).find()
    except MngrError:
        return False


def forget(fleet: Fleet, name: str) -> None:
    """What is known of it here, and nothing else."""
    fleet.forget(name)
    fleet.places.forget(name)
    last_seen.forget(fleet, name)


def stop(fleet: Fleet, place: Place) -> None:
    with Lock(fleet, place.name):
        if fleet.is_stopped(place.name):
            return  # by another verb, just now
        try:
            found = _look(fleet, place) if agents_on(fleet, place.name) else []
        except MngrError:
            found = None  # its provider can stop it all the same
        _stop(fleet, fleet.place(place.name), found)


def _stop(fleet: Fleet, place: Place, found: list[Status] | None) -> None:
    """What the agents there have spent is counted first: nobody can ask a host that is stopped."""
    from mngr.fleet.collect import collect_last

    ours = {ref.id for ref in agents_on(fleet, place.name)}
    is_counted = found is not None and collect_last(fleet, [status for status in found if status.id in ours])
    is_counted = is_counted and not any(status.state in _MAY_RUN for status in found or ())
    stopped = registry.provider(place.provider).stop(place)
    fleet.forget(place.name)
    fleet.places.keep(stopped.replace(state=STOPPED, is_counted=is_counted))


def start(fleet: Fleet, place: Place) -> Place:
    """Also one that is said to run: somebody else may have stopped it."""
    with Lock(fleet, place.name):
        return _start(fleet, fleet.place(place.name))


def _start(fleet: Fleet, place: Place) -> Place:
    """What was its home and its socket may be elsewhere now."""
    provider, was_counted = registry.provider(place.provider), place.is_counted
    if not place.made:
        provider.start(place)  # says that it cannot
    place = place.replace(state=RUNNING, is_counted=False)
    fleet.places.keep(place)
    try:
        place = provider.start(place).replace(state=RUNNING)
        place = arrive(provider, place.replace(home="", socket=""))
    except BaseException:
        fleet.places.keep(place.replace(state=STOPPED, is_counted=was_counted))
        raise
    fleet.forget(place.name)
    fleet.places.keep(place)
    return place


def wake(fleet: Fleet, names: Iterable[str], tell: Tell = _silent) -> None:
    """Those of these hosts that are stopped are started, side by side."""
    stopped = [fleet.place(name) for name in dict.fromkeys(names) if fleet.is_stopped(name)]

    def begin(place: Place) -> None:
        tell(f"starting {place.name}")
        with Lock(fleet, place.name):
            if fleet.is_stopped(place.name):
                _start(fleet, fleet.place(place.name))
            else:
                fleet.forget(place.name)  # another verb has started it since: it may be elsewhere now

    _each(stopped, begin)


def revive(fleet: Fleet, name: str) -> bool:
    """One that mngr made and that does not answer: it may have been stopped behind our back, or by a verb that was
    killed before it could say so. Whether it runs now."""
    place = None if name == LOCAL else fleet.places.find(name)
    if place is None or not place.made:
        return False
    start(fleet, place)
    return True


def rest(fleet: Fleet, names: Iterable[str], tell: Tell = _silent) -> None:
    """Those of these hosts that mngr made, and on which no agent runs any more, are stopped."""

    def end(place: Place) -> None:
        with Lock(fleet, place.name):
            found = fleet.places.find(place.name)
            if not (found and found.state == RUNNING and found.home):
                return
            there = _look(fleet, found)
            if not _is_busy(fleet, found, there):
                _stop(fleet, found, there)
                tell(f"{place.name} is stopped: mngr start brings it back with its agents")

    _each(_made(fleet, names), end, tell, "could not be stopped")


def release_hosts(fleet: Fleet, names: Iterable[str], tell: Tell = _silent, *, look: bool = True) -> None:
    """Those of these hosts that mngr made, and that have no agent of ours left, are removed; unless there is something
    else on them that exists nowhere else. `look` is for hosts on which there may be."""

    def end(place: Place) -> None:
        with Lock(fleet, place.name):
            found = fleet.places.find(place.name)
            if found is None or agents_on(fleet, place.name):
                return
            if look and found.state == STOPPED:
                found = _start(fleet, found)
            if look and (what := holds(fleet, found)):
                tell(f"{place.name} is kept: {what}")
                return
            _take_away(fleet, found)
            tell(f"{place.name} is removed")

    made = _made(fleet, names)
    _each([place for place in made if not agents_on(fleet, place.name)], end, tell, "could not be removed")
    rest(fleet, [place.name for place in made if fleet.places.find(place.name)], tell)


def agents_on(fleet: Fleet, name: str) -> list[Ref]:
    return sorted((ref for ref in fleet.names.all() if ref.host == name), key=lambda ref: ref.name)


def holds(fleet: Fleet, place: Place) -> str:
    """What there is on a host besides agents of ours, in words; "" for nothing. Raises HostUnreachable."""
    if not place.home or place.state == GOING:
        return ""
    ours = {ref.id for ref in agents_on(fleet, place.name)}
    told = [line.partition(" ") for line in hosts.check(fleet.host(place.name), _HOLDS, deadline=30).splitlines()]
    if parked := [name for word, _, name in told if word == "parked"]:
        return f"what {', '.join(parked)} left is parked there"
    if any(word == "snapshots" for word, _, _ in told):
        return "there are snapshots on it"
    strangers = [path for word, _, path in told if word == "agent" and path.rpartition("/")[2] not in ours]
    return f"there are {len(strangers)} agents on it that are not known here" if strangers else ""


def _made(fleet: Fleet, names: Iterable[str]) -> list[Place]:
    found = [fleet.places.find(name) for name in dict.fromkeys(names) if name != LOCAL]
    return [place for place in found if place is not None and place.made]


def _look(fleet: Fleet, place: Place) -> list[Status]:
    from mngr.fleet.elsewhere import look_at

    return look_at(fleet, place.name, agents_on(fleet, place.name))


def _is_busy(fleet: Fleet, place: Place, found: list[Status]) -> bool:
    """A name without an agent is one that is being made. Agents of others count too."""
    refs = agents_on(fleet, place.name)
    there = {status.id for status in found}
    made = any(each.evidence.creating and each.evidence.creator_alive for each in found)
    return made or not refs or any(ref.id not in there for ref in refs) or any(each.state in _MAY_RUN for each in found)


def _each(places: list[Place], act: Callable[[Place], None], tell: Tell | None = None, trouble: str = "") -> None:
    """Side by side. Of what goes wrong the first is raised, or with `tell` each is told: what it was done for is
    done."""

    def work(place: Place) -> None:
        try:
            act(place)
        except MngrError as error:
            if tell is None:
                raise
            if not isinstance(error, UsageError):  # what this provider cannot do, nobody expects
                tell(f"{place.name} {trouble}: {error.message}")

    at_once(places, work)
