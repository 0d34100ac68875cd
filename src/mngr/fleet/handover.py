"""pull and push: commits between an agent's work dir and the user's repository. Branches move forward only; a dirty
checkout is never touched. Git itself says no, and we pass it on in one line."""

from __future__ import annotations

import os

from mngr import hosts
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.fleet.origin import store_path
from mngr.fleet.outcome import Outcome, counted, one_by_one, per_host
from mngr.fleet.select import one
from mngr.hosts import git
from mngr.model import CLONE, WORKTREE, Agent, is_commit
from mngr.process import quote
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref
    from mngr.process import Done

_FETCH = ("fetch", "--no-recurse-submodules", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
# "work ID FILES COMMIT ON", and "tip ID COMMIT REF" for each branch of a clone
_LOOK = """
look() ( # look ID WORK_DIR MODE
  cd "$2" || exit 0
  git --no-optional-locks status --porcelain=v2 --branch | awk -v id="$1" '
    $1 != "#" { files++; next }
    $2 == "branch.oid" { commit = $3 }
    $2 == "branch.head" { on = $3 }
    END { if (on != "") print "work", id, files + 0, commit, on }'
  [ "$3" != clone ] || git for-each-ref --format="tip $1 %(objectname) %(refname)" refs/heads
) 2>/dev/null
"""


class Work(Record):
    """What an agent has besides its own branch."""

    files: int = 0  # uncommitted
    on: str | None = None  # the ref that is checked out; None: a commit on no branch
    tips: list[tuple[str, str]] = []  # noqa: RUF012 - Record copies defaults; (commit, ref) that a pull should not miss


def pull(fleet: Fleet, ref: Ref, *, into: str | None = None, merge: bool = False) -> Outcome:
    """Its branch, in the user's repository under the same name; what it has committed elsewhere, under names of our
    own. `merge` also merges its branch into what is checked out there."""
    agent = _with_branch(_record(fleet, ref.name), "pull")
    repo = _repository(agent, into)
    host = fleet.host(agent.host)
    return _pull(host, agent, repo, _look(host, [agent])[agent.id], _branches(repo), merge)


def pull_many(fleet: Fleet, agents: Iterable[Agent]) -> list[Outcome]:
    """`pull` for agents whose records are at hand: hosts and repositories are asked once for all of them, and only who
    has something new costs a fetch. One that fails stops nobody else."""
    known = {agent.id: agent for agent in agents}

    def from_host(host: Host, refs: list[Ref]) -> list[Outcome]:
        works = _look(host, [known[ref.id] for ref in refs])
        branches: dict[str, dict[str, str]] = {}

        def act(ref: Ref) -> Outcome:
            agent = _with_branch(known[ref.id], "pull")
            repo = agent.source or ""
            if repo not in branches:
                branches[repo] = _branches(_repository(agent, None))
            return _pull(host, agent, repo, works[ref.id], branches[repo])

        return one_by_one(refs, act)

    return per_host(fleet, [agent.ref for agent in known.values()], from_host)


def _pull(host: Host, agent: Agent, repo: str, work: Work, branches: dict[str, str], merge: bool = False) -> Outcome:
    """`branches` are those of the repository, as they were."""
    did = f"{_fetch(host, agent, repo, work, branches)} in {repo}"
    did += _fetch_others(host, agent, repo, work)
    if merge:
        did += f"; {_merge(repo, agent.branch or '')}"
    if work.files:
        did += f"; {counted(work.files, 'uncommitted file')} {'stays' if work.files == 1 else 'stay'} there"
    return Outcome(id=agent.id, name=agent.name, did="pulled", why=did)


def push(fleet: Fleet, ref: Ref, *, rev: str = "HEAD", source: str | None = None, merge: bool = False) -> Outcome:
    """Commits of the user's repository, into the agent's branch and work dir: forward only, or merged there."""
    name = ref.name
    agent = _with_branch(_record(fleet, name), "push")
    repo = _repository(agent, source)
    commit = git.run(repo, "rev-parse", "--verify", "-q", "--end-of-options", f"{rev}^{{commit}}").out.strip()
    if not commit:
        raise MngrError(f"{rev} is not a commit in {repo}")
    host = fleet.host(agent.host)
    if agent.mode == CLONE:
        git.give(host, repo, store_path(host, agent.source or ""), [commit])  # the agent borrows from it
    elif host.lines is not None:
        git.give(host, repo, agent.work_dir, [commit])
    elif source:  # a worktree shares its objects with the repository that it is of, not with this one
        done = git.run(agent.work_dir, "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--", repo, commit)
        if done.code:
            raise MngrError(f"{name} could not fetch from {repo}: {_last(done.err)}")
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
    if text == "same":
        return Outcome(id=agent.id, name=agent.name, did="unchanged", why=f"it has {commit[:12]} already")
    why = f"{commit[:12]} is now in {agent.branch}, {counted(int(text), 'commit')} on"
    return Outcome(id=agent.id, name=agent.name, did="pushed", why=why)


def _record(fleet: Fleet, name: str) -> Agent:
    return one(fleet, name).record()


def _with_branch(agent: Agent, verb: str) -> Agent:
    if agent.branch is None:
        raise MngrError(
            f"{agent.name} has no branch (mode {agent.mode})", f"files go by path: mngr {verb} {agent.name}:PATH"
        )
    return agent


def _repository(agent: Agent, named: str | None) -> str:
    path = os.path.abspath(os.path.expanduser(named)) if named else agent.source or ""
    if git.run(path or "/", "rev-parse", "--git-dir").code:
        raise UsageError(f"{path} is not a git repository any more", "name one with --repo DIR")
    return path


def _branches(repo: str) -> dict[str, str]:
    """The commit of each, by its full name."""
    lines = _ask(repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads").splitlines()
    return dict(line.split(" ") for line in lines)


def _look(host: Host, agents: list[Agent]) -> dict[str, Work]:
    """By id; of one whose work dir cannot be read nothing is known, and to fetch from it fails."""
    calls = [" ".join(["look", *map(quote, (agent.id, agent.work_dir, agent.mode))]) for agent in agents]
    works = {agent.id: Work(on=f"refs/heads/{agent.branch}") for agent in agents}
    for line in hosts.run(host, "\n".join([_LOOK, *calls]), deadline=60.0 + len(agents)).out.splitlines():
        word, id, first, rest = (*line.split(" ", 3), "", "", "")[:4]
        if id not in works:
            continue
        work = works[id]
        if word == "tip":
            if is_commit(first) and rest.startswith(
                "refs/heads/"
            ):  # the words go to git, and came from another machine
                works[id] = work.replace(tips=[*work.tips, (first, rest)])
            continue
        commit, _, on = rest.partition(" ")
        if not first.isdecimal() or not on or not (is_commit(commit) or commit == "(initial)"):
            continue
        if on == "(detached)":
            works[id] = work.replace(files=int(first), on=None, tips=[(commit, "HEAD")])
        else:
            works[id] = work.replace(files=int(first), on=f"refs/heads/{on}")
    return works


def _fetch(host: Host, agent: Agent, repo: str, work: Work, branches: dict[str, str]) -> str:
    """Forward only: git refuses a branch that would lose commits, and one that is checked out."""
    branch = agent.branch or ""
    ref = f"refs/heads/{branch}"
    if agent.mode == WORKTREE and repo == agent.source:
        return f"{branch} is already"
    before = branches.get(ref)
    if before and (before, ref) in work.tips:
        return f"{branch} is up to date"
    done = git.insist(repo, *_FETCH, "--", git.fetch_url(host, agent.work_dir), f"{ref}:{ref}", deadline=3600)
    if done.code and "refusing to fetch into" in done.err:
        _into_checked_out(host, agent, repo, branch)
    elif done.code and "non-fast-forward" in done.err:
        raise MngrError(
            f"{branch} in {repo} has commits that {agent.name} does not have",
            f"mngr push {agent.name} --merge first, or rename it",
        )
    elif done.code:
        raise git.failure(host, f"git could not fetch {branch}", done)
    known = before or agent.base
    new = int(_ask(repo, "rev-list", "--count", ref, *([f"^{known}"] if known else [])))
    return f"{branch} has {counted(new, 'new commit')}" if new or not before else f"{branch} is up to date"


def _into_checked_out(host: Host, agent: Agent, repo: str, branch: str) -> None:
    """The branch is checked out in the user's repository: move it with its files, if those are clean."""
    where = repo
    for block in _ask(repo, "worktree", "list", "--porcelain").split("\n\n"):
        lines = block.split("\n")
        if f"branch refs/heads/{branch}" in lines:
            where = lines[0].removeprefix("worktree ")
    _require_clean(where)
    url = git.fetch_url(host, agent.work_dir)
    fetched = git.run(where, "fetch", "--no-tags", "-q", "--", url, f"refs/heads/{branch}", deadline=3600)
    if fetched.code:
        raise git.failure(host, f"git could not fetch {branch}", fetched)
    merged = git.run(where, "merge", "--ff-only", "-q", "FETCH_HEAD")
    if merged.code and "fast-forward" in merged.err:
        raise MngrError(
            f"{branch} in {where} has commits that {agent.name} does not have", f"mngr push {agent.name} --merge first"
        )
    if merged.code:
        raise MngrError(f"git could not move {branch} in {where}: {_last(merged.err)}")


def _fetch_others(host: Host, agent: Agent, repo: str, work: Work) -> str:
    """By the measure of destroy: what no branch, tag or remote of the user's repository has. Not under the name of the
    agent's branch and a slash: git has no branch beneath a branch."""
    own = f"refs/heads/{agent.branch}"
    on = work.on.removeprefix("refs/heads/") if work.on else "a commit of its own"
    said = "" if work.on == own else f"; it is on {on}, not on {agent.branch}"
    for commit, ref in work.tips:
        if ref == own:
            continue
        lacking = git.run(repo, "rev-list", "-n", "1", commit, "--not", "--branches", "--tags", "--remotes")
        if lacking.code == 0 and not lacking.out:
            continue
        short = ref.removeprefix("refs/heads/")
        to = f"mngr/{agent.name}--{commit[:12] if ref == 'HEAD' else short}"
        done = git.insist(
            repo, *_FETCH, "--", git.fetch_url(host, agent.work_dir), f"{ref}:refs/heads/{to}", deadline=3600
        )
        if done.code:
            said += f"; {short} is not pulled ({_other_way(host, agent, short, done)})"
        else:
            said += f"; {'that' if ref == 'HEAD' else short} is here as {to}"
    return said


def _other_way(host: Host, agent: Agent, short: str, done: Done) -> str:
    if host.lines is None:
        return f"git fetch {agent.work_dir} {short} does it"
    error = git.failure(host, f"git could not fetch {short}", done)
    if isinstance(error, HostUnreachable):
        raise error
    return f"{error.message}; mngr pull {agent.name} --repo DIR brings it into another repository"


def _merge(repo: str, branch: str) -> str:
    _require_clean(repo)
    if git.run(repo, "rev-parse", "-q", "--verify", "MERGE_HEAD").code == 0:
        raise MngrError(f"{repo} is in the middle of a merge and is left alone", "finish that first")
    here = git.run(repo, "symbolic-ref", "-q", "--short", "HEAD").out.strip() or "HEAD"
    before, tip = _ask(repo, "rev-parse", "HEAD"), _ask(repo, "rev-parse", f"refs/heads/{branch}")
    # by its full name, which no tag and no option can have; but that is not what a subject should say
    done = git.run(repo, "merge", "-q", "-m", f"Merge branch '{branch}'", f"refs/heads/{branch}")
    if done.code:
        if git.run(repo, "rev-parse", "-q", "--verify", "MERGE_HEAD").out.strip() == tip:  # not somebody else's merge
            git.run(repo, "merge", "--abort")
        raise MngrError(
            f"{branch} does not merge into {here}: {_last(done.out) or _last(done.err)}",
            "nothing was changed; merge by hand",
        )
    return f"{here} has it already" if _ask(repo, "rev-parse", "HEAD") == before else f"merged into {here}"


def _require_clean(path: str) -> None:
    if changes := _ask(path, "status", "--porcelain", "--untracked-files=no"):
        count = counted(len(changes.splitlines()), "uncommitted change")
        raise MngrError(f"{path} has {count} and is left alone", "commit or stash them first")


def _ask(repo: str, *words: str) -> str:
    """What git says; MngrError when it fails."""
    done = git.run(repo, *words)
    if done.code:
        raise MngrError(f"git {words[0]} failed in {repo}: {_last(done.err)}")
    return done.out.strip()


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("fatal: ").removeprefix("error: ").strip() if lines else ""
