"""Two verbs at one host: who makes, stops, starts or removes it is alone, and who works there keeps it as it is."""

from __future__ import annotations

import os
import time

from mngr import waiting
from mngr.errors import HostUnreachable
from mngr.fleet.fleet import LOCAL
from mngr.hosts.place import RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet


_AGAIN = 30.0  # seconds, after which whoever waits is told so once more


class Lock:
    """Of one host, in the way of other verbs on this machine that make, stop, start or remove it; or of something that
    one of them at a time may do there. A shared one is for those who need the host to stay as it is. It goes with its
    process, and its file with the host."""

    def __init__(
        self, fleet: Fleet, name: str, *, shared: bool = False, busy: Callable[[], None] = lambda: None
    ) -> None:
        """`busy` is called when there is somebody to wait for, and now and then while that is so."""
        self._path = os.path.join(fleet.home, "hosts", f".{name}.lock")
        self._record = os.path.join(fleet.home, "hosts", name)
        self._shared = shared
        self._busy = busy

    def __enter__(self) -> None:
        import fcntl

        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                how = fcntl.LOCK_NB | (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX)
                due = time.monotonic()
                while not self._is_free(how):
                    if time.monotonic() >= due:
                        self._busy()
                        due += _AGAIN
                    waiting.pause(0.05)
                if os.path.samestat(os.fstat(self._file), os.stat(self._path)):
                    return
            except FileNotFoundError:
                pass  # it went with its host while we waited
            except BaseException:
                os.close(self._file)
                raise
            os.close(self._file)

    def _is_free(self, how: int) -> bool:
        import fcntl

        try:
            fcntl.flock(self._file, how)
        except BlockingIOError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        try:
            if not self._shared and not os.path.lexists(self._record):
                os.unlink(self._path)  # not a moment earlier: until here we are alone
        except FileNotFoundError:
            pass  # somebody has tidied up by hand
        finally:
            os.close(self._file)


class JustStopped(HostUnreachable):
    """Between a look at it and its use, with what another verb took for its last agent."""


class InUse(Lock):
    """While somebody is at work on a host, it is neither stopped nor removed. Only hosts that mngr made are."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        super().__init__(fleet, name, shared=True)
        self._fleet, self._name = fleet, name
        place = None if name == LOCAL else fleet.places.find(name)
        self._needed = place is not None and place.made

    def __enter__(self) -> None:
        if not self._needed:
            return
        super().__enter__()
        place = self._fleet.places.find(self._name)
        if place is None or place.state != RUNNING:
            super().__exit__()
            raise JustStopped(f"{self._name} was {'stopped' if place else 'removed'} just now", "try it again")

    def __exit__(self, *_: object) -> None:
        if self._needed:
            super().__exit__()
