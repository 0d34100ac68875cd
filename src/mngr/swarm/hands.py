"""What the engine does to agents, in batches, through the same functions that the verbs are made of. Each function is
called in a thread of its own, and gives plain data back: the log is written by the engine alone."""

from __future__ import annotations

import os

import mngr
from mngr import process
from mngr.errors import MngrError
from mngr.names import NameTaken
from mngr.record import Record
from mngr.swarm.state import Spend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.activity import Activity
    from mngr.fleet.gather import Gathered
    from mngr.fleet.machine import Machine
    from mngr.fleet.outcome import Outcome
    from mngr.fleet.survey import Status
    from mngr.insight.usage import Sum
    from mngr.model import Agent, Ref

WORK, CHECK = "work", "check"  # what an agent of a run is there for: its label `role`
CHECKER = "command"  # the type of those who check
STOPPED, DESTROYED = "stopped", "destroyed"  # what became of it in the end


class Launch(Record):
    """Agents that are wanted: their names, and what each is told."""

    names: list[str]
    inputs: list[str]


class Launched(Record):
    agents: dict[str, Agent]  # by name
    failed: dict[str, str]  # why, by name


class Looked(Record):
    statuses: dict[str, Status]  # of the run's agents, by name
    there: set[str]  # ids of all agents there are, whoever made them
    activities: dict[str, Activity]  # by id
    money: dict[str, Spend] | None  # by id; None: not asked for this time
    machines: dict[str, Machine]  # by name of the host


class Brought(Record):
    """What is known of an agent's work when it is here."""

    head: str = ""
    commits: list[str] = []  # noqa: RUF012 - Record copies defaults
    spend: Spend | None = None
    why: str = ""  # it could not be brought


def launch(fleet: mngr.Fleet, request: mngr.Request, wanted: Launch) -> Launched:
    """One that fails stops nobody else."""
    try:
        made = mngr.create(fleet, request.replace(names=wanted.names, inputs=wanted.inputs))
        return Launched(agents={agent.name: agent for agent in made}, failed={})
    except NameTaken as error:
        if len(wanted.names) == 1:
            return Launched(agents={}, failed={wanted.names[0]: error.message})
        alone = [
            launch(fleet, request, Launch(names=[name], inputs=[text]))
            for name, text in zip(wanted.names, wanted.inputs, strict=True)
        ]
        return Launched(
            agents={name: agent for each in alone for name, agent in each.agents.items()},
            failed={name: why for each in alone for name, why in each.failed.items()},
        )
    except MngrError as error:
        made = getattr(error, "made", [])
        failed = getattr(error, "failed", None) or dict.fromkeys(wanted.names, error.message)
        return Launched(agents={agent.name: agent for agent in made}, failed=failed)


def say(fleet: mngr.Fleet, texts: dict[Ref, str], *, start: bool = False) -> dict[str, str]:
    """Each its own text; what went wrong, by id."""
    refs = list(texts)
    outcomes = mngr.message(fleet, refs, {ref.id: text for ref, text in texts.items()}, start=start)
    told = {outcome.id: "" if outcome.ok else f"{outcome.did}: {outcome.why}" for outcome in outcomes}
    return {ref.id: told.get(ref.id, "nobody said what became of it") for ref in refs}


def look(
    fleet: mngr.Fleet, run: str, names: Iterable[str], alive: Iterable[Ref], *, money: bool, hosts: Iterable[str]
) -> Looked:
    """At all agents of the run at once, and at what those that are alive do. One whose record cannot be read, or whose
    host does not answer, has no labels: it is known by its name."""
    known, ours = mngr.statuses(fleet), set(names)
    found = {
        status.name: status
        for status in known
        if (status.agent.labels.get("run") == run if status.agent else status.name in ours)
    }
    refs = [ref for ref in alive if ref.name in found]
    return Looked(
        statuses=found,
        there={status.id for status in known},
        activities=mngr.activity(fleet, refs) if refs else {},
        money=spent(fleet, [found[ref.name] for ref in refs]) if money else None,
        machines=_machines(fleet, hosts),
    )


def _machines(fleet: mngr.Fleet, hosts: Iterable[str]) -> dict[str, Machine]:
    """Of those that answer: one that does not must not hide the others."""
    found = {}
    for name in hosts:
        try:
            found[name] = mngr.machine(fleet, name)
        except MngrError:
            continue
    return found


