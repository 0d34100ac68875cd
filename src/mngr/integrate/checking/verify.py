"""The verification: is what was put together green? Tests that need a fix are moved to it; what breaks a test is found
and set aside, with the evidence; each fix is tried without. Nothing of it is stored but outcomes of tests, so to verify
the same again runs nothing, and after an interruption it goes on with what is known.

A test is a reason to set something aside only if it is red twice on the integrated tree and not red at the base, which
counts only in a checkout where nothing else was run. One that the base does not have counts like one that is green
there: somebody brought it. One that is not run any more although its function is there counts as red: somebody hides
it.

Tests are run apart first, spread over workers, since that finds most and is quick. What goes well apart is run together
then, in one process, as whoever types `pytest` will: a test can be red because of another one."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.integrate.checking.bisect import culprits
from mngr.integrate.checking.carried import Carrier
from mngr.integrate.checking.evidence import evidence
from mngr.integrate.checking.own import Own, function_of, written_in
from mngr.integrate.checking.probes import Probes
from mngr.integrate.checking.removed import Removed as Removed
from mngr.integrate.checking.removed import cut, removed, skipped
from mngr.integrate.checking.reverts import Revert as Revert
from mngr.integrate.checking.reverts import reverts
from mngr.integrate.checking.suite import COLLECTING
from mngr.integrate.checking.turned import Turned as Turned
from mngr.integrate.checking.turned import turned_green
from mngr.integrate.picking import stack as stacks
from mngr.integrate.picking.stack import FIX, REST, Plan, Stack
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.integrate.change import Group, Source
    from mngr.integrate.checking.bisect import Culprit
    from mngr.integrate.checking.outcomes import Outcome
    from mngr.integrate.checking.suite import Suite
    from mngr.integrate.picking.scratch import Scratch

    Build = Callable[[Scratch, Plan], Stack]

MOST_ROUNDS = 20  # in each of which something is set aside
_NO_VERIFY = "--no-verify integrates without running tests"


class Aside(Record):
    """A group that is not in because of a test."""

    group: Group
    why: str
    test: str = ""  # that it breaks; empty if it goes because of another group
    outcome: str = ""  # a word
    said: str = ""
    before: str = ""  # the tree on which the test is not red
    tree: str = ""  # the same with this group, where it is
    tests: list[str] = []  # noqa: RUF012 - all that it breaks
    other: Group | None = None  # it is green without that one


class Verified(Record):
    plan: Plan  # with what is carried, and with what was set aside among the dropped
    stack: Stack
    reds: list[Aside]
    flaky: list[str]
    red_at_base: list[str]  # and still red
    still_red: list[str]  # with nothing that could be set aside for it
    red_below: list[str] = []  # noqa: RUF012 - red without the fixes, but neither at the base nor in the end
    removed: list[Removed] = []  # noqa: RUF012 - tests that the base has, and that are not run any more
    turned: list[Turned] = []  # noqa: RUF012 - tests that are green by changes of tests alone
    tests: dict[str, int]  # how many, by outcome; none: nothing was run
    reverts: list[Revert]
    checked: dict[str, list[str]]  # by key of a group: what was found out about it


def verify(
    scratch: Scratch,
    plan: Plan,
    suite: Suite,
    sources: Sequence[Source],
    build: Build = stacks.build,
    say: Callable[[str], None] = lambda _: None,
) -> Verified:
    return _Verification(scratch, plan, suite, sources, build, say).verified()


class _Verification:
    def __init__(
        self,
        scratch: Scratch,
        plan: Plan,
        suite: Suite,
        sources: Sequence[Source],
        build: Build,
        say: Callable[[str], None],
    ) -> None:
        self._scratch, self._suite, self._build, self._say = scratch, suite, build, say
        self._plan = plan
        self._stack = build(scratch, plan)
        self._base = scratch.tree_of(scratch.base)
        groups = [] if suite.how.check else [*plan.rest, *(ranked.group for ranked in plan.fixes)]
        self._own = Own(scratch, groups, [] if suite.how.check else sources)
        self._probes = Probes(suite, say)
        self._together = self._probes.together()
        self._reds: list[Aside] = []
        self._needed_by: dict[str, list[str]] = {}  # tests that travel, by key of their fix
        self._watched: dict[str, None] = {}  # that something was set aside for
        self._red_at_base: dict[str, None] = {}

    def verified(self) -> Verified:
        at_base = self._tests_at_base()
        for _ in range(MOST_ROUNDS):
            self._carry(at_base)
            if not self._round(at_base):
                break
        at_base, there = (at_base, self._there()) if self._stack.steps else ([], [])
        outcomes = self._everything(there, at_base)
        red = {test for test, outcome in outcomes.items() if outcome.is_red}
        green = {test for test, outcome in outcomes.items() if outcome.is_green}
        below = self._red_below([test for test in outcomes if test in green], at_base)
        # Before what follows: it may ask the base for everything, and they ask it for some.
        turned = turned_green(self._stack, self._probes, self._base, [test for test in at_base if test in green])
        gone = [
            *removed(self._scratch, self._stack, self._gone(there, at_base)),
            *cut(self._stack, self._probes, self._base, at_base, at_base if there is None else there),
            *skipped(self._stack, self._probes, self._base, outcomes),
        ]
        flaky = {**self._probes.flaky, **self._together.flaky}
        checked = evidence(self._base, self._stack, self._own, self._probes, green, self._needed_by)
        reverted = reverts(self._scratch, self._stack, self._own, self._probes, green)
        return Verified(
            plan=self._plan,
            stack=self._stack,
            reds=self._reds,
            flaky=list(flaky),
            red_at_base=[test for test in self._red_at_base if test in red],
            still_red=[test for test in outcomes if test in red - self._red_at_base.keys() - flaky.keys()],
            red_below=below,
            removed=gone,
            turned=turned,
            tests=_counted(outcomes),
            reverts=reverted,
            checked=checked,
        )

    def _tests_at_base(self) -> list[str]:
        """If pytest does not run at all, nothing can be said; but a change may have mended just that."""
        try:
            return self._suite.collect(self._base)
        except MngrError as error:
            try:
                self._suite.collect(self._stack.tree)
            except MngrError:
                raise MngrError(error.message, f"{error.hint}; {_NO_VERIFY}" if error.hint else _NO_VERIFY) from None
            self._say(f"at the base no test can be run: {error.message}")
            return []

    def _carry(self, at_base: list[str]) -> None:
        there = self._there()
        folded = [each.group for step in self._stack.steps if step.kind == REST for each in step.picks]
        written = list(dict.fromkeys(test for group in folded for test in self._own.written(group)))
        others = self._others(there, at_base, written)
        carrier = Carrier(self._scratch, self._plan, self._stack, self._own, self._probes, self._build, others)
        carrier.carry()
        self._plan, self._stack = carrier.plan, carrier.stack
        for key, tests in carrier.needed_by.items():
            self._needed_by.setdefault(key, []).extend(tests)

    # What breaks something

    def _round(self, at_base: list[str]) -> bool:
        """Was something set aside? The changes' own tests come first: they are quick, and mostly tell."""
        if not self._stack.steps:
            return False
        there = self._there()
        if there is None and self._set_aside("can the tests be collected", [COLLECTING]):
            return True
        own = list(dict.fromkeys([*self._watched, *self._own_tests()]))
        others = self._others(there, at_base, own)
        return (
            self._set_aside("own tests of all changes", own)
            or self._set_aside("all other tests", others)
            or self._set_aside_together(there or [], [*own, *others])
        )

    def _own_tests(self) -> list[str]:
        return list(dict.fromkeys(test for each in self._stack.picks for test in self._own.of(each.group)))

    def _others(self, there: list[str] | None, at_base: list[str], own: list[str]) -> list[str]:
        """What cannot even be collected now is asked about by the names that it had, and so is what is gone."""
        found = at_base if there is None else there
        broken = {test for test in found if "::" not in test}
        gone = self._gone(there, at_base)
        self._probes.expect(gone)
        found = [*found, *(test for test in at_base if test.partition("::")[0] in broken), *gone]
        known = set(own)
        return [test for test in dict.fromkeys(found) if test not in known and function_of(test) not in known]

    def _gone(self, there: list[str] | None, at_base: list[str]) -> list[str]:
        """Functions of the base of which no test comes any more, whatever became of their parameters."""
        if there is None:
            return []
        now = {*map(function_of, there), *(test for test in there if "::" not in test)}
        functions = dict.fromkeys(map(function_of, at_base))
        return [test for test in functions if test not in now and test.partition("::")[0] not in now]

    def _there(self) -> list[str] | None:
        """The tests that there are now; None if they cannot be collected at all."""
        found: list[str] | None
        try:
            found = self._suite.collect(self._stack.tree)
        except MngrError as error:
            self._say(f"the tests cannot be collected: {error.message}")
            found = None
        self._own.limit_to(found)
        return found

    def _set_aside(self, why: str, tests: list[str]) -> bool:
        tree = self._stack.tree
        found = self._probes.ask(why, {tree: tests})[tree]
        reds = self._that_count({test: outcome for test, outcome in found.items() if outcome.is_red})
        if not reds:
            return False
        return self._without_culprits(reds, self._probes)

    def _set_aside_together(self, there: list[str], asked: list[str]) -> bool:
        reds = self._that_count(self._red_together(there, asked), self._together)
        return bool(reds) and self._without_culprits(reds, self._together)

    def _red_together(self, there: list[str], asked: list[str]) -> dict[str, Outcome]:
        """What is red only because of the others. `asked` were run apart on this tree."""
        if self._suite.how.check or not there:
            return {}
        tree, why = self._stack.tree, "all tests together"
        apart = self._probes.once("all tests", {tree: asked})[tree]
        red = {test for test, outcome in apart.items() if outcome.is_red and test not in self._probes.flaky}
        first = self._together.once(why, {tree: there})[tree]
        new = [test for test in there if first[test].is_red and test not in red and function_of(test) not in red]
        found = self._together.ask(why, {tree: new})[tree] if new else {}
        for test in (reds := {test: outcome for test, outcome in found.items() if outcome.is_red}):
            self._probes.flaky.pop(test, None)  # it is red in this company, and green in another
        return reds

    def _without_culprits(self, reds: dict[str, Outcome], probes: Probes) -> bool:
        guilty = culprits(self._scratch, self._plan, self._stack, self._own, probes, list(reds))
        for each in guilty:
            self._take_out(each, " when all tests are run together" if probes.whole else "")
        if guilty:
            self._stack = self._build(self._scratch, self._plan)
        return bool(guilty)

    def _that_count(self, reds: dict[str, Outcome], probes: Probes | None = None) -> dict[str, Outcome]:
        probes, why = probes or self._probes, "what is red, at the base"
        before = probes.ask(why, {self._base: list(reds)})[self._base] if reds else {}
        suspect = [test for test in reds if before[test].is_red and test not in self._red_at_base]
        sure = probes.afresh(why, self._base, suspect)
        self._red_at_base.update(dict.fromkeys(test for test in suspect if sure[test].is_red))
        known = self._red_at_base.keys() | probes.flaky.keys()
        return {test: found for test, found in reds.items() if test not in known}

    def _take_out(self, culprit: Culprit, when: str) -> None:
        self._watched.update(dict.fromkeys(culprit.tests))
        why = _why(culprit, when)
        self._say(f"set aside: {culprit.group.name} {culprit.group.first.subject}: {why}")
        aside = Aside(
            group=culprit.group,
            why=why,
            test=culprit.tests[0],
            outcome=culprit.outcome.word,
            said=culprit.outcome.said,
            before=culprit.before,
            tree=culprit.tree,
            tests=culprit.tests,
            other=culprit.other,
        )
        with_it = [
            Aside(group=each.group, why=f"it travels with {culprit.group.name}, which was set aside")
            for each in self._carried_by(culprit.group)
        ]
        for each in (aside, *with_it):
            if each.group.key not in self._plan.dropped:
                self._reds.append(each)
                self._plan = self._plan.replace(dropped={**self._plan.dropped, each.group.key: each.why})

    def _carried_by(self, fix: Group) -> list[stacks.Pick]:
        steps = [step for step in self._stack.steps if step.kind == FIX and step.picks[0].group.key == fix.key]
        return [each for step in steps for each in step.picks[1:]]

    # What is said about the rest

    def _everything(self, there: list[str] | None, at_base: list[str]) -> dict[str, Outcome]:
        """All tests on the tree that there is in the end; they are known but for the last rounds."""
        own = self._own_tests()
        nothing_known = [COLLECTING] if there is None else []
        tree, tests = self._stack.tree, [*nothing_known, *own, *self._others(there, at_base, own)]
        found = self._probes.ask("all tests, in the end", {tree: tests})[tree]
        self._that_count({test: outcome for test, outcome in found.items() if outcome.is_red})
        together = self._red_together(there or [], tests)
        self._that_count(together, self._together)
        return {**found, **together}

    def _red_below(self, green: list[str], at_base: list[str]) -> list[str]:
        """What nothing could be moved for."""
        tree = next((step.tree for step in self._stack.steps if step.kind == REST), None)
        if tree is None:
            return []
        gone = self._not_there_below(tree, at_base)
        asked = [test for test in green if function_of(test) not in gone]
        found = self._probes.ask("all tests, without any fix", {tree: asked})[tree]
        return list(self._that_count({test: outcome for test, outcome in found.items() if outcome.is_red}))

    def _not_there_below(self, tree: str, at_base: list[str]) -> set[str]:
        """Functions that came with a fix, or travel with one: without any, there is nothing to run."""
        picks = [each for step in self._stack.steps if step.kind == FIX for each in step.picks]
        new = {test for each in picks for test in self._own.written(each.group)} - set(map(function_of, at_base))
        return new - set(written_in(self._scratch, tree, new))


def _why(culprit: Culprit, when: str) -> str:
    more = f" and {len(culprit.tests) - 1} more" if culprit.tests[1:] else ""
    said = f"it breaks {culprit.tests[0]}{more}{when}: {culprit.was}, red with it"
    if culprit.other is None:
        return said
    return f"{said}; the two that do not go together are {culprit.other.name} and {culprit.group.name}"


def _counted(outcomes: dict[str, Outcome]) -> dict[str, int]:
    """A function of which pytest knows nothing is no test."""
    counts: dict[str, int] = {}
    for outcome in outcomes.values():
        if outcome.is_red or outcome.is_green:
            counts[outcome.word] = counts.get(outcome.word, 0) + 1
    return {word: counts[word] for word in ("passed", "skipped", "failed", "error", "timed out") if word in counts}
