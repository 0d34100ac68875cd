"""What an integration is asked for, looked at: everything that can be refused is refused here, before anything is made.
What a run knows (its base, how its tests are run, which agents it had) stands in for what was not said."""

from __future__ import annotations

import os
from glob import glob

from mngr.errors import MngrError, UsageError
from mngr.integrate.log import directory_of, written_to
from mngr.integrate.picking.read import UNSHALLOW
from mngr.integrate.picking.scratch import check_git, check_whole, checked_out, common_of, top_of
from mngr.integrate.sources import branches, contains, of_branches, of_runs
from mngr.integrate.writing import forge
from mngr.record import Record
from mngr.swarm.begin import read_request
from mngr.swarm.hands import git
from mngr.swarm.integrated import DIRECTORY, LOG
from mngr.swarm.log import Reader
from mngr.swarm.report import summary
from mngr.swarm.testing.recipe import TestRecipe, usual_pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import mngr
    from mngr.integrate.change import Source
    from mngr.integrate.sources import OfRuns, Passed
    from mngr.integrate.wanted import Wanted
    from mngr.swarm.state import Run

_TESTS = f"{TestRecipe.__module__}:{TestRecipe.__qualname__}"
_LIMIT = 120.0  # seconds for a test, unless somebody says otherwise
_SPENT = "what the run may spend is spent: no agent is asked about conflicts, unless --type names one"
_NOT_OURS = "is not what an integration has written"


class Asked(Record):
    repo: str
    base: str  # a commit
    base_branch: str  # that a pull request is for; empty if nobody knows
    into: str
    directory: str
    sources: list[Source]
    passed: list[Passed]  # tasks of the runs whose work is not taken
    runs: list[Run]
    notes: list[str]
    again: str  # the words that make the branch anew, in the same way
    remote: str  # that it is pushed to; empty: it is not
    tutorial: str
    setup: str
    copy: list[str]
    pytest: str
    paths: list[str]  # of the tests that the runs were about; empty: all
    flags: list[str]
    limit: float
    check: str
    type: str  # of the agent that is asked; empty: none is
    args: list[str]
    env: dict[str, str]


def look_at(fleet: mngr.Fleet, wanted: Wanted) -> Asked:
    check_git()
    found = of_runs(fleet.home, wanted.runs) if wanted.runs is not None else None
    repo = found.repo if found else top_of(wanted.where or os.getcwd())
    into = wanted.into.removeprefix("refs/heads/") or (f"mngr/{found.runs[0].id}-integrated" if found else "")
    _check_name(repo, into)
    base = found.base if found else _commit(repo, wanted.base or "HEAD")
    sources, notes = (found.sources, found.notes) if found else of_branches(repo, wanted.branches, into)
    if into in [source.branch for source in sources]:
        raise UsageError(f"{into} is one of the branches that are integrated", "--into NEW names the branch to make")
    if found:
        directory = os.path.join(found.runs[0].directory, DIRECTORY)
    else:
        directory = directory_of(fleet.home, common_of(repo), into)
    if wanted.resume and not os.path.exists(os.path.join(directory, LOG)):
        raise MngrError(f"there is no integration into {into} to go on with", "without --resume, one begins")
    if not wanted.dry_run:
        expected(repo, into, list(Reader(os.path.join(directory, LOG)).events()), wanted)
    if wanted.remote and not wanted.push:
        raise UsageError(f"what shall go to {wanted.remote}?", "--remote needs --push or --pr")
    remote = forge.way_out(repo, wanted.remote, wanted.pull_request) if wanted.push else ""
    _check_related(repo, base, sources)
    check_whole(repo, base, [source.head for source in sources])
    is_spent = found is not None and _is_spent(found.runs[0])
    return Asked(
        repo=repo,
        base=base,
        base_branch=_base_branch(repo, wanted.base, base),
        into=into,
        directory=directory,
        sources=sources,
        passed=found.passed if found else [],
        runs=found.runs if found else [],
        notes=[*notes, *([_SPENT] if is_spent and wanted.agents and not wanted.type else [])],
        again=wanted.again(
            ["swarm", "integrate", *(run.id for run in found.runs)] if found else ["integrate", *wanted.branches]
        ),
        remote=remote,
        **_how(fleet, repo, wanted, found, is_spent),
    )


def expected(repo: str, into: str, events: list[dict[str, Any]], wanted: Wanted) -> str | None:
    """What the branch is now, None if there is none. MngrError unless it may be replaced: it must be one of ours, and
    somebody must have said so."""
    now = branches(repo, "refs/heads").get(into)
    if into in checked_out(repo):
        raise MngrError(
            f"{into} is checked out, and would change under its work tree", "check out another, or --into NEW"
        )
    if now is None:
        return None
    ours = written_to(into, events)
    if not ours:
        raise MngrError(f"there is a branch {into} already, which {_NOT_OURS}", "--into NEW, or git branch -D it first")
    if now not in ours:
        raise MngrError(
            f"{into} is at {now[:10]}, which {_NOT_OURS}: somebody has changed it since",
            "--into NEW, or git branch -m it to keep it",
        )
    if not (wanted.reintegrate or wanted.resume):
        raise MngrError(f"there is a branch {into} already", "--reintegrate makes it anew")
    return now


