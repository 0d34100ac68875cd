"""What was agreed with agents on other machines when they were made: which repository here they came from, and which
branch is theirs. Their record is on their machine, where they can write into it; what is said there must lead nobody
here into another repository or onto another branch."""

from __future__ import annotations

import os

from mngr import jsonline
from mngr.fleet.fleet import LOCAL
from mngr.fleet.last_seen import LastSeen, forget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.model import Agent

_FIELDS = ("source", "branch", "own_branch", "base", "mode")


def agree(fleet: Fleet, agents: Iterable[Agent]) -> None:
    far = [agent for agent in agents if agent.host != LOCAL]  # who can write a record here can write anything of ours
    for agent in far:
        path = _path(fleet, agent.id)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(jsonline.dumps({field: getattr(agent, field) for field in _FIELDS}))
        os.replace(f"{path}.new", path)
    for host in {agent.host for agent in far}:
        last = LastSeen(fleet, host)
        if any(agent.host == host and last.agent(agent.id) for agent in far):
            forget(fleet, host)  # with what was agreed before


def as_agreed(fleet: Fleet, host: str, agent: Agent) -> Agent:
    """The agent as its host tells of it, but for what it has no say in. Nothing was agreed with those of others."""
    try:
        with open(_path(fleet, agent.id), encoding="utf-8") as file:
            told = jsonline.loads(file.read())
        return agent.replace(host=host, **{field: told[field] for field in _FIELDS})
    except (FileNotFoundError, ValueError, KeyError):
        return agent.replace(host=host)


def _path(fleet: Fleet, id: str) -> str:
    """It goes with the agent's name: names.py."""
    return os.path.join(fleet.home, "agreed", id)
