"""The text of a transcript, and how much of it a failure shows."""

from __future__ import annotations

from typing import Any

from mngr.e2e.transcript import Step, fold, write_step


def step(n: int = 1, **members: Any) -> Step:
    usual = {"time": 0.0, "duration": 0.25, "kind": "run", "comment": None, "command": "true", "exit_code": 0}
    return Step(**{"n": n, "timed_out": False, "lines": [], **usual, **members})


def test_a_step_reads_like_a_terminal() -> None:
    lines = [("o", "one"), ("e", "two"), ("o", "")]
    written = write_step(step(comment="say both", command="both", exit_code=3, lines=lines))
    assert written == "# say both\n$ both\n  one\n! two\n\n? 3\n"


def test_a_command_of_several_lines() -> None:
    assert write_step(step(command="cat <<E\nx\nE")) == "$ cat <<E\n> x\n> E\n"


def test_what_is_done_in_a_terminal() -> None:
    assert write_step(step(kind="press", command="Enter", exit_code=None)) == "< Enter\n"


def test_a_timeout_says_so() -> None:
    assert write_step(step(exit_code=124, timed_out=True)) == "$ true\n? 124 (timed out after 0.2 s)\n"


def test_colours_and_what_was_written_over_are_left_out() -> None:
    lines = [("o", "\x1b[1;31mred\x1b[0m"), ("o", "10%\r 90%\r100%"), ("o", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\")]
    assert write_step(step(lines=lines)) == "$ true\n  red\n  100%\n  link\n"


def test_a_failure_folds_all_phases_but_the_last() -> None:
    steps = [
        step(1, comment="first", command="a"),
        step(2, command="b"),
        step(3, comment="second", command="c", lines=[("o", "c")]),
        step(4, command="d", exit_code=1),
    ]
    assert fold(steps) == "# first  [2 commands, 0.50 s]\n# second\n$ c\n  c\n$ d\n? 1\n"
    assert fold([]) == ""


def test_a_folded_phase_says_that_a_command_in_it_failed() -> None:
    assert fold([step(1, comment="first", exit_code=3), step(2, comment="second")]).startswith(
        "# first  [1 command, 0.25 s, ? 3]\n"
    )


def test_nothing_acts_on_the_readers_terminal() -> None:
    lines = [("o", "\x1bc\x1b(B\x0e\x08x"), ("o", "\x1bP1;2q\x1b\\y")]
    assert write_step(step(lines=lines)) == "$ true\n  ␎␈x\n  y\n"


def test_a_failure_cuts_long_output_in_its_middle() -> None:
    text = fold([step(lines=[("o", str(n)) for n in range(1000)])])
    assert len(text.splitlines()) == 62
    assert "\n  0\n" in text
    assert "\n  ... (940 lines)\n" in text
    assert text.endswith("  999\n")


def test_markers_are_short() -> None:
    assert step(3, comment="say it\nloudly").label == "3 say it"
    assert step(4, command="mngr list\nx").label == "4 mngr list"
    assert step(5, kind="wait", command="for 'x'").label == "5 wait for 'x'"
