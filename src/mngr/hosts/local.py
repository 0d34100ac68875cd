"""This machine as a host: the same contract as any other, with the shortest argv."""

from __future__ import annotations

from mngr import process
from mngr.errors import UsageError
from mngr.home import home_path
from mngr.hosts.provider import Standing
from mngr.hosts.sockets import socket_path

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
