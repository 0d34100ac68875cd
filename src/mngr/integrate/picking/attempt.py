"""One change onto one tree: by itself, as its conflict was resolved before, or as a union of both sides. What comes of
it depends on these alone and is remembered, so that a plan which differs in its end only is quickly built again."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from mngr.integrate.picking.pick import Picked, pick
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.picking.union import union
from mngr.integrate.plain import few
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.integrate.change import Change

    Solve = Callable[[Change, Picked, str], str | None]

UNION, RESOLVED = "union", "resolved"


class Came(Record):
    """It is in."""

    tree: str
    how: str = ""  # UNION or RESOLVED; empty: by itself
    text: str = ""  # of that, for people


class _Known:
    __slots__ = ("is_tried", "picked", "union")

    def __init__(self, picked: Picked) -> None:
        self.picked = picked
        self.is_tried = False
        self.union: str | None = None


_known: WeakKeyDictionary[Scratch, dict[tuple[str, str, str], _Known]] = WeakKeyDictionary()


def attempt(scratch: Scratch, onto: str, change: Change, solved: Solve | None) -> Came | Picked:
    """The conflict, if there is no way. `solved` gives the tree for a change, its conflict, and the tree below it."""
    known = _pick(scratch, onto, change)
    picked = known.picked
    if picked.is_clean:
        return Came(tree=picked.tree)
    paths = few(picked.paths)
    if solved and (tree := solved(change, picked, onto)):
        return Came(tree=tree, how=RESOLVED, text=f"a conflict in {paths} was resolved")
    if not known.is_tried:
        known.union, known.is_tried = union(scratch, picked, change.kind), True
    if known.union:
        return Came(tree=known.union, how=UNION, text=f"the additions of both sides were kept in {paths}")
    return picked


def picked_onto(scratch: Scratch, onto: str, change: Change) -> Picked:
    """By itself."""
    return _pick(scratch, onto, change).picked


def _pick(scratch: Scratch, onto: str, change: Change) -> _Known:
    before = _known.setdefault(scratch, {})
    key = onto, change.parent, change.id
    if key not in before:
        before[key] = _Known(pick(scratch, onto, change))
    return before[key]
