"""A local program in a terminal of its own: for scripts that get one on their host too."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import termios
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

LIMIT = 60.0


class Terminal:
    """A context manager: the program gets HUP with it, as when a window is closed."""

    def __init__(self, argv: list[str], rows: int, columns: int) -> None:
        self._argv, self._size = argv, (rows, columns)
        self.said = b""

    def __enter__(self) -> Self:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of newer Pythons: pytest may have threads
            self._pid, self._fd = os.forkpty()
        if not self._pid:
            try:
                os.environ["TERM"] = "xterm"
                os.execvp(self._argv[0], self._argv)
            finally:
                os._exit(127)
        self.resize(*self._size)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        try:
            os.kill(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self._pid, 0)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data: bytes) -> None:
        os.write(self._fd, data)

    def expect(self, text: bytes) -> None:
        """Reads until that was said."""
        limit = time.monotonic() + LIMIT
        while text not in self.said:
            assert self.read(max(0.0, limit - time.monotonic())), f"no {text!r} came; it said {self.said!r}"
        self.said = self.said.partition(text)[2]

    def read(self, seconds: float) -> bool:
        """What comes within that time is added to what it said; is it still there?"""
        if select.select([self._fd], [], [], seconds)[0]:
            try:
                chunk = os.read(self._fd, 65536)
            except OSError:  # how a terminal ends on Linux
                return False
            self.said += chunk
            return bool(chunk)
        return False
