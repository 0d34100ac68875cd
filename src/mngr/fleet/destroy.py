"""destroy: remove agents, and lose nothing by default. Commits and files that exist nowhere else make it refuse; with
`force` they are parked for two weeks (a private ref in the user's repository), with `purge` they are dropped."""

from __future__ import annotations

import os

from mngr import hosts, registry
from mngr.fleet.collect import collect_last
from mngr.fleet.origin import store_path
from mngr.fleet.outcome import Outcome, counted, per_host
from mngr.fleet.stop import GRACE, stop
from mngr.fleet.survey import agents
from mngr.model import WORKTREE, Ref
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.survey import Status
    from mngr.hosts import Host


class Loss(Record):
    """What exists nowhere else."""

    commits: int
    files: int
    known: bool  # False: git could not say, which counts as a loss
    ignored: bool = False  # there are ignored files, which are never kept, and no loss

    def __bool__(self) -> bool:
        return bool(self.commits or self.files or not self.known)

    def __str__(self) -> str:
        if not self.known:
            return "work that git cannot account for"
        parts = [(self.commits, "commit"), (self.files, "uncommitted file")]
        return " and ".join(counted(n, what) for n, what in parts if n)


_NOTHING = Loss(commits=0, files=0, known=True)


class Doomed(Record):
    ref: Ref
    status: Status | None  # None: known by name only
    loss: Loss


def look(fleet: Fleet, refs: Iterable[Ref], *, count: bool = True, ignored: bool = False) -> list[Doomed]:
    """What destroying them would lose; not counted when nobody wants to know before it happens. `ignored` looks for
    ignored files too."""
    refs = list(refs)
    known = {status.id: status for status in agents(fleet)}
    losses: dict[str, Loss] = {}
    for name in {ref.host for ref in refs} if count else ():
        host = fleet.host(name)
        there = [known[ref.id] for ref in refs if ref.host == name and ref.id in known]
        losses.update(_losses_there(host, there, ignored))
    return [Doomed(ref=ref, status=known.get(ref.id), loss=losses.get(ref.id, _NOTHING)) for ref in refs]


def destroy(
    fleet: Fleet, refs: Iterable[Ref], *, force: bool = False, purge: bool = False, grace: float = GRACE
) -> list[Outcome]:
    """`did` is destroyed; `why` then says where something was parked. Refused when it would lose work."""
    doomed = look(fleet, refs, count=not (force or purge))
    return carry_out(fleet, doomed, force=force, purge=purge, grace=grace)


def carry_out(fleet: Fleet, doomed: list[Doomed], *, force: bool, purge: bool, grace: float) -> list[Outcome]:
    """They are looked at again when their processes have ended: until then they go on working."""
    by_id = {each.ref.id: each for each in doomed}
    found: dict[str, Outcome] = {}
    go: list[Doomed] = []
    for each in doomed:
        why = _being_made(fleet, each)
        if not why and each.loss and not (force or purge):
            why = _refusal(each.loss)
        if why:
            found[each.ref.id] = Outcome(id=each.ref.id, name=each.ref.name, did="refused", ok=False, why=why)
        else:
            go.append(each)
    refs = [each.ref for each in go]
    if refs:
        _count_spending(fleet, go, grace)
        done = per_host(
            fleet, refs, lambda host, group: _destroy_there(host, [by_id[ref.id] for ref in group], force, purge, grace)
        )
        found.update({outcome.id: outcome for outcome in done})
    for each in go:
        if found[each.ref.id].ok:
            fleet.names.release(each.ref)
            registry.notify("destroyed", each.ref)
    return [found[each.ref.id] for each in doomed]


def _count_spending(fleet: Fleet, go: list[Doomed], grace: float) -> None:
    """Their logs go with them. They are ended first, so that nothing is spent behind our back; but not whoever calls
    us, who would end us too."""
    here = os.environ.get("MNGR_AGENT_ID")
    spenders = [each for each in go if each.status and registry.type_of(each.ref).logs]
    if spenders:
        stop(fleet, [each.ref for each in spenders if each.ref.id != here], grace=grace)
        collect_last(fleet, [each.status for each in spenders if each.status])


def _being_made(fleet: Fleet, each: Doomed) -> str:
    """Taking away under a create what it makes would leave half of it, and free a name that it goes on to use."""
    if each.status is None:
        return "" if fleet.names.is_leftover(each.ref) else "it is just being created, or destroyed by another"
    busy = each.status.evidence.creating and each.status.evidence.creator_alive
    return "its create has not finished: end that first" if busy else ""


