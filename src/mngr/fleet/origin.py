"""Where a new agent's work comes from: a path, another agent, or a snapshot; and what it inherits with it."""

from __future__ import annotations

import binascii
import os

from mngr import hosts
from mngr.address import nearest
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.model import CLONE, COPY, NONE, Agent
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host


class Origin(Record):
    host: str  # where all of this is
    source: str  # top of the repository, or the directory
    is_git: bool
    top: str | None = None  # the worktree that was meant, when that is another one of the same repository
    broken: str | None = None  # there is a repository, and git cannot use it
    directory: str | None = None  # where mode none works, if that is not the source itself
    base: str | None = None  # commit to start from; None in a repository that has none yet
    repo: str | None = None  # where these commits are, when not in the source
    tree: str | None = None  # commit whose files are laid over it, uncommitted
    branch_exists: bool = False  # then base is its tip
    shallow: bool = False  # it has not all of its history: git does not push from it
    parent: Agent | None = None  # type, command, labels and windows are taken from it
    given: str | None = None  # file with the environment that was given to the parent
    talk: str | None = None  # directory with the parent's conversation
    files: str | None = None  # directory or archive whose files fill a `copy` work dir
    left: list[str] = []  # noqa: RUF012 - nested repositories that are not carried


def find_origin(fleet: Fleet, host: Host, start: str | None, *, base: str | None, branch: str, dirty: bool) -> Origin:
    if start is None:
        return from_path(host, _here(), base=base, branch=branch, dirty=dirty)
    if start.startswith(("/", ".", "~")):
        return from_path(host, os.path.abspath(os.path.expanduser(start)), base=base, branch=branch, dirty=dirty)
    from mngr.fleet.snapshot import find_snapshot, origin_of

    named = fleet.names.find(start)
    try:
        snapshot = None if named else find_snapshot(fleet, start)
    except HostUnreachable:
        if not os.path.isdir(start):
            raise
        snapshot = None
    if base and (named or snapshot):
        raise UsageError("--base cannot be given with --from AGENT or SNAPSHOT: it starts where that is")
    if named:
        return from_agent(fleet, start, branch=branch)
    if snapshot:
        return origin_of(fleet, snapshot, branch=branch)
    if os.path.isdir(start):
        return from_path(host, os.path.abspath(start), base=base, branch=branch, dirty=dirty)
    close = nearest(start, [ref.name for ref in fleet.names.all()])
    hint = f"did you mean {close}?" if close else None
    raise UsageError(f"--from {start}: neither a directory, nor an agent, nor a snapshot", hint)


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise MngrError("the current directory does not exist any more", "go to another, or use --from DIR") from None


def from_path(host: Host, path: str, *, base: str | None, branch: str, dirty: bool) -> Origin:
    told = inspect(host, path, base=base, branch=branch, dirty=dirty)
    if "missing" in told:
        raise MngrError(f"{path} is not a directory that can be entered")
    if "top" not in told:
        broken = told["broken"][0].strip() if "broken" in told else None
        return Origin(host=host.name, source=told["dir"][0], is_git=False, broken=broken)
    if "empty" in told:
        return Origin(host=host.name, source=told["top"][0], is_git=True, directory=told["dir"][0])
    if "nobase" in told:
        raise MngrError(f"{base} is not a commit in {told['top'][0]}", "--base takes a branch, tag or commit")
    return Origin(
        host=host.name,
        source=told["main"][0],
        top=told["top"][0],
        is_git=True,
        directory=told["dir"][0],
        base=told["base"][0],
        tree=told["tree"][0] if "tree" in told else None,
        branch_exists="exists" in told,
        shallow="shallow" in told,
        left=told.get("left", []),
    )


def from_agent(fleet: Fleet, name: str, *, branch: str) -> Origin:
    """Its commits and its uncommitted files; its type, command, labels, windows and environment."""
    from mngr.fleet.select import one

    parent = one(fleet, name).record()
    host = fleet.host(parent.host)
    talk = f"{host.home}/agents/{parent.id}"
    given = f"{talk}/given"
    if parent.mode == NONE:
        here = parent.work_dir
        return Origin(host=host.name, source=here, is_git=False, directory=here, parent=parent, given=given, talk=talk)
    if parent.mode == COPY:
        return Origin(
            host=host.name,
            source=parent.source or parent.work_dir,
            is_git=False,
            directory=parent.work_dir,
            parent=parent,
            given=given,
            talk=talk,
            files=parent.work_dir,
        )
    told = inspect(host, parent.work_dir, base=None, branch=branch, dirty=True)
    if "tree" not in told:
        raise MngrError(f"the work dir of {name} is not readable as a git repository: {parent.work_dir}")
    return Origin(
        host=host.name,
        source=parent.source or parent.work_dir,
        is_git=True,
        directory=parent.work_dir,
        base=told["base"][0],
        tree=told["tree"][0],
        branch_exists="exists" in told,
        shallow="shallow" in told,
        parent=parent,
        given=given,
        talk=talk,
        repo=parent.work_dir if parent.mode == CLONE else None,
        left=told.get("left", []),
    )


def inspect(host: Host, path: str, *, base: str | None, branch: str, dirty: bool) -> dict[str, list[str]]:
    script = hosts.read_script(__file__, "tree.sh")
    words = " ".join(quote(word) for word in (path, base or "", branch, "1" if dirty else ""))
    told: dict[str, list[str]] = {}
    for line in hosts.check(host, f"{script}\ninspect {words}", deadline=300).split("\n"):
        key, _, value = line.partition(" ")
        told.setdefault(key, []).append(value)
    if "badbranch" in told:
        raise UsageError(f"{branch!r} is not a valid branch name")
    return told


def store_path(host: Host, source: str) -> str:
    """The bare store on that host from which clones of this source borrow."""
    name = "".join(char if char.isalnum() else "-" for char in os.path.basename(source))[:40]
    return f"{host.home}/repos/{name}-{binascii.crc32(os.fsencode(source)):08x}.git"
