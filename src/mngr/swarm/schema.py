"""Results against their schema: as much of JSON Schema as results need, with sentences that a model can act on.

A result is written by a program that we do not trust: `read_result` takes any bytes, and answers with a value that is
safe to keep and to show, or with one line that says what is wrong."""

from __future__ import annotations

import os
import re

from mngr import jsonline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MOST_BYTES = 1 << 20
MOST_NESTED = 64
_MOST_FLAWS = 5  # that are told at once
_LONGEST_SHOWN = 60  # characters of a value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("a list", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
    "integer": ("a whole number", lambda value: _is_number(value) and value % 1 == 0),
    "number": ("a number", _is_number),
}


# Validation


def flaws(schema: dict[str, Any], value: Any) -> list[str]:
    """Everything about a value of JSON that the schema does not allow, a sentence each. A schema that uses what is not
    known here is a mistake of whoever wrote it: ValueError, whatever the value is."""
    _refuse_unknown(schema, schema)
    return list(_flaws(schema, value, "", schema))


def _refuse_unknown(schema: Any, root: dict[str, Any]) -> None:
    if not isinstance(schema, dict):
        raise ValueError(f"schema: {schema!r} is not an object")
    for word, wanted in schema.items():
        if word not in _SIMPLE and word not in _NESTED and word not in _REMARKS:
            raise ValueError(f"schema: {word!r} is not supported")
        if word == "type" and not set(_kinds(wanted)) <= set(_TYPES):
            raise ValueError(f"schema: the type {wanted!r} is not supported")
        if word == "$ref":
            _referred(wanted, root)
    for below in _below(schema):
        _refuse_unknown(below, root)


def _below(schema: dict[str, Any]) -> Iterator[Any]:
    for word in ("properties", "$defs"):
        yield from schema.get(word, {}).values()
    if "items" in schema:
        yield schema["items"]
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield schema["additionalProperties"]


def _flaws(schema: dict[str, Any], value: Any, at: str, root: dict[str, Any]) -> Iterator[str]:
    """`at` is the way to the value: `changes[0].kind`."""
    for word, (fits, told) in _SIMPLE.items():
        if word in schema and not fits(schema[word], value):
            yield f"{at or _WHOLE} is {_shown(value)}; it must {told(schema[word])}"
            if word == "type":
                return
    if "$ref" in schema:
        yield from _flaws(_referred(schema["$ref"], root), value, at, root)
    if isinstance(value, dict):
        yield from _flaws_of_members(schema, value, at, root)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from _flaws(schema["items"], item, f"{at}[{number}]", root)


def _flaws_of_members(schema: dict[str, Any], value: dict[str, Any], at: str, root: dict[str, Any]) -> Iterator[str]:
    for name in schema.get("required", []):
        if name not in value:
            yield f"{_member(at, name)} is missing"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            yield from _flaws(known[name], item, _member(at, name), root)
        elif others is False:
            yield f"{_member(at, name)} is not known; {at or _WHOLE} may have {', '.join(known)}"
        elif others is not True:
            yield from _flaws(others, item, _member(at, name), root)


def _matches(pattern: str, value: Any) -> bool:
    """In JSON Schema `$` is the end of the text; in Python it would also be found before a last newline."""
    strict = f"{pattern[:-1]}\\Z" if pattern.endswith("$") and not pattern.endswith("\\$") else pattern
    return not isinstance(value, str) or re.search(strict, value, re.ASCII) is not None


