"""Tests that have fallen behind their tutorial, brought back by agents: one for each block or section, on a branch of
its own. What an agent says of its work does not count; its branch is read and checked against the tutorial as the user
has it, so that an agent cannot bring the two in step by editing the tutorial.

Agents carry the ids of their blocks as a label. A second call finds them by it and waits for them, in place of sending
others after the same blocks."""

from __future__ import annotations

import os
import tempfile
import time

from mngr import hosts
from mngr.errors import MngrError, UsageError
from mngr.fleet.exec import execute_many
from mngr.fleet.fleet import LOCAL
from mngr.fleet.follow import Feed
from mngr.fleet.select import Selection, statuses
from mngr.fleet.survey import agents as survey
from mngr.names import NameTaken
from mngr.process import quote
from mngr.record import Record
from mngr.tutorial.check import Ledger, check
from mngr.tutorial.citations import Citations, find_citations
from mngr.tutorial.errand import LABEL, brief_all, make, prompt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.plan import Request
    from mngr.fleet.survey import Status
    from mngr.model import Agent
    from mngr.tutorial.blocks import Block, Tutorial
    from mngr.tutorial.citations import Citation

UNCITED, EDITED, GONE = "uncited", "edited", "gone"
SKILL = os.path.join(os.path.dirname(__file__), "skill", "sync-tutorial-to-e2e-tests", "SKILL.md")
_BLOCKS = "blocks"  # the label with the ids
_NO_SECTION = "(no section)"
_TEST_LIMIT = 1800.0  # seconds
_TIME_TO_APPEAR = 60.0  # seconds that another call has for making an agent whose name it has taken


class Place(Record):
    """Where a tutorial and its tests are: paths below the top of their repository."""

    top: str
    file: str
    tests: list[str]


class Finding(Record):
    """One thing that is out of step: a block, or what tests take for one."""

    id: str
    what: str  # uncited, edited, gone
    text: str
    section: str = ""
    line: int = 0  # in the tutorial; 0: it is not there
    cited: list[str] = []  # noqa: RUF012 - Record copies defaults; the tests that have to change, as FILE:LINE NAME
    stale: list[str] = []  # noqa: RUF012 - the ids of what they cite, when the block was edited
    diff: str = ""  # from what they cite to what is there


class Task(Record):
    """What one agent is to put in order."""

    findings: list[Finding]

    @property
    def name(self) -> str:
        return f"sync-{self.findings[0].id}"


class Errand(Record):
    """A task, and who has it; nobody when that could not be, and why."""

    task: Task
    agent: Agent | None
    prompt: str = ""
    started: bool = False  # by this call
    postponed: bool = False  # there are enough of them for now
    why: str = ""


class Report(Record):
    """What became of it, by the branch."""

    name: str
    branch: str
    state: str
    reason: str
    blocks: list[str]
    in_sync: bool  # all of its blocks are cited, none of the others has lost its tests, and these pass if they were run
    commits: int = 0
    left: list[str] = []  # noqa: RUF012 - of its blocks, those that are still out of step
    broken: list[str] = []  # noqa: RUF012 - blocks of others that are out of step on this branch only
    outside: list[str] = []  # noqa: RUF012 - paths that it changed besides the tests
    problems: list[str] = []  # noqa: RUF012 - in its tests
    tests: int | None = None  # the exit code of the run of its tests; None: they were not run
    said: str = ""  # by that run, if it failed


def locate(fleet: Fleet, file: str, tests: Iterable[str]) -> Place:
    file = os.path.realpath(file)
    script = f"git -C {quote(os.path.dirname(file))} rev-parse --show-toplevel"
    try:
        top = os.path.realpath(hosts.check(fleet.host(LOCAL), script).rstrip("\n"))
    except MngrError as error:
        raise MngrError(f"{file}: {error.message}", "agents hand back branches, so this needs a repository") from None
    below = [os.path.relpath(os.path.realpath(path), top) for path in tests]
    for path in below:
        if path == ".." or path.startswith("../"):
            raise UsageError(f"{path} is not in the repository of the tutorial, {top}")
    return Place(top=top, file=os.path.relpath(file, top), tests=below)


