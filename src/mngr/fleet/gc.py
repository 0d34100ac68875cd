"""gc: what is left over from interrupted work: names, directories, sessions, hosts, parked work whose time is up. A
host that says nothing is never taken for one that has nothing: what is known of it stays."""

from __future__ import annotations

import time

from mngr import builtin, hosts, registry
from mngr.errors import HostUnreachable, MngrError
from mngr.fleet.destroy import destroy
from mngr.fleet.fleet import LOCAL
from mngr.fleet.side_by_side import answers, every_host, known_hosts
from mngr.fleet.survey import survey_host
from mngr.hosts.place import Place
from mngr.model import STARTING, Ref
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.survey import Status
    from mngr.hosts import Host

    Tell = Callable[[str], None]

KEEP_TRASH = 14 * 86400.0
_TIME_TO_USE = 86400.0  # seconds after which nobody begins hosts from an image any more
_TIME_TO_MAKE = 3600.0  # seconds after which a host without an agent is not just being made
_WORDS = {
    "file": "temporary file of a script that is gone",
    "work": "work dir without an agent, with nothing unsaved in it",
    "unsaved": "work dir without an agent, with unsaved work: look at it, and remove it yourself",
    "trash": "parked work, older than 14 days",
    "session": "tmux session without an agent",
    "store": "object store that nobody borrows from",
    "carry": "files on their way to an agent that was never made",
    "feed": "feed of events, grown long",
    "host": "host that mngr made, without an agent",
    "unknown host": "host that mngr made, and nobody here knows",
    "strange host": "host that nobody here knows: mngr host add it, or remove it yourself",
    "kept host": "host without an agent: look at it, and mngr host remove it",
    "image": "image that hosts began from, and none is left of",
    "name": "name without an agent",
    "create": "agent whose create was interrupted",
    "integration": "integration that was killed: its scratch repository and checkouts",
}


def _silent(_: str) -> None: ...


class Leftover(Record):
    host: str
    kind: str
    what: str
    ref: Ref | None = None
    place: Place | None = None  # the host itself
    ran: bool = True  # False: its program never started, so that nothing in it is anybody's work

    def __str__(self) -> str:
        there = "" if self.host == LOCAL or self.place or self.ref else f"{self.host}:"
        return f"{there}{self.what}: {_WORDS[self.kind]}"

    @property
    def removable(self) -> bool:
        return self.kind not in ("unsaved", "kept host", "strange host")


def leftovers(fleet: Fleet, tell: Tell = _silent) -> list[Leftover]:
    """`tell` gets a line for each host and provider that could not be asked."""
    named = {ref.id for ref in fleet.names.all()}

    def ask(host: Host) -> tuple[list[Status], list[str]]:
        found = survey_host(fleet, host)
        # other machines can have agents of others too
        return [each for each in found if host.lines is None or each.id in named], _ask(host)

    told, silent = every_host(fleet, known_hosts(fleet), ask)
    for name, error in silent.items():
        if not fleet.is_stopped(name):
            tell(f"{name} was not looked at: {error.message}")
    seen = [status for statuses, _ in told.values() for status in statuses]
    there = {status.id: status.agent.name if status.agent else None for status in seen}
    found = [
        Leftover(host=ref.host, kind="name", what=ref.name, ref=ref)
        for ref in fleet.names.all()
        if ref.host in told and ref.id in named
        # a rename that was killed leaves two names of one agent, whose record has one of them
        if there.get(ref.id, "") not in (ref.name, None) and fleet.names.is_leftover(ref)
    ]
    for status in seen:
        if status.evidence.creating and not status.evidence.creator_alive:
            ref = status.agent.ref if status.agent else Ref(id=status.id, name=status.name, type="", host=status.host)
            written = status.evidence.written
            ran = written is None or written.state != STARTING
            found.append(Leftover(host=status.host, kind="create", what=status.name, ref=ref, ran=ran))
    for name, (_, lines) in told.items():
        for kind, _, what in (line.partition(" ") for line in lines):
            if kind in _WORDS:
                found.append(Leftover(host=name, kind=kind, what=what))
    hosts_left = [*_hosts_without_agents(fleet, set(told)), *_unknown_hosts(fleet, tell)]
    return [*found, *hosts_left, *_images(fleet, tell)]


