"""The sockets of this user on this machine: those of tmux servers, and of connections that are kept open. Their names
begin with the home's, so that two homes never share one.

They are in /tmp and not in the home, which can be deep, or on a network file system without sockets."""

from __future__ import annotations

import binascii
import os
import stat

from mngr.errors import MngrError
from mngr.home import home_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 40  # characters of a host's name


def socket_path(home: str, user: int | None = None) -> str:
    """Of a tmux server. Short, because a socket's path may have 104 bytes at most."""
    own = os.getuid() if user is None else user
    return f"/tmp/mngr-{own}/{binascii.crc32(os.fsencode(home)):08x}"


def end_of_server(home: str) -> str:
    """As a line of shell, for worlds that are made to be thrown away. The server has cleared its environment, so that
    no mark of such a world leads to it."""
    socket = socket_path(home)
    return f"[ ! -S {socket} ] || tmux -S {socket} kill-server; rm -f {socket}"


def socket_directory() -> str:
    """Made, and nobody else's."""
    path = f"/tmp/mngr-{os.getuid()}"
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if os.lstat(path).st_uid != os.getuid() or not os.path.isdir(path):
            raise MngrError(f"{path} belongs to somebody else: refusing to put a socket there") from None
    return path


def control_path(host: str, way: str) -> str:
    """Of a connection to that host of this home, as long as the way there is the same. ssh adds 17 characters to it."""
    socket_directory()
    return f"{socket_path(home_path())}-{binascii.crc32(way.encode()):08x}-{_short(host)}"


def control_paths(host: str) -> list[str]:
    """Those that there are, also of further connections and of former ways."""
    start = f"{_short(host)}-"
    return [path for name, path in _connections() if f"{name}-".startswith(start)]


def latest_connections() -> dict[str, str]:
    """To each host the first one, of the way that was taken last."""
    found: dict[str, tuple[int, str]] = {}
    for name, path in _connections():
        if name.endswith(".ssh"):  # further ones are numbered
            try:
                found[name] = max(found.get(name, (0, "")), (os.lstat(path).st_mtime_ns, path))
            except FileNotFoundError:
                continue  # it has just ended
    return {name: path for name, (_, path) in found.items()}


def _connections() -> Iterator[tuple[str, str]]:
    directory, _, own = socket_path(home_path()).rpartition("/")
    for entry in _entries(directory):
        home, _, rest = entry.partition("-")
        if home == own:
            yield rest.partition("-")[2], f"{directory}/{entry}"


def _entries(directory: str) -> list[str]:
    """None of what is somebody else's: who connects to a socket there sends scripts and secrets."""
    try:
        about = os.lstat(directory)
        return os.listdir(directory) if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() else []
    except OSError:
        return []


def _short(host: str) -> str:
    """What stands for its name; of a long one, nobody can tell what that was."""
    name, _, provider = host.partition(".")
    return host if len(host) <= _LONGEST else f"{binascii.crc32(name.encode()):08x}.{provider}"
