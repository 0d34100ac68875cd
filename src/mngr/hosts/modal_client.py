"""Asking the one process that has Modal's SDK (modal_server.py), over a unix socket: whoever comes first starts it, and
all verbs of this home share it. It imports nothing of the SDK, and little else, because every command pays for it.

A request is a line of JSON, with file descriptors if it needs some. The server says at once that it has taken it, and
at the end how it went. Until then the connection holds the two together: when either is gone, the other knows."""

from __future__ import annotations

import os
import select
import sys
import time

from mngr import errors, jsonline, process, waiting
from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.home import home_path
from mngr.hosts.modal_errors import LOST, SandboxGone
from mngr.hosts.sockets import socket_directory, socket_path
from mngr.version import VERSION

try:
    import _socket as socket  # `socket` itself costs 10 ms: its constants become enums
except ImportError:  # another Python than CPython
    import socket  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

IDLE = 60.0  # seconds that the server stays without work
_TAKEN = 20.0  # seconds for a server to say that it has taken a request: it does so before the SDK is there
_TRIES = 3
_KIND = "-modal-"  # in the name of every socket of ours, which lie beside others
_OWN = ("modal_server.py", "modal_command.py", "modal_calls.py", "modal_errors.py")
_TERM = 15


class Request:
    """One that the server has taken. Whoever closes it before the answer is here does not want it any more."""

    def __init__(self, wish: dict[str, object], streams: tuple[int, ...] = ()) -> None:
        self._held = b""
        self._socket: Any = None
        for _ in range(_TRIES):
            self._socket = _connect(socket_name())
            taken = self._line(time.monotonic() + _TAKEN)
            if taken is not None:
                break
            self.close()  # it was about to leave: nothing of ours has begun
        else:
            raise HostUnreachable("the process that speaks to Modal ends as soon as it is started")
        self.server = int(taken)  # its pid
        try:
            self._send(f"{jsonline.dumps(wish)}\n".encode(), streams)
        except ConnectionError:
            pass  # that it is gone shows when its answer is asked for

    def _send(self, data: bytes, streams: tuple[int, ...]) -> None:
        rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in streams)
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if streams else []
        self._socket.sendall(data[self._socket.sendmsg([data], passed) :])

    def fileno(self) -> int:
        return int(self._socket.fileno())

    def say(self, value: object) -> None:
        """What comes after the request: the size of a terminal."""
        try:
            self._socket.sendall(f"{jsonline.dumps(value)}\n".encode())
        except ConnectionError:
            pass  # the same

    def answer(self, limit: float | None = None) -> dict[str, Any] | None:
        """None when the server has gone without one. TimedOut at `limit` (monotonic), with all as it was."""
        line = self._line(limit)
        return None if line is None else jsonline.loads(line)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def __del__(self) -> None:
        self.close()  # a line that nobody has closed, and nobody can use any more

    def _line(self, limit: float | None) -> str | None:
        poller = select.poll()
        poller.register(self._socket.fileno(), select.POLLIN)
        while b"\n" not in self._held:
            if not waiting.ready(poller, limit):
                raise TimedOut("the process that speaks to Modal does not answer")
            try:
                chunk = self._socket.recv(1 << 16)
            except ConnectionError:
                chunk = b""
            if not chunk:
                return None
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()


def call(name: str, *words: object, deadline: float, sandbox: str = "") -> Any:
    """What a function of modal_calls.py gives, with errors in our words. HostUnreachable when that takes too long."""
    request = Request({"do": "call", "name": name, "words": list(words), "sandbox": sandbox})
    try:
        return answered(request, deadline)
    finally:
        request.close()


def answered(request: Request, deadline: float) -> Any:
    try:
        answer = request.answer(time.monotonic() + deadline)
    except TimedOut:
        raise HostUnreachable(f"Modal has not answered within {deadline:g} s") from None
    if answer is None:
        raise HostUnreachable("the process that speaks to Modal has been ended")
    if "error" in answer:
        kind = SandboxGone if answer["error"] == SandboxGone.__name__ else getattr(errors, answer["error"], MngrError)
        raise kind(answer["message"], answer["hint"])
    return answer["given"]


