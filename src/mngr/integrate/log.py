"""The directory of an integration, and who is at it. Whoever holds its lock works there; `log.jsonl` has an event for
everything that was done, and is what the next one knows of those before it: which commits were written to the branch,
and who has ordered the rank file last."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time

from mngr import jsonline
from mngr.errors import MngrError
from mngr.swarm.begin import slug
from mngr.swarm.integrated import LOG
from mngr.swarm.log import LOCK, Reader

PUBLISHING = "publishing"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any, Self


def directory_of(home: str, common: str, into: str) -> str:
    """Of an integration that belongs to no run. Another repository may have a branch of the same name; all work trees
    of one share a git directory."""
    mark = hashlib.sha256(f"{common}\0{into}".encode("utf-8", "surrogateescape")).hexdigest()
    return os.path.join(home, "integrations", f"{slug(into)}-{mark[:8]}")


def written_to(branch: str, events: Iterable[Mapping[str, Any]]) -> list[str]:
    """The commits that integrations have written to it, or would have, if they were not killed just then."""
    return [str(each["commit"]) for each in events if each.get("event") == PUBLISHING and each.get("branch") == branch]


class Log:
    """A context manager: the integration is ours from here to the end of the process, however that ends."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def __enter__(self) -> Self:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self._lock = os.open(os.path.join(self.directory, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(self._lock, 32).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise MngrError(
                f"another integration is at it: process {pid or '?'}", f"it works in {self.directory}"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        path = os.path.join(self.directory, LOG)
        self.events = list(Reader(path).events())
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        _end_the_last_line(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        os.close(self._lock)

    def note(self, event: str, **members: Any) -> None:
        """In the log as soon as this returns."""
        told = {"time": round(time.time(), 3), "event": event, **members}
        data = (jsonline.dumps(told) + "\n").encode()
        while data:
            data = data[os.write(self._file, data) :]
        self.events.append(told)

    def sync(self) -> None:
        os.fsync(self._file)


def _end_the_last_line(file: int) -> None:
    """Who was killed while writing has left half a line; it must not swallow the next one."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")
