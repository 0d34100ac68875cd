"""destroy: remove agents, and lose nothing by default. Commits and files that exist nowhere else make it refuse; with
`force` they are parked for two weeks (a private ref in the user's repository), with `purge` they are dropped.

What the user has is known on the user's machine only: far_work.py tells the scripts on other hosts."""

from __future__ import annotations

import os

from mngr import hosts, registry
from mngr.errors import HostUnreachable, MngrError
from mngr.fleet.collect import collect_last
from mngr.fleet.fleet import LOCAL
from mngr.fleet.origin import store_path
from mngr.fleet.outcome import Outcome, counted, failure, per_host
from mngr.fleet.side_by_side import every_host
from mngr.fleet.stop import GRACE, stop
from mngr.fleet.survey import survey_host
from mngr.model import WORKTREE, Ref, is_commit
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from mngr.fleet.far_work import Kept
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.survey import Status
    from mngr.hosts import Host
    from mngr.model import Agent

    T = TypeVar("T")


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
    kept: Kept | None = None  # of an agent on another machine: what the user's repository here has
    trouble: MngrError | None = None  # its host cannot be asked, so nothing is done to it


def look(fleet: Fleet, refs: Iterable[Ref], *, count: bool = True, ignored: bool = False) -> list[Doomed]:
    """What destroying them would lose; not counted on this machine when nobody wants to know before it happens.
    `ignored` looks for ignored files too. Hosts that are stopped are started: only they can say."""
    refs = list(refs)
    known: dict[str, Status] = {}
    losses: dict[str, Loss] = {}
    kept: dict[str, Kept] = {}
    doomed: list[str] = []  # branches here, which keep nothing of what is elsewhere

    def ask(host: Host) -> None:
        ids = {ref.id for ref in refs if ref.host == host.name}
        there = [status for status in survey_host(fleet, host) if status.id in ids]
        known.update({status.id: status for status in there})
        if host.lines is None:
            doomed.extend(_owned_branches(there))
        if there and (count or host.lines is not None):
            found, safe = _losses_there(host, there, ignored, doomed)
            losses.update(found)
            kept.update(safe)

    names = {ref.host for ref in refs}
    every_host(fleet, names & {LOCAL}, ask)
    trouble: dict[str, MngrError] = {}
    if far := names - {LOCAL}:
        trouble = _wake(fleet, far)
        trouble |= every_host(fleet, far - trouble.keys(), lambda host: _undisturbed(fleet, host, ask))[1]
    return [
        Doomed(
            ref=ref,
            status=known.get(ref.id),
            loss=losses.get(ref.id, _NOTHING),
            kept=kept.get(ref.id),
            trouble=trouble.get(ref.host),
        )
        for ref in refs
    ]


def _wake(fleet: Fleet, names: set[str]) -> dict[str, MngrError]:
    """Those that do not start, and why."""
    from mngr.fleet.hosting import wake

    try:
        wake(fleet, names)
    except MngrError as error:
        return {name: error for name in names if fleet.is_stopped(name)}
    return {}


def _undisturbed(fleet: Fleet, host: Host, act: Callable[[Host], T]) -> T:
    """Another verb may take our agents, which do not run any more, for the last ones on a host, and stop it."""
    if host.lines is None:
        return act(host)
    from mngr.fleet.hosting import on_duty

    return on_duty(fleet, host, act)


def destroy(
    fleet: Fleet,
    refs: Iterable[Ref],
    *,
    force: bool = False,
    purge: bool = False,
    grace: float = GRACE,
    keep_host: bool = False,
) -> list[Outcome]:
    """`did` is destroyed; `why` then says where something was parked. Refused when it would lose work. A host that
    mngr made goes with the last agent there, unless `keep_host`."""
    doomed = look(fleet, refs, count=not (force or purge))
    return carry_out(fleet, doomed, force=force, purge=purge, grace=grace, keep_host=keep_host)


