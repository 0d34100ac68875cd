"""snapshot: keep the work of an agent as it is now, and go back to it, or start new agents from it."""

from __future__ import annotations

import os
import time

from mngr import hosts, jsonline
from mngr.address import check_name, nearest
from mngr.errors import HostUnreachable, MngrError, NoSuchAgent, UsageError
from mngr.fleet.fleet import LOCAL
from mngr.fleet.history import LATEST
from mngr.fleet.origin import Origin, inspect, store_path
from mngr.fleet.select import one, one_ref
from mngr.fleet.side_by_side import every_host, known_hosts
from mngr.model import CLONE, COPY, NONE, RUNNING, STARTING, WAITING, WORKTREE, Agent
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host


class Snapshot(Record):
    name: str
    time: float
    agent: Agent  # as it was
    commit: str | None  # None: an archive
    host: str
    left: list[str] = []  # noqa: RUF012 - Record copies defaults


def take_snapshot(fleet: Fleet, agent_name: str, name: str | None = None) -> Snapshot:
    agent = one(fleet, agent_name).record()
    now = time.time()
    name = check_name(_named_by_time("s", now) if name is None else name, "snapshot name")
    record = jsonline.dumps({"name": name, "time": now, "agent": agent.to_dict()})
    host = fleet.host(agent.host)
    words = (
        agent.id,
        name,
        agent.mode,
        agent.work_dir,
        store_path(host, agent.source or ""),
        record,
        agent.branch or "",
    )
    text = hosts.check(host, _script("take " + " ".join(quote(word) for word in words)), deadline=900)
    told = [line.partition(" ") for line in text.splitlines()]
    left = [path for word, _, path in told if word == "left"]
    commit = next((id for word, _, id in told if word == "commit"), None)
    return Snapshot(name=name, time=now, agent=agent, commit=commit, host=host.name, left=left)


def snapshots(
    fleet: Fleet, agent_name: str | None = None, tell: Callable[[str], None] = lambda _: None
) -> list[Snapshot]:
    """All of them, or one agent's (a destroyed one's too), oldest first. A host that cannot be asked is told."""
    found, silent = _ask(fleet, known_hosts(fleet))
    if agent_name is not None:
        found = [snapshot for snapshot in found if snapshot.agent.name == agent_name]
        if not found:
            ref = one_ref(fleet, agent_name)  # says so if there is no such agent
            if ref.host in silent:
                raise silent[ref.host]
    for name, error in silent.items():
        tell(f"the snapshots on {name} are not shown: {error.message}")
    return sorted(found, key=lambda snapshot: snapshot.time)


def _ask(fleet: Fleet, names: Iterable[str]) -> tuple[list[Snapshot], dict[str, MngrError]]:
    """What these hosts have, under the names that agents have now; and the hosts that did not say."""
    told, silent = every_host(fleet, names, _snapshots_there)
    found = [snapshot for each in told.values() for snapshot in each]
    called = {ref.id: ref.name for ref in fleet.names.all()}
    return [s.replace(agent=s.agent.replace(name=called.get(s.agent.id, s.agent.name))) for s in found], silent


