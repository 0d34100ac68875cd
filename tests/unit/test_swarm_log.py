"""The log of a run: whatever ends its writer, what can be read of it is whole."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mngr.swarm.log import CONTROL, EVENTS, Reader, RunIsTaken, Writer, ask, is_taken


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(tmp_path)


def events(run: str) -> list[str]:
    return [event["event"] for event in Reader(os.path.join(run, EVENTS)).events()]


def test_what_is_written_is_read_with_its_time(run: str) -> None:
    with Writer(run) as writer:
        written = writer.write({"event": "one", "text": "a\nb\udcff"})
    assert list(Reader(os.path.join(run, EVENTS)).events()) == [written]
    assert written["time"] > 0


@pytest.mark.parametrize("left", ["", '{"event": "two", "lo', "x" * 200_000])
def test_half_a_line_of_a_killed_writer_is_cut_off(run: str, left: str) -> None:
    with Writer(run) as writer:
        writer.write({"event": "one"})
    with open(os.path.join(run, EVENTS), "a") as file:
        file.write(left)
    with Writer(run) as writer:
        writer.write({"event": "three"})
    assert events(run) == ["one", "three"]


def test_who_reads_along_sees_each_event_once_whatever_is_cut_off(run: str) -> None:
    reader = Reader(os.path.join(run, EVENTS))
    seen = [list(reader.events())]
    with Writer(run) as writer:
        writer.write({"event": "one"})
        seen.append(list(reader.events()))
    with open(os.path.join(run, EVENTS), "a") as file:
        file.write('{"event": "tw')
    seen.append(list(reader.events()))
    with Writer(run) as writer:
        seen.append(list(reader.events()))
        writer.write({"event": "three"})
    seen.append(list(reader.events()))
    assert [[event["event"] for event in those] for those in seen] == [[], ["one"], [], [], ["three"]]


def test_lines_that_are_no_events_are_passed_over(run: str) -> None:
    lines = [b'{"event": "one"}', b"", b"no json", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"event": "two"}', b""]
    Path(run, EVENTS).write_bytes(b"\n".join(lines))
    assert events(run) == ["one", "two"]


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """As on a full disk: a part of what is written fits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_does_not_fit_on_the_disk_is_an_error_and_harms_nothing(run: str) -> None:
    with Writer(run) as writer:
        writer.write({"event": "one"})
        size = os.path.getsize(os.path.join(run, EVENTS))
        with files_end_at(size + 10), pytest.raises(OSError, match="File too large"):
            writer.write({"event": "two"})
    with Writer(run) as writer:
        writer.write({"event": "three"})
    assert events(run) == ["one", "three"]


def test_one_writer_at_a_time_and_the_lock_ends_with_it(run: str) -> None:
    assert not is_taken(run)
    with Writer(run):
        assert is_taken(run)
        with pytest.raises(RunIsTaken, match=f"is being worked on by process {os.getpid()}"), Writer(run):
            pass
    assert not is_taken(run)


def test_wishes_are_there_for_whoever_comes(run: str) -> None:
    ask(run, {"wish": "set", "key": "budget", "value": None, "who": "ada"})
    ask(run, {"wish": "cancel", "who": "ada"})
    assert [wish["wish"] for wish in Reader(os.path.join(run, CONTROL)).events()] == ["set", "cancel"]
