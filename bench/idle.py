"""What an idle agent keeps: memory and processes, beside a bare tmux session with the same program.

Memory is that of the tmux server and everything below it, less that of the empty server, for each agent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from figure import COUNT, KIB, Figure, Sizes
from tree import HAS_PROC, memory, tree
from world import World


def idle(sizes: Sizes) -> Iterator[Figure]:
    if not HAS_PROC:
        print("bench: there is no /proc/PID/smaps_rollup here: memory is not measured", file=sys.stderr)
        return
    with World() as world:
        bare_socket = str(world.root / "bare")
        world.run(world.create("first"))
        world.run(world.bare(*world.bare_session("first")))
        world.settle(2)
        world.run(world.mngr("stop", "first"), world.bare("kill-session", "-t", "=first"))
        world.settle(0)
        empty, bare_empty = memory(_tree(world, world.socket)), memory(_tree(world, bare_socket))
        world.run(world.create("x", "--count", str(sizes.group)))
        world.settle(sizes.group)
        ours_tree = _tree(world, world.socket)
        ours = (memory(ours_tree) - empty) / sizes.group
        others = set(world.processes()) - ours_tree - _tree(world, bare_socket)
        for number in range(sizes.group):
            world.run(world.bare(*world.bare_session(f"x{number}")))
        world.settle(2 * sizes.group)
        bare_tree = _tree(world, bare_socket)
        bare = (memory(bare_tree) - bare_empty) / sizes.group
    yield Figure("memory per idle agent", unit=KIB, ours=[ours], floors=[bare])
    per_agent, per_session = (len(ours_tree) - 1) / sizes.group, (len(bare_tree) - 1) / sizes.group
    yield Figure("processes per idle agent", unit=COUNT, ours=[per_agent], floors=[per_session])
    yield Figure("processes left besides these and tmux", unit=COUNT, ours=[len(others)])


def _tree(world: World, socket: str) -> set[int]:
    """The server and all that descends from it."""
    server = subprocess.run(["tmux", "-S", socket, "display", "-p", "#{pid}"], capture_output=True, text=True)
    return tree(world, int(server.stdout))
