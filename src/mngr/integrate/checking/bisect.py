"""Which change breaks a test. The picks of a stack are trees in a row, green at one end and red at the other: somewhere
between is a pick that is red with it and green with everything before it. A test may be red, green and red again: the
last such pick is searched. If it is green on its own as well, there is another one that it does not go together with,
which is found the same way."""

from __future__ import annotations

from functools import partial

from mngr.integrate.checking.outcomes import MISSING
from mngr.integrate.checking.own import function_of
from mngr.integrate.checking.probes import Break, Search, search
from mngr.integrate.picking.attempt import attempt
from mngr.integrate.picking.pick import Picked
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.integrate.change import Group
    from mngr.integrate.checking.outcomes import Outcome
    from mngr.integrate.checking.own import Own
    from mngr.integrate.checking.probes import Probes
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Plan, Stack


_MOST_SEARCHED = 30  # tests at a time
_GREEN = "green with everything before it"


class Culprit(Record):
    group: Group
    place: int  # among the picks, from 0
    tests: list[str]  # that it breaks
    outcome: Outcome  # of the first of them
    before: str  # the tree without it
    tree: str  # with it
    was: str  # the first of them, without it
    other: Group | None = None  # that it does not go together with; None: it is red without any other


def culprits(
    scratch: Scratch, plan: Plan, stack: Stack, own: Own, probes: Probes, reds: Sequence[str]
) -> list[Culprit]:
    """Of tests that are red on the stack and not at its base; in the order of the stack. Of two that do not go together
    the later one is meant, unless the earlier one is a culprit for another reason: then the later one may be fine."""
    found = _breaking(scratch, stack, own, probes, some(reds))
    with_others = _with_others(scratch, plan, stack, probes, found)
    keys = {each.group.key for each in with_others}
    return [each for each in with_others if each.other is None or each.other.key not in keys]


def _breaking(scratch: Scratch, stack: Stack, own: Own, probes: Probes, tests: Sequence[str]) -> list[Culprit]:
    trees = [scratch.tree_of(scratch.base), *(each.tree for each in stack.picks)]
    likely = [set(own.of(each.group)) for each in stack.picks]
    searches = []
    for test in tests:
        hints = [n for n, names in enumerate(likely, 1) if names & {test, function_of(test)}]
        searches.append(Search(test, 0, len(stack.picks), trees.__getitem__, hints, backwards=True))
    why = "which change breaks them"
    search(searches, partial(probes.ask, why), _is_red)
    places = {each.test: each.high - 1 for each in searches if each.test not in probes.flaky}
    sides = ((trees[place + n], test) for test, place in places.items() for n in (0, 1))
    ends = probes.once(why, _by_tree(sides))
    breaks = [
        Break(test=test, green=trees[place], red=trees[place + 1], outcome=ends[trees[place + 1]][test])
        for test, place in places.items()
    ]
    found: dict[int, Culprit] = {}
    for each in probes.sure(f"{why}, to be sure", breaks):
        place = places[each.test]
        if place in found:
            found[place] = found[place].replace(tests=[*found[place].tests, each.test])
        else:
            found[place] = Culprit(
                group=stack.picks[place].group,
                place=place,
                tests=[each.test],
                outcome=each.outcome,
                before=each.green,
                tree=each.red,
                was="not there before" if ends[each.green][each.test].word == MISSING else _GREEN,
            )
    return [found[place] for place in sorted(found)]


def _by_tree(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tree, test in pairs:
        found.setdefault(tree, []).append(test)
    return found


def _with_others(scratch: Scratch, plan: Plan, stack: Stack, probes: Probes, found: list[Culprit]) -> list[Culprit]:
    """Each is tried with nothing but what its own branch has made. If it is green so, the other is searched."""
    end = len(stack.picks)
    alone: dict[int, Search] = {}
    for each in found:
        tree_at = partial(_with_own, scratch, plan, stack, each.group)
        if tree_at(0) is not None:  # what builds on others cannot be had alone
            alone[each.place] = Search(each.tests[0], 0, end, tree_at, backwards=True)
    first = {place: str(each.tree(0)) for place, each in alone.items()}
    wanted = _by_tree((tree, alone[place].test) for place, tree in first.items())
    answers = probes.ask("are they red on their own", wanted)
    together = {place: each for place, each in alone.items() if answers[first[place]][each.test].is_green}
    search(list(together.values()), partial(probes.ask, "with which other change"), _is_red)
    told = [_with_other(each, together[each.place], stack) if each.place in together else each for each in found]
    new = [each for each, before in zip(told, found, strict=True) if each.place != before.place]
    breaks = [Break(test=each.tests[0], green=each.before, red=each.tree, outcome=each.outcome) for each in new]
    sure = probes.sure("with which other change, to be sure", breaks)
    left = [each for each, broken in zip(new, breaks, strict=True) if broken in sure]
    return _once_each([each for each in told if each not in new or each in left])


def _with_own(scratch: Scratch, plan: Plan, stack: Stack, group: Group, place: int) -> str | None:
    """A stack up to there, and all that the group's branch has in it. None if that conflicts."""
    tree = stack.picks[place - 1].tree if place else scratch.tree_of(scratch.base)
    for pick in stack.picks[place:]:
        if any(change.branch == group.first.branch for change in pick.group.changes):
            came = attempt(scratch, tree, pick.group.first, plan.solved)
            if isinstance(came, Picked):
                return None
            tree = came.tree
    return tree


def _with_other(culprit: Culprit, found: Search, stack: Stack) -> Culprit:
    """Of the two, the later one is the culprit, if it could be seen without it."""
    place, before = found.high - 1, found.tree(found.low)
    other = stack.picks[place].group
    if place <= culprit.place or before is None:
        return culprit.replace(other=other)
    return culprit.replace(
        group=other,
        place=place,
        tests=[found.test],
        before=before,
        tree=str(found.tree(found.high)),
        was=f"{_GREEN} and what {culprit.group.first.branch} has",
        other=culprit.group,
    )


def _once_each(told: list[Culprit]) -> list[Culprit]:
    """In their order. What is said of one is what was found without regard to others, if something was."""
    found: dict[int, Culprit] = {}
    for each in sorted(told, key=lambda each: (each.place, each.other is not None)):
        known = found.get(each.place)
        found[each.place] = known.replace(tests=[*known.tests, *each.tests]) if known else each
    return list(found.values())


def some(tests: Sequence[str]) -> list[str]:
    """When whole files are red, one change is to blame, and any of their tests finds it: some of each are enough. What
    another one breaks is red in the next round still."""
    places: dict[str, int] = {}
    ranked: list[tuple[int, int, str]] = []
    for test in tests:
        file = test.partition("::")[0]
        places[file] = places.get(file, -1) + 1
        ranked.append((places[file], len(ranked), test))
    return [test for _, _, test in sorted(ranked)[:_MOST_SEARCHED]]


def _is_red(outcome: Outcome) -> bool:
    return outcome.is_red
