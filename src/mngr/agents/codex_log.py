"""Codex's session log. What was said stands in it twice: as an item that is complete, and as it went to the model,
among instructions of the program's own. The items are read; of tools, which not all are items, what went to the model.

A line of usage belongs to the answer before it, and says neither which entries those are nor which model: that stands
in the context of the turn."""

from __future__ import annotations

from mngr import jsonline
from mngr.agents.codex_receipt import command, completed, is_users_command, message_of, said
from mngr.agents.log import Entry, LogReader, Spent, Usage, count, moment, table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Known, and nothing that was said or done; or told by another line as well.
_SILENT = {
    "": "session_meta turn_context world_state compacted token_usage_record inter_agent_communication_metadata",
    "response_item": """message reasoning agent_message additional_tools configuration_update compaction
        compaction_trigger context_compaction other""",
    "event_msg": """task_started token_count thread_settings_applied thread_goal_updated thread_queue_changed
        context_compacted user_message agent_message agent_reasoning mcp_startup_complete""",
    "item_completed": """CommandExecution CollabAgentToolCall DynamicToolCall FileChange FunctionCallOutput HookPrompt
        ImageGeneration ImageView McpToolCall Sleep SubAgentActivity WebSearch""",
}


class CodexLog(LogReader):
    def __init__(self) -> None:
        self._model = ""
        self._tools: dict[str, str] = {}  # names, by call
        self._failed: list[str] = []  # calls whose command did

    def entries(self, record: Mapping[str, object]) -> list[Entry] | None:
        kind, payload = text(record.get("type")), table(record.get("payload"))
        if kind == "turn_context":
            self._model = text(payload.get("model"))
        if kind == "response_item":
            found = self._tool(record, payload)
        elif kind == "event_msg":
            found = self._item(record, payload) if "item" in payload else _happened(record, payload)
        else:
            return [] if kind in _SILENT[""].split() else None
        if found is None:
            where, name = (kind, payload.get("type")) if "item" not in payload else ("item_completed", _kind(payload))
            return [] if name in _SILENT[where].split() else None
        return found

    def spent(self, record: Mapping[str, object]) -> Spent | None:
        kind, payload = record.get("type"), table(record.get("payload"))
        if kind == "turn_context":
            self._model = text(payload.get("model"))
        if kind != "token_usage_record":
            return None
        return Spent(
            id=text(payload.get("response_id")) or f"{record.get('timestamp')}:{record.get('ordinal')}",
            time=moment(record.get("timestamp")) or 0.0,
            model=self._model,
            usage=_usage(table(payload.get("usage"))),
        )

    def _item(self, record: Mapping[str, object], payload: Mapping[str, object]) -> list[Entry] | None:
        item = completed(record)
        kind, id = _kind(payload), text(item.get("id"))
        if kind == "UserMessage":
            return [_entry(record, "message", "user", said(item))]
        if kind == "AgentMessage":
            return [_entry(record, "message", "assistant", said(item), model=self._model, id=id)]
        if kind == "Reasoning":
            thought = "\n".join(_texts(item.get("summary_text")) or _texts(item.get("raw_content")))
            return [_entry(record, "thinking", "assistant", thought, model=self._model, id=id)] if thought else []
        if kind == "ContextCompaction":
            return [_entry(record, "notice", "system", "the conversation so far was replaced by a summary")]
        if is_users_command(item):
            output = text(item.get("aggregated_output"))
            asked = _entry(record, "message", "user", f"! {command(item)}")
            return [asked, _entry(record, "notice", "system", output)] if output else [asked]
        if kind == "CommandExecution" and item.get("exit_code") not in (0, None):
            self._failed.append(id)
        return None

    def _tool(self, record: Mapping[str, object], payload: Mapping[str, object]) -> list[Entry] | None:
        kind, call = text(payload.get("type")), text(payload.get("call_id")) or text(payload.get("id"))
        if kind.endswith("_call"):
            self._tools[call] = text(payload.get("name")) or kind.removesuffix("_call")
            given = payload.get("arguments", payload.get("input", payload.get("action")))
            about = {"tool": self._tools[call], "call": call, "model": self._model}
            return [_entry(record, "tool_call", "assistant", input=_parsed(given), **about)]
        if kind.endswith("_call_output"):
            output, tool = "\n".join(_texts(payload.get("output"))), self._tools.get(call, "")
            return [_entry(record, "tool_result", "tool", output, tool=tool, call=call, failed=call in self._failed)]
        return None


def _happened(record: Mapping[str, object], payload: Mapping[str, object]) -> list[Entry] | None:
    kind = payload.get("type")
    if kind == "task_complete":
        error = table(payload.get("error"))
        return [_entry(record, "error", "system", message_of(error))] if error else []
    if kind == "turn_aborted":
        return [_entry(record, "notice", "system", f"the turn was {text(payload.get('reason')) or 'aborted'}")]
    if kind == "thread_rolled_back":
        return [_entry(record, "notice", "system", "the conversation was taken back to an earlier message")]
    return None


def _entry(record: Mapping[str, object], kind: str, role: str, said: str = "", **more: Any) -> Entry:
    return Entry(kind=kind, role=role, time=moment(record.get("timestamp")), text=said, **more)


def _kind(payload: Mapping[str, object]) -> str:
    return text(table(payload.get("item")).get("type"))


def _texts(value: object) -> list[str]:
    """A text, or a list of texts or of blocks that hold some."""
    if isinstance(value, list):
        found = (text(part) or text(table(part).get("text")) for part in value)
        return [each for each in found if each]
    return [value] if isinstance(value, str) and value else []


def _parsed(value: object) -> object:
    """Arguments are JSON within JSON, but for tools that take a text."""
    try:
        return jsonline.loads(value) if isinstance(value, str) and value.startswith("{") else value
    except (ValueError, RecursionError):
        return value


def _usage(found: Mapping[str, object]) -> Usage:
    """As the server tells it, what was cached is part of the input, and reasoning of the output."""
    read, written = count(found.get("cached_input_tokens")), count(found.get("cache_write_input_tokens"))
    reasoning = count(found.get("reasoning_output_tokens"))
    return Usage(
        input=max(0, count(found.get("input_tokens")) - read - written),
        cache_read=read,
        cache_write_5m=written,
        output=max(0, count(found.get("output_tokens")) - reasoning),
        reasoning=reasoning,
    )
