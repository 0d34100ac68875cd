"""Tests that travel with a fix. A changed test that is red without fix K and green with it goes into the commit of K:
so the commit below is green without K, and whoever reverts K reverts the test with it."""

from __future__ import annotations

from functools import partial

from mngr.integrate.outcomes import Outcome
from mngr.integrate.probes import Search, search
from mngr.integrate.stack import FIX, REST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.integrate.change import Group
    from mngr.integrate.own import Own
    from mngr.integrate.probes import Probes
    from mngr.integrate.scratch import Scratch
    from mngr.integrate.stack import Plan, Stack, Step

    Build = Callable[[Scratch, Plan], Stack]

_MOST_ROUNDS = 5  # what is moved can make something red that builds on it


class Carrier:
    """`plan` and `stack` are as they are now. `needed_by` has tests, by the key of the fix they need."""

    def __init__(self, scratch: Scratch, plan: Plan, stack: Stack, own: Own, probes: Probes, build: Build) -> None:
        self._scratch, self._own, self._probes, self._build = scratch, own, probes, build
        self.plan, self.stack = plan, stack
        self.needed_by: dict[str, list[str]] = {}

    def carry(self) -> None:
        refused: set[str] = set()
        for _ in range(_MOST_ROUNDS):
            found = {key: tests for key, tests in self._found().items() if key not in refused}
            if not found:
                return
            refused |= self._move(found)

    def _found(self) -> dict[str, dict[str, Step]]:
        """By group of the fold: its tests that need a fix, with the fix."""
        rest, fixes = _parts(self.stack)
        if rest is None or not fixes:
            return {}
        written = {each.group.key: self._own.written(each.group) for each in rest.picks}
        tests = list(dict.fromkeys(test for names in written.values() for test in names))
        below = self._probes.ask("tests of the changes that are folded, without any fix", {rest.tree: tests})
        red = [test for test, outcome in below[rest.tree].items() if outcome.is_red]
        above = self._probes.ask("those that are red, with all fixes", {self.stack.tree: red})[self.stack.tree]
        mended = [test for test in red if above[test].is_green and test not in self._probes.flaky]
        needed = self._first_fix_of(mended, rest, fixes)
        found = {key: {test: needed[test] for test in names if test in needed} for key, names in written.items()}
        return {key: tests for key, tests in found.items() if tests}

    def _first_fix_of(self, tests: list[str], rest: Step, fixes: list[Step]) -> dict[str, Step]:
        trees = [rest.tree, *(step.tree for step in fixes)]
        searches = []
        for test in tests:
            branches = _branches([each.group for each in rest.picks if test in self._own.written(each.group)])
            hints = [n for n, step in enumerate(fixes, 1) if branches & _branches([step.picks[0].group])]
            searches.append(Search(test, 0, len(fixes), trees.__getitem__, hints))
        # Once is enough: by a flake, a test may travel that need not, and nothing is lost.
        search(searches, partial(self._probes.once, "which fix they need"), _is_green)
        return {each.test: fixes[each.high - 1] for each in searches}

    def _move(self, found: dict[str, dict[str, Step]]) -> set[str]:
        """Gives those that had to stay, because something else would have been lost."""
        order = [step.tree for step in self.stack.steps]
        carried = {
            key: max(tests.values(), key=lambda step: order.index(step.tree)).picks[0].group
            for key, tests in found.items()
        }
        refused: set[str] = set()
        lost = self._try(carried)
        if lost:
            # What builds on it may travel too.
            groups = {group.key: group for group in self.plan.rest}
            more = {
                each.key: fix
                for each in lost
                for key, fix in carried.items()
                if each.key in groups and _meet(each, groups[key])
            }
            lost = self._try({**carried, **more})
            if lost:
                refused = {key for key in carried if any(_meet(each, groups[key]) for each in lost)} or set(carried)
                carried = {key: fix for key, fix in carried.items() if key not in refused}
                if self._try(carried):
                    return set(found)
        for key, fix in carried.items():
            self.needed_by.setdefault(fix.key, []).extend(found[key])
        return refused

    def _try(self, carried: dict[str, Group]) -> list[Group]:
        """What would be lost by it; if nothing is, it is so from now on."""
        more = {key: fix.key for key, fix in carried.items()}
        plan = self.plan.replace(carried={**self.plan.carried, **more})
        stack = self._build(self._scratch, plan)
        before = {left.group.key for left in self.stack.left}
        lost = [left.group for left in stack.left if left.group.key not in before]
        if not lost:
            self.plan, self.stack = plan, stack
        return lost


def _parts(stack: Stack) -> tuple[Step | None, list[Step]]:
    rest = next((step for step in stack.steps if step.kind == REST), None)
    return rest, [step for step in stack.steps if step.kind == FIX]


def _branches(groups: list[Group]) -> set[str]:
    return {change.branch for group in groups for change in group.changes}


def _meet(one: Group, other: Group) -> bool:
    return not set(one.first.paths).isdisjoint(other.first.paths)


def _is_green(outcome: Outcome) -> bool:
    return outcome.is_green
