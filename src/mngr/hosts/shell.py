"""A sh on a host that stays open: many small questions for the price of one connection, and what it holds (locks) goes
when it goes, also when we are killed: its standard input ends then."""

from __future__ import annotations

import os
import select
import time

from mngr import hosts, process, waiting
from mngr.errors import HostUnreachable, TimedOut
from mngr.hosts.lifeline import OPEN_SHELL, SHELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mngr.hosts import Host


class Shell:
    """A context manager; `body` are the functions that the questions use."""

    def __init__(self, host: Host, body: str) -> None:
        self._host, self._body = host, body
        self._held = b""
        self._mark = b"\n" + os.urandom(8).hex().encode() + b"\n"

    def __enter__(self) -> Self:
        pipe, null = process.PIPE, process.NULL
        # On this machine our own deadlines end it.
        script = SHELL if self._host.lines is None else OPEN_SHELL
        self._child = self._host.start(script, [], stdin=pipe, stdout=pipe, stderr=null)
        try:
            self.ask(hosts.script_for(self._host, self._body), group=False)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for fd in (self._child.stdin, self._child.stdout):
            if fd is not None:
                os.close(fd)
        try:
            self._child.wait(time.monotonic() + 2)
        except TimedOut:
            self._child.end()

    def ask(self, script: str, *, deadline: float = 60.0, group: bool = True) -> str:
        """What these lines print. A group is read whole before it runs, so that nothing in it eats the next one."""
        text = f"{{ {script}\n}} </dev/null\n" if group else f"{script}\n"
        mark = self._mark.strip().decode()
        self._write(f"{text}printf '\\n%s\\n' {mark}\n".encode("utf-8", "surrogateescape"))
        return self._read(time.monotonic() + deadline).decode("utf-8", "surrogateescape")

    def _write(self, data: bytes) -> None:
        assert self._child.stdin is not None
        try:
            while data:
                data = data[os.write(self._child.stdin, data) :]
        except BrokenPipeError:
            raise HostUnreachable(f"{self._host.name}: the connection ended") from None

    def _read(self, limit: float) -> bytes:
        assert self._child.stdout is not None
        poller = select.poll()
        poller.register(self._child.stdout, select.POLLIN)
        while self._mark not in self._held:
            if not waiting.ready(poller, limit):
                raise TimedOut(f"{self._host.name}: no answer")
            chunk = os.read(self._child.stdout, 1 << 20)
            if not chunk:
                raise HostUnreachable(f"{self._host.name}: the connection ended")
            self._held += chunk
        told, _, self._held = self._held.partition(self._mark)
        return told
