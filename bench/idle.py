"""What an idle agent keeps: memory and processes, beside a bare tmux session with the same program.

Memory is the proportional set size of the tmux server and everything below it, less that of the empty server, for each
agent. It is read from /proc; elsewhere these figures are left out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from figure import COUNT, KIB, Figure, Sizes
from world import World


def idle(sizes: Sizes) -> Iterator[Figure]:
    if not Path("/proc/self/smaps_rollup").exists():
        print("bench: there is no /proc/PID/smaps_rollup here: memory is not measured", file=sys.stderr)
        return
    with World() as world:
        bare_socket = str(world.root / "bare")
        world.run(world.create("first"))
        world.run(world.bare(*world.bare_session("first")))
        world.settle(2)
        world.run(world.mngr("stop", "first"), world.bare("kill-session", "-t", "=first"))
        world.settle(0)
        empty, bare_empty = _memory(world, world.socket), _memory(world, bare_socket)
        world.run(world.create("x", "--count", str(sizes.group)))
        world.settle(sizes.group)
        ours, tree = (_memory(world, world.socket) - empty) / sizes.group, _tree(world, world.socket)
        others = set(world.processes()) - tree - _tree(world, bare_socket)
        for number in range(sizes.group):
            world.run(world.bare(*world.bare_session(f"x{number}")))
        world.settle(2 * sizes.group)
        bare = (_memory(world, bare_socket) - bare_empty) / sizes.group
        bare_tree = _tree(world, bare_socket)
    yield Figure("memory per idle agent", unit=KIB, ours=[ours], floors=[bare])
    per_agent, per_session = (len(tree) - 1) / sizes.group, (len(bare_tree) - 1) / sizes.group
    yield Figure("processes per idle agent", unit=COUNT, ours=[per_agent], floors=[per_session])
    yield Figure("processes left besides these and tmux", unit=COUNT, ours=[len(others)])


def _memory(world: World, socket: str) -> float:
    """In KiB."""
    total = 0
    for pid in _tree(world, socket):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total


def _tree(world: World, socket: str) -> set[int]:
    """The server and all that descends from it."""
    server = subprocess.run(["tmux", "-S", socket, "display", "-p", "#{pid}"], capture_output=True, text=True)
    tree, processes = {int(server.stdout)}, world.processes()
    while more := {pid for pid, process in processes.items() if process.parent in tree} - tree:
        tree |= more
    return tree
