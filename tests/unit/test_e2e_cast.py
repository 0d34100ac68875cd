"""Recordings as files: what a writer leaves, what a reader makes of it, and where markers go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mngr.e2e.cast import Writer, add_markers, claim, parse, read

STARTED = 1700000000.25


def test_a_recording_in_which_nothing_happened_has_its_length(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.cast", 80, 24, 1000.0)
    writer.output(0.5, "x")
    writer.close(7.0)
    assert read(tmp_path / "a.cast").duration == 7.0


def test_what_is_written_is_read(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.cast", 90, 20, STARTED, "a title")
    writer.output(0.5, 'é 中 🎉 "quoted"\r\n\x1b[1m\\ \u2028')
    writer.resize(1, 100, 30)
    writer.close(1.5)
    cast = read(tmp_path / "a.cast")
    assert (cast.width, cast.height, cast.started, cast.duration) == (90, 20, STARTED, 1.5)
    assert cast.events == [
        (0.5, "o", 'é 中 🎉 "quoted"\r\n\x1b[1m\\ \u2028'),
        (1.0, "r", "100x30"),
        (1.5, "o", ""),
    ]
    assert parse((tmp_path / "a.cast").read_text()) == cast
    header = json.loads((tmp_path / "a.cast").read_text().split("\n")[0])
    assert header["version"] == 2
    assert header["timestamp"] == 1700000000
    assert header["title"] == "a title"


def test_each_event_is_in_the_file_at_once(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.cast", 80, 24, STARTED)
    assert read(tmp_path / "a.cast").events == []
    writer.output(0, "x")
    assert read(tmp_path / "a.cast").events == [(0.0, "o", "x")]
    writer.close()


def test_time_never_goes_back(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.cast", 80, 24, STARTED)
    for at in (-1, 2, 1, 3):
        writer.output(at, "x")
    writer.close()
    assert [event[0] for event in read(tmp_path / "a.cast").events] == [0, 2, 2, 3]


def test_nothing_is_written_for_no_text_the_same_size_or_after_the_end(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.cast", 80, 24, STARTED)
    writer.output(0, "")
    writer.resize(0, 80, 24)
    writer.close()
    writer.close()
    writer.output(1, "late")
    assert read(tmp_path / "a.cast").events == []


@pytest.mark.parametrize("cut", ['[2.0, "o", "hal', "[2.0", "[", '[2.0, "o"]'])
def test_a_cut_last_line_is_left_out(cut: str) -> None:
    text = '{"version": 2, "width": 80, "height": 24}\n[1.0, "o", "whole"]\n' + cut
    assert parse(text).events == [(1.0, "o", "whole")]


def test_a_broken_line_in_the_middle_is_named() -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse('{"version": 2, "width": 80, "height": 24}\nbroken\n[1.0, "o", "x"]\n')


def test_version_3_has_intervals_comments_and_its_size_in_term() -> None:
    text = """{"version": 3, "term": {"cols": 100, "rows": 50, "type": "xterm"}, "timestamp": 1700000000}
[0.5, "o", "a"]
# a comment
[0.25, "r", "90x40"]

[1.0, "o", "b"]
[0.0, "x", "0"]
"""
    cast = parse(text)
    assert (cast.width, cast.height, cast.started, cast.duration) == (100, 50, 1700000000, 1.75)
    assert cast.events == [(0.5, "o", "a"), (0.75, "r", "90x40"), (1.75, "o", "b"), (1.75, "x", "0")]


@pytest.mark.parametrize("text", ['{"version": 1, "stdout": []}', '{"no": "version"}', "{", "{}\n[]"])
def test_what_is_no_recording_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="asciicast"):
        parse(text)


def test_markers_go_where_they_belong(tmp_path: Path) -> None:
    path = recording(tmp_path, [1, 2, 3])
    add_markers(
        path, [(STARTED + 9, "late"), (STARTED + 2.5, "between"), (STARTED + 2, "with"), (STARTED - 9, "early")]
    )
    assert [(at, code, data) for at, code, data in read(path).events] == [
        (0.0, "m", "early"),
        (1.0, "o", "1"),
        (2.0, "o", "2"),
        (2.0, "m", "with"),
        (2.5, "m", "between"),
        (3.0, "o", "3"),
        (3.0, "m", "late"),
    ]
    assert read(path).started == STARTED
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_markers_are_added_to_what_a_killed_writer_left(tmp_path: Path) -> None:
    path = recording(tmp_path, [1])
    with path.open("a") as file:
        file.write('[2.0, "o", "hal')
    add_markers(path, [(STARTED, "start")])
    assert read(path).events == [(0.0, "m", "start"), (1.0, "o", "1")]
    assert path.read_text().endswith("]\n")


def test_markers_of_a_recording_without_output_are_at_its_start(tmp_path: Path) -> None:
    path = recording(tmp_path, [])
    add_markers(path, [(STARTED + 5, "a")])
    assert read(path).events == [(0.0, "m", "a")]
    path.write_text("")
    add_markers(path, [(STARTED, "a")])
    assert path.read_text() == ""


def test_names_that_are_taken_get_a_number(tmp_path: Path) -> None:
    names = [claim(tmp_path / "casts", name).name for name in ("a", "a", "a", "b c/d", "../..", "")]
    assert names == ["a.cast", "a-2.cast", "a-3.cast", "b-c-d.cast", "terminal.cast", "terminal-2.cast"]


def recording(directory: Path, times: list[int]) -> Path:
    writer = Writer(directory / "r.cast", 80, 24, STARTED)
    for at in times:
        writer.output(at, str(at))
    writer.close()
    return writer.path
