"""The report of an integration by its schema, and the pull request that is made from it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.integrate.change import Ranked, Source
from mngr.integrate.checking.reverts import Revert
from mngr.integrate.checking.verify import Aside, Removed, Turned, Verified
from mngr.integrate.picking.hunks import both_sides
from mngr.integrate.picking.read import Ignored
from mngr.integrate.picking.stack import Plan, build
from mngr.integrate.sources import Passed
from mngr.integrate.writing.body import LONGEST, body, title
from mngr.integrate.writing.markdown import code, fence, prose
from mngr.integrate.writing.message import messages
from mngr.integrate.writing.report import report
from mngr.swarm.schema import flaws
from tests.integration import Project

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "integration.schema.json").read_text())
LOGIN = "def login():\n    return None\n"
CHECK = {"before": {"claim": False, "check": "failed"}, "after": {"claim": True, "check": "passed"}}
ESCALATION = {"kind": "shared pattern", "summary": "All pages lack a title", "tests": ["tests/test_z.py::test_z"]}
BLOCKER = {"kind": "blocker", "summary": "No network"}


def project(path: Path) -> Project:
    """A fix that two have made, with a test of its own; a fix that conflicts with it; one that is set aside; docs."""
    fixed = {"src/login.py": LOGIN.replace("None", "1"), "": "Let people log in"}
    return Project(
        path,
        {"src/login.py": LOGIN, "src/page.py": "", "README.md": "# Project\n"},
        a=[fixed, {"tests/test_login.py": "def test_login():\n    assert True\n", "": "Test the login"}],
        b=[fixed],
        c=[{"src/login.py": LOGIN.replace("None", "2"), "": "Log in | otherwise"}],
        d=[{"src/page.py": "broken\n", "": "Break the page"}],
        e=[{"README.md": "# Project\n\nWords.\n", "": "Say more"}],
    )


def sources(made: Project) -> list[Source]:
    return [
        Source(
            branch=name,
            head=head,
            agent=f"r1-{name}",
            run="r1",
            test=f"tests/test_{name}.py::test_{name}",
            check=CHECK,
            escalations=[BLOCKER, ESCALATION] if name in "ab" else [],
        )
        for name, head in made.heads.items()
    ]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Nobody changes it."""
    return telling(tmp_path_factory.mktemp("told"))


def telling(
    tmp_path: Path, is_verified: bool = True, tests: dict[str, int] | None = None, **more: Any
) -> dict[str, Any]:
    made = project(tmp_path)
    scratch = made.scratch()
    rest, fixes = made.sorted_out()
    fixes = [Ranked(group=each.group, reasons=["fixes 2 tests", "made by 2 agents"]) for each in fixes]
    by_branch = {each.first.branch: each for each in [*rest, *(ranked.group for ranked in fixes)]}
    fix, bad, test = fixes[0].group, by_branch["d"], rest[0]
    plan = Plan(rest=rest, fixes=fixes, carried={test.key: fix.key}, dropped={bad.key: "it breaks a test"})
    stack = build(scratch, plan)
    verified = Verified(
        plan=plan,
        stack=stack,
        reds=[
            Aside(
                group=bad,
                why="green with everything before it, red with it",
                test="tests/test_page.py::test_page",
                outcome="failed",
                said="NameError: broken",
            )
        ],
        flaky=["tests/test_f.py::test_flaky"],
        red_at_base=["tests/test_r.py::test_red"],
        still_red=[],
        red_below=["tests/test_w.py::test_below"],
        removed=[
            Removed(test="tests/test_g.py::test_gone", by=fix),
            Removed(test="tests/test_g.py::test_lost"),
            Removed(test="tests/test_g.py::test_skipped", by=fix, how="skipped"),
        ],
        turned=[Turned(group=test, tests=[f"tests/test_t.py::test_{n}" for n in range(5)])],
        tests={"passed": 40, "skipped": 2} if tests is None else tests,
        reverts=[Revert(group=fix, clean=True, breaks=["tests/test_e.py::test_e"])],
        checked={fix.key: ["tests/test_a.py::test_a failed before, passes with it"]},
    )
    parent, commits = scratch.base, []
    for step, (text, author) in zip(stack.steps, messages(stack, sources(made)), strict=True):
        parent = scratch.commit(step.tree, [parent], text, author)
        commits.append(parent)
    return report(
        scratch,
        into="mngr/r1-integrated",
        again="mngr swarm integrate r1 --reintegrate",
        rank_file="rank",
        directory=str(tmp_path / "integration"),
        sources=sources(made),
        plan=plan,
        stack=stack,
        verified=verified if is_verified else None,
        commits=commits,
        costs={"agents": 7, "messages": 90, "tokens": 1200000, "usd": 3.5, "unpriced": 0},
        passed=[
            Passed(task="tests/test_s.py::test_s", run="r1", outcome="stuck", why="nothing moved", agent="r1-s"),
            Passed(task="tests/test_k.py::test_k", run="r1", outcome="blocked", why="a key", escalations=[BLOCKER]),
        ],
        ignored=[Ignored(branch="e", commit="e" * 40, subject="Nothing", why="it is empty")],
        **more,
    )


