"""A command that runs a script in a sandbox of Modal, with its own standard streams, so that git, tar and terminals can
use a host whose only access is an SDK:

    python -P modal_bridge.py SANDBOX pipe|tty SCRIPT

It is small: another process has the SDK (modal_server.py), gets our streams, and ends the command when we are gone. A
terminal alone is read here, because whoever is stopped or in the background must not read from it."""

from __future__ import annotations

import os
import select
import sys

from mngr.errors import MngrError
from mngr.hosts import modal_client, modal_errors
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_CHUNK = 1 << 16
_LOST = "the process that speaks to Modal has ended, and the command with it"
_OF_TERMINALS = ("TERM", "COLORTERM", "TERM_PROGRAM")


def main(sandbox: str, kind: str, script: str) -> NoReturn:
    try:
        code = _run(sandbox, script, tty=kind == "tty")
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except MngrError as error:
        _say(f"{error.message}{f' ({error.hint})' if error.hint else ''}")
    except OSError as error:
        _say(f"Modal cannot be reached from here: {error}")
    else:
        os._exit(code)
    os._exit(modal_errors.LOST)


def _run(sandbox: str, script: str, *, tty: bool) -> int:
    mark = os.urandom(8).hex()
    terminal = _Terminal() if tty and os.isatty(0) else None
    reader, writer = os.pipe() if os.isatty(0) else (0, -1)
    try:
        wish = modal_client.wish(sandbox, _in_terminal(script, terminal) if tty else script, mark, tty=tty)
        request = modal_client.Request(wish, (reader, 1, 2))
        if terminal is not None:
            terminal.follow(request)
        if writer >= 0:
            os.close(reader)
            _pass_input_on(writer, request)
        answer = request.answer()
    finally:
        if terminal is not None:
            terminal.restore()
    if answer is None:
        _say(_LOST)
        modal_client.end_lost(sandbox, mark)
        return modal_errors.LOST
    return int(answer["given"])


def _say(text: str) -> None:
    try:
        os.write(2, f"{text}\n".encode(errors="replace"))
    except OSError:
        pass


def _in_terminal(script: str, terminal: _Terminal | None) -> str:
    """The SDK would tell what it finds around itself."""
    given = [f"{name}={quote(os.environ[name])}" for name in _OF_TERMINALS if os.environ.get(name)]
    told = f"export {' '.join(given)}\n" if given else ""
    if terminal is not None:
        rows, columns = terminal.size()
        told += f"stty rows {rows} cols {columns}\n"
    return f"{told}{script}"


def _pass_input_on(writer: int, request: modal_client.Request) -> None:
    """What is typed, until the command has ended."""
    os.set_blocking(writer, False)
    is_open, left = True, b""
    while True:
        poller = select.poll()
        poller.register(request.fileno(), select.POLLIN)
        if left:
            poller.register(writer, select.POLLOUT)
        elif is_open:
            poller.register(0, select.POLLIN)
        if request.fileno() in dict(poller.poll()):
            return
        try:
            if left:
                left = left[os.write(writer, left) :]
            else:
                left = os.read(0, _CHUNK)
                is_open = bool(left)
        except BlockingIOError:
            continue
        except OSError:  # of a terminal that is gone, or of a command that reads no more
            is_open, left = False, b""
        if not is_open:
            os.close(writer)


class _Terminal:
    """Ours is raw as long as that one is used, and that one as large as ours."""

    def __init__(self) -> None:
        import signal
        import termios
        import tty

        self._before = termios.tcgetattr(0)
        tty.setraw(0)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._die)

    def size(self) -> tuple[int, int]:
        columns, rows = os.get_terminal_size(0)
        return rows, columns

    def follow(self, request: modal_client.Request) -> None:
        import signal

        def tell(*_: object) -> None:
            request.say(list(self.size()))

        signal.signal(signal.SIGWINCH, tell)
        tell()  # it may have changed meanwhile
        # Who makes the terminal there may give it a size of its own after that.
        signal.signal(signal.SIGALRM, tell)
        signal.setitimer(signal.ITIMER_REAL, 1.0)

    def restore(self) -> None:
        import termios

        termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    def _die(self, number: int, _: object) -> None:
        self.restore()
        os._exit(128 + number)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[2] not in ("pipe", "tty"):
        raise MngrError("usage: modal_bridge SANDBOX pipe|tty SCRIPT")
    main(*sys.argv[1:])
