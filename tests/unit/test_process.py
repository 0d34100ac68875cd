"""Child processes: their deadline is a deadline for all they started, big streams do not block, nothing leaks into
them, and a quoted text comes through a real shell as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr import process
from mngr.errors import MngrError, TimedOut
from mngr.process import INHERIT, NULL, PIPE, command_words, quote, run, start
from tests.home import each, is_alive, wait_until

BIG = bytes(range(256)) * 40_000  # 10 MB


def test_a_process_runs_to_its_end_and_says_what_it_said() -> None:
    done = run(["sh", "-c", "cat; echo bad >&2; exit 3"], input=b"good\n")
    assert (done.code, done.out, done.err) == (3, "good\n", "bad\n")


def test_without_input_there_is_an_empty_one() -> None:
    assert run(["cat"]).out == ""


def test_bytes_that_are_no_text_come_back_as_they_were() -> None:
    assert run(["cat"], input=b"\xff\xfe\0").out.encode("utf-8", "surrogateescape") == b"\xff\xfe\0"


def test_ten_megabytes_go_in_and_come_out_on_both_streams() -> None:
    done = run(["sh", "-c", "tee /dev/stderr"], input=BIG, deadline=30)
    assert done.code == 0
    assert done.out.encode("utf-8", "surrogateescape") == BIG
    assert done.err.encode("utf-8", "surrogateescape") == BIG


def test_a_reader_that_ends_early_does_not_block_nor_break_us() -> None:
    done = run(["sh", "-c", "head -c 3; exit 5"], input=b"abc" + BIG, deadline=10)
    assert (done.code, done.out) == (5, "abc")


def test_all_input_arrives_even_when_the_output_is_closed_before(tmp_path: Path) -> None:
    there = tmp_path / "there"
    assert run(["sh", "-c", 'exec >&- 2>&-; cat >"$0"', str(there)], input=BIG, deadline=10).code == 0
    assert there.read_bytes() == BIG


@pytest.mark.parametrize(("signal", "code"), [("TERM", -15), ("KILL", -9), ("INT", -2), ("PIPE", -13)])
def test_a_process_that_is_killed_tells_by_which_signal(signal: str, code: int) -> None:
    """INT and PIPE act on children although Python itself ignores or catches them."""
    assert run(["sh", "-c", f"kill -{signal} $$"]).code == code


def test_a_program_that_is_not_there_is_an_error_of_one_line_and_leaves_no_descriptor_open() -> None:
    before = os.listdir("/dev/fd")
    with pytest.raises(MngrError, match="cannot run no-such-program: No such file"):
        run(["no-such-program"], input=b"x")
    assert os.listdir("/dev/fd") == before


# The deadline.


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[Path]:
    """A file for the pids of what a test starts, each followed by a newline; what still lives afterwards is ended."""
    path = tmp_path / "pids"
    path.touch()
    yield path
    for pid in map(int, path.read_text().split()):
        if is_alive(pid):
            os.kill(pid, 9)


STUBBORN = 'sh -c \'trap "" TERM HUP; echo $$ >>"$0"; exec sleep 1000\' "$0"'


SCRIPTS = {
    "plain": 'echo $$ >>"$0"; exec sleep 1000',
    "ignores TERM": f"{STUBBORN}",
    "children ignore TERM": f"{STUBBORN} & {STUBBORN} & wait",
    "in a pipe": f"{STUBBORN} | cat",
    "an orphan that holds the output": f"{STUBBORN} & echo its parent has gone",
}


def test_a_deadline_ends_everything_that_was_started(pid_file: Path) -> None:
    ended: list[str] = []

    def work(what: str, script: str) -> None:
        with pytest.raises(TimedOut, match=r"no answer within 5 s"):
            run(["sh", "-c", script, str(pid_file)], deadline=5)
        ended.append(what)

    each([lambda item=item: work(*item) for item in SCRIPTS.items()])  # type: ignore[misc]
    assert sorted(ended) == sorted(SCRIPTS)
    pids = [int(pid) for pid in pid_file.read_text().split()]
    assert len(pids) == 6
    assert not any(is_alive(pid) for pid in pids)


def test_a_deadline_leaves_others_alone() -> None:
    bystander = start(["sleep", "1000"])
    try:
        with pytest.raises(TimedOut):
            run(["sleep", "1000"], deadline=0.05)
        assert bystander.poll() is None
    finally:
        bystander.end()
        close(bystander)


def test_a_process_that_cleans_up_at_its_end_has_the_time_for_it(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = "trap 'sleep 0.2; echo clean >\"$0\"; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    child = start(["sh", "-c", script, str(mark)])
    assert child.stdout is not None
    assert os.read(child.stdout, 10) == b"ready\n"
    assert child.end() == 0
    close(child)
    assert mark.read_text() == "clean\n"


def test_ctrl_c_ends_the_child_and_goes_on(pid_file: Path) -> None:
    """In a process of its own: the interrupt is real. It comes once the child is being listened to."""
    code = f"""
import sys
from mngr import process
talk = process._talk
def listening(*args):
    print("listening", flush=True)
    return talk(*args)
process._talk = listening
try:
    process.run(["sh", "-c", 'echo $$ >>"$0"; exec sleep 1000', {str(pid_file)!r}])
except KeyboardInterrupt:
    sys.exit(77)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout as said:
        assert said.readline() == b"listening\n"
    (pid,) = wait_until(lambda: [int(word) for word in pid_file.read_text().split()])
    parent.send_signal(2)
    assert parent.wait(10) == 77
    assert not is_alive(pid)


