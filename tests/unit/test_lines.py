"""Open lines to a host, with shells of this machine at their other ends. Real hosts are in tests/places."""

from __future__ import annotations

import fcntl
import os
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr import process
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.hosts.lines import AT_ONCE, Lines, Question, first, tell_ahead
from tests.home import is_alive, wait_until


def shell(script: str) -> process.Child:
    pipe = process.PIPE
    return process.start(["/bin/sh", "-c", script], stdin=pipe, stdout=pipe, stderr=pipe)


class Host:
    """Counts the shells that were asked for, and says of each whether it was to begin for sure."""

    def __init__(self) -> None:
        self.asked: list[bool] = []
        self.prepared: list[process.Child] = []  # what is given instead, the last one first
        self.lines = Lines("box", self.start)

    def start(self, script: str, surely: bool) -> process.Child:
        self.asked.append(surely)
        return self.prepared.pop() if self.prepared else shell(script)


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.lines.close()


def test_one_shell_takes_one_script_after_the_other(host: Host) -> None:
    for number in range(3):
        done = host.lines.run(f"echo out {number}; echo err >&2; exit {number}", deadline=10)
        assert (done.code, done.out, done.err) == (number, f"out {number}\n", "err\n")
    assert host.asked == [False]


def test_no_more_than_so_many_are_open_at_once(host: Host) -> None:
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(host.lines.run("echo x", deadline=30).out)) for _ in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["x\n"] * 40
    assert len(host.asked) <= AT_ONCE


def test_who_finds_no_room_waits_for_it_and_no_longer_than_the_deadline(host: Host) -> None:
    asked = [host.lines.begin("sleep 100", deadline=60) for _ in range(AT_ONCE)]
    with pytest.raises(TimedOut, match=r"box: no answer within 0\.05 s"):
        host.lines.run(":", deadline=0.05)
    heard: list[str] = []
    waiting = threading.Thread(target=lambda: heard.append(host.lines.run("echo in", deadline=60).out))
    waiting.start()
    asked.pop().drop()
    waiting.join()
    assert heard == ["in\n"]
    for question in asked:
        question.drop()


def test_the_first_answer_is_had_first(tmp_path: Path) -> None:
    hosts = [Host(), Host()]
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    slow = hosts[0].lines.begin(f"read -r word <{gate}; echo $word", deadline=30)
    quick = hosts[1].lines.begin("echo quick", deadline=30)
    assert first([slow, quick]) is quick
    assert quick.answer().out == "quick\n"
    gate.write_text("slow\n")
    assert first([slow]) is slow
    assert slow.answer().out == "slow\n"
    for host in hosts:
        host.lines.close()


def test_a_question_that_is_dropped_ends_on_the_host(host: Host, tmp_path: Path) -> None:
    question = host.lines.begin(f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 100", deadline=60)
    wait_until((tmp_path / "pid").exists)
    question.drop()
    question.drop()  # there is nothing left to do
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_alive(pid))
    assert host.lines.run("echo next", deadline=10).out == "next\n"


def test_an_answer_that_does_not_come_is_told_with_its_deadline(host: Host) -> None:
    question = host.lines.begin("sleep 100", deadline=0.1)
    assert first([question]) is question
    with pytest.raises(TimedOut, match=r"box: no answer within 0\.1 s"):
        question.answer()


def test_an_answer_that_was_there_in_time_may_be_read_late(host: Host) -> None:
    question = host.lines.begin("echo in time", deadline=30)
    assert question.line is not None
    marks = 4 * len(question.line._mark)  # at the beginning and at the end of both streams
    wait_until(lambda: sum(unread(fd) for fd, _ in question.waits_for()) > marks)
    question.limit = time.monotonic()
    assert question.answer().out == "in time\n"


def unread(fd: int) -> int:
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def test_one_that_never_stops_talking_is_late_all_the_same_and_takes_nothing_from_others(host: Host) -> None:
    other = Host()
    loud = host.lines.begin("while :; do echo x; echo y >&2; done", deadline=0.3)
    silent = other.lines.begin("sleep 100", deadline=0.2)
    assert first([loud, silent]) is silent
    for question in (silent, loud):
        with pytest.raises(TimedOut, match="box: no answer"):
            question.answer()


def test_a_script_that_is_longer_than_a_pipe_arrives(host: Host) -> None:
    text = "x" * 300_000
    assert host.lines.run(f"t={text}; echo ${{#t}}", deadline=30).out == "300000\n"
    assert host.lines.run(f"echo {text}", deadline=30).out == text + "\n"


