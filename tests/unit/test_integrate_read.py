"""Commits as changes of one kind each: what they are, what they fall apart into, and what is no change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr.integrate.change import Change, Source
from mngr.integrate.picking import read as reading
from mngr.integrate.picking.pick import pick
from mngr.integrate.picking.read import Found
from mngr.swarm.testing.kinds import DOCS, IMPLEMENTATION, TEST, TUTORIAL
from tests.histories import FILE, LINK, PROGRAM, SUBMODULE, Content, History, kinds, read, scratch, source

LINES = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "repo")
    files = {"src/a.py": LINES, "src/b.py": LINES.upper(), "tests/test_a.py": "1\n", "README.md": "# A\n"}
    history.commit("main", files, "Base")
    history.git("branch", "b")
    return history


def only(history: History, branch: str = "b") -> Change:
    (change,) = read(history, branch)
    return change


def found(history: History, *sources: Source) -> Found:
    where = scratch(history)
    return reading.read(where, sources, kinds(where))


# What a change tells


def test_a_commit_is_told_as_it_is(history: History) -> None:
    message = "Subject\n\nBody\n of two lines\n\nKind: implementation\nReviewed-by: Bo <b@c>\nImportance: High\n"
    commit = history.commit("b", {"src/a.py": LINES + "more\n", "src/b.py": None}, message, author="Ann Ö <a@b>")
    change = only(history)
    assert change == Change(
        id=commit,
        commit=commit,
        parent=history.git("rev-parse", "main"),
        branch="b",
        place=0,
        kind=IMPLEMENTATION,
        declared=IMPLEMENTATION,
        paths=["src/a.py", "src/b.py"],
        added=1,
        removed=20,
        subject="Subject",
        body="Body\n of two lines",
        trailers=["Reviewed-by: Bo <b@c>"],
        author="Ann Ö <a@b> 1700000002 +0100",
        importance="high",
    )


def test_commits_come_branch_by_branch_oldest_first(history: History) -> None:
    base = history.git("rev-parse", "main")
    for branch in ("z", "y"):
        for number in range(3):
            parents = [base] if number == 0 else []
            history.commit(branch, {f"src/{branch}{number}.py": "x\n"}, f"{branch}{number}", *parents)
    changes = read(history, "z", "y")
    assert [(change.subject, change.place) for change in changes] == [
        ("z0", 0), ("z1", 1), ("z2", 2), ("y0", 0), ("y1", 1), ("y2", 2),
    ]  # fmt: skip


def test_a_branch_that_left_the_base_earlier_has_its_own_commits_only(history: History) -> None:
    history.commit("b", {"src/a.py": "b\n"}, "Mine")
    history.commit("main", {"src/b.py": "main\n"}, "Later")
    assert [change.subject for change in read(history, "b")] == ["Mine"]


def test_no_branches_and_branches_without_commits_have_no_changes(history: History) -> None:
    assert read(history) == []
    assert read(history, "b") == []


@pytest.mark.parametrize(
    ("paths", "kind"),
    [
        (["tests/test_b.py"], TEST),
        (["docs/a.md"], DOCS),
        (["tutorial.sh"], TUTORIAL),
        (["docs/a.md", "tests/b.txt"], TEST),
        (["docs/a.md", "tutorial.sh"], TUTORIAL),
        (["tutorial.sh", "tests/b.txt", "docs/a.md"], TEST),
        (["Makefile", "src/c.py"], IMPLEMENTATION),
    ],
)
def test_paths_decide_the_kind(history: History, paths: list[str], kind: str) -> None:
    history.commit("b", dict.fromkeys(paths, "new\n"))
    change = only(history)
    assert (change.kind, change.paths, change.notes) == (kind, sorted(paths), [])


# What is declared


@pytest.mark.parametrize(
    ("said", "declared"),
    [
        ("Kind: test", TEST),
        ("kind:   TEST  ", TEST),
        ("Kind: docs\nKind: test", TEST),
        ("Kind: test\n\nNot the end", ""),
        ("nothing", ""),
    ],
)
def test_a_trailer_declares_the_kind(history: History, said: str, declared: str) -> None:
    history.commit("b", {"tests/test_b.py": "x\n"}, f"Subject\n\n{said}\n")
    change = only(history)
    assert (change.declared, change.notes) == (declared, [])


def test_an_agents_result_declares_what_its_commit_does_not(history: History) -> None:
    silent = history.commit("b", {"tests/test_b.py": "x\n"})
    loud = history.commit("b", {"tests/test_c.py": "x\n"}, "Subject\n\nKind: test\nImportance: low\n")
    claims = {commit: {"kind": TEST, "importance": "critical"} for commit in (silent, loud)}
    claims[loud]["kind"] = DOCS
    changes = found(history, source(history, "b", claims=claims)).changes
    assert [change.declared for change in changes] == [TEST, TEST]
    assert [change.importance for change in changes] == ["critical", "low"]
    assert [change.notes for change in changes] == [[], []]


def test_a_false_declaration_is_corrected_and_told(history: History) -> None:
    history.commit("b", {f"src/{name}.py": "x\n" for name in "abcde"}, "Subject\n\nKind: test\n")
    history.commit("b", {"tests/test_a.py": "2\n"}, "Subject\n\nKind: implementation\n")
    fix, test = read(history, "b")
    assert (fix.kind, fix.declared) == (IMPLEMENTATION, TEST)
    assert fix.notes == [
        f"declared as test, but changes {', '.join(f'src/{name}.py (implementation)' for name in 'abc')} and 2 more"
    ]
    assert (test.kind, test.notes) == (TEST, ["declared as implementation, but changes tests/test_a.py (test)"])


def test_an_unknown_kind_is_told(history: History) -> None:
    commit = history.commit("b", {"src/c.py": "x\n"}, "Subject\n\nKind: fix\x1b\n")
    change = found(history, source(history, "b", claims={commit: {"kind": IMPLEMENTATION}})).changes[0]
    assert change.declared == IMPLEMENTATION
    assert change.notes == [r"declared as 'fix\x1b', which is none of implementation, test, docs, tutorial"]


# What is split


def test_a_mixed_commit_is_split_by_path(history: History) -> None:
    files = {"src/a.py": LINES + "more\n", "tests/test_a.py": "1\n2\n", "README.md": None}
    commit = history.commit("b", files, "Both\n\nKind: implementation\n")
    after = history.commit("b", {"src/b.py": "x\n"}, "Next")
    work = scratch(history)
    fix, rest, next_ = read(history, "b", where=work)
    assert (fix.kind, fix.paths, fix.added, fix.removed) == (IMPLEMENTATION, ["src/a.py"], 1, 0)
    assert (rest.kind, rest.paths, rest.added, rest.removed) == (TEST, ["README.md", "tests/test_a.py"], 1, 1)
    assert (fix.commit, rest.commit, next_.id) == (commit, commit, after)
    assert [change.place for change in (fix, rest, next_)] == [0, 1, 2]
    assert fix.notes == [f"a part of {commit[:10]}, which changes README.md (docs), tests/test_a.py (test) too"]
    assert rest.notes == [
        f"a part of {commit[:10]}, which changes src/a.py (implementation) too",
        "declared as implementation, but changes README.md (docs), tests/test_a.py (test)",
    ]
    for part in (fix, rest):
        assert changed_paths(history, work.directory, part.id) == part.paths
    both = pick(work, work.tree_of(fix.id), rest)
    assert (both.is_clean, both.tree) == (True, history.tree(commit))


def changed_paths(history: History, where: str, commit: str) -> list[str]:
    said = history.git("--git-dir", where, "diff-tree", "-r", "-z", "--name-only", f"{commit}^", commit)
    return said.split("\0")[:-1]


def test_a_rename_inside_one_kind_does_not_keep_a_commit_together(history: History) -> None:
    history.commit("b", {"src/a.py": None, "src/z.py": LINES, "tests/test_a.py": "2\n"})
    fix, rest = read(history, "b")
    assert (fix.paths, rest.paths) == (["src/a.py", "src/z.py"], ["tests/test_a.py"])
    assert (fix.added, fix.removed) == (0, 0)


def test_a_file_whose_lines_nobody_can_count_is_told(history: History) -> None:
    history.commit("b", {"src/a.bin": b"\0\1\2", "src/a.py": "2\n", "tests/test_a.py": "2\n"})
    fix, rest = read(history, "b")
    assert (fix.is_text, rest.is_text) == (False, True)


def test_a_rename_from_one_kind_to_another_keeps_a_commit_together(history: History) -> None:
    commit = history.commit("b", {"src/a.py": None, "tests/helper.py": LINES + "x\n", "README.md": "new\n"})
    change = only(history)
    assert (change.id, change.kind) == (commit, IMPLEMENTATION)
    assert change.notes == ["not split: src/a.py (implementation) becomes tests/helper.py (test)"]


def test_a_file_that_makes_room_for_a_directory_of_another_kind_keeps_a_commit_together(history: History) -> None:
    history.commit("main", {"tool": "program\n"})
    commit = history.commit("b", {"tool": None, "tool/test_it.py": "x\n"}, "x", history.git("rev-parse", "main"))
    change = only(history)
    assert (change.id, change.kind) == (commit, IMPLEMENTATION)
    assert change.notes == ["not split: tool and tool/test_it.py take each other's place"]


def test_whatever_a_file_is_survives_the_split(history: History) -> None:
    odd = os.fsdecode(b'n\xff\n".py')
    before: dict[str, Content] = {
        "src/run": (FILE, "#!\n"),
        "src/link": (LINK, "a"),
        "src/dir/x": "x\n",
        "src/m": "m\n",
    }
    base = history.commit("main", before)
    after: dict[str, Content] = {
        "src/run": (PROGRAM, "#!\n"),
        "src/link": (LINK, "b"),
        "src/dir/x": None,
        "src/dir": "a file now\n",
        "src/m": (SUBMODULE, "4" * 40),
        f"src/{odd}": b"\0\xff",
        f"tests/{odd}": "a test\n",
        "tests/module": (SUBMODULE, "5" * 40),
    }
    commit = history.commit("b", after, b"Caf\xe9\n", base)
    work = scratch(history)
    fix, rest = read(history, "b", where=work)
    assert pick(work, work.tree_of(rest.id), fix).tree == history.tree(commit)
    assert set(fix.paths + rest.paths) == set(after)
    assert fix.subject == os.fsdecode(b"Caf\xe9")


# Merges, first commits, and what is no change


def test_a_merge_is_what_it_brings_to_its_branch(history: History) -> None:
    base = history.git("rev-parse", "main")
    other = history.commit("other", {"src/b.py": "other\n"}, "Other", base)
    mine = history.commit("b", {"src/a.py": "mine\n"}, "Mine")
    merged = history.commit("b", {"src/b.py": "other\n", "src/c.py": "glue\n"}, "Merge", mine, other)
    work = scratch(history)
    first, second = read(history, "b", where=work)
    assert (first.subject, second.subject) == ("Mine", "Merge")
    assert (second.commit, second.parent, second.paths) == (merged, mine, ["src/b.py", "src/c.py"])
    assert second.id != merged
    assert work.git("rev-list", "--parents", "-1", second.id).split() == [second.id, mine]
    assert work.tree_of(second.id) == history.tree(merged)


def test_what_is_no_change_is_told(history: History) -> None:
    mine = history.commit("b", {"src/a.py": "mine\n"}, "Mine")
    other = history.commit("other", {}, "Other", history.git("rev-parse", "main"))
    merge = history.commit("b", {}, "Merge", mine, other)
    empty = history.commit("b", {}, "Empty")
    both = found(history, source(history, "b"), Source(branch="same", head=empty))
    assert [change.subject for change in both.changes] == ["Mine"]
    assert [(each.branch, each.commit, each.why) for each in both.ignored] == [
        ("same", mine, "taken from b, which has it too"),
        ("same", merge, "taken from b, which has it too"),
        ("same", empty, "taken from b, which has it too"),
        ("b", merge, "a merge that brings nothing to its branch"),
        ("b", empty, "an empty commit"),
    ]


def test_a_commit_of_stacked_branches_is_taken_once_with_what_anybody_says_of_it(history: History) -> None:
    first = history.commit("b", {"src/a.py": "1\n"}, "First")
    history.commit("upper", {"src/a.py": "2\n"}, "Second", first)
    upper = source(history, "upper", claims={first: {"importance": "high"}})
    changes = found(history, source(history, "b"), upper).changes
    assert [(change.branch, change.subject) for change in changes] == [("b", "First"), ("upper", "Second")]
    assert changes[0].importance == "high"
    changes = found(history, upper, source(history, "b")).changes
    assert [(change.branch, change.place) for change in changes] == [("upper", 0), ("upper", 1)]


def test_the_same_branch_twice_is_taken_once(history: History) -> None:
    history.commit("b", {"src/a.py": "1\n"}, "First")
    assert len(read(history, "b", "b")) == 1


def test_a_first_commit_is_all_that_it_has(history: History) -> None:
    history.git("checkout", "-q", "--orphan", "lone")
    history.commit("lone", {"lib.py": "x\n", "tests/test_lib.py": "y\n"}, "Lone")
    work = scratch(history)
    fix, rest = read(history, "lone", where=work)
    assert (fix.paths, rest.paths) == (["lib.py"], ["tests/test_lib.py"])
    came = pick(work, work.tree_of(work.base), fix)
    assert came.is_clean
    assert set(work.git("ls-tree", "-r", "--name-only", came.tree).split()) > {"lib.py", "src/a.py"}


def test_a_history_that_is_cut_off_before_the_base_is_refused(history: History) -> None:
    for number in range(3):
        history.commit("b", {"src/a.py": f"{number}\n"})
    clone = History(history.top.parent / "clone")
    clone.git("fetch", "-q", "--depth=1", "--update-head-ok", f"file://{history.top}", "b:b", "main:main")
    with pytest.raises(MngrError, match="the repository is shallow") as caught:
        read(clone, "b")
    assert caught.value.hint == "git fetch --unshallow gets the rest"


def test_the_same_branches_give_the_same_changes(history: History) -> None:
    history.commit("b", {"src/a.py": "1\n", "tests/test_a.py": "2\n"})
    assert read(history, "b", where=scratch(history, directory="one")) == read(
        history, "b", where=scratch(history, directory="two")
    )
