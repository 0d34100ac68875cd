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
STOPPED, DESTROYED = "stopped", "destroyed"  # what became of it in the end


class Launch(Record):
    """Agents that are wanted: their names, and what each is told."""

    names: list[str]
    inputs: list[str]


class Launched(Record):
    agents: dict[str, Agent]  # by name
    failed: dict[str, str]  # why, by name


class Looked(Record):
    statuses: dict[str, Status]  # by name
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


def look(fleet: mngr.Fleet, run: str, alive: Iterable[Ref], *, money: bool, hosts: Iterable[str]) -> Looked:
    """At all agents of the run at once, and at what those that are alive do."""
    found = {status.name: status for status in mngr.statuses(fleet, mngr.Selection(labels={"run": run}))}
    refs = [ref for ref in alive if ref.name in found]
    return Looked(
        statuses=found,
        activities=mngr.activity(fleet, refs) if refs else {},
        money=_spent(fleet, [found[ref.name] for ref in refs]) if money else None,
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


def gather(fleet: mngr.Fleet, refs: list[Ref], into: str) -> dict[str, Gathered]:
    os.makedirs(into, exist_ok=True)
    return mngr.gather(fleet, refs, into)


def bring(
    fleet: mngr.Fleet, agents: dict[str, Ref], gathered: dict[str, Gathered], repo: str, base: str
) -> dict[str, Brought]:
    """Ends these agents, fetches their branches and reads what they have spent. By id."""
    mngr.stop(fleet, list(agents.values()))
    statuses = [
        status
        for status in mngr.statuses(fleet, mngr.Selection(words=[ref.name for ref in agents.values()]))
        if status.id in agents
    ]
    money = _spent(fleet, statuses)
    brought = {}
    for status in statuses:
        agent, found = status.agent, gathered.get(status.id)
        head = base
        why = ""
        if agent is not None and agent.branch and (found is None or found.head != base):
            try:
                mngr.pull(fleet, agents[status.id])
                head = git(repo, "rev-parse", "--verify", f"refs/heads/{agent.branch}")
            except MngrError as error:
                why = error.message
        commits = git(repo, "rev-list", "--reverse", f"{base}..{head}").split() if head != base else []
        brought[status.id] = Brought(head=head, commits=commits, spend=money.get(status.id), why=why)
    return brought


def clear(fleet: mngr.Fleet, doomed: list[Ref], kept: list[Ref]) -> dict[str, str]:
    """What became of each: stopped, destroyed, or why not. What a destroyed one has and nobody else is parked."""
    done = {outcome.id: _became(outcome) for outcome in mngr.stop(fleet, kept)} if kept else {}
    if doomed:
        done |= {outcome.id: _became(outcome) for outcome in mngr.destroy(fleet, doomed, force=True, grace=1.0)}
        _finish(fleet, [ref for ref in doomed if done.get(ref.id) != DESTROYED], done)
    return done


def _finish(fleet: mngr.Fleet, refs: list[Ref], done: dict[str, str]) -> None:
    """Somebody who was killed while destroying them may have left nothing of them but their names."""
    there = {status.id for status in mngr.statuses(fleet)} if refs else set()
    for ref in refs:
        if ref.id not in there:
            fleet.names.release(ref)
            done[ref.id] = DESTROYED


def _became(outcome: Outcome) -> str:
    if outcome.did in ("stopped", "idle"):
        return STOPPED
    return DESTROYED if outcome.ok or outcome.did == "gone" else f"left: {outcome.why}"


def _spent(fleet: mngr.Fleet, statuses: list[Status]) -> dict[str, Spend]:
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
