"""What is integrated: branches with work on them, their commits as changes of one kind each, and changes that are the
same. Everything in here is plain data, and follows from the branches alone."""

from __future__ import annotations

from mngr.record import Record
from mngr.swarm.testing.kinds import IMPLEMENTATION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Source(Record):
    """A branch that work is taken from, and what is known of it beyond its commits. Only the first two are known of a
    branch that no run has made."""

    branch: str  # without refs/heads/
    head: str
    agent: str = ""
    run: str = ""
    test: str = ""  # the task it was made for
    outcome: str = ""  # how that ended: a word of mngr.swarm.words
    summary: str = ""  # the agent's, for whoever reviews it
    claims: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - by commit: kind, summary and importance as the agent says
    check: dict[str, Any] = {}  # noqa: RUF012 - what the run found when it checked the work: before, after, others
    escalations: list[dict[str, Any]] = []  # noqa: RUF012
    directory: str = ""  # with its transcript and artifacts


class Change(Record):
    """One commit, or the part of a mixed commit that is of one kind."""

    id: str  # a commit that does just this to its parent: the agent's own, or for a part, one that was made here
    commit: str  # the agent's own
    parent: str  # of both; what it was made on
    branch: str
    place: int  # among the changes of its branch, from 0
    kind: str  # by its paths
    declared: str = ""  # by its trailer, or by the agent's result; empty: not at all
    paths: list[str] = []  # noqa: RUF012 - that it changes
    added: int = 0  # lines
    removed: int = 0
    is_text: bool = True  # all of it; else there is more than these lines
    subject: str = ""
    body: str = ""  # of the message, without trailers
    trailers: list[str] = []  # noqa: RUF012 - of the message, but for those that are read here: Kind and Importance
    author: str = ""  # NAME <MAIL> SECONDS ZONE, as git writes it
    importance: str = ""  # declared: low, medium, high or critical
    notes: list[str] = []  # noqa: RUF012 - what a reviewer should know: that it was split, or falsely declared

    @property
    def is_fix(self) -> bool:
        return self.kind == IMPLEMENTATION


class Group(Record):
    """The same change, by everybody who has made it. The first one is picked, all are named."""

    key: str  # of what it does, and so the same in every integration
    changes: list[Change]

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def name(self) -> str:
        """As people see and type it, in rank files and on the command line."""
        return self.key[:12]


class Ranked(Record):
    """A fix, and why it stands where it stands."""

    group: Group
    reasons: list[str]