def test_wait_gives_up_at_its_deadline_and_leaves_the_process_running() -> None:
    child = start(["sleep", "1000"])
    with pytest.raises(TimedOut):
        child.wait(time.monotonic() + 0.05)
    assert child.poll() is None
    assert child.end() == -15
    assert child.end() == child.wait() == child.poll() == -15, "ended is ended, however often one asks"
    close(child)


# What children inherit.


def test_children_inherit_three_descriptors_and_no_lock_of_the_caller(tmp_path: Path) -> None:
    """Run as a shell would: descriptors 3, 7 and 9 of the caller are open, and 9 holds a lock."""
    code = 'from mngr.process import run; print(run(["sh", "-c", "ls /proc/$$/fd"]).out)'
    line = f'exec 3>"$1" 7<"$1" 9>>"$1"; flock 9; exec "{sys.executable}" -c "$2"'
    told = subprocess.run(["bash", "-c", line, "bash", tmp_path / "lock", code], capture_output=True, text=True)
    assert told.stdout.split() == ["0", "1", "2"], told.stderr


def test_streams_go_where_they_are_sent(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        child = start(["sh", "-c", "cat; echo out; echo err >&2"], stdin=NULL, stdout=file.fileno(), stderr=PIPE)
        assert (child.stdin, child.stdout) == (None, None)
        assert child.wait() == 0
        assert child.stderr is not None
        assert os.read(child.stderr, 100) == b"err\n"
        close(child)
        file.write(b"still open\n")
    assert (tmp_path / "out").read_bytes() == b"out\nstill open\n"


def test_a_child_is_in_a_group_of_its_own_unless_it_shares_the_terminal() -> None:
    for group in (True, False):
        child = start(["sleep", "1000"], stdout=INHERIT, stderr=INHERIT, group=group)
        assert os.getpgid(child.pid) == (child.pid if group else os.getpgrp())
        os.kill(child.pid, 9)
        assert child.wait() == -9


def test_a_given_environment_is_the_whole_environment() -> None:
    said = run(["/usr/bin/env"], env={"A": "b c", "D": "\n"}).out
    assert said == "A=b c\nD=\n\n"


def test_many_threads_run_processes_without_mixing_or_leaking_anything() -> None:
    before = os.listdir("/dev/fd")
    said: dict[int, str] = {}

    def work(number: int) -> None:
        for _ in range(5):
            said[number] = run(["cat"], input=b"%d" % number * 5000).out

    each([lambda number=number: work(number) for number in range(8)])  # type: ignore[misc]
    assert said == {number: str(number) * 5000 for number in range(8)}
    assert os.listdir("/dev/fd") == before


# Shell words.

EVERY_CHARACTER = [chr(code) for code in range(1, 256)] + ["\u2028", "é", "漢", "🦊", "\udcff"]


def through_sh(texts: list[str]) -> list[str]:
    """What a shell makes of the quoted texts."""
    script = "printf '%s\\0' " + " ".join(quote(text) for text in texts)
    return run(["sh", "-s"], input=script.encode("utf-8", "surrogateescape")).out.split("\0")[:-1]


def test_every_character_comes_through_a_shell_alone_and_at_each_end() -> None:
    texts = [shape.replace("x", char) for char in EVERY_CHARACTER for shape in ("x", "ax", "xa", "xx", "'x'", "x -x")]
    assert through_sh(texts) == texts


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]) | st.sampled_from("'\"\\$`!\n~=#"))))
def test_any_text_comes_through_a_shell(texts: list[str]) -> None:
    assert through_sh(["x", *texts]) == ["x", *texts]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_quoted_word_is_the_same_for_other_shells_too(shell: str) -> None:
    """What users paste into theirs, and what a host's sh may be. fish reads a backslash in quotes its own way."""
    texts = [char for char in EVERY_CHARACTER if char.isascii() and not (shell == "fish" and char == "\\")]
    script = "printf '%s\\n' " + " ".join(quote(text) for text in texts if text != "\n")
    assert run([shell, "-c", script]).out.split("\n")[:-1] == [text for text in texts if text != "\n"]


def test_a_quoted_assignment_or_tilde_stays_a_word() -> None:
    assert run(["sh", "-c", f"printf '%s ' {quote('~')} {quote('~root')} {quote('=ls')} {quote('A=b')}"]).out == (
        "~ ~root =ls A=b "
    )


def test_plain_words_stay_readable_and_an_empty_one_stays_a_word() -> None:
    assert quote("/usr/bin/env") == "/usr/bin/env"
    assert quote("a-b_c.d,e:f@g%h") == "a-b_c.d,e:f@g%h"
    assert quote("") == "''"
    assert quote("two words") == "'two words'"


def test_a_nul_is_refused_since_no_program_can_get_it() -> None:
    with pytest.raises(MngrError, match="NUL"):
        quote("a\0b")


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (["make"], ["make"]),
        (["make", "test; rm"], ["make", "test; rm"]),
        (["make test"], ["sh", "-c", "make test"]),
        (["a|b"], ["sh", "-c", "a|b"]),
        (["$EDITOR"], ["sh", "-c", "$EDITOR"]),
        (["./it's"], ["./it's"]),
    ],
)
def test_one_word_with_blanks_or_shell_signs_is_a_line_for_the_shell(words: list[str], argv: list[str]) -> None:
    assert command_words(words) == argv


def close(child: process.Child) -> None:
    for fd in (child.stdin, child.stdout, child.stderr):
        if fd is not None:
            os.close(fd)
