"""Recordings of terminals: a writer of asciicast v2, a reader of v2 and v3, and the markers that a test adds.

Each event is one line that is written at once, so the file of a writer that was killed plays up to that moment. Times
are seconds since the beginning. `mngr_started` in the header is that beginning with its fractions, which the integer
`timestamp` of the format has no room for: markers are placed by it. Players ignore keys that they do not know."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

OUTPUT, RESIZE, MARKER = "o", "r", "m"


Event = tuple[float, str, str]  # seconds since the beginning, code, data


class Cast(NamedTuple):
    width: int
    height: int
    started: float  # seconds since the epoch; 0 when the file does not say
    duration: float
    events: list[Event]


class Writer:
    """Safe to use from several threads; what comes after `close` is dropped."""

    def __init__(self, path: Path, width: int, height: int, started: float, title: str | None = None) -> None:
        header = {
            "version": 2,
            "width": width,
            "height": height,
            "timestamp": int(started),
            "mngr_started": round(started, 6),
            "env": {"TERM": "xterm-256color"},
        }
        if title is not None:
            header["title"] = title
        self.path = path
        self._size = (width, height)
        self._last = 0.0
        self._lock = threading.Lock()
        self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._write(header)

    def output(self, at: float, text: str) -> None:
        if text:
            self._event(at, OUTPUT, text)

    def resize(self, at: float, width: int, height: int) -> None:
        if (width, height) != self._size:
            self._size = (width, height)
            self._event(at, RESIZE, f"{width}x{height}")

    def close(self, at: float | None = None) -> None:
        """With the moment of the end, so that a recording in which nothing happened has its length all the same."""
        if at is not None and at > self._last:
            self._event(at, OUTPUT, "")
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _event(self, at: float, code: str, data: str) -> None:
        """A time before that of the last event becomes the same: players wait for differences, which cannot be < 0."""
        with self._lock:
            self._last = max(self._last, at)
            self._write([round(self._last, 6), code, data])

    def _write(self, value: object) -> None:
        if self._file is None:
            return
        left = memoryview(_line(value).encode())
        while left:
            left = left[os.write(self._file, left) :]


class Clock:
    """The time of a recording: wall clock for its beginning, and from then on the clock that nobody sets."""

    def __init__(self) -> None:
        self.started = time.time()
        self._zero = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self._zero


def claim(casts: Path, name: str) -> Path:
    """A new empty file for the recording of `name`: name.cast, name-2.cast and so on, whichever nobody else has."""
    casts.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "terminal"
    number = 1
    while True:
        path = casts / (f"{stem}.cast" if number == 1 else f"{stem}-{number}.cast")
        try:
            path.touch(exist_ok=False)
            return path
        except FileExistsError:
            number += 1


def read(path: Path) -> Cast:
    return parse(path.read_text(encoding="utf-8", errors="replace"))


def parse(text: str) -> Cast:
    """The last line may be cut, by whatever ended its writer. (Not splitlines: JSON text may hold what that takes for
    the end of a line.)"""
    lines = text.split("\n")
    header = _header(lines)
    events = list(_events(lines, relative=header["version"] == 3))
    size = header.get("term", {}) if header["version"] == 3 else header
    return Cast(
        width=int(size.get("cols") or size.get("width") or 80),
        height=int(size.get("rows") or size.get("height") or 24),
        started=_started(header),
        duration=events[-1][0] if events else 0.0,
        events=events,
    )


def add_markers(path: Path, markers: Iterable[tuple[float, str]]) -> None:
    """Put a marker at each of these moments, given in seconds since the epoch, into a recording of ours that has ended:
    a writer that still has the old file open would write into nothing. What lies outside goes to the nearer end."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    if lines == [""]:
        return  # its writer was killed before it wrote anything
    header = _header(lines)
    if header["version"] != 2:
        raise ValueError(f"{path}: markers can be added to asciicast v2 only")
    events = list(_events(lines, relative=False))
    end, started = events[-1][0] if events else 0.0, _started(header)
    events += [(round(min(max(when - started, 0.0), end), 6), MARKER, label) for when, label in markers]
    events.sort(key=lambda event: event[0])  # stable: a marker stands behind the output of the same moment
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(_line(header) + "".join(_line(event) for event in events))
    os.replace(aside, path)


def _line(value: object) -> str:
    return json.dumps(value) + "\n"


def _header(lines: list[str]) -> dict[str, Any]:
    try:
        header = json.loads(lines[0])
        version = header["version"]
    except (ValueError, KeyError, TypeError):
        raise ValueError("not an asciicast: the first line is no header") from None
    if version not in (2, 3):
        raise ValueError(f"asciicast version {version} is not one of those that can be read: 2 and 3")
    assert isinstance(header, dict)
    return header


def _events(lines: list[str], *, relative: bool) -> Iterator[Event]:
    """v3 gives the time since the event before, and has comments."""
    last_number = max((number for number, line in enumerate(lines) if line.strip()), default=0)
    at = 0.0
    for number, line in enumerate(lines[1:], 1):
        if not line.strip() or (relative and line.startswith("#")):
            continue
        try:
            seconds, code, data = json.loads(line)
            at = at + float(seconds) if relative else float(seconds)
        except (ValueError, TypeError):
            if number == last_number:
                return
            raise ValueError(f"line {number + 1} of the asciicast is no event: {line[:60]}") from None
        yield at, str(code), str(data)


def _started(header: dict[str, Any]) -> float:
    return float(header.get("mngr_started") or header.get("timestamp") or 0)
