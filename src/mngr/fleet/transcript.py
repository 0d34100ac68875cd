"""transcript: what was said and done in an agent's conversations, from the logs that its program keeps on its host.

Entries are given as they are read, so that the first is there long before the end of a long log. What cannot be read is
passed over and counted: an agent's logs are files that anybody may have written."""

from __future__ import annotations

import os
import select as polling

from mngr import hosts, jsonline, process, registry, waiting
from mngr.errors import HostUnreachable, NoSuchAgent, UsageError
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import TracebackType
    from typing import Self

    from mngr.agents.log import Entry, LogReader
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

ROLES = ("user", "assistant", "tool", "system")
_BLOCK = 262_144  # what is read of the end of a log, before more of it turns out to be needed
_AT_ONCE = 6  # entries
_GONE = "gone"


class Transcript:
    """The conversations of one agent as entries. `remarks` says afterwards what could not be read."""

    def __init__(self, fleet: Fleet, ref: Ref, roles: Collection[str] = ROLES) -> None:
        self._type = registry.type_of(ref)
        if self._type.reader() is None:
            raise UsageError(f"{ref.name} is a {ref.type}: it keeps no transcript", f"mngr capture {ref.name}")
        self._host, self._ref, self._roles = fleet.host(ref.host), ref, roles
        self._logs: dict[str, _Log] = {}

    def entries(self, *, last: int | None = None, follow: bool = False) -> Iterator[Entry]:
        """All, or the `last` of them, which are searched for from the end. With `follow` it goes on with what is
        written, until the agent is destroyed."""
        sizes = self._list()
        if last is not None:
            yield from self._last(sizes, last)
        else:
            for path in sizes:
                yield from self._read(self._log(path))
        if follow:
            yield from self._follow(sizes)

    def remarks(self) -> list[str]:
        """A line for each thing that somebody who reads the entries should know."""
        logs, told = list(self._logs.values()), []
        if all(log.missing for log in logs):  # many programs begin a log with the first message
            removed = f", or its log was removed: {logs[-1].path}" if logs else ""
            return [f"{self._ref.name} has no conversation yet{removed}"]
        unknown: dict[str, int] = {}
        for log in logs:
            told += log.remarks()
            for kind, times in log.unknown.items():
                unknown[kind] = unknown.get(kind, 0) + times
        if unknown:
            most = sorted(unknown.items(), key=lambda item: -item[1])
            kinds = ", ".join(f"{kind[:40]} {times}" for kind, times in most[:10])
            total = sum(unknown.values())
            what = "records of unknown types were" if total > 1 else "record of an unknown type was"
            told.append(f"{total} {what} skipped: {kinds}")
        return told

    def _list(self) -> dict[str, int]:
        """The size of each log by its path, oldest first."""
        text = hosts.check(self._host, _script(f"list_logs {self._ref.id}"))
        if text.strip() == _GONE:
            raise NoSuchAgent(f"{self._ref.name} is known by name but not there any more", "mngr gc clears such names")
        rows = [line.partition(" ") for line in text.split("\n") if line]
        return {path: int(size) for size, _, path in rows}

    def _log(self, path: str, start: int = 0) -> _Log:
        reader = self._type.reader()
        assert reader is not None
        self._logs[path] = _Log(path, reader, self._roles, start)
        return self._logs[path]

    def _last(self, sizes: dict[str, int], wanted: int) -> list[Entry]:
        found: list[Entry] = []
        for path, size in reversed(sizes.items()):
            block = max(_BLOCK, wanted * 2048)
            here = list(self._read(self._log(path, size - block)))
            while len(found) + len(here) < wanted and block < size:
                block *= 8
                here = list(self._read(self._log(path, size - block)))
            found = here + found
            if len(found) >= wanted:
                break
        return found[-wanted:]

    def _read(self, log: _Log) -> Iterator[Entry]:
        """What it has beyond what has been read of it."""
        with _Stream(self._host, f"read_log {log.position} {quote(log.path)}") as stream:
            while chunk := stream.read():
                yield from log.take(chunk)
            code = stream.code()
        if code == 255:
            raise HostUnreachable(f"{self._host.name}: {log.path} could not be read to its end")
        log.missing = code != 0 and log.position == 0
        yield from log.finish()

    def _follow(self, sizes: dict[str, int]) -> Iterator[Entry]:
        """The program writes one log at a time, but may go on with an older one."""
        for path, size in sizes.items():
            if path not in self._logs:
                self._log(path, size)
        log = self._logs[next(reversed(sizes))] if sizes else None
        with _Stream(self._host, f"watch_logs {self._ref.id} {len(sizes)}") as news:
            while True:
                others: list[str] = []
                if log is None:
                    others = news.lines()
                else:
                    yield from self._grow(log, news, others)
                for path in others:
                    if log is not None:
                        yield from self._read(log)  # what its tail had no time for
                    if path == _GONE:
                        return
                    log = self._logs.get(path) or self._log(path)

    def _grow(self, log: _Log, news: _Stream, others: list[str]) -> Iterator[Entry]:
        """What is written into this log, until there is news of others."""
        with _Stream(self._host, f"follow_log {log.position} {quote(log.path)}") as tail:
            poller = polling.poll()
            for stream in (news, tail):
                poller.register(stream.fd, polling.POLLIN)
            while not others:
                ready = [fd for fd, _ in waiting.ready(poller)]
                if tail.fd in ready:
                    yield from log.take(tail.more())
                if news.fd in ready:
                    others += [path for path in news.lines() if path != log.path]


