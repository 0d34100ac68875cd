"""A conflict as people and agents know it: a small repository that holds just that, with a cherry-pick in progress.
HEAD is what is integrated so far, and the change waits to be picked onto it, with its markers in the files.

It depends on nothing but itself, so it outlives the integration that made it: whoever solves it, today or next week,
commits there, and the next integration takes the resolution from that commit."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil

from mngr import jsonline, process
from mngr.errors import MngrError
from mngr.integrate.picking.scratch import NOBODY
from mngr.integrate.picking.threeway import is_text, three_way
from mngr.integrate.plain import few
from mngr.integrate.solving.resolutions import Side, entry_text, key_of
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mngr.integrate.picking.scratch import Scratch
    from mngr.integrate.picking.stack import Left

PLACE = "conflicts"  # in the directory of an integration
BRANCH = "integration"  # in the repository of a conflict
_ABOUT = os.path.join(".git", "mngr.json")
_BASE, _ONTO, _MERGED, _CHANGE = (f"refs/mngr/{name}" for name in ("base", "onto", "merged", "change"))
_SETTINGS = """
[core]
	editor = true ; `git commit` takes the message that is there
	hooksPath = /dev/null
	quotePath = false
[commit]
	gpgSign = false
[gc]
	auto = 0
[merge]
	conflictStyle = diff3
	renames = true
[rerere]
	enabled = false
[user]
	name = mngr
	email = mngr@localhost
"""
_MARKER = re.compile(rb"(<{7,}|>{7,}|\|{7,})( .*)?$|={7}$")
_UNDOES = (
    "the whole file is taken from the change, so that what others have changed elsewhere in it would be undone; "
    "decide only between the markers (`git checkout refs/mngr/merged -- PATH` has them)"
)
_DEADLINE = 600.0


class Opened(Record):
    """The work dir of one conflict."""

    directory: str
    key: str  # of the conflict
    name: str  # of the group that could not be picked
    subject: str = ""
    paths: list[str] = []  # noqa: RUF012 - that are in conflict
    may: list[str] = []  # noqa: RUF012 - that a resolution may change: those, and what the change itself does
    untouched: str = ""  # a checksum of how it was when it was opened


class Closed(Record):
    """What somebody has made of it."""

    problem: str = ""  # why it is no resolution
    tree: str = ""  # as it is committed there
    files: dict[str, tuple[str, bytes] | None] = {}  # noqa: RUF012
    before: dict[str, str] = {}  # noqa: RUF012 - of files that were in no conflict: mode and object as git merged them
    sides: dict[str, Side] = {}  # noqa: RUF012 - of regular files that were in conflict


def open_(scratch: Scratch, left: Left, directory: str, say: Callable[[str], None] = lambda _: None) -> Opened:
    """The work dir for this conflict, in the directory of an integration. One that is there already stays as it is. One
    of another conflict of the same change makes room, and is kept if somebody has worked in it."""
    place = os.path.join(directory, PLACE, left.group.name)
    key = key_of(left.picked)
    if os.path.lexists(place):
        known = load(place)
        if known and known.key == key:
            return known
        make_room(place, known, say)
    # Everything of it is checked out: it has to be possible to run the tests there.
    try:
        return _make(scratch, left, place, key)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, OSError):
            raise MngrError(f"{place} cannot be made: {error.strerror}") from None
        raise


def close(opened: Opened) -> Closed:
    """The resolution, from what is committed there, or from the index if nothing is. Nothing is changed by asking."""
    try:
        tree = _result(opened)
        if isinstance(tree, Closed):
            return tree
        changed = _changed(opened, tree)
        if outside := sorted(set(changed) - set(opened.may)):
            return Closed(problem=f"{few(outside)}: not part of the change nor of the conflict", tree=tree)
        now = _entries(opened, tree, {*changed, *opened.paths})
        files = {path: _file(opened, entry) for path, entry in now.items()}
        if marked := [path for path in sorted(files) if _has_markers(opened, path, files[path])]:
            return Closed(problem=f"conflict markers are left in {few(marked)}", tree=tree)
        sides = _sides(opened)
        if undone := [path for path in sorted(sides) if _undoes(opened, sides[path], files[path])]:
            return Closed(problem=f"{few(undone)}: {_UNDOES}", tree=tree)
        merged = _entries(opened, _MERGED, [path for path in files if path not in opened.paths])
        before = {path: entry_text(entry) for path, entry in merged.items()}
        return Closed(tree=tree, files=files, before=before, sides=sides)
    except MngrError as error:
        return Closed(problem=f"its repository cannot be read: {error.message}")


def carry(opened: Opened, repo: str, patterns: Iterable[str]) -> None:
    """What is no part of the repository but needed to run its tests, from the user's work tree. It is never added."""
    missing = [
        path
        for pattern in patterns
        for path in glob.glob(pattern, root_dir=repo, include_hidden=True)
        if not os.path.lexists(os.path.join(opened.directory, path))
    ]
    try:
        for path in missing:
            source, target = os.path.join(repo, path), os.path.join(opened.directory, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(source):
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target)
        os.makedirs(os.path.join(opened.directory, ".git", "info"), exist_ok=True)
        with open(os.path.join(opened.directory, ".git", "info", "exclude"), "ab") as file:
            file.writelines(b"/" + _escaped(os.fsencode(path)) + b"\n" for path in missing)
    except (OSError, shutil.Error) as error:
        raise MngrError(f"{opened.directory} cannot get what it needs from {repo}: {error}") from None


