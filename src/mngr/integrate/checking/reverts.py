"""Can a fix be taken out again? It is reverted from the end of the stack, and the tests of its neighbours are run
without it: those of the steps beside it, and of steps that touch the same paths."""

from __future__ import annotations

from mngr.integrate.picking.pick import unpick
from mngr.integrate.picking.stack import FIX
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.integrate.change import Group
    from mngr.integrate.checking.own import Own
    from mngr.integrate.checking.probes import Probes
    from mngr.integrate.picking.pick import Picked
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Stack, Step


class Revert(Record):
    group: Group
    clean: bool
    conflicts: list[str] = []  # noqa: RUF012 - paths
    breaks: list[str] = []  # noqa: RUF012 - tests of other fixes, which are green with it
    tests: int = 0  # that were run without it


def reverts(scratch: Scratch, stack: Stack, own: Own, probes: Probes, green: set[str]) -> list[Revert]:
    """For each fix, in their order. Tests count that are green with all of them."""
    fixes = [step for step in stack.steps if step.kind == FIX]
    without = _without(scratch, stack, fixes)
    wanted: dict[str, list[str]] = {}
    asked: list[list[str]] = []
    for place, picked in enumerate(without):
        asked.append([test for test in _of_neighbours(fixes, place, own) if test in green] if picked.is_clean else [])
        wanted.setdefault(picked.tree, []).extend(asked[-1])
    found = probes.ask("each fix reverted, the tests of its neighbours", wanted)
    return [
        Revert(
            group=step.picks[0].group,
            clean=picked.is_clean,
            conflicts=sorted(picked.conflicts),
            breaks=[test for test in tests if found[picked.tree][test].is_red],
            tests=sum(found[picked.tree][test].is_green or found[picked.tree][test].is_red for test in tests),
        )
        for step, picked, tests in zip(fixes, without, asked, strict=True)
    ]


def _without(scratch: Scratch, stack: Stack, fixes: list[Step]) -> list[Picked]:
    below = {id(step): before.tree for before, step in zip(stack.steps, stack.steps[1:], strict=False)}
    base = scratch.tree_of(scratch.base)
    found = []
    for step in fixes:
        parent = scratch.commit(below.get(id(step), base), [])
        found.append(unpick(scratch, stack.tree, scratch.commit(step.tree, [parent]), parent))
    return found


def _of_neighbours(fixes: list[Step], place: int, own: Own) -> list[str]:
    """Its own are not among them."""
    paths = _paths(fixes[place])
    near = [
        step
        for n, step in enumerate(fixes)
        if n != place and (abs(n - place) == 1 or not paths.isdisjoint(_paths(step)))
    ]
    mine = {test for each in fixes[place].picks for test in own.of(each.group)}
    theirs = dict.fromkeys(test for step in near for each in step.picks for test in own.of(each.group))
    return [test for test in theirs if test not in mine]


def _paths(step: Step) -> set[str]:
    return {path for each in step.picks for path in each.group.first.paths}
