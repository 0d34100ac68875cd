"""A process and everything below it: how much memory and processor time it takes. Read from /proc."""

from __future__ import annotations

import os
from pathlib import Path

from world import World

HAS_PROC = Path("/proc/self/smaps_rollup").exists()


def tree(world: World, root: int) -> set[int]:
    found, processes = {root}, world.processes()
    while more := {pid for pid, process in processes.items() if process.parent in found} - found:
        found |= more
    return found


def memory(pids: set[int]) -> float:
    """In KiB. Proportional: what several processes share is divided among them."""
    lines = (line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def seconds(pids: set[int]) -> float:
    """Of a processor, of these and of their children that have ended."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
