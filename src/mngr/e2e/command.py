"""One command in a shell, as a user would have typed it: what it printed where and in which order, and how it ended.

The shell leads a session of its own, so that a timeout can end all of it, and so that nothing in it finds the
developer's terminal. It is over when the shell is: what it left in the background goes on, with its pipes open."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

TIMED_OUT = 124  # as timeout(1) has it
_PIPE = 16  # reads that empty the largest pipe there is by default, 1 MiB
_GRACE = 5.0  # seconds that killed processes have for closing their pipes


class Line(NamedTuple):
    stream: str  # "o" or "e"
    text: str  # without its newline
    at: float  # seconds since the command began


class Result:
    """What came of a command. `lines` has both streams in the order in which they came."""

    def __init__(
        self, command: str, exit_code: int, duration: float, written: _Written, again: Callable[[], Result]
    ) -> None:
        self.command = command
        self.exit_code = exit_code
        self.duration = duration
        self.timed_out = written.timed_out
        self.stdout = written.text("o")
        self.stderr = written.text("e")
        self.lines = written.lines
        self._is_cut = written.is_cut  # without a newline at its end
        self._again = again

    @property
    def output(self) -> str:
        """Both streams, line by line, as near to the order in which they came as two pipes can tell: what is written
        to both within a moment may change places. `2>&1` in the command keeps it exactly."""
        return "\n".join(line.text for line in self.lines) + ("" if self._is_cut or not self.lines else "\n")

    def json(self) -> Any:
        return json.loads(self.stdout)

    def again(self) -> Result:
        """The same command once more."""
        return self._again()

    def __repr__(self) -> str:
        return f"<Result of {self.command!r}: exit code {self.exit_code}>"


def run(
    command: str,
    *,
    env: Mapping[str, str],
    cwd: Path | str,
    input: str | None = None,
    timeout: float | None = None,
) -> Result:
    begin = time.monotonic()
    child = subprocess.Popen(
        [shell(), "-c", command],
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=cwd,
        bufsize=0,
        start_new_session=True,
    )
    written = _Written(child, begin, (input or "").encode("utf-8", "surrogateescape"))
    try:
        written.follow(timeout)
    except BaseException:
        _kill(child)
        child.wait()
        raise
    finally:
        written.leave()
    code = TIMED_OUT if written.timed_out else child.returncode if child.returncode >= 0 else 128 - child.returncode
    how: dict[str, Any] = {"env": env, "cwd": cwd, "input": input, "timeout": timeout}
    return Result(command, code, time.monotonic() - begin, written, lambda: run(command, **how))


_shell: str | None = None


def shell() -> str:
    """What tutorials are written for, or what there is."""
    global _shell
    if _shell is None:
        _shell = shutil.which("bash") or "/bin/sh"
    return _shell


class _Written:
    """What a child has written so far, and the way to wait for more."""

    def __init__(self, child: subprocess.Popen[bytes], begin: float, input: bytes) -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        self.lines: list[Line] = []
        self.timed_out = self.is_cut = False
        self._child = child
        self._begin = begin
        self._input = input
        self._open = {child.stdout.fileno(): "o", child.stderr.fileno(): "e"}
        self._blocks: dict[str, list[bytes]] = {"o": [], "e": []}
        self._partial: dict[str, list[bytes]] = {"o": [], "e": []}
        self._end = _end_of(child)
        self._poll = select.poll()
        for fd in self._open:
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)
        if child.stdin:
            os.set_blocking(child.stdin.fileno(), False)
            self._poll.register(child.stdin.fileno(), select.POLLOUT)
        if self._end is not None:
            self._poll.register(self._end, select.POLLIN)

    def text(self, stream: str) -> str:
        return b"".join(self._blocks[stream]).decode("utf-8", "replace")

    def follow(self, timeout: float | None) -> None:
        deadline = None if timeout is None else self._begin + timeout
        while self._child.poll() is None:
            if deadline is not None and time.monotonic() >= deadline:
                self.timed_out = True
                _kill(self._child)
                self._child.wait(_GRACE)
                break
            for fd, _ in self._poll.poll(_milliseconds(deadline, must_look=self._end is None)):
                self._serve(fd)
        for fd in list(self._open):
            for _ in range(_PIPE):  # what was left in the pipe; somebody in the background may be filling it for ever
                if self._read(fd) != "more":
                    break
        for stream in ("o", "e"):
            if rest := b"".join(self._partial[stream]):
                self._line(stream, rest)
                self.is_cut = True

    def _serve(self, fd: int) -> None:
        if fd in self._open:
            if not self._read(fd):
                self._poll.unregister(fd)
        elif self._child.stdin and fd != self._end:
            self._input = _feed(fd, self._input)
            if not self._input:
                self._poll.unregister(fd)
                self._child.stdin.close()

    def _read(self, fd: int) -> str:
        """`more` when there was something, `later` when there may be, nothing at the end."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return "later"
        stream = self._open[fd]
        if not data:
            del self._open[fd]
            return ""
        self._blocks[stream].append(data)
        if b"\n" in data:
            *whole, data = b"".join([*self._partial[stream], data]).split(b"\n")
            for line in whole:
                self._line(stream, line)
            self._partial[stream].clear()
        self._partial[stream].append(data)
        return "more"

    def _line(self, stream: str, data: bytes) -> None:
        self.lines.append(Line(stream, data.decode("utf-8", "replace"), time.monotonic() - self._begin))

    def leave(self) -> None:
        """What is still open is the standard output of somebody in the background, who goes on: closed it would end
        them, and full it would stop them."""
        if self._end is not None:
            os.close(self._end)
        if self._child.stdin:
            self._child.stdin.close()
        for stream in (self._child.stdout, self._child.stderr):
            assert stream is not None
            if stream.fileno() in self._open:
                Thread(target=_discard, args=(os.dup(stream.fileno()),), daemon=True).start()
            stream.close()


def _discard(fd: int) -> None:
    os.set_blocking(fd, True)
    with open(fd, "rb", buffering=0) as stream:
        while stream.read(1 << 16):
            pass


def _end_of(child: subprocess.Popen[bytes]) -> int | None:
    """A descriptor that can be read when it has ended, where there is such a thing."""
    try:
        return os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        return None


def _milliseconds(deadline: float | None, must_look: bool) -> float | None:
    left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000 + 1
    return min(left or 10.0, 10.0) if must_look else left


def _feed(fd: int, data: bytes) -> bytes:
    """What is left to write. A program that does not want its input is no error."""
    try:
        return data[os.write(fd, data[: 1 << 16]) :] if data else b""
    except BlockingIOError:
        return data
    except OSError:
        return b""


def _kill(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