# The report


def test_of_a_path_that_both_have_left_only_the_new_ones_are_shown(tmp_path: Path) -> None:
    made = Project(
        tmp_path,
        {"src/a.py": LOGIN},
        one=[{"src/a.py": None, "src/b.py": LOGIN}],
        two=[{"src/a.py": None, "src/c.py": LOGIN}],
    )
    fixes = [Ranked(group=group, reasons=[]) for group in made.groups()]
    scratch = made.scratch()
    (left,) = build(scratch, Plan(rest=[], fixes=fixes)).left
    shown = both_sides(scratch, left)
    assert "src/a.py" in left.picked.conflicts
    assert {each["path"] for each in shown} == {"src/b.py", "src/c.py"}


def test_a_report_is_what_its_schema_says(told: dict[str, Any]) -> None:
    assert flaws(SCHEMA, told) == []
    assert flaws(SCHEMA, json.loads(json.dumps(told))) == []
    assert flaws(SCHEMA, {**told, "more": 1}) != []


def test_a_report_without_verification_is_one_too(tmp_path: Path) -> None:
    told = telling(tmp_path, is_verified=False)
    assert flaws(SCHEMA, told) == []
    assert told["tests"] is None
    assert "**Not verified**" in body(told)


def test_a_branch_on_which_no_test_could_be_run_is_not_verified(tmp_path: Path) -> None:
    told = telling(tmp_path, tests={})
    assert (told["verified"], told["tests"]) == (False, {})
    assert "**Not verified**: no test was run on the integrated branch; there was none to run." in body(told)


@pytest.mark.parametrize("tests", [{"error": 3}, {"skipped": 2}])
def test_a_branch_on_which_no_test_passes_is_not_verified(tmp_path: Path, tests: dict[str, int]) -> None:
    told = telling(tmp_path, tests=tests)
    assert told["verified"] is False
    assert "**Not verified**: no test passes on the integrated branch" in body(told)


def test_a_change_of_how_tests_are_run_is_always_pointed_out(tmp_path: Path) -> None:
    made = Project(tmp_path, {"a.py": ""}, one=[{"tests/conftest.py": "x = 1\n", "": "Quiet"}], two=[{"b.py": "1\n"}])
    rest, fixes = made.sorted_out()
    scratch, plan = made.scratch(), Plan(rest=rest, fixes=fixes)
    told = report(
        scratch,
        into="x",
        again="a",
        rank_file="rank",
        directory="/d",
        sources=made.sources(),
        plan=plan,
        stack=build(scratch, plan),
        verified=None,
        commits=[],
    )
    [warning] = told["warnings"]
    assert (warning["branch"], warning["text"].partition(":")[0]) == ("one", "it changes tests/conftest.py")
    assert flaws(SCHEMA, told) == []
    assert "## To look at closely\n" in body(told)


