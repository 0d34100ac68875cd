"""pull and push: commits between an agent's work dir and the user's repository. Branches move forward only; a dirty
checkout is never touched. Git itself says no, and we pass it on in one line."""

from __future__ import annotations

import os

from mngr import hosts, process
from mngr.errors import MngrError, UsageError
from mngr.fleet.origin import store_path
from mngr.fleet.outcome import Outcome, counted
from mngr.fleet.select import one
from mngr.model import CLONE, WORKTREE, Agent
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.model import Ref

_QUIET = ("-c", "advice.diverging=false", "-c", "advice.detachedHead=false")


def pull(fleet: Fleet, ref: Ref, *, into: str | None = None, merge: bool = False) -> Outcome:
    """Its branch, in the user's repository under the same name. `merge` also merges it into what is checked out
    there."""
    agent = _with_branch(fleet, ref.name, "pull")
    repo = _repository(agent, into)
    branch = agent.branch or ""
    if agent.mode == WORKTREE and into is None:
        did = f"{branch} is already in {repo}"
    else:
        did = f"{_fetch(agent, repo, branch)} in {repo}"
    behind = _left_behind(fleet, agent)
    if merge:
        did += f"; {_merge(repo, branch)}"
    return Outcome(id=agent.id, name=agent.name, did="pulled", why=did + behind)


def push(fleet: Fleet, ref: Ref, *, rev: str = "HEAD", source: str | None = None, merge: bool = False) -> Outcome:
    """Commits of the user's repository, into the agent's branch and work dir: forward only, or merged there."""
    name = ref.name
    agent = _with_branch(fleet, name, "push")
    repo = _repository(agent, source)
    commit = _git(repo, "rev-parse", "--verify", "-q", f"{rev}^{{commit}}", failure=f"{rev} is not a commit in {repo}")
    host = fleet.host(agent.host)
    if agent.mode == CLONE:
        # the agent borrows from this store, so that what is in it is in the agent's repository too
        _git(repo, "push", "-q", store_path(host, agent.source or ""), f"{commit}:refs/mngr/base/{commit}")
    words = (agent.work_dir, agent.branch or "", commit, "--no-edit" if merge else "--ff-only")
    call = "take_commit " + " ".join(quote(word) for word in words)
    script = hosts.read_script(__file__, "push.sh") + "\n" + call
    done = hosts.run(host, script, deadline=120)
    if done.code:
        said = done.err.strip()
        if "fast-forward" in said:
            raise MngrError(
                f"{name} has commits that {rev} does not have", "push --merge merges there, or mngr pull them first"
            )
        raise MngrError(f"{name} did not take {rev}: {said}")
    text = done.out.strip()
    did = f"{name} has {commit[:12]} already"
    if text != "same":
        did = f"{commit[:12]} is now in {agent.branch}, {counted(int(text), 'commit')} on"
    return Outcome(id=agent.id, name=agent.name, did="pushed", why=did)


def _with_branch(fleet: Fleet, name: str, verb: str) -> Agent:
    agent = one(fleet, name).agent
    if agent is None:
        raise MngrError(f"{name} is damaged")
    if agent.branch is None:
        raise MngrError(f"{name} has no branch (mode {agent.mode})", f"files go by path: mngr {verb} {name}:PATH")
    return agent


def _repository(agent: Agent, named: str | None) -> str:
    path = os.path.abspath(os.path.expanduser(named)) if named else agent.source or ""
    if process.run(["git", "-C", path or "/", "rev-parse", "--git-dir"], deadline=20).code:
        raise UsageError(f"{path} is not a git repository any more", "name one with --repo DIR")
    return path


