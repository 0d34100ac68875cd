"""Tests that were red on the base and are green now, though no line of the program was changed for them: somebody has
mended a wrong test, or made a right one say nothing. Which of the two, only a reviewer can tell."""

from __future__ import annotations

from functools import partial

from mngr.integrate.checking.bisect import some
from mngr.integrate.checking.probes import Search, search
from mngr.integrate.picking.stack import REST
from mngr.record import Record
from mngr.swarm.testing.kinds import TEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.integrate.change import Group
    from mngr.integrate.checking.probes import Probes
    from mngr.integrate.picking.stack import Stack


class Turned(Record):
    group: Group
    tests: list[str]


def turned_green(stack: Stack, probes: Probes, base: str, tests: Sequence[str]) -> list[Turned]:
    """`tests` are those of the base that are green in the end. What is green in the commit below the fixes is green
    without any of them."""
    rest = next((step for step in stack.steps if step.kind == REST), None)
    if rest is None or all(each.group.first.kind != TEST for each in rest.picks):
        return []
    before = probes.ask("all tests, at the base", {base: tests})[base]
    red = [test for test in tests if before[test].is_red]
    below = probes.once("those that were red, without any fix", {rest.tree: red})[rest.tree]
    green = [test for test in red if below[test].is_green and test not in probes.flaky]
    trees = [base, *(each.tree for each in rest.picks)]
    searches = [Search(test, 0, len(rest.picks), trees.__getitem__, backwards=True) for test in some(green)]
    search(searches, partial(probes.once, "which change makes them green"), lambda outcome: outcome.is_green)
    places = {each.test: each.high - 1 for each in searches}
    of_files = {test.partition("::")[0]: place for test, place in places.items()}
    found: dict[int, list[str]] = {}
    for test in green:
        # Of very many, some were searched: the others go with what made another one of their file green.
        place = places.get(test, of_files.get(test.partition("::")[0], next(iter(places.values()))))
        found.setdefault(place, []).append(test)
    return [Turned(group=rest.picks[place].group, tests=found[place]) for place in sorted(found)]
