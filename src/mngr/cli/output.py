"""How results are printed: a table for people, JSON for scripts, a format for shell loops. Results go to stdout,
everything else to stderr."""

from __future__ import annotations

import os
import sys
import time

from mngr.errors import UsageError
from mngr.grammar import option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    T = TypeVar("T")

JSON_OPTION = option("--json", "print JSON")
JSON_OPTIONS = (JSON_OPTION, option("--jsonl", "print one line of JSON per item"))


def notice(text: str) -> None:
    """One line about what happened on the way, for people."""
    print(f"mngr: {clean(text)}", file=sys.stderr)


def print_json(value: object, *, indent: int | None = 2) -> None:
    print(as_json(value, indent=indent))


def as_json(value: object, *, indent: int | None = None) -> str:
    """Half a character, which no encoding can write, is replaced; what could act on a terminal is spelled out, so that
    who reads it gets it as it is."""
    import json

    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str).encode("utf-8", "replace").decode()
    if not text.replace("\n", "").isprintable():  # of control characters, JSON has to spell out only some
        text = "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return text


def print_table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> None:
    """Columns by width; the last one may run over. Control characters never reach the terminal."""
    table = [head, *rows]
    if not "".join(map("".join, table)).isprintable():
        table = [[clean(cell) for cell in row] for row in table]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def clean(text: str) -> str:
    """What agents wrote is data: no escape sequence of theirs may act on the user's terminal."""
    text = text.replace("\N{NO-BREAK SPACE}", " ")  # harmless, and not printable to Python
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    )


_COLOUR = r"(\x1b\[[0-9;:]*m|[\x0e\x0f])"  # and lines drawn with letters, as tmux tells them
_ACTING = (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))


def tame(text: str, *, colours: bool = False) -> str:
    """What a program or its screen shows, for a terminal: nothing in it moves the cursor, sets a title or turns the
    writing around. Signs that are no more than odd stay, unlike with `clean`, and so do colours, which end with it."""
    import re

    table = dict.fromkeys(_ACTING, "\N{REPLACEMENT CHARACTER}")
    if not colours:
        return text.translate(table)
    parts = re.split(_COLOUR, text)  # every other one is a colour
    told = "".join(part if number % 2 else part.translate(table) for number, part in enumerate(parts))
    return f"{told}\x1b[0m\x0f" if len(parts) > 1 else told


def print_formatted(items: Sequence[dict[str, object]], template: str) -> None:
    r"""`--format '{name}\t{state}'`: one line per item; \t and \n are understood. Scripts get fields as they are, and a
    terminal without their control characters."""
    template = template.replace("\\t", "\t").replace("\\n", "\n")
    shown = [_harmless(item) for item in items] if os.isatty(1) else items  # sys.stdout may be held back, by --watch
    for item in shown:
        try:
            print(template.format_map(item))
        except (KeyError, ValueError, IndexError, AttributeError, TypeError, MemoryError, OverflowError) as error:
            known = ", ".join(item)
            raise UsageError(f"--format {template!r}: {type(error).__name__} {error}", f"fields: {known}") from None


def _harmless(value: T) -> T:
    """The same, with `clean` texts at any depth."""
    if isinstance(value, str):
        return clean(value)  # type: ignore[return-value]
    if isinstance(value, dict):
        return {clean(str(key)): _harmless(inner) for key, inner in value.items()}  # type: ignore[return-value]
    return [_harmless(inner) for inner in value] if isinstance(value, list) else value  # type: ignore[return-value]


def age(since: float | None) -> str:
    """`12s`, `5m`, `3h`, `2d`."""
    if since is None:
        return "-"
    passed = max(0, int(time.time() - since))
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if passed >= length:
            return f"{passed // length}{unit}"
    return f"{passed}s"


def on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def colour(text: str, code: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{code}m{text}\033[0m"
