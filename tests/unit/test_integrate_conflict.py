"""The work dir of a conflict: opened as a cherry-pick in progress, closed by whoever commits there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr.integrate.picking.pick import pick
from mngr.integrate.picking.stack import Left
from mngr.integrate.solving import unsolved
from mngr.integrate.solving.conflict import PLACE, Opened, carry, close, load, open_
from mngr.integrate.solving.resolutions import key_of
from tests.clashes import Clash, git
from tests.histories import LINK, PROGRAM, SUBMODULE, Content

BASE = "def f():\n    return 1\n"
SOLVED = "def f():\n    return 2 + 3\n"


def clash_of_two(tmp_path: Path) -> Clash:
    left: dict[str, Content] = {"app.py": "def f():\n    return 2\n"}
    right: dict[str, Content] = {"app.py": "def f():\n    return 3\n", "right.py": "right\n"}
    return Clash(tmp_path, {"app.py": BASE, "other.py": "other\n"}, left=left, right=right)


def opened(clash: Clash) -> Opened:
    return open_(clash.scratch, clash.left(), str(clash.directory), clash.told.append)


def solve(found: Opened, content: str = SOLVED, path: str = "app.py") -> None:
    Path(found.directory, path).write_text(content)
    git(found.directory, "add", "-A")


def commit(found: Opened) -> None:
    git(found.directory, "commit", "-q", "--no-edit")


# Opening


def test_it_is_a_cherry_pick_in_progress(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    place = Path(found.directory)
    status = git(place, "status", "--porcelain").splitlines()
    assert status == ["UU app.py", "A  right.py"]
    assert git(place, "log", "-1", "--format=%s") == "What is integrated so far"
    assert git(place, "log", "-1", "--format=%s %an", "CHERRY_PICK_HEAD") == "What right does Ann"
    text = (place / "app.py").read_text()
    assert "<<<<<<< HEAD\n    return 2\n" in text
    assert "    return 1\n=======\n    return 3\n" in text
    assert "(What right does)" in text


def test_head_has_what_is_integrated_so_far(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    assert git(found.directory, "rev-parse", "HEAD^{tree}") == clash.left().onto
    assert git(found.directory, "diff", "--name-only", "refs/mngr/base", "HEAD") == "app.py"


def test_the_other_half_of_its_commit_is_there_and_no_part_of_the_resolution(tmp_path: Path) -> None:
    right: dict[str, Content] = {"app.py": "def f():\n    return 3\n", "tests/test_right.py": "right\n"}
    clash = Clash(tmp_path, {"app.py": BASE}, left={"app.py": "def f():\n    return 2\n"}, right=right)
    (left,) = [each for each in clash.stack().left if each.picked.conflicts]
    assert left.group.first.paths == ["app.py"]
    found = open_(clash.scratch, left, str(clash.directory), clash.told.append)
    assert Path(found.directory, "tests/test_right.py").read_text() == "right\n"
    assert git(found.directory, "status", "--porcelain") == "UU app.py"
    solve(found)
    commit(found)
    closed = close(found)
    assert (closed.problem, list(closed.files)) == ("", ["app.py"])


def test_it_needs_nothing_but_itself(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    clash.scratch.remove()
    os.rename(clash.history.top, tmp_path / "moved")
    solve(found)
    commit(found)
    assert git(found.directory, "fsck", "--full", "--no-dangling") == ""
    assert close(found).problem == ""


def test_the_scratch_repository_keeps_no_reference_to_it(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    opened(clash)
    assert clash.scratch.git("for-each-ref") == ""


def test_git_commit_asks_for_nothing(tmp_path: Path) -> None:
    """No identity, no editor, no hooks of the user's: whoever works there may have none of them."""
    found = opened(clash_of_two(tmp_path))
    solve(found)
    git(found.directory, "commit", "-q")
    assert git(found.directory, "log", "-1", "--format=%s") == "What right does"


def test_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    solve(opened(clash), "half of it\n")
    found = opened(clash)
    assert Path(found.directory, "app.py").read_text() == "half of it\n"


