"""What a change conflicts with. Every tree of a stack has come of a pick onto another tree, so from the one with the
conflict there is a way back to the base. A pick has a part in the conflict if there is another one below it, or none.
Such picks are searched by halving: where a conflict is the same at both ends of the way, nothing in between counts."""

from __future__ import annotations

from mngr.integrate.picking.attempt import picked_onto
from mngr.integrate.picking.hunks import sides
from mngr.integrate.picking.kinship import touches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.integrate.change import Group
    from mngr.integrate.picking.pick import Picked
    from mngr.integrate.picking.scratch import Scratch

_MOST = 40  # trees that are tried for one conflict: enough for several picks among thousands


class Trace:
    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._came: dict[str, tuple[Group, str]] = {}  # by tree: the pick, and the tree it was picked onto
        self._base = scratch.tree_of(scratch.base)

    def note(self, group: Group, onto: str, tree: str) -> None:
        """The first way to a tree counts. It leads from trees that were there before, and so never in a circle."""
        if tree != self._base:
            self._came.setdefault(tree, (group, onto))

    def against(self, group: Group, picked: Picked, onto: str) -> list[Group]:
        """The earliest first."""
        way = self._way(onto, {*picked.paths, *group.first.paths})
        shapes = {len(way): self._shape(group, picked)}  # of the conflict, by how many of these picks are in
        found: list[Group] = []
        ranges = [(0, len(way))]
        while ranges and len(shapes) < _MOST:
            low, high = ranges.pop()
            for place in (low, high):
                if place not in shapes:
                    shapes[place] = self._shape(group, picked_onto(self._scratch, way[place][1], group.first))
            if low == high or shapes[low] == shapes[high]:
                continue
            if low + 1 == high:
                found.append(way[low][0])
            else:
                middle = (low + high) // 2
                ranges += [(middle, high), (low, middle)]
        return found

    def _way(self, tree: str, paths: set[str]) -> list[tuple[Group, str]]:
        """The picks that touch these paths, each with the tree below it."""
        found: list[tuple[Group, str]] = []
        while tree in self._came:
            group, tree = self._came[tree]
            if touches(group, paths):
                found.append((group, tree))
        return found[::-1]

    def _shape(self, group: Group, picked: Picked) -> list[tuple[str, str, str]]:
        """What a conflict looks like, wherever in the file it is."""
        return sides(self._scratch, picked, group.first.id)