def test_a_line_that_breaks_says_its_last_words(host: Host) -> None:
    host.prepared = [shell("echo 'no way there' >&2")]
    with pytest.raises(HostUnreachable, match="box: no way there"):
        host.lines.run("echo x", deadline=10)
    host.prepared = [shell("exit 0")]
    with pytest.raises(HostUnreachable, match="box: the connection ended"):
        host.lines.run("echo x", deadline=10)


class Refused(process.Child):
    """A session that the host did not agree to: its streams are closed, and nothing of it has run."""

    def __init__(self) -> None:
        ended = shell("exit 0")
        super().__init__(ended.pid, ended.stdin, ended.stdout, ended.stderr)

    def has_begun(self, limit: float) -> bool:
        return False


def test_what_never_began_begins_for_sure_and_once(host: Host, tmp_path: Path) -> None:
    host.prepared = [Refused()]
    assert host.lines.run(f"echo x >>{tmp_path}/ran; echo done", deadline=10).out == "done\n"
    assert host.asked == [False, True]
    assert (tmp_path / "ran").read_text() == "x\n"
    assert host.lines.run("echo next", deadline=10).out == "next\n"
    assert host.asked == [False, True]


def test_what_never_began_and_cannot_is_the_error_of_its_question_alone() -> None:
    def start(script: str, surely: bool) -> process.Child:
        if surely:
            raise MngrError("cannot run ssh")
        return Refused()

    lost, well = Lines("lost", start), Host()
    asked = [lost.begin("echo x", deadline=10) for _ in range(AT_ONCE)]
    other = well.lines.begin("echo well", deadline=10)
    for question in asked:
        assert isinstance(first([question]), Question)
        with pytest.raises(MngrError, match="cannot run ssh"):
            question.answer()
    assert other.answer().out == "well\n"
    lost.begin("echo x", deadline=0.5).drop()  # there is room again
    well.lines.close()


def test_one_that_was_told_ahead_is_not_told_again(host: Host, tmp_path: Path) -> None:
    script = f"echo x >>{tmp_path}/ran; echo ahead"
    ahead = shell("exec sh -s")
    tell_ahead(ahead, script)
    host.prepared = [ahead]
    wait_until((tmp_path / "ran").exists)
    assert host.lines.run(script, deadline=10).out == "ahead\n"
    assert (tmp_path / "ran").read_text() == "x\n"
    assert host.lines.run("echo next", deadline=10).out == "next\n"
    assert host.asked == [False]


def test_one_that_was_told_something_else_is_let_go(host: Host) -> None:
    ahead = shell("exec sh -s")
    tell_ahead(ahead, "sleep 100")
    host.prepared = [ahead]
    assert host.lines.run("echo mine", deadline=10).out == "mine\n"
    assert ahead.code is not None


def test_one_that_was_refused_before_it_was_told_begins_for_sure(host: Host) -> None:
    refused = Refused()
    refused.wait(time.monotonic() + 10)
    tell_ahead(refused, "echo x")
    assert refused.told is None
    host.prepared = [refused]
    assert host.lines.run("echo x", deadline=10).out == "x\n"
    assert host.asked == [False, True]


def test_one_that_could_not_be_told_all_of_it_at_once_is_let_go(host: Host) -> None:
    ahead = shell("exec sleep 100")  # reads nothing
    script = f": {'x' * 300_000}; echo done"
    tell_ahead(ahead, script)
    host.prepared = [ahead]
    assert host.lines.run(script, deadline=10).out == "done\n"
    assert ahead.code is not None
    assert host.asked == [False, False]


def test_one_begins_at_once_or_not_at_all(host: Host) -> None:
    held = [host.lines.begin_at_once("sleep 100", deadline=60) for _ in range(AT_ONCE)]
    assert host.lines.begin_at_once("echo x", deadline=60) is None
    for question in held:
        assert question is not None
        question.drop()
    begun = host.lines.begin_at_once("echo x", deadline=60)
    assert begun is not None
    assert begun.answer().out == "x\n"
    assert Lines("slow", host.start, is_slow=True).begin_at_once("echo x", deadline=60) is None


def test_an_interrupted_wait_for_room_leaves_it_to_others(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    held = [host.lines.begin("sleep 100", deadline=60) for _ in range(AT_ONCE)]
    monkeypatch.setattr(time, "monotonic", _interrupting(time.monotonic, after=2))
    with pytest.raises(KeyboardInterrupt):
        host.lines.run(":", deadline=60)
    monkeypatch.undo()
    held.pop().drop()
    assert host.lines.run("echo in", deadline=10).out == "in\n"
    for question in held:
        question.drop()


def _interrupting(clock: object, after: int) -> object:
    calls = iter(range(after))

    def now() -> float:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return clock()  # type: ignore[operator,no-any-return]

    return now
