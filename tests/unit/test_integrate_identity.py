"""Which changes are the same, by what they do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mngr.integrate.change import Group
from mngr.integrate.picking.identity import groups
from tests.histories import FILE, LINK, PROGRAM, SUBMODULE, Content, History, read, scratch

LINES = "".join(f"line {number}\n" for number in range(20))
ODD = os.fsdecode(b'src/n\xff\n".py')
FILES: dict[str, Content] = {
    "src/a.py": LINES,
    "src/x.bin": b"\0\1",
    "src/run": (FILE, "#!\n"),
    "src/link": (LINK, "a"),
    "src/module": (SUBMODULE, "1" * 40),
    "src/empty": "",
    ODD: LINES,
}


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "repo")
    history.commit("main", FILES)
    return history


def put(history: History, **files_by_branch: dict[str, Content]) -> None:
    base = history.git("rev-parse", "main")
    for branch, files in files_by_branch.items():
        history.commit(branch, files, f"On {branch}", base)


def grouped(history: History, *branches: str) -> list[Group]:
    work = scratch(history)
    return groups(work, read(history, *branches, where=work))


def names(found: list[Group]) -> list[list[str]]:
    return [[change.branch for change in group.changes] for group in found]


@pytest.mark.parametrize(
    "files",
    [
        {"src/a.py": LINES.replace("line 5", "five")},
        {"src/x.bin": b"\0\2"},
        {"src/run": (PROGRAM, "#!\n")},
        {"src/link": (LINK, "b")},
        {"src/module": (SUBMODULE, "2" * 40)},
        {"src/empty": None},
        {"src/new": ""},
        {"src/a.py": None, "src/b.py": LINES},
        {ODD: LINES + "more\n"},
    ],
)
def test_the_same_effect_is_the_same_change(history: History, files: dict[str, Content]) -> None:
    put(history, one=files, two=files, other={"src/else.py": "x\n"})
    assert names(grouped(history, "one", "other", "two")) == [["one", "two"], ["other"]]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"src/a.py": LINES + "    x\n"}, {"src/a.py": LINES + "\tx\n"}),
        ({"src/a.py": LINES + "x\n"}, {"src/a.py": LINES + "x \n"}),
        ({"src/a.py": LINES + "x\n"}, {"src/a.py": LINES + "x\r\n"}),
        ({"src/a.py": LINES + "x\n"}, {"src/a.py": LINES + "x"}),
        ({"src/x.bin": b"\0\2"}, {"src/x.bin": b"\0\3"}),
        ({"src/run": (PROGRAM, "#!\n")}, {"src/run": None}),
        ({"src/a.py": (PROGRAM, LINES + "x\n")}, {"src/a.py": LINES + "x\n"}),
        ({"src/link": (LINK, "b")}, {"src/link": (LINK, "c")}),
        ({"src/link": (LINK, "b")}, {"src/link": (FILE, "b")}),
        ({"src/module": (SUBMODULE, "2" * 40)}, {"src/module": (SUBMODULE, "3" * 40)}),
        ({"src/new": ""}, {"src/newer": ""}),
        ({"src/new": ""}, {"src/new": (PROGRAM, "")}),
        ({"src/a.py": LINES + "x\n"}, {"src/a.py": LINES + "x\n", "src/new": ""}),
    ],
)
def test_another_effect_is_another_change(history: History, one: dict[str, Content], two: dict[str, Content]) -> None:
    put(history, one=one, two=two)
    found = grouped(history, "one", "two")
    assert names(found) == [["one"], ["two"]]
    assert found[0].key != found[1].key


def test_the_same_fix_at_another_line_is_the_same_change(history: History) -> None:
    fixed = LINES.replace("line 15", "fifteen")
    put(history, one={"src/a.py": fixed})
    moved = history.commit("two", {"src/a.py": "first\n" + LINES}, "Above", history.git("rev-parse", "main"))
    history.commit("two", {"src/a.py": "first\n" + fixed}, "The same", moved)
    assert names(grouped(history, "one", "two")) == [["one", "two"], ["two"]]


def test_equal_patches_at_two_places_are_two_changes(tmp_path: Path) -> None:
    """A file that repeats itself: the lines around are the same, too."""
    history = History(tmp_path / "repo")
    block = "begin\n1\n2\n3\nwrong\n4\n5\n6\nend\n"
    right = block.replace("wrong", "right")
    history.commit("main", {"src/a.py": block * 3})
    base = history.git("rev-parse", "main")
    put(history, one={"src/a.py": right + block * 2}, two={"src/a.py": block + right + block})
    put(history, again={"src/a.py": block + right + block})
    above = history.commit("three", {"src/a.py": "above\n" + block * 3}, "Above", base)
    history.commit("three", {"src/a.py": "above\n" + block * 2 + right}, "Third", above)
    found = grouped(history, "one", "two", "again", "three")
    assert names(found) == [["one"], ["two", "again"], ["three"], ["three"]]
    assert len({group.key for group in found}) == 4


def test_what_a_branch_does_undoes_and_does_again_is_one_change(history: History) -> None:
    for branch in ("one", "two"):
        parents = [history.git("rev-parse", "main")]
        for text in (LINES + "x\n", LINES, LINES + "x\n"):
            parents = [history.commit(branch, {"src/a.py": text}, "x", *parents)]
    assert names(grouped(history, "one", "two")) == [["one", "two"]]


def test_what_a_branch_does_twice_is_two_changes(history: History) -> None:
    """To two files that are alike, but for what stands between: the second one is not the first one again."""
    for branch in ("one", "two"):
        parent = history.commit(branch, {"src/a.py": "x\n" + LINES}, "x", history.git("rev-parse", "main"))
        parent = history.commit(branch, {"src/a.py": LINES + "y\n"}, "y", parent)
        history.commit(branch, {"src/a.py": "x\n" + LINES + "y\n"}, "x again", parent)
    found = grouped(history, "one", "two")
    assert names(found) == [["one", "two"]] * 3
    assert len({group.key for group in found}) == 3


def test_a_part_of_a_mixed_commit_is_the_same_as_a_commit_of_its_own(history: History) -> None:
    fix: dict[str, Content] = {"src/a.py": LINES + "x\n"}
    put(history, mixed={**fix, "tests/test_a.py": "x\n"}, plain=fix)
    assert names(grouped(history, "mixed", "plain")) == [["mixed", "plain"], ["mixed"]]


def test_the_key_is_of_what_a_change_does_alone(history: History) -> None:
    put(history, one={"src/a.py": LINES + "x\n"}, two={"src/a.py": LINES + "x\n"}, other={"src/b.py": "x\n"})
    alone = {group.key for branch in ("one", "two") for group in grouped(history, branch)}
    assert len(alone) == 1
    assert {group.key for group in grouped(history, "other", "two")} > alone
    assert grouped(history, "one")[0].name == min(alone)[:12]


def test_no_changes_have_no_groups(history: History) -> None:
    assert groups(scratch(history), []) == []
