"""The nouns as data: an agent as it is stored in agent.json, and the names of the states it can be in."""

from __future__ import annotations

import os

from mngr.record import Record

STARTING, RUNNING, WAITING = "starting", "running", "waiting"
DONE, FAILED, STOPPED, UNKNOWN = "done", "failed", "stopped", "unknown"
STATES = (STARTING, RUNNING, WAITING, DONE, FAILED, STOPPED, UNKNOWN)

WORKTREE, CLONE, COPY, NONE = "worktree", "clone", "copy", "none"
MODES = (WORKTREE, CLONE, COPY, NONE)

_DIGITS = frozenset("0123456789abcdef")


class Ref(Record):
    """Enough to reach an agent: what the registry of names holds. Verbs that get names need nothing else."""

    id: str
    name: str
    type: str
    host: str
    program: str = ""  # the type that its own one is a variant of, if it is one: the configuration may forget it

    @property
    def kind(self) -> str:
        return self.program or self.type


class Agent(Ref):
    """agent.json: what an agent is. How it is (its state) is computed, never stored here."""

    command: list[str]
    work_dir: str
    headless: bool = False  # without a terminal interface: it is spoken to through a pipe
    mode: str
    created: float
    source: str | None = None  # top of the user's repository or directory; None when it came from nowhere
    branch: str | None = None
    own_branch: bool = False  # made by create, so destroy may delete it
    base: str | None = None  # the commit that the branch started from
    labels: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults
    windows: dict[str, str] = {}  # noqa: RUF012

    @property
    def ref(self) -> Ref:
        return Ref(id=self.id, name=self.name, type=self.type, host=self.host, program=self.program)


def new_id() -> str:
    return os.urandom(6).hex()


def is_commit(text: str) -> bool:
    return len(text) in (40, 64) and _DIGITS.issuperset(text)