def _ask(host: Host) -> list[str]:
    far = "1" if host.lines is not None else "''"
    script = f"{_script()}\nleftovers {int(time.time() - KEEP_TRASH)} {far}\n:"
    return hosts.check(host, script, deadline=120).splitlines()


def _hosts_without_agents(fleet: Fleet, answered: set[str]) -> Iterator[Leftover]:
    """Known ones that mngr made. One that cannot be looked into may hold parked work."""
    places = [place for place in fleet.places.all() if place.made]
    if not places:
        return
    from mngr.fleet.hosting import holds

    busy = {ref.host for ref in fleet.names.all()}
    for place in places:
        if place.name in busy or fleet.places.age(place.name) < _TIME_TO_MAKE:
            continue
        try:
            empty = not place.home or (place.name in answered and not holds(fleet, place))
        except MngrError:
            empty = False
        yield Leftover(host=place.name, kind="host" if empty else "kept host", what=place.name, place=place)


def _unknown_hosts(fleet: Fleet, tell: Tell) -> Iterator[Leftover]:
    """Those that providers say are ours, although nothing here knows them. Only those are asked that have been used
    here: to ask one costs what gc costs otherwise, ten times and more (`host list --discover` asks all of them)."""
    used = {place.provider for place in fleet.places.all()} | {ref.host.partition(".")[2] for ref in fleet.names.all()}
    told, silent = answers([name for name in registry.providers() if name in used] if used else [], _find)
    # looked up after the answers: whoever makes a host writes it down before
    known = list(fleet.places.all())
    for name, error in silent.items():
        tell(f"{name} does not say which hosts there are: {error.message}")
    for name, found in told.items():
        # our own providers find by a label with this home in it; of others nobody can be sure
        kind = "unknown host" if name in builtin.mngr_providers() else "strange host"
        for host, id in sorted(found.items()):
            place = Place(name=f"{host}.{name}", made=True, id=id)
            if place.name not in {each.name for each in known}:
                yield Leftover(host=place.name, kind=kind, what=place.name, place=place)


def _images(fleet: Fleet, tell: Tell) -> Iterator[Leftover]:
    """Of hosts that were prepared for others, where it is up to us to remove them."""
    from mngr.fleet.prepare import is_old, providers_with_images

    def ask(name: str) -> list[str]:
        unused = getattr(registry.provider(name), "unused_images", None)
        return unused() if unused else []

    told, silent = answers([name for name in providers_with_images(fleet) if name in registry.providers()], ask)
    for name, error in silent.items():
        tell(f"{name} does not say which images there are: {error.message}")
    for name, images in told.items():
        yield from (Leftover(host=name, kind="image", what=image) for image in images if is_old(image, _TIME_TO_USE))


def _find(name: str) -> dict[str, str]:
    provider = registry.provider(name)
    return provider.find() if provider.makes else {}


def sweep(fleet: Fleet, found: list[Leftover], tell: Tell = _silent) -> list[Leftover]:
    """Removes what is safe to remove; those that it removed."""
    gone: list[Leftover] = []
    for leftover in found:
        try:
            if _is_swept(fleet, leftover):
                gone.append(leftover)
        except HostUnreachable as error:
            tell(f"{leftover.what} stays: {error.message}")
    return gone


def _is_swept(fleet: Fleet, leftover: Leftover) -> bool:
    if not leftover.removable:
        return False
    if leftover.place:
        from mngr.fleet import hosting

        if hosting.agents_on(fleet, leftover.place.name):
            return False  # it has become somebody's
        hosting.remove(fleet, leftover.place)
    elif leftover.kind == "image":
        registry.provider(leftover.host).discard(leftover.what)  # type: ignore[attr-defined]
    elif leftover.kind == "name" and leftover.ref:
        fleet.names.release(leftover.ref)
    elif leftover.kind == "create" and leftover.ref:
        done = destroy(fleet, [leftover.ref], force=True, purge=not leftover.ran)
        return all(outcome.ok for outcome in done)
    else:
        line = f"{_script()}\nsweep {leftover.kind} {quote(leftover.what)}"
        return hosts.check(fleet.host(leftover.host), line, deadline=300) != "kept\n"
    return True


def _script() -> str:
    return "\n".join(hosts.read_script(__file__, name) for name in ("tree.sh", "gc.sh"))
