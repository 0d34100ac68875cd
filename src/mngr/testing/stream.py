"""A script on a host as a test talks to it: through the three pipes that `start` gives, and with a time limit on all of
it, so that a host which hangs is a failure and not a test that never ends."""

from __future__ import annotations

import os
import select
import time

from mngr import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

    from mngr.hosts import Host

LIMIT = 120.0  # seconds for anything


class Stream:
    """A context manager: the local process ends with it."""

    def __init__(self, host: Host, script: str, args: list[str] | None = None) -> None:
        self._host, self._script, self._args = host, script, args or []

    def __enter__(self) -> Self:
        pipe = process.PIPE
        self.child = self._host.start(self._script, self._args, stdin=pipe, stdout=pipe, stderr=pipe)
        self._limit = time.monotonic() + LIMIT
        self._held = b""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.child.end()
        for fd in (self.child.stdin, self.child.stdout, self.child.stderr):
            if fd is not None:
                os.close(fd)

    def write(self, data: bytes) -> None:
        assert self.child.stdin is not None
        while data:
            data = data[os.write(self.child.stdin, data) :]

    def close_input(self) -> None:
        assert self.child.stdin is not None
        os.close(self.child.stdin)
        self.child.stdin = None

    def line(self) -> bytes:
        """The next one of its output."""
        while b"\n" not in self._held:
            chunk = self._read(self.child.stdout)
            assert chunk, f"its output ended: {self._held!r} {self._read(self.child.stderr)!r}"
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return line

    def rest_with_input_open(self) -> tuple[bytes, int]:
        """All that it says until it ends by itself."""
        while chunk := self._read(self.child.stdout):
            self._held += chunk
        return self._held, self.child.wait(self._limit)

    def rest(self) -> tuple[bytes, bytes, int]:
        """All that it says until it ends, on both streams, and its exit code."""
        out, err = bytearray(self._held), bytearray()
        self.pump([], out.extend, err.extend)
        return bytes(out), bytes(err), self.child.wait(self._limit)

    def pump(
        self, data: Iterable[bytes], take: Callable[[bytes], None], take_error: Callable[[bytes], None] = lambda _: None
    ) -> None:
        """Gives it the data, with an end, while what it says is taken: neither waits for the other."""
        poller = select.poll()
        child, source, left = self.child, iter(data), memoryview(b"")
        takers = {child.stdout: take, child.stderr: take_error}
        for fd in takers:
            assert fd is not None
            poller.register(fd, select.POLLIN)
        if child.stdin is not None:
            os.set_blocking(child.stdin, False)
            poller.register(child.stdin, select.POLLOUT)
        while takers or child.stdin is not None:
            ready = poller.poll(max(0.0, self._limit - time.monotonic()) * 1000)
            assert ready, f"nothing happened for {LIMIT:g} s"
            for fd, _ in ready:
                if fd == child.stdin:
                    left = left or memoryview(next(source, b""))
                    if left:
                        left = left[os.write(fd, left[:65536]) :]
                    else:
                        poller.unregister(fd)
                        self.close_input()
                elif chunk := os.read(fd, 1 << 18):
                    takers[fd](chunk)
                else:
                    poller.unregister(fd)
                    del takers[fd]

    def _read(self, fd: int | None) -> bytes:
        assert fd is not None
        ready, _, _ = select.select([fd], [], [], max(0.0, self._limit - time.monotonic()))
        assert ready, f"nothing came for {LIMIT:g} s"
        return os.read(fd, 65536)
