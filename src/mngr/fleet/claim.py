"""The names of agents that are about to be made: theirs from before there is anything of them until they are there."""

from __future__ import annotations

from mngr import hosts
from mngr.errors import MngrError
from mngr.fleet.agreed import agree
from mngr.fleet.host_lock import InUse
from mngr.names import NameTaken
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Agent


def claim(fleet: Fleet, host: Host, agents: list[Agent], claimed: list[Agent]) -> None:
    """Raises NameTaken; `claimed` has those who had got theirs by then."""
    with InUse(fleet, host.name):
        for agent in agents:
            _reserve(fleet, agent)
            claimed.append(agent)
        agree(fleet, agents)


def claim_again(fleet: Fleet, host: Host, agents: list[Agent]) -> None:
    """After what may have taken long: somebody may have taken their names for leftovers."""
    for agent in agents:
        fleet.names.renew(agent.ref)
    held = {agent.id for agent in agents if (ref := fleet.names.find(agent.name)) and ref.id == agent.id}
    lost = [agent for agent in agents if agent.id not in held]
    if lost:
        claim(fleet, host, lost, [])


def _reserve(fleet: Fleet, agent: Agent) -> None:
    try:
        fleet.names.reserve(agent.ref)
    except NameTaken as taken:
        holder = taken.holder
        try:
            there = hosts.run(fleet.host(holder.host), f'[ -d "$H"/agents/{quote(holder.id)} ]', deadline=20)
        except MngrError:
            raise taken from None  # who cannot be asked still has it
        if there.code == 0 or not fleet.names.is_leftover(holder):
            raise
        fleet.names.release(holder)
        fleet.names.reserve(agent.ref)
