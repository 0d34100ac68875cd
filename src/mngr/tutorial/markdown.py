"""A README as a tutorial: each fenced code block of a shell is a block, and the heading above it is its section. Where
commands stand behind a prompt (`$ `), the other lines show output, and are part of the block as of the example."""

from __future__ import annotations

import re

from mngr.e2e.block import block_id, normalise
from mngr.tutorial.blocks import Blank, Block, Problem, Tutorial

_SHELLS = frozenset("sh bash zsh shell console shell-session shellsession terminal".split())
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})\s*(?P<language>[\w+-]*)(?P<rest>[^`]*)")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(?P<title>.*?)(?:\s+#+)?\s*")


def parse_markdown(text: str, path: str = "") -> Tutorial:
    blocks: list[Block] = []
    blanks: list[Blank] = []
    problems: list[Problem] = []
    section = ""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    index = 0
    while index < len(lines):
        fence = _FENCE.fullmatch(lines[index])
        if not fence:
            heading = _HEADING.fullmatch(lines[index])
            section = heading["title"] if heading else section
            index += 1
            continue
        begin = index + 1
        end = _end(lines, begin, fence["mark"])
        if end is None:
            problems.append(Problem(file=path, line=index + 1, message="this code block has no end"))
            break
        shown = normalise("\n".join(lines[begin:end]))
        if fence["language"].lower() in _SHELLS and shown:
            if all(line.lstrip().startswith("#") or not line.strip() for line in shown.split("\n")):
                blanks.append(Blank(text=shown, section=section, line=begin + 1, end=end))
            else:
                blocks.append(Block(id=block_id(shown), text=shown, section=section, line=begin + 1, end=end))
        index = end + 1
    return Tutorial(path=path, blocks=blocks, blanks=blanks, problems=problems)


def _end(lines: list[str], begin: int, mark: str) -> int | None:
    """A fence is closed by one of the same kind, at least as long, with nothing behind it."""
    for index in range(begin, len(lines)):
        line = lines[index].strip()
        if len(line) >= len(mark) and set(line) == {mark[0]}:
            return index
    return None
