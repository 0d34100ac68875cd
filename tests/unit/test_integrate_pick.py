"""Picks in memory, against `git cherry-pick` in a work tree: for random histories both come to the same trees and the
same conflicts, and the user's repository is, byte for byte, what it was."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from mngr.errors import MngrError
from mngr.integrate.change import Change
from mngr.integrate.picking.pick import BASE, OURS, THEIRS, merge, pick, unpick
from mngr.integrate.picking.scratch import Scratch
from tests.histories import FILE, LINK, PROGRAM, SUBMODULE, Content, History, environment, read, scratch

Files = dict[str, tuple[str, bytes]]
SEEDS = range(16)
NOT_UTF8 = os.fsdecode(b"caf\xe9.txt")
ATTRIBUTES = b"union.txt merge=union\n*.bin binary\n*.dat -merge\n*.eol text eol=crlf\nlib/*.py text\n"


@pytest.mark.parametrize("seed", SEEDS)
def test_picks_give_what_cherry_pick_gives_and_the_user_sees_nothing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    history = random_history(tmp_path / "repo", random)
    branches = history.git("for-each-ref", "--format=%(refname:short)", "refs/heads/b*").split()
    make_a_mess(history)
    before = history.snapshot()
    monkeypatch.chdir(history.top)
    work = scratch(history)
    changes = read(history, *branches, where=work)
    random.shuffle(changes)
    found = picked_in_memory(work, changes)
    assert history.snapshot() == before
    assert found == picked_in_a_work_tree(history, work, changes, tmp_path / "reference")
    assert len(changes) >= 3


def test_the_random_histories_conflict_sometimes_and_not_always(tmp_path: Path) -> None:
    """Otherwise the test above would prove little."""
    outcomes = []
    for seed in list(SEEDS)[:4]:
        history = random_history(tmp_path / str(seed) / "repo", Random(seed))
        branches = history.git("for-each-ref", "--format=%(refname:short)", "refs/heads/b*").split()
        work = scratch(history)
        outcomes += [is_clean for is_clean, _ in picked_in_memory(work, read(history, *branches, where=work))]
    assert outcomes.count(True) > 10
    assert outcomes.count(False) > 3


def picked_in_memory(work: Scratch, changes: list[Change]) -> list[tuple[bool, str]]:
    """Whether each one could be picked, and the tree after it; those that conflict are passed over."""
    tree, found = work.tree_of(work.base), []
    for change in changes:
        came = pick(work, tree, change)
        tree = came.tree if came.is_clean else tree
        found.append((came.is_clean, tree))
    return found


def picked_in_a_work_tree(
    history: History, work: Scratch, changes: list[Change], place: Path
) -> list[tuple[bool, str]]:
    env = environment(place.parent)

    def git(*words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(["git", *words], cwd=place, env=env, capture_output=True, text=True, errors="replace")
        assert code is None or done.returncode == code, done.stderr
        return done

    place.mkdir()
    git("init", "-q")
    stores = [history.top / ".git" / "objects", Path(work.directory) / "objects"]
    (place / ".git/objects/info/alternates").write_text("".join(f"{store}\n" for store in stores))
    git("checkout", "-q", "--detach", work.base)
    found = []
    for change in changes:
        flags = ["--allow-empty", "--keep-redundant-commits", "--allow-empty-message"]
        done = git("cherry-pick", *flags, change.id, code=None)
        if done.returncode:
            # Of a submodule in the way of a file, git tells a conflict and then fails to write its index.
            assert re.search("conflict|cache entry has null sha1", done.stdout + done.stderr, re.IGNORECASE)
            git("reset", "-q", "--hard")
            git("clean", "-qffdx")
        found.append((done.returncode == 0, git("rev-parse", "HEAD^{tree}").stdout.strip()))
    return found


def make_a_mess(history: History) -> None:
    """A stash, a staged change, one that is not staged, files that git does not know, and settings that would change
    what merges do."""
    history.git("checkout", "-q", "-f", "main")
    (history.top / "a.txt").write_text("stashed\n")
    history.git("stash")
    (history.top / "a.txt").write_text("staged\n")
    history.git("add", "a.txt")
    (history.top / "a.txt").write_text("not staged\n")
    (history.top / ".gitattributes").write_text("* merge=union\n*.txt -diff\n")
    (history.top / "unknown").write_text("nobody's\n")
    (history.top / ".git/info/attributes").write_text("*.py merge=union\n")
    settings = "merge.conflictStyle=diff3 diff.renames=false merge.renames=false core.autocrlf=true merge.default=union"
    for setting in settings.split():
        history.git("config", *setting.split("="))


# What a pick tells


def test_a_conflict_tells_both_sides_and_what_they_come_from(tmp_path: Path) -> None:
    history = History(tmp_path / "repo")
    base = history.commit("main", {"a.txt": "1\n"})
    ours = history.commit("ours", {"a.txt": "2\n"}, "x", base)
    history.commit("theirs", {"a.txt": "3\n"}, "x", base)
    work = scratch(history)
    came = pick(work, history.tree(ours), read(history, "theirs", where=work)[0])
    assert not came.is_clean
    stages = {stage: work.blob(object) for stage, (_, object) in came.conflicts["a.txt"].items()}
    assert stages == {BASE: b"1\n", OURS: b"2\n", THEIRS: b"3\n"}
    assert came.said == ["CONFLICT (content): Merge conflict in a.txt"]
    assert b"<<<<<<<" in work.blob(entry_of(work, came.tree, "a.txt"))


def test_a_conflict_of_which_no_file_has_two_sides_is_a_conflict(tmp_path: Path) -> None:
    """A directory whose files go to two places, and another file that was added to it."""
    history = History(tmp_path / "repo")
    files = {f"lib/{name}.txt": lines(Random(0), name) for name in "abcd"}
    base = history.commit("main", files)
    moved = {path.replace("lib", "one" if path < "lib/c" else "two"): text for path, text in files.items()}
    ours = history.commit("ours", {**dict.fromkeys(files), **moved}, "x", base)
    history.commit("theirs", {"lib/new.txt": "new\n"}, "x", base)
    work = scratch(history)
    came = pick(work, history.tree(ours), read(history, "theirs", where=work)[0])
    assert not came.is_clean
    assert list(came.conflicts) == ["lib"]
    assert came.said[0].startswith("CONFLICT (directory rename split)")


def test_what_was_picked_can_be_taken_out_again(tmp_path: Path) -> None:
    history = History(tmp_path / "repo")
    base = history.commit("main", {"a.txt": lines(Random(0), "a")})
    one = history.commit("main", {"a.txt": b"first\n" + lines(Random(0), "a")})
    two = history.commit("main", {"a.txt": b"first\n" + lines(Random(0), "a") + b"last\n"})
    over = history.commit("main", {"a.txt": b"other\n" + lines(Random(0), "a") + b"last\n"})
    work = scratch(history)
    came = unpick(work, history.tree(two), one, base)
    assert came.is_clean
    assert work.blob(entry_of(work, came.tree, "a.txt")) == lines(Random(0), "a") + b"last\n"
    assert not unpick(work, history.tree(over), one, base).is_clean


def test_sides_that_do_not_come_from_the_base_are_refused(tmp_path: Path) -> None:
    history = History(tmp_path / "repo")
    base = history.commit("main", {"a.txt": "1\n"})
    stranger = history.commit("stranger", {"a.txt": "2\n"})
    with pytest.raises(MngrError, match="merge-tree failed"):
        merge(scratch(history), base, history.tree(base), stranger)


def entry_of(work: Scratch, tree: str, path: str) -> str:
    entry = work.entries(tree, [path])[path]
    assert entry is not None
    return entry[1]


# Random histories


def random_history(top: Path, random: Random) -> History:
    history = History(top)
    files = first_files(random)
    write(history, "main", {}, files)
    base = history.git("rev-parse", "main")
    for number in range(random.randint(3, 4)):
        mine = dict(files)
        parent = [base]
        for _ in range(random.randint(1, 4)):
            before = dict(mine)
            for _ in range(random.randint(1, 3)):
                random.choice(EDITS)(mine, random)
            parent = [write(history, f"b{number}", before, mine, *parent)]
    return history


def first_files(random: Random) -> Files:
    names = ["a.txt", "union.txt", "lib/b.py", "lib/c.py", "lib/deep/d.py", "tests/test_b.py", "e.eol", NOT_UTF8]
    files = {name: (FILE, lines(random, name)) for name in [*names, 'odd\n"name"\t.txt']}
    files |= {"crlf.txt": (FILE, lines(random, "crlf").replace(b"\n", b"\r\n")), "run.sh": (PROGRAM, b"#!/bin/sh\n")}
    files |= {"x.bin": (FILE, b"\0\1\2" * 20), "y.dat": (FILE, lines(random, "y")), "empty": (FILE, b"")}
    files |= {"link": (LINK, b"a.txt"), "module": (SUBMODULE, b"1" * 40)}
    return files | ({".gitattributes": (FILE, ATTRIBUTES)} if random.random() < 0.7 else {})


def lines(random: Random, name: str, count: int = 14) -> bytes:
    return b"".join(b"%s %d\n" % (os.fsencode(name).replace(b"\n", b""), number) for number in range(count))


def write(history: History, branch: str, before: Files, after: Files, *parents: str) -> str:
    gone: dict[str, Content] = {path: None for path in before if path not in after}
    there = {path: content for path, content in after.items() if before.get(path) != content}
    return history.commit(branch, {**gone, **there}, f"On {branch}", *parents)


def some(files: Files, random: Random, fits: Callable[[str, str, bytes], bool]) -> str | None:
    found = [path for path, (mode, content) in sorted(files.items()) if fits(path, mode, content)]
    return random.choice([path for path in found if path != ".gitattributes"]) if found else None


def is_text(path: str, mode: str, content: bytes) -> bool:
    return mode in (FILE, PROGRAM) and b"\n" in content and path != ".gitattributes"


def is_file(path: str, mode: str, content: bytes) -> bool:
    return mode in (FILE, PROGRAM) and path != ".gitattributes"


def put(files: Files, path: str, entry: tuple[str, bytes]) -> None:
    """What it stands in the way of, or is in the way of it, goes."""
    for other in list(files):
        if other.startswith(path + "/") or path.startswith(other + "/"):
            del files[other]
    files[path] = entry


def edit(files: Files, random: Random) -> None:
    path = some(files, random, is_text)
    if path:
        mode, content = files[path]
        text = content.splitlines(keepends=True)
        place = random.randrange(len(text))
        end = b"\r\n" if text[0].endswith(b"\r\n") else b"\n"
        new = b"new %d%s" % (random.randrange(4), end)
        text[place : place + random.randrange(3)] = random.choice([[new], [new, new], []])
        files[path] = (mode, b"".join(text) or new)


def append(files: Files, random: Random) -> None:
    path = some(files, random, is_text)
    if path:
        files[path] = (files[path][0], files[path][1] + b"more %d\n" % random.randrange(3))


def rename(files: Files, random: Random) -> None:
    path = some(files, random, lambda path, *_: True)
    if path:
        entry = files.pop(path)
        put(files, random.choice(["moved/", "lib/", "tests/", ""]) + f"to{random.randrange(3)}.py", entry)


def rename_directory(files: Files, random: Random) -> None:
    old, new = random.choice([("lib/", "src/"), ("lib/deep/", "deep/"), ("tests/", "lib/tests/")])
    for path in [path for path in files if path.startswith(old)]:
        put(files, new + path.removeprefix(old), files.pop(path))


def delete(files: Files, random: Random) -> None:
    path = some(files, random, lambda path, *_: True)
    if path and len(files) > 3:
        del files[path]


def add(files: Files, random: Random) -> None:
    name = random.choice(["lib/new.py", "lib/deep/new.py", "tests/new.py", "new.txt", os.fsdecode(b"lib/n\xff.py")])
    put(files, name, (FILE, lines(random, "new", random.randint(1, 3))))


def change_mode(files: Files, random: Random) -> None:
    path = some(files, random, is_file)
    if path:
        mode, content = files[path]
        files[path] = (PROGRAM if mode == FILE else FILE, content)


def change_binary(files: Files, random: Random) -> None:
    put(files, "x.bin", (FILE, b"\0" + random.randbytes(2) * 20))


def change_link(files: Files, random: Random) -> None:
    put(files, "link", (LINK, random.choice([b"a.txt", b"union.txt", b"nowhere"])))


def change_module(files: Files, random: Random) -> None:
    put(files, random.choice(["module", "vendor/module"]), (SUBMODULE, random.choice([b"2", b"3"]) * 40))


def swap_file_and_directory(files: Files, random: Random) -> None:
    if random.random() < 0.5:
        put(files, random.choice(["a.txt/inner.txt", "link/inner.txt"]), (FILE, lines(random, "inner", 2)))
    else:
        put(files, random.choice(["lib/deep", "tests"]), (FILE, lines(random, "flat", 2)))


def swap_file_and_link(files: Files, random: Random) -> None:
    path = some(files, random, is_text)
    if path:
        files[path] = (LINK, b"a.txt")


EDITS: list[Callable[[Files, Random], None]] = [
    *[edit] * 6,
    *[append] * 3,
    *[rename] * 2,
    rename_directory,
    delete,
    *[add] * 2,
    change_mode,
    change_binary,
    change_link,
    change_module,
    swap_file_and_directory,
    swap_file_and_link,
]
