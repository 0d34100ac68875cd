"""The repository in which an integration works: of what kind of repository it can be made, what it makes, and how it
hands the result over."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr.integrate.picking.pick import pick
from mngr.integrate.picking.scratch import Scratch, check_git
from tests.histories import FILE, LINK, PROGRAM, SUBMODULE, History, environment, read, scratch


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A branch `fix` with one commit on `main`, which is checked out."""
    return fill(History(tmp_path / "repo"))


def fill(history: History) -> History:
    base = history.commit("main", {"a.py": "one\n", "tests/test_a.py": "1\n"}, "Base")
    history.commit("fix", {"a.py": "two\n"}, "Fix", base)
    history.git("reset", "-q", "--hard", code=None)  # a bare one has nothing to reset
    return history


def published(work: Scratch, history: History, branch: str = "new", expected: str | None = None) -> str:
    """The branch, once `fix` was picked in memory and handed over: its commit."""
    change = read(history, "fix", where=work)[0]
    came = pick(work, work.tree_of(work.base), change)
    commit = work.commit(came.tree, [work.base], "Fixed\n", change.author)
    work.publish(branch, commit, expected)
    return commit


def check(git_dir: Path, commit: str, branch: str = "new") -> None:
    """That the branch is there, with all its objects, also when the scratch is gone."""
    words = ["git", "--git-dir", str(git_dir)]
    env = environment(git_dir)
    said = subprocess.run([*words, "rev-parse", f"refs/heads/{branch}"], env=env, capture_output=True, text=True)
    assert said.stdout.strip() == commit
    shown = subprocess.run([*words, "show", f"{branch}:a.py"], env=env, capture_output=True, text=True)
    assert shown.stdout == "two\n"
    subprocess.run([*words, "fsck", "--connectivity-only", "--no-dangling"], env=env, capture_output=True, check=True)


# Kinds of repositories


def test_the_result_outlives_the_scratch(history: History) -> None:
    work = scratch(history)
    commit = published(work, history)
    work.remove()
    check(history.top / ".git", commit)
    assert os.listdir(history.top.parent / "integration") == []
    assert history.git("status", "--porcelain") == ""
    assert not (history.top / ".git/FETCH_HEAD").exists()


@pytest.mark.parametrize("flags", [["--bare"], ["--object-format=sha256"]])
def test_of_a_bare_repository_and_of_one_with_longer_ids(tmp_path: Path, flags: list[str]) -> None:
    history = fill(History(tmp_path / "repo", *flags))
    work = scratch(history)
    commit = published(work, history)
    work.remove()
    check(history.top if "--bare" in flags else history.top / ".git", commit)


@pytest.mark.parametrize("name", ["a repo", "répo", '"quoted"', "new\nline", "end ", os.fsdecode(b"caf\xe9")])
def test_of_a_repository_in_a_strange_place(tmp_path: Path, name: str) -> None:
    history = fill(History(tmp_path / name))
    work = scratch(history, directory=f"{name}-integration")
    commit = published(work, history)
    work.remove()
    check(history.top / ".git", commit)


def test_of_a_linked_work_tree(history: History) -> None:
    linked = history.top.parent / "linked"
    history.git("worktree", "add", "-q", str(linked), "fix")
    work = Scratch(str(linked), "main", str(history.top.parent / "integration"))
    assert work.repo == str(linked)
    check(history.top / ".git", published(work, history))


def test_of_a_directory_inside_the_work_tree(history: History) -> None:
    work = Scratch(str(history.top / "tests"), "main", str(history.top.parent / "integration"))
    assert work.repo == str(history.top)
    check(history.top / ".git", published(work, history))


def test_of_a_shallow_clone(history: History) -> None:
    clone = History(history.top.parent / "clone")
    clone.git("fetch", "-q", "--depth=2", f"file://{history.top}", "fix:fix")
    clone.git("update-ref", "refs/heads/main", "fix~")
    assert (clone.top / ".git/shallow").exists()
    shallow = (clone.top / ".git/shallow").read_bytes()
    commit = published(scratch(clone), clone)
    assert clone.git("show", "new:a.py") == "two"
    assert clone.git("rev-parse", "new") == commit
    assert (clone.top / ".git/shallow").read_bytes() == shallow


