"""Many sessions at once on a host whose connections take only so many: an sshd takes ten on one (MaxSessions), and
refuses when more than ten connect in the same moment (MaxStartups). So what is more goes over a further connection,
which is made before anybody else uses it."""

from __future__ import annotations

import threading
import weakref

from mngr import process
from mngr.hosts.remote import Remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.hosts.place import Place

PER_CONNECTION = 7  # three are left for others: other processes, git, a terminal
_TIME_TO_CONNECT = 30.0


class Sessions(Remote):
    def __init__(self, place: Place, words: Callable[[str, bool, int], list[str]]) -> None:
        """`words(script, tty, connection)`: connections are counted from 0."""
        super().__init__(place, lambda script, tty: words(script, tty, 0))
        self._over = words
        self._under_way: list[tuple[int, weakref.ref[process.Child]]] = []
        self._connected = {0}  # that one makes itself when it is used; the others are made here
        self._lock = threading.Lock()

    def start(
        self,
        script: str,
        args: list[str],
        *,
        stdin: int = process.NULL,
        stdout: int = process.PIPE,
        stderr: int = process.PIPE,
    ) -> process.Child:
        with self._lock:
            number = self._with_room()
            if number not in self._connected:
                process.run(self._over("exit 0", False, number), deadline=_TIME_TO_CONNECT)
                self._connected.add(number)
            argv = self._over(self.with_args(script, args), False, number)
            child = process.start(argv, stdin=stdin, stdout=stdout, stderr=stderr)
            self._under_way.append((number, weakref.ref(child)))
        return child

    def _with_room(self) -> int:
        """The first connection that takes one more. A process that nobody has collected yet counts as running."""
        self._under_way = [
            (number, ref) for number, ref in self._under_way if (child := ref()) is not None and child.code is None
        ]
        used = [number for number, _ in self._under_way]
        return next(number for number in range(len(used) + 1) if used.count(number) < PER_CONNECTION)
