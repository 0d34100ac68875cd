"""What was put into a checkout besides its tree, by copying or by a setup, and whether it is still as it was. It is too
large to be kept twice, so it is looked at and not restored: what tests have added to it is removed, and when they have
changed or removed some of it, the checkout must be made anew. Only files of the tree that the setup has changed are
kept, since git would take that back from one tree to the next."""

from __future__ import annotations

import os
import shutil
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Entry = tuple[str, str] | None  # of a tree: mode and object
    Entries = Callable[[Iterable[str]], Mapping[str, Entry]]
    Look = tuple[int, int, int] | str

# What git keeps there decides how later commands end: a test may have made a branch, a hook, or a setting.
_OF_GIT = (".git/config", ".git/hooks/", ".git/info/", ".git/refs/")
_BYTECODE = "__pycache__"


class Made:
    """`roots` are paths below `top`, directories with a slash at their end. `changed` are those of the tree that are
    not as the tree has them, which `entries` asks; they are kept in `store`."""

    def __init__(self, top: str, roots: Iterable[str], changed: Iterable[str], entries: Entries, store: str) -> None:
        self._top, self._store = top, store
        self._roots = [*roots, *_OF_GIT]
        self._files = _looks(top, self._roots)
        self._changed = dict(entries(list(changed)))
        shutil.rmtree(store, ignore_errors=True)
        os.makedirs(store)
        for number, path in enumerate(self._changed):
            if os.path.lexists(os.path.join(top, path)):
                shutil.copy2(os.path.join(top, path), self._kept(number), follow_symlinks=False)

    def has(self, path: str) -> bool:
        return any(path == root or (root.endswith("/") and path.startswith(root)) for root in self._roots)

    def remove_what_was_added(self, remove: Callable[[str], None]) -> None:
        for path in _looks(self._top, self._roots):
            if path not in self._files and not self._is_bytecode_of_ours(path):
                remove(os.path.join(self._top, path))

    def is_whole(self, entries: Entries) -> bool:
        """Can it stay, with another tree beside it? `entries` asks that one."""
        now = _looks(self._top, self._roots)
        is_same = all(now.get(path) == look for path, look in self._files.items() if _BYTECODE not in path.split("/"))
        return is_same and dict(entries(list(self._changed))) == self._changed

    def change_again(self, remove: Callable[[str], None]) -> None:
        """What the setup has changed of the tree."""
        for number, path in enumerate(self._changed):
            place, kept = os.path.join(self._top, path), self._kept(number)
            remove(place)
            if os.path.lexists(kept):
                os.makedirs(os.path.dirname(place), exist_ok=True)
                shutil.copy2(kept, place, follow_symlinks=False)

    def _kept(self, number: int) -> str:
        return os.path.join(self._store, str(number))

    def _is_bytecode_of_ours(self, path: str) -> bool:
        """It is as true as its source, which we look at."""
        directory, name = os.path.split(path)
        above, last = os.path.split(directory)
        if name == _BYTECODE:
            return True
        return last == _BYTECODE and os.path.join(above, name.partition(".")[0] + ".py") in self._files


def _looks(top: str, roots: Iterable[str]) -> dict[str, Look]:
    """By path: what changes when somebody writes to it. Of a directory only that it is there."""
    found: dict[str, Look] = {}
    for root in roots:
        place = os.path.join(top, root.rstrip("/"))
        if not os.path.isdir(place) or os.path.islink(place):
            if os.path.lexists(place):
                found[root.rstrip("/")] = _look(place)
            continue
        is_of_git = root.startswith(".git/")  # which removes what is empty
        for directory, names, files in os.walk(place):
            below = os.path.relpath(directory, top)
            links = [name for name in names if os.path.islink(os.path.join(directory, name))]
            for name in [*files, *links]:
                found[os.path.join(below, name)] = _look(os.path.join(directory, name))
            if not is_of_git:
                found.update((os.path.join(below, name), "") for name in names if name not in links)
    return found


def _look(path: str) -> Look:
    about = os.lstat(path)
    return os.readlink(path) if stat.S_ISLNK(about.st_mode) else (about.st_mode, about.st_size, about.st_mtime_ns)
