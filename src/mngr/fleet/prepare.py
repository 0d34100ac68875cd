"""Many hosts that begin alike: one is made, gets the commits and the setup, and is kept as an image. The others start
from that, and upload and set up next to nothing."""

from __future__ import annotations

import os
import time

from mngr import hosts, registry
from mngr.address import made_up_name, parse_address
from mngr.errors import MngrError, UsageError
from mngr.fleet.create import create_on
from mngr.fleet.hosting import host_for, release_hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.plan import Request
    from mngr.hosts import Host

PREPARED = "prepared-"  # and when: what an image is called from which hosts begin
# Stores stay. What belongs to the agent that has been there is nobody's, and its environment may hold secrets.
_LEAVE = """
tmux -S "$S" kill-server 2>/dev/null
for each in "$H"/* "$H"/.[!.]*; do
  case $each in "$H"/repos) ;; *) rm -rf "$each" ;; esac
done
"""


def is_old(image: str, age: float) -> bool:
    """Whether it was prepared for hosts that are long made."""
    _, found, made = image.rpartition(PREPARED)
    return bool(found) and made.isdecimal() and time.time() - int(made) > age


def _can_prepare(provider_name: str) -> bool:
    provider = registry.provider(provider_name)
    return provider.makes and "image" in provider.options


def prepare(
    fleet: Fleet, request: Request, tell: Callable[[str], None] = lambda _: None, *, name: str | None = None
) -> dict[str, str]:
    """What to give as `host_options` so that hosts for the agents of this request begin prepared: what the request has,
    where the provider keeps no images. `name` is for the host that is prepared, and gone afterwards: who is killed
    meanwhile can find it by that."""
    name = name or f"prepare-{made_up_name()}"
    address = parse_address(request.address or "")
    wanted = dict(request.host_options)
    if address.provider is None or address.host is not None or not _can_prepare(address.provider):
        return wanted
    host, _ = host_for(fleet, address.replace(name=None), name, wanted, tell)
    tell(f"preparing {host.name}: hosts for the others begin as its copies")
    try:
        _visit(fleet, request, host, name)
        _remember(fleet, address.provider)
        image = _keep(fleet, host, tell)
    finally:
        release_hosts(fleet, [host.name], _tell_trouble(tell), look=False)
    if image is None:
        return wanted
    return {**{key: value for key, value in wanted.items() if key != "dockerfile"}, "image": image}


def _keep(fleet: Fleet, host: Host, tell: Callable[[str], None]) -> str | None:
    place = fleet.place(host.name)
    try:
        return registry.provider(place.provider).snapshot(place, f"{PREPARED}{int(time.time())}")
    except UsageError as error:
        tell(f"{host.name} cannot be kept as an image ({error.message}): each host is prepared on its own")
        return None


def _remember(fleet: Fleet, provider: str) -> None:
    """That it has images of ours, perhaps long after its last host."""
    os.makedirs(_memory(fleet), mode=0o700, exist_ok=True)
    with open(os.path.join(_memory(fleet), provider), "w", encoding="ascii"):
        pass


def providers_with_images(fleet: Fleet) -> list[str]:
    try:
        return sorted(os.listdir(_memory(fleet)))
    except FileNotFoundError:
        return []


def _memory(fleet: Fleet) -> str:
    return os.path.join(fleet.home, "images")


def _tell_trouble(tell: Callable[[str], None]) -> Callable[[str], None]:
    """That it is removed is no news."""
    return lambda line: None if line.endswith("is removed") else tell(line)


def _visit(fleet: Fleet, request: Request, host: Host, name: str) -> None:
    """Somebody who does nothing is created there, in just the way that the others will be, and leaves: so their commits
    are there, and what their setup puts outside of a work dir."""
    from mngr.fleet.destroy import destroy

    visitor = request.replace(
        type="command",
        args=["true"],
        headless=False,
        copy_credentials=False,
        count=1,
        inputs=None,
        names=None,
        branch=None,
        labels={},
        windows={},
    )
    try:
        made = create_on(fleet, visitor, host, [name], lambda _: None, fresh=True)
        # Nothing of it is anybody's work: what --dirty or the setup put there is not parked, and not kept in the image.
        for outcome in destroy(fleet, [agent.ref for agent in made], purge=True, grace=1.0, keep_host=True):
            if not outcome.ok:
                raise MngrError(f"{host.name} could not be prepared: {outcome.why}")
    except BaseException:
        if held := fleet.names.find(name):
            fleet.names.release(held)  # or its host would be kept for it
        raise
    hosts.check(host, _LEAVE, deadline=60)
