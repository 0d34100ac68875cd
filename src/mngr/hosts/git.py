"""Git between here and a host, by its own negotiation: the transport is whatever runs `sh` there."""

from __future__ import annotations

import os

from mngr import hosts, process, waiting
from mngr.errors import HostUnreachable, MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.hosts import Host

# of the caller, for instance a git hook; common.sh does the same for scripts
NOT_OURS = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"),
    *("GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"),
)
# what git says when somebody else writes the same ref, and when its other end goes away
_REFUSED = ("cannot lock ref", "reference already exists", "incorrect old value")
_BROKEN = ("hung up unexpectedly", "early EOF", "unexpected disconnect", "Broken pipe")


def fetch_url(host: Host, path: str) -> str:
    """What `git fetch` here takes for a repository there."""
    return _url(host, path, "env GIT_PROTOCOL=version=2 git upload-pack")


def push_url(host: Host, path: str) -> str:
    return _url(host, path, "git receive-pack")


def _url(host: Host, path: str, service: str) -> str:
    if host.lines is None:
        return path
    words = host.argv(f"unset {' '.join(NOT_OURS)}; exec {service} {process.quote(path)}", [])
    # of this transport's signs, which splits its command at blanks
    return "ext::" + " ".join(word.replace("%", "%%").replace(" ", "% ") for word in words)


def run(repo: str, *words: str, input: bytes = b"", deadline: float = 600.0) -> process.Done:
    """git in that very repository here, whatever the caller's environment says, and in words that we can read."""
    env = {key: value for key, value in os.environ.items() if key not in NOT_OURS}
    env["LC_ALL"] = "C"
    if any(word.startswith("ext::") for word in words):
        env["GIT_ALLOW_PROTOCOL"] = "ext:file:git:http:https:ssh"  # in place of a user's own list, which may lack it
        env["GIT_REFLOG_ACTION"] = "mngr"  # not the whole command line, with what goes to the host in it
    quiet = ("-c", "advice.diverging=false", "-c", "advice.detachedHead=false")
    return process.run(["git", "-C", repo, *quiet, *words], input=input, deadline=deadline, env=env)


def insist(repo: str, *words: str, deadline: float) -> process.Done:
    """The same for what others may do at the same time: of two who write one ref, one is refused, and finds it written
    when it tries again."""
    for pause in (0.1, 0.4, 0.0):
        done = run(repo, *words, deadline=deadline)
        if not done.code or not any(sign in done.err for sign in _REFUSED):
            break
        waiting.pause(pause)
    return done


def give(host: Host, repo: str, store: str, commits: Iterable[str]) -> None:
    """These commits of a repository here, into a store there: by git's own negotiation, so that only what is new goes.
    It may be done again."""
    refs = [f"{commit}:refs/mngr/base/{commit}" for commit in commits]
    done = insist(repo, "push", "-q", "--no-verify", "--", push_url(host, store), *refs, deadline=3600)
    if "shallow update not allowed" in done.err:
        raise MngrError(f"{repo} is a shallow repository", "git fetch --unshallow there first")
    if done.code:
        raise failure(host, f"git could not send {repo} to {host.name}", done)


def failure(host: Host, what: str, done: process.Done) -> MngrError:
    """The error that says why git between here and that host failed: because of git, or of the way there, whose end
    looks to git like any other."""
    said = [line.removeprefix("fatal: ").removeprefix("error: ").strip() for line in done.err.splitlines()]
    said = [line for line in said if line] or [str(done.code)]
    if "Could not read from remote repository." in said:
        said = said[:1]  # what the other end said; the rest is advice
    said += [line.removeprefix("remote: ") for line in said if "cannot lock ref" in line]  # with the file in the way
    if host.lines is not None:
        try:
            hosts.run(host, ":", deadline=20)
        except MngrError as error:
            return HostUnreachable(error.message)
        if any(sign in done.err for sign in _BROKEN):
            return HostUnreachable(f"{host.name}: the connection ended in the middle", "it is there again: try again")
    return MngrError(f"{what}: {said[-1]}")
