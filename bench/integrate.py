"""What it costs to make one branch of many, without running any test. The floor is one `git cherry-pick` of the commits
that go together, in a work tree that is checked out already; it does not read, group, rank or explain anything."""

from __future__ import annotations

from collections.abc import Iterator

from branches import Branches
from figure import Figure, Sizes
from world import World

_FILES = 5_000


def integrate(sizes: Sizes) -> Iterator[Figure]:
    shortest = None
    for count in (sizes.group // 2, sizes.group, 3 * sizes.group):
        with World(files=_FILES) as world:
            made = Branches(world.repo, count, world.env)
            figure = _compared(world, made, sizes.few_runs)
            yield figure
            each = figure.value / made.commits
            shortest = shortest or each
            yield Figure("  each commit, beside that of the fewest", 1.25, ours=[each], floors=[shortest])


def _compared(world: World, made: Branches, runs: int) -> Figure:
    name = f"integrate {len(made.names)} branches, {made.commits} commits"
    figure = Figure(name, most=10.0 * made.commits / 250)
    return figure.take_turns(runs, lambda run: _ours(world, made, run), lambda run: _floor(world, made, run))


def _ours(world: World, made: Branches, run: int) -> float:
    line = world.mngr("integrate", *made.names, "--base", "main", "--into", f"all-{run}", "--no-verify")
    return world.run(["sh", "-c", '"$@"; test $? = 6', "sh", *line])  # 6: the contradictions are left out, and told


def _floor(world: World, made: Branches, run: int) -> float:
    tree = world.work(f"floor{run}")
    world.run(world.git("worktree", "add", "-q", "--detach", str(tree), "main"))
    spans = [f"main..{name}" for name in made.apart]
    took = world.run(["sh", "-c", f'cd {tree} && for span do git cherry-pick "$span"; done >/dev/null', "sh", *spans])
    world.run(world.git("worktree", "remove", "--force", str(tree)))
    return took
