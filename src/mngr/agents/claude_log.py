"""Claude Code's session log. Each content block of an API message has a record of its own, and all of them repeat its
id and usage. What the user does with the program itself (`/model`, `! ls`) stands there as text in tags."""

from __future__ import annotations

from mngr.agents.log import Entry, LogReader, Spent, Usage, count, moment, table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Book-keeping of the program: known, and nothing that was said or done.
_SILENT = frozenset(
    """agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-shape atis-latch
    attribution-snapshot bridge-session content-replacement cost-state custom-title file-history-delta
    file-history-snapshot frame-link last-prompt mode permission-mode pr-link progress queue-operation
    speculation-accept summary tag task-summary tools-used worktree-state""".split()
)
_OUTPUTS = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")
_NO_MODEL = "<synthetic>"  # the program speaks in the model's place


class ClaudeLog(LogReader):
    def __init__(self) -> None:
        self._counted: set[str] = set()  # API messages whose usage an entry carries already
        self._tools: dict[str, str] = {}  # names, by call

    def entries(self, record: Mapping[str, object]) -> list[Entry] | None:
        kind = text(record.get("type"))
        if kind == "assistant":
            return self._answered(record)
        if kind == "user":
            return [] if record.get("isMeta") else self._asked(record)
        if kind == "system":
            return [] if record.get("isMeta") else _told(record)
        if kind == "attachment":
            return _queued(record)
        return [] if kind in _SILENT else None

    def spent(self, record: Mapping[str, object]) -> Spent | None:
        message = table(record.get("message"))
        usage, model = message.get("usage"), text(message.get("model"))
        if record.get("type") != "assistant" or not isinstance(usage, dict) or model in ("", _NO_MODEL):
            return None
        return Spent(
            id=text(message.get("id")) or text(record.get("uuid")),
            time=moment(record.get("timestamp")) or 0.0,
            model=model,
            usage=_usage(usage),
        )

    def _answered(self, record: Mapping[str, object]) -> list[Entry]:
        message = table(record.get("message"))
        content, usage = message.get("content"), message.get("usage")
        model, id = text(message.get("model")), text(message.get("id"))
        if model == _NO_MODEL or record.get("isApiErrorMessage"):
            kind = "error" if record.get("isApiErrorMessage") else "notice"
            said = _text_of(content)
            return [_entry(record, kind, "system", said)] if said else []
        found: list[Entry] = []
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            part = self._part(table(block))
            if part:
                used = _usage(usage) if isinstance(usage, dict) and id not in self._counted else None
                self._counted.add(id)
                found.append(_entry(record, **part, model=model, id=id, usage=used))
        return found

    def _part(self, block: Mapping[str, object]) -> dict[str, Any] | None:
        """What is special about the entry for a block of the model's answer. None: there is nothing to see."""
        kind = text(block.get("type"))
        if kind in ("text", "thinking"):
            said = text(block.get(kind))
            shown = "message" if kind == "text" else kind
            return {"kind": shown, "role": "assistant", "said": said} if said else None
        if kind.endswith("tool_use"):  # also those that the server runs
            call, tool = text(block.get("id")), text(block.get("name"))
            self._tools[call] = tool
            return {"kind": "tool_call", "role": "assistant", "tool": tool, "call": call, "input": block.get("input")}
        return self._result(block) if kind.endswith("tool_result") else None

    def _result(self, block: Mapping[str, object]) -> dict[str, Any]:
        call = text(block.get("tool_use_id"))
        return {
            "kind": "tool_result",
            "role": "tool",
            "said": _text_of(block.get("content")),
            "tool": self._tools.get(call, ""),
            "call": call,
            "failed": block.get("is_error") is True,
        }

    def _asked(self, record: Mapping[str, object]) -> list[Entry]:
        content = table(record.get("message")).get("content")
        results: list[Entry] = []
        if isinstance(content, list):
            blocks = [table(block) for block in content]
            results = [_entry(record, **self._result(block)) for block in blocks if block.get("type") == "tool_result"]
            content = [block for block in blocks if block.get("type") != "tool_result"]
        return results + _typed(record, _text_of(content))


def _told(record: Mapping[str, object]) -> list[Entry]:
    """By the program. Those without a text are its measurements."""
    subtype, said = record.get("subtype"), text(record.get("content"))
    if subtype == "api_error":
        error = table(record.get("error"))
        what = error.get("status") or table(error.get("cause")).get("code") or "?"
        tries = (
            f", attempt {record.get('retryAttempt')} of {record.get('maxRetries')}" if "retryAttempt" in record else ""
        )
        return [_entry(record, "error", "system", f"API error {what}{tries}")]
    if subtype == "local_command":
        return _typed(record, said)
    return [_entry(record, "error" if record.get("level") == "error" else "notice", "system", said)] if said else []


def _queued(record: Mapping[str, object]) -> list[Entry]:
    """A message that was given to the model in the middle of its turn; all other attachments are the program's own."""
    attached = table(record.get("attachment"))
    prompt = attached.get("prompt")
    if attached.get("type") != "queued_command" or attached.get("isMeta"):
        return []
    return _typed(record, _text_of(prompt))


def _typed(record: Mapping[str, object], said: str) -> list[Entry]:
    """In the user's place: the user's own words, commands for the program, or what these had to say."""
    if said.startswith(("<command-name>", "<command-message>")):
        said = f"{_inside(said, 'command-name')} {_inside(said, 'command-args')}".strip()
    elif said.startswith("<bash-input>"):
        said = f"! {_inside(said, 'bash-input')}"
    elif said.startswith(tuple(f"<{tag}>" for tag in _OUTPUTS)):
        said = "\n".join(filter(None, (_inside(said, tag) for tag in _OUTPUTS)))
        return [_entry(record, "notice", "system", said)] if said else []
    elif record.get("isCompactSummary") or said.startswith(("[Request interrupted by user", "<task-notification>")):
        return [_entry(record, "notice", "system", said)]
    return [_entry(record, "message", "user", said)] if said else []


def _entry(record: Mapping[str, object], kind: str, role: str, said: str = "", **more: Any) -> Entry:
    time = moment(record.get("timestamp"))
    return Entry(kind=kind, role=role, time=time, text=said, side=record.get("isSidechain") is True, **more)


def _inside(said: str, tag: str) -> str:
    inner, closed, rest = said.partition(f"<{tag}>")[2].rpartition(f"</{tag}>")
    return (inner if closed else rest).strip()


def _text_of(content: object) -> str:
    if not isinstance(content, list):
        return text(content)
    blocks = [table(block) for block in content]
    return "\n".join(
        text(block.get("text")) if "text" in block else f"[{text(block.get('type')) or 'unknown'}]" for block in blocks
    )


def _usage(found: Mapping[str, object]) -> Usage:
    """Cache writes without a lifetime are of the usual one, five minutes. Thinking is part of the output."""
    written, hours = count(found.get("cache_creation_input_tokens")), table(found.get("cache_creation"))
    hour = count(hours.get("ephemeral_1h_input_tokens"))
    return Usage(
        input=count(found.get("input_tokens")),
        cache_read=count(found.get("cache_read_input_tokens")),
        cache_write_5m=max(count(hours.get("ephemeral_5m_input_tokens")), written - hour),
        cache_write_1h=hour,
        output=count(found.get("output_tokens")),
    )
