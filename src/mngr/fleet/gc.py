"""gc: what is left over from interrupted work: names, directories, sessions, parked work whose time is up."""

from __future__ import annotations

import time

from mngr import hosts
from mngr.fleet.destroy import destroy
from mngr.fleet.survey import agents
from mngr.model import STARTING, Ref
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet

KEEP_TRASH = 14 * 86400.0
_WORDS = {
    "file": "temporary file of a script that is gone",
    "work": "work dir without an agent, with nothing unsaved in it",
    "unsaved": "work dir without an agent, with unsaved work: look at it, and remove it yourself",
    "trash": "parked work, older than 14 days",
    "session": "tmux session without an agent",
    "store": "object store that nobody borrows from",
    "feed": "feed of events, grown long",
    "name": "name without an agent",
    "create": "agent whose create was interrupted",
    "integration": "integration that was killed: its scratch repository and checkouts",
}


class Leftover(Record):
    host: str
    kind: str
    what: str
    ref: Ref | None = None
    ran: bool = True  # False: its program never started, so that nothing in it is anybody's work

    def __str__(self) -> str:
        return f"{self.what}: {_WORDS[self.kind]}"

    @property
    def removable(self) -> bool:
        return self.kind != "unsaved"


def leftovers(fleet: Fleet) -> list[Leftover]:
    found: list[Leftover] = []
    statuses = agents(fleet)
    there = {status.id: status.agent.name if status.agent else None for status in statuses}
    found += [
        Leftover(host=ref.host, kind="name", what=ref.name, ref=ref)
        for ref in fleet.names.all()
        # a rename that was killed leaves two names of one agent, whose record has one of them
        if there.get(ref.id, "") not in (ref.name, None) and fleet.names.is_leftover(ref)
    ]
    for status in statuses:
        if status.evidence.creating and not status.evidence.creator_alive:
            ref = status.agent.ref if status.agent else Ref(id=status.id, name=status.name, type="", host=status.host)
            written = status.evidence.written
            ran = written is None or written.state != STARTING
            found.append(Leftover(host=status.host, kind="create", what=status.name, ref=ref, ran=ran))
    script = _script()
    for host in fleet.hosts():
        for line in hosts.check(
            host, f"{script}\nleftovers {int(time.time() - KEEP_TRASH)}", deadline=120
        ).splitlines():
            kind, _, what = line.partition(" ")
            found.append(Leftover(host=host.name, kind=kind, what=what))
    return found


def sweep(fleet: Fleet, found: list[Leftover]) -> list[Leftover]:
    """Removes what is safe to remove; those that it removed."""
    gone: list[Leftover] = []
    script = _script()
    for leftover in found:
        if leftover.kind == "name" and leftover.ref:
            fleet.names.release(leftover.ref)
        elif leftover.kind == "create" and leftover.ref:
            if not all(outcome.ok for outcome in destroy(fleet, [leftover.ref], force=True, purge=not leftover.ran)):
                continue
        elif leftover.removable:
            line = f"{script}\nsweep {leftover.kind} {quote(leftover.what)}"
            if hosts.check(fleet.host(leftover.host), line, deadline=300) == "kept\n":
                continue
        else:
            continue
        gone.append(leftover)
    return gone


def _script() -> str:
    return "\n".join(hosts.read_script(__file__, name) for name in ("tree.sh", "gc.sh"))