def _fetch(agent: Agent, repo: str, branch: str) -> str:
    """Forward only: git refuses a branch that would lose commits, and one that is checked out."""
    ref = f"refs/heads/{branch}"
    before = process.run(["git", "-C", repo, "rev-parse", "-q", "--verify", ref], deadline=20).out.strip()
    quiet = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    plain = {**os.environ, "LC_ALL": "C"}  # what git says is read below
    done = process.run(["git", "-C", repo, "fetch", *quiet, agent.work_dir, f"{ref}:{ref}"], deadline=600, env=plain)
    if done.code and "refusing to fetch into" in done.err:
        _into_checked_out(agent, repo, branch)
    elif done.code and "non-fast-forward" in done.err:
        raise MngrError(
            f"{branch} in {repo} has commits that {agent.name} does not have",
            f"mngr push {agent.name} --merge first, or rename it",
        )
    elif done.code:
        raise MngrError(f"git could not fetch {branch}: {_last(done.err)}")
    after = _git(repo, "rev-parse", ref)
    if before == after:
        return f"{branch} is up to date"
    new = _git(
        repo, "rev-list", "--count", after, *([f"^{before}"] if before else [f"^{agent.base}"] if agent.base else [])
    )
    return f"{branch} has {counted(int(new), 'new commit')}"


def _into_checked_out(agent: Agent, repo: str, branch: str) -> None:
    """The branch is checked out in the user's repository: move it with its files, if those are clean."""
    where = repo
    for block in _git(repo, "worktree", "list", "--porcelain").split("\n\n"):
        lines = block.splitlines()
        if f"branch refs/heads/{branch}" in lines:
            where = lines[0].removeprefix("worktree ")
    _require_clean(where)
    fetched = process.run(
        ["git", "-C", where, "fetch", "--no-tags", "-q", agent.work_dir, f"refs/heads/{branch}"], deadline=600
    )
    if fetched.code:
        raise MngrError(f"git could not fetch {branch}: {_last(fetched.err)}")
    done = process.run(["git", "-C", where, "merge", "--ff-only", "-q", "FETCH_HEAD"], deadline=120)
    if done.code:
        raise MngrError(
            f"{branch} in {where} has commits that {agent.name} does not have", f"mngr push {agent.name} --merge first"
        )


def _merge(repo: str, branch: str) -> str:
    _require_clean(repo)
    if process.run(["git", "-C", repo, "rev-parse", "-q", "--verify", "MERGE_HEAD"], deadline=20).code == 0:
        raise MngrError(f"{repo} is in the middle of a merge and is left alone", "finish that first")
    here = process.run(["git", "-C", repo, "symbolic-ref", "-q", "--short", "HEAD"], deadline=20).out.strip() or "HEAD"
    before = _git(repo, "rev-parse", "HEAD")
    done = process.run(["git", "-C", repo, *_QUIET, "merge", "--no-edit", "-q", branch], deadline=300)
    if done.code:
        process.run(["git", "-C", repo, "merge", "--abort"], deadline=60)
        raise MngrError(
            f"{branch} does not merge into {here}: {_last(done.out) or _last(done.err)}",
            "nothing was changed; merge by hand",
        )
    return f"{here} has it already" if _git(repo, "rev-parse", "HEAD") == before else f"merged into {here}"


def _require_clean(path: str) -> None:
    if changes := _git(path, "status", "--porcelain", "--untracked-files=no"):
        count = counted(len(changes.splitlines()), "uncommitted change")
        raise MngrError(f"{path} has {count} and is left alone", "commit or stash them first")


def _left_behind(fleet: Fleet, agent: Agent) -> str:
    script = f"git --no-optional-locks -C {quote(agent.work_dir)} status --porcelain | grep -c ''"
    count = hosts.run(fleet.host(agent.host), script, deadline=60).out.strip()
    stays = "stays" if count == "1" else "stay"
    return "" if count in ("", "0") else f"; {counted(int(count), 'uncommitted file')} {stays} there"


def _git(repo: str, *words: str, failure: str | None = None) -> str:
    done = process.run(["git", "-C", repo, *words], deadline=600)
    if done.code:
        raise MngrError(failure or f"git {words[0]} failed in {repo}: {_last(done.err)}")
    return done.out.strip()


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("fatal: ").removeprefix("error: ").strip() if lines else ""