def test_everything_is_counted(told: dict[str, Any]) -> None:
    assert told["counts"] == {
        "agents": 5,
        "branches": 5,
        "changes": 6,
        "duplicates": 1,
        "tests": 5,
        "fixes": 1,
        "folded": 1,
        "carried": 1,
        "left": 1,
        "aside": 1,
        "dropped": 0,
        "there": 0,
        "ignored": 1,
        "lost": 3,
    }


def test_a_conflict_has_both_sides_and_a_way_to_go_on(told: dict[str, Any]) -> None:
    (left,) = told["left"]
    assert left["hunks"] == [{"path": "src/login.py", "ours": "    return 1", "theirs": "    return 2"}]
    assert left["by_hand"] == f"git switch mngr/r1-integrated && git cherry-pick {left['commit']}"
    assert [each["branch"] for each in left["against"]] == ["a"]


def test_the_command_for_a_part_of_a_commit_applies_just_this_part(tmp_path: Path) -> None:
    made = Project(
        tmp_path, {"a.py": "1\n", "t.md": "1\n"}, one=[{"a.py": "2\n", "t.md": "2\n"}], two=[{"a.py": "3\n"}]
    )
    scratch = made.scratch()
    rest, fixes = made.sorted_out()
    whole = fixes[0].group.first
    part = scratch.edit_tree(scratch.tree_of(whole.parent), scratch.entries(whole.id, ["a.py"]))
    one = whole.replace(id=scratch.commit(part, [whole.parent]), paths=["a.py"])
    fixes = [fixes[1], fixes[0].replace(group=fixes[0].group.replace(changes=[one]))]
    plan = Plan(rest=rest, fixes=fixes)
    stack = build(scratch, plan)
    told = report(
        scratch,
        into="main",
        again="",
        rank_file="rank",
        directory=str(tmp_path),
        sources=made.sources(),
        plan=plan,
        stack=stack,
        verified=None,
        commits=[],
    )
    command = told["left"][0]["by_hand"]
    assert command.endswith("-- a.py | git apply --3way --index")
    subprocess.run(["sh", "-c", command], cwd=made.path, check=True, capture_output=True)
    assert made.git("diff", "--cached", "--name-only") == "a.py"


def test_shared_patterns_come_first_and_are_told_once(told: dict[str, Any]) -> None:
    assert [(each["kind"], len(each["by"])) for each in told["escalations"]] == [("shared pattern", 2), ("blocker", 3)]


# The pull request


def test_the_title_is_made_of_counts(told: dict[str, Any]) -> None:
    assert title(told) == "1 fix and 2 test and doc changes from 5 agents (r1)"


def test_a_fix_has_all_that_a_reviewer_asks(told: dict[str, Any]) -> None:
    text = body(told)
    short = told["steps"][1]["commit"][:10]
    (row,) = [line for line in text.splitlines() if line.startswith(f"| 1 | {short} | Let people log in |")]
    assert "fixes 2 tests; made by 2 agents" in row
    assert "tests/test_a.py::test_a failed before, passes with it<br>`tests/test_b.py::test_b` failed → passed" in row
    assert "`r1-a` and `r1-b`" in row
    assert "+2 -0 in 1 file" in row
    assert f"`git revert {short}`: cleanly, but it breaks `tests/test_e.py::test_e`" in row


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (3, "cleanly; 3 tests of its neighbours pass |"),
        (1, "cleanly; 1 test of its neighbours passes |"),
        (0, "cleanly; no test was there to run |"),
    ],
)
def test_it_is_told_what_a_clean_revert_was_tried_with(told: dict[str, Any], tests: int, said: str) -> None:
    fix = {**told["steps"][1], "reverts": {"clean": True, "conflicts": [], "breaks": [], "tests": tests}}
    assert f"`git revert {fix['commit'][:10]}`: {said}" in body({**told, "steps": [told["steps"][0], fix]})


