"""One change upon the other: what comes in, how, and what is left out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mngr.integrate.change import Change, Group
from mngr.integrate.picking import attempt, stack
from mngr.integrate.picking.hunks import both_sides
from mngr.integrate.picking.pick import Picked, pick
from mngr.integrate.picking.scratch import Scratch
from mngr.integrate.picking.stack import Plan, Stack, build
from tests.integration import Commit, Project, plain_files

TEN = "".join(f"{n}\n" for n in range(10))


def named(groups: list[Group]) -> list[str]:
    return [group.first.subject for group in groups]


def shape(made: Stack) -> list[list[str]]:
    """The subjects of each step."""
    return [named([each.group for each in step.picks]) for step in made.steps]


def plan_of(project: Project) -> Plan:
    rest, fixes = project.sorted_out()
    return Plan(rest=rest, fixes=fixes)


def key_of(project: Project, subject: str) -> str:
    return next(group.key for group in project.groups() if group.first.subject == subject)


def test_the_rest_is_one_step_and_each_fix_another(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": "", "b.py": ""},
        one=[{"": "A", "a.py": "a = 1\n"}, {"": "Test", "tests/test_a.py": "a\n"}],
        two=[{"": "B", "b.py": "b = 1\n"}, {"": "Docs", "docs/b.md": "b\n"}],
    )
    scratch = project.scratch()
    made = build(scratch, plan_of(project))
    assert shape(made) == [["Test", "Docs"], ["A"], ["B"]]
    assert [step.kind for step in made.steps] == [stack.REST, stack.FIX, stack.FIX]
    assert made.tree == made.steps[-1].tree
    assert plain_files(scratch, made.tree) == {
        "a.py": "a = 1\n",
        "b.py": "b = 1\n",
        "docs/b.md": "b\n",
        "tests/test_a.py": "a\n",
    }
    assert plain_files(scratch, made.steps[0].tree)["a.py"] == ""


def test_without_a_rest_the_first_step_is_a_fix(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.py": ""}, one=[{"a.py": "a = 1\n"}])
    assert [step.kind for step in build(project.scratch(), plan_of(project)).steps] == [stack.FIX]


def test_nothing_gives_the_tree_of_the_base(tmp_path: Path) -> None:
    scratch = Project(tmp_path, {"a.py": ""}).scratch()
    made = build(scratch, Plan())
    assert made.steps == []
    assert made.tree == scratch.tree_of(scratch.base)


def test_what_adds_nothing_is_there(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": TEN},
        one=[{"": "Both", "a.py": TEN.replace("1", "one").replace("8", "eight")}],
        two=[{"": "Half", "a.py": TEN.replace("1", "one")}],
    )
    made = build(project.scratch(), plan_of(project))
    assert shape(made) == [["Both"]]
    assert named(made.there) == ["Half"]


def test_what_is_dropped_is_not_in(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.py": ""}, one=[{"": "A", "a.py": "1\n"}, {"": "Test", "tests/test_a.py": ""}])
    dropped = {key_of(project, "A"): "by hand", key_of(project, "Test"): "by hand"}
    made = build(project.scratch(), plan_of(project).replace(dropped=dropped))
    assert made.steps == made.left == made.there == []
    assert named(made.dropped) == ["Test", "A"]


# What travels with a fix


def test_a_carried_test_comes_in_with_its_fix(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": "", "b.py": ""},
        one=[{"": "A", "a.py": "1\n"}, {"": "Test A", "tests/test_a.py": "1\n"}],
        two=[{"": "B", "b.py": "1\n"}, {"": "Test B", "tests/test_b.py": "1\n"}],
    )
    plan = plan_of(project).replace(carried={key_of(project, "Test A"): key_of(project, "A")})
    assert shape(build(project.scratch(), plan)) == [["Test B"], ["A", "Test A"], ["B"]]


@pytest.mark.parametrize("how", ["dropped", "left out"])
def test_what_is_carried_is_left_out_with_its_fix(tmp_path: Path, how: str) -> None:
    project = Project(
        tmp_path,
        {"a.py": "0\n"},
        one=[{"": "A", "a.py": "1\n"}],
        two=[{"": "B", "a.py": "2\n"}, {"": "Test", "tests/test_b.py": "1\n"}],
    )
    plan = plan_of(project).replace(carried={key_of(project, "Test"): key_of(project, "B")})
    if how == "dropped":
        plan = plan.replace(dropped={key_of(project, "B"): "it breaks something"})
    made = build(project.scratch(), plan)
    left = {each.group.first.subject: each for each in made.left}
    assert shape(made) == [["A"]]
    assert left["Test"].why == f"travels with {key_of(project, 'B')[:12]}, which was {how}"
    assert left["Test"].picked.is_clean


def test_what_a_fix_carries_comes_in_even_if_the_fix_is_there(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": TEN},
        one=[{"": "Both", "a.py": TEN.replace("1", "one").replace("8", "eight")}],
        two=[{"": "Half", "a.py": TEN.replace("1", "one")}, {"": "Test", "tests/test_a.py": "1\n"}],
    )
    plan = plan_of(project).replace(carried={key_of(project, "Test"): key_of(project, "Half")})
    made = build(project.scratch(), plan)
    assert shape(made) == [["Both", "Test"]]
    assert named(made.there) == ["Half"]
    alone = build(project.scratch("other"), plan.replace(fixes=[plan.fixes[1], plan.fixes[0]]))
    assert shape(alone) == [["Half", "Test"], ["Both"]]


def test_what_a_fix_carries_is_folded_if_the_base_has_the_fix(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.py": "1\n"})
    project.branch("old", [{"": "Undo", "a.py": "0\n"}])
    project.branch("two", [{"": "Fix", "a.py": "1\n"}, {"": "Test", "tests/test_a.py": "1\n"}], at="old")
    groups = {group.first.subject: group for group in project.groups()}
    rest, fixes = project.sorted_out()
    plan = Plan(rest=rest, fixes=[each for each in fixes if each.group.first.subject == "Fix"])
    made = build(project.scratch(), plan.replace(carried={groups["Test"].key: groups["Fix"].key}))
    assert shape(made) == [["Test"]]
    assert made.steps[0].kind == stack.REST
    assert named(made.there) == ["Fix"]


def test_a_test_change_that_needs_the_file_of_its_fix_travels_with_it(tmp_path: Path) -> None:
    whole = {"a.py": "1\n", "tests/test_a.py": TEN}
    project = Project(
        tmp_path, {"a.py": ""}, one=[{"": "Whole", **whole}, {"": "Test", "tests/test_a.py": TEN.replace("5", "five")}]
    )
    made = build(project.scratch(), plan_of(project))
    assert shape(made) == [["Whole", "Test"]]
    assert made.left == []
    assert made.steps[0].notes == [
        f"{key_of(project, 'Test')[:12]} travels with it: before it, it conflicts in tests/test_a.py"
    ]


def test_what_builds_on_a_carried_test_travels_with_it_if_it_must(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": "", "b.py": ""},
        one=[
            {"": "A", "a.py": "1\n"},
            {"": "Test", "tests/test_a.py": TEN},
            {"": "Better", "tests/test_a.py": TEN.replace("5", "five")},
        ],
        two=[{"": "B", "b.py": "1\n"}],
    )
    plan = plan_of(project).replace(carried={key_of(project, "Test"): key_of(project, "B")})
    made = build(project.scratch(), plan)
    assert shape(made) == [["A"], ["B", "Test", "Better"]]
    assert made.left == []


# Conflicts


def clashing(tmp_path: Path) -> Project:
    return Project(
        tmp_path,
        {"a.py": TEN},
        one=[{"": "One", "a.py": TEN.replace("5", "one")}],
        two=[{"": "Two", "a.py": TEN.replace("5", "two")}],
    )


def test_what_conflicts_is_left_out_and_says_with_what(tmp_path: Path) -> None:
    project = clashing(tmp_path)
    scratch = project.scratch()
    made = build(scratch, plan_of(project))
    (left,) = made.left
    assert shape(made) == [["One"]]
    assert left.group.first.subject == "Two"
    assert left.paths == ["a.py"]
    assert named(left.against) == ["One"]
    assert left.why == f"conflicts with {key_of(project, 'One')[:12]}, in a.py"
    assert left.onto == made.steps[0].tree
    assert left.picked == pick(scratch, left.onto, left.group.first)


def test_only_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": TEN},
        one=[{"": "Far", "a.py": TEN.replace("0", "far")}],
        two=[{"": "Near", "a.py": TEN.replace("5", "near")}],
        three=[{"": "Near too", "a.py": TEN.replace("9", "near too")}],
        four=[{"": "Far too", "a.py": TEN.replace("2", "far too")}],
        five=[{"": "Five", "a.py": TEN.replace("5", "five").replace("9", "five")}],
    )
    (left,) = build(project.scratch(), plan_of(project)).left
    assert named(left.against) == ["Near", "Near too"]


def test_what_is_in_the_way_is_found_below_many_others(tmp_path: Path) -> None:
    lines = [f"{number}\n\n\n" for number in range(50)]
    branches: dict[str, list[Commit]] = {
        f"b{n}": [{"": f"Fix {n}", "a.py": "".join([*lines[:n], f"fixed {n}\n\n\n", *lines[n + 1 :]])}]
        for n in range(50)
    }
    branches["late"] = [{"": "Late", "a.py": "".join(["late\n\n\n", *lines[1:30], "late\n\n\n", *lines[31:]])}]
    project = Project(tmp_path, {"a.py": "".join(lines)}, **branches)
    (left,) = build(project.scratch(), plan_of(project)).left
    assert named(left.against) == ["Fix 0", "Fix 30"]


def test_a_file_that_is_gone_is_in_the_way(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": TEN, "b.py": ""},
        one=[{"": "Gone", "a.py": None}],
        two=[{"": "Other", "b.py": "b\n"}],
        three=[{"": "Three", "a.py": TEN.replace("5", "five")}],
    )
    (left,) = build(project.scratch(), plan_of(project)).left
    assert named(left.against) == ["Gone"]


# The halves of a commit


def halves(project: Project, *commits: str) -> Plan:
    """A plan in which the changes of these subjects are halves: each fix, and the test that follows it."""
    plan = plan_of(project)
    of = {f"{name} test": name for name in commits}

    def of_fix(group: Group) -> Group:
        change = group.first
        same = [each.first.commit for each in project.groups() if each.first.subject == of.get(change.subject)]
        return group.replace(changes=[change.replace(commit=(same or [change.commit])[0])])

    return plan.replace(rest=[of_fix(group) for group in plan.rest])


@pytest.mark.parametrize("how", ["dropped", "left out"])
def test_half_of_a_commit_is_not_in_without_its_fix(tmp_path: Path, how: str) -> None:
    project = Project(
        tmp_path,
        {"a.py": "0\n", "b.py": "0\n"},
        one=[{"": "A", "a.py": "1\n"}, {"": "A test", "tests/test_a.py": "1\n"}],
        two=[{"": "B", "a.py": "2\n"}, {"": "B test", "tests/test_b.py": "1\n"}, {"": "Docs", "docs/b.md": "b\n"}],
    )
    plan = halves(project, "A", "B")
    if how == "dropped":
        plan = plan.replace(dropped={key_of(project, "B"): "by hand"})
    made = build(project.scratch(), plan)
    assert shape(made) == [["A test", "Docs"], ["A"]]
    why = {left.group.first.subject: left.why for left in made.left}
    assert why["B test"] == f"the fix of the same commit, {key_of(project, 'B')[:12]}, is not in"


def test_half_of_a_commit_that_is_in_stays_where_it_is(tmp_path: Path) -> None:
    project = Project(tmp_path, {"a.py": "0\n"}, one=[{"": "A", "a.py": "1\n"}, {"": "A test", "tests/test_a.py": ""}])
    assert shape(build(project.scratch(), halves(project, "A"))) == [["A test"], ["A"]]


def test_half_of_a_commit_is_in_if_somebody_has_made_it_without_the_fix(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": "0\n"},
        one=[{"": "A", "a.py": "1\n"}, {"": "A test", "tests/test_a.py": "1\n"}],
        two=[{"": "The same test", "tests/test_a.py": "1\n"}],
    )
    plan = plan_of(project).replace(dropped={key_of(project, "A"): "by hand"})
    (group,) = plan.rest
    own = group.changes[0].replace(commit=plan.fixes[0].group.first.commit)
    made = build(project.scratch(), plan.replace(rest=[group.replace(changes=[own, group.changes[1]])]))
    assert shape(made) == [["A test"]]


def test_a_resolution_is_taken_before_anything_else_is_tried(tmp_path: Path) -> None:
    project = Project(
        tmp_path, {"a.md": TEN}, one=[{"": "One", "a.md": TEN + "one\n"}], two=[{"": "Two", "a.md": TEN + "two\n"}]
    )
    scratch = project.scratch()
    asked = []

    def solved(change: Change, picked: Picked, onto: str) -> str | None:
        asked.append((change.subject, sorted(picked.conflicts), onto))
        return scratch.edit_tree(onto, {"a.md": ("100644", scratch.store(b"solved\n"))})

    made = build(scratch, plan_of(project).replace(solved=solved))
    assert asked == [("Two", ["a.md"], made.steps[0].picks[0].tree)]
    assert [each.how for each in made.picks] == ["", attempt.RESOLVED]
    assert plain_files(scratch, made.tree) == {"a.md": "solved\n"}


def test_additions_at_the_same_place_are_united(tmp_path: Path) -> None:
    project = Project(
        tmp_path, {"a.md": TEN}, one=[{"": "One", "a.md": TEN + "one\n"}], two=[{"": "Two", "a.md": TEN + "two\n"}]
    )
    scratch = project.scratch()
    made = build(scratch, plan_of(project))
    assert [(each.how, each.text) for each in made.picks] == [
        ("", ""),
        (attempt.UNION, "the additions of both sides were kept in a.md"),
    ]
    assert plain_files(scratch, made.tree) == {"a.md": TEN + "one\ntwo\n"}


def moved_and_rewritten(tmp_path: Path) -> Project:
    """One moves a file and then changes most of it; two edits it where it was."""
    lines = [f"line {n} of the file\n" for n in range(20)]
    moved = [f"new {n}\n" if n < 8 else line for n, line in enumerate(lines)]
    rewritten = [f"new {n}\n" if n < 15 else line for n, line in enumerate(lines)]
    edited = [*lines[:18], "edited\n", lines[19]]
    return Project(
        tmp_path,
        {"a.py": "".join(lines), "c.py": ""},
        one=[
            {"": "Move", "a.py": None, "b.py": "".join(moved)},
            {"": "Rewrite", "b.py": "".join(rewritten)},
            {"": "Other", "c.py": "1\n"},
        ],
        two=[{"": "Edit", "a.py": "".join(edited)}],
    )


def test_the_other_order_is_tried(tmp_path: Path) -> None:
    project = moved_and_rewritten(tmp_path)
    scratch = project.scratch()
    made = build(scratch, plan_of(project))
    assert shape(made) == [["Edit"], ["Move"], ["Rewrite"], ["Other"]]
    assert made.steps[0].picks[0].how == stack.ORDER
    assert (
        made.steps[0].picks[0].text == f"placed before {key_of(project, 'Move')[:12]}: behind it, it conflicts in a.py"
    )
    assert "edited\n" in plain_files(scratch, made.tree)["b.py"]
    assert_sound(scratch, plan_of(project), made)


def test_the_other_order_never_turns_that_of_a_branch_around(tmp_path: Path) -> None:
    """Whether they share a path or not."""
    project = moved_and_rewritten(tmp_path)
    scratch = project.scratch()
    rest, (move, rewrite, other, edit) = project.sorted_out()
    alone = build(scratch, Plan(rest=rest, fixes=[move, rewrite, other, edit]))
    assert shape(alone)[0] == ["Edit"]
    first = other.group.first.replace(branch="two", place=-1)
    before = other.replace(group=other.group.replace(changes=[first]))
    made = build(scratch, Plan(rest=rest, fixes=[move, rewrite, before, edit]))
    assert shape(made) == [["Move"], ["Rewrite"], ["Other"]]
    assert named([left.group for left in made.left]) == ["Edit"]


def test_the_other_order_is_not_tried_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = moved_and_rewritten(tmp_path)
    monkeypatch.setattr(stack, "_TRIES_EACH", 0)
    made = build(project.scratch(), plan_of(project))
    assert named([left.group for left in made.left]) == ["Edit"]


@pytest.mark.parametrize("first", ["file", "directory"])
def test_a_file_against_a_directory_is_told_by_its_own_name(tmp_path: Path, first: str) -> None:
    commits: dict[str, Commit] = {"file": {"x": "1\n"}, "directory": {"x/y": "2\n"}}
    second = next(name for name in commits if name != first)
    project = Project(tmp_path, {"a.py": ""}, one=[commits[first]], two=[{"b.py": "b\n"}], three=[commits[second]])
    scratch = project.scratch()
    (left,) = build(scratch, plan_of(project)).left
    against = next(group.name for group in project.groups() if group.first.branch == "one")
    assert (left.why, left.paths) == (f"conflicts with {against}, in x", ["x"])
    assert all("~" not in hunk["path"] for hunk in both_sides(scratch, left))


def test_picks_stay_linear_when_everything_conflicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    branches: dict[str, list[Commit]] = {
        f"b{n}": [{"a.py": TEN.replace("5", f"five {n}")}, {f"c{n}.py": f"{n}\n", "a.py": TEN.replace("5", f"6 {n}")}]
        for n in range(20)
    }
    project = Project(tmp_path, {"a.py": TEN}, **branches)
    made = []

    def counted(*words: object) -> Picked:
        made.append(words)
        return pick(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(attempt, "pick", counted)
    plan = plan_of(project)
    found = build(project.scratch(), plan)
    assert len(found.left) == 38
    assert len(made) <= (stack._TRIES_EACH + 2) * len(plan.fixes)


def test_what_conflicts_at_its_place_is_tried_again_behind_the_others(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": TEN},
        one=[{"": "First", "a.py": TEN.replace("5", "five")}, {"": "Second", "a.py": TEN.replace("5", "6")}],
    )
    plan = plan_of(project)
    made = build(project.scratch(), plan.replace(fixes=plan.fixes[::-1]))
    assert shape(made) == [["First"], ["Second"]]
    assert made.left == []
    assert made.steps[1].picks[0].how == stack.ORDER


def test_what_builds_on_something_that_is_not_in_says_so(tmp_path: Path) -> None:
    project = Project(
        tmp_path,
        {"a.py": TEN},
        one=[
            {"": "First", "a.py": TEN.replace("5", "five")},
            {"": "Second", "a.py": TEN.replace("5", "6")},
            {"": "Third", "b.py": "1\n"},
        ],
    )
    first = key_of(project, "First")
    made = build(project.scratch(), plan_of(project).replace(dropped={first: "by hand"}))
    assert shape(made) == [["Third"]]
    assert [left.why for left in made.left] == [f"builds on {first[:12]}, which was dropped, in a.py"]


def test_what_conflicts_does_not_keep_what_follows_from_coming_in(tmp_path: Path) -> None:
    project = clashing(tmp_path)
    project.branch("three", [{"": "Three", "a.py": TEN.replace("9", "nine")}])
    made = build(project.scratch(), plan_of(project))
    assert shape(made) == [["One"], ["Three"]]


# For every plan


def random_project(tmp_path: Path, dice: random.Random) -> Project:
    files = {"a.py": TEN, "b.py": TEN, "tests/test_a.py": TEN, "docs/a.md": TEN}
    project = Project(tmp_path, files)
    for number in range(6):
        now: dict[str, str] = dict(files)
        commits = []
        for _ in range(dice.randint(1, 3)):
            commit: dict[str, str | None] = {}
            for path in dice.choices(sorted(now), k=dice.choice((1, 1, 1, 2))):
                commit[path] = random_edit(now.get(path, ""), dice)
            if dice.random() < 0.15:
                gone = dice.choice(sorted(now))
                commit[gone] = None
                commit[dice.choice(("new.py", "tests/test_new.py"))] = now[gone]
            for path, content in commit.items():
                if content is None:
                    now.pop(path, None)
                else:
                    now[path] = content
            commits.append(commit)
            if not now:
                break
        project.branch(f"b{number}", commits)
    return project


def random_edit(text: str, dice: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    place = dice.choice((0, len(lines) // 2, len(lines)))
    word = dice.choice("xyz")
    if dice.random() < 0.5:
        return "".join([*lines[:place], f"{word}\n", *lines[place:]])
    return "".join([*lines[:place], f"{word}\n", *lines[place + 1 :]])


def random_plan(project: Project, dice: random.Random) -> Plan:
    plan = plan_of(project)
    fixes = list(plan.fixes)
    dice.shuffle(fixes)
    keys = [each.group.key for each in fixes]
    carried = {group.key: dice.choice(keys) for group in plan.rest if keys and dice.random() < 0.5}
    everything = [*plan.rest, *(each.group for each in fixes)]
    dropped = {group.key: "by chance" for group in everything if dice.random() < 0.1}
    return plan.replace(fixes=fixes, carried=carried, dropped=dropped)


def assert_sound(scratch: Scratch, plan: Plan, made: Stack) -> None:
    everything = [*plan.rest, *(each.group for each in plan.fixes)]
    places = [*(each.group for each in made.picks), *(each.group for each in made.left), *made.there, *made.dropped]
    assert sorted(group.key for group in places) == sorted(group.key for group in everything)
    assert {group.key for group in made.dropped} == plan.dropped.keys() & {group.key for group in everything}
    tree = scratch.tree_of(scratch.base)
    for step in made.steps:
        assert (step.kind == stack.FIX) == (step.ranked is not None and step.ranked.group == step.picks[0].group)
        for each in step.picks:
            found = pick(scratch, tree, each.group.first)
            assert found.is_clean == (each.how in ("", stack.ORDER))
            assert not found.is_clean or found.tree == each.tree != tree
            tree = each.tree
        assert step.tree == tree
    assert made.tree == tree


@pytest.mark.parametrize("seed", range(10))
def test_every_group_ends_in_one_place_and_the_same_plan_gives_the_same_stack(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    project = random_project(tmp_path, dice)
    scratch = project.scratch()
    plan = random_plan(project, dice)
    made = build(scratch, plan)
    assert_sound(scratch, plan, made)
    assert build(scratch, plan) == made
    assert build(project.scratch("again"), plan) == made


def test_the_order_of_what_does_not_conflict_changes_nothing(tmp_path: Path) -> None:
    branches: dict[str, list[Commit]] = {
        f"b{n}": [{f"{n}.py": f"{n}\n"}, {f"tests/test_{n}.py": f"{n}\n"}] for n in range(8)
    }
    project = Project(tmp_path, {"a.py": ""}, **branches)
    scratch = project.scratch()
    plan = plan_of(project)
    fixes, rest = list(plan.fixes), list(plan.rest)
    random.Random(1).shuffle(fixes)
    random.Random(2).shuffle(rest)
    one, two = build(scratch, plan), build(scratch, plan.replace(fixes=fixes, rest=rest))
    assert one.tree == two.tree
    assert one.steps[0].tree == two.steps[0].tree
    assert not one.left
    assert not two.left