@pytest.mark.parametrize("relative", [False, True])
def test_of_a_repository_that_borrows_objects_itself(history: History, relative: bool) -> None:
    borrower = History(history.top.parent / "borrower")
    store = "../../../repo/.git/objects" if relative else str(history.top / ".git/objects")
    (borrower.top / ".git/objects/info/alternates").write_text(store + "\n")
    for branch in ("main", "fix"):
        borrower.git("update-ref", f"refs/heads/{branch}", history.git("rev-parse", branch))
    work = scratch(borrower)
    commit = published(work, borrower)
    work.remove()
    check(borrower.top / ".git", commit)


def test_of_no_repository(tmp_path: Path) -> None:
    with pytest.raises(MngrError, match="in no git repository"):
        Scratch(str(tmp_path), "main", str(tmp_path / "integration"))


def test_an_unknown_base_leaves_nothing_behind(history: History) -> None:
    with pytest.raises(MngrError, match="there is no commit 'nowhere'"):
        scratch(history, "nowhere")
    assert os.listdir(history.top.parent / "integration") == []


def test_one_that_was_interrupted_is_begun_anew(history: History) -> None:
    first = scratch(history)
    Path(first.directory, "HEAD").write_text("half a li")
    Path(first.directory, "objects/info/alternates").unlink()
    Path(first.directory, "refs/heads.lock").touch()
    Path(first.directory).parent.joinpath("attributes", ".gitattributes").write_text("* merge=union\n")
    work = scratch(history)
    check(history.top / ".git", published(work, history))
    assert os.listdir(Path(work.directory).parent / "attributes") == []


def test_variables_that_lead_git_elsewhere_are_passed_over(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(history.top.parent / "elsewhere"))
    work = scratch(history)
    commit = published(work, history)
    monkeypatch.undo()
    check(history.top / ".git", commit)


# What merges go by


