"""Open lines to a host: each is a `sh` there that stays, and takes one script after the other. A process that asks a
host many times pays for one connection, and polls nobody through an exec API, whose every call leaves something behind.

A line ends with its caller, even with a killed one, and takes along what it was running: its standard input closes
then. That is what makes a deadline a deadline where killing the local client does not end the far script."""

from __future__ import annotations

import os
import select
import time
from _thread import allocate_lock  # `threading` costs 4 ms

from mngr import process, waiting
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.hosts.lifeline import SHELL, one_of_many

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import NoReturn

AT_ONCE = 4  # lines to one host: an sshd takes ten sessions on a connection, and feeds and copies need some too
_LONGEST_WAIT = 1.0  # seconds: whoever was woken and then interrupted has not passed it on
_PIPE = 1 << 16  # bytes that one holds, as a rule
_LATE = 1.0  # seconds to read what was there in time
_HALF = "half a script: nobody can use that"
_SAID = 4000  # bytes of what a connection said before it ended


class Lines:
    """Those of one host. Safe to use from many threads."""

    def __init__(self, name: str, start: Callable[[str, bool], process.Child], *, is_slow: bool = False) -> None:
        """`start(script, surely)` begins it there with three pipes. It need not wait until the host has agreed to,
        unless it is told to begin it for sure, as for one that never did. `is_slow`: it takes its time even so."""
        self.name, self._start, self._is_slow = name, start, is_slow
        self._idle: list[_Line] = []
        self._lock, self._bell = allocate_lock(), allocate_lock()
        self._taken = 0

    def run(self, script: str, *, deadline: float) -> process.Done:
        """To its end. TimedOut, or HostUnreachable when the line broke: then nobody knows how far it came."""
        return self.begin(script, deadline=deadline).answer()

    def begin(self, script: str, *, deadline: float) -> Question:
        """The same, without waiting for the answer."""
        limit = time.monotonic() + deadline
        while not self._enter():
            left = limit - time.monotonic()
            if left <= 0:
                raise self.late(deadline)
            self._bell.acquire(timeout=min(left, _LONGEST_WAIT))
        self._ring()  # two may have left, and rung as one
        return self._begin(script, deadline, limit)

    def begin_at_once(self, script: str, *, deadline: float) -> Question | None:
        """The same, if that needs no waiting at all: whoever asks many hosts asks all of them before the first answer
        is there."""
        if self._is_slow or not self._enter():
            return None
        return self._begin(script, deadline, time.monotonic() + deadline)

    def _begin(self, script: str, deadline: float, limit: float) -> Question:
        try:
            return Question(self, script, deadline, limit)
        except BaseException:
            self.leave(None)
            raise

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for line in idle:
            line.end()

    def take(self, script: str) -> _Line:
        while True:
            with self._lock:
                line = self._idle.pop() if self._idle else None
            if line is None:
                line = self.open()
                if line.is_free_for(script):
                    return line
            elif line.is_usable():
                return line
            line.end()  # it broke while nobody used it, and nothing was lost with it; or it is busy in vain

    def open(self, *, surely: bool = False) -> _Line:
        return _Line(self._start(SHELL, surely))

    def leave(self, line: _Line | None) -> None:
        """By who had taken it. None: it has ended."""
        with self._lock:
            self._taken -= 1
            if line is not None:
                self._idle.append(line)
        self._ring()

    def _enter(self) -> bool:
        """Unless AT_ONCE are in use."""
        with self._lock:
            is_room = self._taken < AT_ONCE
            self._taken += is_room
        return is_room

    def _ring(self) -> None:
        """For one that waits: it looks whether there is room."""
        try:
            self._bell.release()
        except RuntimeError:
            pass  # it rings already

    def late(self, deadline: float) -> TimedOut:
        return TimedOut(f"{self.name}: no answer within {deadline:g} s")

    def broken(self, words: str) -> HostUnreachable:
        """`words` are the last that were heard."""
        return HostUnreachable(f"{self.name}: {words or 'the connection ended'}")


