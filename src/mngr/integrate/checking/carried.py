"""Tests that travel with a fix. A changed test that is red without fix K and green with it goes into the commit of K:
so the commit below is green without K, and whoever reverts K reverts the test with it. What makes another test red as
long as K is not there travels as well."""

from __future__ import annotations

from functools import partial

from mngr.integrate.checking.bisect import some
from mngr.integrate.checking.outcomes import Outcome
from mngr.integrate.checking.probes import Search, search
from mngr.integrate.picking.stack import FIX, REST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.integrate.change import Group
    from mngr.integrate.checking.own import Own
    from mngr.integrate.checking.probes import Probes
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Plan, Stack, Step

    Build = Callable[[Scratch, Plan], Stack]

_MOST_ROUNDS = 5  # what is moved can make something red that builds on it


class Carrier:
    """`plan` and `stack` are as they are now. `needed_by` has tests, by the key of the fix they need. `others` are
    tests that nothing of the fold has written."""

    def __init__(
        self,
        scratch: Scratch,
        plan: Plan,
        stack: Stack,
        own: Own,
        probes: Probes,
        build: Build,
        others: Sequence[str] = (),
    ) -> None:
        self._scratch, self._own, self._probes, self._build = scratch, own, probes, build
        self._base, self._others = scratch.tree_of(scratch.base), others
        self.plan, self.stack = plan, stack
        self.needed_by: dict[str, list[str]] = {}

    def carry(self) -> None:
        refused: set[str] = set()
        for _ in range(_MOST_ROUNDS):
            # All tests only when those of the changes themselves have told everything: they take long.
            found = self._found((), refused) or self._found(self._others, refused)
            if not found:
                return
            refused |= self._move(found)

    def _found(self, others: Sequence[str], refused: set[str]) -> dict[str, dict[str, Step]]:
        """By group of the fold: tests that are red because of it and need a fix, with the fix."""
        rest, fixes = _parts(self.stack)
        if rest is None or not fixes:
            return {}
        groups = [each.group for each in rest.picks]
        makers: dict[str, list[Group]] = {}  # by test
        for group in groups:
            for test in self._own.written(group):
                makers.setdefault(test, []).append(group)
        which = "all tests" if others else "tests of the changes that are folded"
        below = self._reds(f"{which}, without any fix", rest.tree, [*makers, *others])
        above = self._reds("those that are red, with all fixes", self.stack.tree, below)
        broken = [test for test in below if test not in makers and test not in above]
        makers.update(self._causes(broken, rest))
        ends = dict.fromkeys((test for test in below if test in makers and test not in above), len(fixes))
        lost = {test: _own_fixes(makers[test], fixes) for test in above if test in makers}
        ends.update(self._green_for_a_while(lost, fixes))
        needed = self._first_fix_of(ends, makers, rest, fixes)
        found: dict[str, dict[str, Step]] = {}
        for test, step in needed.items():
            for group in makers[test]:
                found.setdefault(group.key, {})[test] = step
        return {group.key: found[group.key] for group in groups if group.key in found and group.key not in refused}

    def _reds(self, why: str, tree: str, tests: Sequence[str]) -> list[str]:
        found = self._probes.ask(why, {tree: tests})[tree]
        return [test for test in tests if found[test].is_red and test not in self._probes.flaky]

    def _causes(self, tests: list[str], rest: Step) -> dict[str, list[Group]]:
        """What in the fold makes them red, which are green at the base and in the end."""
        before = self._probes.ask("those that need a fix, at the base", {self._base: tests})[self._base]
        trees = [self._base, *(each.tree for each in rest.picks)]
        searches = [
            Search(test, 0, len(rest.picks), trees.__getitem__, backwards=True)
            for test in some([test for test in tests if before[test].is_green])
        ]
        search(searches, partial(self._probes.ask, "which change needs a fix"), _is_red)
        return {each.test: [rest.picks[each.high - 1].group] for each in searches}

    def _green_for_a_while(self, tests: dict[str, list[int]], fixes: list[Step]) -> dict[str, int]:
        """Of tests that are red in the end, with the places of their own fixes: up to where they are green. A later fix
        has broken them then. It is looked for at their own fixes, and from the end backwards in steps that double."""
        found: dict[str, int] = {}
        steps = [1 << n for n in range(len(fixes).bit_length()) if 1 << n < len(fixes)]
        for far in (0, *steps):
            places = {test: [len(fixes) - far] if far else own for test, own in tests.items() if test not in found}
            wanted: dict[str, list[str]] = {}
            for test, each in places.items():
                for place in each:
                    wanted.setdefault(fixes[place - 1].tree, []).append(test)
            answers = self._probes.once("whether they are green before some fix", wanted)
            for test, each in places.items():
                if green := [place for place in each if answers[fixes[place - 1].tree][test].is_green]:
                    found[test] = green[-1]
        return found

    def _first_fix_of(
        self, ends: dict[str, int], makers: dict[str, list[Group]], rest: Step, fixes: list[Step]
    ) -> dict[str, Step]:
        """`ends` says where a test is green, from 1; it is red without any fix."""
        trees = [rest.tree, *(step.tree for step in fixes)]
        searches = [
            Search(test, 0, end, trees.__getitem__, _own_fixes(makers[test], fixes)) for test, end in ends.items()
        ]
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
            seen = [test for test, step in found[key].items() if step.picks[0].group.key == fix.key]
            self.needed_by.setdefault(fix.key, []).extend(seen)
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


def _own_fixes(groups: list[Group], fixes: list[Step]) -> list[int]:
    """Places of the fixes of the same branches, from 1."""
    branches = _branches(groups)
    return [place for place, step in enumerate(fixes, 1) if branches & _branches([step.picks[0].group])]


def _branches(groups: list[Group]) -> set[str]:
    return {change.branch for group in groups for change in group.changes}


def _meet(one: Group, other: Group) -> bool:
    return not set(one.first.paths).isdisjoint(other.first.paths)


def _is_green(outcome: Outcome) -> bool:
    return outcome.is_green


def _is_red(outcome: Outcome) -> bool:
    return outcome.is_red
