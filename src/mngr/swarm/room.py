"""Has a host room for one more agent? Memory that is used up and processors that are far behind make every agent there
fail at once, in ways that look like the agents' own faults; waiting a little costs nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.fleet.machine import Machine


def room(machine: Machine, settings: dict[str, Any]) -> str:
    """Why not; "" if it has. What a host does not tell never refuses."""
    least, most = settings["min-memory"], settings["max-load"]
    if machine.memory_free is not None and machine.memory_total:
        percent = 100 * machine.memory_free / machine.memory_total
        if percent < least:
            return f"only {percent:.0f}% of its memory is free (min-memory={least:g})"
    if machine.load is not None and machine.cores:
        load = machine.load / machine.cores
        if load > most:
            return f"its load is {load:.1f} for each core (max-load={most:g})"
    return ""
