"""OpenAI's Chat Completions protocol, as OpenCode and many others speak it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from mngr.dev import openai
from mngr.dev.exchange import Answer, Event, Item, Json, Turn, Usage, new_id, pieces, texts, user_items
from mngr.dev.openai import counted as counted
from mngr.dev.openai import error as error

ID_PREFIX = "chatcmpl-"


def read(body: Json) -> Turn:
    messages = body.get("messages", [])
    items = [item for message in messages for item in _items(message)]
    return Turn(
        model=str(body.get("model", "")),
        tools=[str((tool.get("function") or tool).get("name")) for tool in body.get("tools") or []],
        items=items,
        conversation=openai.conversation(body, items),
        stream=bool(body.get("stream")),
        has_system=any(message.get("role") in ("system", "developer") for message in messages),
        with_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _items(message: Json) -> list[Item]:
    match message.get("role"):
        case "user":
            return user_items(message.get("content"))
        case "tool":
            return [Item("result", "\n".join(texts(message.get("content"))))]
        case "assistant":
            return [Item("model")]
    return []


def whole(answer: Answer) -> Json:
    choice = {"index": 0, "message": _message(answer), "finish_reason": _reason(answer)}
    return {**_head(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}


def _head(answer: Answer, kind: str) -> Json:
    return {"id": answer.id, "object": kind, "created": int(time.time()), "model": answer.model}


def _message(answer: Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.say or None}
    if answer.call:
        function = {"name": answer.call.name, "arguments": json.dumps(answer.call.input)}
        message["tool_calls"] = [{"index": 0, "id": new_id("call_"), "type": "function", "function": function}]
    return message


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.call else "stop"


def _usage(usage: Usage) -> Json:
    taken = usage["input"] + usage["cache_read"]
    return {
        "prompt_tokens": taken,
        "completion_tokens": usage["output"],
        "total_tokens": taken + usage["output"],
        "prompt_tokens_details": {"cached_tokens": usage["cache_read"]},
        "completion_tokens_details": {"reasoning_tokens": usage["reasoning"]},
    }


def events(answer: Answer, turn: Turn) -> Iterator[Event]:
    head = _head(answer, "chat.completion.chunk")

    def chunk(delta: Json, reason: str | None = None) -> Event:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return Event(None, {**head, "choices": choices}, is_text=bool(delta.get("content")))

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(answer.say):
        yield chunk({"content": piece})
    if answer.call:
        yield chunk({"tool_calls": _message(answer)["tool_calls"]})
    yield chunk({}, _reason(answer))
    if turn.with_usage:
        yield Event(None, {**head, "choices": [], "usage": _usage(answer.usage)})
    yield Event(None, "[DONE]")