class _Log:
    """One log, as far as it has been read."""

    def __init__(self, path: str, reader: LogReader, roles: Collection[str], start: int) -> None:
        self.path, self._reader, self._roles = path, reader, roles
        self.position = max(0, start - 1)  # of the byte that comes next
        self.missing = False
        self.unknown: dict[str, int] = {}
        self._damaged = 0
        self._torn = False  # it ends with half a line
        self._headless = start > 0  # what comes first is the end of a line, if only its newline
        self._held: list[bytes] = []  # the beginning of a line, in pieces: a long one is put together once

    def take(self, chunk: bytes) -> Iterator[Entry]:
        if self.position:
            yield from self._take(chunk)
            return
        # What belongs to the first prompt is written all at once, and not always in its order.
        first = list(self._take(chunk))
        yield from sorted(first[:_AT_ONCE], key=lambda entry: entry.time or 0)
        yield from first[_AT_ONCE:]

    def _take(self, chunk: bytes) -> Iterator[Entry]:
        self.position += len(chunk)
        self.missing = self._torn = False
        self._held.append(chunk)
        if b"\n" not in chunk:
            return
        *lines, rest = b"".join(self._held).split(b"\n")
        self._held = [rest]
        for line in lines[self._headless :]:
            yield from self._entries(line)
        self._headless = False

    def finish(self) -> list[Entry]:
        """The last line, when only its newline is missing. Half a line stays held: the rest may come."""
        line = b"".join(self._held)
        if self._headless or _record(line) is None:
            self._torn = bool(line.strip())
            return []
        self._held = []
        return self._entries(line)

    def remarks(self) -> list[str]:
        told = []
        if self.missing:
            told.append("cannot be read: it was removed, or is not written yet")
        if self._damaged:
            told.append(f"has {self._damaged} line{'s' if self._damaged > 1 else ''} that cannot be read")
        if self._torn:
            told.append("ends with a line that is not complete")
        return [f"{self.path} {what}" for what in told]

    def _entries(self, line: bytes) -> list[Entry]:
        if not line or line.isspace():
            return []
        record = _record(line)
        if record is None:
            self._damaged += 1
            return []
        try:
            found = self._reader.entries(record)
        except Exception:  # noqa: BLE001 - an agent can write anything into its log
            self._damaged += 1
            return []
        if found is None:
            kind = str(record.get("type") or "without a type")
            self.unknown[kind] = self.unknown.get(kind, 0) + 1
            return []
        return [entry for entry in found if entry.role in self._roles]


class _Stream:
    """A script on the host, and what it says. A context manager: the script ends with it."""

    def __init__(self, host: Host, call: str) -> None:
        self._host = host
        self._child = host.start(
            hosts.script_for(host, _script(call)), [], stdin=process.PIPE, stdout=process.PIPE, stderr=process.NULL
        )
        assert self._child.stdout is not None
        self.fd = self._child.stdout
        self._held = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.end(grace=0)  # nothing of it needs time to clean up
        for fd in (self._child.stdin, self._child.stdout):
            if fd is not None:
                os.close(fd)

    def read(self) -> bytes:
        return os.read(self.fd, 65536)

    def more(self) -> bytes:
        """Of one that has no end."""
        if not (chunk := self.read()):
            raise HostUnreachable(f"{self._host.name}: a log can no longer be followed")
        return chunk

    def lines(self) -> list[str]:
        *whole, self._held = (self._held + self.more()).split(b"\n")
        return [line.decode("utf-8", "surrogateescape") for line in whole]

    def code(self) -> int:
        return self._child.wait()


def _script(call: str) -> str:
    return hosts.read_script(__file__, "transcript.sh") + "\n" + call


def _record(line: bytes) -> dict[str, object] | None:
    try:
        found = jsonline.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