def _snapshots_there(host: Host) -> list[Snapshot]:
    found = []
    for line in hosts.check(host, _script("list_all"), deadline=60).splitlines():
        try:
            _, name, commit, record = line.split(" ", 3)
            stored = jsonline.loads(record)
            agent, taken = Agent.from_dict(stored["agent"]), float(stored["time"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue  # half a snapshot is none
        if not 0 <= taken < LATEST:
            continue
        found.append(
            Snapshot(name=name, time=taken, agent=agent, commit=None if commit == "-" else commit, host=host.name)
        )
    return found


def find_snapshot(fleet: Fleet, text: str, agent_name: str | None = None) -> Snapshot | None:
    """`NAME`, or `AGENT/NAME`; agents that live come first. Raises UsageError when several have one of that name, and
    HostUnreachable when it may be where nobody can look now."""
    agent, slash, name = text.partition("/")
    if not slash:
        agent, name = agent_name or "", text
    alive = fleet.names.find(agent)
    silent: dict[str, MngrError] = {}
    found: list[Snapshot] = []
    for names in ([alive.host] if alive else [], known_hosts(fleet)):
        if not found:
            there, silent = _ask(fleet, names)
            found = [s for s in there if s.name == name and agent in ("", s.agent.name)]
    found = [s for s in found if fleet.names.by_id(s.agent.id)] or found
    if not found and silent:
        raise HostUnreachable(f"no snapshot {text} was found, but {'; '.join(e.message for e in silent.values())}")
    if len(found) > 1:
        owners = ", ".join(sorted(s.agent.name for s in found))
        raise UsageError(f"several agents have a snapshot {name}: {owners}", "say which: AGENT NAME, or AGENT/NAME")
    return found[0] if found else None


def get_snapshot(fleet: Fleet, text: str, agent_name: str | None = None) -> Snapshot:
    found = find_snapshot(fleet, text, agent_name)
    if found is None:
        if agent_name:
            snapshots(fleet, agent_name)  # says so if there is no such agent
        close = nearest(text, [s.name for s in snapshots(fleet)])
        whose = f"{agent_name} has" if agent_name else "there is"
        raise MngrError(f"{whose} no snapshot {text}", f"did you mean {close}?" if close else "see mngr snapshot list")
    return found


def restore(fleet: Fleet, snapshot: Snapshot) -> tuple[Snapshot, bool]:
    """The work of its agent as it was. What it has now is kept as a new snapshot, which is returned, with whether the
    agent ran and was started again."""
    from mngr.fleet.collect import collect_last
    from mngr.fleet.start import start
    from mngr.fleet.stop import stop

    agent = snapshot.agent
    if fleet.names.by_id(agent.id) is None:
        raise NoSuchAgent(
            f"{agent.name}, whose snapshot this is, was destroyed",
            f"mngr create NAME --from {agent.name}/{snapshot.name} makes a new one",
        )
    if agent.mode == NONE:
        raise MngrError(
            f"{agent.name} works in a directory of yours, which is not changed",
            f"mngr create NAME --from {agent.name}/{snapshot.name}",
        )
    status = one(fleet, agent.name)
    was_running = status.state in (RUNNING, WAITING, STARTING)
    for outcome in stop(fleet, [agent.ref], keep_host=True):
        if not outcome.ok:
            raise MngrError(f"{agent.name} could not be stopped: {outcome.why}", "nothing was changed: end that first")
    kept = take_snapshot(fleet, agent.name, _named_by_time("before-restore-", time.time()))
    collect_last(fleet, [status])  # what was said since is taken back, but it was paid for
    words = " ".join(quote(word) for word in (agent.id, snapshot.name, agent.branch or ""))
    hosts.check(fleet.host(agent.host), _script(f"restore {words}"), deadline=900)
    for outcome in start(fleet, [agent.ref]) if was_running else ():
        if not outcome.ok:
            raise MngrError(
                f"{agent.name} was restored to {snapshot.name}, but not started again: {outcome.why}",
                f"what it had is {agent.name}/{kept.name}; mngr start {agent.name}",
            )
    return kept, was_running


def drop(fleet: Fleet, snapshot: Snapshot) -> None:
    host, agent = fleet.host(snapshot.host), snapshot.agent
    repos = [agent.source or "", agent.work_dir, store_path(host, agent.source or "")]
    words = " ".join(quote(word) for word in (agent.id, snapshot.name, *[repo for repo in repos if repo]))
    hosts.check(host, _script(f"drop {words}"), deadline=60)


def origin_of(fleet: Fleet, snapshot: Snapshot, *, branch: str) -> Origin:
    """What a new agent made from it starts with."""
    agent, host = snapshot.agent, fleet.host(snapshot.host)
    directory = f"{host.home}/snapshots/{agent.id}/{snapshot.name}"
    source = agent.source or agent.work_dir
    if snapshot.commit is None:
        # its mode may have been none: from an archive there can only be a copy
        parent = agent.replace(mode=COPY)
        return Origin(
            host=host.name,
            source=source,
            is_git=False,
            parent=parent,
            given=f"{directory}/given",
            talk=directory,
            files=f"{directory}/work.tar",
        )
    store = store_path(host, source) if agent.mode == CLONE else None
    # what a clone was made from is on this machine, wherever the clone is
    told = inspect(fleet.host(LOCAL) if store else host, source, base=None, branch=branch, dirty=False)
    repo = store or source
    base = hosts.check(host, f"git -C {quote(repo)} rev-parse {snapshot.commit}^", deadline=20).strip()
    return Origin(
        host=host.name,
        source=source,
        is_git=True,
        base=base,
        tree=snapshot.commit,
        branch_exists="exists" in told,
        shallow="shallow" in told and store is None,
        parent=agent.replace(mode=WORKTREE) if agent.mode == NONE else agent,  # never over the user's own files
        given=f"{directory}/given",
        talk=directory,
        repo=store,
    )


def _named_by_time(prefix: str, now: float) -> str:
    """To the microsecond: two at once must not collide."""
    return prefix + time.strftime("%Y%m%d-%H%M%S", time.localtime(now)) + f"-{int(now * 1e6) % 1000000:06}"


def agent_around(fleet: Fleet) -> str | None:
    """The agent that we are inside of."""
    ref = fleet.names.by_id(os.environ.get("MNGR_AGENT_ID", ""))
    return ref.name if ref else None


def current_agent(fleet: Fleet) -> str:
    """The agent we are inside of, or the only one there is: whom a verb means that names none."""
    if around := agent_around(fleet):
        return around
    known = fleet.names.all()
    if len(known) == 1:
        return known[0].name
    raise UsageError("which agent?", "name one: only inside an agent, or when there is just one, it may be left out")


def _script(call: str) -> str:
    parts = [
        hosts.read_script(hosts.__file__, "lock.sh"),
        *(hosts.read_script(__file__, name) for name in ("tree.sh", "snapshot.sh")),
        call,
    ]
    return "\n".join(parts)