@pytest.mark.parametrize(
    ("tests", "before", "said"),
    [
        ({"passed": 40, "failed": 1}, ["a"], "41 tests, 40 passed, 1 failed, as on the base."),
        (
            {"passed": 40, "failed": 2, "error": 1},
            ["a"],
            "43 tests, 40 passed, 2 failed, 1 error (1 of them as on the base).",
        ),
        ({"passed": 40, "failed": 1}, [], "41 tests, 40 passed, 1 failed."),
    ],
)
def test_reds_that_were_red_before_are_told_as_such(
    told: dict[str, Any], tests: dict[str, int], before: list[str], said: str
) -> None:
    assert f": {said}\n" in body({**told, "tests": tests, "red_at_base": before})


def test_a_commit_without_a_subject_is_told_as_such(told: dict[str, Any]) -> None:
    assert "**(no subject)** (" in body({**told, "left": [{**told["left"][0], "subject": " "}]})


def test_every_part_of_the_report_has_its_place(told: dict[str, Any]) -> None:
    text = body(told)
    wanted = [
        "The work of **5 agents**, which were sent to 5 tests (r1), as one linear branch of **2 commits**",
        "Verified in a clean checkout: 42 tests, 40 passed, 2 skipped.",
        "**Not in it**: 1 left out because of conflicts and 1 set aside because of tests",
        "Test the login (`r1-a`) with",
        "**Log in &#124; otherwise** (`r1-c`, branch `c`, commit",
        "-    return 1\n+    return 2",
        "git switch mngr/r1-integrated && git cherry-pick ",
        "`tests/test_page.py::test_page`: failed (NameError: broken); green with everything before it, red with it",
        "- `r1-e`\n  - Say more: docs, `README.md`",
        "- shared pattern: All pages lack a title (said for",
        "- `tests/test_k.py::test_k`: blocked; a key\n- `tests/test_s.py::test_s`: stuck",
        "- `tests/test_r.py::test_red` is red without any of this, too",
        "- `tests/test_w.py::test_below` is red in the commit below the fixes, and green with them",
        "- `tests/test_f.py::test_flaky` sometimes passes",
        ": removed by ",
        "- `tests/test_g.py::test_skipped` is skipped, and was run on the base: skipped by ",
        "**Not run any more**: 3 tests of the base are gone or skipped",
        "test_2 and 2 more green, red on the base, and changes nothing of the program",
        "- `tests/test_g.py::test_lost` is no longer there\n",
        "Nothing (`e`, eeeeeeeeee): it is empty",
        "7 agents, 1,200,000 tokens, 3.50 USD (3.50 for each fix).",
        "mngr swarm integrate r1 --reintegrate",
    ]
    assert [each for each in wanted if each not in text] == []


def test_an_empty_integration_has_a_body_too(tmp_path: Path) -> None:
    made = Project(tmp_path, {"a.py": ""})
    scratch, plan = made.scratch(), Plan()
    stack = build(scratch, plan)
    told = report(
        scratch,
        into="x",
        again="a",
        rank_file="rank",
        directory="/d",
        sources=[],
        plan=plan,
        stack=stack,
        verified=None,
        commits=[],
    )
    assert flaws(SCHEMA, told) == []
    assert title(told) == "Nothing new from 0 branches"
    assert "Fixes of the program" not in body(told)


@pytest.mark.parametrize("place", ["left", "aside", "passed", "escalations", "flaky", "ignored", "notes"])
def test_what_is_too_long_is_cut_between_items_and_says_so(told: dict[str, Any], place: str) -> None:
    many = (told[place] or ["a note that is long enough"]) * 5000
    text = body({**told, place: many})
    assert len(text) <= LONGEST
    shown = re.search(r"\.\.\. and ([\d,]+) more; all of them are in", text)
    assert shown is not None
    assert 0 < int(shown[1].replace(",", "")) < len(many)
    assert text.count("```") % 2 == 0
    assert text.count("<details>") == text.count("</details>")


