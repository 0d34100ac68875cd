"""The world of one test: a directory with a home, a work dir and an environment made from nothing. When it is removed,
every process that carries its mark is ended first.

It is removed whatever dies: a reaper, one small process beside each pytest process, holds the other end of a pipe, and
when that closes without a word it removes what is left. So this file also runs as a program, with the standard library
alone; it imports nothing else."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARK = "MNGR_E2E_SANDBOX"
_PROGRAMS = ("git", "tmux", "sh", "bash")
_PATIENCE = 10.0  # seconds for killed processes to be gone


class Sandbox:
    def __init__(self) -> None:
        # Short, because the path of a socket in it may have about 100 bytes.
        parent = "/tmp" if os.access("/tmp", os.W_OK) else None
        self.root = Path(tempfile.mkdtemp(prefix="e2e-", dir=parent)).resolve()
        _reaper.watch(self.root)
        self.home, self.work = self.root / "home", self.root / "work"
        for directory in (self.home, self.work, self.root / "tmp"):
            directory.mkdir()
        self.env = self._environment()

    def _environment(self) -> dict[str, str]:
        """No variable of the caller reaches a test, but the way to the programs."""
        found = [os.path.dirname(path) for path in map(shutil.which, _PROGRAMS) if path]
        path = [os.path.dirname(sys.executable), *found, "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "TMUX_TMPDIR": str(self.root / "tmp"),
            "PATH": os.pathsep.join(dict.fromkeys(path)),
            "USER": "test",
            "LOGNAME": "test",
            "SHELL": "/bin/sh",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            MARK: str(self.root),
            "MNGR_E2E_OWNER": str(os.getpid()),
        }

    def at_end(self, command: str) -> None:
        """A shell command that ends what the mark does not reach, run before anything is removed: by the reaper, if
        need be."""
        with open(self.root / ".at-end", "a", encoding="utf-8") as file:
            file.write(f"{command}\n")

    def remove(self) -> None:
        remove(self.root)
        _reaper.forget(self.root)

    def keep(self) -> None:
        """Scripts to enter and to remove it by, since nobody else will."""
        assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.env.items())
        _script(self.root / "enter", f'cd {shlex.quote(str(self.work))} && exec env -i {assigned} bash "$@"')
        this = f"{shlex.quote(sys.executable)} -I -S {shlex.quote(__file__)}"
        _script(self.root / "remove", f"exec {this} remove {shlex.quote(str(self.root))}")
        _reaper.forget(self.root)


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def remove(root: Path) -> None:
    at_end = root / ".at-end"
    if at_end.exists():
        subprocess.run(["/bin/sh", str(at_end)], cwd="/", stdin=subprocess.DEVNULL, capture_output=True)
    deadline = time.monotonic() + _PATIENCE
    spared = _ancestors()
    while left := {pid: line for pid, line in processes(root).items() if pid not in spared}:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes of {root} do not end: {', '.join(left.values())}")
        time.sleep(0.005)
    shutil.rmtree(root, onerror=_make_writable)


def _ancestors() -> set[int]:
    """Who asked for it may stand in it: their shell is not ours to end."""
    found: set[int] = set()
    pid = os.getppid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            break
    return found


def _make_writable(function: object, path: str, _: object) -> None:
    """A test may take rights away, from directories too."""
    parent = os.path.dirname(path)
    for each in (parent, path):
        if not os.path.islink(each):
            try:
                os.chmod(each, 0o700)
            except OSError:
                pass
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)


def processes(root: Path) -> dict[int, str]:
    """All that have it in their environment, or work in it: pid to command line. Not ourselves, and not the dead."""
    mark = os.fsencode(root)
    if not os.path.isdir("/proc/self"):
        return _processes_by_ps(str(root))
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                is_ours = _carries(mark, file.read())
            where = os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
            if (is_ours or where == mark or where.startswith(mark + b"/")) and int(pid) != os.getpid():
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found[int(pid)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it has just ended, or is somebody else's
    return found


def _carries(mark: bytes, environment: bytes) -> bool:
    """The path itself, not that of a sandbox whose name begins the same."""
    return any(mark + end in environment for end in (b"/", b"\0", b":"))


def _processes_by_ps(root: str) -> dict[int, str]:
    listed = subprocess.run(["ps", "axeww", "-o", "pid=,command="], capture_output=True, text=True).stdout
    found = {}
    for line in listed.splitlines():
        pid, _, command = line.strip().partition(" ")
        if pid.isdecimal() and int(pid) != os.getpid() and f"{MARK}={root} " in f"{command} ":
            found[int(pid)] = command
    return found


class _Reaper:
    """Beside this process, from its first sandbox on."""

    def __init__(self) -> None:
        self._pid = 0
        self._pipe: int | None = None

    def watch(self, root: Path) -> None:
        self._tell(f"+{root}\n")

    def forget(self, root: Path) -> None:
        self._tell(f"-{root}\n")

    def _tell(self, line: str) -> None:
        if self._pipe is None or self._pid != os.getpid():  # a forked pytest has one of its own
            self._start()
        assert self._pipe is not None
        os.write(self._pipe, line.encode())

    def _start(self) -> None:
        read, self._pipe = os.pipe()
        self._pid = os.getpid()
        subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, "reap"],
            stdin=read,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
        ).returncode = 0  # nobody waits for it: it outlives us by a moment
        os.close(read)


_reaper = _Reaper()


def _reap() -> None:
    """Reads who is there and who has gone. At the end of that, those who are left have lost their owner."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    there: dict[str, None] = {}
    for line in sys.stdin:
        if line.startswith("+"):
            there[line[1:-1]] = None
        else:
            there.pop(line[1:-1], None)
    for root in there:
        try:
            remove(Path(root))
        except (OSError, RuntimeError):
            pass  # there is nobody to tell


if __name__ == "__main__":
    if sys.argv[1:] == ["reap"]:
        _reap()
    elif len(sys.argv) == 3 and sys.argv[1] == "remove":
        remove(Path(sys.argv[2]))
