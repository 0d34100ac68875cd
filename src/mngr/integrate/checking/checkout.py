"""A clean checkout to run tests in. It is a repository of its own, which borrows objects of the scratch repository, so
that whatever tests do with git in there is done to nobody else's. From one tree to the next it keeps what its setup has
made, and nothing that tests have left."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import time

from mngr import jsonline, process
from mngr.errors import MngrError, TimedOut
from mngr.integrate.picking.scratch import quoted
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


class Stopped(Exception):
    """Somebody else has failed, or pressed Ctrl-C; what was begun has been ended."""


class SetupFailed(MngrError):
    """On this tree; on another it may do."""


def environment() -> dict[str, str]:
    """Of the tests, and of git in their checkout: the user's own, with their settings for git."""
    return {key: value for key, value in os.environ.items() if key not in _WITHHELD}


class Checkout:
    def __init__(self, scratch: Scratch, directory: str, how: How, stop: Event) -> None:
        self._scratch, self._how, self._stop = scratch, how, stop
        self.top = os.path.join(directory, "work")
        self._private = directory
        self._output = os.path.join(directory, "output.txt")
        self._env = environment()
        self._given: set[str]  # untracked, and ours: copied, or made by the setup
        self._is_own = False  # do packages come from here? That is looked at once
        self._set_up_for: str  # what decides what is installed; empty: not yet
        self._begin()

    def switch(self, tree: str) -> None:
        """As the tree has it. SetupFailed if the setup does not work there."""
        commit = self._scratch.commit(tree, [self._scratch.base])
        try:
            self._check_out(commit)
        except MngrError:  # tests that use git may have left a lock, or worse
            self._begin()
            self._check_out(commit)
        if self._how.setup and self._set_up_for != (wanted := self._installed(tree)):
            self._set_up_for, self._is_own = "", False
            self._set_up()
            self._given |= self._own_files()
            self._set_up_for = wanted

    def run(self, tests: list[str]) -> dict[str, list[str]]:
        """How they end in what is checked out: a word, and what was said."""
        if self._how.check:
            return dict.fromkeys(tests, self._checked())
        job, answer = (os.path.join(self._private, name) for name in ("job.json", "answer.json"))
        if os.path.exists(answer):
            os.remove(answer)
        with open(job, "w", encoding="ascii") as file:
            file.write(jsonline.dumps(self._job(tests)))
        program = os.path.join(self._private, "checker", f"{_PLUGIN}.py")
        code = self._attend([sys.executable, program, "run", job, answer])
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
        for pattern in self._how.copy:
            for path in glob.glob(pattern, root_dir=self._scratch.repo, include_hidden=True):
                self._copy(path)
        self._given, self._set_up_for = self._own_files(), ""

    def _copy(self, path: str) -> None:
        source, target = os.path.join(self._scratch.repo, path), os.path.join(self.top, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)

    def _check_out(self, commit: str) -> None:
        for path in self._untracked() - self._given:
            remove(os.path.join(self.top, path))
        self._git("checkout", "-q", "-f", "--detach", commit)

    def _own_files(self) -> set[str]:
        """Without bytecode: Python trusts it by the second and the size of its source, and we change sources faster
        than that."""
        return {path for path in self._untracked() if not path.endswith("__pycache__/")}

    def _untracked(self) -> set[str]:
        """Ignored or not. A directory in which nothing is tracked stands for all in it."""
        return set(self._git("ls-files", "-z", "--others", "--directory").split("\0")) - {""}

    def _installed(self, tree: str) -> str:
        listed = self._scratch.git("ls-tree", "-r", "-z", "--full-tree", tree).split("\0")
        return "\n".join(["-", *(line for line in listed if decides_what_is_installed(line.partition("\t")[2]))])

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
        line = ["git", "-C", where or self.top, "-c", "core.hooksPath=/dev/null", *words]
        done = process.run(line, deadline=_DEADLINE, env={**self._env, "LC_ALL": "C"})
        if done.code:
            said = done.err.strip().splitlines()
            raise MngrError(f"git {words[0]} failed in a checkout: {said[-1] if said else done.code}")
        return done.out

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
