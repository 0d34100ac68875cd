"""A clean checkout to run tests in. It is a repository of its own, which borrows objects of the scratch repository, so
that whatever tests do with git in there is done to nobody else's; it has the settings and tags of the user's that tests
can see. From one tree to the next it keeps what its setup has made, and nothing that tests have left: where that cannot
be told apart any more, it is made anew."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
import time
from functools import partial

from mngr import jsonline, process
from mngr.errors import MngrError, TimedOut
from mngr.integrate.checking.made import Made
from mngr.integrate.picking.scratch import common_of, quoted
from mngr.swarm.testing import checker
from mngr.swarm.testing.judge import WAY_TO_OWN_PACKAGES
from mngr.swarm.testing.keys import decides_what_is_installed
from mngr.swarm.testing.kinds import rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event
    from typing import Any

    from mngr.integrate.checking.suite import How
    from mngr.integrate.picking.scratch import Scratch

_DEADLINE = 600.0  # of git
_FOR_SETUP = 3600.0
_CHECK_TIMES = 30  # the limit of a test, for a command that runs all of them
_COLLECT_TIMES = 5  # the same, until the first test is run
_PLUGIN = "mngr_swarm_checker"  # as a module in the user's interpreter, where nothing else has it
# What only one step may have, what is about ourselves if we are run by an agent, and what names another repository.
_WITHHELD = frozenset(
    """GH_TOKEN GITHUB_TOKEN GH_ENTERPRISE_TOKEN GITHUB_ENTERPRISE_TOKEN MNGR_INPUT MNGR_RESULT MNGR_ARTIFACTS
    GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
    GIT_NAMESPACE GIT_PREFIX""".split()
)
_SUBMODULE = "160000"
_OF_REPOSITORY = ("local", "worktree")  # the user's other settings are in force in any place
_SETTINGS = re.compile(
    r"(filter|lfs|user|author|committer|submodule)\.|core\.(autocrlf|eol|safecrlf|symlinks|attributesfile)$"
).match


class Stopped(Exception):
    """Somebody else has failed, or pressed Ctrl-C; what was begun has been ended."""


class SetupFailed(MngrError):
    """On this tree; on another it may do."""


def environment() -> dict[str, str]:
    """Of the tests, and of git in their checkout: the user's own, with their settings for git."""
    return {key: value for key, value in os.environ.items() if key not in _WITHHELD}


