"""Patterns with holes: what they match, what they become when the text changes, and that neither takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.e2e.pattern import adapt, diff, escape, matches

PATHS = {"ROOT": "/tmp/r", "WORK": "/tmp/r/work", "HOME": "/tmp/r/home"}


def fits(pattern: str, text: str) -> bool:
    return matches(pattern, text, PATHS)


def test_indentation_trailing_space_and_blank_lines_around_do_not_count() -> None:
    assert fits("\n        a\n          b  \n\n", "a  \n  b\n")
    assert fits("", "\n \n")
    assert fits("a", "  a\n\u00a0\n")
    assert not fits("a\n b", "a\nb")
    assert not fits("a", "a\n\nb")


def test_three_dots_on_a_line_are_any_lines_or_none() -> None:
    assert fits("a\n...\nb", "a\nb")
    assert fits("a\n   ...\nb", "a\nx\n\ny\nb")
    assert fits("...", "")
    assert fits("...\nb", "a\nb")
    assert fits("a\n...", "a\nb")
    assert fits("a\n...\nb\n...\nb", "a\nb\nb\nx\nb")
    assert not fits("a\n...\nb\n...\nb", "a\nb")
    assert not fits("a\n...\nb", "a\nb\nc")
    assert not fits("a ...", "a b")


def test_a_block_between_dots_is_found_where_it_is_whole() -> None:
    assert fits("...\na\nb\n...", "a\na\na\nb\nc")
    assert not fits("...\na\nb\n...", "a\nc\nb")


def test_two_dots_in_brackets_are_any_characters_of_one_line() -> None:
    assert fits("a [..] c", "a b b c")
    assert fits("a[..]c", "ac")
    assert fits("[..]b[..]b[..]", "xbyb")
    assert not fits("[..]b[..]b[..]", "xby")
    assert not fits("a[..]c", "a\nc")
    assert not fits("a[..]c", "ab")
    assert not fits("a[..]c", "xac")


def test_a_given_name_is_its_value_and_an_unknown_one_is_itself() -> None:
    assert fits("in [WORK]/x", "in /tmp/r/work/x")
    assert not fits("in [WORK]/x", "in [WORK]/x")
    assert fits("usage: hello [OPTIONS] [NAME:a]", "usage: hello [OPTIONS] [NAME:a]")


@pytest.mark.parametrize(
    ("kind", "yes", "no"),
    [
        (
            "TIME",
            [
                "16:43",
                "9:05:01",
                "16:43:34.123",
                "2026-11-15",
                "2026-11-15T16:43:34Z",
                "2026-11-15 16:43 +01:00",
                "4:05 PM",
            ],
            ["16", "16:4", "2026-11", "1:234"],
        ),
        ("DURATION", ["0.3 s", "12ms", "3m 2s", "1h02m", "5 minutes", "1d 2h 3m"], ["0.3", "s", "3 sheep"]),
        ("NUMBER", ["0", "-1", "3.14", "12,345", "1.5e-7"], ["", "a", "1.", "0x1"]),
        ("HEX", ["1f3c0de", "ABCDEF0123"], ["1f3c0d", "1f3c0dg"]),
        ("UUID", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-42661417400"]),
        ("PORT", ["1", "8080", "65535"], ["0", "65536", "080", "123456"]),
    ],
)
def test_a_kind_matches_by_its_form(kind: str, yes: list[str], no: list[str]) -> None:
    for text in yes:
        assert fits(f"[{kind}]", text), text
        assert fits(f"<[{kind}]>[..]", f"<{text}>"), text
        assert fits(f"[..] [{kind}] [..]", f"a {text} b"), text
    for text in no:
        assert not fits(f"<[{kind}]>", f"<{text}>"), text


def test_kinds_stand_beside_each_other_and_beside_text() -> None:
    assert fits("v[NUMBER].[NUMBER].[NUMBER]", "v1.20.3")
    assert fits("v[NUMBER]-g[HEX]", "v3-gabcdef0")
    assert fits("[..][NUMBER] of [NUMBER] in [DURATION]", "done: 3 of 12 in 1.5 s")
    assert fits("localhost:[PORT]/x", "localhost:40123/x")
    assert fits("[..][NUMBER] left", "3 of 4 left")


def test_the_same_tag_is_the_same_text() -> None:
    assert fits("[HEX:a]\n[HEX:b]\n[HEX:a]", "1111111\n2222222\n1111111")
    assert not fits("[HEX:a]\n[HEX:a]", "1111111\n2222222")
    assert fits("[NUMBER:n] = [NUMBER:n]", "12 = 12")
    assert not fits("[NUMBER:n] = [NUMBER:n]", "12 = 13")
    assert fits("[HEX:a]\n[NUMBER:a]", "1111111\n2")


def test_a_tag_is_settled_by_any_line_that_has_it() -> None:
    text = "commit 1111111\ncommit 2222222\ncommit 3333333\nHEAD is 2222222"
    assert fits("...\ncommit [HEX:h]\n...\nHEAD is [HEX:h]", text)
    assert not fits("...\ncommit [HEX:h]\n...\nHEAD is [HEX:h]", text.replace("HEAD is 2", "HEAD is 4"))


def test_a_backslash_makes_a_hole_plain() -> None:
    assert fits(r"a \[..] b", "a [..] b")
    assert not fits(r"a \[..] b", "a x b")
    assert fits(r"\[WORK] \[PORT] \[HEX:a]", "[WORK] [PORT] [HEX:a]")
    assert fits("\\...", "...")
    assert not fits("\\...", "x")
    assert fits(r"C:\\[..]", "C:\\temp")
    assert fits(r"\d+\[OPTIONS]", r"\d+\[OPTIONS]")


def test_adapting_keeps_what_still_matches() -> None:
    old = "start [TIME]\nread 3 files\n...\ntook [DURATION]"
    new = "start 16:43\nread 4 files\nx\ny\ntook 0.3 s"
    assert adapt(old, new, PATHS) == "start [TIME]\nread 4 files\n...\ntook [DURATION]"


def test_adapting_writes_paths_as_names_longest_first_and_whole() -> None:
    text = "/tmp/r/work/a\n/tmp/r/b\n/tmp/r/workshop\n\\/tmp/r/work\n[/tmp/r/home]"
    assert adapt("", text, PATHS) == "[WORK]/a\n[ROOT]/b\n[ROOT]/workshop\n\\\\[WORK]\n[[HOME]]"


def test_adapting_escapes_what_looks_like_a_hole() -> None:
    assert adapt("", "serve [PORT] [OPTIONS]\n...\n[..]", PATHS) == "serve \\[PORT] [OPTIONS]\n\\...\n\\[..]"


def test_three_dots_stay_beside_a_line_that_stays() -> None:
    assert adapt("a\n...\nb\nc", "a\n1\n2\nB\nc", PATHS) == "a\n...\nB\nc"
    assert adapt("a\nb\n...\nc", "a\nB\n1\n2\nc", PATHS) == "a\nB\n...\nc"
    assert adapt("a\n...", "A\n1\n2", PATHS) == "A\n..."
    assert adapt("a\n...\nb", "1\n2\n3", PATHS) == "1\n2\n3"
    assert adapt("a\n...\nx\n...\nb", "a\n1\nb", PATHS) == "a\n...\nb"


def test_adapting_prefers_the_line_that_says_most() -> None:
    assert adapt("[..]\ntook [DURATION]\nend", "took 3 s\nend", PATHS) == "took [DURATION]\nend"


def test_a_line_that_matches_anything_stays_in_its_place() -> None:
    assert adapt("[HOME]\nhello\n[..]", "/tmp/r/work\nhi\nSunday", PATHS) == "[WORK]\nhi\n[..]"
    assert adapt("a\n[..]\nb", "a\nx\ny\nb", PATHS) == "a\n[..]\ny\nb"
    assert adapt("x\n...\n[..]\nb", "y\n1\n2\n3\nc", PATHS) == "y\n...\n[..]\nc"


def test_a_tag_that_no_longer_agrees_is_written_out() -> None:
    assert adapt("a [HEX:a]\nb [HEX:a]", "a 1111111\nb 2222222", PATHS) == "a [HEX:a]\nb 2222222"


def test_the_difference_is_what_the_pattern_would_become() -> None:
    old = "in [WORK]\n...\nread 3 files"
    assert diff(old, "in /tmp/r/work\n1\nread 3 files", PATHS) == ""
    shown = diff(old, "in /tmp/r/work\n1\nread 4 files", PATHS).splitlines()
    assert shown[3:] == [" in [WORK]", " ...", "-read 3 files", "+read 4 files"]


def test_thousands_of_lines_with_many_dots_do_not_backtrack() -> None:
    text = "\n".join(["a"] * 10_000)
    assert not fits("\n".join(["...", "a"] * 40 + ["b"]), text)
    assert not fits("...\n" + "[..]a\n" * 5_000 + "b", text)
    log = "\n".join(f"{n:08x} commit {n}" for n in range(10_000))
    assert fits("...\n[HEX:a] [..]\n...\n[HEX:b] commit 9000\n...", log)
    assert not fits("...\n[HEX:a] [..]\n...\n[HEX:a] [..]\n...", log)
    assert not fits("[..]a" * 12 + "b", "a" * 5_000)


holes = ["...", "[..]", "[HEX:a]", "[NUMBER]", "[WORK]", "[X]", "[TIME]"]
values = ["/tmp/r/work", "/tmp/r", "12", "1234567", "16:43", "3 s", "a", "b", "é"]
marks = ["\\", "[", "]", " ", "  ", "\t", "\n", "\n", "\r", "\x0c", "\u00a0", "\u2028"]
fragments = st.sampled_from(holes + values + marks)
texts = st.lists(fragments, max_size=14).map("".join) | st.text(max_size=20)


@given(texts, texts)
def test_an_adapted_pattern_matches(pattern: str, text: str) -> None:
    adapted = adapt(pattern, text, PATHS)
    assert matches(adapted, text, PATHS)
    assert adapt(adapted, text, PATHS) == adapted


@given(texts, texts)
def test_any_text_matches_itself_escaped_and_nothing_else_does(text: str, other: str) -> None:
    pattern = escape(text, PATHS)
    assert matches(pattern, text, PATHS)
    assert matches(pattern, other, PATHS) == (escape(other, PATHS) == pattern)


@given(texts, texts)
def test_there_is_a_difference_exactly_when_it_does_not_match(pattern: str, text: str) -> None:
    assert (diff(pattern, text, PATHS) == "") == matches(pattern, text, PATHS)
