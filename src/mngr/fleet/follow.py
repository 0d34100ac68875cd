"""Following what happens: the feeds of hosts, as they are written. `wait`, `events --follow` and `list --watch` wake up
by these lines, and not by asking hosts again and again.

A host can go away and come back. What was written there meanwhile is then read from where its feed broke off, so that
nothing is missed and nothing comes twice."""

from __future__ import annotations

import os
import select as polling
import time

from mngr import hosts, jsonline, process, waiting
from mngr.errors import HostUnreachable, MngrError
from mngr.hosts.lifeline import tied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host

# Seconds before a feed that broke off is taken up again, when that was in vain before: who comes back is soon heard.
_PAUSE, _LONGEST_PAUSE = 1.0, 2.0
_TIME_TO_ANSWER = 20.0  # seconds that hosts have at the beginning; one that takes longer is followed later
_CHANGED = "server"  # also: it can be followed again. Nothing is known but that something may have happened


def followable(fleet: Fleet, names: Iterable[str]) -> list[Host]:
    """Those of these hosts that we know how to reach. What is missing for the others, verbs say."""
    found = []
    for name in names:
        try:
            found.append(fleet.host(name))
        except MngrError:
            continue
    return found


class Feed:
    """A context manager. From the moment it is entered no line is missed; `events` gives them as they come."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        self._streams = [_Stream(host) for host in hosts]
        self._poller = polling.poll()

    def __enter__(self) -> Self:
        """All hosts are followed then, but those that cannot be reached now. This machine can, or it is an error."""
        try:
            for stream in self._streams:
                self._take_up(stream)
            limit = time.monotonic() + _TIME_TO_ANSWER
            while [stream for stream in self._streams if not stream.has_answered] and time.monotonic() < limit:
                self._read(limit)
            for stream in self._streams:
                if stream.host.lines is None and not stream.follows:
                    raise HostUnreachable(f"the feed of {stream.host.name} cannot be followed")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for stream in self._streams:
            stream.end()

    def events(self, deadline: float | None = None, *, pulse: float | None = None) -> Iterator[dict[str, object]]:
        """Each event; {} for something that no line tells (the tmux server came or went, a host is back). Ends at the
        deadline. With a `pulse` also {} every so many seconds, whatever else comes: for what nobody writes down."""
        never = float("inf")
        end, beat = never if deadline is None else deadline, never if pulse is None else time.monotonic() + pulse
        while True:
            limit = min(end, beat)
            came = self._read(None if limit == never else limit)
            now = time.monotonic()
            if came is None and now >= end:
                return
            if pulse is not None and now >= beat:
                yield {}
                beat = time.monotonic() + pulse
            for line in came or ():
                if line == _CHANGED:
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
        while True:
            now = time.monotonic()
            for stream in self._streams:
                if stream.due is not None and stream.due <= now:
                    self._take_up(stream)
            limits = [limit for limit in (deadline, *(stream.due for stream in self._streams)) if limit is not None]
            ready = waiting.ready(self._poller, min(limits, default=None))
            if ready:
                return [line for fd, _ in ready for line in self._lines(fd)]
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def _take_up(self, stream: _Stream) -> None:
        fd = stream.begin()
        if fd is not None:
            self._poller.register(fd, polling.POLLIN)

    def _lines(self, fd: int) -> list[str]:
        stream = next(stream for stream in self._streams if stream.fd == fd)
        chunk = os.read(fd, 65536)
        if chunk:
            return stream.take(chunk)
        self._poller.unregister(fd)
        stream.break_off()
        return []


class _Stream:
    """The feed of one host, and how far it was read."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.has_answered = self.follows = False  # anyhow, if only with its end; and now
        self.due: float | None = None  # when it is to be taken up again
        self._child: process.Child | None = None
        self._held = b""
        self._position: int | None = None
        self._pause = _PAUSE

    @property
    def fd(self) -> int | None:
        return self._child.stdout if self._child else None

    def begin(self) -> int | None:
        self.due, self._held = None, b""
        call = "follow" if self._position is None else f"follow {self._position}"
        script = f"{hosts.read_script(__file__, 'follow.sh')}\n{call}"
        pipe, null = process.PIPE, process.NULL
        try:
            self._child = self.host.start(
                tied(hosts.script_for(self.host, script)), [], stdin=pipe, stdout=pipe, stderr=null
            )
        except MngrError:
            self.break_off()
        return self.fd

    def take(self, chunk: bytes) -> list[str]:
        *whole, self._held = (self._held + chunk).split(b"\n")
        lines: list[str] = []
        for each in whole:
            line = each.decode("utf-8", "replace")
            if not self.follows:  # what comes before is what a login script printed
                self._arrive(line, lines)
                continue
            if line != _CHANGED:
                assert self._position is not None
                self._position += len(each) + 1
            lines.append(line)
        return lines

    def _arrive(self, line: str, lines: list[str]) -> None:
        word, _, position = line.partition(" ")
        if word == "following" and position.isdecimal():
            if self.has_answered:
                lines.append(_CHANGED)
            self.follows = self.has_answered = True
            self._position, self._pause = int(position), _PAUSE

    def break_off(self) -> None:
        self.end()
        self.follows, self.has_answered = False, True
        self.due = time.monotonic() + self._pause
        self._pause = min(self._pause * 1.5, _LONGEST_PAUSE)

    def end(self) -> None:
        if self._child is None:
            return
        child, self._child = self._child, None
        child.end(grace=0)  # nothing of it needs time to clean up
        for fd in (child.stdin, child.stdout):
            if fd is not None:
                os.close(fd)