_REMARKS = {"$schema", "$id", "$defs", "title", "description", "examples"}
_NESTED = {"$ref", "required", "properties", "additionalProperties", "items"}
_SIMPLE: dict[str, tuple[Callable[[Any, Any], bool], Callable[[Any], str]]] = {
    "type": (
        lambda wanted, value: any(_TYPES[kind][1](value) for kind in _kinds(wanted)),
        lambda wanted: f"be {' or '.join(_TYPES[kind][0] for kind in _kinds(wanted))}",
    ),
    "enum": (
        lambda wanted, value: any(_same(value, each) for each in wanted),
        lambda wanted: f"be one of {', '.join(map(jsonline.dumps, wanted))}",
    ),
    "const": (lambda wanted, value: _same(value, wanted), lambda wanted: f"be {jsonline.dumps(wanted)}"),
    "maxItems": (
        lambda wanted, value: not isinstance(value, list) or len(value) <= wanted,
        lambda wanted: f"have at most {wanted} items",
    ),
    "minLength": (
        lambda wanted, value: not isinstance(value, str) or len(value) >= wanted,
        lambda wanted: "say something" if wanted == 1 else f"have at least {wanted} characters",
    ),
    "maxLength": (
        lambda wanted, value: not isinstance(value, str) or len(value) <= wanted,
        lambda wanted: f"have at most {wanted} characters",
    ),
    "pattern": (_matches, lambda wanted: f"match {wanted}"),
    "minimum": (
        lambda wanted, value: not _is_number(value) or value >= wanted,
        lambda wanted: f"be at least {wanted}",
    ),
    "maximum": (
        lambda wanted, value: not _is_number(value) or value <= wanted,
        lambda wanted: f"be at most {wanted}",
    ),
}
_WHOLE = "the result"


def _kinds(wanted: str | list[str]) -> list[str]:
    return [wanted] if isinstance(wanted, str) else wanted


def _referred(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    start, _, name = reference.rpartition("/")
    if start != "#/$defs" or name not in root.get("$defs", {}):
        raise ValueError(f"schema: {reference!r} leads nowhere; #/$defs/NAME does")
    found: dict[str, Any] = root["$defs"][name]
    return found


def _same(value: Any, other: Any) -> bool:
    """True is not 1."""
    return type(value) is type(other) and value == other


def _member(at: str, name: str) -> str:
    shown = name if name.isidentifier() and len(name) <= _LONGEST_SHOWN else _shown(name)
    return f"{at}.{shown}" if at else shown


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = jsonline.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


# Reading


def read_result(path: str, schema: dict[str, Any] | None) -> tuple[dict[str, Any] | None, str]:
    """The result, or None and what is wrong with it, in one line. Without a schema any object will do."""
    try:
        value = _parsed(_content(path))
    except _Flaw as flaw:
        return None, str(flaw)
    found = flaws(schema, value) if schema is not None else []
    if not found:
        return value, ""
    more = len(found) - _MOST_FLAWS
    return None, ". ".join([*found[:_MOST_FLAWS], *([f"{more} more flaws"] if more > 0 else [])])


class _Flaw(Exception):
    pass


def _content(path: str) -> bytes:
    try:
        if not os.path.isfile(path):  # opening a pipe would keep us waiting
            raise _Flaw("the result is not a file" if os.path.lexists(path) else "there is no result")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _Flaw(f"the result cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise _Flaw(too_long(os.path.getsize(path)))
    return data


def too_long(size: int) -> str:
    return f"the result is too long: it has {size:,} bytes, and may have {MOST_BYTES:,}"


def _parsed(data: bytes) -> dict[str, Any]:
    import json

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Flaw(f"the result is not UTF-8: byte {error.start}") from None
    if not text.strip():
        raise _Flaw("the result is empty")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        what = "it ends in the middle" if is_cut else error.msg[:1].lower() + error.msg[1:]
        raise _Flaw(f"the result is not JSON: {what} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:  # a number of thousands of digits
        raise _Flaw(f"the result is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise _Flaw(f"the result is {_shown(value)}; it must be an object")
    _refuse_unsafe(value, MOST_NESTED)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Flaw(f"the result has {_shown(name)} twice in one object")
        found[name] = value
    return found


def _constant(name: str) -> Any:
    raise _Flaw(f"the result is not JSON: {name} is not a number")


def _too_deep() -> _Flaw:
    return _Flaw(f"the result is nested too deeply: {MOST_NESTED} levels are the most")


def _refuse_unsafe(value: Any, levels: int) -> None:
    """What JSON can say, but nobody can store or print: 1e999, half a character."""
    if levels < 0:
        raise _too_deep()
    if isinstance(value, dict):
        for name, below in value.items():
            _refuse_unsafe(name, levels)
            _refuse_unsafe(below, levels - 1)
    elif isinstance(value, list):
        for below in value:
            _refuse_unsafe(below, levels - 1)
    elif isinstance(value, float) and value - value != 0:
        raise _Flaw("the result has a number that is too large")
    elif isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise _Flaw(f"the result has half a character (a lone surrogate) in {_shown(value)}")
