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

JSON_OPTION = option("--json", "print JSON")
JSON_OPTIONS = (JSON_OPTION, option("--jsonl", "print one line of JSON per item"))


def notice(text: str) -> None:
    """One line about what happened on the way, for people."""
    print(f"mngr: {text}", file=sys.stderr)


def print_json(value: object, *, indent: int | None = 2) -> None:
    import json

    print(json.dumps(value, indent=indent, ensure_ascii=False, default=str).encode("utf-8", "replace").decode())


def print_table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> None:
    """Columns by width; the last one may run over. Control characters never reach the terminal."""
    table = [[clean(cell) for cell in row] for row in (head, *rows)]
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


def print_formatted(items: Sequence[dict[str, object]], template: str) -> None:
    r"""`--format '{name}\t{state}'`: one line per item; \t and \n are understood."""
    template = template.replace("\\t", "\t").replace("\\n", "\n")
    for item in items:
        try:
            print(template.format_map(item))
        except (KeyError, ValueError, IndexError, AttributeError, TypeError, MemoryError, OverflowError) as error:
            known = ", ".join(item)
            raise UsageError(f"--format {template!r}: {type(error).__name__} {error}", f"fields: {known}") from None


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