def load(place: str) -> Opened | None:
    """The conflict that was opened there; None if there is none, or it cannot be read."""
    try:
        with open(os.path.join(place, _ABOUT), encoding="ascii") as file:
            return Opened(**{**Opened.from_dict(jsonline.loads(file.read())).to_dict(), "directory": place})
    except (OSError, ValueError, RecursionError):
        return None


# Opening


def _make(scratch: Scratch, left: Left, place: str, key: str) -> Opened:
    change, picked = left.group.first, left.picked
    base = scratch.commit(scratch.tree_of(scratch.base), [], "What everything is based on\n")
    onto = scratch.commit(_with_other_half(scratch, left, left.onto), [base], "What is integrated so far\n")
    made_on = scratch.commit(scratch.tree_of(change.parent), [base], f"What {change.branch} had before\n")
    message = f"{change.subject}\n\n{change.body}".strip() + "\n"
    picks = scratch.commit(scratch.tree_of(change.id), [made_on], message, change.author or NOBODY)
    as_merged = _with_other_half(scratch, left, picked.tree)
    merged = scratch.commit(as_merged, [onto], "As git merges it, with markers where it cannot\n")
    os.makedirs(os.path.dirname(place), exist_ok=True)
    form = scratch.git("rev-parse", "--show-object-format")
    os.mkdir(place)
    _git(place, "init", "--quiet", "--template=", f"--object-format={form}", f"--initial-branch={BRANCH}")
    with open(os.path.join(place, ".git", "config"), "a", encoding="ascii") as config:
        config.write(_SETTINGS)
    _fetch(scratch, place, {_BASE: base, _ONTO: onto, _MERGED: merged, _CHANGE: picks})
    _git(place, "reset", "--quiet", "--hard", _ONTO)
    done = _run(place, "cherry-pick", _CHANGE)
    if done.code not in (0, 1):
        raise MngrError(f"git cherry-pick failed in {place}: {done.err.strip()[-200:] or done.code}")
    brought = _git(place, "diff-tree", "-r", "-z", "--no-renames", "--name-only", _ONTO, _MERGED).split("\0")
    opened = Opened(
        directory=place,
        key=key,
        name=left.group.name,
        subject=change.subject,
        paths=sorted(picked.conflicts),
        may=sorted({*picked.conflicts, *change.paths, *filter(None, brought)}),
    )
    opened = opened.replace(untouched=_checksum(opened))
    with open(os.path.join(place, _ABOUT), "w", encoding="ascii") as file:
        file.write(jsonline.dumps(opened.to_dict()) + "\n")
    return opened


