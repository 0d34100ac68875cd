"""How many processes a verb over many agents starts: the same number for 1, 10 and 100 of them. Counted by strace,
which follows every fork; where there is none, these figures are left out. The floor is the count for one agent."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

from figure import COUNT, Figure, Sizes, agents
from world import World


def spawned(sizes: Sizes) -> Iterator[Figure]:
    if not shutil.which("strace"):
        print("bench: strace is not installed: processes are not counted", file=sys.stderr)
        return
    counts = sorted({1, 10, sizes.group})
    with World() as world:
        running = 0
        for count in counts:
            world.run(world.create(f"x{count}", "--count", str(count)))
            running += count
        world.settle(running)
        for words in (["message", "-m", "a line of text"], ["stop"]):
            yield from _verb(world, words, counts)


def _verb(world: World, words: list[str], counts: list[int]) -> Iterator[Figure]:
    alone = 0
    for count in counts:
        selection = f"x{count}-*" if count > 1 else f"x{count}"
        number = _count(world, world.mngr(*words, selection))
        alone = alone or number
        yield Figure(f"processes of {words[0]}, {agents(count)}", 1.5, COUNT, [number], [alone])


def _count(world: World, argv: list[str]) -> int:
    """strace writes a line at the end of every process, with its pid in front; the verb's own is not counted."""
    trace = world.root / "trace"
    world.run(["strace", "-f", "-e", "trace=execve", "-o", str(trace), *argv])
    return len({line.split()[0] for line in trace.read_text().splitlines()}) - 1
