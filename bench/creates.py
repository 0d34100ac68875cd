"""What it costs to create one agent with a worktree: in a small repository, a hundred times, and in a large one."""

from __future__ import annotations

from collections.abc import Iterator

from figure import Figure, Sizes
from world import INTERPRETER, World


def creates(sizes: Sizes) -> Iterator[Figure]:
    with World() as world:
        one = Figure("create, small repository", target=4)
        _warm_up(world)
        for number in range(sizes.group):
            _pair(world, one, f"x{number}", 2 * number + 2)
        yield one
        many = Figure(f"{sizes.group} creates one by one", target=4)
        many.ours, many.floors = [sum(one.ours)], [sum(one.floors)]
        yield many
    with World(sizes.files) as world:
        large = Figure(f"create, repository of {sizes.files} files", target=4)
        _warm_up(world)
        for number in range(sizes.few_runs):
            name = f"x{number}"
            _pair(world, large, name, 2)
            # Gone before the next one, or the disk is still writing them when the clock runs again.
            world.run(world.mngr("destroy", "-f", name))
            world.run(world.bare("kill-session", "-t", f"={name}"))
            world.run(world.worktree_remove(name))
        yield large


def _warm_up(world: World) -> None:
    world.run(world.create("first"))
    world.run(world.worktree_add("first"))
    world.run(world.bare(*world.bare_session("first", world.work("first"))))
    world.settle(2)


def _pair(world: World, figure: Figure, name: str, running: int) -> None:
    figure.ours.append(world.run(world.create(name)))
    world.settle(running + 1)
    session = world.bare(*world.bare_session(name, world.work(name)))
    figure.floors.append(world.run(INTERPRETER, world.worktree_add(name), session))
    world.settle(running + 2)
