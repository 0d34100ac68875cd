"""How changes belong together, by what their branches and commits say: what one builds on, what it comes after, and
which two are halves of one commit."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mngr.integrate.change import Group


def touches(group: Group, paths: Collection[str]) -> bool:
    """It changes one of these, or something below one: a file can stand where another change has a directory."""
    return any(path in paths or any(above in paths for above in _above(path)) for path in group.first.paths)


def _above(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:number]) for number in range(1, len(parts) + 1)]


def comes_after(group: Group, other: Group) -> bool:
    """The same branch has made the other one before."""
    first = group.first
    return any(each.branch == first.branch and each.place < first.place for each in other.changes)


def builds_on(group: Group, other: Group) -> bool:
    """The same branch has changed the same path before."""
    first = group.first
    return any(
        each.branch == first.branch and each.place < first.place and not set(first.paths).isdisjoint(each.paths)
        for each in other.changes
    )


def bereft(rest: Iterable[Group], fixes: Sequence[Group], out: Collection[str]) -> dict[str, str]:
    """By key: of the rest, the halves of commits whose fixes are out, each with that fix. What somebody has also made
    without such a fix, or with one that is in, stands for itself. `out` are keys."""
    fix_of = {(change.branch, change.commit): fix.key for fix in fixes for change in fix.changes}
    found = {}
    for group in rest:
        own = [fix_of.get((change.branch, change.commit), "") for change in group.changes]
        if all(key in out for key in own):
            found[group.key] = own[0]
    return found
