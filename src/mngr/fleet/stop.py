"""stop: end an agent's whole process tree and its session; everything else of it stays, and start brings it back."""

from __future__ import annotations

from mngr import hosts, registry
from mngr.fleet.fleet import LOCAL
from mngr.fleet.outcome import Outcome, per_host, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

GRACE = 5.0


def stop(
    fleet: Fleet,
    refs: Iterable[Ref],
    grace: float = GRACE,
    *,
    keep_host: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """TERM, `grace` seconds of patience, KILL. `did` is stopped, or idle for an agent of which nothing ran. A host that
    mngr made stops with the last agent there, unless `keep_host`."""
    refs = list(refs)
    far = {ref.host for ref in refs} - {LOCAL}
    if not far:
        return per_host(fleet, refs, lambda host, group: _stop_there(host, group, grace)) if refs else []
    from mngr.fleet.host_lock import InUse, JustStopped
    from mngr.fleet.hosting import rest

    def there(host: Host, group: list[Ref]) -> list[Outcome]:
        try:
            with InUse(fleet, host.name):
                return _stop_there(host, group, grace)
        except JustStopped:
            return [_idle(ref) for ref in group]

    idle = {ref.id: _idle(ref) for ref in refs if fleet.is_stopped(ref.host)}
    others = [ref for ref in refs if ref.id not in idle]
    done = idle | {outcome.id: outcome for outcome in (per_host(fleet, others, there) if others else [])}
    if not keep_host:
        rest(fleet, far, tell)
    return [done[ref.id] for ref in refs if ref.id in done]


def _idle(ref: Ref) -> Outcome:
    return Outcome(id=ref.id, name=ref.name, did="idle")


def _stop_there(host: Host, refs: list[Ref], grace: float) -> list[Outcome]:
    script = hosts.read_script(__file__, "stop.sh")
    ids = " ".join(ref.id for ref in refs)
    text = hosts.check(host, f"{script}\nstop {round(grace * 20)} {ids}", deadline=grace + 60)
    told = read_lines(text)
    survivors = [line.split()[1] for line in text.splitlines() if line.startswith("survives ")]
    outcomes = []
    for ref in refs:
        word, _ = told.get(ref.id, ("silent", ""))
        if word == "gone":
            outcomes.append(
                Outcome(id=ref.id, name=ref.name, did="gone", ok=False, why="there is no such agent any more")
            )
        elif survivors or word == "silent":
            why = (
                f"still alive: process {', '.join(survivors)}"
                if survivors
                else "the host did not say what became of it"
            )
            outcomes.append(Outcome(id=ref.id, name=ref.name, did="failed", ok=False, why=why))
        else:
            outcomes.append(Outcome(id=ref.id, name=ref.name, did="stopped" if word == "stopped" else "idle"))
            if word == "stopped":
                registry.notify("stopped", ref)
    return outcomes
