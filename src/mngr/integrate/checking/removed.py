"""Tests that the base has and that are not run any more: because their functions are gone, because some of their
parameters are, or because they are skipped now. That is nobody's failure, but a reviewer must hear of it, and of the
change that has done it."""

from __future__ import annotations

from functools import partial

from mngr.integrate.checking.bisect import some
from mngr.integrate.checking.outcomes import MISSING, SKIPPED
from mngr.integrate.checking.own import function_of, written_in
from mngr.integrate.checking.probes import Search, search
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.integrate.change import Group
    from mngr.integrate.checking.outcomes import Outcome
    from mngr.integrate.checking.probes import Probes
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Stack

GONE, CUT = "removed", "parameters removed"


class Removed(Record):
    test: str
    by: Group | None = None  # None: nobody knows
    how: str = GONE


def removed(scratch: Scratch, stack: Stack, tests: Sequence[str]) -> list[Removed]:
    """Of tests that are not run any more, those whose functions are gone."""
    kept = set(written_in(scratch, stack.tree, tests))
    gone = [test for test in tests if test not in kept]
    left = set(written_in(scratch, scratch.base, gone))
    by: dict[str, Group] = {}
    files = {test.partition("::")[0] for test in left}
    for pick in stack.picks:
        if left and not files.isdisjoint(pick.group.first.paths):
            still = set(written_in(scratch, pick.tree, left))
            by.update(dict.fromkeys(left - still, pick.group))
            left = still
    return [Removed(test=test, by=by.get(test)) for test in gone]


def cut(stack: Stack, probes: Probes, base: str, at_base: Sequence[str], there: Sequence[str]) -> list[Removed]:
    """Tests of functions that are still run, but not with these parameters."""
    now, functions = set(there), set(map(function_of, there))
    gone = [test for test in at_base if test not in now and "[" in test and function_of(test) in functions]
    return _traced(stack, probes, base, gone, MISSING, CUT)


def skipped(stack: Stack, probes: Probes, base: str, outcomes: Mapping[str, Outcome]) -> list[Removed]:
    """Tests that the base runs, whatever comes of it. One that is expected to fail counts as skipped too."""
    now = [test for test, outcome in outcomes.items() if outcome.word == SKIPPED]
    before = probes.once("what is skipped, at the base", {base: now})[base]
    new = [test for test in now if before[test].word not in (SKIPPED, MISSING)]
    return _traced(stack, probes, base, new, SKIPPED, SKIPPED)


def _traced(stack: Stack, probes: Probes, base: str, tests: Sequence[str], word: str, how: str) -> list[Removed]:
    """One test of each function is searched: what did it to that one, did it to the others."""
    trees = [base, *(each.tree for each in stack.picks)]
    first = {function_of(test): test for test in reversed(tests)}
    searches = [
        Search(test, 0, len(stack.picks), trees.__getitem__, backwards=True) for test in some(list(first.values()))
    ]
    search(searches, partial(probes.once, "since when they are not run"), lambda outcome: outcome.word == word)
    by = {function_of(each.test): stack.picks[each.high - 1].group for each in searches}
    return [Removed(test=test, by=by.get(function_of(test)), how=how) for test in tests]
