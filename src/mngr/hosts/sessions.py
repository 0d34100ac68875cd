"""Many sessions at once on a host whose connections take only so many: an sshd takes ten on one (MaxSessions), and
refuses when more than ten connect in the same moment (MaxStartups). So what is more goes over a further connection,
which is made before anybody else uses it. Over one that is open, a session needs no process of its own."""

from __future__ import annotations

from _thread import allocate_lock  # `threading` and `weakref` cost 5 ms
from _weakref import ref

from mngr import process
from mngr.hosts import mux
from mngr.hosts.remote import Remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mngr.hosts.place import Place

    class Way(Protocol):
        """How ssh gets there. Connections are counted from 0."""

        def words(self, script: str, tty: bool, connection: int) -> list[str]: ...

        def socket(self, connection: int) -> str: ...

        def line(self, script: str) -> str:
            """For the login shell there."""
            ...


PER_CONNECTION = 7  # three are left for others: other processes, git, a terminal
_TIME_TO_CONNECT = 30.0


class _Slot:
    """One session of a connection: taken until its child is collected, or was never started."""

    def __init__(self, connection: int) -> None:
        self.connection = connection
        self.child: Callable[[], process.Child | None] | None = None

    def is_taken(self) -> bool:
        return self.child is None or ((child := self.child()) is not None and child.code is None)


class Sessions(Remote):
    def __init__(self, place: Place, way: Way) -> None:
        super().__init__(place, lambda script, tty: way.words(script, tty, 0))
        self._way = way
        self._slots: list[_Slot] = []
        self._connected: set[str] = set()  # sockets of those made here; the first makes itself when it is used
        self._lock = allocate_lock()

    def start(
        self,
        script: str,
        args: list[str],
        *,
        stdin: int = process.NULL,
        stdout: int = process.PIPE,
        stderr: int = process.PIPE,
    ) -> process.Child:
        text = self.with_args(script, args)

        def ask(path: str, line: str) -> process.Child | None:
            return mux.start(path, line, stdin=stdin, stdout=stdout, stderr=stderr)

        return self._start(text, ask, stdin=stdin, stdout=stdout, stderr=stderr)

    def three_pipes(self, script: str, surely: bool) -> process.Child:
        pipe = process.PIPE
        return self._start(script, None if surely else mux.take, stdin=pipe, stdout=pipe, stderr=pipe)

    def _start(
        self,
        text: str,
        ask: Callable[[str, str], process.Child | None] | None,
        *,
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> process.Child:
        """`ask`: how it is tried without a process."""
        slot = self._take()
        try:
            child = ask and ask(self._way.socket(slot.connection), self._way.line(text))
            if child is None:
                argv = self._way.words(text, False, slot.connection)
                child = process.start(argv, stdin=stdin, stdout=stdout, stderr=stderr)
        except BaseException:
            slot.child = lambda: None
            raise
        slot.child = ref(child)
        return child

    def _take(self) -> _Slot:
        """Of the first connection that takes one more."""
        with self._lock:
            self._slots = [slot for slot in self._slots if slot.is_taken()]
            used = [slot.connection for slot in self._slots]
            number = next(number for number in range(len(used) + 1) if used.count(number) < PER_CONNECTION)
            if number and (path := self._way.socket(number)) not in self._connected:
                process.run(self._way.words("exit 0", False, number), deadline=_TIME_TO_CONNECT)
                self._connected.add(path)
            slot = _Slot(number)
            self._slots.append(slot)
            return slot
