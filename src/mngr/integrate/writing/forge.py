"""The way out of this machine: patches as files, a push, a pull request. Only the last two need a forge, and they are
the only ones that ever see its token: everything else, the tests of the agents above all, runs without it."""

from __future__ import annotations

import os
import re
import shutil

from mngr import jsonline, process
from mngr.errors import MngrError, UsageError
from mngr.integrate import plain
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mngr.integrate.picking.scratch import Scratch
    from mngr.process import Done

TOKENS = (
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITLAB_TOKEN",
    "GITEA_TOKEN",
    "BITBUCKET_TOKEN",
)
_DEADLINE = 600.0
_LONGEST_TITLE = 250
_NO_LOGIN = 4  # gh's exit code
_BASES = ("upstream", "github", "origin")  # the remote that gh takes for that of pull requests, if nobody has said
_OWNER = re.compile(r"(?:\w+://[^/]+/|[^/:]+:/?)(?P<owner>[^/]+(?:/[^/]+)*)/[^/]+/?")  # in an address, and not a path
# Of a git command around us, about another repository.
_OF_ANOTHER = "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_NAMESPACE GIT_PREFIX"


# The token


class Token:
    """What was taken out of the environment."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def environment(self) -> dict[str, str]:
        """For a child that may use it."""
        env = {key: value for key, value in os.environ.items() if key not in _OF_ANOTHER.split()}
        return {**env, **self._values, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    def give_back(self) -> None:
        os.environ.update(self._values)

    def __repr__(self) -> str:
        return f"Token({', '.join(self._values)})"


def withhold() -> Token:
    """From here on no child has it, unless it is given to it."""
    return Token({name: os.environ.pop(name) for name in TOKENS if name in os.environ})


# Patches


def patches(scratch: Scratch, base: str, tip: str, directory: str) -> list[str]:
    """A file for each commit, in order, for `git am -k --keep-cr`: so a subject in brackets and the ends of lines
    stay as they are. What an earlier integration has left there is removed."""
    os.makedirs(directory, exist_ok=True)
    for name in _patches_in(directory):
        os.remove(os.path.join(directory, name))
    words = ["--quiet", "--keep-subject", "--no-signature", "--full-index", "--no-ext-diff", "--no-textconv"]
    scratch.git("format-patch", *words, "-o", os.path.abspath(directory), f"{base}..{tip}")
    return [os.path.join(directory, name) for name in _patches_in(directory)]


def _patches_in(directory: str) -> list[str]:
    return sorted(name for name in os.listdir(directory) if name.endswith(".patch"))


# Pushing


def way_out(repo: str, remote: str, pull_request: bool, *, gh: str = "gh") -> str:
    """The name of the remote to push to: without one, that which git would push to. MngrError if there is none, or
    nothing that could open a pull request."""
    known = _git(repo, Token({}), "remote").out.splitlines()
    if remote and remote not in known:
        raise UsageError(f"there is no remote {remote} in {repo}", "git remote -v shows what there is")
    if pull_request and shutil.which(gh) is None:
        raise MngrError(
            f"{gh} is not installed, so there would be no pull request",
            "install it from https://cli.github.com, or leave out --pr",
        )
    usual = _git(repo, Token({}), "config", "--get", "remote.pushDefault").out.strip()
    for name in (remote, usual, "origin", *known[:1]):
        if name in known:
            return name
    raise MngrError(f"{repo} has no remote to push to", "git remote add origin URL, or leave out --push and --pr")


def push(repo: str, remote: str, branch: str, ours: Collection[str], token: Token) -> None:
    """The remote has the branch as it is here, afterwards. What it has there is overwritten only if it is one of
    `ours`: commits that integrations have written to this branch."""
    ref = f"refs/heads/{branch}"
    by_hand = f"git -C {quote(repo)} push {quote(remote)} {quote(branch)}"
    commit = _git(repo, token, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").out.strip()
    asked = _git(repo, token, "ls-remote", "--", remote, ref)
    if asked.code:
        raise MngrError(f"{remote} cannot be reached: {_last_words(asked)}", f"the branch is here; then: {by_hand}")
    there = next((line.split("\t")[0] for line in asked.out.splitlines() if line.endswith(f"\t{ref}")), "")
    if there != commit:
        # Forced only over our own. A branch that is not there must still not be, when the push arrives.
        lease = [f"--force-with-lease={ref}:{there}"] if not there or there in ours else []
        done = _git(repo, token, "push", "--porcelain", *lease, "--", remote, f"{ref}:{ref}")
        if done.code:
            raise _not_pushed(done, remote, branch, by_hand)


def _not_pushed(done: Done, remote: str, branch: str, by_hand: str) -> MngrError:
    refused = [line.split("\t")[-1] for line in done.out.splitlines() if line.startswith("!\t")]
    said = refused[0] if refused else _last_words(done)
    if any(word in said for word in ("non-fast-forward", "fetch first", "stale info")):
        return MngrError(
            f"{branch} on {remote} has commits that no integration has written; it is left as it is",
            f"git fetch {quote(remote)} shows them; to overwrite them: {by_hand} --force-with-lease",
        )
    return MngrError(f"{remote} has refused {branch}: {_shown(said)}", f"the branch is here; then: {by_hand}")


# Pull requests


def pull_request(
    repo: str, remote: str, base: str, branch: str, title: str, body_file: str, token: Token, *, gh: str = "gh"
) -> str:
    """The address of the pull request for the branch, which `remote` has: the open one with a new title and body, or a
    new one. `base` is the branch that it goes into; empty: the forge knows."""
    title = plain.shortened(plain.words(title), _LONGEST_TITLE)
    body_file = os.path.abspath(body_file)
    into = ["--base", base] if base else []
    fork = _fork(repo, remote, token)
    head = f"{fork}:{branch}" if fork else branch
    create = ["pr", "create", "--head", head, *into, "--title", title, "--body-file", body_file]
    by_hand = f"cd {quote(repo)} && gh {' '.join(quote(word) for word in create)}"
    if shutil.which(gh) is None:
        raise MngrError(
            f"{gh} is not installed, so there is no pull request", f"install it from https://cli.github.com; {by_hand}"
        )
    fields = ["--json", "number,url,isCrossRepository,headRepositoryOwner"]
    asked = _gh(repo, gh, token, "pr", "list", "--head", branch, "--state", "open", *fields)
    if asked.code:
        raise _no_pull_request(asked, by_hand)
    number, url = _open_one(asked.out, fork)
    if not number:
        done = _gh(repo, gh, token, *create)
        url = next((line.strip() for line in reversed(done.out.splitlines()) if "://" in line), "")
    else:
        edit = ["pr", "edit", number, "--title", title, "--body-file", body_file]
        by_hand = f"cd {quote(repo)} && gh {' '.join(quote(word) for word in edit)}"
        done = _gh(repo, gh, token, *edit)
    if done.code:
        raise _no_pull_request(done, by_hand)
    return url


def _fork(repo: str, remote: str, token: Token) -> str:
    """Whose it is, if the remote is not that of the repository that pull requests are for; else empty."""
    known = _git(repo, token, "remote").out.splitlines()
    said = _git(repo, token, "config", "--get-regexp", r"^remote\..*\.gh-resolved$", "^base$").out.split(" ")[0]
    names = (said.removeprefix("remote.").removesuffix(".gh-resolved"), *_BASES, remote)
    base = next(name for name in names if name in known or name == remote)
    theirs, ours = (_owner(repo, name, token) for name in (base, remote))
    return ours if theirs and theirs.lower() != ours.lower() else ""


def _owner(repo: str, remote: str, token: Token) -> str:
    found = _OWNER.fullmatch(_git(repo, token, "remote", "get-url", "--", remote).out.strip())
    return found["owner"] if found is not None else ""


def _open_one(answer: str, fork: str) -> tuple[str, str]:
    """Its number and address. Other forks may have a branch of the same name, and theirs is somebody else's."""
    try:
        found = jsonline.loads(answer)
        for each in found:
            owner = each["headRepositoryOwner"]["login"] if each.get("isCrossRepository") else ""
            if owner.lower() == fork.lower():
                return str(int(each["number"])), str(each["url"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MngrError(f"gh pr list has answered what nobody understands: {plain.shortened(answer, 80)!r}") from None
    return "", ""


def _no_pull_request(done: Done, by_hand: str) -> MngrError:
    said = _last_words(done)
    if done.code == _NO_LOGIN or "auth login" in done.err:
        return MngrError("gh is not logged in, so there is no pull request", f"gh auth login; then: {by_hand}")
    return MngrError(f"gh has made no pull request: {said}", f"by hand: {by_hand}")


def _gh(repo: str, gh: str, token: Token, *words: str) -> Done:
    """In the repository: gh finds out from its remotes which one it is on the forge."""
    line = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", repo, gh, *words]
    quiet = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
    return process.run(line, deadline=_DEADLINE, env={**token.environment(), **quiet})


def _git(repo: str, token: Token, *words: str) -> Done:
    return process.run(["git", "-C", repo, *words], deadline=_DEADLINE, env=token.environment())


def _last_words(done: Done) -> str:
    """git says what is wrong behind `fatal:`, and then what one could look at."""
    lines = [line for line in done.err.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "remote: error"))]
    return _shown((fatal or lines or [f"it ended with {done.code}"])[0 if fatal else -1])


def _shown(text: str) -> str:
    """Addresses of remotes can hold a password."""
    return plain.shortened(re.sub(r"://[^/@\s]+@", "://", plain.words(text)), 300)
