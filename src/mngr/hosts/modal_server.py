"""The one process that has Modal's SDK, for all verbs of a home: to import that takes half a second and 45 MB, and a
connection to a sandbox is worth keeping. modal_client.py starts it and talks to it.

    python -P -m mngr.hosts.modal_server PATH IDLE <LISTENING-SOCKET

It goes when nobody has needed it for IDLE seconds, or when the home is gone. Whoever asked has a connection; when that
closes, what was asked for is not wanted any more, and a command in a sandbox ends."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import NoReturn

_LOOK = 1.0  # seconds between two looks at the home and the clock
_PARTING = 25.0  # seconds to end commands when we are told to go: a little more than one has to begin


def main(path: str, idle: float) -> NoReturn:
    if os.fork():
        os._exit(0)  # who started us waits for this one, and has no child that it does not know of
    os.setsid()
    try:
        _Server(path, idle).run()
    finally:
        os._exit(0)  # threads of the SDK would be waited for


class _ToldToGo(BaseException):
    pass


def _go(*_: object) -> None:
    raise _ToldToGo


class _Server:
    def __init__(self, path: str, idle: float) -> None:
        import signal
        import socket
        import threading

        from mngr.home import home_path

        self._path, self._idle, self._home = path, idle, os.path.abspath(home_path())
        _leave_directory()
        self._listener = socket.socket(fileno=os.dup(0))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        self._listener.settimeout(_LOOK)
        self._place = _identity(path)
        self._open: set[socket.socket] = set()
        self._used = time.monotonic()
        self._changed = threading.Condition()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _go)
        _allow_many_files()
        threading.stack_size(512 << 10)  # there are a few for each command

    def run(self) -> None:
        try:
            self._take_all()
        except _ToldToGo:
            self._leave()
            self._part()

    def _take_all(self) -> None:
        while True:
            if self._take() or not self._is_idle():
                continue
            # Who came in before the name was gone is served still.
            self._leave()
            self._listener.settimeout(0)
            if not self._take():
                return
            self._listener.settimeout(_LOOK)

    def _is_idle(self) -> bool:
        with self._changed:
            since = time.monotonic() - self._used
            return not self._open and (since > self._idle or not os.path.isdir(self._home))

    def _take(self) -> bool:
        """Somebody's connection, if there comes one within the time of a look."""
        import threading

        try:
            connection, _ = self._listener.accept()
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:  # it was gone at once, or there are too many: some of them will end
            time.sleep(0.1)
            return True
        connection.settimeout(None)
        with self._changed:
            self._open.add(connection)
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        return True

    def _leave(self) -> None:
        """The name, if it is ours still."""
        if self._place is not None and _identity(self._path) == self._place:
            os.unlink(self._path)
        self._place = None

    def _part(self) -> None:
        """Commands end as if their callers had gone."""
        import socket

        with self._changed:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RD)
                except OSError:
                    continue
            self._changed.wait_for(lambda: not self._open, _PARTING)

    def _serve(self, connection: socket.socket) -> None:
        streams: list[int] = []
        try:
            connection.sendall(b"%d\n" % os.getpid())
            text, streams = _request(connection)
            if text:
                self._do(connection, text, streams)
        except OSError:
            pass  # the other end is gone
        finally:
            for fd in streams:
                os.close(fd)
            connection.close()
            with self._changed:
                self._open.discard(connection)
                self._used = time.monotonic()
                self._changed.notify_all()

    def _do(self, connection: socket.socket, text: bytes, streams: list[int]) -> None:
        import json

        from mngr.hosts import modal_calls, modal_command

        asked = json.loads(text)
        if asked["do"] == "call":
            answer = modal_calls.answer(asked["name"], asked["words"], asked["sandbox"])
            try:
                connection.sendall(f"{json.dumps(answer)}\n".encode())
            except OSError:
                modal_calls.undo(asked["name"], answer)  # nobody waits for it any more, or will ever know of it
                raise
        elif asked["do"] == "end":
            modal_command.end(asked["sandbox"], asked["mark"])
        else:
            command = modal_command.Command(connection, asked, streams[:3])
            del streams[:3]  # it closes them
            command.run()


def _request(connection: socket.socket) -> tuple[bytes, list[int]]:
    import socket

    text, streams = b"", []
    while not text.endswith(b"\n"):
        data, passed, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        streams += passed
        if not data:
            return b"", streams
        text += data
    return text, streams


def _leave_directory() -> None:
    """Nobody's directory is kept from being unmounted. What the SDK reads is where it was when we were started."""
    for name in ("MODAL_CONFIG_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "MNGR_HOME"):
        if os.environ.get(name):
            os.environ[name] = os.path.abspath(os.environ[name])
    os.chdir("/")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _allow_many_files() -> None:
    """Five for each command that runs, and many systems give 1024, or 256."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536) if most >= 0 else 10240, most))
    except (OSError, ValueError):
        pass


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
