"""What Claude Code's records say about one message: lines of its session log, and what its hooks were told."""

from __future__ import annotations

from mngr import jsonline
from mngr.agents.log import same, table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DELIVERED, QUEUED = "delivered", "queued"


def receipt(record: Mapping[str, object], sent: str) -> str | None:
    """delivered, queued, or `refused WHY`. The content decides: other prompts may arrive at the same time."""
    event = record.get("hook_event_name")
    if event == "UserPromptSubmit":
        return DELIVERED if same(text(record.get("prompt")), sent) else None
    if event == "SessionStart":
        return DELIVERED if record.get("source") == "clear" and sent.split()[:1] == ["/clear"] else None
    kind = record.get("type")
    if kind == "queue-operation":
        return QUEUED if record.get("operation") == "enqueue" and same(text(record.get("content")), sent) else None
    if kind == "user":
        said = content(record)
        return DELIVERED if same(said, sent) or _is_command(said, sent) else None
    if kind == "system":
        said = text(record.get("content"))
        command = sent.split()[0] if sent.startswith("/") else ""
        if command and (said + ".").startswith(f"Unknown command: {command}."):  # and perhaps: did you mean ...?
            return f"refused it knows no command {command}"
        return DELIVERED if _is_command(said, sent) else None
    return None


def _is_command(said: str, sent: str) -> bool:
    if sent.startswith("/"):
        return f"<command-name>{sent.split()[0]}</command-name>" in said
    return sent.startswith("!") and same(said, f"<bash-input>{sent[1:].strip()}</bash-input>")


def content(record: Mapping[str, object]) -> str:
    """The text of a user's record."""
    held = table(record.get("message")).get("content")
    if isinstance(held, list):
        return "\n".join(text(table(block).get("text")) for block in held if table(block).get("type") == "text")
    return text(held)


def interrupted(tail: str, typed: str) -> bool:
    for line in reversed(tail.splitlines()):
        try:
            record = jsonline.loads(line)
        except (ValueError, RecursionError):
            continue  # the first line of a tail is cut off
        kind = record.get("type") if isinstance(record, dict) else None
        if kind == "user":
            said = content(record)
            return said.startswith("[Request interrupted by user") or bool(typed and same(said, typed))
        is_message = kind == "attachment" and table(record.get("attachment")).get("type") == "queued_command"
        if is_message or kind in ("assistant", "queue-operation"):
            return False
    return False
