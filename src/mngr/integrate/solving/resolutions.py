"""What was decided about conflicts, so that it is decided once. A resolution is found again by the conflict itself: by
the path and the three versions that git could not merge. So it is an input of the next integration like any branch,
and the same inputs give the same commits, whoever solved what. If others have changed such a file meanwhile, and at
another place, their change and the resolution are merged.

Nobody else's work is ever overwritten by one: a file beyond the conflict counts only if it was the same then."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile

from mngr import jsonline
from mngr.errors import MngrError
from mngr.integrate.picking.pick import BASE, OURS, THEIRS
from mngr.integrate.picking.threeway import is_text, three_way
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mngr.integrate.change import Change
    from mngr.integrate.picking.pick import Picked
    from mngr.integrate.picking.scratch import Scratch

    Files = Mapping[str, tuple[str, bytes] | None]  # by path: mode and content; None: it is no more
    _Alike = frozenset[tuple[str, str, str]]  # paths, with the objects of base and theirs

PLACE = "resolutions"  # in the directory of an integration
_META = "meta.json"
_SUBMODULE = "160000"


class Side(Record):
    """What a file in conflict was when it was solved."""

    base: str  # objects; empty: there was none
    theirs: str
    ours: bytes


class Resolution(Record):
    files: dict[str, tuple[str, bytes] | None]  # content of a submodule: the id of its commit
    before: dict[str, str]  # what git had made of the files that were in no conflict: mode and object, or nothing
    sides: dict[str, Side]  # of the regular files that were in conflict
    by: str = ""
    why: str = ""


def key_of(picked: Picked) -> str:
    """The same for the same conflict, in any integration."""
    lines = [
        f"{path}\0{stage}\0{mode}\0{object}\0"
        for path, stages in sorted(picked.conflicts.items())
        for stage, (mode, object) in sorted(stages.items())
    ]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


class Resolutions:
    """Those in `directory`, that of an integration. `say` gets a line for one that cannot be used."""

    def __init__(self, directory: str, scratch: Scratch, say: Callable[[str], None] = lambda _: None) -> None:
        self._place = os.path.join(directory, PLACE)
        self._scratch, self._say = scratch, say
        self._told: set[str] = set()
        self._keys: dict[_Alike, list[str]] | None = None

    def get(self, key: str) -> Resolution | None:
        where = os.path.join(self._place, key)
        if not os.path.isdir(where):
            return None
        try:
            return _read(where)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            self._tell(key, f"the resolution in {where} is damaged ({error}) and passed over")
            return None

    def put(
        self,
        key: str,
        files: Files,
        by: str,
        why: str,
        before: Mapping[str, str] | None = None,
        sides: Mapping[str, Side] | None = None,
    ) -> None:
        """In the place of an earlier one; there as a whole, or not at all."""
        draft = ""
        try:
            os.makedirs(self._place, exist_ok=True)
            draft = tempfile.mkdtemp(prefix=".new.", dir=self._place)
            _write(draft, files, sides or {}, {"by": by, "why": why, "before": dict(before or {})})
            target = os.path.join(self._place, key)
            if os.path.lexists(target):
                os.rename(target, os.path.join(draft, "old"))
            os.rename(draft, target)
            shutil.rmtree(os.path.join(target, "old"), ignore_errors=True)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise MngrError(f"a resolution cannot be kept in {self._place}: {error.strerror}") from None
        self._told.discard(key)
        self._keys = None

    def tree(self, picked: Picked, files: Files) -> str:
        """What `picked` becomes with these files."""
        return self._scratch.edit_tree(picked.tree, {path: self._entry(file) for path, file in files.items()})

    def solve(self, change: Change, picked: Picked, onto: str) -> str | None:
        """The tree that `picked` becomes, if anybody has solved just this conflict; what stack.build asks."""
        key = key_of(picked)
        found = self.get(key)
        if found is None:
            return self._brought_up_to_date(change, picked)
        if missing := [path for path in picked.conflicts if path not in found.files]:
            self._tell(key, f"the resolution for {change.subject!r} says nothing about {missing[0]}: it is passed over")
            return None
        if moved := self._moved(picked, found):
            self._tell(key, f"the resolution for {change.subject!r} is of another {moved}: it is passed over")
            return None
        return self.tree(picked, found.files)

    def earlier(self, picked: Picked) -> str:
        """Where a resolution of this very change is kept that does not fit any more; empty if there is none."""
        return next((os.path.join(self._place, key) for key in self._alike(picked)), "")

    def _brought_up_to_date(self, change: Change, picked: Picked) -> str | None:
        for key in self._alike(picked):
            found = self.get(key)
            if found and not self._moved(picked, found) and (files := self._merged(picked, found)):
                changed = ", ".join(sorted(picked.conflicts))
                self._tell(
                    key_of(picked),
                    f"the resolution for {change.subject!r} is merged with what others have changed in {changed} since",
                )
                return self.tree(picked, files)
        return None

    def _merged(self, picked: Picked, found: Resolution) -> Files | None:
        files = dict(found.files)
        for path, stages in picked.conflicts.items():
            then, file = found.sides[path].ours, files.get(path)
            now = self._scratch.blob(stages[OURS][1])
            if file is None or not file[0].startswith("100") or not is_text(now, then, file[1]):
                return None
            content, is_clean = three_way(now, then, file[1])
            if not is_clean:
                return None
            files[path] = (file[0], content)
        return files

    def _alike(self, picked: Picked) -> list[str]:
        """Keys of what was solved with another version of ours alone."""
        if self._keys is None:
            self._keys = {}
            for key in sorted(os.listdir(self._place)) if os.path.isdir(self._place) else []:
                found = None if key.startswith(".") else self.get(key)
                if found and found.sides:
                    alike = frozenset((path, side.base, side.theirs) for path, side in found.sides.items())
                    self._keys.setdefault(alike, []).append(key)
        sides = picked.conflicts.items()
        if not all({OURS, THEIRS} <= stages.keys() for _, stages in sides):
            return []
        wanted = frozenset((path, stages.get(BASE, ("", ""))[1], stages[THEIRS][1]) for path, stages in sides)
        return self._keys.get(wanted, [])

    def _moved(self, picked: Picked, found: Resolution) -> str:
        """The first file beyond the conflict that was another one when this was decided."""
        others = [path for path in found.files if path not in picked.conflicts]
        now = self._scratch.entries(picked.tree, others)
        return next((path for path in others if entry_text(now[path]) != found.before.get(path, "")), "")

    def _entry(self, file: tuple[str, bytes] | None) -> tuple[str, str] | None:
        if file is None:
            return None
        mode, content = file
        return (mode, content.decode("ascii") if mode == _SUBMODULE else self._scratch.store(content))

    def _tell(self, key: str, text: str) -> None:
        """Once: the same conflict is met in every build."""
        if key not in self._told:
            self._told.add(key)
            self._say(text)


def entry_text(entry: tuple[str, str] | None) -> str:
    return " ".join(entry) if entry else ""


def _write(where: str, files: Files, sides: Mapping[str, Side], about: dict[str, Any]) -> None:
    contents: list[bytes] = []

    def kept(content: bytes) -> dict[str, str]:
        contents.append(content)
        return {"file": str(len(contents) - 1), "sha256": hashlib.sha256(content).hexdigest()}

    listed = [
        {"path": path} if file is None else {"path": path, "mode": file[0], **kept(file[1])}
        for path, file in sorted(files.items())
    ]
    ours = [
        {"path": path, "base": side.base, "theirs": side.theirs, **kept(side.ours)}
        for path, side in sorted(sides.items())
    ]
    for number, content in enumerate(contents):
        with open(os.path.join(where, str(number)), "wb") as out:
            out.write(content)
    with open(os.path.join(where, _META), "w", encoding="ascii") as meta:
        meta.write(jsonline.dumps({**about, "files": listed, "sides": ours}) + "\n")


def _read(where: str) -> Resolution:
    with open(os.path.join(where, _META), encoding="ascii") as file:
        meta = jsonline.loads(file.read())
    files: dict[str, tuple[str, bytes] | None] = {}
    for each in meta["files"]:
        files[each["path"]] = (each["mode"], _content(where, each)) if "mode" in each else None
    sides = {
        each["path"]: Side(base=each["base"], theirs=each["theirs"], ours=_content(where, each))
        for each in meta.get("sides", [])
    }
    before = {str(path): str(entry) for path, entry in meta["before"].items()}
    return Resolution(files=files, before=before, sides=sides, by=str(meta["by"]), why=str(meta["why"]))


def _content(where: str, each: dict[str, str]) -> bytes:
    if not each["file"].isdecimal():
        raise ValueError(f"{each['file']} is no file of it")
    with open(os.path.join(where, each["file"]), "rb") as file:
        content = file.read()
    if hashlib.sha256(content).hexdigest() != each["sha256"]:
        raise ValueError(f"{each['path']} has changed")
    return content
