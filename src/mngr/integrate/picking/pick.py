"""Cherry-picks without a checkout. What a change does to its parent is done to any other tree by a merge of three:
the parent, the change, and that tree in the place of another commit on the same parent. The result is the tree that
`git cherry-pick` leaves in a work tree, or the same conflict."""

from __future__ import annotations

import re

from mngr.errors import MngrError
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.integrate.change import Change
    from mngr.integrate.picking.scratch import Scratch

BASE, OURS, THEIRS = "1", "2", "3"  # stages, as git numbers them
_ASIDE = re.compile(r"~[0-9a-f]{40}(?:[0-9a-f]{24})?(?:_\d+)?\Z")


class Picked(Record):
    """What came of it. With conflicts, `tree` has what could be merged, and markers where nothing could be."""

    tree: str
    conflicts: dict[str, dict[str, tuple[str, str]]] = {}  # noqa: RUF012 - by path: stage to mode and object; rarely none at all
    said: list[str] = []  # noqa: RUF012 - by git, a line for each conflict

    @property
    def is_clean(self) -> bool:
        return not self.conflicts

    @property
    def paths(self) -> list[str]:
        """That conflict, as people know them."""
        return sorted({in_place(path) for path in self.conflicts})


def pick(scratch: Scratch, onto: str, change: Change) -> Picked:
    """`onto` is a tree."""
    return merge(scratch, change.parent, onto, change.id)


def unpick(scratch: Scratch, tree: str, commit: str, parent: str) -> Picked:
    """What `git revert` would do: `commit`, whose parent is `parent`, is taken out of a tree that has it."""
    then = scratch.commit(scratch.tree_of(parent), [commit])
    return merge(scratch, commit, tree, then)


def merge(scratch: Scratch, base: str, ours: str, theirs: str) -> Picked:
    """`ours` is a tree; `theirs` a commit whose only parent is the commit `base`."""
    mine = scratch.commit(ours, [base])
    done = scratch.run("merge-tree", "--write-tree", "-z", "--messages", mine, theirs)
    if done.code not in (0, 1):
        said = done.err.strip().splitlines()
        raise MngrError(f"git merge-tree failed: {said[-1] if said else done.code}")
    tree, _, rest = done.out.partition("\0")
    if done.code == 0:
        return Picked(tree=tree)
    conflicts: dict[str, dict[str, tuple[str, str]]] = {}
    words = rest.split("\0")
    end = words.index("")
    for line in words[:end]:
        about, _, path = line.partition("\t")
        mode, object, stage = about.split(" ")
        conflicts.setdefault(path, {})[stage] = (mode, object)
    told = _told(words[end + 1 :])
    if not conflicts:  # such as a directory that was renamed to several places: of no file there are two sides
        conflicts = {path: {} for _, paths in told for path in paths} or {"": {}}
    return Picked(tree=tree, conflicts=conflicts, said=[message for message, _ in told])


def in_place(path: str) -> str:
    """Where the file belongs that git has put aside, with a commit behind its name, because the other side has
    something else there: a directory, a link."""
    return _ASIDE.sub("", path)


def _told(words: list[str]) -> list[tuple[str, list[str]]]:
    """Conflicts, and their paths. Each word of git is a count, so many paths, a type and a message."""
    told, place = [], 0
    while place < len(words) and words[place].isdecimal():
        start = place + 1
        end = start + int(words[place])
        kind, message = words[end], words[end + 1]
        if kind.startswith("CONFLICT"):
            told.append((message.strip(), words[start:end]))
        place = end + 2
    return told
