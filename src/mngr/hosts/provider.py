"""What providers have in common: the refusals of those that cannot do something."""

from __future__ import annotations

from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from mngr.hosts.place import Place


class Standing:
    """Of hosts that stand somewhere already: none is made, stopped or removed by us."""

    name = ""
    makes = False
    options: Mapping[str, str] = {}

    def make(self, name: str, options: Mapping[str, str], tell: Callable[[str], None]) -> str:
        self._cannot("makes no hosts: name one, as in NAME@BOX." + self.name)

    def find(self) -> dict[str, str]:
        """None that we do not know."""
        return {}

    def stop(self, place: Place) -> Place:
        self._cannot("stops no hosts")

    def start(self, place: Place) -> Place:
        self._cannot("starts no hosts")

    def remove(self, place: Place) -> None:
        self._cannot("removes no hosts")

    def snapshot(self, place: Place, name: str) -> str:
        self._cannot("makes no images of hosts")

    def greet(self, place: Place, *, accept_new: bool, ask: bool) -> None:
        """Before `mngr host add` works there for the first time. `ask`: somebody is there who can answer questions."""

    def part(self, place: Place) -> None:
        """It is not needed any more: what was kept open for it is closed."""

    def _cannot(self, what: str) -> NoReturn:
        raise UsageError(f"the provider {self.name} {what}")
