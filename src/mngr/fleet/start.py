"""start: bring an agent back with the same command, environment and work dir."""

from __future__ import annotations

from mngr import hosts, registry, tmux
from mngr.errors import HostUnreachable
from mngr.fleet.fleet import LOCAL
from mngr.fleet.outcome import Outcome, per_host, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref


def start(fleet: Fleet, refs: Iterable[Ref], tell: Callable[[str], None] = lambda _: None) -> list[Outcome]:
    """`did` is started, or running for an agent that ran already. A host that was stopped is started first."""
    refs = list(refs)
    far = {ref.host for ref in refs} - {LOCAL}
    if not far:
        return per_host(fleet, refs, _start_there)
    from mngr.fleet.hosting import on_duty, revive, wake

    wake(fleet, far, tell)

    def there(host: Host, group: list[Ref]) -> list[Outcome]:
        try:
            return on_duty(fleet, host, lambda host: _start_there(host, group))
        except HostUnreachable:
            if not revive(fleet, host.name):
                raise
            return on_duty(fleet, host, lambda host: _start_there(host, group))

    return per_host(fleet, refs, there)


def _start_there(host: Host, refs: list[Ref]) -> list[Outcome]:
    parts = [
        hosts.read_script(hosts.__file__, "up.sh"),
        tmux.setup_lines(host.home),
        hosts.read_script(__file__, "survey.sh"),
        hosts.read_script(hosts.__file__, "lock.sh"),
        hosts.read_script(__file__, "start.sh"),
        "start " + " ".join(ref.id for ref in refs),
    ]
    told = read_lines(hosts.check(host, "\n".join(parts), deadline=300))
    outcomes = []
    for ref in refs:
        word, detail = told.get(ref.id, ("silent", "the host did not say what became of it"))
        if word == "gone":
            detail = "there is no such agent any more"
        ok = word in ("started", "running")
        did = word if ok or word == "gone" else "failed"
        outcomes.append(Outcome(id=ref.id, name=ref.name, did=did, ok=ok, why=detail))
        if word == "started":
            registry.notify("started", ref)
    return outcomes
