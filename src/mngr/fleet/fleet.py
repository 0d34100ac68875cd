"""The Fleet: where this user's agents are, and how to reach their hosts. Every verb takes one as its first argument."""

from __future__ import annotations

import os

from mngr import config, registry
from mngr.errors import MngrError, UsageError
from mngr.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.address import Address
    from mngr.config import Config
    from mngr.hosts import Host

LOCAL = "local"


class Fleet:
    """All agents of one MNGR_HOME. Cheap to make: hosts and configuration are read when they are first needed."""

    def __init__(self) -> None:
        self.home = config.home_path()
        if os.path.exists(self.home) and not os.path.isdir(self.home):
            raise MngrError(f"{self.home} is not a directory", "MNGR_HOME must name one, or something to be made")
        self.names = Names(self.home)
        self._hosts: dict[str, Host] = {}

    @property
    def config(self) -> Config:
        return config.load()

    def host(self, name: str) -> Host:
        """A known host by the name that agents' records carry: `local`, or `HOST.PROVIDER`."""
        if name not in self._hosts:
            host, _, provider = name.partition(".")
            self._hosts[name] = registry.provider(provider or LOCAL).host(host)
        return self._hosts[name]

    def host_names(self) -> list[str]:
        """This machine, and the hosts that have agents of ours. Only these are asked by verbs."""
        return [LOCAL, *sorted({ref.host for ref in self.names.all()} - {LOCAL})]

    def hosts(self) -> list[Host]:
        return [self.host(name) for name in self.host_names()]

    def host_for(self, address: Address) -> Host:
        """Where a new agent with this address goes."""
        provider = address.provider or LOCAL
        if provider not in registry.providers():
            raise UsageError(f"there is no provider {provider!r}", f"installed: {', '.join(registry.providers())}")
        if address.provider is None and address.host not in (None, LOCAL):
            raise UsageError(f"there is no host {address.host!r}", "this machine is called local")
        host: Host = registry.provider(provider).host(address.host)
        self._hosts[host.name] = host
        return host
