"""The log of the plugin for OpenCode as entries, as use and as proof. The file in tests/data was written in the real
program, and its paths changed; the texts of the model in it are those of a scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mngr.agents.log import Usage
from mngr.agents.opencode import OPENCODE
from mngr.agents.opencode_log import OpenCodeLog

LOG = Path(__file__).parents[1] / "data" / "opencode-1.18.33.jsonl"
RECORDS: list[dict[str, Any]] = [json.loads(line) for line in LOG.read_text().splitlines()]


def test_a_real_log_reads_as_the_conversation_that_it_was() -> None:
    reader = OpenCodeLog()
    found = [entry for record in RECORDS for entry in reader.entries(record) or []]
    assert [(entry.kind, entry.role, entry.text or entry.tool) for entry in found[:7]] == [
        ("message", "user", "SAY: hello"),
        ("message", "assistant", "hello"),
        ("message", "user", "RUN: sleep 3; echo slept"),
        ("message", "user", "SAY: next"),
        ("tool_call", "assistant", "bash"),
        ("tool_result", "tool", "slept\n"),
        ("message", "assistant", "next"),
    ]
    assert [(entry.tool, entry.text) for entry in found if entry.failed] == [
        ("bash", "The user rejected permission to use this specific tool call."),
        ("read", "File not found: /home/ada/work/missing.txt"),
    ]
    told = [(entry.kind, entry.text) for entry in found if entry.role == "system"]
    assert told == [("error", "the script says 400"), ("notice", "Interrupted"), ("notice", "Conversation compacted")]
    assert all(entry.time and 1794753179 < entry.time < 1794753218 for entry in found)
    (call, result) = (entry for entry in found if entry.tool == "task")
    assert (call.call, call.input["subagent_type"]) == (result.call, "general")  # type: ignore[index]
    assert {entry.model for entry in found if entry.role == "assistant"} == {"fake-model"}
    assert [reader.entries(record) for record in RECORDS] == [[]] * len(RECORDS)  # nothing is told twice


def test_what_a_real_log_spent_is_what_the_server_handed_out() -> None:
    spent = [found for record in RECORDS if (found := OpenCodeLog().spent(record))]
    assert len({found.id for found in spent}) == len(spent) == 12
    assert spent[0].usage == Usage(input=163, cache_read=1063, output=98, reasoning=5)
    messages = {record["id"]: record["data"] for record in RECORDS if record["type"] == "message"}
    tokens = [data["tokens"] for data in messages.values() if "tokens" in data]
    assert sum(found.usage.input for found in spent) == sum(each["input"] for each in tokens)
    assert sum(found.usage.output for found in spent) == sum(each["output"] for each in tokens)


def test_the_users_words_in_the_log_are_the_proof() -> None:
    def proof(text: str) -> list[str]:
        return [told for record in RECORDS if (told := OPENCODE.receipt(record, text))]

    assert proof("SAY: hello") == ["delivered"]
    assert proof("SAY: next") == ["queued"]
    assert proof("hello") == []  # the model said so
    assert proof("SAY: nothing") == []


def test_a_record_of_an_unknown_type_is_said_to_be_one() -> None:
    assert OpenCodeLog().entries({"type": "news", "id": "x"}) is None
    assert OpenCodeLog().entries({}) is None


KEYS = st.sampled_from(["type", "text", "state", "tokens", "error"])
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["session", "message", "part", "removed"])},
        optional=dict.fromkeys(("id", "role", "time", "model", "queued", "data"), values),
    )
)
def test_no_record_is_too_odd(record: dict[str, Any]) -> None:
    reader = OpenCodeLog()
    assert reader.entries(record) is not None
    reader.spent(record)
    OPENCODE.receipt(record, "x")
