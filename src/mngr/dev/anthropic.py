"""Anthropic's Messages protocol, as Claude Code speaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from mngr.dev.exchange import Answer, Event, Item, Json, Turn, Usage, key_of, new_id, pieces, texts, user_items

ID_PREFIX = "msg_"

# metadata.user_id is either text with session_UUID at its end, or JSON with "session_id".
_SESSION = re.compile(r"session_(?:id\W+)?([0-9a-f-]{36})")
# A message that was typed into a running turn comes in the words of Claude Code, as instructions or as a reminder.
_QUEUED = re.compile(r"The user sent a new message while you were working:\n(.*?)(?:\n\nIMPORTANT: |$)", re.DOTALL)
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: Json) -> Turn:
    items = [item for message in body.get("messages", []) for item in _items(message)]
    session = _SESSION.search(str((body.get("metadata") or {}).get("user_id", "")))
    return Turn(
        model=str(body.get("model", "")),
        tools=[str(tool.get("name")) for tool in body.get("tools") or []],
        items=items,
        conversation=session[1] if session else key_of(items),
        stream=bool(body.get("stream")),
        has_system=bool(body.get("system")),
    )


def _items(message: Json) -> list[Item]:
    content = message.get("content", "")
    if message.get("role") == "assistant":
        return [Item("model")]
    queued = [Item("user", text) for given in texts(content) for text in _QUEUED.findall(given)]
    if message.get("role") != "user":
        return queued  # instructions may stand between the messages, even at the end
    blocks = content if isinstance(content, list) else []
    results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
    return [
        *(Item("result", "\n".join(texts(block.get("content")))) for block in results),
        *user_items(content),
        *queued,
    ]


def counted(usage: Usage) -> Usage:
    return {**usage, "reasoning": 0}


def whole(answer: Answer) -> Json:
    content: list[Json] = [{"type": "text", "text": answer.say}] if answer.say else []
    if answer.call:
        content.append({"type": "tool_use", "id": new_id("toolu_"), **answer.call._asdict()})
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": "tool_use" if answer.call else "end_turn",
        "stop_sequence": None,
        "usage": _usage(answer.usage),
    }


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage["input"],
        "cache_creation_input_tokens": usage["cache_write_5m"] + usage["cache_write_1h"],
        "cache_read_input_tokens": usage["cache_read"],
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage["cache_write_5m"],
            "ephemeral_1h_input_tokens": usage["cache_write_1h"],
        },
        "output_tokens": usage["output"],
        "service_tier": "standard",
    }


def events(answer: Answer, turn: Turn) -> Iterator[Event]:
    message = whole(answer)
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield _event("message_start", message=begun)
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            for piece in pieces(block["text"]):
                delta = {"type": "text_delta", "text": piece}
                yield _event("content_block_delta", index=index, delta=delta)._replace(is_text=True)
        else:
            yield _event("content_block_start", index=index, content_block={**block, "input": {}})
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=end, usage=message["usage"])
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> Event:
    return Event(kind, {"type": kind, **fields})


def error(status: int, message: str) -> Json:
    return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}