class Question:
    """A script that has begun on a line. Whoever has one waits for its answer or drops it."""

    def __init__(self, lines: Lines, script: str, deadline: float, limit: float) -> None:
        self.limit, self._last_read = limit, float("inf")
        self.lines, self._script, self._deadline = lines, script, deadline
        self._done: process.Done | None = None
        self._error: Exception | None = None
        self._is_held = True  # a place among those AT_ONCE
        self.line: _Line | None = lines.take(script)
        try:
            self.line.say(script)
        except BaseException:
            self._end()
            raise

    def answer(self) -> process.Done:
        try:
            first([self])
            if self._error is not None:
                raise self._error
        except BaseException:
            self.drop(grace=0.5)
            raise
        assert self._done is not None
        line, self.line, self._is_held = self.line, None, False
        self.lines.leave(line)
        return self._done

    @property
    def is_over(self) -> bool:
        """The answer is there, or none will come."""
        return self._done is not None or self._error is not None

    def waits_for(self) -> list[tuple[int, int]]:
        return self.line.waits_for() if self.line else []

    def heed(self, fd: int) -> None:
        """One of those has something."""
        assert self.line is not None
        try:
            self._done = self.line.heed(fd)
        except _NeverBegan:
            self._begin_anew()
        except _Broke as broke:
            self._error = self.lines.broken(broke.words)

    def heed_time(self, *, is_silent: bool) -> None:
        """What was there by the deadline counts, also when it is read later; but then it has to come to an end."""
        now = time.monotonic()
        if self.is_over or now <= self.limit:
            return
        if is_silent or now > self._last_read:
            self._error = self.lines.late(self._deadline)
        self._last_read = min(self._last_read, now + _LATE)

    def _begin_anew(self) -> None:
        self._end()
        try:
            self.line = self.lines.open(surely=True)
            self.line.say(self._script)
        except MngrError as error:
            self._error = error

    def drop(self, grace: float = 0.0) -> None:
        """What it does on the host ends. One that was answered is left alone."""
        try:
            self._end(grace)
        finally:
            if self._is_held:
                self._is_held = False
                self.lines.leave(None)

    def _end(self, grace: float = 0.0) -> None:
        line, self.line = self.line, None
        if line is not None:
            line.end(grace)


def first(questions: Collection[Question]) -> Question:
    """That is over: waits until there is one."""
    assert questions
    while True:
        poller, owners, limit = select.poll(), {}, float("inf")
        for question in questions:
            if question.is_over:
                return question
            for fd, events in question.waits_for():
                poller.register(fd, events)
                owners[fd] = (question, question.line)
            limit = min(limit, question.limit)
        heard = set()
        for fd, _ in waiting.ready(poller, limit):
            question, line = owners[fd]
            heard.add(question)
            if question.line is line and not question.is_over:  # it may have begun anew, with others of the same number
                question.heed(fd)
        if time.monotonic() > limit:
            for question in questions:
                question.heed_time(is_silent=question not in heard)


class _Broke(Exception):
    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class _NeverBegan(_Broke):
    """The host was not asked, or did not agree: nothing of it has run."""