def _how(fleet: mngr.Fleet, repo: str, wanted: Wanted, found: OfRuns | None, is_spent: bool) -> dict[str, Any]:
    """How tests are run, and which agent is asked."""
    run = found.runs[0] if found else None
    arguments = run.plan["arguments"] if run and run.plan.get("recipe") == _TESTS else {}
    request = read_request(run.directory) if run else None
    setup, copy = wanted.setup, wanted.copy
    if setup is None:
        setup = request.setup if request else fleet.config.text("setup")
    if copy is None:
        copy = request.copy if request else fleet.config.strings("copy")
    else:
        _check_copy(repo, copy)
    type, args, env = wanted.type or "", wanted.args, wanted.env
    if request and not type and request.type:
        type, args, env = request.type, [*(request.args or []), *args], {**request.env, **env}
    if wanted.rank_agent and not type:
        raise UsageError("which agent shall order the fixes?", "--rank-agent needs --type claude, say")
    flags = arguments.get("flags", []) if wanted.flags is None else wanted.flags
    return {
        "tutorial": str(arguments.get("tutorial") or ""),
        "setup": setup or "",
        "copy": copy,
        "pytest": wanted.pytest or arguments.get("pytest") or usual_pytest(repo, setup, here=True),
        "paths": arguments.get("paths", []),
        "flags": flags,
        "limit": wanted.limit or arguments.get("limit") or _LIMIT,
        "check": wanted.check or "",
        "type": type if wanted.agents and (wanted.type or not is_spent) else "",
        "args": args,
        "env": env,
    }


def _check_copy(repo: str, patterns: list[str]) -> None:
    for pattern in patterns:
        if os.path.isabs(pattern) or ".." in pattern.split("/"):
            raise UsageError(f"--copy {pattern} is not within the project", "it takes a path below its top")
        if not glob(pattern, root_dir=repo, recursive=True, include_hidden=True):
            raise UsageError(f"--copy {pattern}: there is none in {repo}", "it takes a path below its top")


def _is_spent(run: Run) -> bool:
    """A run whose money is used up asks no further agent by itself."""
    told = summary(run)
    budget, spend = told["budget"], told["spend"]
    return any(budget[what] is not None and spend[what] >= budget[what] for what in ("usd", "tokens"))


# The repository


def _check_name(repo: str, into: str) -> None:
    try:
        git(repo, "check-ref-format", f"refs/heads/{into}")
        is_name = not into.startswith("-") and into not in ("HEAD", "@")
    except MngrError:
        is_name = False
    if not is_name:
        raise UsageError(f"{into!r} is not a name for a branch", "git help check-ref-format has the rules")
    for other in branches(repo, "refs/heads"):
        if other.startswith(into + "/") or into.startswith(other + "/"):
            raise UsageError(f"there can be no branch {into} beside {other}", "git keeps branches like files")


def _commit(repo: str, revision: str) -> str:
    try:
        return git(repo, "rev-parse", "--verify", "-q", "--end-of-options", revision + "^{commit}")
    except MngrError:
        if revision == "HEAD":
            raise MngrError(f"there is no commit in {repo} yet", "commit something first") from None
        raise UsageError(f"{revision} is not a commit in {repo}", "--base takes a branch, a tag or a commit") from None


def _check_related(repo: str, base: str, sources: list[Source]) -> None:
    """A branch need not contain the base, but must have something in common with it."""
    inside = set(git(repo, "for-each-ref", f"--contains={base}", "--format=%(objectname)").split())
    for source in sources:
        if source.head not in inside and not _meet(repo, base, source.head):
            is_shallow = git(repo, "rev-parse", "--is-shallow-repository") == "true"
            raise MngrError(
                f"{source.branch} has no commit in common with the base {base[:10]}"
                + (", as far as this shallow clone goes" if is_shallow else ""),
                UNSHALLOW if is_shallow else "--base REV names another",
            )


def _meet(repo: str, one: str, other: str) -> bool:
    try:
        return bool(git(repo, "merge-base", one, other))
    except MngrError:
        return False


def _base_branch(repo: str, said: str, base: str) -> str:
    """The branch that was named, or the one that is checked out if it goes on from the base."""
    known = branches(repo, "refs/heads")
    if said in known:
        return said
    remotes = git(repo, "remote").split()
    for remote in remotes:
        if said.startswith(f"{remote}/") and said in branches(repo):
            return said.removeprefix(f"{remote}/")
    here = git(repo, "rev-parse", "--abbrev-ref", "HEAD")
    return here if here in known and contains(repo, here, base) else ""
