"""Claude Code's log as entries and as use. The files in tests/data are logs of the real program, with their long
attachments cut and their paths changed; the texts of the model in them are those of a scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agents.claude_log import ClaudeLog
from mngr.agents.log import Entry, Spent, Usage

DATA = Path(__file__).parents[1] / "data"
WHEN = "2026-11-15T13:19:06.500Z"
TIME = 1794748746.5
USAGE = {"input_tokens": 10, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5, "output_tokens": 3}


# A real log


def test_a_real_log_reads_as_the_conversation_that_it_was() -> None:
    found = entries(*records("claude-2.1.197.jsonl"))
    assert [(entry.kind, entry.role, entry.text or entry.tool) for entry in found[:8]] == [
        ("message", "user", "TWO: go"),
        ("thinking", "assistant", "Let me think about this.\nTwo lines."),
        ("message", "assistant", "Two at once."),
        ("tool_call", "assistant", "Bash"),
        ("tool_call", "assistant", "Read"),
        ("tool_result", "tool", "File does not exist. Note: your current working directory is /home/ada/project."),
        ("tool_result", "tool", "one"),
        (
            "message",
            "assistant",
            "DONE: tool said File does not exist. Note: your current working directory is",
        ),
    ]
    said = [entry.text for entry in found if entry.role == "user"]
    assert said == [
        "TWO: go",
        "SUB: go",
        "RUN: sleep 5; echo slept",
        "a message while busy",
        "/usage",
        "ERR: 529",
        "in the resumed one",
        "/compact keep",
        "after compact",
        "! echo banged",
        "/model",
        "ERR: 529ERR: 429ERR: 401ERR: 500ERR: 400",
    ]
    assert [entry.text for entry in found if entry.role == "system"] == [
        "Settings dialog dismissed",
        "Conversation compacted",
        "This session is being continued from a previous conversation.\n\nSummary: it went well.",
        "\x1b[2mCompacted (ctrl+o to see full summary)\x1b[22m",
        "[Request interrupted by user for tool use]",
        "Settings dialog dismissed",
        "banged",
        "Kept model as \x1b[1mOpus 4.8\x1b[22m",
        "Unknown command: /nosuchcmd",
        "API Error: 400 scripted 400",
    ]
    assert [entry.text for entry in found if entry.kind == "error"] == ["API Error: 400 scripted 400"]


def test_every_record_of_a_real_log_is_of_a_known_type() -> None:
    reader = ClaudeLog()
    assert [record["type"] for record in records("claude-2.1.197.jsonl") if reader.entries(record) is None] == []


def test_what_a_real_log_spent_is_the_same_by_entries_and_by_records() -> None:
    log = records("claude-2.1.197.jsonl")
    by_entries = [entry.usage for entry in entries(*log) if entry.usage]
    by_id = {found.id: found.usage for record in log if (found := ClaudeLog().spent(record))}
    assert len(by_entries) == 9
    assert by_entries == list(by_id.values())


def test_the_log_of_a_subagent_is_beside_the_conversation() -> None:
    found = entries(*records("claude-2.1.197-subagent.jsonl"))
    assert [(entry.kind, entry.side) for entry in found] == [
        ("message", True),
        ("message", True),
        ("tool_call", True),
        ("tool_result", True),
        ("message", True),
    ]


# Answers


def test_the_records_of_one_api_message_share_its_id_and_the_first_entry_has_its_usage() -> None:
    thought = answer({"type": "thinking", "thinking": "", "signature": "x"})  # nothing to see
    found = entries(thought, answer({"type": "text", "text": "a"}), answer({"type": "text", "text": "b"}))
    assert found == [
        Entry(
            kind="message",
            role="assistant",
            time=TIME,
            text="a",
            model="opus",
            id="m1",
            usage=Usage(input=10, cache_read=7, cache_write_5m=5, output=3),
        ),
        Entry(kind="message", role="assistant", time=TIME, text="b", model="opus", id="m1"),
    ]


def test_a_result_names_the_tool_of_its_call() -> None:
    call, result = entries(
        answer({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}),
        asked([{"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}]),
    )
    assert (call.kind, call.tool, call.call, call.input) == ("tool_call", "Bash", "t1", {"command": "ls"})
    assert (result.kind, result.role, result.tool, result.call) == ("tool_result", "tool", "Bash", "t1")
    assert (result.text, result.failed) == ("no", True)


def test_tools_that_the_server_runs_are_tools() -> None:
    call, result = entries(
        answer(
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
        )
    )
    assert (call.kind, call.tool) == ("tool_call", "web_search")
    assert (result.kind, result.role, result.tool, result.text) == (
        "tool_result",
        "tool",
        "web_search",
        "[web_search_result]",
    )


def test_content_that_is_no_text_is_named() -> None:
    (found,) = entries(asked([{"type": "text", "text": "look"}, {"type": "image", "source": {}}]))
    assert (found.role, found.text) == ("user", "look\n[image]")


# What stands in the user's place


@pytest.mark.parametrize(
    ("said", "kind", "role", "text"),
    [
        ("hello", "message", "user", "hello"),
        ("<b>bold</b>", "message", "user", "<b>bold</b>"),
        (
            "<command-name>/model</command-name>\n  <command-args>opus now</command-args>",
            "message",
            "user",
            "/model opus now",
        ),
        ("<command-message>fix</command-message>\n<command-name>/fix</command-name>", "message", "user", "/fix"),
        ("<bash-input>ls -l</bash-input>", "message", "user", "! ls -l"),
        ("<bash-stdout>one</bash-stdout><bash-stderr>two</bash-stderr>", "notice", "system", "one\ntwo"),
        ("<bash-stdout>a </bash-stdout> b</bash-stdout>", "notice", "system", "a </bash-stdout> b"),
        ("<local-command-stdout>Kept</local-command-stdout>", "notice", "system", "Kept"),
        ("<local-command-stderr>Bad</local-command-stderr>", "notice", "system", "Bad"),
        ("[Request interrupted by user]", "notice", "system", "[Request interrupted by user]"),
        (
            "<task-notification>done</task-notification>",
            "notice",
            "system",
            "<task-notification>done</task-notification>",
        ),
    ],
)
def test_what_stands_in_the_users_place_becomes_readable(said: str, kind: str, role: str, text: str) -> None:
    (found,) = entries(asked(said))
    assert (found.kind, found.role, found.text, found.time) == (kind, role, text, TIME)


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "isMeta": True, "message": {"content": "Caveat"}},
        {"type": "user", "message": {"content": "<local-command-stdout></local-command-stdout>"}},
        {"type": "user", "message": {"content": ""}},
        {"type": "system", "subtype": "turn_duration", "durationMs": 3},
        {"type": "system", "subtype": "informational", "isMeta": True, "content": "x"},
        {"type": "attachment", "attachment": {"type": "skill_listing", "content": "x"}},
        {"type": "queue-operation", "operation": "enqueue", "content": "x"},
        {"type": "api-request-shape"},
        {"type": "summary", "summary": "x"},
    ],
)
def test_book_keeping_is_known_and_says_nothing(record: dict[str, Any]) -> None:
    assert ClaudeLog().entries(record) == []


@pytest.mark.parametrize("record", [{"type": "no-such-thing"}, {"type": None}, {"type": ["user"]}, {}])
def test_an_unknown_type_is_told_as_such(record: dict[str, Any]) -> None:
    assert ClaudeLog().entries(record) is None


def test_a_message_that_came_into_a_running_turn_is_a_message() -> None:
    (found,) = entries({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and this"}})
    assert (found.kind, found.role, found.text) == ("message", "user", "and this")
    blocks = [{"type": "text", "text": "see"}, {"type": "image"}]
    (found,) = entries({"type": "attachment", "attachment": {"type": "queued_command", "prompt": blocks}})
    assert found.text == "see\n[image]"


# What went wrong


def test_an_error_of_the_api_is_an_error_of_the_system() -> None:
    (found,) = entries(
        {**answer({"type": "text", "text": "API Error: 400"}, model="<synthetic>"), "isApiErrorMessage": True}
    )
    assert (found.kind, found.role, found.text, found.usage) == ("error", "system", "API Error: 400", None)


def test_what_the_program_says_in_the_models_place_is_a_notice() -> None:
    (found,) = entries(answer({"type": "text", "text": "No response requested."}, model="<synthetic>"))
    assert (found.kind, found.role, found.model) == ("notice", "system", "")


def test_tries_of_the_api_are_errors() -> None:
    tried = {"type": "system", "subtype": "api_error", "error": {"status": 529}, "retryAttempt": 2, "maxRetries": 10}
    refused = {"type": "system", "subtype": "api_error", "error": {"cause": {"code": "ConnectionRefused"}}}
    loud = {"type": "system", "subtype": "informational", "level": "error", "content": "broken"}
    assert [(entry.kind, entry.text) for entry in entries(tried, refused, loud)] == [
        ("error", "API error 529, attempt 2 of 10"),
        ("error", "API error ConnectionRefused"),
        ("error", "broken"),
    ]


# What was spent


@pytest.mark.parametrize(
    ("writes", "five_minutes", "hour"),
    [
        ({}, 0, 0),
        ({"cache_creation_input_tokens": 20}, 20, 0),
        ({"cache_creation_input_tokens": 20, "cache_creation": {"ephemeral_5m_input_tokens": 20}}, 20, 0),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 4}}, 20, 4),
        (
            {
                "cache_creation_input_tokens": 24,
                "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 4},
            },
            20,
            4,
        ),
        ({"cache_creation_input_tokens": 4, "cache_creation": {"ephemeral_1h_input_tokens": 4}}, 0, 4),
        ({"cache_creation_input_tokens": 20, "cache_creation": {"ephemeral_1h_input_tokens": 0}}, 20, 0),
        ({"cache_creation_input_tokens": "many", "cache_creation": []}, 0, 0),
    ],
)
def test_cache_writes_are_counted_once_and_by_their_lifetime(
    writes: dict[str, Any], five_minutes: int, hour: int
) -> None:
    record = answer({"type": "text", "text": "a"})
    record["message"]["usage"] = {"input_tokens": 1, "output_tokens": 2, **writes}
    assert ClaudeLog().spent(record) == Spent(
        id="m1",
        time=TIME,
        model="opus",
        usage=Usage(input=1, cache_write_5m=five_minutes, cache_write_1h=hour, output=2),
    )


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "message": {"model": "opus", "usage": {"input_tokens": 1}}},
        {"type": "assistant", "message": {"model": "<synthetic>", "usage": {"input_tokens": 1}}},
        {"type": "assistant", "message": {"model": "opus"}},
        {"type": "assistant", "message": {"usage": {"input_tokens": 1}}},
        {"type": "assistant"},
    ],
)
def test_what_asked_no_model_spent_nothing(record: dict[str, Any]) -> None:
    assert ClaudeLog().spent(record) is None


# Anything


WORDS = st.sampled_from(
    """assistant user system attachment message content type text thinking tool_use tool_result id name input usage
    model timestamp subtype api_error local_command error status cause prompt queued_command cache_creation
    isApiErrorMessage tool_use_id <command-name>""".split()
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
)


@given(st.dictionaries(WORDS, ANYTHING), st.sampled_from(["assistant", "user", "system", "attachment"]))
def test_no_record_is_too_odd(record: dict[str, Any], kind: str) -> None:
    record["type"] = kind
    reader = ClaudeLog()
    assert all(isinstance(entry.text, str) for entry in reader.entries(record) or [])
    reader.spent(record)


# What these tests speak about


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def entries(*log: dict[str, Any]) -> list[Entry]:
    reader = ClaudeLog()
    return [entry for record in log for entry in reader.entries(record) or []]


def asked(content: object) -> dict[str, Any]:
    return {"type": "user", "timestamp": WHEN, "message": {"role": "user", "content": content}}


def answer(*blocks: dict[str, Any], model: str = "opus") -> dict[str, Any]:
    message = {"id": "m1", "model": model, "content": list(blocks), "usage": USAGE}
    return {"type": "assistant", "timestamp": WHEN, "message": message}