def findings(ledger: Ledger, place: Place) -> list[Finding]:
    """What agents can mend, each block once: in the order of the tutorial, then what it has lost."""
    found: dict[str, Finding] = {}
    for edit in ledger.edited:
        block = edit.block
        known = found.get(block.id) or Finding(id=block.id, what=EDITED, **_where(block), diff=edit.diff)
        found[block.id] = known.replace(
            cited=[*known.cited, _at(edit.citation, place)], stale=[*known.stale, edit.citation.id]
        )
    for block in ledger.uncited:
        found[block.id] = Finding(id=block.id, what=UNCITED, **_where(block))
    in_order = sorted(found.values(), key=lambda finding: finding.line)
    lost: dict[str, Finding] = {}
    for citation in ledger.gone:
        known = lost.get(citation.id) or Finding(id=citation.id, what=GONE, text=citation.text.strip("\n"))
        lost[citation.id] = known.replace(cited=[*known.cited, _at(citation, place)])
    return [*in_order, *lost.values()]


def _where(block: Block) -> dict[str, Any]:
    return {"text": block.text, "section": block.section, "line": block.line}


def _at(citation: Citation, place: Place) -> str:
    name = citation.test.partition("::")[2]
    return f"{os.path.relpath(os.path.realpath(citation.file), place.top)}:{citation.line} {name}"