class Checkout:
    """`made` are paths that a setup makes, on whichever tree: all checkouts of a suite know them."""

    def __init__(self, scratch: Scratch, directory: str, how: How, stop: Event, made: set[str] | None = None) -> None:
        self._scratch, self._how, self._stop = scratch, how, stop
        self._made_anywhere = set() if made is None else made
        self.top = os.path.join(directory, "work")
        self._private = directory
        self._output = os.path.join(directory, "output.txt")
        self._env = environment()
        self._made: Made | None = None  # what is ours beside the tree: copied, or made by the setup
        self._is_own = False  # do packages come from here? That is looked at once
        self._set_up_for = ""  # the tree; empty: none yet

    def switch(self, tree: str, afresh: bool = False) -> None:
        """As the tree has it. SetupFailed if the setup does not work there."""
        base = self._scratch.base
        commit = base if tree == self._scratch.tree_of(base) else self._scratch.commit(tree, [base])
        if afresh or not self._is_set_up_for(tree) or not self._is_clean_at(commit, tree):
            self._begin()
            self._git("checkout", "-q", "-f", "--detach", commit)
            if self._how.setup:
                self._set_up()
            self._made = self._what_is_made(tree)
            self._set_up_for = tree

    def run(self, tests: list[str], whole: bool = False) -> dict[str, list[str]]:
        """How they end in what is checked out: a word, and what was said. `whole`: with all others, which are told
        too."""
        if self._how.check:
            return dict.fromkeys(tests, self._checked())
        job, answer = (os.path.join(self._private, name) for name in ("job.json", "answer.json"))
        if os.path.exists(answer):
            os.remove(answer)
        with open(job, "w", encoding="ascii") as file:
            file.write(jsonline.dumps({**self._job(tests), **({"paths": self._how.paths} if whole else {})}))
        program = os.path.join(self._private, "checker", f"{_PLUGIN}.py")
        # It needs nothing that is installed, and nothing of the project may be taken for what it imports.
        code = self._attend([sys.executable, "-I", "-S", program, "run", job, answer])
        try:
            with open(answer, encoding="ascii") as file:
                return self._told(jsonline.loads(file.read()))
        except OSError:
            raise MngrError(f"the tests could not be run: {self._last_line() or f'it ended with {code}'}") from None

    def _job(self, tests: list[str]) -> dict[str, Any]:
        return {
            "pytest": self._how.pytest,
            "flags": self._how.flags,
            "tests": tests,
            "timeout": self._how.limit,
            "longest": _COLLECT_TIMES * self._how.limit,
            "packages": [] if self._is_own else None,
            "kinds": rules(),
        }

    def _told(self, answer: dict[str, Any]) -> dict[str, list[str]]:
        if answer["error"]:
            raise MngrError(f"the tests could not be run: {answer['error']}")
        for name, place in answer["resolves"].items():
            if os.path.isabs(place):
                raise MngrError(f"{name} comes from {place}, not from the checkout", WAY_TO_OWN_PACKAGES)
        self._is_own = True
        outcomes: dict[str, list[str]] = answer["outcomes"]
        return outcomes

    def _checked(self) -> list[str]:
        """The command's exit code is all that counts."""
        try:
            code = self._attend(["sh", "-c", self._how.check], _CHECK_TIMES * self._how.limit)
        except TimedOut:
            return [checker.TIMED_OUT, ""]
        return [checker.FAILED, self._last_line() or f"it ended with {code}"] if code else [checker.PASSED, ""]

    # What is in it

    def _begin(self) -> None:
        """One that an earlier integration has left may be in any state."""
        self._made, self._is_own, self._set_up_for = None, False, ""
        remove(self._private)
        os.makedirs(os.path.join(self._private, "checker"))
        shutil.copyfile(checker.__file__, os.path.join(self._private, "checker", f"{_PLUGIN}.py"))
        form = self._scratch.git("rev-parse", "--show-object-format")
        self._git("init", "-q", "--template=", f"--object-format={form}", self.top, where=self._private)
        with open(os.path.join(self.top, ".git", "objects", "info", "alternates"), "wb") as file:
            file.write(os.fsencode(quoted(os.path.join(self._scratch.directory, "objects")) + "\n"))
        shallow = os.path.join(self._scratch.directory, "shallow")
        if os.path.exists(shallow):
            shutil.copy(shallow, os.path.join(self.top, ".git"))
        self._take_over_settings()
        self._take_over_tags()
        for pattern in self._how.copy:
            for path in glob.glob(pattern, root_dir=self._scratch.repo, include_hidden=True):
                self._copy(path)

    def _take_over_settings(self) -> None:
        """Those that decide what a file looks like that is checked out, who commits, and where submodules come from."""
        common = common_of(self._scratch.repo)
        said = self._git("config", "--list", "--show-scope", "--includes", "-z", where=self._scratch.repo)
        words = said.split("\0")
        for scope, setting in zip(words[0::2], words[1::2], strict=False):
            key, _, value = setting.partition("\n")
            if scope in _OF_REPOSITORY and _SETTINGS(key):
                self._git("config", "--add", key, value)
        if os.path.isdir(os.path.join(common, "lfs")):
            self._git("config", "lfs.storage", os.path.join(common, "lfs"))
        attributes = os.path.join(common, "info", "attributes")
        if os.path.exists(attributes):
            os.makedirs(os.path.join(self.top, ".git", "info"), exist_ok=True)
            shutil.copy(attributes, os.path.join(self.top, ".git", "info"))

    def _take_over_tags(self) -> None:
        """For versions that are made of them. A clone may lack what some point to: those are no loss."""
        said = self._git(
            "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags", where=self._scratch.repo
        )
        if said and not self._try_git("update-ref", "--stdin", input=said.encode("utf-8", "surrogateescape")).code:
            self._git("pack-refs", "--all")

    def _copy(self, path: str) -> None:
        source, target = os.path.join(self._scratch.repo, path), os.path.join(self.top, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)

    def _is_clean_at(self, commit: str, tree: str) -> bool:
        """Checks that out, beside what is ours. No: something is not as it was, or git does not work in here: tests
        that use it may have left a lock, or worse."""
        made = self._made
        if made is None:
            return False
        try:
            for path in self._untracked():
                if not made.has(path):
                    remove(os.path.join(self.top, path))
            made.remove_what_was_added(remove)
            self._git("checkout", "-q", "-f", "--detach", commit)
        except (MngrError, OSError):
            return False
        if not made.is_whole(partial(self._scratch.entries, tree)):
            return False
        made.change_again(remove)
        return True

    def _what_is_made(self, tree: str) -> Made:
        """Without bytecode: Python trusts it by the second and the size of its source, and we change sources faster
        than that. A submodule is none of git's business, and so of ours."""
        modules = {path for path, mode in self._listed(tree) if mode == _SUBMODULE}
        roots = [path for path in self._untracked() if not path.endswith("__pycache__/")]
        self._made_anywhere.update(path.rstrip("/") for path in roots)
        changed = set(self._git("ls-files", "-z", "--modified").split("\0")) - modules - {""}
        entries = partial(self._scratch.entries, tree)
        kept = os.path.join(self._private, "changed")
        return Made(self.top, [*roots, *(f"{path}/" for path in modules)], sorted(changed), entries, kept)

    def _untracked(self) -> set[str]:
        """Ignored or not. A directory in which nothing is tracked stands for all in it."""
        return set(self._git("ls-files", "-z", "--others", "--directory").split("\0")) - {""}

    def _listed(self, tree: str) -> list[tuple[str, str]]:
        """Paths, with modes."""
        lines = self._scratch.git("ls-tree", "-r", "-z", "--full-tree", tree).split("\0")
        return [(line.partition("\t")[2], line.partition(" ")[0]) for line in lines if line]

    def _is_set_up_for(self, tree: str) -> bool:
        """Also by what was made for another tree."""
        if not self._set_up_for or not (self._how.setup or self._how.copy):
            return bool(self._set_up_for)
        return self._installed(tree) == self._installed(self._set_up_for)

    def _installed(self, tree: str) -> list[str]:
        """What it depends on whether another setup is needed: with it, what a tree has in the place of something that
        a setup makes."""
        listed = self._scratch.git("ls-tree", "-r", "-z", "--full-tree", tree).split("\0")
        matters = [
            line for line in listed if line.startswith(_SUBMODULE) or decides_what_is_installed(line.partition("\t")[2])
        ]
        entries = self._scratch.entries(tree, sorted(self._made_anywhere))
        return [*matters, *(f"{path} {entry}" for path, entry in entries.items() if entry)]

    def _set_up(self) -> None:
        line = self._how.setup
        try:
            code = self._attend(["sh", "-c", line], _FOR_SETUP)
        except TimedOut:
            raise SetupFailed(f"setup was not done after {_FOR_SETUP:g} s: {line}") from None
        if code:
            raise SetupFailed(f"setup ended with {code}: {line}: {self._last_line()}".removesuffix(": "))

    # Programs

    def _git(self, *words: str, where: str = "") -> str:
        """Hooks are the user's, and not for our commits."""
        done = self._try_git(*words, where=where)
        if done.code:
            said = done.err.strip().splitlines()
            raise MngrError(f"git {words[0]} failed in a checkout: {said[-1] if said else done.code}")
        return done.out

    def _try_git(self, *words: str, where: str = "", input: bytes = b"") -> process.Done:
        line = ["git", "-C", where or self.top, "-c", "core.hooksPath=/dev/null", *words]
        return process.run(line, input=input, deadline=_DEADLINE, env={**self._env, "LC_ALL": "C"})

    def _attend(self, words: list[str], limit: float = float("inf")) -> int:
        """Runs it at the top to its end: its exit code. TimedOut after `limit` seconds, Stopped when we are to stop;
        then everything that it has started is ended first."""
        with open(self._output, "wb") as output:
            line = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", self.top, *words]
            child = process.start(line, stdout=output.fileno(), stderr=output.fileno(), env=self._env)
        end, pause = time.monotonic() + limit, 0.001
        while (code := child.poll()) is None:
            if time.monotonic() > end:
                child.end()
                raise TimedOut(f"no answer within {limit:g} s")
            if self._stop.wait(pause):
                child.end(grace=10)
                raise Stopped
            pause = min(pause * 2, 0.05)
        return code

    def _last_line(self) -> str:
        with open(self._output, "rb") as file:
            file.seek(max(0, os.path.getsize(self._output) - 2000))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:300] if lines else ""


def remove(path: str) -> None:
    """Whatever it is, and whatever tests have done to its permissions."""
    path = path.rstrip("/")
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, onerror=_insist)
    elif os.path.lexists(path):
        os.remove(path)


def _insist(_function: object, path: str, _error: object) -> None:
    """What cannot be removed even so is not worth an error: who needs its place will tell."""
    try:
        os.chmod(os.path.dirname(path), 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.remove(path)
    except OSError:
        pass
