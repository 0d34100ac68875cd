"""The integrator: agents that solve what could not be merged. Each gets a work dir that holds just its conflict, made
with the ordinary verbs; what it commits there is looked at before it counts. A resolution is recorded, and so an input
of the next build: nothing is merged here.

What passed with either side alone must pass with both: that is all that is asked of a resolution beyond its form."""

from __future__ import annotations

import os

import mngr
from mngr import registry
from mngr.address import is_name
from mngr.agents import ALLOWLIST, BYPASS
from mngr.integrate.checking.own import Own
from mngr.integrate.picking.kinship import builds_on
from mngr.integrate.picking.pick import pick
from mngr.integrate.plain import one_line
from mngr.integrate.solving import telling, unsolved
from mngr.integrate.solving.conflict import carry, close, open_
from mngr.integrate.solving.errand import LABEL, PLACE, Question, ask
from mngr.model import NONE
from mngr.record import Record
from mngr.swarm.begin import slug
from mngr.swarm.integrated import DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from mngr.integrate.change import Source
    from mngr.integrate.checking.suite import Suite
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Left, Stack
    from mngr.integrate.solving.conflict import Closed, Opened
    from mngr.integrate.solving.errand import Answer
    from mngr.integrate.solving.resolutions import Resolutions

MOST_AT_ONCE = 4
_LONGEST_SLUG = 44
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["resolved", "why"],
    "properties": {"resolved": {"type": "boolean"}, "why": {"type": "string"}},
}


class Integrator(Record):
    """Who is asked, on this machine."""

    type: str
    args: list[str] = []  # noqa: RUF012 - Record copies defaults
    env: dict[str, str] = {}  # noqa: RUF012
    timeout: float = 900.0  # seconds for one question
    slug: str = ""  # of the integration, for names and labels; empty: that of its directory
    setup: str = ""  # a line of shell that makes a checkout ready for its tests
    copy: list[str] = []  # noqa: RUF012 - patterns of ignored files that it needs for them
    pytest: str = ""  # a line of shell, with its flags; empty: nobody knows how tests are run


def solve_all(
    fleet: mngr.Fleet,
    scratch: Scratch,
    stack: Stack,
    sources: Sequence[Source],
    suite: Suite | None,
    how: Integrator,
    resolutions: Resolutions,
    directory: str,
    say: Callable[[str], None],
    given_up: dict[str, str] | None = None,
) -> int:
    """Has some of what was left out solved, and says how much: after that, the stack has to be built again, since every
    solution changes what follows. So conflicts that share a file are asked about in different calls; 0 means that no
    further call will solve anything. `given_up` is filled with why, by key of the group: these are not asked again."""
    given_up = {} if given_up is None else given_up
    while batch := _apart(_askable(stack, given_up)):
        cases = [_Case(scratch, left, sources, suite, how, resolutions, directory, say) for left in batch]
        solved = sum(case.is_solved for case in cases)
        open_still = [case for case in cases if not case.is_solved]
        try:
            answers = _ask(fleet, open_still, how, directory, say)
        except BaseException:
            _interrupted(open_still, say)
            raise
        for case in open_still:
            why = case.settle(answers[case.agent])
            if why:
                given_up[case.left.group.key] = why
            solved += not why
        if solved:
            return solved
    return 0


def _askable(stack: Stack, given_up: dict[str, str]) -> list[Left]:
    """Without what builds on something that will not be there: whoever solves that brings the other in with it."""
    found = []
    gone = [*stack.dropped, *(left.group for left in stack.left if left.group.key in given_up)]
    for left in stack.left:
        if not left.picked.conflicts or left.group.key in given_up:
            continue
        if below := next((group for group in gone if builds_on(left.group, group)), None):
            given_up[left.group.key] = f"no agent was asked: it builds on {below.name}, which is not in"
            gone.append(left.group)
        else:
            found.append(left)
    return found


def _apart(all_left: Iterable[Left]) -> list[Left]:
    """As many as can be solved side by side."""
    batch: list[Left] = []
    taken: set[str] = set()
    for left in all_left:
        paths = {*left.picked.conflicts, *left.group.first.paths}
        if not taken & paths and len(batch) < MOST_AT_ONCE:
            batch.append(left)
            taken |= paths
    return batch


def _ask(
    fleet: mngr.Fleet, cases: list[_Case], how: Integrator, directory: str, say: Callable[[str], None]
) -> dict[str, Answer]:
    if not cases:
        return {}
    questions = []
    for case in cases:
        unsolved.mark_worker(case.opened, case.agent)
        carry(case.opened, case.repo, how.copy)
        questions.append(case.question(fleet.home))
    return ask(fleet, questions, into=os.path.join(directory, PLACE), timeout=how.timeout, say=say)


def _interrupted(cases: list[_Case], say: Callable[[str], None]) -> None:
    """What was found good is kept. What an agent had committed so far nobody has looked at: it counts as nothing, until
    somebody changes it."""
    for case in cases:
        case.keep_or_leave()
    if left := [case for case in cases if not case.is_solved]:
        places = " or ".join(case.opened.directory for case in left)
        say(f"stopped; the same command goes on, or solve it by hand in {places} and git commit there before")


