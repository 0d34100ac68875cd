"""What a branch does and undoes again comes to nothing, for itself and for everybody else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mngr.integrate.picking import read as reading
from mngr.integrate.picking.identity import groups
from mngr.integrate.picking.read import Found
from tests.histories import PROGRAM, Content, History, kinds, scratch, source

LINES = "".join(f"line {number}\n" for number in range(30))
FIXED = LINES.replace("line 5\n", "five\n")
OTHER = LINES.replace("line 25\n", "twenty-five\n")
BOTH = OTHER.replace("line 5\n", "five\n")


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "repo")
    history.commit("main", {"src/a.py": LINES, "src/b.py": LINES, "tests/test_a.py": "1\n"})
    return history


def put(history: History, branch: str, *commits: Mapping[str, Content], on: str = "main") -> list[str]:
    made = [history.git("rev-parse", on)]
    for number, files in enumerate(commits):
        made.append(history.commit(branch, files, f"{branch} {number}", made[-1]))
    return made[1:]


def found(history: History, *branches: str) -> Found:
    there = scratch(history)
    return reading.read(there, [source(history, branch) for branch in branches], kinds(there))


def subjects(found: Found) -> list[str]:
    return [change.subject for change in found.changes]


@pytest.mark.parametrize("order", [("undoes", "fixes"), ("fixes", "undoes")])
def test_a_fix_lands_although_another_branch_undoes_the_same(history: History, order: tuple[str, str]) -> None:
    did, undid = put(history, "undoes", {"src/a.py": FIXED}, {"src/a.py": LINES})
    put(history, "fixes", {"src/a.py": FIXED})
    came = found(history, *order)
    assert subjects(came) == ["fixes 0"]
    assert [(each.branch, each.commit, each.why) for each in came.ignored] == [
        ("undoes", did, f"undone on its own branch, by {undid[:10]}"),
        ("undoes", undid, f"undoes {did[:10]} of its own branch"),
    ]


def test_what_came_in_between_stays(history: History) -> None:
    put(history, "b", {"src/a.py": FIXED}, {"src/a.py": BOTH}, {"src/a.py": OTHER})
    assert subjects(found(history, "b")) == ["b 1"]


def test_several_changes_can_be_undone_at_once(history: History) -> None:
    again = {"src/a.py": LINES, "src/b.py": LINES}
    put(history, "b", {"src/a.py": FIXED}, {"src/a.py": BOTH, "src/b.py": OTHER}, {"src/c.py": "x\n"}, again)
    assert subjects(found(history, "b")) == ["b 2"]


def test_an_undoing_that_is_undone_is_no_undoing(history: History) -> None:
    put(history, "b", *({"src/a.py": text} for text in (FIXED, LINES, FIXED, LINES, FIXED)))
    assert subjects(found(history, "b")) == ["b 4"]


def test_a_mode_that_is_set_and_taken_away_is_nothing(history: History) -> None:
    put(history, "b", {"src/a.py": (PROGRAM, LINES)}, {"src/a.py": LINES}, {"src/b.py": FIXED})
    assert subjects(found(history, "b")) == ["b 2"]


def test_of_a_commit_of_two_kinds_the_half_that_is_not_undone_stays(history: History) -> None:
    put(history, "b", {"src/a.py": FIXED, "tests/test_a.py": "2\n"}, {"src/a.py": LINES})
    put(history, "c", {"src/a.py": FIXED, "tests/test_a.py": "2\n"})
    came = found(history, "b", "c")
    assert [(change.branch, change.kind) for change in came.changes] == [
        ("b", "test"),
        ("c", "implementation"),
        ("c", "test"),
    ]


@pytest.mark.parametrize(
    "commits",
    [
        [{"src/a.py": FIXED}, {"src/a.py": LINES, "src/b.py": FIXED}],  # it does something else, too
        [{"src/a.py": FIXED, "src/b.py": FIXED}, {"src/a.py": LINES}],  # only half of it
        [{"src/a.py": FIXED}, {"src/a.py": FIXED.replace("five", "5")}],
        [{"src/a.py": LINES + "x\nx\n"}, {"src/a.py": LINES + "x\n"}],
    ],
)
def test_what_is_undone_in_part_is_as_it_was_made(history: History, commits: list[dict[str, Content]]) -> None:
    put(history, "b", *commits)
    assert subjects(found(history, "b")) == ["b 0", "b 1"]


def test_the_same_lines_at_another_place_are_not_undone(tmp_path: Path) -> None:
    history = History(tmp_path / "repo")
    block, changed = "begin\n1\n2\n3\nold\n4\n5\n6\nend\n", "begin\n1\n2\n3\nnew\n4\n5\n6\nend\n"
    history.commit("main", {"src/a.py": block + changed})
    put(history, "b", {"src/a.py": changed + changed}, {"src/a.py": changed + block})
    assert subjects(found(history, "b")) == ["b 0", "b 1"]


def test_a_commit_that_another_branch_goes_on_from_is_taken(history: History) -> None:
    (did,) = put(history, "lower", {"src/a.py": FIXED})
    put(history, "upper", {"src/a.py": LINES}, on=did)
    assert subjects(found(history, "lower", "upper")) == ["lower 0", "upper 0"]
    assert subjects(found(history, "upper", "lower")) == ["lower 0", "upper 0"]


def test_a_pair_that_two_branches_have_is_nothing_for_both(history: History) -> None:
    _, undid = put(history, "lower", {"src/a.py": FIXED}, {"src/a.py": LINES})
    put(history, "upper", {"src/b.py": FIXED}, on=undid)
    put(history, "fixes", {"src/a.py": FIXED})
    came = found(history, "lower", "upper", "fixes")
    assert subjects(came) == ["upper 0", "fixes 0"]
    assert [len(group.changes) for group in groups(scratch(history, directory="other"), came.changes)] == [1, 1]
