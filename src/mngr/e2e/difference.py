"""The one difference that a failure shows, short enough to be read."""

from __future__ import annotations

import difflib
import json
from typing import Any

_MOST_LINES = 40
_WIDEST = 400  # characters of a shown line


def text_difference(wanted: str, found: str) -> str:
    """White space is made visible when nothing else differs."""
    if wanted.split() == found.split():
        visible = str.maketrans({" ": "·", "\t": "→", "\r": "␍", "\n": "⏎\n"})
        wanted, found = wanted.translate(visible), found.translate(visible)
    return difference(wanted, found)


def difference(wanted: str, found: str) -> str:
    lines = difflib.unified_diff(wanted.split("\n"), found.split("\n"), "expected", "actual", lineterm="")
    return cut_lines("\n".join(lines))


def quoted(text: object) -> str:
    return cut(repr(text), 200)


def cut(line: str, most: int = 100) -> str:
    line = " ".join(line.split("\n"))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def cut_lines(text: str) -> str:
    lines = [
        line if len(line) <= _WIDEST else f"{line[:_WIDEST]}… ({len(line)} characters)" for line in text.split("\n")
    ]
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        lines[half:-half] = [f"  … {len(lines) - 2 * half} more lines …"]
    return "\n".join(lines)


def filled(wanted: Any, found: Any) -> Any:
    """What is wanted, its holes filled with what was found, so that only real differences are left to show."""
    if wanted is ...:
        return found
    if isinstance(wanted, dict) and isinstance(found, dict):
        named = {key: filled(item, found.get(key, ...)) for key, item in wanted.items() if key is not ...}
        return {**found, **named} if ... in wanted else named
    if isinstance(wanted, (list, tuple)) and isinstance(found, list):
        rest = [...] * (len(wanted) - len(found))
        return [filled(item, other) for item, other in zip(wanted, [*found, *rest], strict=False)]
    return wanted


def pretty(value: Any) -> str:
    return json.dumps(dumpable(value), indent=2, sort_keys=True, ensure_ascii=False)


def dumpable(value: Any) -> Any:
    if isinstance(value, dict):
        return {"..." if key is ... else str(key): dumpable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [dumpable(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float)) else "..." if value is ... else repr(value)