class _Case:
    """One conflict, from here to its resolution."""

    def __init__(
        self,
        scratch: Scratch,
        left: Left,
        sources: Sequence[Source],
        suite: Suite | None,
        how: Integrator,
        resolutions: Resolutions,
        directory: str,
        say: Callable[[str], None],
    ) -> None:
        self.left, self.repo, self.is_solved = left, scratch.repo, False
        self._scratch, self._sources, self._suite, self._how = scratch, sources, suite, how
        self._resolutions, self._say = resolutions, say
        self._slug = how.slug or slug_of(directory)
        self.agent = f"{self._slug}-solve-{left.group.name}"
        self.tests = _tests(scratch, left, sources, suite)
        self.opened: Opened = open_(scratch, left, directory, say)
        self._closed: Closed | None = None
        self._take_what_is_there()

    def _take_what_is_there(self) -> None:
        """Somebody may have solved it where nobody was waiting for it."""
        if unsolved.worker(self.opened) or close(self.opened).tree == unsolved.refused(self.opened):
            return
        if not self._flaw():
            self._record(by="hand", why="")

    def question(self, home: str) -> Question:
        how = self._how
        prompt = telling.conflict(home, self._scratch, self.left, self._sources, self.tests, how.pytest)
        return Question(
            agent=self.agent,
            id=self.opened.key,
            request=request(how, self._slug, self.opened.directory).replace(setup=how.setup or None),
            prompt=prompt,
            schema=_SCHEMA,
            check=lambda _: self._flaw(),
            refusal=lambda result: "" if result["resolved"] else f"its agent says: {one_line(result['why'])}",
        )

    def settle(self, answer: Answer) -> str:
        """Why it is not solved; "" if it is."""
        if answer.result:
            self._record(by=self.agent, why=one_line(answer.result["why"]))
            return ""
        self.leave()
        self._say(f"{self.left.group.name} is not solved by {self.agent}: {answer.why}")
        return f"{self.agent}: {answer.why}"

    def keep_or_leave(self) -> None:
        if self._closed:
            self._record(by=self.agent, why="")
        else:
            self.leave()

    def leave(self) -> None:
        unsolved.mark_worker(self.opened, "")
        closed = close(self.opened)
        if closed.tree:
            unsolved.refuse(self.opened, closed.tree)

    def _record(self, *, by: str, why: str) -> None:
        assert self._closed is not None
        unsolved.record(self.opened, self._closed, self._resolutions, by=by, why=why)
        self.is_solved = True
        self._say(f"{self.left.group.name} is solved by {by}" + (f": {why}" if why else ""))

    def _flaw(self) -> str:
        """What is wrong with what is committed there."""
        closed = close(self.opened)
        if closed.problem:
            return closed.problem
        tree = self._resolutions.tree(self.left.picked, closed.files)
        if red := self._red(tree):
            unsolved.refuse(self.opened, closed.tree)
            return f"with it, {red[0]} does not pass any more" + (f", nor do {len(red) - 1} more" if red[1:] else "")
        self._closed = closed
        return ""

    def _red(self, tree: str) -> list[str]:
        """Tests of either side that passed with it alone, and now fail twice."""
        suite, tests = self._suite, self.tests
        if suite is None or not tests:
            return []
        green = {test for tree in self._alone() for test, found in suite.run(tree, tests).items() if found.is_green}
        wanted = [test for test in tests if test in green]
        for again in (False, True):
            if wanted:
                found = suite.run(tree, wanted, again=again)
                wanted = [test for test in wanted if not found[test].is_green]
        return wanted

    def _alone(self) -> list[str]:
        """Trees with one side only. What is no fix stands below all fixes, also those of its own branch: what passes
        only with them says nothing about the conflict."""
        change, onto = self.left.group.first, self.left.onto
        if change.is_fix:
            return [onto, self._scratch.tree_of(change.id)]
        picked = pick(self._scratch, self._scratch.tree_of(self._scratch.base), change)
        return [onto, picked.tree] if picked.is_clean else [onto]


def _tests(scratch: Scratch, left: Left, sources: Sequence[Source], suite: Suite | None) -> list[str]:
    """Of both sides. Where a command stands for all tests, it does so here."""
    if suite and suite.how.check:
        return [suite.how.check]
    groups = [left.group, *left.against]
    own = Own(scratch, groups, sources)
    found = dict.fromkeys(test for group in groups for test in own.of(group))
    return [test for test in found if test.rpartition("::")[2].startswith("test")]


def request(how: Integrator, slug: str, directory: str) -> mngr.Request:
    """An agent that works in that very directory, and may do what it needs without asking anybody."""
    args, env = _permitted(how)
    return mngr.Request(type=how.type, args=args, env=env, mode=NONE, source=directory, labels={LABEL: slug})


def _permitted(how: Integrator) -> tuple[list[str], dict[str, str]]:
    """Arguments that say already what it may do stay as they are."""
    found = registry.agent_type(how.type)
    allow = ["git", *([how.pytest] if how.pytest else [])]
    policies = [each for policy in (ALLOWLIST, BYPASS) if (each := found.permissions(policy, allow))]
    said = {word for each in policies for word in each.args if word.startswith("-")}
    if not policies or said & set(how.args):
        return how.args, how.env
    return [*policies[0].args, *how.args], {**policies[0].env, **how.env}


def slug_of(directory: str) -> str:
    """That of a run's integration is the run's. It begins the names of agents, which have 63 characters at most."""
    parent, name = os.path.split(os.path.realpath(directory))
    name = os.path.basename(parent) if name == DIRECTORY else name
    name = name if is_name(name) else slug(name)
    return name if len(name) <= _LONGEST_SLUG else f"{name[: _LONGEST_SLUG - 9].strip('-')}-{name[-8:]}"
