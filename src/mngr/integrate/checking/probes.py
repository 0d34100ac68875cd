"""Questions to the tests. A red counts only when it repeats: what is red once and then green is flaky, is told, and is
no reason for anything. Questions are asked for all trees at once.

`together` asks the same about runs of everything in one process. What is red there is repeated there: alone it may well
be green, and that would not make it flaky."""

from __future__ import annotations

from mngr.integrate.checking.outcomes import ERROR, MISSING, TIMED_OUT, Outcome
from mngr.integrate.checking.own import written_in
from mngr.integrate.checking.suite import SURE
from mngr.integrate.plain import counted
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mngr.integrate.checking.suite import Suite

    Answers = dict[str, dict[str, Outcome]]  # by tree and test

_LOST = Outcome(word=ERROR, said="its function is there, but pytest does not find it")


class Probes:
    def __init__(self, suite: Suite, say: Callable[[str], None], whole: bool = False) -> None:
        self._suite, self._say, self.whole = suite, say, whole
        self.flaky: dict[str, None] = {}  # in the order in which they were seen
        self._expected: set[str] = set()

    def together(self) -> Probes:
        """Its flaky tests are its own."""
        return Probes(self._suite, self._say, whole=True)

    def expect(self, tests: Iterable[str]) -> None:
        """From now on it is red, not missing, if one of these is not run where its function is."""
        self._expected.update(tests)

    def once(self, why: str, wanted: Mapping[str, Sequence[str]], turn: int = 1) -> Answers:
        new = self._suite.unknown(wanted, turn, self.whole)
        if new:
            trees = f" on {len(new)} trees" if len(new) > 1 else ""
            what = "in one run of all" if self.whole else counted(sum(map(len, new.values())), "test")
            self._say(f"{why}: {what}{trees}")
        found = self._suite.run_all(wanted, turn, self.whole)
        return {tree: self._with_lost(tree, answers) for tree, answers in found.items()}

    def _with_lost(self, tree: str, answers: dict[str, Outcome]) -> dict[str, Outcome]:
        gone = [test for test, found in answers.items() if found.word == MISSING and test in self._expected]
        return {**answers, **dict.fromkeys(written_in(self._suite.scratch, tree, gone), _LOST)}

    def ask(self, why: str, wanted: Mapping[str, Sequence[str]]) -> Answers:
        """The same, and what is red is run again: of two outcomes the better one counts."""
        found = self.once(why, wanted)
        red = {tree: [test for test, outcome in answers.items() if outcome.is_red] for tree, answers in found.items()}
        red = {tree: tests for tree, tests in red.items() if tests}
        for tree, answers in self.once(f"{why}, what was red once more", red, 2).items():
            for test, outcome in answers.items():
                if not outcome.is_red:
                    self.flaky[test] = None
                    found[tree][test] = outcome
        return found

    def afresh(self, why: str, tree: str, tests: Sequence[str]) -> dict[str, Outcome]:
        """In a checkout where nothing was run before: what others have left there is no reason for a red."""
        if not tests:
            return {}
        self._say(f"{why}, in a new checkout: {counted(len(tests), 'test')}")
        return self._with_lost(tree, self._suite.run_afresh(tree, tests, self.whole))

    def sure(self, why: str, breaks: Sequence[Break]) -> list[Break]:
        """Those that stay green on the one tree and red on the other. Others are flaky."""
        left = list(breaks)
        for turn in range(2, SURE + 1):
            wanted: dict[str, list[str]] = {}
            for each in left:
                for tree in each.open_at(turn):
                    wanted.setdefault(tree, []).append(each.test)
            found = self.once(why, wanted, turn)
            wrong = [
                each
                for each in left
                if any(found[tree][each.test].is_red != (tree == each.red) for tree in each.open_at(turn))
            ]
            self.flaky.update(dict.fromkeys(each.test for each in wrong))
            left = [each for each in left if each not in wrong]
        return left


class Break(Record):
    """A test that is green on one tree and red on the next one."""

    test: str
    green: str
    red: str
    outcome: Outcome  # there

    def open_at(self, turn: int) -> list[str]:
        """One that hangs takes its whole time: two times are enough."""
        return [self.green, self.red] if turn == 2 or self.outcome.word != TIMED_OUT else [self.green]


class Search:
    """For a place from which on a test answers yes, among trees in a row. At `low` it does not, at `high` it does; in
    the end they are neighbours. `hints` are places where it is likely: those are tried first. `backwards` is for tests
    that may have changed their answer several times: it goes from the end, in steps that double, until one says no."""

    def __init__(
        self,
        test: str,
        low: int,
        high: int,
        tree: Callable[[int], str | None],
        hints: Iterable[int] = (),
        backwards: bool = False,
    ) -> None:
        self.test, self.low, self.high = test, low, high
        self.tree = tree  # at a place; None: there is none, and so no yes
        self._hints = list(hints)
        self._end, self._step = high, int(backwards)  # a step of 0: no more

    @property
    def is_over(self) -> bool:
        return self.high - self.low <= 1

    @property
    def next(self) -> list[int]:
        """At a hint, both sides of it at once: mostly that is all there is to ask."""
        if self._step:
            return [max(self.low + 1, self._end - self._step)]
        for hint in self._hints:
            if places := [place for place in (hint - 1, hint) if self.low < place < self.high]:
                return places
        return [(self.low + self.high) // 2]

    def take(self, place: int, yes: bool) -> None:
        if yes and place < self.high:
            self.high, self._step = place, 2 * self._step
        elif not yes and self.low < place < self.high:
            self.low, self._step = place, 0


def search(
    searches: Sequence[Search],
    ask: Callable[[Mapping[str, Sequence[str]]], Answers],
    is_yes: Callable[[Outcome], bool],
) -> None:
    """All of them side by side, in rounds: what concerns the same tree is one run."""
    while open_ := [each for each in searches if not each.is_over]:
        places = [(each, place, each.tree(place)) for each in open_ for place in each.next]
        wanted: dict[str, list[str]] = {}
        for each, _, tree in places:
            if tree is not None:
                wanted.setdefault(tree, []).append(each.test)
        found = ask(wanted)
        for each, place, tree in places:
            each.take(place, tree is not None and is_yes(found[tree][each.test]))
