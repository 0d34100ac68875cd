"""Session logs in one common form, whatever program wrote them: entries for the transcript, and what was spent.
transcript.schema.json beside this file (and in docs/) publishes the entries. A reader gets the records of one log in
their order."""

from __future__ import annotations

from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Usage(Record):
    """Tokens of one API message by class; no token is in two classes."""

    input: int = 0  # fresh: neither read from a cache nor written to one
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0  # without reasoning
    reasoning: int = 0


class Spent(Record):
    """One API message. Logs repeat it (a line per content block, a resumed or forked history): `id` tells it apart."""

    id: str
    time: float
    model: str
    usage: Usage


class Entry(Record):
    """One thing that was said or done."""

    kind: str  # message, thinking, tool_call, tool_result, error, notice
    role: str  # user, assistant, tool, system
    time: float | None = None
    text: str = ""
    tool: str = ""  # its name
    call: str = ""  # links a tool_result to its tool_call
    input: object = None  # of a tool_call
    failed: bool = False  # a tool_result that says so
    model: str = ""
    id: str = ""  # of the API message, where there is one
    usage: Usage | None = None  # on the first entry of an API message
    side: bool = False  # from a subagent, beside the conversation


class LogReader:
    """Reads one log. What a subclass keeps from record to record for `spent` should be plain JSON values: then a log
    that has grown is read on from where it ended, and not from its beginning."""

    def entries(self, record: Mapping[str, object]) -> list[Entry] | None:
        """What this record adds to the transcript. None: a record of an unknown type, which is counted and skipped."""
        raise NotImplementedError

    def spent(self, record: Mapping[str, object]) -> Spent | None:
        raise NotImplementedError


def table(value: object) -> Mapping[str, object]:
    """A member that should be an object, of a file that anybody may have written."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def moment(value: object) -> float | None:
    """A time as logs write it: 2026-11-15T13:19:06.051Z."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text(value)).timestamp() if value else None
    except (ValueError, OverflowError):
        return None


def same(one: str, other: str) -> bool:
    """But for blanks, since a terminal may turn a tab into spaces and the program trims; and for the ways to write an
    accent, since it composes them."""
    from unicodedata import normalize

    return "".join(normalize("NFC", one).split()) == "".join(normalize("NFC", other).split())