def test_one_that_nobody_touched_makes_room_for_another_conflict_of_the_same_change(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    before = opened(clash)
    after = open_(clash.scratch, _other_conflict(clash), str(clash.directory), clash.told.append)
    assert (after.name, after.directory) == (before.name, before.directory)
    assert after.key != before.key
    assert os.listdir(clash.directory / PLACE) == [after.name]


def test_one_that_somebody_worked_in_is_kept_aside(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    before = opened(clash)
    Path(before.directory, "app.py").write_text("half of it\n")
    open_(clash.scratch, _other_conflict(clash), str(clash.directory), clash.told.append)
    kept = clash.directory / PLACE / f"{before.name}-old-1"
    assert (kept / "app.py").read_text() == "half of it\n"
    assert load(str(kept)) is None
    assert str(kept) in clash.told[-1]


def _other_conflict(clash: Clash) -> Left:
    left = clash.left()
    tree = clash.scratch.edit_tree(left.onto, {"app.py": ("100644", clash.scratch.store(b"def f():\n    return 9\n"))})
    return left.replace(onto=tree, picked=pick(clash.scratch, tree, left.group.first))


def test_a_place_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    (clash.directory / PLACE).write_text("in the way")
    with pytest.raises(MngrError, match="cannot be made"):
        opened(clash)


# Closing


def test_a_commit_is_a_resolution(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    solve(found)
    commit(found)
    closed = close(found)
    assert closed.problem == ""
    assert closed.files == {"app.py": ("100644", SOLVED.encode())}
    unsolved.record(found, closed, clash.resolutions, by="me", why="")
    stack = clash.stack()
    assert (stack.left, clash.content(stack.tree, "app.py")) == ([], SOLVED.encode())
    assert clash.content(stack.tree, "right.py") == b"right\n"
    assert not os.path.exists(found.directory)


def test_what_is_added_and_not_committed_is_a_resolution_too(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    solve(found)
    assert close(found).files == {"app.py": ("100644", SOLVED.encode())}


def test_several_commits_are_one_resolution(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    solve(found, "first try\n")
    commit(found)
    solve(found)
    git(found.directory, "commit", "-q", "-m", "Better")
    assert close(found).files["app.py"] == ("100644", SOLVED.encode())


def test_one_that_nobody_worked_on_is_still_in_conflict(tmp_path: Path) -> None:
    closed = close(opened(clash_of_two(tmp_path)))
    assert closed.problem == "app.py: still in conflict (git add it when it is solved)"


def test_markers_are_no_resolution(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    git(found.directory, "add", "-A")
    commit(found)
    assert close(found).problem == "conflict markers are left in app.py"


@pytest.mark.parametrize("line", ["=======", ">>>>>>> 12ab (x)", "|||||||", "<<<<<<< HEAD"])
def test_a_single_marker_that_was_forgotten_is_seen(tmp_path: Path, line: str) -> None:
    found = opened(clash_of_two(tmp_path))
    solve(found, f"{SOLVED}{line}\n")
    assert close(found).problem == "conflict markers are left in app.py"


def test_lines_that_a_side_had_before_are_no_markers(tmp_path: Path) -> None:
    """As in a text about git, or a heading that is underlined."""
    text = "Heading\n=======\n<<<<<<< HEAD\n"
    clash = Clash(tmp_path, {"a.rst": "a\n"}, left={"a.rst": f"{text}left\n"}, right={"a.rst": f"{text}right\n"})
    found = opened(clash)
    solve(found, f"{text}left\nright\n", "a.rst")
    assert close(found).problem == ""


def test_a_path_that_is_nobodys_business_is_told(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    solve(found)
    solve(found, "changed\n", "other.py")
    solve(found, "new\n", "new.py")
    commit(found)
    assert close(found).problem == "new.py, other.py: not part of the change nor of the conflict"


def test_a_file_of_the_change_itself_may_be_changed_with_it(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    solve(found)
    solve(found, "right, and left\n", "right.py")
    commit(found)
    closed = close(found)
    assert closed.files["right.py"] == ("100644", b"right, and left\n")
    unsolved.record(found, closed, clash.resolutions, by="me", why="")
    assert clash.content(clash.stack().tree, "right.py") == b"right, and left\n"


@pytest.mark.parametrize("words", [["cherry-pick", "--abort"], ["cherry-pick", "--skip"], ["reset", "-q", "--hard"]])
def test_giving_up_is_no_resolution(tmp_path: Path, words: list[str]) -> None:
    found = opened(clash_of_two(tmp_path))
    git(found.directory, *words)
    assert close(found).problem.startswith("nothing of the change is in it")


def test_a_commit_on_something_else_is_no_resolution(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    git(found.directory, "reset", "-q", "--hard", "refs/mngr/base")
    solve(found)
    git(found.directory, "commit", "-q", "-m", "Elsewhere")
    assert close(found).problem == "what is committed there is not based on what is integrated so far"


def test_a_repository_that_was_destroyed_is_a_problem_and_no_error(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    os.remove(os.path.join(found.directory, ".git", "HEAD"))
    assert "cannot be read" in close(found).problem


LINES = [f"line {number}\n" for number in range(12)]


def with_lines(changes: dict[int, str]) -> str:
    return "".join(changes.get(number, line) for number, line in enumerate(LINES))


def clash_far_from_other_work(tmp_path: Path) -> Clash:
    """The first two are in; the third conflicts with the second alone."""
    return Clash(
        tmp_path,
        {"app.py": "".join(LINES)},
        far={"app.py": with_lines({0: "far\n"})},
        left={"app.py": with_lines({9: "left\n"})},
        right={"app.py": with_lines({9: "right\n"})},
    )


def test_a_whole_file_of_the_change_is_no_resolution_if_it_undoes_what_others_did(tmp_path: Path) -> None:
    found = opened(clash_far_from_other_work(tmp_path))
    git(found.directory, "checkout", "-q", "--theirs", "app.py")
    git(found.directory, "add", "app.py")
    commit(found)
    closed = close(found)
    assert closed.problem.startswith("app.py: the whole file is taken from the change")
    assert closed.tree
    git(found.directory, "checkout", "-q", "refs/mngr/merged", "--", "app.py")
    text = Path(found.directory, "app.py").read_text()
    assert text.startswith("far\n")
    assert "<<<<<<< " in text
    solve(found, with_lines({0: "far\n", 9: "right\n"}))
    git(found.directory, "commit", "-q", "-m", "Only what is marked")
    assert close(found).problem == ""


def test_a_whole_file_of_the_change_is_one_if_nothing_else_is_lost(tmp_path: Path) -> None:
    found = opened(clash_of_two(tmp_path))
    git(found.directory, "checkout", "-q", "--theirs", "app.py")
    git(found.directory, "add", "app.py")
    commit(found)
    assert close(found).problem == ""


# Work that comes later


def solved_by_hand(clash: Clash, content: str) -> None:
    found = opened(clash)
    solve(found, content)
    commit(found)
    assert unsolved.take_solved(str(clash.directory), clash.resolutions) == 1


def test_a_resolution_survives_a_change_elsewhere_in_the_file(tmp_path: Path) -> None:
    clash = clash_far_from_other_work(tmp_path)
    solved_by_hand(clash, with_lines({0: "far\n", 9: "both\n"}))
    clash.add("late", {"app.py": with_lines({4: "late\n"})})
    clash.sources.insert(0, clash.sources.pop())
    clash.begin()
    for _ in range(2):
        stack = clash.stack()
        assert stack.left == []
        assert clash.content(stack.tree, "app.py") == with_lines({0: "far\n", 4: "late\n", 9: "both\n"}).encode()
    (told,) = clash.told
    assert told == "the resolution for 'What right does' is merged with what others have changed in app.py since"


def test_a_resolution_that_does_not_fit_any_more_is_kept(tmp_path: Path) -> None:
    clash = clash_far_from_other_work(tmp_path)
    solved_by_hand(clash, with_lines({0: "far\n", 9: "both\n"}))
    clash.add("late", {"app.py": with_lines({9: "left\n", 10: "late\n"})})
    clash.sources = [clash.sources[3], *clash.sources[:3]]
    clash.begin()
    open_still = {left.group.first.branch: left for left in clash.stack().left}
    assert "right" in open_still
    kept = clash.resolutions.earlier(open_still["right"].picked)
    assert with_lines({0: "far\n", 9: "both\n"}) in {path.read_text() for path in Path(kept).iterdir()}


# Kinds of conflicts


@pytest.mark.parametrize("keep", [True, False])
def test_one_side_changes_what_the_other_removes(tmp_path: Path, keep: bool) -> None:
    clash = Clash(
        tmp_path, {"app.py": BASE, "x.py": "x\n"}, left={"app.py": SOLVED}, right={"app.py": None, "x.py": "y\n"}
    )
    found = opened(clash)
    git(found.directory, "add" if keep else "rm", "-q" if not keep else "-f", "app.py")
    commit(found)
    closed = close(found)
    assert closed.problem == ""
    assert closed.files == {"app.py": ("100644", SOLVED.encode()) if keep else None}
    unsolved.record(found, closed, clash.resolutions, by="me", why="")
    stack = clash.stack()
    assert (stack.left, clash.content(stack.tree, "x.py")) == ([], b"y\n")
    assert clash.content(stack.tree, "app.py") == (SOLVED.encode() if keep else None)


def test_both_add_the_same_file(tmp_path: Path) -> None:
    clash = Clash(tmp_path, {"x.toml": "x\n"}, left={"new.toml": "a = 1\n"}, right={"new.toml": "a = 2\n"})
    found = opened(clash)
    solve(found, "a = 3\n", "new.toml")
    assert close(found).files == {"new.toml": ("100644", b"a = 3\n")}


def test_links_modes_and_names_of_any_bytes_survive(tmp_path: Path) -> None:
    name = "caf\udce9 *.py"
    left: dict[str, Content] = {name: (PROGRAM, "left\n"), "link": (LINK, "left")}
    right: dict[str, Content] = {name: (PROGRAM, "right\n"), "link": (LINK, "right")}
    clash = Clash(tmp_path, {name: (PROGRAM, "base\n"), "link": (LINK, "base")}, left=left, right=right)
    found = opened(clash)
    assert found.paths == sorted([name, "link"])
    assert load(found.directory) == found
    Path(found.directory, name).write_text("both\n")
    link = Path(found.directory, "link")
    link.unlink()
    link.symlink_to("both")
    git(found.directory, "add", "-A")
    commit(found)
    closed = close(found)
    assert closed.files == {name: ("100755", b"both\n"), "link": ("120000", b"both")}
    unsolved.record(found, closed, clash.resolutions, by="me", why="")
    assert clash.stack().left == []


def test_a_submodule_that_points_to_two_commits(tmp_path: Path) -> None:
    one, two, three = ("1" * 40, "2" * 40, "3" * 40)
    clash = Clash(
        tmp_path, {"sub": (SUBMODULE, one)}, left={"sub": (SUBMODULE, two)}, right={"sub": (SUBMODULE, three)}
    )
    found = opened(clash)
    git(found.directory, "update-index", "--cacheinfo", f"160000,{'4' * 40},sub")
    commit(found)
    closed = close(found)
    assert closed.files == {"sub": ("160000", b"4" * 40)}
    unsolved.record(found, closed, clash.resolutions, by="me", why="")
    assert clash.scratch.entries(clash.stack().tree, ["sub"]) == {"sub": ("160000", "4" * 40)}


def test_a_rename_on_one_side(tmp_path: Path) -> None:
    body = "".join(f"line {number}\n" for number in range(30))
    left: dict[str, Content] = {"old.py": None, "new.py": body.replace("line 5\n", "left\n")}
    clash = Clash(tmp_path, {"old.py": body}, left=left, right={"old.py": body.replace("line 5\n", "right\n")})
    found = opened(clash)
    assert found.paths == ["new.py"]
    solve(found, body.replace("line 5\n", "left\nright\n"), "new.py")
    commit(found)
    closed = close(found)
    assert sorted(closed.files) == ["new.py"]
    unsolved.record(found, closed, clash.resolutions, by="me", why="")
    assert clash.stack().left == []


# What else is needed there


def test_ignored_files_are_carried_along_and_never_added(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    top = clash.history.top
    (top / "data" / "deep").mkdir(parents=True)
    (top / "data" / "deep" / "one").write_text("one")
    (top / "a [b].env").write_text("secret")
    (top / "app.py").write_text("not this one")
    found = opened(clash)
    for _ in range(2):  # an agent may be asked again
        carry(found, str(top), ["data", "a*", "nothing"])
    assert Path(found.directory, "data", "deep", "one").read_text() == "one"
    assert "<<<<<<<" in Path(found.directory, "app.py").read_text()
    solve(found)
    commit(found)
    assert close(found).files == {"app.py": ("100644", SOLVED.encode())}
    assert git(found.directory, "status", "--porcelain") == ""


def test_a_work_tree_that_is_not_readable_is_one_error(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    (clash.history.top / "data").mkdir()
    (clash.history.top / "data" / "link").symlink_to("nowhere")
    found = opened(clash)
    carry(found, str(clash.history.top), ["data"])
    assert os.readlink(os.path.join(found.directory, "data", "link")) == "nowhere"
    os.mkfifo(clash.history.top / "pipe")
    with pytest.raises(MngrError, match="cannot get what it needs"):
        carry(found, str(clash.history.top), ["pipe"])


# Those that are open


def test_what_a_person_has_solved_is_taken(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    key = key_of(clash.left().picked)
    solve(found)
    git(found.directory, "commit", "-q", "-m", "Add the two")
    assert unsolved.take_solved(str(clash.directory), clash.resolutions, clash.told.append) == 1
    kept = clash.resolutions.get(key)
    assert kept is not None
    assert (kept.by, kept.why) == ("hand", "Add the two")
    assert clash.told == [f"{found.name} (What right does) was solved by hand"]
    assert clash.stack().left == []


def test_what_is_not_solved_stays_open(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    assert unsolved.take_solved(str(clash.directory), clash.resolutions) == 0
    assert os.path.isdir(found.directory)


def test_what_an_agent_is_at_is_not_taken(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    solve(found)
    unsolved.mark_worker(found, "r1-solve")
    assert unsolved.take_solved(str(clash.directory), clash.resolutions) == 0
    unsolved.mark_worker(found, "")
    assert unsolved.take_solved(str(clash.directory), clash.resolutions) == 1


def test_what_was_refused_is_taken_only_when_it_is_something_else(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    solve(found)
    unsolved.refuse(found, close(found).tree)
    assert unsolved.take_solved(str(clash.directory), clash.resolutions) == 0
    assert unsolved.take_solved(str(clash.directory), clash.resolutions, clash.told.append) == 0
    assert clash.told == [
        f"{found.name} is not solved: what is committed in {found.directory} was found no good before"
    ]
    solve(found, "def f():\n    return 5\n")
    assert unsolved.take_solved(str(clash.directory), clash.resolutions) == 1


def test_what_is_wrong_with_the_work_of_a_person_is_told(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    assert unsolved.take_solved(str(clash.directory), clash.resolutions, clash.told.append) == 0
    assert clash.told == [], "nobody has worked there"
    git(found.directory, "add", "-A")
    assert unsolved.take_solved(str(clash.directory), clash.resolutions, clash.told.append) == 0
    assert clash.told == [f"{found.name} is not solved in {found.directory}: conflict markers are left in app.py"]


def test_work_dirs_of_what_is_no_conflict_any_more_go(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    unsolved.keep_only(str(clash.directory), [found.name])
    assert os.path.isdir(found.directory)
    unsolved.keep_only(str(clash.directory), [])
    assert not os.path.exists(clash.directory / PLACE)


def test_a_work_dir_in_which_somebody_worked_is_never_removed(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    found = opened(clash)
    Path(found.directory, "app.py").write_text("half of it\n")
    unsolved.keep_only(str(clash.directory), [], clash.told.append)
    assert Path(found.directory + "-old-1", "app.py").read_text() == "half of it\n"
    assert "kept because somebody has worked in it" in clash.told[-1]
