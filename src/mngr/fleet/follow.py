"""Following what happens: the feeds of hosts, as they are written. `wait`, `events --follow` and `list --watch` wake up
by these lines, and not by asking hosts again and again."""

from __future__ import annotations

import os
import select as polling
import time

from mngr import hosts, jsonline, process
from mngr.errors import HostUnreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from mngr.hosts import Host


class Feed:
    """A context manager. From the moment it is entered no line is missed; `lines` gives them as they come."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._hosts = list(hosts)
        self._children: list[process.Child] = []
        self._held: dict[int, bytes] = {}
        self._poller = polling.poll()

    def __enter__(self) -> Self:
        body = hosts.read_script(__file__, "follow.sh") + "\nfollow"
        for host in self._hosts:
            child = host.start(
                hosts.script_for(host, body), [], stdin=process.PIPE, stdout=process.PIPE, stderr=process.NULL
            )
            assert child.stdout is not None
            self._children.append(child)
            self._held[child.stdout] = b""
            self._poller.register(child.stdout, polling.POLLIN)
        waiting = len(self._children)
        limit = time.monotonic() + 20
        while waiting:
            came = self._read(limit)
            if came is None:
                raise HostUnreachable("a host's feed cannot be followed")
            waiting -= came.count("following")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.end(grace=0)  # nothing of it needs time to clean up
            for fd in (child.stdin, child.stdout):
                if fd is not None:
                    os.close(fd)

    def events(self, deadline: float | None = None, *, pulse: float | None = None) -> Iterator[dict[str, object]]:
        """Each event; {} for something that no line tells (the tmux server came or went). Ends at the deadline.
        With a `pulse` also {} when nothing came for so many seconds: for what nobody writes down."""
        while True:
            limit = deadline
            if pulse is not None:
                limit = min(time.monotonic() + pulse, deadline or float("inf"))
            came = self._read(limit)
            if came is None:
                if pulse is None or (deadline is not None and time.monotonic() >= deadline):
                    return
                yield {}
                continue
            for line in came:
                if line == "server":
                    yield {}
                    continue
                try:
                    event = jsonline.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(event, dict) and isinstance(event.get("agent"), str):
                    yield event

    def _read(self, deadline: float | None) -> list[str] | None:
        """The lines that have come; None when the deadline has passed."""
        wait = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        ready = self._poller.poll(wait)
        if not ready:
            return None
        lines: list[str] = []
        for fd, _ in ready:
            chunk = os.read(fd, 65536)
            if not chunk:
                raise HostUnreachable("a host's feed ended")
            *whole, self._held[fd] = (self._held[fd] + chunk).split(b"\n")
            lines += [line.decode("utf-8", "replace") for line in whole]
        return lines
