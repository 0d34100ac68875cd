"""Text as Markdown that means just this text. What agents wrote comes through here on its way into a pull request: it
can form no table, heading, link or HTML, mentions nobody, and refers to (or closes) no issue."""

from __future__ import annotations

import re

from mngr.integrate import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# As entities and not behind a backslash: tables take backslashes away before anything else is read.
_ENTITIES = {ord(char): f"&#{ord(char)};" for char in "\\`*[]{}|~$"} | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}
_LONE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# Forges look for these in what is rendered, so that no way of escaping helps: an invisible blank goes in between.
_REFERENCE = re.compile(r"@(?=\w)|[#!](?=\d)|\bGH-(?=\d)|://|\bwww\.(?=\w)", re.IGNORECASE)
_INVISIBLE = "\N{ZERO WIDTH SPACE}"
_BLOCK = re.compile(r"[#+=:>-]|\d+(?=[.)])")  # what begins a heading, a list or a line, at the start of a text
_RUN = re.compile(r"`+")


def prose(text: str, most: int = 400) -> str:
    """On one line."""
    text = plain.shortened(plain.words(text), most).replace(_INVISIBLE, "")
    text = _REFERENCE.sub(lambda found: found[0] + _INVISIBLE, text)
    text = _LONE_UNDERSCORE.sub("&#95;", text.translate(_ENTITIES))
    begin = _BLOCK.match(text)
    return f"{_INVISIBLE}{text}" if begin is not None else text


def code(text: str, most: int = 300) -> str:
    """On one line, as it is: for what one may want to copy."""
    text = plain.shortened(plain.one_line(text), most)
    if not text:
        return ""
    if not set("`|\\").isdisjoint(text):
        text = re.sub(r"[^\w /.,:-]", lambda char: f"&#{ord(char[0])};", text)
        return f"<code>{re.sub('_', '&#95;', text)}</code>"
    return f"`{text}`"


def fence(text: str, language: str = "text") -> str:
    text = plain.several_lines(text)
    longest = max((len(run) for run in _RUN.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Its lines. The cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def details(summary: str, content: str) -> str:
    """`summary` is HTML; the content is Markdown, and needs the empty lines to be read as such."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"
