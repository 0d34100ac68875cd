"""A script that runs in a sandbox, with the streams of whoever asked for it: in the process that has the SDK.

Modal has no call that ends a command, and does not end one when its client is gone. So when the connection of the
caller closes, in whatever way, the command is ended by another one. It is found there by a mark in the environment of
its first process, which passes it on to nobody and leads a process group of its own."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
import time

from mngr.errors import HostUnreachable
from mngr.hosts import modal_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.errors import MngrError

_MARK = "MNGR_BRIDGE"
_CHUNK = 1 << 16
_AHEAD = 4 << 20  # bytes of input that are read while earlier ones are on their way
_UNREAD = 128 + 13  # as by SIGPIPE

_RUN = f'unset {_MARK}; sh -c "$1"; exit $?'
# $1 is the script. Who leads no process group yet becomes the leader of one, by an exec: setsid forks for leaders only.
_FIRST = f"""
read -r stat </proc/$$/stat
set -- "$1" ${{stat##*) }}
[ "$4" = $$ ] || ! command -v setsid >/dev/null || exec setsid sh -c '{_RUN}' mngr "$1"
{_RUN}
"""
_FIND = f'found=$(grep -ls "{_MARK}=$1" /proc/[0-9]*/environ); for pid in $found; do pid=${{pid%/*}} pid=${{pid##*/}};'
_END = f"""
{{
  {_FIND}
    kill -s TERM -- "-$pid" && ended=1 # false for who leads no group yet
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -s 0 -- "-$pid" || break; sleep 0.2 || sleep 1; done
    kill -s KILL -- "-$pid"
  done
  [ -n "${{ended:-}}" ]
}} 2>/dev/null
"""
_RESIZE = f'{_FIND} stty rows "$2" cols "$3" <"/proc/$pid/fd/0"; done'
_TIME_TO_BEGIN = 20.0  # seconds after which what has not begun will not
_TIME_TO_REFUSE = 5.0  # the same of what Modal did not say that it has started

_sandboxes: dict[str, Any] = {}  # with the connections that the SDK keeps to each
_MANY = 500


def _sandbox(id: str) -> Any:
    found = _sandboxes.get(id)
    if found is None:
        found = modal_errors.sdk().Sandbox.from_id(id)
        if len(_sandboxes) >= _MANY:
            _sandboxes.clear()
        _sandboxes[id] = found
    return found


def end(sandbox: str, mark: str, process: Any = None) -> None:
    """To have started a command is not to see it run: who is called off at once has to wait for it. `process`, if it is
    known that there is one, tells when that is over."""
    limit, pause = time.monotonic() + (_TIME_TO_REFUSE if process is None else _TIME_TO_BEGIN), 0.2
    while not _is_found(sandbox, mark) and time.monotonic() < limit and not _has_ended(process):
        time.sleep(pause)
        pause *= 1.5


def _is_found(sandbox: str, mark: str) -> bool:
    """And told to end. False when it is not there: it has ended, or has not begun."""
    try:
        return bool(_sandbox(sandbox).exec("sh", "-c", _END, "mngr", mark).wait() == 0)
    except Exception:  # noqa: BLE001 - it cannot be reached, or is gone: so is the command, or nobody can end it
        _sandboxes.pop(sandbox, None)
        return True


def _has_ended(process: Any) -> bool:
    try:
        return process is not None and process.poll() is not None
    except Exception:  # noqa: BLE001 - nobody can tell any more
        return True


class Command:
    """One connection, five threads: each of them may have to wait for something else."""

    def __init__(self, connection: socket.socket, asked: dict[str, Any], streams: list[int]) -> None:
        self._connection, self._sandbox, self._mark = connection, asked["sandbox"], asked["mark"]
        self._script, self._tty = asked["script"], asked["tty"]
        self._outputs = [_Output(fd) for fd in streams[1:]]
        self._input = _Input(streams[0], connection)
        self._lock = threading.Lock()
        self._is_over = False  # it was told how it ended
        self._is_left = True  # something may run there still

    def run(self) -> None:
        """Until the connection is closed: by us when the command has ended, or by the caller before that."""
        process = None
        try:
            process = _sandbox(self._sandbox).exec(
                *("sh", "-c", _FIRST, "mngr", self._script),
                env={_MARK: self._mark},
                text=False,
                pty=self._tty,
                bufsize=-1,
            )
        except Exception as error:  # noqa: BLE001 - one line for whoever reads its stderr
            self._fail(error)
        else:
            threading.Thread(target=self._input.copy, args=(process.stdin,), daemon=True).start()
            threading.Thread(target=self._follow, args=(process,), daemon=True).start()
            self._attend()
        self._tell(modal_errors.LOST)
        self._input.close()
        if self._is_left:
            end(self._sandbox, self._mark, process)

    def _attend(self) -> None:
        """What the caller says while it runs: the size of its terminal."""
        held = b""
        resizing = _Resizing(self._sandbox, self._mark)
        while True:
            try:
                data = self._connection.recv(4096)
            except OSError:
                return
            if not data:
                return
            *lines, held = (held + data).split(b"\n")
            if lines:
                resizing.to(*json.loads(lines[-1]))

    def _follow(self, process: Any) -> None:
        """Its output, to the end, and how it ended."""
        errors = threading.Thread(target=self._copy, args=(process.stderr, self._outputs[1]), daemon=True)
        if not self._tty:
            errors.start()
        self._copy(process.stdout, self._outputs[0])
        if not self._tty:
            errors.join()
        if not self._is_over:
            try:
                self._tell(int(process.wait()) & 255, is_left=False)
            except Exception as error:  # noqa: BLE001 - the same
                self._fail(error)

    def _copy(self, stream: Any, output: _Output) -> None:
        try:
            for chunk in stream:
                output.write(memoryview(chunk))
        except Exception as error:  # noqa: BLE001 - the same
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, BrokenPipeError):
            self._tell(_UNREAD)
            return
        told = self._explained(error)
        line = f"{told.message}{f' ({told.hint})' if told.hint else ''}" + ("\r\n" if self._tty else "\n")
        try:
            self._outputs[-1].write(memoryview(line.encode(errors="replace")))
        except OSError:
            pass  # nobody wants to know
        self._tell(modal_errors.LOST, is_left=not isinstance(told, modal_errors.SandboxGone))

    def _explained(self, error: Exception) -> MngrError:
        """A connection that was kept to a sandbox says little about its end."""
        kept = _sandboxes.pop(self._sandbox, None)
        told = modal_errors.explain(error, self._sandbox)
        if kept is None or type(told) is not HostUnreachable:
            return told
        try:
            if modal_errors.sdk().Sandbox.from_id(self._sandbox).poll() is not None:
                return modal_errors.gone(self._sandbox)
        except Exception as worse:  # noqa: BLE001 - the same
            return modal_errors.explain(worse, self._sandbox)
        return told

    def _tell(self, code: int, *, is_left: bool = True) -> None:
        """Once, and when all that it said has been passed on."""
        with self._lock:
            if self._is_over:
                return
            self._is_over, self._is_left = True, is_left
        for output in self._outputs:
            output.close()
        try:
            self._connection.sendall(f"{json.dumps({'given': code})}\n".encode())
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the caller has gone


class _Output:
    """A descriptor of the caller's. It may be closed while somebody writes: then that one closes it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_closed = False
        self._writing = threading.Lock()

    def write(self, left: memoryview) -> None:
        with self._writing:
            while left and not self._is_closed:
                left = left[os.write(self._fd, left) :]
        if self._is_closed:
            self.close()

    def close(self) -> None:
        self._is_closed = True
        if self._writing.acquire(blocking=False):
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)
            self._writing.release()


class _Input:
    """The caller's standard input on its way. What comes in while a piece is under way goes with the next one, so that
    it is not one round trip for each piece that a pipe gives."""

    def __init__(self, fd: int, connection: socket.socket) -> None:
        self._fd = fd
        self._data = bytearray()
        self._ended = self._is_closed = self._begun = False
        self._changed = threading.Condition()
        self._poller = select.poll()
        self._poller.register(fd, select.POLLIN)
        self._watched = os.dup(connection.fileno())  # ours, so that its number stays its own
        self._poller.register(self._watched, 0)  # its end is told in any case

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            if not self._begun:
                self._begun = True
                self._release()

    def copy(self, stdin: Any) -> None:
        with self._changed:
            if self._begun:
                return
            self._begun = True
        threading.Thread(target=self._read, daemon=True).start()
        try:
            while self._pass_on(stdin):
                pass
        except Exception:  # noqa: BLE001 - who takes no more input has ended, or the end of its output tells why
            self.close()

    def _pass_on(self, stdin: Any) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._data or self._ended or self._is_closed)
            if self._is_closed:
                return False
            data, self._data, ended = bytes(self._data), bytearray(), self._ended
            self._changed.notify_all()
        stdin.write(data)
        if ended:
            stdin.write_eof()
        stdin.drain()
        return not ended

    def _read(self) -> None:
        """Never what the caller's successor on a terminal or a pipe is to get: not after the end of the command."""
        while not self._ended and not self._is_closed:
            ready = dict(self._poller.poll())
            if self._fd not in ready or len(ready) > 1:
                break
            try:
                data = os.read(self._fd, _CHUNK)
            except OSError:  # of a terminal that is gone
                data = b""
            with self._changed:
                self._data += data
                self._ended = not data
                self._changed.notify_all()
                self._changed.wait_for(lambda: len(self._data) < _AHEAD or self._is_closed)
        self._release()

    def _release(self) -> None:
        os.close(self._fd)
        os.close(self._watched)


class _Resizing:
    """One at a time; of those that come in between, the last."""

    def __init__(self, sandbox: str, mark: str) -> None:
        self._sandbox, self._mark = sandbox, mark
        self._wanted: tuple[int, int] | None = None
        self._runs = False
        self._lock = threading.Lock()

    def to(self, rows: int, columns: int) -> None:
        with self._lock:
            self._wanted = (rows, columns)
            if self._runs:
                return
            self._runs = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                size, self._wanted = self._wanted, None
                self._runs = size is not None
            if size is None:
                return
            try:
                _sandbox(self._sandbox).exec("sh", "-c", _RESIZE, "mngr", self._mark, *map(str, size)).wait()
            except Exception:  # noqa: BLE001 - a picture of the wrong size is no reason to end
                continue
