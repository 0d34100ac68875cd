"""JSON for the hot path. `json` costs 7 ms to import, most of it `re`, on verbs that take 30; this is the same scanner
and encoder in C, without the import. Whatever cannot be read so is `json`'s to decide."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    import _json
except ImportError:  # another Python than CPython
    _json = None  # type: ignore[assignment]


class _Settings:
    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is not stored as JSON")


_scan: Any = getattr(_json, "make_scanner", lambda _: None)(_Settings())
_text: Any = getattr(_json, "encode_basestring_ascii", None)
_encode: Any = getattr(_json, "make_encoder", lambda *_: None)(
    None, _refuse, _text, None, ": ", ", ", False, False, False
)


def loads(text: str) -> Any:
    """Raises ValueError, or RecursionError for what is nested too deeply."""
    if _scan is not None:
        bare = text.strip(" \t\n\r")
        try:
            value, end = _scan(bare, 0)
        except (StopIteration, ValueError, SystemError):
            end = -1
        if end == len(bare):
            return value
    import json

    return json.loads(text)


def dumps(value: object) -> str:
    """On one line, in ASCII. Texts, numbers, None, lists and tables with texts as keys."""
    try:
        if _encode is not None:
            return "".join(_encode(value, 0))
        import json

        return json.dumps(value, allow_nan=False, default=_refuse)
    except ValueError as error:
        raise TypeError(str(error)) from None  # NaN: Python would write it, but nobody else reads it
