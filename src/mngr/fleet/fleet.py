"""The Fleet: where this user's agents are, and how to reach their hosts. Every verb takes one as its first argument."""

from __future__ import annotations

import os

from mngr import config, registry
from mngr.address import nearest
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.home import home_path
from mngr.hosts.place import STOPPED, Place, Places
from mngr.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.config import Config
    from mngr.hosts import Host

LOCAL = "local"


class Fleet:
    """All agents of one MNGR_HOME. Cheap to make: hosts and configuration are read when they are first needed."""

    def __init__(self) -> None:
        self.home = home_path()
        if os.path.exists(self.home) and not os.path.isdir(self.home):
            raise MngrError(f"{self.home} is not a directory", "MNGR_HOME must name one, or something to be made")
        self.names = Names(self.home)
        self.places = Places(self.home)
        self._hosts: dict[str, Host] = {}

    @property
    def config(self) -> Config:
        return config.load()

    def place(self, name: str) -> Place:
        """What is known of a host; UsageError when nothing is."""
        if name == LOCAL:
            return Place(name=LOCAL)
        found = self.places.find(name)
        if found is None:
            close = nearest(name, [place.name for place in self.places.all()])
            raise UsageError(f"there is no host {name}", f"did you mean {close}?" if close else "see mngr host list")
        return found

    def host(self, name: str) -> Host:
        """A known host by the name that agents' records carry: `local`, or `HOST.PROVIDER`."""
        if name not in self._hosts:
            place = self.place(name)
            if place.state == STOPPED:
                raise HostUnreachable(f"{name} is stopped", f"mngr start AGENT, or mngr host start {name}")
            if place.made and not place.home:
                raise HostUnreachable(f"{name} is not made yet", "try it again")
            self._hosts[name] = registry.provider(place.provider).reach(place)
        return self._hosts[name]

    def forget(self, name: str) -> None:
        """How to reach it: it has changed, or is gone."""
        host = self._hosts.pop(name, None)
        if host is not None and host.lines is not None:
            host.lines.close()

    def host_names(self) -> list[str]:
        """This machine, and the hosts that have agents of ours. Only these are asked by verbs."""
        return [LOCAL, *sorted({ref.host for ref in self.names.all()} - {LOCAL})]

    def hosts(self) -> list[Host]:
        """But for those that are stopped: nothing happens there."""
        return [self.host(name) for name in self.host_names() if not self.is_stopped(name)]

    def is_stopped(self, name: str) -> bool:
        """By mngr, with its last agent."""
        place = None if name == LOCAL else self.places.find(name)
        return place is not None and place.state == STOPPED
