"""exec: run a command in an agent's work dir and environment, on its host. Its output and exit code are the command's
own."""

from __future__ import annotations

import os
import select as polling
import sys
import time

from mngr import hosts, process, waiting
from mngr.errors import HostUnreachable, MngrError, NoSuchAgent, TimedOut
from mngr.fleet.guard import Guard
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

TIMEOUT, OUR_FAULT = 124, 125  # exit codes, as timeout and docker have them
_LOST = 255  # what clients (ssh) end with when the connection does; it can be the command's own
AT_ONCE = 8  # commands on one far host: each is a session there
_SCRIPT = """
[ -r "$H/agents/$2/env" ] || exit 125
mark=${1:+MNGR_EXEC=$1} e=$H/agents/$2/env
shift 2
exec env -i TERM="${TERM:-dumb}" ${mark:+"$mark"} sh -c '
command . "$1" 2>/dev/null
[ -n "$MNGR_WORK_DIR" ] || { echo "mngr: its env file is damaged: $1" >&2; exit 125; }
cd "$MNGR_WORK_DIR" || exit 125
shift
exec "$@"' mngr "$e" "$@"
"""


class Ran(Record):
    id: str
    name: str
    code: int
    seconds: float
    stdout: str = ""  # when nobody took the lines as they came
    stderr: str = ""
    why: str = ""  # it is not known how the command ended: the host went away


def execute(fleet: Fleet, ref: Ref, words: list[str], *, timeout: float | None = None) -> int:
    """In the foreground, with our own standard streams: the exit code, or 124 after `timeout` seconds. What may be
    ended by a timeout has a process group of its own, and so no terminal to read from."""
    host = fleet.host(ref.host)
    with Guard(host) as guard:
        script, args = hosts.script_for(host, _SCRIPT), [guard.token, ref.id, *process.command_words(words)]
        on_terminal = sys.stdin.isatty()
        if on_terminal and timeout is None:
            code = process.run_in_front(host.argv(script, args, tty=sys.stdout.isatty()))
        else:
            stdin = process.NULL if on_terminal else process.INHERIT
            child = host.start(script, args, stdin=stdin, stdout=process.INHERIT, stderr=process.INHERIT)
            try:
                code = child.wait(None if timeout is None else time.monotonic() + timeout)
            except TimedOut:
                child.end()
                return TIMEOUT
            except (KeyboardInterrupt, SystemExit):
                child.end()
                raise
            code = code if code >= 0 else 128 - code
        if code != _LOST:
            guard.done()
    if code == OUR_FAULT:
        _check_there(fleet, ref)
    if code == _LOST and (why := _lost(host)):
        raise HostUnreachable(why, "whether the command has ended there is not known")
    return code


def execute_many(
    fleet: Fleet,
    refs: list[Ref],
    words: list[str],
    line: Callable[[Ref, bool, bytes], None] | None = None,
    *,
    timeout: float | None = None,
) -> list[Ran]:
    """On all of them side by side, on a far host a few at a time. `line` gets each line of output as it comes, told
    apart by agent and by stream; without it, what each has said is in its Ran. Each has `timeout` seconds."""
    batch = _Batch(fleet, refs, process.command_words(words), line, timeout)
    try:
        batch.run()
    except BaseException:
        batch.give_up()
        raise
    return [batch.ran[ref.id] for ref in refs]


class _Command:
    """One that runs, or is about to."""

    def __init__(self, ref: Ref, host: Host) -> None:
        self.ref, self.host = ref, host
        self.child: process.Child | None = None
        self.began = 0.0
        self.streams: dict[
            int, tuple[bool, bytearray]
        ] = {}  # those that are open: is it stderr, and a line's beginning


