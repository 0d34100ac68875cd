"""Open lines to a host: each is a `sh` there that stays, and takes one script after the other. A process that asks a
host many times pays for one connection, and polls nobody through an exec API, whose every call leaves something behind.

A line ends with its caller, even with a killed one, and takes along what it was running: its standard input closes
then. That is what makes a deadline a deadline where killing the local client does not end the far script."""

from __future__ import annotations

import os
import select
import time
from _queue import Empty, SimpleQueue  # `threading` and `queue` cost 5 ms
from _thread import allocate_lock

from mngr import process, waiting
from mngr.errors import HostUnreachable, TimedOut
from mngr.hosts.lifeline import SHELL, one_of_many

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 4  # lines to one host: an sshd takes ten sessions on a connection, and feeds and copies need some too
_SAID = 4000  # bytes of what a connection said before it ended


class Lines:
    """Those of one host. Safe to use from many threads."""

    def __init__(self, name: str, start: Callable[[str], process.Child]) -> None:
        """`start` begins a script there with three pipes."""
        self._name, self._start = name, start
        self._idle: list[_Line] = []
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(AT_ONCE):
            self._room.put(None)
        self._lock = allocate_lock()

    def run(self, script: str, *, deadline: float) -> process.Done:
        """To its end. TimedOut, or HostUnreachable when the line broke: then nobody knows how far it came."""
        limit = time.monotonic() + deadline
        try:
            self._room.get(timeout=deadline)
        except Empty:
            raise TimedOut(f"{self._name}: no answer within {deadline:g} s") from None
        line = None
        try:
            line = self._take()
            done = line.run(script, limit)
        except BaseException as error:
            if line is not None:
                line.end(grace=0.5)
            if isinstance(error, TimedOut):
                raise TimedOut(f"{self._name}: no answer within {deadline:g} s") from None
            raise
        else:
            with self._lock:
                self._idle.append(line)
            return done
        finally:
            self._room.put(None)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for line in idle:
            line.end()

    def _take(self) -> _Line:
        while True:
            with self._lock:
                line = self._idle.pop() if self._idle else None
            if line is None:
                return _Line(self._name, self._start(SHELL))
            if line.is_usable():
                return line
            line.end()  # it broke while nobody used it: nothing was lost with it


class _Line:
    def __init__(self, name: str, child: process.Child) -> None:
        self._name, self._child = name, child
        assert child.stdin is not None
        os.set_blocking(child.stdin, False)
        self._poller = select.poll()
        for fd in (child.stdout, child.stderr):
            assert fd is not None
            self._poller.register(fd, select.POLLIN)

    def is_usable(self) -> bool:
        """Nothing is expected on an idle line: whatever comes is its end."""
        return not self._poller.poll(0) and self._child.poll() is None

    def end(self, grace: float = 0.0) -> None:
        """`grace`: seconds for a script that runs; on the host itself, its own end comes by the lifeline."""
        self._child.end(grace)
        for fd in (self._child.stdin, self._child.stdout, self._child.stderr):
            if fd is not None:
                os.close(fd)

    def run(self, script: str, limit: float) -> process.Done:
        mark = os.urandom(8).hex()
        # What stands before the first marks is what a login script printed, or what an earlier script left running.
        before = f"echo {mark}; echo {mark} >&2"
        after = f"printf '\\n%s\\n' {mark} >&2; printf '\\n%s %s\\n' {mark} $mngr_code"
        text = one_of_many(script, before, after)
        return self._talk(text.encode("utf-8", "surrogateescape"), mark.encode(), limit)

    def _talk(self, data: bytes, mark: bytes, limit: float) -> process.Done:
        child, left = self._child, memoryview(data)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        said = {child.stdout: bytearray(), child.stderr: bytearray()}
        ends = {child.stdout: b"\n" + mark + b" ", child.stderr: b"\n" + mark + b"\n"}
        open_ = set(said)
        self._poller.register(child.stdin, select.POLLOUT)
        try:
            while open_:
                ready = waiting.ready(self._poller, limit)
                if not ready:
                    raise TimedOut("deadline")
                for fd, _ in ready:
                    if fd == child.stdin:
                        left = self._write(fd, left)
                        if not left:
                            self._poller.unregister(fd)
                        continue
                    chunk = os.read(fd, 1 << 18)
                    if not chunk:
                        self._broke(said)
                    said[fd] += chunk
                    if fd in open_ and is_complete(said[fd], ends[fd], len(chunk)):
                        open_.discard(fd)
        finally:
            if left:
                self._poller.unregister(child.stdin)
        out, _, rest = bytes(said[child.stdout]).rpartition(ends[child.stdout])
        err = bytes(said[child.stderr]).rpartition(ends[child.stderr])[0]
        first = mark + b"\n"
        code = int(rest.split(b"\n", 1)[0])
        return process.Done(code=code, out=_text(out.partition(first)[2]), err=_text(err.partition(first)[2]))

    def _write(self, fd: int, left: memoryview) -> memoryview:
        try:
            return left[os.write(fd, left[:65536]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError:
            return left[:0]  # the end of its output says more

    def _broke(self, said: dict[int, bytearray]) -> None:
        """It has ended. Why, its last words may tell."""
        assert self._child.stderr is not None
        limit = time.monotonic() + 1.0
        poller = select.poll()
        poller.register(self._child.stderr, select.POLLIN)
        words = said[self._child.stderr]
        while poller.poll(max(0.0, limit - time.monotonic()) * 1000) and len(words) < _SAID:
            chunk = os.read(self._child.stderr, _SAID)
            if not chunk:
                break
            words += chunk
        lines = [line.strip() for line in _text(bytes(words)).splitlines() if line.strip()]
        raise HostUnreachable(f"{self._name}: {lines[-1] if lines else 'the connection ended'}")


def is_complete(text: bytearray, end: bytes, new: int) -> bool:
    """Does it hold `end`, and what follows to the end of that line? Only what is new is searched."""
    at = text.rfind(end, max(0, len(text) - new - len(end) - 16))
    return at >= 0 and (end.endswith(b"\n") or text.find(b"\n", at + len(end)) >= 0)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
