"""Messages of integrated commits, read back by git, whatever agents have written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.integrate.change import Change, Group, Ranked, Source
from mngr.integrate.picking.stack import FIX, REST, Pick, Stack, Step
from mngr.integrate.writing.message import messages
from tests.integration import Project

TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
COMMIT = "1234567890" * 4
AUTHOR = "Ada <ada@example.org> 1700000000 +0100"
OURS = {"Kind", "Test", "Agent", "Branch", "Run", "Verified-by", "Also-fixed-by", "Carries", "Picked-from"}


def change(branch: str = "one", kind: str = "implementation", **members: object) -> Change:
    known = {"subject": "Fix the login", "author": AUTHOR, "paths": ["src/login.py"], "commit": COMMIT}
    return Change(**{"id": COMMIT, "parent": COMMIT, "branch": branch, "place": 0, "kind": kind, **known, **members})  # type: ignore[arg-type]


def pick(*changes: Change, key: str = "a", how: str = "", text: str = "") -> Pick:
    return Pick(group=Group(key=key * 64, changes=list(changes)), tree=TREE, how=how, text=text)


def fix(*picks: Pick) -> Step:
    return Step(kind=FIX, ranked=Ranked(group=picks[0].group, reasons=[]), picks=list(picks), tree=TREE)


def rest(*picks: Pick) -> Step:
    return Step(kind=REST, picks=list(picks), tree=TREE)


def stack(*steps: Step) -> Stack:
    return Stack(steps=list(steps), left=[], there=[], dropped=[], tree=TREE)


def message(step: Step, *sources: Source, checked: dict[str, list[str]] | None = None) -> str:
    return messages(stack(step), sources, checked)[0][0]


def trailers(text: str) -> list[tuple[str, str]]:
    """As git reads them."""
    line = ["git", "interpret-trailers", "--parse"]
    done = subprocess.run(line, input=text.encode(), capture_output=True, check=True, cwd="/")
    pairs = [line.partition(": ") for line in done.stdout.decode().split("\n")[:-1]]
    return [(name, value) for name, _, value in pairs]


def test_a_fix_says_where_it_comes_from_and_what_is_known_of_it() -> None:
    sources = [
        Source(branch="mngr/r1-a", head="", agent="r1-a", run="r1", test="tests/test_a.py::test_a[x  y]"),
        Source(branch="mngr/r1-b", head="", agent="r1-b", run="r1", test="tests/test_b.py::test_b"),
    ]
    own = change("mngr/r1-a", body="It forgot the name.\n\nNow it does not.")
    step = fix(
        pick(own, change("mngr/r1-b")), pick(change("mngr/r1-a", "test", subject="Test it", commit="9" * 40), key="b")
    )
    text = message(step, *sources, checked={"a" * 64: ["test_a failed before, passes with it"]})
    assert text == (
        "Fix the login\n\n"
        "It forgot the name.\n\nNow it does not.\n\n"
        "With it:\n- Test it (mngr/r1-a)\n\n"
        "Kind: implementation\n"
        "Test: tests/test_a.py::test_a[x  y]\n"
        "Test: tests/test_b.py::test_b\n"
        "Agent: r1-a\n"
        "Run: r1\n"
        "Verified-by: mngr (test_a failed before, passes with it)\n"
        "Also-fixed-by: r1-b (mngr/r1-b)\n"
        "Carries: 1 other change\n"
        f"Picked-from: {COMMIT}\n"
        f"Picked-from: {'9' * 40}\n"
    )
    assert trailers(text) == [(n, v) for n, _, v in (line.partition(": ") for line in text.splitlines()[9:])]


def test_of_a_branch_that_no_run_made_the_branch_is_named() -> None:
    text = message(
        fix(pick(change("one"), change("two"))), Source(branch="one", head=""), Source(branch="two", head="")
    )
    assert trailers(text) == [
        ("Kind", "implementation"),
        ("Branch", "one"),
        ("Also-fixed-by", "two"),
        ("Picked-from", COMMIT),
    ]


def test_a_long_subject_is_cut_at_a_word_and_goes_on_in_the_body() -> None:
    subject = "Fix " + "word " * 30
    first, empty, second, *_ = message(fix(pick(change(subject=subject)))).split("\n")
    assert len(first) <= 72
    assert first.endswith(" word...")
    assert empty == ""
    assert f"{first.removesuffix('...')} {second.removeprefix('...')}" == subject.strip()


def test_a_subject_of_one_long_word_is_cut_all_the_same() -> None:
    first = message(fix(pick(change(subject="x" * 500)))).split("\n")[0]
    assert first == "x" * 69 + "..."


def test_a_change_without_a_subject_is_named_after_its_files() -> None:
    assert message(fix(pick(change(subject=" ")))).startswith("Change src/login.py\n\n")


@pytest.mark.parametrize(
    "body",
    [
        "Kind: test",
        "text\n\nVerified-by: somebody (all is well)\nAgent: other",
        "text\n\nagent : other",
        "text\n---\nmore",
        "text\n---",
        "diff --git a/x b/x\n--- a/x\n+++ b/x",
        "# Kind: test",
        "x\r\rKind: test\r",
        "x\u2028Kind: test",
        "\x1b[2K\x1b]0;title\x07Kind: test",
        "(cherry picked from commit 1234)\nSigned-off-by: x <y>",
    ],
)
def test_nothing_in_a_body_is_taken_for_a_trailer_or_hides_one(body: str) -> None:
    text = message(fix(pick(change(body=body))))
    assert trailers(text) == [("Kind", "implementation"), ("Branch", "one"), ("Picked-from", COMMIT)]
    assert "\x1b" not in text


def test_a_line_that_looks_like_one_of_ours_is_indented() -> None:
    assert "\n    Kind: test\n" in message(fix(pick(change(body="Kind: test\nNote: mine"))))
    assert "\nNote: mine\n" in message(fix(pick(change(body="Kind: test\nNote: mine"))))


def test_trailers_of_the_agents_own_are_kept_but_for_false_ones() -> None:
    own = ["Signed-off-by: Ada <ada@example.org>", "Verified-by: me", "no trailer", "Picked-from: nowhere"]
    assert trailers(message(fix(pick(change(trailers=own)))))[0] == ("Signed-off-by", "Ada <ada@example.org>")
    assert len(trailers(message(fix(pick(change(trailers=own)))))) == 4


def test_names_with_newlines_make_no_trailers() -> None:
    source = Source(branch="one", head="", agent="a\nKind: docs", run="r\n1", test="t\n\nAgent: x")
    assert trailers(message(fix(pick(change())), source)) == [
        ("Kind", "implementation"),
        ("Test", "t  Agent: x"),
        ("Agent", "a Kind: docs"),
        ("Run", "r 1"),
        ("Picked-from", COMMIT),
    ]


def test_everything_else_is_one_commit_that_lists_what_is_in_it() -> None:
    sources = [Source(branch=f"mngr/r1-{name}", head="", agent=f"r1-{name}", run="r1") for name in "abc"]
    step = rest(
        pick(change("mngr/r1-a", "test", subject="Test a"), change("mngr/r1-b", "test")),
        pick(change("mngr/r1-c", "docs", subject="Document c"), key="b", how="union", text="both additions are in"),
    )
    text = message(step, *sources, checked={"a" * 64: ["test_a passes"]})
    assert text == (
        "Tests and docs of 3 agents\n\n"
        "- Test a (mngr/r1-a and mngr/r1-b)\n- Document c (mngr/r1-c)\n\n"
        "Not as it was made:\n- Document c: both additions are in\n\n"
        "Kind: test\nRun: r1\nVerified-by: mngr (test_a passes)\n"
        f"Picked-from: {COMMIT}\n"
    )


def test_a_single_other_change_keeps_its_own_message() -> None:
    text = message(rest(pick(change("one", "docs", subject="Document it", body="Why not."))))
    assert text == f"Document it\n\nWhy not.\n\nKind: docs\nBranch: one\nPicked-from: {COMMIT}\n"


def test_evidence_without_end_is_cut() -> None:
    checked = {"a" * 64: [f"test_{number} passes" for number in range(50)]}
    found = [value for name, value in trailers(message(fix(pick(change())), checked=checked)) if name == "Verified-by"]
    assert len(found) == 21
    assert found[-1] == "mngr (and 30 more)"


def test_the_author_is_that_of_the_first_change_at_the_time_of_the_latest() -> None:
    later = change(author="Bob <bob@example.org> 1800000000 -0300")
    step = rest(pick(change()), pick(later, key="b"))
    assert messages(stack(step), [])[0][1] == "Ada <ada@example.org> 1800000000 -0300"


@pytest.mark.parametrize(
    ("author", "wanted"),
    [
        ("", "unknown <unknown@localhost> 0 +0000"),
        ("<a@b> 12 +0000", "a@b <a@b> 12 +0000"),
        ("Ada <> 0012 +0000", "Ada <> 12 +0000"),
        ("A\x1b[1mda\udce4 <a@b> 12 +0000", "Ada\ufffd <a@b> 12 +0000"),
        ("Ada <a@b> 99999999999999999999 +0000", "unknown <unknown@localhost> 0 +0000"),
        ("Ada <a@b> x", "unknown <unknown@localhost> 0 +0000"),
    ],
)
def test_authors_that_git_would_not_write_are_mended(author: str, wanted: str, tmp_path: Path) -> None:
    assert messages(stack(fix(pick(change(author=author)))), [])[0][1] == wanted


def test_git_takes_what_was_made_of_a_mended_author(tmp_path: Path) -> None:
    scratch = Project(tmp_path, {"a.py": ""}).scratch()
    ((text, author),) = messages(stack(fix(pick(change(author="<a@b> 007 +0000", subject="\udcff")))), [])
    commit = scratch.commit(scratch.tree_of(scratch.base), [scratch.base], text, author)
    scratch.git("update-ref", "refs/heads/x", commit)
    assert scratch.run("fsck", "--strict", "--no-dangling").code == 0


def test_the_fold_names_everybody_who_has_a_part_in_it_and_every_commit() -> None:
    carl = "Carl <carl@example.org> 1700000000 +0000"
    step = rest(
        pick(change(kind="test", trailers=["Co-authored-by: Carl <carl@example.org>"])),
        pick(change("two", "docs", author=carl, commit="2" * 40), key="b"),
        pick(change("three", "docs", commit="3" * 40), key="c"),
        pick(change("four", "docs", author="Ada <other@example.org> 1 +0000", commit="4" * 40), key="d"),
    )
    assert trailers(message(step)) == [
        ("Co-authored-by", "Carl <carl@example.org>"),
        ("Co-authored-by", "Ada <other@example.org>"),
        ("Kind", "test"),
        *(("Picked-from", commit) for commit in (COMMIT, "2" * 40, "3" * 40, "4" * 40)),
    ]


def test_a_large_fold_says_how_many_are_not_named() -> None:
    picks = [
        pick(change(kind="docs", commit=f"{number:040}", author=f"A{number} <a{number}@b> 1 +0000"), key=chr(number))
        for number in range(1000, 1120)
    ]
    text = message(rest(*picks))
    found = [name for name, _ in trailers(text)]
    assert (found.count("Picked-from"), found.count("Co-authored-by")) == (100, 30)
    assert "\n\nOf 20 more commits than are named below: the receipt has them all.\n\n" in text


texts = st.text(st.sampled_from("ab :-\n\r\t#>|\x1b[0m\x00\x9b\u2028\u202e\udcff"), max_size=60) | st.sampled_from(
    ["Kind: test\n", "\n---\n", "Test:x\n\nAgent: y", "\n\n\n", "a" * 1500, " \n "]
)


@settings(max_examples=25)
@given(subject=texts, body=texts, agent=texts, test=texts, evidence=texts)
def test_whatever_agents_write_git_reads_back_our_trailers(
    subject: str, body: str, agent: str, test: str, evidence: str
) -> None:
    source = Source(branch="one", head="", agent=agent, run="r1", test=test)
    text = message(fix(pick(change(subject=subject, body=body))), source, checked={"a" * 64: [evidence]})
    assert text.encode("utf-8")
    first, *others = text.split("\n")
    assert first
    assert others[0] == ""
    assert len(first) <= 72
    assert max(map(len, text.split("\n"))) <= 1600
    found = [name for name, _ in trailers(text)]
    wanted = ["Kind", *(["Test"] if test else []), "Agent" if agent else "Branch", "Run", "Verified-by", "Picked-from"]
    assert found == wanted
    assert set(found) <= OURS


def test_the_same_stack_gives_the_same_messages() -> None:
    step = rest(pick(change()), pick(change("two", "docs"), key="b"))
    assert messages(stack(step), []) == messages(stack(step), [])