def halt(fleet: mngr.Fleet, refs: list[Ref]) -> dict[str, str | None]:
    """Ends them, and says what their terminals showed before."""
    shown = mngr.capture(fleet, refs)
    mngr.stop(fleet, refs, grace=2.0)
    return shown


def gather(fleet: mngr.Fleet, refs: list[Ref], into: str) -> dict[str, Gathered]:
    os.makedirs(into, exist_ok=True)
    return mngr.gather(fleet, refs, into)


def bring(
    fleet: mngr.Fleet, agents: dict[str, Ref], gathered: dict[str, Gathered], repo: str, base: str
) -> dict[str, Brought]:
    """Ends these agents, fetches their branches and reads what they have spent. By id."""
    mngr.stop(fleet, list(agents.values()))
    statuses = [status for status in mngr.statuses(fleet) if status.id in agents]
    money = spent(fleet, statuses)
    moved = [status.agent for status in statuses if status.agent and _has_moved(status.agent, gathered, base)]
    failed = {outcome.id: outcome.why for outcome in mngr.pull_many(fleet, moved) if not outcome.ok}
    branches = {agent.id: agent.branch for agent in moved if agent.id not in failed and agent.branch}
    heads = _heads(repo, branches.values())
    brought = {}
    for status in statuses:
        head = heads[branches[status.id]] if status.id in branches else base
        commits = git(repo, "rev-list", "--reverse", f"{base}..{head}").split() if head != base else []
        why = failed.get(status.id, "")
        brought[status.id] = Brought(head=head, commits=commits, spend=money.get(status.id), why=why)
    return brought


def _has_moved(agent: Agent, gathered: dict[str, Gathered], base: str) -> bool:
    """It has, or may have, commits; a branch without any is not worth having."""
    found = gathered.get(agent.id)
    return bool(agent.branch) and (found is None or (found.head, found.on) != (base, agent.branch))


def _heads(repo: str, branches: Iterable[str]) -> dict[str, str]:
    refs = [f"refs/heads/{branch}" for branch in branches]
    told = git(repo, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", *refs) if refs else ""
    return dict(line.split(" ") for line in told.splitlines())


def clear(fleet: mngr.Fleet, doomed: list[Ref], kept: list[Ref]) -> dict[str, str]:
    """What became of each: stopped, destroyed, or why not. What a destroyed one has and nobody else is parked."""
    done = {outcome.id: _became(outcome) for outcome in mngr.stop(fleet, kept)} if kept else {}
    if doomed:
        done |= {outcome.id: _became(outcome) for outcome in mngr.destroy(fleet, doomed, force=True, grace=1.0)}
        _finish(fleet, [ref for ref in doomed if done.get(ref.id) != DESTROYED], done)
    return done


def _finish(fleet: mngr.Fleet, refs: list[Ref], done: dict[str, str]) -> None:
    for ref in forget(fleet, refs) if refs else ():
        done[ref.id] = DESTROYED


def forget(fleet: mngr.Fleet, refs: Iterable[Ref]) -> list[Ref]:
    """Releases the names of those that are not there, and gives them: who was killed while destroying agents may have
    left nothing of them but that."""
    there = {status.id for status in mngr.statuses(fleet)}
    gone = [ref for ref in refs if ref.id not in there]
    for ref in gone:
        fleet.names.release(ref)
    return gone


def _became(outcome: Outcome) -> str:
    if outcome.did in ("stopped", "idle"):
        return STOPPED
    return DESTROYED if outcome.ok or outcome.did == "gone" else f"left: {outcome.why}"


def spent(fleet: mngr.Fleet, statuses: list[Status]) -> dict[str, Spend]:
    return {id: _spend(total) for id, total in mngr.spent(fleet, statuses, lambda _: None).items()}


def _spend(total: Sum) -> Spend:
    """What is read from a cache counts as money, but not as tokens."""
    return Spend(total.messages, total.fresh, float(total.cost), total.unpriced)


def git(repo: str, *words: str) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = process.run(["git", "-C", repo, *words], deadline=300, env={**env, "LC_ALL": "C"})
    if done.code:
        said = done.err.strip().splitlines()
        raise MngrError(f"git {words[0]} failed in {repo}: {said[-1] if said else done.code}")
    return done.out.strip()
