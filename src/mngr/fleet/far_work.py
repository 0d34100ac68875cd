"""What the user's repository has of the commits that agents made on another machine, and bringing home what was parked
there. Neither side sees the other's repository: the host lists what is new there, git here says which of it we have."""

from __future__ import annotations

import os
import time

from mngr import hosts
from mngr.errors import MngrError
from mngr.hosts import git
from mngr.model import CLONE, is_commit
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Agent


class Kept(Record):
    """What the user's repository has of an agent's commits."""

    have: list[str] = []  # noqa: RUF012 - Record copies defaults; the newest ones: it has all before them too
    lost: int = 0  # of what the agent has made
    unsafe: int = 0  # of what it has started from

    def __str__(self) -> str:
        """As destroy.sh takes it."""
        return f"far=1 have={quote(' '.join(self.have))} unsafe={self.unsafe}"


def sources_here(agents: Iterable[Agent | None]) -> set[str]:
    """The repositories of this machine that clones on another one came from: a host cannot ask them."""
    named = {agent.source for agent in agents if agent and agent.mode == CLONE and agent.source}
    return {source for source in named if git.run(source, "rev-parse", "--git-dir").code == 0}


def kept_here(agents: Sequence[Agent], new: dict[str, dict[str, list[str]]], doomed: Iterable[str]) -> dict[str, Kept]:
    """By id. `new`: what each agent has on top of its base, every commit with its parents. `doomed` are branches here
    that are about to go, and keep nothing."""
    kept: dict[str, Kept] = {}
    for source in {agent.source for agent in agents}:
        group = [agent for agent in agents if agent.source == source]
        commits = {commit for agent in group for commit in (*new[agent.id], agent.base or "")}
        ours = _known_here(source or "", {commit for commit in commits if is_commit(commit)}, doomed)
        for agent in group:
            kept[agent.id] = _kept(agent, new[agent.id], ours)
    return kept


def _kept(agent: Agent, new: dict[str, list[str]], ours: set[str]) -> Kept:
    base = agent.base or ""
    have = [commit for commit in (*new, base) if commit in ours]
    below = {parent for commit in have for parent in new.get(commit, ())}
    lost = len([commit for commit in new if commit not in ours])
    # how much of its history is lacking cannot be told of a base that is not here: that counts for one
    unsafe = 1 if base and base not in ours and (lost or not new) else 0
    return Kept(have=[commit for commit in have if commit not in below], lost=lost, unsafe=unsafe)


def _known_here(repo: str, commits: set[str], doomed: Iterable[str]) -> set[str]:
    """Those that a branch, tag or remote of the user's repository has."""
    asked = "\n".join(sorted(commits)).encode() + b"\n"
    there = git.run(repo, "cat-file", "--batch-check=%(objectname) %(objecttype)", input=asked).out.split("\n")
    found = {line.removesuffix(" commit") for line in there if line.endswith(" commit")}
    if not found:
        return found
    refs = [*(f"--exclude={branch}" for branch in doomed), "--branches", "--tags", "--remotes"]
    done = git.run(repo, "rev-list", "--stdin", "--not", *refs, input="\n".join(sorted(found)).encode() + b"\n")
    return set() if done.code else found - set(done.out.split())


def bring_home(fleet: Fleet, host: Host, agent: Agent, repo: str) -> MngrError | None:
    """What is parked in a repository there, into the user's own, as if it had been parked here. Else it stays where it
    is, and the error says why."""
    ref = f"refs/mngr/trash/{agent.id}"
    directory = os.path.join(fleet.home, "trash")
    record = os.path.join(directory, agent.id)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    # the record first: a ref without one would never go
    with open(record, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{int(time.time())}\n{agent.name}\n{agent.source}\n{ref}\n")
    fetch = ("fetch", "-q", "--no-recurse-submodules", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    done = git.insist(agent.source or "", *fetch, "--", git.fetch_url(host, repo), f"+{ref}:{ref}", deadline=3600)
    if done.code:
        os.unlink(record)
        return git.failure(host, f"git could not fetch {ref}", done)
    try:
        hosts.run(host, f'git -C {quote(repo)} update-ref -d {quote(ref)}; rm -f "$H/trash/{agent.id}"', deadline=60)
    except MngrError:
        pass  # it goes there after 14 days too
    return None
