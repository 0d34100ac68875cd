"""Tests that the base has and the integrated tree has not, because their functions are gone: that is nobody's failure,
but a reviewer must hear of it, and of the change that has done it."""

from __future__ import annotations

from mngr.integrate.checking.own import written_in
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.integrate.change import Group
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Stack


class Removed(Record):
    test: str
    by: Group | None = None  # None: its function was in no file of that name


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
