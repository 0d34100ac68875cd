"""The contract of a recipe: tasks in, results judged. The engine does everything between, and knows nothing of what the
tasks are about. `testing/` beside this file is one recipe; docs/swarm.md builds another one, in a page."""

from __future__ import annotations

from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


class Piece(Record):
    """One task as a recipe hands it in."""

    title: str  # what people call it: a test, a path
    prompt: str  # what its agent is told, as a message and in $MNGR_INPUT
    slug: str = ""  # for names and branches; made from the title if it is not given
    data: dict[str, Any] = {}  # noqa: RUF012 - Record copies defaults; JSON, kept in the log and given back to the recipe
    skip: str = ""  # why it need not be done: no agent is sent


class Home(Record):
    """What came home of one task."""

    directory: (
        str  # with result.json, artifacts/, transcript.jsonl, screen.txt and events.jsonl, as far as there are any
    )
    repo: str  # the user's repository, which has the branch now
    branch: str = ""
    base: str = ""  # the commit that it started from
    head: str = ""  # the last one of the branch
    commits: list[str] = []  # noqa: RUF012 - between the two, oldest first
    dirty: int = 0  # files in its work dir that are not committed
    result: dict[str, Any] | None = None  # valid by the recipe's schema
    flaw: str = ""  # why there is none


class Check(Record):
    """A program that looks at the agent's work in a checkout of its own, made and set up like the agent's, on the same
    host. It writes JSON to $MNGR_RESULT."""

    command: list[str]
    input: str = ""  # in its $MNGR_INPUT
    base: str = ""  # what is checked out; the head of the branch if it is not given
    timeout: float = 900.0  # seconds


class Judgement(Record):
    outcome: str  # one of mngr.swarm.words.ENDINGS
    why: str = ""
    check: dict[str, Any] = {}  # noqa: RUF012 - what was found, beside what was claimed
    notes: list[str] = []  # noqa: RUF012 - what a person should know, a line each


class Recipe:
    """Override what is special. One that is resumed by `mngr swarm resume` is a class at the top of a module, and comes
    back by `restored`."""

    name = ""
    schema: dict[str, Any] | None = None  # JSON Schema of a result; None: any JSON object

    def pieces(self) -> list[Piece]:
        raise NotImplementedError

    def arguments(self) -> dict[str, Any]:
        """JSON, from which `restored` makes the same recipe again. Kept in the log."""
        return {}

    @classmethod
    def restored(cls, arguments: dict[str, Any]) -> Self:
        return cls(**arguments)

    def check(self, data: dict[str, Any], home: Home) -> Check | None:
        """What is to be run on the work of an agent that handed in a valid result. None: nothing."""
        return None

    def judge(self, data: dict[str, Any], home: Home, checked: dict[str, Any] | None) -> Judgement:
        """`home.result` is there. `checked` is what the check wrote, {"error": why} if it could not, or None when there
        was none to run."""
        return Judgement(outcome="done")
