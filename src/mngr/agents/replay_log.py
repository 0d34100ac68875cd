"""The log that replay.sh writes. A record with `usage` is an API message; `call` and `result` are those of a tool."""

from __future__ import annotations

from mngr.agents.log import Entry, LogReader, Spent, Usage, count, table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SAID = {  # kind and role, by the type of the record
    "notice": ("notice", "system"),
    "error": ("error", "system"),
    "user": ("message", "user"),
    "assistant": ("message", "assistant"),
    "call": ("tool_call", "assistant"),
    "result": ("tool_result", "tool"),
}
_TOO_LATE = 253_402_300_800  # the year 10000, which no calendar here knows


class ReplayLog(LogReader):
    def __init__(self) -> None:
        self._tools: dict[str, str] = {}  # names, by call

    def entries(self, record: Mapping[str, object]) -> list[Entry] | None:
        kind, id = text(record.get("type")), text(record.get("id"))
        if kind not in _SAID:
            return None
        if kind == "call":
            self._tools[id] = text(record.get("tool"))
            more: dict[str, Any] = {"tool": self._tools[id], "call": id, "input": record.get("input")}
        elif kind == "result":
            call = text(record.get("call"))
            more = {"tool": self._tools.get(call, ""), "call": call, "failed": record.get("failed") is True}
        else:
            more = {}
        said = self.spent(record)
        if said:
            more |= {"id": id, "model": said.model, "usage": said.usage}
        what, who = _SAID[kind]
        return [Entry(kind=what, role=who, time=_time(record), text=text(record.get("text")), **more)]

    def spent(self, record: Mapping[str, object]) -> Spent | None:
        if "usage" not in record:
            return None
        used = table(record.get("usage"))
        return Spent(
            id=text(record.get("id")),
            time=_time(record),
            model=text(record.get("model")),
            usage=Usage(
                input=count(used.get("input")),
                cache_read=count(used.get("cache_read")),
                cache_write_5m=count(used.get("cache_write")),
                output=count(used.get("output")),
            ),
        )


def _time(record: Mapping[str, object]) -> float:
    """Whoever plays can write into the log, too: a number that is no time counts as none."""
    seconds = count(record.get("time"))
    return float(seconds) if seconds < _TOO_LATE else 0.0
