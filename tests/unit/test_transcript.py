"""The logs of an agent as one transcript: read in pieces, from either end, and whatever is in them. And its schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mngr import registry
from mngr.agents import log
from mngr.agents.claude_log import ClaudeLog
from mngr.agents.log import Entry, Usage
from mngr.errors import NoSuchAgent, UsageError
from mngr.fleet import transcript as module
from mngr.fleet.fleet import Fleet
from mngr.fleet.transcript import ROLES, Transcript
from mngr.model import Ref

ROOT = Path(__file__).parents[2]
REF = Ref(id="0123456789ab", name="ada", type="claude", host="local")
Logs = Callable[..., list[Path]]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Gives the agent these logs, oldest first."""
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    directory = tmp_path / "m" / "agents" / REF.id
    directory.mkdir(parents=True)

    def write(*contents: bytes) -> list[Path]:
        paths = [tmp_path / f"{number} it's a log.jsonl" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        (directory / "conversations").write_text("".join(f"{path}\n" for path in paths))
        return paths

    return write


def test_all_logs_are_one_transcript_in_their_order(logs: Logs) -> None:
    logs(said("one", "two"), said("three"))
    assert texts() == ["one", "two", "three"]


def test_an_agent_without_conversations_has_none_yet(logs: Logs) -> None:
    read = Transcript(Fleet(), REF)
    assert list(read.entries()) == []
    assert read.remarks() == ["ada has no conversation yet"]


def test_a_log_that_is_named_before_it_is_written_is_no_conversation_yet(logs: Logs) -> None:
    (path,) = logs(b"")
    path.unlink()
    read = Transcript(Fleet(), REF)
    assert list(read.entries()) == []
    assert read.remarks() == [f"ada has no conversation yet, or its log was removed: {path}"]


def test_an_agent_that_is_gone_is_told_as_such(logs: Logs) -> None:
    with pytest.raises(NoSuchAgent, match="not there any more"):
        list(Transcript(Fleet(), REF.replace(id="ffffffffffff")).entries())


@pytest.mark.parametrize("type", ["command", "nobody-knows-it-any-more"])
def test_what_keeps_no_log_has_no_transcript(logs: Logs, type: str) -> None:
    with pytest.raises(UsageError, match=f"ada is a {type}: it keeps no transcript") as caught:
        Transcript(Fleet(), REF.replace(type=type))
    assert caught.value.hint == "mngr capture ada"


# From the end


@pytest.mark.parametrize("block", [1, 100, 1000, 100_000])
def test_the_last_entries_are_the_last_of_all_entries(logs: Logs, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    logs(said(*"abcde"), b"", said(*(f"{number} {'x' * (number * 700)}" for number in range(12)), "ü" * 3000))
    whole = texts()
    assert len(whole) == 18
    for wanted in (1, 2, 3, 12, 13, 14, 18, 30):
        assert texts(last=wanted) == whole[-wanted:]


def test_the_last_entries_are_found_without_reading_the_beginning(logs: Logs) -> None:
    logs(b"what is read of this would be remarked\n" + said(*"x" * 20_000))
    read = Transcript(Fleet(), REF)
    assert [entry.text for entry in read.entries(last=2)] == ["x", "x"]
    assert read.remarks() == []


def test_the_last_entries_of_a_role_are_the_last_of_that_role(logs: Logs) -> None:
    logs(said("first", "second"), b"".join(answered(str(number)) for number in range(3000)))
    assert texts(last=2, roles=["user"]) == ["first", "second"]
    assert texts(last=3, roles=["user", "assistant"]) == ["2997", "2998", "2999"]


def test_those_who_want_the_first_entries_read_no_further(logs: Logs) -> None:
    logs(said("one") + said(*"x" * 20_000) + b"what is read of this would be remarked\n")
    read = Transcript(Fleet(), REF)
    assert next(read.entries()).text == "one"
    assert read.remarks() == []


# Damage


def test_lines_that_are_no_records_are_passed_over_and_counted(logs: Logs) -> None:
    deep = b'{"type":' * 100_000
    (path,) = logs(
        b"\n".join([said("one").strip(), b"garbage", b"\0" * 4096, b"[1]", b"", b"\xff\xfe", deep, said("two")])
    )
    read = Transcript(Fleet(), REF)
    assert [entry.text for entry in read.entries()] == ["one", "two"]
    assert read.remarks() == [f"{path} has 5 lines that cannot be read"]


def test_a_record_that_breaks_its_reader_is_passed_over_and_counted(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ClaudeLog.entries

    def breaks(self: ClaudeLog, record: dict[str, object]) -> list[Entry] | None:
        return right(self, record) if "message" in record else [record["message"]]  # type: ignore[list-item]

    monkeypatch.setattr(ClaudeLog, "entries", breaks)
    (path,) = logs(said("one") + b'{"type": "user"}\n' + said("two"))
    read = Transcript(Fleet(), REF)
    assert [entry.text for entry in read.entries()] == ["one", "two"]
    assert read.remarks() == [f"{path} has 1 line that cannot be read"]


def test_a_last_line_that_is_cut_off_is_told(logs: Logs) -> None:
    (path,) = logs(said("one", "two")[:-20])
    for last in (None, 5):
        read = Transcript(Fleet(), REF)
        assert [entry.text for entry in read.entries(last=last)] == ["one"]
        assert read.remarks() == [f"{path} ends with a line that is not complete"]


def test_a_last_line_that_only_lacks_its_newline_counts(logs: Logs) -> None:
    logs(said("one", "two").rstrip(b"\n"))
    read = Transcript(Fleet(), REF)
    assert [entry.text for entry in read.entries()] == ["one", "two"]
    assert read.remarks() == []
    assert texts(last=1) == ["two"]


def test_a_log_that_is_not_there_does_not_hide_the_others(logs: Logs) -> None:
    gone, directory, _ = logs(b"", b"", said("here"))
    gone.unlink()
    directory.unlink()
    directory.mkdir()
    for last in (None, 5):
        read = Transcript(Fleet(), REF)
        assert [entry.text for entry in read.entries(last=last)] == ["here"]
        assert sorted(read.remarks()) == [
            f"{path} cannot be read: it was removed, or is not written yet" for path in (gone, directory)
        ]


def test_a_line_of_many_megabytes_is_a_line(logs: Logs) -> None:
    logs(said("one", "x" * 20_000_000, "three"))
    assert [len(text) for text in texts()] == [3, 20_000_000, 5]
    assert [len(text) for text in texts(last=2)] == [20_000_000, 5]


def test_unknown_records_of_all_logs_are_counted_by_type(logs: Logs) -> None:
    unknown = b'{"type":"foo"}\n{"type":"bar"}\n{"type":"mode"}\n'
    logs(unknown + said("one"), b'{"type":"foo"}\n' + said("two"))
    read = Transcript(Fleet(), REF)
    assert [entry.text for entry in read.entries()] == ["one", "two"]
    assert read.remarks() == ["3 records of unknown types were skipped: foo 2, bar 1"]


# The schema


def test_entries_are_as_the_schema_says() -> None:
    reader = registry.type_of(REF).reader()
    assert reader is not None
    found = [
        entry
        for line in (ROOT / "tests" / "data" / "claude-2.1.197.jsonl").read_text().splitlines()
        for entry in reader.entries(json.loads(line)) or []
    ]
    assert {entry.kind for entry in found} == {"message", "thinking", "tool_call", "tool_result", "error", "notice"}
    for entry in found:
        assert objections(as_json(entry), SCHEMA) == []


@pytest.mark.parametrize(
    ("member", "value"),
    [("kind", "shout"), ("role", None), ("time", "now"), ("text", 3), ("failed", 0), ("usage", {"input": -1})],
)
def test_the_schema_objects_to_what_no_entry_has(member: str, value: object) -> None:
    good = as_json(Entry(kind="message", role="user", usage=Usage(output=3)))
    assert objections(good, SCHEMA) == []
    assert objections({**good, member: value}, SCHEMA) != []
    del good[member]
    assert objections(good, SCHEMA) != []


def test_the_schema_has_every_field_and_nothing_else() -> None:
    assert list(SCHEMA["properties"]) == SCHEMA["required"] == list(Entry.FIELDS)
    usage = SCHEMA["$defs"]["usage"]
    assert list(usage["properties"]) == usage["required"] == list(Usage.FIELDS)
    assert SCHEMA["properties"]["role"]["enum"] == list(ROLES)


def test_the_schema_is_published_with_the_documents() -> None:
    assert json.loads((ROOT / "docs" / "transcript.schema.json").read_text()) == SCHEMA


# What these tests speak about


SCHEMA: dict[str, Any] = json.loads(Path(log.__file__).with_name("transcript.schema.json").read_text())
_JSON_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}


def objections(value: Any, schema: dict[str, Any]) -> list[str]:
    """As much of JSON Schema as ours uses; a word of it that is not known here is an objection too."""
    found = []
    for word, wanted in schema.items():
        if word == "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            ok = any(_JSON_TYPES[kind](value) for kind in kinds)
        elif word == "enum":
            ok = value in wanted
        elif word == "minimum":
            ok = not _JSON_TYPES["number"](value) or value >= wanted
        elif word == "required":
            ok = not isinstance(value, dict) or all(name in value for name in wanted)
        elif word == "properties":
            held = value if isinstance(value, dict) else {}
            ok = not any(objections(held[name], wanted[name]) for name in wanted if name in held)
        elif word == "anyOf":
            ok = any(not objections(value, choice) for choice in wanted)
        elif word == "$ref":
            ok = not objections(value, SCHEMA["$defs"][wanted.removeprefix("#/$defs/")])
        else:
            ok = word in ("$schema", "$id", "$defs", "title", "description")
        if not ok:
            found.append(f"{word}: {value!r}")
    return found


def as_json(entry: Entry) -> dict[str, Any]:
    return {**entry.to_dict(), "usage": entry.usage.to_dict() if entry.usage else None}


def texts(*, last: int | None = None, roles: list[str] | None = None) -> list[str]:
    return [entry.text for entry in Transcript(Fleet(), REF, roles or ROLES).entries(last=last)]


def said(*texts: str) -> bytes:
    return b"".join(line({"type": "user", "message": {"role": "user", "content": text}}) for text in texts)


def answered(text: str) -> bytes:
    return line({"type": "assistant", "message": {"id": text, "content": [{"type": "text", "text": text}]}})


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"