def test_when_everything_is_too_long_every_section_is_still_there(told: dict[str, Any]) -> None:
    step = {**told["steps"][1], "picks": told["steps"][1]["picks"] * 50}
    rest = {**told["steps"][0], "picks": told["steps"][0]["picks"] * 3000}
    many = {place: told[place] * 3000 for place in ("left", "aside", "passed", "escalations", "flaky", "ignored")}
    text = body({**told, **many, "steps": [rest, *[step] * 300]})
    assert len(text) <= LONGEST
    assert re.findall(r"(?m)^## (.*)", text) == re.findall(r"(?m)^## (.*)", body(told))


# What agents wrote


def test_words_of_agents_are_no_markdown() -> None:
    assert prose("a | b `c` <b> [x](y) *z* _w_ a_b \\ ~s~ $x$ &amp;") == (
        "a &#124; b &#96;c&#96; &lt;b&gt; &#91;x&#93;(y) &#42;z&#42; &#95;w&#95; a_b &#92; &#126;s&#126; "
        "&#36;x&#36; &amp;amp;"
    )
    assert "@someone" not in prose("ask @someone")
    assert "#12" not in prose("fixes #12")
    assert "GH-12" not in prose("fixes GH-12")
    assert "https://x" not in prose("fixes https://x/issues/1")
    assert prose("two\n\nlines\x1b[31m red") == "two lines red"
    for start in ("# a", "- a", "1. a", "> a", "+ a", "=== a"):
        assert not re.match(r"[#+>=-]|\d", prose(start))


def test_code_is_shown_as_it_is() -> None:
    assert code("tests/a.py::test[@x #1]") == "`tests/a.py::test[@x #1]`"
    assert code("a|b") == "<code>a&#124;b</code>"
    assert code("`_x_`") == "<code>&#96;&#95;x&#95;&#96;</code>"
    assert code("") == ""


@settings(max_examples=200)
@given(st.text(st.sampled_from("`~|\n<>@#x\\ \x1b\udcff\r"), max_size=80))
def test_no_text_breaks_out_of_where_it_stands(text: str) -> None:
    assert "|" not in prose(text)
    assert "|" not in code(text).replace("&#124;", "")
    assert "\n" not in prose(text) + code(text)
    assert not re.search(r"[`<]", prose(text))
    opening, *inside, closing = fence(text).split("\n")
    marks = opening.removesuffix("text")
    assert closing == marks
    assert not any(line.strip().startswith(marks) for line in inside)
    assert (prose(text) + code(text) + fence(text)).encode("utf-8")


def test_hostile_texts_do_not_change_the_form_of_the_body(told: dict[str, Any]) -> None:
    evil = "x | y\n```\n</details>\n\n# Heading <script> @you fixes #1 ```` \x1b[2J \udcff"

    def poisoned(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: poisoned(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [poisoned(each, key) for each in value]
        fixed = ("kind", "commit", "base", "tip", "name")  # ours
        return evil if isinstance(value, str) and key not in fixed and value else value

    text = body(poisoned(told))
    clean = body(told)
    assert text.encode("utf-8")
    assert re.findall(r"(?m)^#{2}.*", text) == re.findall(r"(?m)^#{2}.*", clean)
    assert text.count("\n</details>") == clean.count("\n</details>")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {row.count("|") for row in rows} == {9}
    outside = re.sub(r"(?ms)^(`{3,})\w+\n.*?^\1$", "", text)
    assert not re.search(r"<script|@you|#1\b|\x1b", re.sub(r"<code>.*?</code>|`[^`]*`", "", outside))