def _with_other_half(scratch: Scratch, left: Left, tree: str) -> str:
    """What else the commit did that the change is a part of: mostly its test. It is not in without this change, but
    whoever solves the conflict needs it. Where others have been, it is left as they made it."""
    change = left.group.first
    paths = scratch.git("diff-tree", "-r", "-z", "--no-renames", "--name-only", change.id, change.commit).split("\0")[
        :-1
    ]
    before, after = (scratch.entries(scratch.tree_of(commit), paths) for commit in (change.parent, change.commit))
    now = scratch.entries(tree, paths)
    missing = {path: after[path] for path in paths if now[path] == before[path]}
    return scratch.edit_tree(tree, missing) if missing else tree


def _fetch(scratch: Scratch, place: str, refs: dict[str, str]) -> None:
    """By references: git hands out what they lead to, and nothing else."""
    for name, commit in refs.items():
        scratch.git("update-ref", name, commit)
    words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", scratch.directory]
    try:
        _git(place, *words, *(f"+{name}:{name}" for name in refs))
    finally:
        for name in refs:
            scratch.git("update-ref", "-d", name)


def make_room(place: str, known: Opened | None, say: Callable[[str], None]) -> None:
    if known and not is_worked_on(known):
        shutil.rmtree(place, ignore_errors=True)
        return
    number = 1
    while os.path.lexists(f"{place}-old-{number}"):
        number += 1
    try:
        os.rename(place, f"{place}-old-{number}")
    except OSError as error:
        raise MngrError(f"{place} cannot be moved out of the way: {error.strerror}") from None
    if known:  # it is nobody's conflict any more
        os.replace(
            os.path.join(f"{place}-old-{number}", _ABOUT), os.path.join(f"{place}-old-{number}", _ABOUT + ".old")
        )
    say(f"{place}-old-{number} is of an earlier conflict, and kept because somebody has worked in it")


def is_worked_on(opened: Opened) -> bool:
    return opened.untouched != _checksum(opened)


def _checksum(opened: Opened) -> str:
    """Of the commit, the index and the files in conflict."""
    place = opened.directory
    try:
        parts = [_git(place, "rev-parse", "HEAD"), _git(place, "ls-files", "-z", "--stage")]
    except MngrError:
        return ""
    found = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    for path in opened.paths:
        full = os.path.join(place, path)
        if os.path.islink(full):
            found.update(os.fsencode(os.readlink(full)))
        elif os.path.isfile(full):
            with open(full, "rb") as file:
                found.update(file.read())
        found.update(b"\0")
    return found.hexdigest()


# Closing


def _result(opened: Opened) -> str | Closed:
    """The tree that was made, or why there is none."""
    place = opened.directory
    if unmerged := _git(place, "ls-files", "-z", "--unmerged").split("\0")[:-1]:
        paths = sorted({line.partition("\t")[2] for line in unmerged})
        return Closed(problem=f"{few(paths)}: still in conflict (git add it when it is solved)")
    head, onto = _git(place, "rev-parse", "HEAD"), _git(place, "rev-parse", _ONTO)
    if head == onto:
        tree = _git(place, "write-tree")
    elif _run(place, "merge-base", "--is-ancestor", _ONTO, "HEAD").code:
        return Closed(problem="what is committed there is not based on what is integrated so far")
    else:
        tree = _git(place, "rev-parse", "HEAD^{tree}")
    if tree == _git(place, "rev-parse", f"{_ONTO}^{{tree}}"):
        return Closed(
            problem="nothing of the change is in it: it was given up, or one side was taken as it is", tree=tree
        )
    return tree