class _Line:
    def __init__(self, child: process.Child) -> None:
        self._child = child
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._in, self._out, self._err = child.stdin, child.stdout, child.stderr
        os.set_blocking(self._in, False)
        self._mark, self._left = b"", memoryview(b"")
        self._said: dict[int, bytearray] = {}
        self._ends: dict[int, bytes] = {}  # of those that go on

    def is_free_for(self, script: str) -> bool:
        """Not told another one ahead."""
        return self._child.told is None or self._child.told[0] == script

    def is_usable(self) -> bool:
        """Nothing is expected on an idle line: whatever comes is its end."""
        poller = select.poll()
        poller.register(self._out, select.POLLIN)
        poller.register(self._err, select.POLLIN)
        return not poller.poll(0) and self._child.poll() is None

    def end(self, grace: float = 0.0) -> None:
        """`grace`: seconds for a script that runs; on the host itself, its own end comes by the lifeline."""
        try:
            self._child.end(grace)
        finally:
            for fd in (self._in, self._out, self._err):
                os.close(fd)

    def say(self, script: str) -> None:
        """As much of it as goes at once: all, as a rule."""
        text = b""
        if self._child.told is None:
            self._mark, text = _marked(script)
        else:
            self._mark, self._child.told = self._child.told[1], None
        self._said = {self._out: bytearray(), self._err: bytearray()}
        self._ends = {self._out: b"\n" + self._mark + b" ", self._err: b"\n" + self._mark + b".\n"}
        self._left = memoryview(text)
        self._write()

    def waits_for(self) -> list[tuple[int, int]]:
        wanted = [(fd, select.POLLIN) for fd in self._said]
        return [*wanted, (self._in, select.POLLOUT)] if self._left else wanted

    def heed(self, fd: int) -> process.Done | None:
        """What the script has said, when it has ended."""
        if fd == self._in:
            self._write()
            return None
        chunk = os.read(fd, _PIPE)
        if not chunk:
            self._broke()
        said = self._said[fd]
        said += chunk
        if fd in self._ends and is_complete(said, self._ends[fd], len(chunk)):
            del self._ends[fd]
        return None if self._ends else self._done()

    def _done(self) -> process.Done:
        first = self._mark + b"\n"
        out, _, rest = bytes(self._said[self._out]).rpartition(b"\n" + self._mark + b" ")
        err = bytes(self._said[self._err]).rpartition(b"\n" + self._mark + b".\n")[0]
        code = int(rest.split(b"\n", 1)[0])
        return process.Done(code=code, out=_text(out.partition(first)[2]), err=_text(err.partition(first)[2]))

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._in, self._left[:65536]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._left = self._left[:0]  # the end of its output says more

    def _broke(self) -> NoReturn:
        """It has ended. Why, its last words may tell."""
        limit = time.monotonic() + 1.0
        if not self._child.has_begun(limit):
            raise _NeverBegan("")
        poller = select.poll()
        poller.register(self._err, select.POLLIN)
        words = self._said[self._err]
        while poller.poll(max(0.0, limit - time.monotonic()) * 1000) and len(words) < _SAID:
            chunk = os.read(self._err, _SAID)
            if not chunk:
                break
            words += chunk
        lines = [line.strip() for line in _text(bytes(words)).splitlines() if line.strip()]
        raise _Broke(lines[-1] if lines else "")


def tell_ahead(shell: process.Child, script: str) -> None:
    """Who asks the same of this host later in this process finds it at work."""
    mark, text = _marked(script)
    assert shell.stdin is not None
    os.set_blocking(shell.stdin, False)
    try:
        is_whole = os.write(shell.stdin, text) == len(text)
    except BlockingIOError:
        is_whole = False
    except BrokenPipeError:
        return  # the host has refused it: who wants to use it finds that out
    shell.told = (script if is_whole else _HALF, mark)


def _marked(script: str) -> tuple[bytes, bytes]:
    """The marks that stand around what it says, and all that is sent. What comes before them is what a login script
    printed, or what an earlier one left running."""
    mark = os.urandom(8).hex()
    before = f"echo {mark}; echo {mark} >&2"
    after = f"printf '\\n%s.\\n' {mark} >&2; printf '\\n%s %s\\n' {mark} $mngr_code"
    return mark.encode(), one_of_many(script, before, after).encode("utf-8", "surrogateescape")


def is_complete(text: bytearray, end: bytes, new: int) -> bool:
    """Does it hold `end`, and what follows to the end of that line? Only what is new is searched."""
    at = text.rfind(end, max(0, len(text) - new - len(end) - 16))
    return at >= 0 and (end.endswith(b"\n") or text.find(b"\n", at + len(end)) >= 0)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