def _refusal(loss: Loss) -> str:
    return f"{loss} would be lost: mngr pull it first, or destroy -f (keeps it for 14 days)"


def _losses_there(host: Host, there: list[Status], ignored: bool) -> dict[str, Loss]:
    lines = [_doomed_branches(there), f"ignored={'1' if ignored else ''}"]
    lines += [hosts.read_script(__file__, name) for name in ("tree.sh", "destroy.sh")]
    lines += [f"losses {_words(status)}" for status in there]
    losses = _read_losses(hosts.check(host, "\n".join(lines), deadline=600))
    unknown = Loss(commits=0, files=0, known=False)
    return {status.id: losses.get(status.id, unknown) for status in there}


def _read_losses(text: str) -> dict[str, Loss]:
    losses = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "loss":
            id, commits, files, ignored = rest.split(" ")
            known = commits.isdecimal()
            count = int(commits) if known else 0
            losses[id] = Loss(commits=count, files=int(files), known=known, ignored=ignored == "1")
    return losses


def _destroy_there(host: Host, doomed: list[Doomed], force: bool, purge: bool, grace: float) -> list[Outcome]:
    statuses = [each.status for each in doomed if each.status]
    text = hosts.check(host, _script(host, statuses, force, purge, grace), deadline=grace + 600) if statuses else ""
    losses = _read_losses(text)
    told: dict[str, tuple[str, str]] = {}
    parked: dict[str, str] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        id, _, detail = rest.partition(" ")
        if word == "parked":
            repo, _, where = detail.rpartition(" ")
            parked[id] = where if repo == "-" else f"{where} in {repo}"
        elif word in ("destroyed", "failed", "refused"):
            told[id] = (word, detail)
    outcomes = []
    for each in doomed:
        ref = each.ref
        word, why = (
            told.get(ref.id, ("silent", "the host did not say what became of it")) if each.status else ("destroyed", "")
        )
        if word == "destroyed" and ref.id in parked:
            why = f"{losses[ref.id]} kept for 14 days as {parked[ref.id]}"
        elif word == "refused":
            why = _refusal(losses[ref.id])
        outcomes.append(Outcome(id=ref.id, name=ref.name, did=word, ok=word == "destroyed", why=why))
    return outcomes


def _script(host: Host, there: list[Status], force: bool, purge: bool, grace: float) -> str:
    lines = [_doomed_branches(there), hosts.read_script(hosts.__file__, "lock.sh")]
    lines += [hosts.read_script(__file__, name) for name in ("tree.sh", "stop.sh", "destroy.sh")]
    # One at a time: of two that go at once, each might count on what the other has. The agent that destroys itself
    # takes its terminal and our reader along, and the script goes on.
    lines.append("umask 077; lock \"$H/destroy.lock\" 2400 || exit 1; trap '' PIPE HUP")
    lines.append(f"end_all {round(grace * 20)} {' '.join(status.id for status in there)}")
    forget: dict[str, list[str]] = {}
    for status in there:
        agent = status.agent
        if not purge:
            store = store_path(host, (agent and agent.source) or "")
            lines.append(f"store={quote(store)}; settle '{'1' if force else ''}' {status.name} {_words(status)}")
        if agent and agent.mode == WORKTREE and agent.source:
            forget.setdefault(agent.source, []).append(f"{agent.id}:{agent.branch if agent.own_branch else ''}")
    lines += [f"release {_words(status)}" for status in there]
    lines.append("clear_away")
    for source, pairs in forget.items():
        lines.append(" ".join(["forget", quote(source), *[quote(pair) for pair in pairs]]))
    for status in there if purge else ():
        source = (status.agent and status.agent.source) or ""
        lines.append(f"drop_snapshots {status.id} {quote(source)} {quote(store_path(host, source))}")
    return "\n".join([*lines, ":"])


def _doomed_branches(there: list[Status]) -> str:
    owned = [s.agent.branch for s in there if s.agent and s.agent.mode == WORKTREE and s.agent.own_branch]
    return f"doomed={quote(' '.join(f'--exclude={branch}' for branch in owned))}"


def _words(status: Status) -> str:
    agent = status.agent
    if agent is None:
        return f"{status.id} '' '' '' '' '' ''"
    words = (
        agent.id,
        agent.mode,
        agent.work_dir,
        agent.source or "",
        agent.branch or "",
        "1" if agent.own_branch else "",
        agent.base or "",
    )
    return " ".join(quote(word) for word in words)
