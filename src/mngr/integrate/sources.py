"""Where the work comes from: the branches of runs, with everything that the runs know of them, or branches that
somebody names. Of a run it is what was verified that counts, whatever its branches have become since."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from mngr.errors import MngrError, UsageError
from mngr.integrate.change import Source
from mngr.integrate.writing.message import PICKED_FROM
from mngr.record import Record
from mngr.swarm import words
from mngr.swarm.hands import git
from mngr.swarm.log import is_taken
from mngr.swarm.report import members
from mngr.swarm.runs import find_run
from mngr.swarm.state import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mngr.swarm.state import Run, Task


class Passed(Record):
    """A task whose work is not taken, or that has none but something to say."""

    task: str
    run: str
    outcome: str
    why: str
    agent: str = ""
    branch: str = ""  # if it has commits
    head: str = ""
    escalations: list[dict[str, Any]] = []  # noqa: RUF012


class OfRuns(Record):
    base: str
    repo: str
    sources: list[Source]
    passed: list[Passed]
    runs: list[Run]
    notes: list[str]


def is_missing(outcome: str, branch: str) -> bool:
    """Of one that was passed over: it ended well, so that only its commits can be what there is not."""
    return bool(branch) and outcome in words.GOOD


def of_runs(home: str, names: Sequence[str]) -> OfRuns:
    """What these runs have verified; of the latest one if none is named. They are of one repository."""
    found = [_load(find_run(home, name)) for name in dict.fromkeys(names)] or [_load(find_run(home, None))]
    repos = list(dict.fromkeys(str(run.plan.get("project") or "") for run in found))
    if len(repos) > 1:
        raise UsageError(
            f"these runs are of {len(repos)} repositories: {', '.join(repos)}", "one after the other, then"
        )
    repo, notes = _repository(found[0], repos[0])
    there = _commits_there(repo, [task.home["head"] for run in found for task in _with_commits(run)])
    sources, passed = [], []
    for run in found:
        for task in run.tasks.values():
            if why := _why_not(task, there):
                passed.append(_passed(run, task, why))
            elif task.home.get("commits"):
                sources.append(_source(run, task))
    if not sources:
        raise MngrError(*_nothing(found, passed))
    return OfRuns(
        base=_base(repo, found),
        repo=repo,
        sources=sources,
        passed=[each for each in passed if each.outcome != words.SKIPPED],
        runs=found,
        notes=[*notes, *(note for run in found if (note := _unfinished(run)))],
    )


def of_branches(repo: str, names: Sequence[str], into: str = "") -> tuple[list[Source], list[str]]:
    """In the order in which they are named, and what is to be told of them. A pattern stands for the branches that fit
    it, but never for what an integration has made; and for branches of a remote only if it begins with its name."""
    known = branches(repo)
    local = branches(repo, "refs/heads")
    found: dict[str, Source] = {}
    made: dict[str, None] = {}
    for name in names:
        plain = name.removeprefix("refs/heads/").removeprefix("refs/remotes/")
        if plain in known:
            fitting = [plain]
        elif any(sign in plain for sign in "*?["):
            fitting = [each for each in known if fnmatchcase(each, plain) and each != into]
            fitting = [each for each in fitting if each in local or _is_of_remote(each, plain)]
            ours = _made_here(repo, {each: known[each] for each in fitting})
            made.update(dict.fromkeys(ours))
            fitting = [each for each in fitting if each not in ours]
        else:
            fitting = []
        if not fitting:
            raise _unknown(repo, name, list(known))
        for each in fitting:
            found.setdefault(each, Source(branch=each, head=known[each]))
    if into in found:
        raise UsageError(f"{into} cannot be integrated into itself", "--into NEW names the branch to make")
    notes = [
        f"{each} is not taken: an integration has made it; name it to have it" for each in made if each not in found
    ]
    return list(found.values()), notes


def branches(repo: str, *below: str) -> dict[str, str]:
    """With their last commits; below some refs, or all. A local one goes before a remote one of the same name."""
    refs = below or ("refs/heads", "refs/remotes")
    told = git(repo, "for-each-ref", "--format=%(refname) %(objectname)", *refs)
    known: dict[str, str] = {}
    for line in told.splitlines():
        name, _, commit = line.rpartition(" ")
        known.setdefault(name.removeprefix("refs/heads/").removeprefix("refs/remotes/"), commit)
    return known


def _is_of_remote(branch: str, pattern: str) -> bool:
    return branch.split("/")[0] == pattern.split("/")[0] and not branch.endswith("/HEAD")


def _made_here(repo: str, heads: dict[str, str]) -> list[str]:
    """Branches whose last commit an integration has written, as its message says."""
    if not heads:
        return []
    shown = f"--format=%H %(trailers:key={PICKED_FROM},valueonly,separator=%x20)"
    told = [line.split() for line in git(repo, "log", "--no-walk=unsorted", shown, *heads.values()).splitlines()]
    ours = {commit for commit, *picked in told if picked}
    return [branch for branch, head in heads.items() if head in ours]


def _unknown(repo: str, name: str, known: list[str]) -> MngrError:
    from mngr.address import nearest

    close = nearest(name, known)
    hint = f"did you mean {close}?" if close else "git branch --all shows what there is"
    return UsageError(f"there is no branch {name} in {repo}", hint)


# Runs


def _load(directory: str) -> Run:
    run = load(directory)
    if is_taken(directory):
        raise MngrError(
            f"{run.id} is still going on", f"mngr swarm status {run.id} shows how; integrate it when it is done"
        )
    return run


def _repository(run: Run, project: str) -> tuple[str, list[str]]:
    """Where the work of a run is, and what is to be told of that. One that was begun in a linked work tree has left it
    in the repository which all of them share."""
    if os.path.isdir(project):
        return project, []
    common = str(run.plan.get("common") or "")
    if not os.path.isdir(common):
        raise MngrError(
            f"{run.id} is a run of {project}, which is not there any more",
            "if it was a linked work tree: git worktree add makes it anew",
        )
    told = git(common, "worktree", "list", "--porcelain", "-z").split("\0")[0].removeprefix("worktree ")
    repo = told if os.path.isdir(told) else common
    return repo, [f"{project} is not there any more: the work of {run.id} is taken from {repo}"]


def _with_commits(run: Run) -> list[Task]:
    return [task for task in run.tasks.values() if task.home.get("commits")]


def _why_not(task: Task, there: set[str]) -> str:
    if task.outcome not in words.GOOD:
        return task.why or (task.outcome and f"it is {task.outcome}") or "it is not settled yet"
    if task.home.get("commits") and task.home["head"] not in there:
        return f"its last commit {task.home['head'][:10]} is not in the repository any more"
    return ""


def _source(run: Run, task: Task) -> Source:
    claims: dict[str, dict[str, Any]] = {}
    for change in members(task.claim, "changes"):
        said = str(change.get("commit") or "")
        for commit in task.home["commits"]:
            if said and commit.startswith(said):
                claims[commit] = change
    return Source(
        branch=task.branch,
        head=task.home["head"],
        agent=task.name,
        run=run.id,
        test=str(task.data.get("test") or task.title),
        outcome=task.outcome,
        summary=str(task.claim.get("summary") or ""),
        claims=claims,
        check=task.check,
        escalations=members(task.claim, "escalations"),
        directory=_place(run, task),
    )


def _passed(run: Run, task: Task, why: str) -> Passed:
    has_commits = bool(task.home.get("commits"))
    return Passed(
        task=task.title,
        run=run.id,
        outcome=task.outcome or task.phase,
        why=why,
        agent=task.name if task.agent else "",
        branch=task.branch if has_commits else "",
        head=task.home["head"] if has_commits else "",
        escalations=members(task.claim, "escalations"),
    )


def _place(run: Run, task: Task) -> str:
    return os.path.join(run.directory, "tasks", task.name)


def _nothing(runs: list[Run], passed: list[Passed]) -> tuple[str, str]:
    names = ", ".join(run.id for run in runs)
    if missing := [each for each in passed if is_missing(each.outcome, each.branch)]:
        gone = "a branch" if len(missing) == 1 else f"{len(missing)} branches"
        return (
            f"nothing to integrate in {names}: {gone} ended well, but the commits are not in the repository any more",
            f"{missing[0].branch} was at {missing[0].head[:10]}; somebody else may still have it",
        )
    bad = [each for each in passed if each.branch]
    if bad:
        branches = "1 branch" if len(bad) == 1 else f"{len(bad)} branches"
        return (
            f"nothing to integrate in {names}: {branches}, but no task that ended well has one",
            f"mngr swarm show {runs[0].id} says why; mngr integrate takes branches as they are",
        )
    return f"nothing to integrate in {names}: no agent has handed in a commit", f"mngr swarm show {runs[0].id}"


def _unfinished(run: Run) -> str:
    left = sum(not task.is_over for task in run.tasks.values())
    if not left:
        return ""
    tasks = "1 task is" if left == 1 else f"{left} tasks are"
    return f"{run.id} is not done: {tasks} not settled, and not part of this"


def _commits_there(repo: str, commits: list[str]) -> set[str]:
    if not commits:
        return set()
    return set(git(repo, "rev-list", "--no-walk=unsorted", "--ignore-missing", *commits).split())


def _base(repo: str, runs: list[Run]) -> str:
    """The latest of their bases: it has all that the others have, and what was made on an older one is picked onto
    it."""
    bases = list(dict.fromkeys(str(run.plan.get("base") or "") for run in runs))
    for base in bases:
        if all(other == base or contains(repo, base, other) for other in bases):
            return base
    named = ", ".join(f"{run.id} at {str(run.plan.get('base'))[:10]}" for run in runs)
    raise MngrError(
        f"these runs began at commits of which none contains the others: {named}", "integrate one run after the other"
    )


def contains(repo: str, commit: str, other: str) -> bool:
    try:
        git(repo, "merge-base", "--is-ancestor", other, commit)
    except MngrError:
        return False
    return True
