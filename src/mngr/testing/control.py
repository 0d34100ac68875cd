"""What a provider's author gives the tests: a host, and power over it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mngr.hosts.place import Place
from mngr.hosts.probe import arrive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from mngr.hosts import Host, Provider

    T = TypeVar("T")


@dataclass(frozen=True)
class Control:
    """Ways to do harm to a host, and to undo it. What a place does not allow is None, and tests that need it are
    skipped; so `cut` and `heal` go together, and `crash` and `boot`."""

    cut: Callable[[], None] | None = None  # nobody gets there any more, and nobody is told; what runs there goes on
    heal: Callable[[], None] | None = None
    crash: Callable[[], None] | None = None  # nothing runs there any more; its files stay
    boot: Callable[[], None] | None = None  # returns when it can be reached


def arrived(provider: Provider, name: str, options: Mapping[str, str] | None = None, id: str = "") -> Host:
    """A host as verbs get it: `name` is HOST.PROVIDER, `id` what the provider's `make` has answered."""
    place = Place(name=name, id=id, options=dict(options or {}))
    return provider.reach(arrive(provider, place))


def eventually(question: Callable[[], T], what: str, within: float = 30.0) -> T:
    """What it answers as soon as that is true."""
    limit = time.monotonic() + within
    while not (answer := question()):
        assert time.monotonic() < limit, f"not within {within:g} s: {what}"
        time.sleep(0.05)
    return answer