class Running(process.Child):
    """A script that runs in a sandbox, as if it were a process of ours: it ends when its connection is closed."""

    def __init__(self, sandbox: str, script: str, streams: tuple[int, int, int], *ours: int | None) -> None:
        self._mark = os.urandom(8).hex()
        self._sandbox = sandbox
        self._request = Request(wish(sandbox, script, self._mark), streams)
        super().__init__(self._request.server, *(ours or (None, None, None)))

    def poll(self) -> int | None:
        if self.code is None:
            try:
                self.wait(0)
            except TimedOut:
                pass
        return self.code

    def wait(self, deadline: float | None = None) -> int:
        if self.code is None:
            answer = self._request.answer(deadline)
            self._request.close()
            self.code = LOST if answer is None else int(answer["given"])
            if answer is None:
                end_lost(self._sandbox, self._mark)
        return self.code

    def end(self, grace: float = 2.0) -> int:
        """What runs there has some time to end in any case."""
        if self.poll() is None:
            self._request.close()
            self.code = -_TERM
        assert self.code is not None
        return self.code


def wish(sandbox: str, script: str, mark: str, *, tty: bool = False) -> dict[str, object]:
    return {"do": "run", "sandbox": sandbox, "script": script, "mark": mark, "tty": tty}


def end_lost(sandbox: str, mark: str) -> None:
    """What runs there still, because the server was killed. The next one ends it, whether we wait or not."""
    if os.path.isdir(home_path()):
        try:
            Request({"do": "end", "sandbox": sandbox, "mark": mark}).close()
        except (MngrError, OSError):
            pass  # what we were about to tell matters more


def _connect(path: str) -> Any:
    socket_directory()  # which is ours, or nobody's: what is sent holds scripts and secrets
    if (found := _reach(path)) is not None:
        return found
    with _alone():
        if (found := _reach(path)) is None:  # else somebody was quicker
            _start(path)
            found = _reach(path)
    if found is None:
        raise HostUnreachable("the process that speaks to Modal cannot be started")
    return found


def _reach(path: str) -> Any:
    """None when nobody listens there. One that is old, and whose server was killed, refuses."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        found.close()
        return None
    return found


class _alone:  # noqa: N801 - reads as a verb
    """Of all processes of this user. The lock is on the directory, so that there is no file to leave behind."""

    def __enter__(self) -> None:
        import fcntl

        self._fd = os.open(socket_directory(), os.O_RDONLY)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _start(path: str) -> None:
    """The socket is there before the server, which gets it as its standard input: nobody has to wait for it."""
    _remove_dead()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        listener.listen(1024)
        argv = [sys.executable, "-P", "-m", "mngr.hosts.modal_server", path, str(IDLE)]
        process.start(argv, stdin=listener.fileno(), stdout=process.NULL, stderr=process.NULL).wait()
    finally:
        listener.close()


def _remove_dead() -> None:
    """What servers have left that were killed, of whichever home: nobody else may ever look there again."""
    directory = socket_directory()
    for name in os.listdir(directory):
        path = f"{directory}/{name}"
        if _KIND not in name:
            continue
        if (alive := _reach(path)) is not None:
            alive.close()
            continue
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass  # it has just left, by itself


def socket_name() -> str:
    """One for each way to use Modal from this home: another token, SDK or mngr has another server."""
    import hashlib

    digest = hashlib.sha256("\0".join(_circumstances()).encode("utf-8", "surrogateescape"))
    return f"{socket_path(home_path())}{_KIND}{digest.hexdigest()[:16]}"


def _circumstances() -> Iterator[str]:
    yield from (VERSION, sys.executable, home_path())
    for name, value in sorted(os.environ.items()):
        if name.startswith(("MODAL_", "SSL_CERT_", "PYTHON")) or name.lower().endswith("_proxy"):
            yield f"{name}={value}"
    try:
        path = os.environ.get("MODAL_CONFIG_PATH") or os.path.expanduser("~/.modal.toml")
        with open(path, encoding="latin-1") as file:
            yield file.read()
    except OSError:
        yield ""
    yield from (_age(os.path.join(os.path.dirname(__file__), name)) for name in _OWN)
    for finder in sys.meta_path:
        if (found := finder.find_spec("modal", None)) is not None:
            yield _age(found.origin or "")
            break


def _age(path: str) -> str:
    try:
        return f"{path} {os.stat(path).st_mtime_ns}"
    except OSError:
        return ""
