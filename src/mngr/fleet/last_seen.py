"""What was last seen of our agents on another machine: `seen/<host>`, a cache. Of a host that does not answer it is all
that is known; of one that does, whose record is still the same need not be read and judged again.

The first line is the version that wrote it: another one may judge a record otherwise. Then three lines for each agent:
its id and state, its record as the host told it, and the agent that this is to us."""

from __future__ import annotations

import os
from _thread import get_ident

from mngr import jsonline
from mngr.model import Agent
from mngr.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.survey import Status


class LastSeen:
    def __init__(self, fleet: Fleet, host: str) -> None:
        self._path = _path(fleet, host)
        self._agents: dict[str, Agent] = {}
        self._lines: dict[str, tuple[str, str, str]] = {}  # by id: its state, and the other two lines
        self._text = ""
        try:
            with open(self._path, encoding="utf-8") as file:
                self._text = file.read()
            version, *lines = self._text.splitlines()
            for head, told, ours in zip(lines[::3], lines[1::3], lines[2::3], strict=False):
                id, state = head.split(" ")
                self._agents[id] = Agent.from_dict(jsonline.loads(ours)) if version != VERSION else _trusted(ours)
                self._lines[id] = (state, told if version == VERSION else "", ours)
        except (OSError, ValueError, TypeError, RecursionError):
            pass  # what stands before the damage counts

    def agent(self, id: str) -> Agent | None:
        return self._agents.get(id)

    def state(self, id: str) -> str:
        return self._lines[id][0] if id in self._lines else ""

    def as_told(self, id: str, record: str) -> Agent | None:
        """The agent, if that is what the host said of it before."""
        return self._agents[id] if record and id in self._lines and self._lines[id][1] == record else None

    def keep(self, found: Iterable[Status]) -> None:
        """What is written is what changed: a list that shows the same again writes nothing."""
        text = f"{VERSION}\n" + "".join(self._of(status) for status in found)
        if text == self._text:
            return
        fresh = f"{self._path}.{os.getpid()}.{get_ident()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(fresh, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(fresh, self._path)
        except OSError:
            pass  # a cache: a full disk must not keep anybody from seeing their agents
        finally:
            if os.path.exists(fresh):
                os.unlink(fresh)

    def _of(self, status: Status) -> str:
        agent, id = status.agent, status.id
        if agent is None:
            return ""
        if agent is self._agents.get(id):
            _, told, ours = self._lines[id]
        else:
            told, ours = status.evidence.told, jsonline.dumps(agent.to_dict())
            told = told if told.isascii() and told.isprintable() else ""  # which is read again
        return f"{id} {status.state}\n{told}\n{ours}\n"


def _trusted(line: str) -> Agent:
    """Written by this version, which had judged it."""
    return Agent(**jsonline.loads(line))


def forget(fleet: Fleet, host: str) -> None:
    try:
        os.unlink(_path(fleet, host))
    except FileNotFoundError:
        pass


def _path(fleet: Fleet, host: str) -> str:
    return os.path.join(fleet.home, "seen", host)
