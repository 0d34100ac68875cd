"""The log that opencode_plugin.js writes: a record for each message and for each of its parts, which is in `data` as
OpenCode itself has it. What changes later is written again, under the same id."""

from __future__ import annotations

from mngr.agents.log import Entry, LogReader, Spent, Usage, count, same, table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class OpenCodeLog(LogReader):
    def __init__(self) -> None:
        self._seen: set[str] = set()

    def entries(self, record: Mapping[str, object]) -> list[Entry] | None:
        kind, id, data = text(record.get("type")), text(record.get("id")), table(record.get("data"))
        if kind not in ("session", "message", "part", "removed"):
            return None
        found = _failed(data) if kind == "message" else _part(record, data) if kind == "part" else []
        if not found or id in self._seen:
            return []
        self._seen.add(id)
        return found

    def spent(self, record: Mapping[str, object]) -> Spent | None:
        data = table(record.get("data"))
        if record.get("type") != "part" or data.get("type") != "step-finish":
            return None
        tokens = table(data.get("tokens"))
        cache = table(tokens.get("cache"))
        return Spent(
            id=text(record.get("id")),
            time=_moment(record.get("time")) or 0.0,
            model=text(record.get("model")),
            usage=Usage(
                input=count(tokens.get("input")),
                cache_read=count(cache.get("read")),
                cache_write_5m=count(cache.get("write")),
                output=count(tokens.get("output")),
                reasoning=count(tokens.get("reasoning")),
            ),
        )


def receipt(record: Mapping[str, object], sent: str) -> str | None:
    """The user's words as they stand in the log: a message that came during a turn waits for its end."""
    if record.get("type") != "part" or record.get("role") != "user":
        return None
    data = table(record.get("data"))
    if data.get("type") != "text" or not same(text(data.get("text")), sent):
        return None
    return "queued" if record.get("queued") else "delivered"


def _part(record: Mapping[str, object], data: Mapping[str, object]) -> list[Entry]:
    kind, role = data.get("type"), "user" if record.get("role") == "user" else "assistant"
    said = text(data.get("text"))
    if kind == "tool":
        return _tool(record, data)
    if kind == "compaction":
        return [_entry(record, "notice", "system", text="Conversation compacted")]
    if data.get("synthetic") or not said:
        return []  # what the program adds to the user's words, or what it keeps for itself
    if kind == "reasoning":
        return [_entry(record, "thinking", role, text=said)]
    return [_entry(record, "message", role, text=said)] if kind == "text" else []


def _tool(record: Mapping[str, object], data: Mapping[str, object]) -> list[Entry]:
    state, tool, call = table(data.get("state")), text(data.get("tool")), text(data.get("callID"))
    times, failed = table(state.get("time")), state.get("status") == "error"
    return [
        _entry(record, "tool_call", "assistant", at=times.get("start"), tool=tool, call=call, input=state.get("input")),
        _entry(
            record,
            "tool_result",
            "tool",
            at=times.get("end"),
            tool=tool,
            call=call,
            text=text(state.get("error" if failed else "output")),
            failed=failed,
        ),
    ]


def _failed(data: Mapping[str, object]) -> list[Entry]:
    """A message says nothing beyond its parts, but for how it failed."""
    error, time = table(data.get("error")), _moment(table(data.get("time")).get("completed"))
    if not error:
        return []
    name, told = text(error.get("name")), table(error.get("data"))
    if name == "MessageAbortedError":
        return [Entry(kind="notice", role="system", time=time, text="Interrupted")]
    return [Entry(kind="error", role="system", time=time, text=text(told.get("message")) or name)]


def _entry(record: Mapping[str, object], kind: str, role: str, at: object = None, **more: Any) -> Entry:
    said_by_model = role == "assistant"
    return Entry(
        kind=kind,
        role=role,
        time=_moment(at) or _moment(record.get("time")),
        model=text(record.get("model")) if said_by_model else "",
        id=text(record.get("message")) if said_by_model else "",
        **more,
    )


def _moment(value: object) -> float | None:
    """Of milliseconds, as the program counts time."""
    return value / 1000 if isinstance(value, int | float) and 0 < value < 1e14 else None
