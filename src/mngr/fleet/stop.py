"""stop: end an agent's whole process tree and its session; everything else of it stays, and start brings it back."""

from __future__ import annotations

from mngr import hosts, registry
from mngr.fleet.outcome import Outcome, per_host, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

GRACE = 5.0


def stop(fleet: Fleet, refs: Iterable[Ref], grace: float = GRACE) -> list[Outcome]:
    """TERM, `grace` seconds of patience, KILL. `did` is stopped, or idle for an agent of which nothing ran."""
    return per_host(fleet, refs, lambda host, group: _stop_there(host, group, grace))


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
