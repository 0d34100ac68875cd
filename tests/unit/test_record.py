"""Record: frozen, compared by content, and strict when it is read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.model import Agent, Ref, new_id
from mngr.record import Record


class Point(Record):
    x: int
    y: int = 0
    tags: dict[str, str] = {}  # noqa: RUF012 - Record copies defaults


def test_fields_have_their_defaults_and_unknown_or_missing_ones_are_refused() -> None:
    assert Point(x=1).to_dict() == {"x": 1, "y": 0, "tags": {}}
    with pytest.raises(TypeError, match="Point needs x"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Point has no z"):
        Point(x=1, z=2)  # type: ignore[call-arg]


def test_a_default_that_can_change_is_not_shared() -> None:
    first, second = Point(x=1), Point(x=1)
    first.tags["mine"] = "yes"
    assert second.tags == {}
    assert Point.tags == {}


def test_a_record_is_frozen_and_replace_makes_another_one() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError, match=r"use replace\(x="):
        point.x = 2  # type: ignore[misc]
    assert point.replace(x=2) == Point(x=2)
    assert point == Point(x=1)
    with pytest.raises(TypeError):
        point.replace(z=1)


def test_records_are_equal_by_type_and_content_and_can_be_keys() -> None:
    class Other(Point):
        pass

    assert Point(x=1) == Point(x=1)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    assert len({Point(x=1), Point(x=1), Point(x=2)}) == 2
    assert repr(Point(x=1)) == "Point(x=1, y=0, tags={})"


def test_a_record_has_the_fields_of_the_one_it_extends_first() -> None:
    assert list(Agent.FIELDS)[:5] == list(Ref.FIELDS) == ["id", "name", "type", "host", "program"]


names = st.text(max_size=8)
agents = st.builds(
    Agent,
    id=names,
    name=names,
    type=names,
    host=names,
    command=st.lists(names, max_size=3),
    work_dir=names,
    mode=names,
    created=st.floats(-9e15, 9e15) | st.integers(-(9 * 10**15), 9 * 10**15),
    source=st.none() | names,
    own_branch=st.booleans(),
    labels=st.dictionaries(names, names, max_size=3),
)


@given(agents)
def test_what_was_stored_is_read_back_the_same(agent: Agent) -> None:
    assert Agent.from_dict(json.loads(json.dumps(agent.to_dict()))) == agent
    assert agent.ref == Ref(id=agent.id, name=agent.name, type=agent.type, host=agent.host)


GOOD = Agent(
    id="a1", name="foo", type="command", host="local", command=["true"], work_dir="/w", mode="none", created=1.0
)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("id", 5, "id is not str"),
        ("id", None, "id is not str"),
        ("command", "true", "command is not list"),
        ("command", ["true", 5], "command is not list"),
        ("created", "1", "created is not float"),
        ("created", True, "created is not float"),
        ("created", float("nan"), "created is not float"),
        ("created", float("inf"), "created is not float"),
        ("created", 10**400, "created is not float"),
        ("source", 5, "source is not str"),
        ("own_branch", 1, "own_branch is not bool"),
        ("own_branch", None, "own_branch is not bool"),
        ("labels", {"a": 1}, "labels is not dict"),
        ("labels", [], "labels is not dict"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(field: str, value: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Agent.from_dict({**GOOD.to_dict(), field: value})


def test_a_missing_field_is_named_unless_it_has_a_default() -> None:
    stored = GOOD.to_dict()
    del stored["labels"]
    assert Agent.from_dict(stored) == GOOD
    del stored["work_dir"]
    with pytest.raises(ValueError, match="work_dir is missing"):
        Agent.from_dict(stored)


def test_keys_of_a_newer_version_are_passed_over() -> None:
    assert Agent.from_dict({**GOOD.to_dict(), "colour": "blue", "format": 3}) == GOOD


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(list(Agent.FIELDS)), inner, max_size=9),
    max_leaves=30,
)


@given(json_values)
def test_anything_else_is_a_value_error_and_never_a_half_record(value: object) -> None:
    try:
        read = Agent.from_dict(value)
    except ValueError:
        return
    assert set(read.to_dict()) == set(Agent.FIELDS)


def test_ids_are_plain_words_and_do_not_repeat() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(id) == 12 and set(id) <= set("0123456789abcdef") for id in ids)