def _changed(opened: Opened, tree: str) -> list[str]:
    """Beyond what git had merged."""
    words = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", _MERGED, tree]
    return _git(opened.directory, *words).split("\0")[:-1]


def _entries(opened: Opened, tree: str, paths: Iterable[str]) -> dict[str, tuple[str, str] | None]:
    found: dict[str, tuple[str, str] | None] = dict.fromkeys(sorted(paths))
    if found:
        for line in _git(opened.directory, "ls-tree", "-z", "--full-tree", tree, "--", *found).split("\0")[:-1]:
            about, _, path = line.partition("\t")
            mode, _, object = about.split(" ")
            if path in found and mode != "040000":
                found[path] = (mode, object)
    return found


def _file(opened: Opened, entry: tuple[str, str] | None) -> tuple[str, bytes] | None:
    if entry is None:
        return None
    mode, object = entry
    if mode == "160000":
        return mode, object.encode("ascii")
    return mode, _blob(opened, object)


def _blob(opened: Opened, object: str) -> bytes:
    done = _run(opened.directory, "cat-file", "blob", object)
    if done.code:
        raise MngrError(f"git cat-file failed in {opened.directory}: {done.err.strip()}")
    return done.out.encode("utf-8", "surrogateescape")


def _sides(opened: Opened) -> dict[str, Side]:
    """Where a path is the same file on all sides, and not one that was renamed."""
    base, ours, theirs = (_entries(opened, ref, opened.paths) for ref in (f"{_CHANGE}^", _ONTO, _CHANGE))
    found = {}
    for path in opened.paths:
        was, mine, others = base[path], ours[path], theirs[path]
        if mine and others and all(each[0].startswith("100") for each in (was, mine, others) if each):
            found[path] = Side(base=was[1] if was else "", theirs=others[1], ours=_blob(opened, mine[1]))
    return found


def _undoes(opened: Opened, side: Side, file: tuple[str, bytes] | None) -> bool:
    """Whether it is the change's own version, and git has more of ours outside of the conflict."""
    theirs, base = _blob(opened, side.theirs), _blob(opened, side.base) if side.base else b""
    if file is None or file[1] != theirs or not is_text(base, side.ours, theirs):
        return False
    return three_way(side.ours, base, theirs, "--theirs")[0] != theirs


def _has_markers(opened: Opened, path: str, file: tuple[str, bytes] | None) -> bool:
    """Lines that look like markers, and that neither side had: a file may well be about such lines."""
    if file is None or not file[0].startswith("100"):
        return False
    suspects = {line for line in file[1].splitlines() if _MARKER.match(line)}
    for ref in (_ONTO, _CHANGE) if suspects else ():
        entry = _entries(opened, ref, [path])[path]
        if entry and entry[0].startswith("100"):
            suspects -= set(_blob(opened, entry[1]).splitlines())
    return bool(suspects)


def said_by(opened: Opened) -> str:
    """The message of who solved it, if that is another than the change's own."""
    subject = _git(opened.directory, "log", "-1", "--format=%s")
    return "" if subject in (opened.subject, "What is integrated so far") else subject


def _escaped(path: bytes) -> bytes:
    """As git reads it in a list of patterns."""
    return re.sub(rb"([\\*?\[ !#])", rb"\\\1", path.rstrip(b"/"))


# Git


def _git(place: str, *words: str) -> str:
    """What it says, without the last newline. MngrError when it fails."""
    done = _run(place, *words)
    if done.code:
        said = done.err.strip().splitlines()
        raise MngrError(f"git {words[0]} failed in {place}: {said[-1] if said else done.code}")
    return done.out.removesuffix("\n")


def _run(place: str, *words: str) -> process.Done:
    line = ["git", "-C", place, "--literal-pathspecs", *words]
    return process.run(line, deadline=_DEADLINE, env=_environment())


def _environment() -> dict[str, str]:
    """The user's settings are shut out while we work here; who works here later has them."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    shut = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
    return {**env, **shut, "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
