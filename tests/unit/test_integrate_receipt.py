"""What became of each commit of each branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.integrate.change import Source
from mngr.integrate.picking.read import Ignored
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.picking.stack import Plan, Stack, build
from mngr.integrate.writing.receipt import AS_IT_WAS, CHANGED, NOT_LANDED, fates, receipt
from tests.integration import Project

TEN = "".join(f"{number}\n" for number in range(10))
TEST = "def test_{0}():\n    assert {0!r}\n"


def built(made: Project, **plan: dict[str, str]) -> tuple[Scratch, Plan, Stack, list[str]]:
    scratch = made.scratch()
    rest, fixes = made.sorted_out()
    wanted = Plan(rest=rest, fixes=fixes, **plan)  # type: ignore[arg-type]
    stack = build(scratch, wanted)
    parent, commits = scratch.base, []
    for step in stack.steps:
        parent = scratch.commit(step.tree, [parent])
        commits.append(parent)
    return scratch, wanted, stack, commits


def words_of(made: Project, **plan: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for fate in fates(*built(made, **plan)):
        found.setdefault(fate.change.branch, []).append(fate.word)
    return found


def test_what_applies_elsewhere_in_a_file_has_landed_as_it_was(tmp_path: Path) -> None:
    made = Project(
        tmp_path, {"a.py": TEN}, one=[{"a.py": f"new\n{TEN}"}], two=[{"a.py": TEN.replace("8\n", "eight\n")}]
    )
    assert words_of(made) == {"one": [AS_IT_WAS], "two": [AS_IT_WAS]}


def test_every_kind_of_entry_is_compared(tmp_path: Path) -> None:
    made = Project(
        tmp_path,
        {"a.py": TEN, "b": bytes(range(256)), "l": ("120000", "a.py"), "gone": "x\n"},
        binary=[{"b": bytes(range(255, -1, -1))}],
        mode=[{"a.py": ("100755", TEN)}],
        link=[{"l": ("120000", "b")}],
        module=[{"m": ("160000", "1" * 40)}],
        gone=[{"gone": None}],
        odd=[{"caf\udce9 \n.py": "x\n"}],
    )
    assert words_of(made) == {branch: [AS_IT_WAS] for branch in made.heads}


def test_folded_changes_are_compared_one_by_one(tmp_path: Path) -> None:
    made = Project(
        tmp_path,
        {"tests/test_a.py": TEST.format("a")},
        one=[{"tests/test_a.py": TEST.format("a") + TEST.format("b")}],
        two=[{"tests/test_a.py": TEST.format("a") + TEST.format("c")}],
        three=[{"tests/test_x.py": TEST.format("x")}],
    )
    scratch, plan, stack, commits = built(made)
    assert [pick.how for pick in stack.picks] == ["", "union", ""]
    text = receipt(scratch, made.sources(), plan, stack, commits)
    assert "one: 1 landed as it was\n" in text
    assert "three: 1 landed as it was\n" in text
    assert f"landed as it was: {commits[0][:10]}, folded" in text


def test_a_resolution_that_differs_is_shown_by_range_diff(tmp_path: Path) -> None:
    made = Project(tmp_path, {"a.py": "x = 1\n"}, one=[{"a.py": "x = 2\n"}], two=[{"a.py": "x = 3\n"}])
    scratch = made.scratch()
    rest, fixes = made.sorted_out()
    solution = scratch.edit_tree(scratch.tree_of(scratch.base), {"a.py": ("100644", scratch.store(b"x = 2 + 3\n"))})
    plan = Plan(rest=rest, fixes=fixes, solved=lambda change, picked, onto: solution)
    stack = build(scratch, plan)
    text = receipt(scratch, made.sources(), plan, stack, ["1" * 40, "2" * 40])
    assert [fate.word for fate in fates(scratch, plan, stack, [])] == [AS_IT_WAS, CHANGED]
    assert "two: 1 landed changed\n" in text
    assert "    -+x = 3\n" in text
    assert "    ++x = 2 + 3" in text


def test_of_a_duplicate_it_is_said_whose_landed(tmp_path: Path) -> None:
    made = Project(tmp_path, {"a.py": "1\n"}, one=[{"a.py": "2\n"}], two=[{"a.py": "2\n"}])
    text = receipt(made.scratch(), made.sources(), *built(made)[1:])
    assert "two: 1 landed as it was\n" in text
    assert ", by one, who made the same" in text


def test_what_did_not_land_says_why(tmp_path: Path) -> None:
    made = Project(
        tmp_path, {"a.py": "1\n", "b.py": ""}, one=[{"a.py": "2\n"}], two=[{"a.py": "3\n"}], three=[{"b.py": "x\n"}]
    )
    dropped = next(group.key for group in made.groups() if group.first.branch == "three")
    scratch, plan, stack, commits = built(made, dropped={dropped: "dropped by --drop"})
    found = {fate.change.branch: fate for fate in fates(scratch, plan, stack, commits)}
    assert {branch: fate.word for branch, fate in found.items()} == {
        "one": AS_IT_WAS,
        "two": NOT_LANDED,
        "three": NOT_LANDED,
    }
    assert found["two"].told.startswith("left out: ")
    assert found["three"].told == "dropped by --drop"


def test_every_branch_has_a_line_and_every_commit(tmp_path: Path) -> None:
    made = Project(tmp_path, {"a.py": "1\n"}, one=[{"a.py": "2\n"}, {"a.py": "3\n", "": "Second"}])
    sources = [
        Source(branch="one", head="", agent="r1-one"),
        Source(branch="none", head=""),
        Source(branch="e", head=""),
    ]
    ignored = [Ignored(branch="e", commit="e" * 40, subject="Nothing\x1b[1m", why="it is empty")]
    text = receipt(made.scratch(), sources, *built(made)[1:], ignored)
    assert "one (r1-one): 2 landed as they were\n" in text
    assert "none: no commits\n" in text
    assert "e: 1 ignored\n  eeeeeeeeee Nothing: ignored: it is empty\n" in text
    assert text.index("Change a.py") < text.index("Second")


def test_range_diff_is_asked_only_about_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    branches = {f"b{number}": [{f"f{number}.py": "x\n"}] for number in range(20)}
    made = Project(tmp_path, {"a.py": TEN}, **branches)
    scratch, plan, stack, commits = built(made)
    asked = 0

    def counting(*words: str, **_: object) -> object:
        nonlocal asked
        asked += 1
        return run(*words, **_)  # type: ignore[arg-type]

    run = scratch.run
    monkeypatch.setattr(scratch, "run", counting)
    assert {fate.word for fate in fates(scratch, plan, stack, commits)} == {AS_IT_WAS}
    assert asked <= 3
