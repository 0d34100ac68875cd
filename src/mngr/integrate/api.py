"""The integration from beginning to end: what `mngr integrate`, `mngr swarm integrate` and the end of a run consist of.
Everything up to `publish` happens in the scratch repository and in the directory of the integration; a kill at any
point costs nothing but what was being done, and the same words again do the rest.

What was found out the hard way (outcomes of tests, resolutions, what an agent says of the order) is kept there and is
an input of the next one; everything else is made anew each time, since it takes seconds and follows from its inputs."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile

from mngr.errors import MngrError
from mngr.integrate import decisions
from mngr.integrate.asked import expected, look_at
from mngr.integrate.checking.suite import How, Suite
from mngr.integrate.checking.verify import verify
from mngr.integrate.leftovers import clear
from mngr.integrate.log import PUBLISHING, Log, written_to
from mngr.integrate.picking.identity import groups
from mngr.integrate.picking.policy import policy
from mngr.integrate.picking.read import read
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.picking.stack import Plan, build
from mngr.integrate.plain import counted
from mngr.integrate.solving import unsolved
from mngr.integrate.solving.conflict import open_
from mngr.integrate.solving.errand import PLACE, spent_in
from mngr.integrate.solving.integrator import Integrator, solve_all
from mngr.integrate.solving.reorder import rank
from mngr.integrate.solving.resolutions import Resolutions
from mngr.integrate.writing import forge
from mngr.integrate.writing.body import body, title
from mngr.integrate.writing.message import messages
from mngr.integrate.writing.receipt import receipt
from mngr.integrate.writing.report import report
from mngr.process import quote
from mngr.swarm.integrated import PUBLISHED
from mngr.swarm.report import spend_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import mngr
    from mngr.integrate.asked import Asked
    from mngr.integrate.change import Ranked
    from mngr.integrate.checking.verify import Verified
    from mngr.integrate.decisions import Decided
    from mngr.integrate.picking.rank import RankFile
    from mngr.integrate.picking.read import Found
    from mngr.integrate.picking.stack import Stack
    from mngr.integrate.wanted import Wanted

REPORT, BODY, TITLE, PATCHES, RECEIPT = "report.json", "pull-request.md", "title", "patches", "receipt.txt"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_MOST_OPENED = 5  # conflicts that get a work dir although no agent is asked; what is solved changes those behind it


def integrate(fleet: mngr.Fleet, wanted: Wanted, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The report, whose shape report.py tells. `say` hears what is being done. Nobody but the push has the token of a
    forge, as long as this goes on."""
    asked = look_at(fleet, wanted)
    for note in asked.notes:
        say(note)
    token = forge.withhold()
    try:
        if wanted.dry_run:
            return _planned(fleet, wanted, asked, say)
        with Log(asked.directory) as log:
            return _Work(fleet, wanted, asked, log, say).done(token)
    except OSError as error:
        if error.errno in _FULL:  # some name the file that was to be copied, which has all the room it needs
            error.filename = asked.directory
        raise
    finally:
        token.give_back()


def _planned(fleet: mngr.Fleet, wanted: Wanted, asked: Asked, say: Callable[[str], None]) -> dict[str, Any]:
    """What would be in it. Nothing is written but in a directory that is removed."""
    private = tempfile.mkdtemp(prefix="mngr-integrate-")
    try:
        with Log(private) as log:
            return _Work(fleet, wanted, asked, log, say).planned()
    finally:
        shutil.rmtree(private, ignore_errors=True)


