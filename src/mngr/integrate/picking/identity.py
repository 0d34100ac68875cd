"""Changes that are the same, found by what they do: the lines with those around them, wherever in the file they stand,
and what has no lines as it is. An indentation that differs is another change.

The same text can stand twice in a file, so that equal patches alone prove nothing: changes count as the same only if
the second one does nothing more where the first one is."""

from __future__ import annotations

from hashlib import sha256

from mngr.integrate.change import Group
from mngr.integrate.picking.difference import differences
from mngr.integrate.picking.pick import pick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.integrate.change import Change
    from mngr.integrate.picking.difference import Entry
    from mngr.integrate.picking.scratch import Scratch

_DIFF = ("-p", "-r", "--no-renames", "--full-index", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
_REVERSE = ("-R", "--src-prefix=b/", "--dst-prefix=a/")  # git has turned them round by then, and they count


def groups(scratch: Scratch, changes: Sequence[Change]) -> list[Group]:
    """In the order in which each was made first. One branch is in a group once: what it does, undoes and does again
    are three changes."""
    entries = differences(scratch, [(change.id, change.parent) for change in changes], renames=False)
    patches = patch_ids(scratch, changes)
    found: dict[str, list[Change]] = {}
    times: dict[tuple[str, str], int] = {}
    for change in changes:
        mine = entries[change.id]
        key = _key("fix" if change.is_fix else "other", patches.get(change.id, ""), *map(_without_lines, mine))
        times[key, change.branch] = time = times.get((key, change.branch), 0) + 1
        if time > 1:
            key = _key(key, f"time {time} on its branch")
        if key in found and not _is_same(scratch, found[key][0], change, entries):
            key = _key(key, *map(_exactly, mine))
        found.setdefault(key, []).append(change)
    return [Group(key=key, changes=same) for key, same in found.items()]


def patch_ids(scratch: Scratch, changes: Sequence[Change], *, reverse: bool = False) -> dict[str, str]:
    """By the change's id; those without lines have none. In reverse: of what would undo it."""
    if not changes:
        return {}
    asked = "".join(f"{id}\n" for id in dict.fromkeys(change.id for change in changes))
    patches = scratch.git("diff-tree", "--stdin", *_DIFF, *(_REVERSE if reverse else ()), input=asked.encode())
    said = scratch.git("patch-id", "--verbatim", input=(patches + "\n").encode("utf-8", "surrogateescape"))
    pairs = [line.split(" ") for line in said.splitlines()]
    return {id: patch for patch, id in pairs}


def _is_same(scratch: Scratch, first: Change, other: Change, entries: dict[str, list[Entry]]) -> bool:
    one = {entry.path: (entry.before, entry.after) for entry in entries[first.id]}
    two = {entry.path: (entry.before, entry.after) for entry in entries[other.id]}
    if one == two:
        return True
    if any(before == one[path][0] and after != one[path][1] for path, (before, after) in two.items()):
        return False
    tree = scratch.tree_of(first.id)
    picked = pick(scratch, tree, other)
    return picked.is_clean and picked.tree == tree


def _without_lines(entry: Entry) -> str:
    """What of it a patch does not show: everything of a binary file, a link, a submodule, an empty file."""
    modes = [side[0] if side else "" for side in (entry.before, entry.after)]
    is_plain = entry.is_text and all(modes) and all(mode.startswith("100") for mode in modes)
    return "\0".join([entry.path, *modes]) if is_plain else _exactly(entry)


def _exactly(entry: Entry) -> str:
    return "\0".join([entry.path, *(word for side in (entry.before, entry.after) for word in side or ("", ""))])


def _key(*words: str) -> str:
    content = "\0\0".join(words).encode("utf-8", "surrogateescape")
    return sha256(content).hexdigest()
