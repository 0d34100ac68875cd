"""OpenAI's Responses protocol, as Codex speaks it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

from mngr.dev import openai
from mngr.dev.exchange import Answer, Call, Event, Item, Json, Turn, Usage, new_id, pieces, texts, user_items
from mngr.dev.openai import counted as counted
from mngr.dev.openai import error as error

ID_PREFIX = "resp_"

# Codex tells about the process before it tells what the process printed.
_ENVELOPE = re.compile(r"\AChunk ID: .*?^Output:\n", re.DOTALL | re.MULTILINE)


def read(body: Json) -> Turn:
    given = body.get("input", [])
    entries = given if isinstance(given, list) else [{"role": "user", "content": given}]
    items = [item for entry in entries for item in _items(entry)]
    offers = [body, *(entry for entry in entries if entry.get("type") == "additional_tools")]
    return Turn(
        model=str(body.get("model", "")),
        tools=[name for offer in offers for name in _tools(offer)],
        items=items,
        conversation=openai.conversation(body, items),
        stream=bool(body.get("stream")),
        has_system=bool(body.get("instructions"))
        or any(entry.get("role") in ("system", "developer") for entry in entries),
        form=_form((body.get("text") or {}).get("format") or {}),
    )


def _form(wanted: Json) -> tuple[str, ...]:
    return tuple(wanted.get("schema", {}).get("required", ())) if wanted.get("type") == "json_schema" else ()


def _tools(offer: Json) -> list[str]:
    """Their names, also of those that stand together in a namespace."""
    tools = offer.get("tools") or []
    return [name for tool in tools for name in _tools(tool) or [str(tool.get("name") or tool.get("type"))]]


def _items(entry: Json) -> list[Item]:
    kind = str(entry.get("type", "message"))
    if kind.endswith("_output"):
        return [Item("result", _ENVELOPE.sub("", "\n".join(texts(entry.get("output")))))]
    if entry.get("role") == "assistant" or kind.endswith("_call"):
        return [Item("model")]
    return user_items(entry.get("content")) if entry.get("role") == "user" else []


def whole(answer: Answer) -> Json:
    output = [_message(answer.say)] if answer.say else []
    if answer.call:
        output.append(_call(answer.call))
    return {**_response(answer), "status": "completed", "output": output, "usage": _usage(answer.usage)}


def _response(answer: Answer) -> Json:
    return {
        "id": answer.id,
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "model": answer.model,
        "output": [],
    }


def _message(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": new_id("msg_"),
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _call(call: Call) -> Json:
    known = {"call_id": new_id("call_"), "name": call.name, "status": "completed"}
    if isinstance(call.input, str):
        return {"type": "custom_tool_call", "id": new_id("ctc_"), "input": call.input, **known}
    return {"type": "function_call", "id": new_id("fc_"), "arguments": json.dumps(call.input), **known}


def _usage(usage: Usage) -> Json:
    taken = usage["input"] + usage["cache_read"]
    return {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": usage["cache_read"]},
        "output_tokens": usage["output"],
        "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
        "total_tokens": taken + usage["output"],
    }


def events(answer: Answer, turn: Turn) -> Iterator[Event]:
    for number, event in enumerate(_unnumbered(answer)):
        yield Event(event["type"], {**event, "sequence_number": number}, event["type"] == "response.output_text.delta")


def _unnumbered(answer: Answer) -> Iterator[Json]:
    done = whole(answer)
    begun = _response(answer)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(done["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"message": "content", "function_call": "arguments", "custom_tool_call": "input"}[item["type"]]
        started = {**item, "status": "in_progress", empty: type(item[empty])()}
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        if item["type"] == "message":
            yield from _text_events(item["content"][0], {**at, "content_index": 0})
        else:
            kind = {"arguments": "function_call_arguments", "input": "custom_tool_call_input"}[empty]
            yield {"type": f"response.{kind}.delta", "delta": item[empty], **at}
            yield {"type": f"response.{kind}.done", empty: item[empty], **at}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": done}


def _text_events(part: Json, at: Json) -> Iterator[Json]:
    yield {"type": "response.content_part.added", "part": {**part, "text": ""}, **at}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", "delta": piece, **at}
    yield {"type": "response.output_text.done", "text": part["text"], **at}
    yield {"type": "response.content_part.done", "part": part, **at}