def carry_out(
    fleet: Fleet,
    doomed: list[Doomed],
    *,
    force: bool,
    purge: bool,
    grace: float,
    keep_host: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """They are looked at again when their processes have ended: until then they go on working."""
    by_id = {each.ref.id: each for each in doomed}
    found: dict[str, Outcome] = {}
    go: list[Doomed] = []
    for each in doomed:
        if each.trouble:
            found[each.ref.id] = failure(each.ref, each.trouble.message, each.trouble)
            continue
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

        def act(host: Host, group: list[Ref]) -> list[Outcome]:
            there = [by_id[ref.id] for ref in group]
            try:
                return _undisturbed(fleet, host, lambda host: _destroy_there(fleet, host, there, force, purge, grace))
            except MngrError as error:
                if host.lines is None:
                    raise
                why = f"{error.message}; how far it came is not known: destroy it again"
                return [failure(ref, why, error) for ref in group]

        done = per_host(fleet, refs, act)
        found.update({outcome.id: outcome for outcome in done})
    for each in go:
        if found[each.ref.id].ok:
            fleet.names.release(each.ref)
            registry.notify("destroyed", each.ref)
    if not keep_host and (far := {each.ref.host for each in go if found[each.ref.id].ok} - {LOCAL}):
        from mngr.fleet.hosting import release_hosts

        release_hosts(fleet, far, tell)
    return [found[each.ref.id] for each in doomed]


def _count_spending(fleet: Fleet, go: list[Doomed], grace: float) -> None:
    """Their logs go with them. They are ended first, so that nothing is spent behind our back; but not whoever calls
    us, who would end us too."""
    here = os.environ.get("MNGR_AGENT_ID")
    spenders = [each for each in go if each.status and registry.type_of(each.ref).logs]
    if spenders:
        try:
            stop(fleet, [each.ref for each in spenders if each.ref.id != here], grace=grace, keep_host=True)
        except HostUnreachable:
            return  # they cannot be destroyed either, and that is told
        collect_last(fleet, [each.status for each in spenders if each.status])


def _being_made(fleet: Fleet, each: Doomed) -> str:
    """Taking away under a create what it makes would leave half of it, and free a name that it goes on to use."""
    if each.status is None:
        return "" if fleet.names.is_leftover(each.ref) else "it is just being created, or destroyed by another"
    busy = each.status.evidence.creating and each.status.evidence.creator_alive
    return "its create has not finished: end that first" if busy else ""


def _refusal(loss: Loss) -> str:
    return f"{loss} would be lost: mngr pull it first, or destroy -f (keeps it for 14 days)"


def _losses_there(
    host: Host, there: list[Status], ignored: bool, doomed: list[str]
) -> tuple[dict[str, Loss], dict[str, Kept]]:
    """`doomed` are branches on this machine that go too."""
    judged: list[Agent] = []  # of which git here knows more than the host
    if host.lines is not None:
        from mngr.fleet import far_work

        here = far_work.sources_here(status.agent for status in there)
        judged = [status.agent for status in there if status.agent and status.agent.source in here]
    ids = {agent.id for agent in judged}
    lines = [_excluded(_owned_branches(there)), f"ignored={'1' if ignored else ''}"]
    lines += [hosts.read_script(__file__, name) for name in ("tree.sh", "destroy.sh")]
    for status in there:
        if host.lines is not None:
            lines.append(f"far={'1' if status.id in ids else ''}")
        if status.id in ids:
            lines.append(f"list_new {_words(status)}")
        lines.append(f"losses {_words(status)}")
    text = hosts.check(host, "\n".join([*lines, ":"]), deadline=600)
    told = _read_losses(text)
    unknown = Loss(commits=0, files=0, known=False)
    losses = {status.id: told.get(status.id, unknown) for status in there}
    if not judged:
        return losses, {}
    kept = far_work.kept_here(judged, _read_new(text, ids), doomed)
    for id, each in kept.items():
        if losses[id].known:
            losses[id] = losses[id].replace(commits=each.lost + each.unsafe)
    return losses, kept


def _read_new(text: str, ids: set[str]) -> dict[str, dict[str, list[str]]]:
    """By agent: each of its commits, with its parents."""
    new: dict[str, dict[str, list[str]]] = {id: {} for id in ids}
    for line in text.splitlines():
        if line.startswith("new "):
            _, id, *commits = line.split(" ")
            if id in new and commits and all(map(is_commit, commits)):
                new[id][commits[0]] = commits[1:]
    return new


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


def _destroy_there(
    fleet: Fleet, host: Host, doomed: list[Doomed], force: bool, purge: bool, grace: float
) -> list[Outcome]:
    script = _script(host, doomed, force, purge, grace)
    text = hosts.check(host, script, deadline=grace + 600) if script else ""
    losses = _read_losses(text)
    told: dict[str, tuple[str, str]] = {}
    parked: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        id, _, detail = rest.partition(" ")
        if word == "parked":
            repo, _, where = detail.rpartition(" ")
            parked[id] = (repo, where)
        elif word in ("destroyed", "failed", "refused"):
            told[id] = (word, detail)
    outcomes = []
    for each in doomed:
        ref = each.ref
        word, why = (
            told.get(ref.id, ("silent", "the host did not say what became of it")) if each.status else ("destroyed", "")
        )
        if word == "destroyed" and ref.id in parked:
            what = losses.get(ref.id) or "what it left is"
            why = f"{what} kept for 14 days as {_parked_at(fleet, host, each, *parked[ref.id])}"
        elif word == "refused":
            why = _refusal(losses[ref.id])
        outcomes.append(Outcome(id=ref.id, name=ref.name, did=word, ok=word == "destroyed", why=why))
    return outcomes


def _parked_at(fleet: Fleet, host: Host, each: Doomed, repo: str, where: str) -> str:
    """Work of another machine comes home; what cannot come stays there, and the user is told where."""
    if host.lines is None:
        return where if repo == "-" else f"{where} in {repo}"
    if repo == "-":
        return f"{host.name}:{where}"
    there = f"{where} in {host.name}:{repo}"
    agent = each.status and each.status.agent
    if not agent or not each.kept:
        return there
    from mngr.fleet.far_work import bring_home

    error = bring_home(fleet, host, agent, repo)
    return f"{there} (it could not be brought here: {error.message})" if error else f"{where} in {agent.source}"


def _script(host: Host, doomed: list[Doomed], force: bool, purge: bool, grace: float) -> str:
    there = [each.status for each in doomed if each.status]
    kept = {each.ref.id: each.kept for each in doomed if each.kept}
    is_far = host.lines is not None
    asked = [f"tell_parked {each.ref.id}" for each in doomed if is_far and not purge]
    if not there:
        return "\n".join([hosts.read_script(__file__, "destroy.sh"), *asked]) if asked else ""
    lines = [_excluded(_owned_branches(there)), hosts.read_script(hosts.__file__, "lock.sh")]
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
            if is_far:
                lines.append(str(kept[status.id]) if status.id in kept else "far='' have='' unsafe=0")
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
    return "\n".join([*lines, *asked, ":"])


def _owned_branches(there: Iterable[Status]) -> list[str]:
    """Those that go with their agents."""
    agents = [status.agent for status in there if status.agent]
    return [agent.branch for agent in agents if agent.branch and agent.mode == WORKTREE and agent.own_branch]


def _excluded(branches: list[str]) -> str:
    return f"doomed={quote(' '.join(f'--exclude={branch}' for branch in branches))}"


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
