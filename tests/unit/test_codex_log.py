"""Codex's log as entries and as use. The file in tests/data is a log of the real program, with its long texts cut and
its paths changed; the texts of the model in it are those of a scripted server, which said what it had handed out."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mngr.agents.codex_log import CodexLog
from mngr.agents.log import Entry, Spent, Usage

LOG = Path(__file__).parents[1] / "data" / "codex-0.166.0.jsonl"
RECORDS = [json.loads(line) for line in LOG.read_text().splitlines()]


def entries(*records: dict[str, object]) -> list[Entry]:
    reader = CodexLog()
    found = [reader.entries(record) for record in records]
    assert None not in found
    return [entry for each in found if each for entry in each]


def spent(*records: dict[str, object], reader: CodexLog | None = None) -> list[Spent]:
    reader = reader or CodexLog()
    return [found for record in records if (found := reader.spent(record))]


def test_a_real_log_reads_as_the_conversation_that_it_was() -> None:
    found = entries(*RECORDS)
    assert [(entry.kind, entry.role, entry.text.partition("\n")[0] or entry.tool) for entry in found] == [
        ("message", "user", "hello THINK one"),
        ("thinking", "assistant", "**Pondering** the thing"),
        ("message", "assistant", "Hello number 1, you said 15 chars."),
        ("message", "user", "RUN: echo hi-tool; false"),
        ("tool_call", "assistant", "exec_command"),
        ("tool_result", "tool", "Chunk ID: d98ab8"),
        ("message", "assistant", "DONE: Chunk ID: d98ab8"),
        ("message", "user", "! echo from a shell"),
        ("notice", "system", "from a shell"),
        ("message", "user", "ERR: 400"),
        ("error", "system", "scripted 400"),
        ("message", "user", "SLOW: 6"),
        ("notice", "system", "the turn was interrupted"),
        ("message", "user", "CUT: 1 please"),
        ("message", "assistant", "Hello number 8, you said 13 chars."),
        ("notice", "system", "the conversation so far was replaced by a summary"),
        ("message", "user", "after the summary"),
        ("message", "assistant", "Hello number 10, you said 17 chars."),
    ]
    call, result = found[4], found[5]
    assert call.input == {"cmd": "echo hi-tool; false"}
    assert (result.call, result.tool, result.failed) == (call.call, "exec_command", True)
    assert {entry.model for entry in found if entry.role == "assistant"} == {"gpt-5"}
    assert found[0].time == 1794752905.667


def test_what_a_real_log_cost_is_what_the_server_handed_out() -> None:
    found = spent(*RECORDS)
    handed_out = [(1000 + n, 20 + n) for n in (1, 3, 4, 8, 9, 10)]  # 100 of it cached, 3 of it reasoning
    assert [each.usage for each in found] == [
        Usage(input=given - 100, cache_read=100, output=made - 3, reasoning=3) for given, made in handed_out
    ]
    assert {each.model for each in found} == {"gpt-5"}
    assert len({each.id for each in found}) == len(found)


def test_reading_can_go_on_in_the_middle() -> None:
    whole = CodexLog()
    expected = spent(*RECORDS, reader=whole)
    for place in range(0, len(RECORDS), 7):
        first, second = CodexLog(), CodexLog()
        before = spent(*RECORDS[:place], reader=first)
        vars(second).update(json.loads(json.dumps(vars(first))))
        assert before + spent(*RECORDS[place:], reader=second) == expected


def test_what_was_written_to_a_cache_is_counted_apart() -> None:
    usage = {"input_tokens": 100, "cached_input_tokens": 20, "cache_write_input_tokens": 30, "output_tokens": 7}
    (found,) = spent(
        {"type": "token_usage_record", "timestamp": "t", "ordinal": 3, "payload": {"thread_id": "t", "usage": usage}}
    )
    assert found.usage == Usage(input=50, cache_read=20, cache_write_5m=30, output=7)
    assert found.id == "t:3"


def sent(kind: str, **members: object) -> dict[str, object]:
    return {"type": "response_item", "payload": {"type": kind, **members}}


def test_a_tool_that_takes_a_text_and_one_that_the_server_runs() -> None:
    blocks = [{"type": "input_text", "text": "1"}, {}]
    found = entries(
        sent("custom_tool_call", call_id="c1", name="exec", input="text(1)"),
        sent("custom_tool_call_output", call_id="c1", output=blocks),
        sent("web_search_call", id="w1", action={"query": "x"}),
    )
    assert [(entry.tool, entry.input, entry.text) for entry in found] == [
        ("exec", "text(1)", ""),
        ("exec", None, "1"),
        ("web_search", {"query": "x"}, ""),
    ]


def test_what_is_unknown_is_told_as_such() -> None:
    reader = CodexLog()
    assert reader.entries({"type": "new"}) is None
    assert reader.entries({"type": "event_msg", "payload": {"type": "new"}}) is None
    assert reader.entries({"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "New"}}}) is None
    assert reader.entries({"type": "event_msg", "payload": {"type": "token_count"}}) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "item", "content"]), inner),
    max_leaves=8,
)


@given(
    st.sampled_from([record["type"] for record in RECORDS]),
    st.dictionaries(st.sampled_from(["type", "item", "usage", "output", "error", "call_id", "model"]), JSON),
)
def test_no_record_breaks_the_reader(kind: str, payload: dict[str, object]) -> None:
    reader = CodexLog()
    for given_payload in (payload, {**payload, "type": "item_completed"}, {**payload, "type": "function_call_output"}):
        reader.entries({"type": kind, "payload": given_payload})
        reader.spent({"type": kind, "payload": given_payload})
