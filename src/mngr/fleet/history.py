"""events: what happened to agents, as it was written down, and as it happens."""

from __future__ import annotations

from mngr import hosts, jsonline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.model import Ref


LATEST = 1e11  # what is later, in seconds, is no time that any clock knows


def history(fleet: Fleet, refs: list[Ref]) -> list[dict[str, object]]:
    """All events of these agents in the order in which they happened. A line that cannot be read is passed over."""
    found: list[dict[str, object]] = []
    for name in {ref.host for ref in refs}:
        files = " ".join(f"{ref.id}/events.jsonl" for ref in refs if ref.host == name)
        done = hosts.run(fleet.host(name), f'cd "$H/agents" && cat /dev/null {files}', deadline=60)
        for line in done.out.split("\n"):
            try:
                event = jsonline.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                found.append(event)
    return sorted(found, key=_time)


def _time(event: dict[str, object]) -> float:
    time = event.get("time")
    return float(time) if isinstance(time, int | float) and 0 <= time < LATEST else 0.0
