"""jsonline says what json says, to the letter, whatever the text."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr import jsonline

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_it_writes_what_json_writes(value: object) -> None:
    assert jsonline.dumps(value) == json.dumps(value)


@given(VALUES, st.integers(0, 4))
def test_it_reads_what_json_reads(value: object, indent: int) -> None:
    text = json.dumps(value, indent=indent)
    assert jsonline.loads(text) == json.loads(text)


@given(st.text() | st.text('{}[]",:0123456789.eE+-truefalsnNIiy \n\t\\ud8'))
def test_it_refuses_what_json_refuses(text: str) -> None:
    assert outcome(jsonline.loads, text) == outcome(json.loads, text)


def outcome(loads: Callable[[str], object], text: str) -> str:
    try:
        return repr(loads(text))
    except ValueError as error:
        return f"refused: {error}"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {"deep": [float("nan")]}, b"x"])
def test_what_is_not_stored_is_an_error(value: object) -> None:
    with pytest.raises(TypeError):
        jsonline.dumps(value)
