"""A world to measure in: a MNGR_HOME, a repository, and a bare tmux server beside mngr's own, all in one directory.

Its name is in the environment or the arguments of every process that belongs to it: by that they are counted, and by
that they are ended, one by one, when the world is left."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from repository import make_repository

from mngr.hosts.sockets import socket_path

PYTHON = sys.executable
MNGR = str(Path(sys.executable).parent / "mngr")
INTERPRETER = [PYTHON, "-c", "pass"]  # what every floor begins with
WIDTH, HEIGHT = "200", "50"


class CommandFailed(Exception):
    pass


class Process(NamedTuple):
    parent: int
    line: str  # its arguments, then its environment


class World:
    """Two tmux servers: mngr's (`socket`), and the one of the floors (`bare`). All programs in both are `program`."""

    def __init__(self, files: int = 3) -> None:
        # A short name, because the path of a socket may have about 100 bytes.
        self.root = Path(tempfile.mkdtemp(prefix="mngr-b-")).resolve()
        self.repo = self.root / "repo"
        self.socket = socket_path(str(self.root / "m"))
        self.program = ["sleep", str(10_000_000 + os.getpid())]
        self.env = {
            "HOME": str(self.root / "home"),
            "MNGR_HOME": str(self.root / "m"),
            "TMPDIR": str(self.root),
            "PATH": os.environ.get("PATH", os.defpath),
            "SHELL": "/bin/sh",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self._files = files

    def __enter__(self) -> World:
        try:
            (self.root / "home").mkdir()
            (self.root / "home" / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.com\n")
            make_repository(self.repo, self._files, self.env)
            # Both servers stay when their last session goes, and both are up before anything is measured.
            self.run(["tmux", "-f", "/dev/null", *self.bare("start-server", ";", "set", "-g", "exit-empty", "off")[1:]])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Ctrl-C must not stop this half-way."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for socket in (self.socket, str(self.root / "bare")):
            subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
        deadline = time.monotonic() + 20
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)
        subprocess.run(["rm", "-rf", str(self.root), self.socket])
        signal.signal(signal.SIGINT, before)
        if left:
            print(f"bench: still running: {left}", file=sys.stderr)

    def mngr(self, *words: str) -> list[str]:
        return [MNGR, *words]

    def create(self, name: str, *options: str) -> list[str]:
        return self.mngr("create", name, "command", *options, "--no-connect", "--", *self.program)

    def bare(self, *words: str) -> list[str]:
        """A tmux command for the bare server; ";" chains several."""
        return ["tmux", "-u", "-S", str(self.root / "bare"), *words]

    def bare_session(self, name: str, directory: Path | None = None) -> list[str]:
        where = str(directory or self.repo)
        return ["new-session", "-d", "-s", name, "-x", WIDTH, "-y", HEIGHT, "-c", where, *self.program]

    def git(self, *words: str) -> list[str]:
        return ["git", "-C", str(self.repo), *words]

    def worktree_add(self, name: str) -> list[str]:
        return self.git("worktree", "add", "-q", "-b", f"bare/{name}", str(self.work(name)), "HEAD")

    def worktree_remove(self, name: str) -> list[str]:
        return self.git("worktree", "remove", "--force", str(self.work(name)))

    def work(self, name: str) -> Path:
        return self.root / "work" / name

    def run(self, *commands: list[str], **variables: str) -> float:
        """The commands one after the other, as real processes without a shell between; the seconds that they took."""
        env = {**self.env, **variables}
        with open(self.root / "log", "w+") as log:
            begin = time.perf_counter()
            for argv in commands:
                child = subprocess.Popen(
                    argv, cwd=self.repo, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
                )
                try:
                    code = child.wait()
                except BaseException:
                    child.send_signal(signal.SIGINT)
                    child.wait(30)
                    raise
                if code:
                    log.seek(0)
                    raise CommandFailed(f"{shlex.join(argv)[:300]} exited {code}: {log.read().strip()[-500:]}")
            return time.perf_counter() - begin

    def run_script(self, lines: list[str]) -> list[str]:
        """One sh for many commands. From a file: a hundred of them do not fit into one argument."""
        path = self.root / "script"
        path.write_text("set -e\n" + "\n".join(lines) + "\n")
        return ["sh", str(path)]

    def settle(self, programs: int) -> None:
        """Returns when exactly so many programs run in both servers: what was started in the background is done."""
        start = " ".join(self.program) + " "
        deadline = time.monotonic() + 60
        while (count := sum(process.line.startswith(start) for process in self.processes().values())) != programs:
            if time.monotonic() > deadline:
                raise CommandFailed(f"{count} programs run after a minute, not {programs}")
            time.sleep(0.02)

    def processes(self) -> dict[int, Process]:
        """Everything that belongs to this world."""
        listing = ["ps", "axeww", "-o", "pid=,ppid=,command="]
        found = {}
        for line in subprocess.run(listing, capture_output=True, text=True, errors="replace").stdout.splitlines():
            if str(self.root) in line:
                pid, parent, rest = line.split(None, 2)
                found[int(pid)] = Process(int(parent), rest)
        return found
