"""What agents wrote, made safe for commit messages and pull requests. Their words are data: no character of theirs may
steer a terminal, end a line that we began, or be something that cannot be written as UTF-8."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)")
# Characters that turn the direction of what follows, so that a text reads otherwise than it is.
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSEEN = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_DIRECTIONS}\ufeff]")
_HALVES = re.compile(r"[\ud800-\udfff]")
_BREAKS = re.compile(r"\r\n|[\r\u2028\u2029]")


def several_lines(text: str) -> str:
    """Without blanks at the ends of lines, and without empty lines at its beginning and end."""
    text = _BREAKS.sub("\n", _ESCAPES.sub("", text))
    text = _HALVES.sub("\N{REPLACEMENT CHARACTER}", _UNSEEN.sub("", text))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def one_line(text: str) -> str:
    """Blanks inside of it stay as they are: the ids of tests can have any number of them."""
    return re.sub(r"[\n\t]", " ", several_lines(text)).strip()


def words(text: str) -> str:
    """On one line, with one blank between two words."""
    return " ".join(one_line(text).split())


def cut(text: str, most: int) -> tuple[str, str]:
    """A beginning of at most so many characters, that ends with a word if it can, and the rest of it. Together they are
    the text; only a blank may be missing between them."""
    if len(text) <= most:
        return text, ""
    end = text.rfind(" ", 0, most + 1)
    end = end if end > most // 2 else most
    return text[:end].rstrip(), text[end:].lstrip()


def shortened(text: str, most: int) -> str:
    begin, rest = cut(text, most)
    return begin if not rest else f"{cut(text, most - 3)[0]}..."


def shown(subject: str, most: int) -> str:
    """A commit need not have one."""
    return shortened(words(subject), most) or "(no subject)"


def counted(number: int, one: str, more: str = "") -> str:
    """`1 test`, `1,200 tests`."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def listed(names: list[str], most: int = 3) -> str:
    """`a, b and c`; of too many, the first and how many more."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most:,} more"]
    return names[0] if len(names) == 1 else " and ".join([", ".join(names[:-1]), names[-1]]) if names else ""


def few(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`, for names that are read one by one."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def at_home(path: str) -> str:
    """As a person would write it: who reads it need not know where their home lies."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
