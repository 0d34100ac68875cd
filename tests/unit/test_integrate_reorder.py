"""What is asked of an agent's order, and what integrator agents are told: short, safe to show, and with both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mngr.address import is_name
from mngr.integrate.change import Change, Group, Ranked
from mngr.integrate.picking.pick import Picked
from mngr.integrate.picking.stack import Left, Stack
from mngr.integrate.solving import telling
from mngr.integrate.solving.integrator import Integrator, _apart, _askable, request, slug_of
from mngr.integrate.solving.reorder import flaw
from tests.clashes import Clash


def fix(name: str, branch: str = "", place: int = 0, paths: tuple[str, ...] = ("a.py",)) -> Ranked:
    change = Change(
        id="i",
        commit="c",
        parent="p",
        branch=branch or name,
        place=place,
        kind="implementation",
        paths=list(paths),
        subject=f"Fix {name}",
    )
    return Ranked(group=Group(key=name, changes=[change]), reasons=["fixes 1 test"])


FIXES = [fix("one"), fix("two"), fix("three")]


def answer(order: list[Any], **why: Any) -> dict[str, Any]:
    return {"order": order, "why": why}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (answer(["one", "two", "three"]), ""),
        (answer(["three", "one", "two"], three="it loses data"), ""),
        (answer(["three", "one", "two"], one="less harm", two="less harm"), ""),
        (answer(["three", "two", "one"], three="x", one="y"), ""),
        (answer(["three", "one", "two"]), "one and what stood around it"),
        (answer(["three", "one", "two"], three=" \n"), "one and what stood around it"),
        (answer(["three", "one", "two"], three=7), "one and what stood around it"),
        (answer(["three", "two", "one"], three="x"), "one and what stood around it"),
        (answer(["one", "two"]), "three is not in the order"),
        (answer([]), "one is not in the order, nor are 2 more"),
        (answer(["one", "two", "three", "four"]), "there is no fix 'four'"),
        (answer(["one", "two", "three", "two"]), "two is in the order more than once"),
    ],
)
def test_an_order_has_every_fix_once_and_a_reason_for_what_moved(given: dict[str, Any], said: str) -> None:
    found = flaw(given, FIXES)
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_a_fix_cannot_come_before_what_its_branch_has_made_first() -> None:
    fixes = [fix("one", "b", 0), fix("two", "b", 1, ("other.py",)), fix("three", "c", 0)]
    assert flaw(answer(["two", "one", "three"], two="x"), fixes) == (
        "two comes before one, which the same branch has made first"
    )
    assert flaw(answer(["three", "one", "two"], three="x"), fixes) == ""


def test_a_list_of_many_fixes_still_fits_into_a_variable(tmp_path: Path) -> None:
    prompt = telling.rank(str(tmp_path), [fix(f"{number:012}") for number in range(3000)])
    assert len(prompt.encode()) < 110_000
    assert "more fixes, in fixes.json" in prompt


def clash_of_two(tmp_path: Path, size: int = 1) -> Clash:
    text = {name: "".join(f"{name} \u20ac {line}\n" for line in range(size)) for name in ("left", "right")}
    return Clash(tmp_path, {"a.py": "a\n"}, left={"a.py": text["left"]}, right={"a.py": text["right"]})


def told(clash: Clash, tests: tuple[str, ...] = (), pytest: str = "") -> str:
    return telling.conflict(str(clash.directory), clash.scratch, clash.left(), clash.sources, list(tests), pytest)


def test_a_long_conflict_still_fits_into_a_variable(tmp_path: Path) -> None:
    prompt = told(clash_of_two(tmp_path, 20_000))
    assert len(prompt.encode()) < 110_000
    assert "(and more)" in prompt


def test_what_other_agents_wrote_cannot_steer_anything(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    nasty = "\x1b[31mred\x00 \udcff $subject ``` \u202e"
    clash.sources[1] = clash.sources[1].replace(summary=nasty)
    prompt = told(clash)
    assert "red \N{REPLACEMENT CHARACTER} $subject ```" in prompt
    prompt.encode()
    assert not {"\x1b", "\0", "\u202e"} & set(prompt)


def test_a_diff_with_a_fence_in_it_stays_one_block(tmp_path: Path) -> None:
    clash = Clash(tmp_path, {"a.py": "a\n"}, left={"a.py": "```\nleft\n"}, right={"a.py": "````\nright\n"})
    prompt = told(clash)
    assert "`````diff\n" in prompt


@pytest.mark.parametrize(
    ("tests", "pytest", "said"),
    [
        ((), "pytest", "No tests of either side are known."),
        (("t.py::test_a[b c]",), "pytest -q", "       pytest -q 't.py::test_a[b c]'\n"),
        (("t.py::test_a",), "", "The tests of both sides are `t.py::test_a`. Run them if you can."),
    ],
)
def test_it_is_told_which_tests_to_run(tmp_path: Path, tests: tuple[str, ...], pytest: str, said: str) -> None:
    assert said in told(clash_of_two(tmp_path), tests, pytest)


def test_the_users_own_prompt_takes_the_place_of_ours(tmp_path: Path) -> None:
    clash = clash_of_two(tmp_path)
    (clash.directory / "prompts").mkdir()
    (clash.directory / "prompts" / "conflict.md").write_text("Solve $paths.")
    assert told(clash) == "Solve a.py.\n"


def test_conflicts_that_share_a_file_are_not_solved_side_by_side() -> None:
    def left(name: str, *paths: str) -> Left:
        picked = Picked(tree="t", conflicts={paths[0]: {"2": ("100644", "o")}})
        return Left(group=fix(name, paths=paths).group, why="", picked=picked, onto="t")

    batch = _apart([left("one", "a"), left("two", "b", "a"), left("three", "b"), left("four", "c", "d")])
    assert [each.group.key for each in batch] == ["one", "three", "four"]
    assert len(_apart([left(str(number), str(number)) for number in range(9)])) == 4


def test_what_builds_on_something_that_is_not_in_is_asked_about_by_nobody() -> None:
    def left(name: str, place: int, *, clean: bool = False) -> Left:
        conflicts = {} if clean else {"a.py": {"2": ("100644", "o")}}
        group = fix(name, "b", place).group
        return Left(group=group, why="", picked=Picked(tree="t", conflicts=conflicts), onto="t")

    stack = Stack(steps=[], left=[left("one", 0), left("two", 1), left("three", 2)], there=[], dropped=[], tree="t")
    given_up: dict[str, str] = {}
    assert [each.group.key for each in _askable(stack, given_up)] == ["one", "two", "three"]
    given_up["one"] = "it could not"
    assert _askable(stack, given_up) == []
    assert given_up["three"] == "no agent was asked: it builds on one, which is not in"
    assert _askable(stack.replace(left=[left("four", 3, clean=True)]), {}) == []
    assert _askable(stack.replace(left=[left("two", 1)], dropped=[fix("one", "b", 0).group]), {}) == []


def test_an_agent_may_do_what_it_needs_without_asking() -> None:
    made = request(Integrator(type="claude", args=["--model", "m"], pytest="python3 -m pytest"), "r1", "/work")
    assert made.args is not None
    assert made.args[:2] == ["--permission-mode", "dontAsk"]
    assert {"Bash(git:*)", "Bash(python3 -m pytest:*)"} <= set(made.args)
    assert made.args[-2:] == ["--model", "m"]
    assert (made.mode, made.source, made.labels) == ("none", "/work", {"integration": "r1"})


def test_what_it_may_do_is_not_said_twice() -> None:
    given = ["--dangerously-skip-permissions", "--model", "m"]
    assert request(Integrator(type="claude", args=given), "r1", "/work").args == given


@pytest.mark.parametrize(
    ("directory", "slug"),
    [
        ("/m/runs/r7/integration", "r7"),
        ("/m/integrations/review-me", "review-me"),
        (f"/m/integrations/{'x' * 36}-01234567", f"{'x' * 35}-01234567"),
        ("/m/Not a name", "not-a-name"),
    ],
)
def test_the_integration_of_a_run_is_called_like_the_run(directory: str, slug: str) -> None:
    assert slug_of(directory) == slug
    assert is_name(f"{slug}-solve-{'0' * 12}")
