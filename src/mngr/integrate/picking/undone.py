"""What a branch has done and then undone itself: such changes come to nothing together, and say nothing about the same
change of anybody else. Taken as they are, they would undo that too.

A change undoes an earlier one of its branch if it is its reverse, line by line, whatever came in between; and several
if all their paths are, behind it, what they were before the first of them."""

from __future__ import annotations

from mngr.integrate.picking.difference import differences
from mngr.integrate.picking.identity import patch_ids
from mngr.integrate.picking.pick import unpick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.integrate.change import Change
    from mngr.integrate.picking.difference import Entry
    from mngr.integrate.picking.scratch import Scratch


def undone(
    scratch: Scratch, changes: Sequence[Change], holders: Mapping[str, frozenset[str]]
) -> list[tuple[Change, str]]:
    """Changes that are undone, or that undo others, and why they are not taken. `holders` are the branches that have a
    commit: one that others build on is theirs as well, unless they have what undoes it, too."""
    lines: dict[tuple[str, frozenset[str]], list[Change]] = {}
    for change in changes:
        lines.setdefault((change.branch, holders[change.commit]), []).append(change)
    several = [line for line in lines.values() if len(line) > 1]
    if not several:
        return []
    asked = [change for line in several for change in line]
    entries = differences(scratch, [(change.id, change.parent) for change in asked], renames=False)
    forth, back = patch_ids(scratch, asked), patch_ids(scratch, asked, reverse=True)
    found: list[tuple[Change, str]] = []
    for line in several:
        left: list[Change] = []
        for change in line:
            gone = _reversed_by(scratch, change, left, forth, back) or _taken_back_by(change, left, entries)
            if not gone:
                left.append(change)
                continue
            left = [each for each in left if each not in gone]
            found += [(each, f"undone on its own branch, by {change.commit[:10]}") for each in gone]
            found.append((change, f"undoes {', '.join(each.commit[:10] for each in gone)} of its own branch"))
    return found


def _reversed_by(
    scratch: Scratch, change: Change, before: Sequence[Change], forth: Mapping[str, str], back: Mapping[str, str]
) -> list[Change]:
    """The latest change that this one is the reverse of. The same text can stand twice in a file, so that the patches
    alone prove nothing."""
    if change.id not in forth:
        return []
    for each in reversed(before):
        if back.get(each.id) == forth[change.id] and set(each.paths) == set(change.paths):
            came = unpick(scratch, scratch.tree_of(change.parent), each.id, each.parent)
            if came.is_clean and came.tree == scratch.tree_of(change.id):
                return [each]
    return []


def _taken_back_by(change: Change, before: Sequence[Change], entries: Mapping[str, list[Entry]]) -> list[Change]:
    """The last changes of the same paths, as many as come to nothing together with this one."""
    was = {entry.path: entry.before for entry in entries[change.id]}
    now = {entry.path: entry.after for entry in entries[change.id]}
    found: list[Change] = []
    for each in reversed(before):
        mine = entries[each.id]
        if all(entry.path not in was for entry in mine):
            continue
        if any(entry.path in was and was[entry.path] != entry.after for entry in mine):
            return []  # somebody else was at it in between
        found.insert(0, each)
        for entry in mine:
            was[entry.path] = entry.before
            now.setdefault(entry.path, entry.after)
        if was == now:
            return found
    return []
