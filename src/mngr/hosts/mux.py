"""A session over a connection that ssh keeps open, asked for at its control socket, as ssh(1) itself does it: that
program costs more to start than a short question to a host takes. It is OpenSSH's multiplexing protocol, version 4.

Whatever is not as expected is left to ssh(1): nothing has been sent to the host by then."""

from __future__ import annotations

import _socket  # `socket` costs 3 ms
import os
import select
import sys
import time

from mngr import process, waiting
from mngr.errors import TimedOut

_VERSION = 4
_HELLO, _NEW_SESSION = 1, 0x10000002
_EXIT_MESSAGE, _SESSION_OPENED = 0x80000004, 0x80000006
_NO_ESCAPE = 0xFFFFFFFF
_TIME_TO_ASK = 5.0  # for the connection's own process, which is on this machine
_TIME_TO_OPEN = 2.0  # for the host, to refuse one: who waits longer has other troubles, and hears it as an end
_MOST = 200_000  # bytes of a request: a connection takes 256 KiB
_LOST = 255  # what ssh(1) ends with when it cannot tell how the script ended
_SIGTERM = 15


class Session(process.Child):
    """Instead of a process: it ends when the connection says so, and with us. Its `pid` is our own."""

    def __init__(self, control: _socket.socket, ours: list[int | None]) -> None:
        super().__init__(os.getpid(), *ours)
        self._control, self._heard, self._status = control, b"", _LOST
        self.is_open = False
        self._poller = select.poll()
        self._poller.register(control.fileno(), select.POLLIN)

    def poll(self) -> int | None:
        while self.code is None and self._poller.poll(0):
            self._hear()
        return self.code

    def wait(self, deadline: float | None = None) -> int:
        while self.code is None:
            if not waiting.ready(self._poller, deadline) and deadline is not None and time.monotonic() > deadline:
                raise TimedOut("the session still runs")
            self.poll()
        return self.code

    def has_begun(self, limit: float) -> bool:
        """False when it was refused: of what was written to it, nothing has gone to the host. Who has not been told by
        then hears of it by `wait`."""
        while self.code is None and not self.is_open:
            if not waiting.ready(self._poller, limit):
                return True
            self._hear()
        return self.is_open

    def end(self, grace: float = 0.0) -> int:
        """The connection lets go of it; what it runs ends by its lifeline."""
        if self.poll() is None:
            self._close(-_SIGTERM)
        assert self.code is not None
        return self.code

    def give_up(self) -> None:
        """With our ends of its streams."""
        self.end()
        _close_all([self.stdin, self.stdout, self.stderr])

    def _close(self, code: int) -> None:
        self._poller.unregister(self._control.fileno())
        self._control.close()
        self.code = code

    def _hear(self) -> None:
        """What the connection has to say. It closes the socket when the session is over, with all its output."""
        try:
            chunk = self._control.recv(1 << 16)
        except OSError:
            chunk = b""
        self._heard += chunk
        is_over = not chunk
        while message := self._next_message():
            if message[0] == _SESSION_OPENED:
                self.is_open = True
            elif message[0] == _EXIT_MESSAGE:
                self._status = message[2]
            elif message[:2] != [_HELLO, _VERSION]:
                is_over = True  # refused, or nothing that we know
                break
        if is_over:
            self._close(self._status)

    def _next_message(self) -> list[int]:
        """Its type and the two numbers that may follow; nothing as long as it is not complete."""
        size = int.from_bytes(self._heard[:4], "big")
        if len(self._heard) < 4 + size or size < 4:
            return []
        body, self._heard = self._heard[4 : 4 + size], self._heard[4 + size :]
        return [int.from_bytes(body[at : at + 4], "big") for at in (0, 4, 8)]


def start(path: str, command: str, *, stdin: int, stdout: int, stderr: int) -> Session | None:
    """`command` for the login shell there. None when there is no such connection, or when it takes no more."""
    session = ask(path, command, stdin=stdin, stdout=stdout, stderr=stderr)
    if session is None:
        return None
    try:
        if session.has_begun(time.monotonic() + _TIME_TO_OPEN):
            return session
    except BaseException:
        session.give_up()
        raise
    session.give_up()
    return None


def ask(path: str, command: str, *, stdin: int, stdout: int, stderr: int) -> Session | None:
    """The same without waiting whether it takes one more: see `has_begun`. None, too, for a stream that is somebody
    else's, whom it must not make wait for nothing (O_NONBLOCK)."""
    streams, request = (stdin, stdout, stderr), _request(command)
    if any(stream not in (process.PIPE, process.NULL) for stream in streams) or len(request) > _MOST:
        return None
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    ours: list[int | None] = []
    theirs: list[int] = []
    try:
        control.settimeout(_TIME_TO_ASK)
        control.connect(path)
        for target, stream in enumerate(streams):
            mine, other = process.ends(stream, target)
            ours.append(mine)
            assert other is not None
            theirs.append(other)
        control.sendall(_packet(_HELLO, _VERSION) + request)
        for fd in theirs:
            passed = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))
            control.sendmsg([b"\0"], [passed])
        return Session(control, ours)
    except OSError:
        control.close()
        _close_all(ours)
        return None
    except BaseException:
        control.close()  # at once: the connection may be waiting for what we did not come to send
        _close_all(ours)
        raise
    finally:
        _close_all(theirs)


_ahead: dict[tuple[str, str], Session] = {}


def ask_ahead(path: str, command: str) -> Session | None:
    """With three pipes, for whoever takes it later in this process."""
    session = _three_pipes(path, command)
    if session is not None:
        forgotten, _ahead[path, command] = _ahead.get((path, command)), session
        if forgotten is not None:
            forgotten.give_up()
    return session


def forget_ahead() -> None:
    while _ahead:
        _ahead.popitem()[1].give_up()


def take(path: str, command: str) -> Session | None:
    """One that was asked for ahead, or a new one like it."""
    return _ahead.pop((path, command), None) or _three_pipes(path, command)


def _three_pipes(path: str, command: str) -> Session | None:
    pipe = process.PIPE
    return ask(path, command, stdin=pipe, stdout=pipe, stderr=pipe)


def _request(command: str) -> bytes:
    """Without a terminal, X11, or a subsystem. Whether our agent and which of our variables go along is decided by the
    connection, which knows the user's configuration (ForwardAgent, SendEnv)."""
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    return _packet(_NEW_SESSION, 0, "", 0, 0, 1, 0, _NO_ESCAPE, "", command, *variables)


def _packet(*parts: int | str) -> bytes:
    body = b""
    for part in parts:
        if isinstance(part, str):
            data = part.encode("utf-8", "surrogateescape")
            body += len(data).to_bytes(4, "big") + data
        else:
            body += part.to_bytes(4, "big")
    return len(body).to_bytes(4, "big") + body


def _close_all(fds: list[int] | list[int | None]) -> None:
    for fd in fds:
        if fd is not None:
            os.close(fd)
