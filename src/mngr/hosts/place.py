"""What is kept of each host that is known: `hosts/<name>` on the user's machine, one line of JSON. How it is reached,
where things are there, and whether it is ours to take away."""

from __future__ import annotations

import os
import time

from mngr import jsonline
from mngr.address import is_name
from mngr.errors import MngrError, UsageError
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

RUNNING, STOPPED = "running", "stopped"
GOING = "going"  # it is being taken away, or was when somebody was killed


class Place(Record):
    name: str  # HOST.PROVIDER, or local
    home: str = ""  # MNGR_HOME there; "" until somebody has been there
    socket: str = ""  # of the tmux server there
    made: bool = False  # by mngr: it stops and goes with its last agent
    state: str = RUNNING  # of one that was made
    is_counted: bool = False  # what its agents have spent: when it was stopped, everything was
    id: str = ""  # the provider's own name for it
    options: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults; as they were given

    @property
    def host(self) -> str:
        return self.name.partition(".")[0]

    @property
    def provider(self) -> str:
        return self.name.partition(".")[2] or self.name


class Places:
    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "hosts")

    def find(self, name: str) -> Place | None:
        try:
            with open(self._file(name), encoding="utf-8") as file:
                place = Place.from_dict(jsonline.loads(file.read()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise MngrError(f"{self._file(name)} cannot be read: {error}", "mngr host add writes it anew") from None
        return place.replace(name=name)

    def all(self) -> Iterator[Place]:
        try:
            names = sorted(os.listdir(self._path))
        except FileNotFoundError:
            return
        for name in names:
            if not name.startswith(".") and (place := self.find(name)):
                yield place

    def keep(self, place: Place, *, new: bool = False) -> None:
        """Atomically. `new`: MngrError when there is one of that name."""
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        fresh = os.path.join(self._path, f".{place.name}.{os.getpid()}")
        with open(fresh, "w", encoding="utf-8", opener=_private) as file:
            file.write(jsonline.dumps(place.to_dict()) + "\n")
        try:
            if new:
                os.link(fresh, self._file(place.name))
            else:
                os.replace(fresh, self._file(place.name))
                return
        except FileExistsError:
            raise MngrError(f"there is already a host {place.name}", "see mngr host list") from None
        finally:
            if os.path.exists(fresh):
                os.unlink(fresh)

    def age(self, name: str) -> float:
        """Seconds since something became known of it."""
        try:
            return time.time() - os.stat(self._file(name)).st_mtime
        except FileNotFoundError:
            return 0.0

    def forget(self, name: str) -> None:
        try:
            os.unlink(self._file(name))
        except FileNotFoundError:
            pass

    def _file(self, name: str) -> str:
        host, _, provider = name.partition(".")
        if not is_name(host) or not is_name(provider):
            raise UsageError(f"{name!r} is not a host", "HOST.PROVIDER, as in box.ssh: see mngr host list")
        return os.path.join(self._path, name)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
