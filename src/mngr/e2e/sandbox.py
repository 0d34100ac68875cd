"""The world of one test: a directory with a home, a work dir and an environment made from nothing. When it is removed,
every process that carries its mark is ended first.

It is removed whatever dies: a reaper, one small process beside each pytest process, holds the other end of a pipe, and
when that closes without a word it removes what is left. So this file also runs as a program, with the standard library
alone; it imports nothing else."""

from __future__ import annotations

import json
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
_AT_END = ".at-end"
_PATIENCE = 10.0  # seconds for killed processes to be gone


class Sandbox:
    def __init__(self) -> None:
        # Short, because the path of a socket in it may have about 100 bytes.
        parent = os.environ.get("MNGR_E2E_TMPDIR") or ("/tmp" if os.access("/tmp", os.W_OK) else None)
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
        with open(self.root / _AT_END, "a", encoding="utf-8") as file:
            file.write(json.dumps([command, self.env]) + "\n")

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
    """Raises RuntimeError when something cannot be ended or removed: then it is all left as it is."""
    _run_at_end(root)
    deadline = time.monotonic() + _PATIENCE
    spared = _ancestors()
    while left := {pid: line for pid, line in processes(root).items() if pid not in spared}:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.005)
        while any(map(_is_alive, left)) and time.monotonic() <= deadline:
            time.sleep(0.005)
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes of {root} do not end: {', '.join(left.values())}")
    _unmount(root)
    if root.exists():
        shutil.rmtree(root, onerror=lambda _, path, error: _insist(root, path))
    if root.exists():
        raise RuntimeError(f"{root} cannot be removed: {', '.join(os.listdir(root))}")


def _run_at_end(root: Path) -> None:
    """Each by itself, in the environment of the test: the reaper, or somebody's shell, has another."""
    try:
        lines = (root / _AT_END).read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        command, env = json.loads(line)
        try:
            subprocess.run(
                ["/bin/sh", "-c", command],
                cwd="/",
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
            )
        except subprocess.TimeoutExpired:
            pass  # what it did not end carries the mark, or is told below


def _unmount(root: Path) -> None:
    """What a test has mounted is not the test's: nothing behind it may be removed."""
    if not (mounted := _mounts(root)):
        return
    for place in sorted(mounted, key=len, reverse=True):
        subprocess.run(["umount", "-l", place], capture_output=True)
    if left := _mounts(root):
        raise RuntimeError(f"still mounted: {', '.join(left)}")


def _mounts(root: Path) -> list[str]:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            places = [line.split()[4].replace("\\040", " ") for line in file]
    except OSError:
        return []
    return [place for place in places if place == str(root) or place.startswith(f"{root}/")]


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


def _insist(root: Path, path: str) -> None:
    """A test may take rights away, from directories too. Nothing outside of the root is touched."""
    if not os.path.lexists(path):
        return
    for each in (os.path.dirname(path), path) if path != str(root) else (path,):
        if not os.path.islink(each):
            try:
                os.chmod(each, 0o700)
            except OSError:
                pass
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        os.unlink(path)
    except OSError:
        pass  # told by what is left


def processes(root: Path) -> dict[int, str]:
    """All that have it in their environment, or work in it: pid to command line. Not ourselves, and not the dead."""
    mark = os.fsencode(root)
    if not os.path.isdir("/proc/self"):
        return _processes_by_ps(str(root))
    found, own = {}, os.getpid()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            is_ours = _carries(mark, _content(f"/proc/{pid}/environ")) or _is_below(mark, f"/proc/{pid}/cwd")
            if is_ours and int(pid) != own:
                line = _content(f"/proc/{pid}/cmdline")
                found[int(pid)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it has just ended, or is somebody else's
    return found


def _content(path: str) -> bytes:
    """Without a file object: every test asks for that of every process there is, more than once."""
    file = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(file, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(file)


def _is_below(mark: bytes, link: str) -> bool:
    where = os.fsencode(os.readlink(link))
    return where == mark or where.startswith(mark + b"/")


def _is_alive(pid: int) -> bool:
    """Of one that was killed, as far as /proc tells: to look through all that there are costs a hundred times as much.
    The dead that nobody has waited for yet have no environment."""
    try:
        return bool(_content(f"/proc/{pid}/environ"))
    except OSError:
        return False


def _carries(mark: bytes, environment: bytes) -> bool:
    """The path itself, not that of a sandbox whose name begins the same."""
    return mark in environment and any(mark + end in environment for end in (b"/", b"\0", b":"))


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
        self._pipe: int | None = None
        self._watched: dict[Path, None] = {}
        os.register_at_fork(after_in_child=self._leave)  # a child that holds the pipe would keep it open for us

    def watch(self, root: Path) -> None:
        self._watched[root] = None
        self._tell(f"+{root}\n")

    def forget(self, root: Path) -> None:
        self._watched.pop(root, None)
        self._tell(f"-{root}\n")

    def _tell(self, line: str) -> None:
        if self._pipe is None:
            self._start()
        assert self._pipe is not None
        try:
            os.write(self._pipe, line.encode())
        except BrokenPipeError:  # somebody has ended it
            self._start()
            os.write(self._pipe, "".join(f"+{root}\n" for root in self._watched).encode())

    def _leave(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
        self._pipe, self._watched = None, {}

    def _start(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
        read, self._pipe = os.pipe()
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
