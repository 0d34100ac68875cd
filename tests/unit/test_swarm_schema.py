"""Results against their schema, and whatever a program may leave in place of a result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.swarm.schema import MOST_BYTES, flaws, read_result, too_long
from mngr.swarm.testing import kinds, prompt

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads(Path(prompt.__file__).with_name("result.schema.json").read_text())
GOOD: dict[str, Any] = {**prompt.EXAMPLE, "test": "tests/test_a.py::test_a"}
CHANGE: dict[str, Any] = GOOD["changes"][0]


def test_the_schema_is_published_with_the_documents() -> None:
    assert json.loads((ROOT / "docs" / "schemas" / "result.schema.json").read_text()) == SCHEMA


def test_the_schema_has_the_kinds_that_paths_are_compared_with() -> None:
    assert SCHEMA["$defs"]["change"]["properties"]["kind"]["enum"] == list(kinds.KINDS)


def test_a_good_result_has_no_flaws() -> None:
    assert flaws(SCHEMA, GOOD) == []
    nothing: dict[str, Any] = {
        "changes": [],
        "escalations": [],
        "blocked": "a key",
        "passed_before": None,
        "passed_after": None,
    }
    assert flaws(SCHEMA, {**GOOD, **nothing}) == []


@pytest.mark.parametrize(
    ("member", "value", "flaw"),
    [
        (
            "changes",
            [{**CHANGE, "kind": "impl"}],
            'changes[0].kind is "impl"; it must be one of "implementation", "test", "docs", "tutorial"',
        ),
        (
            "changes",
            [CHANGE, {**CHANGE, "commit": "HEAD"}],
            'changes[1].commit is "HEAD"; it must match ^[0-9a-f]{7,64}$',
        ),
        (
            "changes",
            [{**CHANGE, "commit": "4f1c2d9\n"}],
            'changes[0].commit is "4f1c2d9\\n"; it must match ^[0-9a-f]{7,64}$',
        ),
        ("changes", "none", 'changes is "none"; it must be a list'),
        ("changes", [CHANGE] * 101, "changes is a list of 101; it must have at most 100 items"),
        ("changes", [3], "changes[0] is 3; it must be an object"),
        ("passed_after", "yes", 'passed_after is "yes"; it must be true or false or null'),
        ("passed_after", 1, "passed_after is 1; it must be true or false or null"),
        ("blocked", "", 'blocked is ""; it must say something'),
        ("summary", "x" * 4001, f'summary is "{"x" * 59}...; it must have at most 4000 characters'),
        ("escalations", [{"kind": "blocker"}], "escalations[0].summary is missing"),
        (
            "escalations",
            [{"kind": "blocker", "summary": "s", "text": ""}],
            "escalations[0].text is not known; escalations[0] may have kind, summary, tests",
        ),
    ],
)
def test_a_flaw_is_a_sentence_that_a_model_can_act_on(member: str, value: Any, flaw: str) -> None:
    assert flaws(SCHEMA, {**GOOD, member: value}) == [flaw]


def test_every_member_is_asked_for() -> None:
    assert flaws(SCHEMA, {}) == [f"{name} is missing" for name in GOOD]
    assert flaws(SCHEMA, []) == ["the result is a list of 0; it must be an object"]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"const": 1}, [1], [True, 1.0, "1", None]),
        ({"enum": [None, 0]}, [None, 0], [False, ""]),
        ({"type": "integer"}, [3, -3, 3.0], [3.5, True, "3"]),
        ({"type": "number"}, [3, 3.5], [True, "3"]),
        ({"minimum": 2, "maximum": 3}, [2, 3, "a", None], [1, 4]),
        ({"minLength": 2}, ["ab", 1], ["a", ""]),
        ({"pattern": "a.c"}, ["xabcx", 1], ["ac"]),
        ({"items": {"type": "string"}}, [[], ["a"], "a"], [["a", 1]]),
        ({"properties": {"a": {"type": "null"}}}, [{}, {"a": None}, {"b": 1}, 3], [{"a": 1}]),
        ({"additionalProperties": {"type": "string"}}, [{}, {"a": "b"}], [{"a": 1}]),
        (
            {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
            [[], [[], [[]]]],
            [[[1]], 1],
        ),
    ],
)
def test_words_of_json_schema_mean_what_they_mean_there(
    schema: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    assert [value for value in good if flaws(schema, value)] == []
    assert [value for value in bad if not flaws(schema, value)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": []},
        {"properties": {"a": {"format": "date"}}},
        {"items": {"type": "text"}},
        {"$defs": {"a": {"oneOf": []}}},
        {"additionalProperties": {"if": {}}},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.com/schema.json"},
        {"items": True},
    ],
)
def test_a_schema_that_is_not_understood_is_refused_whatever_the_value(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema"):
        flaws(schema, None)


# Files


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        (b"", "the result is empty"),
        (b" \n", "the result is empty"),
        (b"done!", "the result is not JSON: expecting value (line 1, column 1)"),
        (b'{"a": 1,\n "b": [1, 2', "the result is not JSON: it ends in the middle (line 2, column 12)"),
        (b'{"a": "cut off he', "the result is not JSON: it ends in the middle (line 1, column 7)"),
        (b'{"a": 1} {"a": 2}', "the result is not JSON: extra data (line 1, column 10)"),
        (b'{"a": "\xff"}', "the result is not UTF-8: byte 7"),
        (b"[1]", "the result is a list of 1; it must be an object"),
        (b'"text"', 'the result is "text"; it must be an object'),
        (b'{"a": NaN}', "the result is not JSON: NaN is not a number"),
        (b'{"a": -Infinity}', "the result is not JSON: -Infinity is not a number"),
        (b'{"a": 1e999}', "the result has a number that is too large"),
        (b'{"a": {"b": 1, "b": 2}}', 'the result has "b" twice in one object'),
        (b'{"a": "\\ud800"}', 'the result has half a character (a lone surrogate) in "\\ud800"'),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "the result is nested too deeply: 64 levels are the most"),
        (b'{"a":' + b"[" * 100_000, "the result is nested too deeply: 64 levels are the most"),
        (b'{"a": "' + b"x" * MOST_BYTES + b'"}', too_long(MOST_BYTES + 9)),
    ],
)
def test_garbage_is_told_in_one_line(tmp_path: Path, content: bytes, flaw: str) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    assert read_result(str(path), None) == (None, flaw)


def test_what_is_no_file_is_told_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    assert read_result(str(tmp_path / "none"), None) == (None, "there is no result")
    for name in (".", "pipe", "link"):
        assert read_result(str(tmp_path / name), None) == (None, "the result is not a file")


def test_a_number_of_many_digits_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "r").write_text('{"a": ' + "9" * 10_000 + "}")
    value, flaw = read_result(str(tmp_path / "r"), None)
    assert value is None
    assert flaw.startswith("the result is not JSON: ")


def test_a_good_result_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**GOOD, "summary": "größer"}, ensure_ascii=False), encoding="utf-8")
    assert read_result(str(path), SCHEMA) == ({**GOOD, "summary": "größer"}, "")


def test_many_flaws_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"test": 1}')
    value, flaw = read_result(str(path), SCHEMA)
    assert value is None
    assert flaw.startswith("passed_before is missing. passed_after is missing. ")
    assert flaw.endswith(". 2 more flaws")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(list(GOOD)), json_values))
def test_no_value_makes_it_fail(members: dict[str, Any]) -> None:
    assert all("\n" not in flaw for flaw in flaws(SCHEMA, {**GOOD, **members}))