def split(found: Iterable[Finding], *, by_section: bool = False) -> list[Task]:
    """A task for each block or section. Those that are gone belong to no section, and are a task of their own."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        section = GONE if finding.what == GONE else finding.section or _NO_SECTION
        groups.setdefault(section if by_section else finding.id, []).append(finding)
    return [Task(findings=group) for group in groups.values()]


def prompt_for(home: str, task: Task, place: Place, test: str) -> str:
    with open(SKILL, encoding="utf-8") as file:
        rules = file.read().partition("\n## Rules\n")[2]
    return prompt(
        home,
        "sync",
        file=place.file,
        tests=" and ".join(f"`{path}`" for path in place.tests),
        branch=f"mngr/{task.name}",
        findings="\n\n".join(_told(finding, place) for finding in task.findings),
        test=test,
        check=" ".join(quote(word) for word in ("mngr", "tutorial", "check", place.file, *place.tests)),
        rules=f"## Rules\n{rules}",
    )


def _told(finding: Finding, place: Place) -> str:
    where = f"`{place.file}`, line {finding.line}" + (f", section {finding.section}" if finding.section else "")
    lines = [f"## {finding.what}: {where if finding.line else 'a block that the tutorial no longer has'}"]
    if finding.cited:
        lines += ["", "Cited by:", *(f"- `{cited}`" for cited in finding.cited)]
    fence = "`" * (3 + 3 * ("```" in finding.text))
    lines += ["", f"{fence}sh", finding.text, fence]
    if finding.diff:
        lines += ["", "From what is cited to what is there:", "", f"{fence}diff", finding.diff, fence]
    return "\n".join(lines)


def send(
    fleet: Fleet,
    request: Request,
    place: Place,
    found: list[Finding],
    *,
    by_section: bool = False,
    most: int | None = None,
    test: str,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Errand]:
    """An agent for each task that nobody has yet, `most` of them at most. Those that work on some of the blocks already
    are among the errands."""
    _refuse_uncommitted(fleet, request, place)
    busy = _busy(fleet, place)
    errands = [Errand(task=Task(findings=own), agent=agent) for agent, own in _taken(busy, found)]
    taken = {finding.id for errand in errands for finding in errand.task.findings}
    for number, task in enumerate(split((each for each in found if each.id not in taken), by_section=by_section)):
        if most is not None and number >= most:
            errands.append(Errand(task=task, agent=None, postponed=True, why="left for the next call"))
            continue
        text = prompt_for(fleet.home, task, place, test)
        labels = {**request.labels, LABEL: "sync", _BLOCKS: ",".join(finding.id for finding in task.findings)}
        wanted = request.replace(address=task.name, source=place.top, labels=labels)
        try:
            agent = make(fleet, wanted, text, tell)
        except UsageError:
            raise
        except NameTaken:
            errands += _made_by_another(fleet, place, task, tell)
        except MngrError as error:
            errands.append(Errand(task=task, agent=None, why=error.message))
        else:
            errands.append(Errand(task=task, agent=agent, prompt=text, started=True))
    errands.sort(key=lambda errand: found.index(errand.task.findings[0]))
    return _briefed(fleet, errands)


def _refuse_uncommitted(fleet: Fleet, request: Request, place: Place) -> None:
    paths = (place.file, *place.tests)
    changed = _git(fleet, "changed", place.top, *paths).splitlines()
    if changed and not request.dirty:
        more = f", and {len(changed) - 1} more" if changed[1:] else ""
        raise MngrError(
            f"{changed[0][3:]} is not committed{more}: agents would not see it",
            "commit it first, or carry it with --dirty",
        )


def _busy(fleet: Fleet, place: Place) -> list[Agent]:
    """The agents of earlier calls. One with the same label and no branch here is of another repository."""
    known = [status.agent for status in statuses(fleet, Selection(labels={LABEL: "sync"})) if status.agent]
    here = _branches(fleet, place) if known else set()
    return [agent for agent in known if agent.branch in here]


def _branches(fleet: Fleet, place: Place) -> set[str | None]:
    return set(_git(fleet, "branches", place.top).splitlines())


def _taken(agents: Iterable[Agent], found: list[Finding]) -> list[tuple[Agent, list[Finding]]]:
    taken = []
    for agent in agents:
        ids = agent.labels.get(_BLOCKS, "").split(",")
        if own := [finding for finding in found if finding.id in ids]:
            taken.append((agent, own))
    return taken


def _made_by_another(fleet: Fleet, place: Place, task: Task, tell: Callable[[str], None]) -> list[Errand]:
    """By a call at the same time, as a rule. What its agent was not told of is left."""
    name = task.name
    tell(f"{name} is there already")
    agent = _appeared(fleet, place, name)
    if agent is None:
        why = f"the name {name} is taken, and no agent has come of it (mngr destroy -f {name})"
    elif agent.labels.get(LABEL) != "sync":
        why = f"there is an agent {name} that has nothing to do with a tutorial (mngr rename {name} NEW)"
    elif agent.branch not in _branches(fleet, place):
        why = f"there is an agent {name}, but its branch is not here (mngr destroy {name})"
    else:
        why = ""
    if agent is None or why:
        return [Errand(task=task, agent=None, why=why)]
    errands = [Errand(task=Task(findings=own), agent=agent) for agent, own in _taken([agent], task.findings)]
    rest = [each for each in task.findings if not any(each in errand.task.findings for errand in errands)]
    if rest:
        errands.append(Errand(task=Task(findings=rest), agent=None, postponed=True, why="left for the next call"))
    return errands


def _appeared(fleet: Fleet, place: Place, name: str) -> Agent | None:
    """The agent of that name, when it has its branch or will get none. First a name is taken, then they are made; the
    feed tells of it, but not of one that is given up."""
    with Feed([fleet.host(LOCAL)]) as feed:
        events = feed.events(time.monotonic() + _TIME_TO_APPEAR, pulse=0.5)
        while fleet.names.find(name):
            status = next((status for status in survey(fleet) if status.name == name), None)
            if status:
                agent, is_made = status.agent, not (status.evidence.creating and status.evidence.creator_alive)
                if is_made or (agent and agent.branch in _branches(fleet, place)):
                    return agent
            if next(events, None) is None:
                break
    return None


def _briefed(fleet: Fleet, errands: list[Errand]) -> list[Errand]:
    """When all have been made: they start side by side."""
    wrong = brief_all(fleet, [(errand.agent, errand.prompt) for errand in errands if errand.agent and errand.started])
    return [
        errand.replace(why=wrong[errand.agent.id]) if errand.agent and errand.agent.id in wrong else errand
        for errand in errands
    ]


def judge(
    fleet: Fleet, errand: Errand, status: Status | None, place: Place, before: Ledger, test: str | None = None
) -> Report:
    """By what is committed on its branch. With `test`, the tests that cite its blocks are run there as well. A branch
    that cannot be read is told as the reason, and hides no other report."""
    agent = errand.agent
    assert agent is not None
    assert agent.branch
    blocks = [finding.id for finding in errand.task.findings]
    report = Report(
        name=agent.name,
        branch=agent.branch,
        state=status.state if status else "gone",
        reason=errand.why or ((status.verdict.reason or "") if status else ""),
        blocks=blocks,
        in_sync=False,
        left=blocks,
    )
    try:
        if agent.branch not in _branches(fleet, place):
            return report
        return _by_branch(fleet, report, errand, agent, place, before, test if status else None)
    except MngrError as error:
        return report.replace(reason=error.message)


def _by_branch(
    fleet: Fleet, report: Report, errand: Errand, agent: Agent, place: Place, before: Ledger, test: str | None
) -> Report:
    commits, _, paths = _git(fleet, "work", place.top, agent.base or "", report.branch).partition("\n")
    after = _ledger_at(fleet, place, report.branch, before.tutorial)
    wrong, still_cited = _ids(after), {citation.id for citation in after.citations}
    known = _ids(before) | {edit.citation.id for edit in before.edited}
    mine = {citation.file for id in report.blocks for citation in after.covered.get(id, [])}
    report = report.replace(
        commits=int(commits),
        left=[each.id for each in errand.task.findings if each.id in wrong or still_cited.intersection(each.stale)],
        broken=sorted(wrong - known),
        outside=[path for path in paths.split("\0") if path and not _is_below(path, place.tests)],
        problems=[f"{p.file}:{p.line}: {p.message}" for p in after.problems if p not in before.tutorial.problems],
    )
    if test and mine and not report.left:
        report = _run_tests(fleet, report, agent, test, sorted(mine))
    return report.replace(in_sync=not report.left and not report.broken and not report.tests)


def _ids(ledger: Ledger) -> set[str]:
    uncited = {block.id for block in ledger.uncited}
    return uncited | {edit.block.id for edit in ledger.edited} | {citation.id for citation in ledger.gone}


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(place in (".", path) or path.startswith(f"{place}/") for place in places)


def _ledger_at(fleet: Fleet, place: Place, branch: str, tutorial: Tutorial) -> Ledger:
    """The tests of that branch against the tutorial that is given, with paths as they are in the repository."""
    with tempfile.TemporaryDirectory(prefix="mngr-sync-") as to:
        to = os.path.realpath(to)
        _git(fleet, "lay_out", place.top, branch, to, *place.tests)
        laid_out = find_citations(path for test in place.tests if os.path.exists(path := os.path.join(to, test)))
    citations = Citations(
        found=[each.replace(file=os.path.relpath(each.file, to)) for each in laid_out.found],
        problems=[each.replace(file=os.path.relpath(each.file, to)) for each in laid_out.problems],
    )
    return check(tutorial, citations)


def _run_tests(fleet: Fleet, report: Report, agent: Agent, test: str, files: list[str]) -> Report:
    line = " ".join([test, *(quote(file) for file in files)])
    (ran,) = execute_many(fleet, [agent.ref], ["sh", "-c", line], timeout=_TEST_LIMIT)
    said = (ran.stdout + ran.stderr).strip().splitlines()
    return report.replace(tests=ran.code, said=said[-1] if said and ran.code else "")


def _git(fleet: Fleet, *words: str) -> str:
    return hosts.check(fleet.host(LOCAL), _script(*words), deadline=300)


def _script(*words: str) -> str:
    call = " ".join(quote(word) for word in words)
    return f"{hosts.read_script(__file__, 'sync.sh')}\n{call}"
