"""The order of fixes: the rule, its reasons, and the file that overrides it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mngr.errors import UsageError
from mngr.integrate.change import Change, Group, Ranked, Source
from mngr.integrate.picking.rank import RankFile, find, ranked, read_rank, write_rank
from mngr.swarm import words


def key(name: str) -> str:
    return f"{name:0<64}"


def fix(name: str, *branches: str, place: int = 0, paths: tuple[str, ...] = (), **members: Any) -> Group:
    """A group of that name (hex digits), made on these branches."""
    changes = [
        Change(
            id=name,
            commit=name,
            parent="",
            branch=branch,
            place=place,
            kind="implementation",
            paths=list(paths or [f"src/{name}.py"]),
            subject=f"Fix {name}",
            **members,
        )
        for branch in branches or (f"branch-{name}",)
    ]
    return Group(key=key(name), changes=changes)


def source(branch: str, **members: Any) -> Source:
    return Source(branch=branch, head="", **members)


def order(fixes: list[Ranked]) -> list[str]:
    return [each.group.key.rstrip("0") for each in fixes]


def test_the_rule_decides_by_one_thing_after_the_other() -> None:
    best = fix("f1", "one", "two", importance="low", added=9)
    severe = fix("e1", "three", importance="critical", added=9)
    seen = fix("d1", "four", importance="high", added=9)
    often = fix("c1", "five", "six", importance="medium", added=9)
    small = fix("b1", "seven", importance="medium", added=1)
    large = fix("a1", "eight", importance="medium", added=2)
    fixed = {"outcome": words.FIXED}
    red = {"check": {"before": "failed", "after": "failed"}}
    sources = [
        source("one", test="tests/test_a.py::test_a", **fixed),
        source("two", test="tests/test_b.py::test_b", **fixed),
        source("three", test="tests/test_c.py::test_c", **red),
        source("four", test="tests/test_d.py::test_d", **red),
        source("five"),
    ]
    groups = [large, small, often, seen, severe, best]
    assert order(ranked(groups, sources)) == ["f1", "e1", "d1", "c1", "b1", "a1"]
    random.Random(1).shuffle(groups)
    assert order(ranked(groups, sources)) == ["f1", "e1", "d1", "c1", "b1", "a1"]


def test_a_failure_that_was_seen_is_one_step_of_severity() -> None:
    sources = [source("seen", check={"before": {"claim": None, "check": "failed"}, "after": {"check": "failed"}})]
    groups = [fix("a1", "said", importance="high"), fix("b1", "seen", importance="high")]
    assert order(ranked(groups, sources)) == ["b1", "a1"]


def test_tests_in_more_directories_come_before_more_in_one() -> None:
    here = [source("a", test="tests/x/test_1.py::test", outcome=words.FIXED)]
    here += [source("b", test="tests/x/test_2.py::test", outcome=words.FIXED)]
    there = [source("c", test="tests/x/test_3.py::test", outcome=words.FIXED)]
    there += [source("d", test="tests/y/test_4.py::test", outcome=words.FIXED)]
    found = ranked([fix("a1", "a", "b"), fix("b1", "c", "d")], here + there)
    assert order(found) == ["b1", "a1"]
    assert found[0].reasons == ["fixes 2 tests", "made 2 times", "tests in 2 directories", "0 lines in 1 file"]


def test_a_test_counts_once_and_only_if_it_passes_now() -> None:
    red_to_green = {"before": {"claim": False, "check": "failed"}, "after": {"claim": True, "check": "passed"}}
    other = {"test": "tests/test_b.py::test", "is": "changed", "base": "error", "head": "passed"}
    sources = [
        source("one", test="tests/test_a.py::test", check={**red_to_green, "others": [other]}),
        source("two", test="tests/test_a.py::test", outcome=words.FIXED),
        source("three", test="tests/test_c.py::test", check={"before": "failed", "after": "failed"}),
    ]
    (found,) = ranked([fix("a1", "one", "two", "three")], sources)
    assert found.reasons[0] == "fixes 2 tests"


def test_reasons_say_what_counted() -> None:
    sources = [source("one", test="tests/test_a.py::test", outcome=words.FIXED)]
    (found,) = ranked([fix("a1", "one", importance="critical", added=3, removed=1)], sources)
    assert found.reasons == ["fixes 1 test", "declared critical", "4 lines in 1 file"]


def test_one_agent_with_two_branches_is_one() -> None:
    sources = [source("one", agent="a", run="r1"), source("two", agent="a", run="r1")]
    (found,) = ranked([fix("a1", "one", "two")], sources)
    assert found.reasons == ["0 lines in 1 file"]


def test_a_fix_pulls_up_those_that_its_branch_made_before_it() -> None:
    """Also when they share no path: what it calls may be there."""
    first = fix("a1", "one", added=100)
    second = fix("b1", "one", place=1, importance="critical")
    other = fix("c1", "two", importance="high")
    third = fix("d1", "one", place=2, importance="low")
    found = ranked([first, second, third, other], [])
    assert order(found) == ["a1", "b1", "c1", "d1"]
    assert found[0].reasons == ["100 lines in 1 file", f"before {key('b1')[:12]}: its branch made it first"]
    assert found[1].reasons == ["declared critical", "0 lines in 1 file"]


def test_the_order_of_a_branch_holds_across_a_fix_that_is_picked_from_another() -> None:
    first, last = fix("f1", "two", added=100), fix("a1", "two", place=2, importance="critical")
    shared = fix("c1", "one", "two", added=50)
    shared = shared.replace(changes=[shared.changes[0], shared.changes[1].replace(place=1)])
    assert order(ranked([shared, first, last], [])) == ["c1", "f1", "a1"]


def test_a_long_branch_is_ranked_as_it_is() -> None:
    names = [f"{number:06x}" for number in range(3000)]
    groups = [fix(f"{name}f", "one", place=place, added=3000 - place) for place, name in enumerate(names)]
    assert [each.group for each in ranked(groups, [])] == groups


def test_what_is_no_text_comes_behind_what_can_be_counted() -> None:
    binary, text = fix("a1", is_text=False), fix("b1", added=500)
    renamed, small = fix("c1", paths=("old.py", "new.py")), fix("d1", added=1)
    found = ranked([binary, text, renamed, small], [])
    assert order(found) == ["d1", "c1", "b1", "a1"]
    assert found[3].reasons == ["of unknown size, in 1 file"]


def test_fixes_that_two_branches_have_made_in_opposite_order_are_both_ranked() -> None:
    changes = [fix(name, "one", "two", paths=("src/x.py",)) for name in ("a1", "b1")]
    places = [(0, 1), (1, 0)]
    groups = [
        group.replace(changes=[change.replace(place=place) for change, place in zip(group.changes, at, strict=True)])
        for group, at in zip(changes, places, strict=True)
    ]
    assert order(ranked(groups, [])) == ["a1", "b1"]


# The file


def test_a_rank_file_is_read_back_as_it_was_written() -> None:
    fixes = ranked([fix("a1"), fix("b1"), fix("c1")], [])
    text = write_rank(fixes, [key("b1")])
    assert f"pick {key('a1')[:12]}  Fix a1  # 0 lines in 1 file\n" in text
    read = read_rank(text)
    assert read.order == [each.group.name for each in fixes]
    assert read.dropped == [key("b1")[:12]]
    assert ranked([fix("a1"), fix("b1"), fix("c1")], [], read) == fixes


def test_a_subject_cannot_write_lines_of_its_own() -> None:
    group = fix("a1")
    hostile = group.replace(changes=[group.first.replace(subject="x\ndrop 0000\x1b[2J\u2028 # pick \udcff y")])
    text = write_rank([Ranked(group=hostile, reasons=["a\nb"])])
    assert text.splitlines()[-1] == f"pick {group.name}  x drop 0000 [2J # pick y  # a b"
    assert read_rank(text).order == [group.name]
    text.encode()


def test_the_rank_file_decides_and_the_rule_orders_the_rest() -> None:
    groups = [fix(name) for name in ("a1", "b1", "c1", "d1")]
    read = read_rank(f"# mine\n\n  pick {key('c1')[:12]} whatever # it says\ndrop {key('b1')[:12]}\n")
    found = ranked(groups, [], read.replace(why={key("c1")[:12]: "users wait for it"}))
    assert order(found) == ["c1", "b1", "a1", "d1"]
    assert found[0].reasons[-1] == "moved by the rank file, from place 3: users wait for it"
    assert found[2].reasons == found[3].reasons == ["0 lines in 1 file"]


def test_the_rank_file_decides_even_over_what_a_fix_builds_on() -> None:
    groups = [fix("a1", "one", paths=("x.py",)), fix("b1", "one", place=1, paths=("x.py",), importance="high")]
    groups.append(fix("c1", added=1))
    assert order(ranked(groups, [])) == ["a1", "b1", "c1"]
    found = ranked(groups, [], RankFile(order=[key("b1")[:12], key("c1")[:12]]))
    assert order(found) == ["b1", "c1", "a1"]
    assert found[0].reasons == ["declared high", "0 lines in 1 file"]
    assert found[2].reasons == ["0 lines in 1 file", "moved by the rank file, from place 1"]


def test_the_beginning_of_a_name_is_enough() -> None:
    groups = [fix("abcdef1"), fix("abcdef2")]
    assert find(groups, "abcdef2").key == key("abcdef2")
    for name, said in (("abcdef", "more than one"), ("ab", "no change"), ("123456", "no change")):
        with pytest.raises(UsageError, match=said):
            find(groups, name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pick a1a1a1a1\npick 123456\ndrop 654321\n", "123456, 654321"),
        ("keep a1a1a1a1\n", "line 1 of the rank file is none: keep a1a1a1a1"),
        ("\npick\n", "line 2"),
        ("pick a1a1a1a1\ndrop a1a1a1a1\n", "twice, the second time in line 2"),
        ("pick a1a1a1a1\npick a1a1\n", "a fix twice"),
    ],
)
def test_a_rank_file_that_is_wrong_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ranked([fix("a1a1a1a1"), fix("b1")], [], read_rank(text))
