"""What is said about a change because tests were run: in its commit, and to whoever reviews it."""

from __future__ import annotations

from mngr.integrate.picking.stack import FIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mngr.integrate.checking.own import Own
    from mngr.integrate.checking.probes import Probes
    from mngr.integrate.picking.stack import Stack, Step


def evidence(
    base: str, stack: Stack, own: Own, probes: Probes, green: set[str], travelling: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """By key of a group. `green` are the tests that pass in the end: about others there is nothing to say here.
    `travelling` are those that were found to need a fix, by its key."""
    found: dict[str, list[str]] = {}
    below = base
    for step in stack.steps:
        if step.kind != FIX:
            below = step.tree
            for each in step.picks:
                if lines := [f"{test} passes" for test in own.written(each.group) if test in green]:
                    found[each.group.key] = lines
    fixes = [step for step in stack.steps if step.kind == FIX]
    for step, lines in zip(fixes, _of_fixes(below, fixes, own, probes, green), strict=True):
        key = step.picks[0].group.key
        needing = [test for test in dict.fromkeys(travelling.get(key, [])) if test in green]
        passing = {f"{test} passes" for test in needing}
        lines = [
            *(f"{test} fails without it, passes with it" for test in needing),
            *(line for line in lines if line not in passing),
        ]
        if lines:
            found[key] = lines
    return found


def _of_fixes(below: str, fixes: list[Step], own: Own, probes: Probes, green: set[str]) -> list[list[str]]:
    """A test that is red below all fixes is run right before its own fix, and with it. One that is not there below is
    only known to pass in the end."""
    tests = [[test for test in _tests_of(step, own) if test in green] for step in fixes]
    everything = dict.fromkeys(test for each in tests for test in each)
    first = probes.once("tests of the fixes, without any fix", {below: list(everything)})[below]
    red = [[test for test in each if first[test].is_red] for each in tests]
    trees = [below, *(step.tree for step in fixes)]
    wanted: dict[str, list[str]] = {}
    for place, each in enumerate(red):
        wanted.setdefault(trees[place], []).extend(each)
        wanted.setdefault(trees[place + 1], []).extend(each)
    found = probes.once("tests of the fixes, right before each and with it", wanted)
    told = []
    for place, each in enumerate(tests):
        before, after = found[trees[place]], found[trees[place + 1]]
        mended = [test for test in red[place] if before[test].is_red and after[test].is_green]
        lines = [f"{test} failed before, passes with it" for test in mended]
        told.append([*lines, *(f"{test} passes" for test in each if not first[test].is_red)])
    return told


def _tests_of(step: Step, own: Own) -> list[str]:
    return list(dict.fromkeys(test for each in step.picks for test in own.of(each.group)))
