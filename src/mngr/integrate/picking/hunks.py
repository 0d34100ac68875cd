"""Both sides of a conflict, short, for whoever has to decide: what is integrated, and what the change wants in its
place. They are read from the file that git has left with its markers, which are known by the commits they name: text
that only looks like a marker is none."""

from __future__ import annotations

import re

from mngr.integrate.picking.pick import OURS, THEIRS, in_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.integrate.picking.pick import Picked
    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Left

_MOST = 20  # hunks of one conflict
_MOST_LINES = 40  # of one side
_WIDEST = 300  # characters
_LARGEST = 1 << 20  # bytes of a file that is looked into
_MIDDLE = "======="
_BEGIN = re.compile(r"<<<<<<< [0-9a-f]{40,64}(:.*)?")
_ID = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")


def both_sides(scratch: Scratch, left: Left) -> list[dict[str, str]]:
    """{path, ours, theirs}, for each place. Where there is no text to show, it is said what each side has; of a path
    that both have left, what is at the new ones."""
    found = sides(scratch, left.picked, left.group.first.id)
    return [{"path": path, "ours": ours, "theirs": theirs} for path, ours, theirs in found[:_MOST]]


def sides(scratch: Scratch, picked: Picked, change: str) -> list[tuple[str, str, str]]:
    """Of all places; `change` is the commit that was picked."""
    found: list[tuple[str, str, str]] = []
    merged = scratch.entries(picked.tree, picked.conflicts) if picked.conflicts else {}
    for path, entry in merged.items():
        places = _places(scratch, entry, change)
        if not places and not {OURS, THEIRS}.isdisjoint(picked.conflicts[path]):
            places = [(_has(picked, path, OURS), _has(picked, path, THEIRS))]
        found += [(in_place(path), ours, theirs) for ours, theirs in places]
    return found


def said_by_git(left: Left) -> list[str]:
    """Its own words, without the ids of commits that nobody will ever see."""
    own = left.group.first.id
    return [_ID.sub(lambda id: "this change" if id[0] == own else "the branch", line) for line in left.picked.said]


def _places(scratch: Scratch, entry: tuple[str, str] | None, change: str) -> list[tuple[str, str]]:
    if entry is None or not entry[0].startswith("100"):
        return []
    content = scratch.blob(entry[1])
    if len(content) > _LARGEST or b"\0" in content:
        return []
    end = re.compile(rf">>>>>>> {change}(:.*)?")
    found: list[tuple[str, str]] = []
    sides: list[list[str]] = []
    for line in content.decode("utf-8", "surrogateescape").split("\n"):
        line = line.removesuffix("\r")
        if not sides and _BEGIN.fullmatch(line):
            sides = [[]]
        elif len(sides) == 1 and line == _MIDDLE:
            sides.append([])
        elif len(sides) == 2 and end.fullmatch(line):
            found.append((_short(sides[0]), _short(sides[1])))
            sides = []
        elif sides:
            sides[-1].append(line)
    return found


def _short(lines: list[str]) -> str:
    more = len(lines) - _MOST_LINES
    shown = [line if len(line) <= _WIDEST else f"{line[:_WIDEST]}..." for line in lines[:_MOST_LINES]]
    return "\n".join([*shown, *([f"[{more} more lines]"] if more > 0 else [])])


def _has(picked: Picked, path: str, stage: str) -> str:
    entry = picked.conflicts[path].get(stage)
    if entry is None:
        return "[not there]"
    kind = {"120000": "a symbolic link", "160000": "a submodule"}.get(entry[0], "a file")
    return f"[{kind}, mode {entry[0]}, {entry[1][:10]}]"
