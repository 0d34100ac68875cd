"""The log is the run: `events.jsonl` in the run's directory, one line of JSON per event, appended and never changed.
Whoever holds the lock of the run writes it; anybody may read it. What others want of a run (`swarm set`, `swarm
cancel`) they append to `control.jsonl`, and the one who holds the lock writes into the log what became of it."""

from __future__ import annotations

import fcntl
import os
import time

from mngr import jsonline
from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self

EVENTS, CONTROL, LOCK = "events.jsonl", "control.jsonl", "lock"


class RunIsTaken(MngrError):
    def __init__(self, run: str, pid: str) -> None:
        super().__init__(
            f"{run} is being worked on by process {pid or '?'}", f"mngr swarm status {run} shows how it goes"
        )


class Writer:
    """A context manager: the run is ours from here to the end of the process, however that ends. A line that a killed
    predecessor left half-written is cut off: what it stood for was not done, or is found again."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def __enter__(self) -> Self:
        path = os.path.join(self.directory, LOCK)
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _take(self._lock):
            pid = os.read(self._lock, 32).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise RunIsTaken(os.path.basename(self.directory), pid)
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        events = os.path.join(self.directory, EVENTS)
        self._file = os.open(events, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        _cut_half_a_line(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.sync()
        finally:
            os.close(self._file)
            os.close(self._lock)

    def write(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with its time, in the log as soon as this returns, and on the disk after `sync`."""
        stamped = {"time": round(time.time(), 3), **event}
        data = (jsonline.dumps(stamped) + "\n").encode()
        while data:
            data = data[os.write(self._file, data) :]
        return stamped

    def sync(self) -> None:
        os.fsync(self._file)


def _take(lock: int) -> bool:
    """Who asks whether it is taken (`is_taken`) holds it for a moment."""
    for _ in range(20):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _cut_half_a_line(file: int) -> None:
    size = os.fstat(file).st_size
    at = size
    while at > 0:
        start = max(0, at - 65536)
        cut = os.pread(file, at - start, start).rfind(b"\n")
        if cut >= 0:
            at = start + cut + 1
            break
        at = start
    if at != size:
        os.ftruncate(file, at)


class Reader:
    """The lines of a file that is appended to: each call gives those that have come since the last one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.position = 0
        self._held = b""

    def events(self) -> Iterator[dict[str, Any]]:
        try:
            with open(self.path, "rb") as file:
                if os.fstat(file.fileno()).st_size < self.position:  # half a line was cut off
                    self.position -= len(self._held)
                    self._held = b""
                file.seek(self.position)
                data = file.read()
        except FileNotFoundError:
            return
        self.position += len(data)
        *lines, self._held = (self._held + data).split(b"\n")
        for line in lines:
            try:
                event = jsonline.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event


def ask(directory: str, wish: dict[str, Any]) -> None:
    """To whoever works on the run now, or will."""
    line = jsonline.dumps({"time": round(time.time(), 3), **wish}) + "\n"
    file = os.open(os.path.join(directory, CONTROL), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def is_taken(directory: str) -> bool:
    """Does anybody work on it now?"""
    try:
        file = os.open(os.path.join(directory, LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)
