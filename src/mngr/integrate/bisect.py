"""Which change breaks a test. The picks of a stack are trees in a row, green at one end and red at the other: somewhere
between is a pick that is red with it and green with everything before it. If it is green on its own as well, there is
another one that it does not go together with, which is found the same way."""

from __future__ import annotations

from functools import partial

from mngr.integrate.attempt import attempt
from mngr.integrate.pick import Picked
from mngr.integrate.probes import Break, Search, search
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.integrate.change import Group
    from mngr.integrate.outcomes import Outcome
    from mngr.integrate.own import Own
    from mngr.integrate.probes import Probes
    from mngr.integrate.scratch import Scratch
    from mngr.integrate.stack import Plan, Stack


_MOST_SEARCHED = 30  # tests at a time


class Culprit(Record):
    group: Group
    place: int  # among the picks, from 0
    tests: list[str]  # that it breaks
    outcome: Outcome  # of the first of them
    before: str  # the tree without it
    tree: str  # with it
    other: Group | None = None  # that it does not go together with; None: it is red without any other


def culprits(
    scratch: Scratch, plan: Plan, stack: Stack, own: Own, probes: Probes, reds: Sequence[str]
) -> list[Culprit]:
    """Of tests that are red on the stack and not at its base; in the order of the stack. Of two that do not go together
    the later one is meant, unless the earlier one is a culprit for another reason: then the later one may be fine."""
    found = _breaking(scratch, stack, own, probes, _some(reds))
    with_others = _with_others(scratch, plan, stack, probes, found)
    keys = {each.group.key for each in with_others}
    return [each for each in with_others if each.other is None or each.other.key not in keys]


def _breaking(scratch: Scratch, stack: Stack, own: Own, probes: Probes, tests: Sequence[str]) -> list[Culprit]:
    trees = [scratch.tree_of(scratch.base), *(each.tree for each in stack.picks)]
    likely = [set(own.of(each.group)) for each in stack.picks]
    searches = []
    for test in tests:
        function = test.partition("[")[0]
        hints = [n for n, names in enumerate(likely, 1) if names & {test, function}]
        searches.append(Search(test, 0, len(stack.picks), trees.__getitem__, hints))
    why = "which change breaks them"
    search(searches, partial(probes.ask, why), _is_red)
    places = {each.test: each.high - 1 for each in searches if each.test not in probes.flaky}
    ends = probes.once(why, _by_tree((trees[place + 1], test) for test, place in places.items()))
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
            )
    return [found[place] for place in sorted(found)]


def _by_tree(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tree, test in pairs:
        found.setdefault(tree, []).append(test)
    return found


def _with_others(scratch: Scratch, plan: Plan, stack: Stack, probes: Probes, found: list[Culprit]) -> list[Culprit]:
    trees = [scratch.tree_of(scratch.base), *(each.tree for each in stack.picks)]
    alone: dict[int, Search] = {}
    for each in found:

        def with_it(place: int, each: Culprit = each) -> str | None:
            came = attempt(scratch, trees[place], each.group.first, plan.solved)
            return None if isinstance(came, Picked) else came.tree

        tree = with_it(0)
        if each.place and tree is not None:  # what builds on others cannot be had alone
            alone[each.place] = Search(each.tests[0], 0, each.place, with_it)
    first = {place: str(each.tree(0)) for place, each in alone.items()}
    wanted = _by_tree((tree, alone[place].test) for place, tree in first.items())
    answers = probes.ask("are they red on their own", wanted)
    together = {place: each for place, each in alone.items() if not answers[first[place]][each.test].is_red}
    search(list(together.values()), partial(probes.ask, "with which other change"), _is_red)
    return [
        each.replace(other=stack.picks[together[each.place].high - 1].group) if each.place in together else each
        for each in found
    ]


def _some(tests: Sequence[str]) -> list[str]:
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
