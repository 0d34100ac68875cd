"""This machine as a host: the same contract as any other, with the shortest argv."""

from __future__ import annotations

import binascii
import os

from mngr import process
from mngr.config import home_path
from mngr.errors import MngrError, UsageError
from mngr.hosts.provider import Standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts.lines import Lines
    from mngr.hosts.place import Place

LOCAL = "local"


class LocalHost:
    name = LOCAL
    lines: Lines | None = None

    def __init__(self, home: str) -> None:
        self.home = home
        self.socket = socket_path(home)

    def argv(self, script: str, args: list[str], *, tty: bool = False) -> list[str]:
        return ["/bin/sh", "-c", script, "mngr", *args]

    def start(
        self,
        script: str,
        args: list[str],
        *,
        stdin: int = process.NULL,
        stdout: int = process.PIPE,
        stderr: int = process.PIPE,
    ) -> process.Child:
        return process.start(self.argv(script, args), stdin=stdin, stdout=stdout, stderr=stderr)


class LocalProvider(Standing):
    name = LOCAL

    def reach(self, place: Place) -> LocalHost:
        if place.name != LOCAL:
            raise UsageError(f"there is no local host {place.name!r}", "this machine is called local")
        return LocalHost(home_path())


def socket_path(home: str, user: int | None = None) -> str:
    """Short, because a socket's path may have 104 bytes at most; its own for every home, so that two never share a
    tmux server. In /tmp and not in the home: homes can be deep, or on a network file system without sockets."""
    own = os.getuid() if user is None else user
    return f"/tmp/mngr-{own}/{binascii.crc32(os.fsencode(home)):08x}"


def socket_directory() -> str:
    """Of this user on this machine; made, and nobody else's."""
    path = f"/tmp/mngr-{os.getuid()}"
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if os.lstat(path).st_uid != os.getuid() or not os.path.isdir(path):
            raise MngrError(f"{path} belongs to somebody else: refusing to put a socket there") from None
    return path


def end_of_server(home: str) -> str:
    """As a line of shell, for worlds that are made to be thrown away. The server has cleared its environment, so that
    no mark of such a world leads to it."""
    socket = socket_path(home)
    return f"[ ! -S {socket} ] || tmux -S {socket} kill-server; rm -f {socket}"
