"""The other side of turns.sh, for programs that do one turn and end: what is laid for it, how a message is written into
its pipe, and what it says of one."""

from __future__ import annotations

from mngr import jsonline
from mngr.agents.log import same, text
from mngr.hosts import read_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_RECEIPTS = {"UserPromptSubmit": "delivered", "Queued": "queued"}


def laid(turn: str) -> dict[str, str]:
    """`turn` is sh, with the functions that turns.sh calls."""
    return {"turns": read_script(__file__, "turns.sh"), "hook": read_script(__file__, "hook.sh"), "turn": turn}


def line(message: str) -> str:
    from base64 import b64encode

    record = jsonline.dumps({"hook_event_name": "UserPromptSubmit", "prompt": message})
    return f"{b64encode(message.encode('utf-8', 'surrogateescape')).decode()} {record}"


def receipt(record: Mapping[str, object], sent: str) -> str | None:
    return _RECEIPTS.get(text(record.get("hook_event_name"))) if same(text(record.get("prompt")), sent) else None