class _Batch:
    """Those of one call: which run, what they say, and how they ended."""

    def __init__(
        self,
        fleet: Fleet,
        refs: list[Ref],
        words: list[str],
        line: Callable[[Ref, bool, bytes], None] | None,
        timeout: float | None,
    ) -> None:
        self._words, self._timeout = words, timeout
        self._said: dict[tuple[str, bool], list[bytes]] = {}
        self._line = line or self._keep
        self._waiting = [_Command(ref, fleet.host(ref.host)) for ref in refs]
        self._guards = {each.host.name: Guard(each.host) for each in self._waiting}
        self._running: list[_Command] = []
        self._poller = polling.poll()
        self.ran: dict[str, Ran] = {}

    def run(self) -> None:
        hosts_of = {each.ref.id: each.host for each in self._waiting}
        for guard in self._guards.values():
            guard.__enter__()
        while self._waiting or self._running:
            self._fill_up()
            self._pump()
            now = time.monotonic()
            for each in list(self._running):
                if not each.streams or (self._timeout is not None and now >= each.began + self._timeout):
                    self._end(each)
        for guard in self._guards.values():
            guard.done()
        away: dict[str, str] = {}
        for id, ran in self.ran.items():
            host = hosts_of[id]
            if ran.code == _LOST and not ran.why:
                if host.name not in away:
                    away[host.name] = _lost(host)
                ran = ran.replace(why=away[host.name])
            texts = [
                b"".join(self._said.get((id, is_error), [])).decode("utf-8", "replace") for is_error in (False, True)
            ]
            self.ran[id] = ran.replace(stdout=texts[0], stderr=texts[1])

    def give_up(self) -> None:
        for each in self._running:
            assert each.child is not None
            each.child.end(grace=1)
        for guard in self._guards.values():
            guard.__exit__(None, None, None)

    def _fill_up(self) -> None:
        busy: dict[str, int] = {}
        for each in self._running:
            busy[each.host.name] = busy.get(each.host.name, 0) + 1
        for each in list(self._waiting):
            if each.host.lines is None or busy.get(each.host.name, 0) < AT_ONCE:
                busy[each.host.name] = busy.get(each.host.name, 0) + 1
                self._waiting.remove(each)
                self._start(each)

    def _start(self, each: _Command) -> None:
        args = [self._mark(each), each.ref.id, *self._words]
        null, pipe = process.NULL, process.PIPE
        each.began = time.monotonic()
        try:
            each.child = each.host.start(
                hosts.script_for(each.host, _SCRIPT), args, stdin=null, stdout=pipe, stderr=pipe
            )
        except HostUnreachable as error:
            self.ran[each.ref.id] = Ran(id=each.ref.id, name=each.ref.name, code=_LOST, seconds=0.0, why=error.message)
            return
        self._running.append(each)
        for fd, is_error in ((each.child.stdout, False), (each.child.stderr, True)):
            assert fd is not None
            each.streams[fd] = (is_error, bytearray())
            self._poller.register(fd, polling.POLLIN)

    def _mark(self, each: _Command) -> str:
        """Its own, and one by which its guard knows it too."""
        token = self._guards[each.host.name].token
        return f"{token}.{each.ref.id}" if token else ""

    def _pump(self) -> None:
        limit = None
        if self._timeout is not None and self._running:
            limit = min(each.began for each in self._running) + self._timeout
        owners = {fd: each for each in self._running for fd in each.streams}
        for fd, _ in waiting.ready(self._poller, limit) if owners else ():
            each = owners[fd]
            is_error, held = each.streams[fd]
            chunk = os.read(fd, 65536)
            held += chunk
            *whole, rest = held.split(b"\n")
            for text in whole:
                self._line(each.ref, is_error, bytes(text))
            held[:] = rest
            if not chunk:
                if rest:
                    self._line(each.ref, is_error, bytes(rest))
                self._close(each, fd)

    def _close(self, each: _Command, fd: int) -> None:
        self._poller.unregister(fd)
        os.close(fd)
        del each.streams[fd]

    def _end(self, each: _Command) -> None:
        assert each.child is not None
        try:
            code = each.child.wait(None if self._timeout is None else each.began + self._timeout)
        except TimedOut:
            each.child.end()
            self._guards[each.host.name].end(self._mark(each))
            code = TIMEOUT
        for fd in list(each.streams):
            self._close(each, fd)
        self._running.remove(each)
        took = time.monotonic() - each.began
        code = code if code >= 0 else 128 - code
        self.ran[each.ref.id] = Ran(id=each.ref.id, name=each.ref.name, code=code, seconds=took)

    def _keep(self, ref: Ref, is_error: bool, text: bytes) -> None:
        self._said.setdefault((ref.id, is_error), []).append(text + b"\n")


def _lost(host: Host) -> str:
    """Why a far host does not answer; empty when it does, and the exit code was the command's own."""
    if host.lines is None:
        return ""
    try:
        hosts.run(host, ":", deadline=20)
    except MngrError as error:
        return f"the host went away: {error.message}"
    return ""


def _check_there(fleet: Fleet, ref: Ref) -> None:
    """125 can be the command's own; it is ours when the agent is not there."""
    if hosts.run(fleet.host(ref.host), f'[ -r "$H/agents/{ref.id}/env" ]', deadline=20).code:
        raise NoSuchAgent(f"{ref.name} is known by name but not there any more", "mngr gc clears such names")
