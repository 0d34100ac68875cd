"""What Codex's records say: about one message, lines of its session log and what its hooks were told; about a turn, the
end of that log."""

from __future__ import annotations

from mngr import jsonline
from mngr.agents.log import same, table, text
from mngr.model import RUNNING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


DELIVERED = "delivered"


def receipt(record: Mapping[str, object], sent: str) -> str | None:
    """The content decides: other prompts may arrive at the same time."""
    if record.get("hook_event_name") == "UserPromptSubmit":
        return DELIVERED if same(text(record.get("prompt")), sent) else None
    item = completed(record)
    if item.get("type") == "UserMessage":
        return DELIVERED if same(said(item), sent) else None
    if is_users_command(item):
        return DELIVERED if sent.startswith("!") and same(command(item), sent[1:]) else None
    return None


def ending(tail: str) -> tuple[str, str] | None:
    """State and reason by the last turn in this end of a log, which may begin within a line. None: there is none."""
    for line in reversed(tail.splitlines()):
        try:
            payload = table(table(jsonline.loads(line)).get("payload"))
        except (ValueError, RecursionError):
            continue
        kind = payload.get("type")
        if kind == "task_started":
            return RUNNING, ""
        if kind == "turn_aborted":
            return WAITING, "interrupted"
        if kind == "task_complete":
            error = table(payload.get("error"))
            return WAITING, _trouble(error) if error else "turn over"
    return (RUNNING, "") if tail.strip() else None  # the end of a turn is never followed by much


def message_of(error: Mapping[str, object]) -> str:
    told = text(error.get("message"))
    try:  # the server's answer, as it came
        return text(table(table(jsonline.loads(told)).get("error")).get("message")) or told
    except (ValueError, RecursionError):
        return told


def _trouble(error: Mapping[str, object]) -> str:
    told, kind = message_of(error), jsonline.dumps(error.get("codex_error_info"))
    if "usage_limit" not in kind and "429" not in kind:
        return f"api error: {_short(told)}"
    _, when, rest = told.partition("try again ")
    return f"rate limit: {_short(when + rest or told)}"


def _short(told: str) -> str:
    return " ".join(told.split())[:100]


def completed(record: Mapping[str, object]) -> Mapping[str, object]:
    """The thing that this line says is complete: what was said or done, once and as it was meant."""
    payload = table(record.get("payload"))
    return table(payload.get("item")) if payload.get("type") == "item_completed" else {}


def said(item: Mapping[str, object]) -> str:
    content = item.get("content")
    return "\n".join(text(table(part).get("text")) for part in content) if isinstance(content, list) else ""


def is_users_command(item: Mapping[str, object]) -> bool:
    """`!ls`, which the program runs for the user."""
    return item.get("type") == "CommandExecution" and item.get("source") == "user_shell"


def command(item: Mapping[str, object]) -> str:
    words = item.get("command")
    return text(words[-1]) if isinstance(words, list) and words else ""
