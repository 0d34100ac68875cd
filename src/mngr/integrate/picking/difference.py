"""What commits do to their parents, path by path, for many commits with one call of git. Modes and objects are told as
they are, so that links, submodules and binary files are like any other."""

from __future__ import annotations

from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mngr.integrate.picking.scratch import Scratch

_NOTHING = "000000"  # the mode of what is not there


class Entry(Record):
    """One path. What it was and is: mode and object, None for nothing."""

    path: str
    before: tuple[str, str] | None
    after: tuple[str, str] | None
    source: str = ""  # the path that it was before, if it was renamed
    added: int = 0  # lines
    removed: int = 0
    is_text: bool = True  # to git: its lines can be counted

    @property
    def paths(self) -> list[str]:
        return [self.source, self.path] if self.source else [self.path]

    @property
    def edits(self) -> dict[str, tuple[str, str] | None]:
        """What has to be done to a tree for it."""
        return {self.source: None, self.path: self.after} if self.source else {self.path: self.after}


def differences(
    scratch: Scratch, commits: Iterable[tuple[str, str | None]], *, renames: bool
) -> dict[str, list[Entry]]:
    """Of each commit to the parent that is named with it, None for one that has no parent. A commit that changes
    nothing has an empty list."""
    pairs = list(commits)
    found: dict[str, list[Entry]] = {commit: [] for commit, _ in pairs}
    lines = "".join(f"{commit} {parent}\n" if parent else f"{commit}\n" for commit, parent in pairs)
    how = ["-M"] if renames else ["--no-renames"]
    flags = ["-r", "-z", "--root", "--raw", "--numstat", "--no-ext-diff", "--ignore-submodules=none", *how]
    if pairs:
        said = scratch.git("diff-tree", "--stdin", *flags, input=lines.encode())
        found.update(_read(iter(said.split("\0")[:-1])))
    return found


def _read(words: Iterator[str]) -> Iterator[tuple[str, list[Entry]]]:
    """Of each commit git tells its id, then its paths with modes and objects, then its paths with lines."""
    commit, entries = "", dict[str, Entry]()
    for word in words:
        if word.startswith(":"):
            entry = _entry(word[1:].split(" "), words)
            entries[entry.path] = entry
        elif "\t" in word:
            added, removed, path = word.split("\t", 2)
            if not path:  # it was renamed: from and to
                next(words)
                path = next(words)
            counts = {"is_text": False} if added == "-" else {"added": int(added), "removed": int(removed)}
            entries[path] = entries[path].replace(**counts)
        else:
            if commit:
                yield commit, list(entries.values())
            commit, entries = word, {}
    if commit:
        yield commit, list(entries.values())


def _entry(about: list[str], words: Iterator[str]) -> Entry:
    mode_before, mode_after, before, after, status = about
    path, source = next(words), ""
    if status[0] in "RC":
        path, source = next(words), path
    return Entry(
        path=path,
        source=source if status[0] == "R" else "",
        before=None if mode_before == _NOTHING else (mode_before, before),
        after=None if mode_after == _NOTHING else (mode_after, after),
    )