@pytest.mark.parametrize("path", [".gitattributes", "lib/deep/.gitattributes"])
def test_attributes_are_those_of_the_base(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "repo")
    base = history.commit("main", {path: "*.txt merge=union\n", "lib/deep/a.txt": "1\n", "lib/deep/b.rst": "1\n"})
    ours = history.commit("ours", {"lib/deep/a.txt": "1\n2\n", "lib/deep/b.rst": "1\n2\n"}, "x", base)
    history.commit("text", {"lib/deep/a.txt": "1\n3\n"}, "x", base)
    history.commit("rest", {"lib/deep/b.rst": "1\n3\n"}, "x", base)
    home = tmp_path / "home"
    (home / "git").mkdir(parents=True)
    (home / "git/attributes").write_text("*.rst merge=union\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    work = scratch(history)
    text, rest = read(history, "text", "rest", where=work)
    assert pick(work, history.tree(ours), text).is_clean
    assert not pick(work, history.tree(ours), rest).is_clean


def test_attributes_are_never_laid_out_elsewhere(history: History) -> None:
    """A tree that git itself would not make: a directory called `..`."""
    attributes = history.git("hash-object", "-w", "--stdin", input=b"* merge=union\n")
    inner = history.git("mktree", input=f"100644 blob {attributes}\t.gitattributes\n".encode())
    raw = b"40000 ..\0" + bytes.fromhex(inner)
    tree = history.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", input=raw)
    base = history.git("commit-tree", "-m", "x", tree)
    scratch(history, base)
    assert not (history.top.parent / "integration/.gitattributes").exists()


# Trees and commits


def test_many_commits_are_made_at_once_each_as_one_would_be(tmp_path: Path) -> None:
    history = History(tmp_path / "repo")
    odd = 'odd\n"name"\\'
    files = {"a": "1\n", "dir/b": "2\n", "dir/c": "3\n", odd: "4\n", os.fsdecode(b"\xff"): "5\n", '"': "6\n"}
    base = history.commit("main", files)
    work = scratch(history)
    blob = work.store(b"new\n")
    edits: list[dict[str, tuple[str, str] | None]] = [
        {"a": (PROGRAM, blob)},
        {"a": None, "a/inner": (FILE, blob)},
        {"dir/b": None, "dir/c": None, "dir": (LINK, blob)},
        {odd: None, os.fsdecode(b"\xff"): (FILE, blob), '"': (FILE, blob)},
        {"module": (SUBMODULE, "1" * 40)},
    ]
    made = work.edit_commits([(base, each) for each in edits])
    tree = work.tree_of(base)
    assert made == [work.commit(work.edit_tree(tree, each), [base]) for each in edits]
    assert len(set(made)) == len(edits)
    assert work.edit_commits([]) == []


def test_entries_of_more_paths_than_a_command_line_holds(tmp_path: Path) -> None:
    history = History(tmp_path / "repo")
    names = [f"{'long' * 40}/{number:05}" for number in range(1200)]
    base = history.commit("main", {**dict.fromkeys(names, "x\n"), "*": "star\n"})
    work = scratch(history)
    found = work.entries(base, [*names, "*", "not there", "?"])
    assert sum(entry is not None for entry in found.values()) == 1201
    assert (found["not there"], found["?"]) == (None, None)


def test_any_bytes_are_stored_and_read(history: History) -> None:
    work = scratch(history)
    content = bytes(range(256)) * 3 + b"\r\n\xff"
    assert work.blob(work.store(content)) == content
    assert work.blob(work.store(b"")) == b""


# The handing over


def test_a_branch_that_exists_is_not_overwritten(history: History) -> None:
    work = scratch(history)
    fix = history.git("rev-parse", "fix")
    history.git("branch", "new", "fix")
    before = history.snapshot()
    with pytest.raises(MngrError, match="new exists already"):
        published(work, history)
    with pytest.raises(MngrError, match="new has moved"):
        published(work, history, expected=work.base)
    assert history.snapshot() == before
    commit = published(work, history, expected=fix)
    check(history.top / ".git", commit)


def test_a_branch_that_is_gone_is_not_made_again(history: History) -> None:
    before = history.snapshot()
    with pytest.raises(MngrError, match="new has moved"):
        published(scratch(history), history, expected=history.git("rev-parse", "fix"))
    assert history.snapshot() == before


def test_a_branch_that_is_checked_out_is_left_alone(history: History) -> None:
    history.git("branch", "new", "main")
    history.git("worktree", "add", "-q", str(history.top.parent / "linked"), "new")
    before = history.snapshot()
    with pytest.raises(MngrError, match="new is checked out"):
        published(scratch(history), history, expected=history.git("rev-parse", "main"))
    assert history.snapshot() == before


def test_a_branch_that_is_being_rebased_is_left_alone(history: History) -> None:
    history.commit("new", {"a.py": "three\n"}, "x", history.git("rev-parse", "main"))
    new = history.git("rev-parse", "new")
    history.git("checkout", "-q", "new")
    history.git("rebase", "fix", code=1)
    before = history.snapshot()
    with pytest.raises(MngrError, match="new is checked out"):
        published(scratch(history), history, expected=new)
    assert history.snapshot() == before


def test_a_branch_that_is_another_name_of_one_is_not_followed(history: History) -> None:
    main = history.git("rev-parse", "main")
    history.git("symbolic-ref", "refs/heads/new", "refs/heads/main")
    commit = published(scratch(history), history, expected=main)
    assert history.git("rev-parse", "main") == main
    check(history.top / ".git", commit)


def test_a_name_in_the_way_is_told(history: History) -> None:
    history.git("branch", "new/inner", "main")
    before = history.git("for-each-ref")
    with pytest.raises(MngrError, match="git update-ref failed"):
        published(scratch(history), history)
    assert history.git("for-each-ref") == before


@pytest.mark.parametrize(("said", "is_fine"), [("2.38.5", False), ("2.39.0", True), ("2.39.2 (Apple Git-143)", True)])
def test_a_git_that_is_too_old_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, is_fine: bool
) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\necho 'git version {said}'\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if is_fine:
        check_git()
    else:
        with pytest.raises(MngrError, match=r"git version 2\.38\.5 is too old to integrate"):
            check_git()
