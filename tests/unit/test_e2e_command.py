"""One command in a shell: what it wrote, how it ended, and that nothing of it is left behind or waited for in vain."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mngr.e2e.command import Line, Result, run
from tests.home import is_alive, wait_until


def sh(command: str, cwd: Path, **how: Any) -> Result:
    return run(command, env={"PATH": os.environ["PATH"]}, cwd=cwd, **how)


def test_streams_and_exit_code(tmp_path: Path) -> None:
    result = sh("echo out; echo err >&2; printf 'no newline'; exit 3", tmp_path)
    assert (result.stdout, result.stderr, result.exit_code) == ("out\nno newline", "err\n", 3)
    assert not result.timed_out
    assert sorted((line.stream, line.text) for line in result.lines) == [
        ("e", "err"),
        ("o", "no newline"),
        ("o", "out"),
    ]


def test_lines_of_both_streams_stand_in_the_order_in_which_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command writes a line when the one before has been read."""

    def line(stream: str, text: str, at: float) -> Line:
        (tmp_path / text).touch()
        return Line(stream, text, at)

    monkeypatch.setattr("mngr.e2e.command.Line", line)
    until = "while ! [ -e {} ]; do sleep 0.005; done"
    words = ["o1", "e1", "e2", "o2", "o3", "e3"]
    steps = [f"echo {word} >&{1 + (word[0] == 'e')}; {until.format(word)}" for word in words]
    result = sh("\n".join(steps), tmp_path, timeout=60)
    assert result.output.split() == words
    assert [line.stream for line in result.lines] == [word[0] for word in words]


def test_a_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    result = sh("sleep 1000 & echo $!; sleep 1000", tmp_path, timeout=2)
    assert (result.exit_code, result.timed_out) == (124, True)
    wait_until(lambda: not is_alive(int(result.stdout)))


def test_what_goes_on_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    late = "while ! [ -e go ]; do sleep 0.01; done; head -c 1000000 /dev/zero; touch done"
    result = sh(f"({late}) & echo $!", tmp_path)
    assert is_alive(int(result.stdout))
    (tmp_path / "go").touch()
    wait_until((tmp_path / "done").exists)  # a closed pipe would have ended it, and a full one stopped it


def test_somebody_who_writes_for_ever_in_the_background_is_not_listened_to(tmp_path: Path) -> None:
    result = sh("yes & echo $! >pid", tmp_path)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert result.exit_code == 0
    assert len(result.stdout) <= 1 << 21


def test_long_input_and_output_do_not_block_each_other(tmp_path: Path) -> None:
    text = "0123456789" * 100_000
    assert sh("cat", tmp_path, input=text).stdout == text


def test_input_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    assert sh("exit 4", tmp_path, input="x" * 1_000_000).exit_code == 4


def test_without_input_there_is_none_to_wait_for(tmp_path: Path) -> None:
    assert sh("cat; [ ! -t 0 ]", tmp_path).exit_code == 0


def test_a_signal_is_told_as_shells_do(tmp_path: Path) -> None:
    assert sh("kill -9 $$", tmp_path).exit_code == 137


def test_no_terminal_of_the_developer_can_be_reached(tmp_path: Path) -> None:
    assert sh(": >/dev/tty", tmp_path).exit_code != 0


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    assert sh(r"printf 'a\377b'", tmp_path).stdout == "a\ufffdb"


def test_output_ends_as_it_was_written(tmp_path: Path) -> None:
    assert sh("printf abc", tmp_path).output == "abc"
    assert sh("echo abc", tmp_path).output == "abc\n"
    assert sh("true", tmp_path).output == ""


def test_json_and_again(tmp_path: Path) -> None:
    result = sh("""echo x >>count; echo "{\\"n\\": $(wc -l <count)}" """, tmp_path)
    assert result.json() == {"n": 1}
    assert result.again().json() == {"n": 2}


def test_the_environment_is_what_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "x")
    assert "SECRET" not in sh("env", tmp_path).stdout
