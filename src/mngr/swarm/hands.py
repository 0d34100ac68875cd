"""What the engine does to agents, in batches, through the same functions that the verbs are made of. Each function is
called in a thread of its own, and gives plain data back: the log is written by the engine alone."""

from __future__ import annotations

import os

import mngr
from mngr import process
from mngr.errors import HostUnreachable, MngrError, TimedOut
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
    from mngr.swarm.state import Run

WORK, CHECK = "work", "check"  # what an agent of a run is there for: its label `role`
CHECKER = "command"  # the type of those who check
STOPPED, DESTROYED = "stopped", "destroyed"  # what became of it in the end
OUT_OF_REACH = "left, out of reach: "


class Launch(Record):
    """Agents that are wanted: their names, and what each is told."""

    names: list[str]
    inputs: list[str]


class Launched(Record):
    agents: dict[str, Agent]  # by name
    failed: dict[str, str]  # why, by name
    away: bool = False  # their host did not answer, and
    doubtful: list[str] = []  # noqa: RUF012 - Record copies defaults; of these nobody knows whether they were made


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
    away: bool = False  # since its host did not answer


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
            away=any(each.away for each in alone),
            doubtful=[name for each in alone for name in each.doubtful],
        )
    except (HostUnreachable, TimedOut) as error:
        held = [name for name in wanted.names if fleet.names.find(name)]
        return Launched(agents={}, failed=dict.fromkeys(wanted.names, error.message), away=True, doubtful=held)
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
    refs = [ref for ref in alive if ref.name in found and not found[ref.name].is_out_of_reach]
    away = {status.host for status in found.values() if status.is_out_of_reach}
    return Looked(
        statuses=found,
        there={status.id for status in known},
        activities=mngr.activity(fleet, refs) if refs else {},
        money=spent(fleet, [found[ref.name] for ref in refs]) if money else None,
        machines=_machines(fleet, [host for host in hosts if host not in away]),
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
    mngr.stop(fleet, refs, grace=2.0, keep_host=True)
    return shown


def gather(fleet: mngr.Fleet, refs: list[Ref], into: str) -> dict[str, Gathered]:
    os.makedirs(into, exist_ok=True)
    return mngr.gather(fleet, refs, into)


def bring(
    fleet: mngr.Fleet, agents: dict[str, Ref], gathered: dict[str, Gathered], repo: str, base: str
) -> dict[str, Brought]:
    """Ends these agents, fetches their branches and reads what they have spent. By id."""
    mngr.stop(fleet, list(agents.values()), keep_host=True)
    statuses = [status for status in mngr.statuses(fleet) if status.id in agents]
    money = spent(fleet, statuses)
    moved = [status.agent for status in statuses if status.agent and _has_moved(status.agent, gathered, base)]
    failed = {outcome.id: outcome for outcome in mngr.pull_many(fleet, moved) if not outcome.ok}
    branches = {agent.id: agent.branch for agent in moved if agent.id not in failed and agent.branch}
    heads = _heads(repo, branches.values())
    brought = {}
    for status in statuses:
        head = heads[branches[status.id]] if status.id in branches else base
        commits = git(repo, "rev-list", "--reverse", f"{base}..{head}").split() if head != base else []
        brought[status.id] = Brought(head=head, commits=commits, spend=money.get(status.id))
        if trouble := failed.get(status.id):
            brought[status.id] = brought[status.id].replace(why=trouble.why, away=trouble.did == "unreachable")
    return brought


def _has_moved(agent: Agent, gathered: dict[str, Gathered], base: str) -> bool:
    """It has, or may have, commits; a branch without any is not worth having."""
    found = gathered.get(agent.id)
    return bool(agent.branch) and (found is None or (found.head, found.on) != (base, agent.branch))


def _heads(repo: str, branches: Iterable[str]) -> dict[str, str]:
    refs = [f"refs/heads/{branch}" for branch in branches]
    told = git(repo, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", *refs) if refs else ""
    return dict(line.split(" ") for line in told.splitlines())


def clear(fleet: mngr.Fleet, doomed: list[Ref], kept: list[Ref], *, keep_host: bool) -> dict[str, str]:
    """What became of each: stopped, destroyed, or why not. What a destroyed one has and nobody else is parked. A host
    that mngr made stops or goes with its last agent, unless `keep_host`."""
    done = {}
    if kept:
        stopped = mngr.stop(fleet, kept, keep_host=keep_host or bool(doomed))
        done = {outcome.id: _became(outcome) for outcome in stopped}
    if doomed:
        gone = mngr.destroy(fleet, doomed, force=True, grace=1.0, keep_host=keep_host)
        done |= {outcome.id: _became(outcome) for outcome in gone}
        _finish(fleet, [ref for ref in doomed if done.get(ref.id) != DESTROYED], done)
        if not keep_host:  # of one that was gone already, nobody has looked
            mngr.release_hosts(fleet, {ref.host for ref in doomed})
    return done


def preparing(run: str) -> str:
    """The name of the host that is prepared for the others of a run, and of who visits it."""
    return f"prepare-{run}"


def release_hosts(fleet: mngr.Fleet, run: Run) -> None:
    """Those that were made for a run and have no agent: who was killed while making them can have left them."""
    if visitor := fleet.names.find(preparing(run.id)):
        fleet.names.release(visitor)
    names = {preparing(run.id), *(task.name for task in run.tasks.values())}
    mngr.release_hosts(fleet, [place.name for place in fleet.places.all() if place.made and place.host in names])


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
    if outcome.did == "unreachable":
        return f"{OUT_OF_REACH}{outcome.why}"
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
