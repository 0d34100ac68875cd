"""Commands on a far host that end with us. To kill the local client (ssh, podman) does not end them, and their standard
input may be data, whose end says nothing. So a second connection stands by: when it breaks, or closes before all is
well, the host ends what carries our mark. That holds for a deadline, for Ctrl-C, and for a `kill -9` of ours."""

from __future__ import annotations

import os
import time

from mngr import hosts, process
from mngr.errors import MngrError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mngr.hosts import Host

_PATIENCE = 10.0  # seconds for the host to end everything


class Guard:
    """A context manager around commands on one host, which carry `token` in MNGR_EXEC. They are ended unless `done` was
    called. On this machine the token is empty and nobody guards: our own signals reach everything there."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._child: process.Child | None = None
        self.token = "" if host.lines is None else os.urandom(12).hex()

    def __enter__(self) -> Self:
        if self.token:
            script = _script(f"guard {self.token}")
            pipe, null = process.PIPE, process.NULL
            try:
                self._child = self._host.start(
                    hosts.script_for(self._host, script), [], stdin=pipe, stdout=null, stderr=null
                )
            except MngrError:
                pass  # the command itself will meet the same, and say it better
        return self

    def end(self, mark: str) -> None:
        """One of several: that whose mark begins with the token, and goes on like this."""
        if self.token:
            try:
                hosts.run(self._host, _script(f"end_marked {mark}"), deadline=_PATIENCE)
            except MngrError:
                pass  # nobody can be reached there

    def done(self) -> None:
        """They have ended by themselves."""
        self._close(b"done\n")

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(b"")

    def _close(self, word: bytes) -> None:
        if self._child is None:
            return
        child, self._child = self._child, None
        assert child.stdin is not None
        try:
            os.write(child.stdin, word)
        except OSError:
            pass
        os.close(child.stdin)
        try:
            child.wait(time.monotonic() + _PATIENCE)
        except TimedOut:
            child.end(grace=0)


def _script(call: str) -> str:
    return f"{hosts.read_script(__file__, 'guard.sh')}\n{call}"