class _Work:
    def __init__(self, fleet: mngr.Fleet, wanted: Wanted, asked: Asked, log: Log, say: Callable[[str], None]) -> None:
        self._fleet, self._wanted, self._asked, self._log, self._tell = fleet, wanted, asked, log, say
        self._directory = log.directory
        self._given_up: dict[str, str] = {}  # by key: why no agent could solve it

    def planned(self) -> dict[str, Any]:
        self._begin()
        found, decided = self._read()
        plan = self._plan(decided)
        return self._report(found, plan, build(self._scratch, plan), None, [])

    def done(self, token: forge.Token) -> dict[str, Any]:
        asked = self._asked
        sources = {source.branch: source.head for source in asked.sources}
        self._log.note("began", into=asked.into, base=asked.base, sources=sources)
        try:
            told = self._made()
        except BaseException as error:
            why = error.message if isinstance(error, MngrError) else str(error) or type(error).__name__
            self._log.note("stopped", why=why)
            raise
        finally:
            clear(self._directory)  # also what one that was killed has left
        if self._wanted.push and told["tip"]:
            told["pushed"] = self._push(token)
        self._log.note("done", **told["counts"])
        return told

    def _made(self) -> dict[str, Any]:
        asked, log = self._asked, self._log
        before = expected(asked.repo, asked.into, log.events, self._wanted)
        self._begin()
        found, decided = self._read()
        decisions.write(log, decided)
        unsolved.take_solved(self._directory, self._resolutions, self._say)
        plan = self._plan(decided)
        suite = self._suite() if self._wanted.verify else None
        stack = self._solved(plan, suite)
        verified = None
        if suite is not None and stack.steps:
            verified = verify(self._scratch, plan, suite, asked.sources, say=self._say)
            plan, stack = verified.plan, verified.stack
        self._keep_conflicts(stack)
        commits = self._commits(stack, verified)
        told = self._report(found, plan, stack, verified, commits, before)
        self._write(told, found, plan, stack, commits)
        if commits:
            self._publish(told, before)
        return told

    # From the branches to a stack

    def _begin(self) -> None:
        self._scratch = Scratch(self._asked.repo, self._asked.base, self._directory)
        self._resolutions = Resolutions(self._asked.directory, self._scratch, self._say)

    def _read(self) -> tuple[Found, Decided]:
        asked, scratch = self._asked, self._scratch
        known = [asked.tutorial] if asked.tutorial else []
        found = read(scratch, asked.sources, policy(scratch, self._fleet.config, known))
        if not found.changes:
            raise MngrError(
                f"nothing to integrate: no branch has a change that {asked.base[:10]} lacks",
                "--base REV says what to compare with",
            )
        same = groups(scratch, found.changes)
        changes, branches = counted(len(found.changes), "change"), counted(len(asked.sources), "branch", "branches")
        self._say(f"{changes} of {branches}, {len(same)} of them different")
        before = decisions.found_in(asked.directory) if self._wanted.resume or self._wanted.reintegrate else None
        return found, decisions.decide(same, asked.sources, self._wanted, before, self._ask_for_order)

    def _ask_for_order(self, fixes: list[Ranked]) -> RankFile | None:
        if not self._wanted.rank_agent or self._wanted.dry_run:
            return None
        asked = self._asked
        return rank(self._fleet, self._scratch, fixes, asked.sources, self._integrator(), self._directory, self._say)

    def _plan(self, decided: Decided) -> Plan:
        return Plan(rest=decided.rest, fixes=decided.fixes, dropped=decided.dropped, solved=self._resolutions.solve)

    def _solved(self, plan: Plan, suite: Suite | None) -> Stack:
        """With what agents can solve of the conflicts, each of which changes those behind it."""
        asked = self._asked
        stack = build(self._scratch, plan)
        if not asked.type:
            return stack
        while any(left.picked.conflicts and left.group.key not in self._given_up for left in stack.left):
            solved = solve_all(
                self._fleet,
                self._scratch,
                stack,
                asked.sources,
                suite,
                self._integrator(),
                self._resolutions,
                self._directory,
                self._say,
                self._given_up,
            )
            if not solved:
                break
            stack = build(self._scratch, plan)
        return stack

    def _integrator(self) -> Integrator:
        asked = self._asked
        pytest = "" if asked.check else " ".join([asked.pytest, *map(quote, asked.flags)])
        return Integrator(
            type=asked.type, args=asked.args, env=asked.env, setup=asked.setup, copy=asked.copy, pytest=pytest
        )

    def _suite(self) -> Suite:
        asked = self._asked
        how = How(
            pytest=asked.pytest,
            flags=asked.flags,
            paths=asked.paths,
            setup=asked.setup,
            copy=asked.copy,
            limit=asked.limit,
            workers=self._wanted.workers,
            check=asked.check,
        )
        suite = Suite(self._scratch, self._directory, how, self._wanted.forget)
        suite.try_check()
        return suite

    def _keep_conflicts(self, stack: Stack) -> None:
        """A work dir for each that is open, so that a person can solve it and the next integration finds it."""
        conflicts = [left for left in stack.left if left.picked.conflicts]
        unsolved.keep_only(self._directory, [left.group.name for left in conflicts], self._say)
        for left in conflicts[:_MOST_OPENED]:
            open_(self._scratch, left, self._directory, self._say)
        for left in conflicts:
            if kept := self._resolutions.earlier(left.picked):
                self._say(f"{left.group.name} was solved before, and others have changed the same lines: see {kept}")

    # From a stack to a branch

    def _commits(self, stack: Stack, verified: Verified | None) -> list[str]:
        made: list[str] = []
        told = messages(stack, self._asked.sources, verified.checked if verified else None)
        for step, (message, author) in zip(stack.steps, told, strict=True):
            parent = made[-1] if made else self._scratch.base
            made.append(self._scratch.commit(step.tree, [parent], message, author))
        return made

    def _report(
        self,
        found: Found,
        plan: Plan,
        stack: Stack,
        verified: Verified | None,
        commits: list[str],
        before: str | None = None,
    ) -> dict[str, Any]:
        asked = self._asked
        told = report(
            self._scratch,
            into=asked.into,
            again=asked.again,
            directory=asked.directory,
            rank_file=self._wanted.rank_file or os.path.join(asked.directory, decisions.RANK),
            before=before,
            sources=asked.sources,
            plan=plan,
            stack=stack,
            verified=verified,
            commits=commits,
            costs=_costs(asked, self._directory),
            passed=asked.passed,
            ignored=found.ignored,
            notes=asked.notes,
        )
        tried = {key[:12]: why for key, why in self._given_up.items()}
        for left in told["left"]:
            if why := tried.get(left["name"]):
                left["why"] += f"; not solved by {why}"
        return told

    def _write(self, told: dict[str, Any], found: Found, plan: Plan, stack: Stack, commits: list[str]) -> None:
        self._file(REPORT, json.dumps(told, indent=2) + "\n")
        self._file(TITLE, title(told) + "\n")
        self._file(BODY, body(told))
        sources = self._asked.sources
        self._file(RECEIPT, receipt(self._scratch, sources, plan, stack, commits, found.ignored))
        tip = commits[-1] if commits else self._scratch.base
        forge.patches(self._scratch, self._scratch.base, tip, os.path.join(self._directory, PATCHES))

    def _file(self, name: str, text: str) -> None:
        """Whole, or as it was."""
        path = os.path.join(self._directory, name)
        with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.replace(f"{path}.new", path)

    def _publish(self, told: dict[str, Any], before: str | None) -> None:
        into, tip, counts = told["into"], told["tip"], told["counts"]
        self._log.note(PUBLISHING, branch=into, commit=tip)
        self._log.sync()  # whoever finds the branch must be able to tell that it is ours
        if tip != before:
            self._scratch.publish(into, tip, before)
        self._log.note(
            PUBLISHED,
            branch=into,
            commit=tip,
            base=told["base"],
            commits=len(told["steps"]),
            left=counts["left"],
            aside=counts["aside"],
        )

    def _push(self, token: forge.Token) -> dict[str, str]:
        """What is in the way takes nothing from the branch, which is there: it is told with the report."""
        asked, pushed = self._asked, {"remote": "", "pull_request": "", "problem": "", "hint": ""}
        try:
            self._log.note("pushing", remote=asked.remote)
            forge.push(asked.repo, asked.remote, asked.into, written_to(asked.into, self._log.events), token)
            pushed["remote"] = asked.remote
            self._log.note("pushed", remote=asked.remote)
            if self._wanted.pull_request:
                with open(os.path.join(self._directory, TITLE), encoding="utf-8", errors="surrogateescape") as file:
                    heading = file.read().strip()
                text = os.path.join(self._directory, BODY)
                url = forge.pull_request(asked.repo, asked.remote, asked.base_branch, asked.into, heading, text, token)
                pushed["pull_request"] = url
                self._log.note("opened", url=url)
        except MngrError as error:
            pushed |= {"problem": error.message, "hint": error.hint or ""}
            self._log.note("not pushed", why=error.message)
        return pushed

    def _say(self, text: str) -> None:
        self._log.note("said", text=text)
        self._tell(text)


def _costs(asked: Asked, directory: str) -> dict[str, Any] | None:
    """Of all agents of the runs, whatever became of them, and of those that were asked here."""
    agents, total = spent_in(os.path.join(directory, PLACE))
    if not asked.runs and not agents:
        return None
    for run in asked.runs:
        total = total + run.spent()
        agents += sum(task.attempt > 0 for task in run.tasks.values())
    return {"agents": agents, **spend_of(total)}
