"""expect(): what holds, what does not, and that the message of a failure says all that one needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mngr.e2e import expect
from mngr.e2e.command import Result, run
from mngr.e2e.expectation import ExpectationFailed


class Screen:
    """As much of a Terminal as is looked at: a new screen at each look."""

    name = "editor"
    exit_code: int | None = None

    def __init__(self, *screens: str) -> None:
        self.screens = list(screens)

    @property
    def screen(self) -> str:
        return self.screens.pop(0) if len(self.screens) > 1 else self.screens[0]

    def wait_for_text(self, wanted: str) -> None:
        raise NotImplementedError


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., Result]:
    def shell(command: str, timeout: float = 60) -> Result:
        return run(command, env=os.environ, cwd=tmp_path, timeout=timeout)

    return shell


def failure(attempt: Callable[[], Any]) -> list[str]:
    with pytest.raises(ExpectationFailed) as failed:
        attempt()
    return str(failed.value).splitlines()


def test_a_result_succeeds_or_fails(shell: Callable[..., Result]) -> None:
    good, bad = shell("echo hello"), shell("echo out; echo no >&2; exit 3")
    expect(good).to_succeed().to_have_exit_code(0).not_.to_fail()
    expect(bad).to_fail().to_have_exit_code(3).to_contain("out", "no").not_.to_succeed().not_.to_have_exit_code(0)
    message = failure(lambda: expect(bad).to_succeed())
    assert message[0] == "`$ echo out; echo no >&2; exit 3`: expected to succeed, exit code 3"
    assert sorted(message[1:]) == ["  out", "! no"]
    assert failure(lambda: expect(good).to_fail())[0] == "`$ echo hello`: expected to fail, exit code 0"
    assert failure(expect(good).not_.to_succeed)[0] == "`$ echo hello`: expected not to succeed"
    assert failure(lambda: expect(bad).to_have_exit_code(2))[0].endswith("expected to have exit code 2, exit code 3")


def test_running_out_of_time_is_neither_success_nor_failure(shell: Callable[..., Result]) -> None:
    late = shell("exec sleep 60", timeout=0.1)
    expect(late).to_have_exit_code(124)
    for attempt in (
        expect(late).to_succeed,
        expect(late).to_fail,
        expect(late).not_.to_succeed,
        expect(late).not_.to_fail,
    ):
        assert "timed out (exit code 124)" in failure(attempt)[0]
    expect(shell("exit 124")).to_fail()  # its own word


def test_a_terminal_that_runs_has_no_exit_code_yet() -> None:
    screen = Screen("hello")
    assert failure(lambda: expect(screen).to_succeed()) == [
        "the screen of editor: expected to succeed, it has not ended",
        "  hello",
    ]
    screen.exit_code = 0
    expect(screen).to_succeed().to_contain("hell")


def test_text_of_any_kind_contains_and_matches(shell: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one\ntwo\n")
    for subject in ("one\ntwo\n", file, shell("cat file"), Screen("one\ntwo"), lambda: "one\ntwo"):
        expect(subject).to_contain("one", "two").to_match("^two$").to_match(re.compile("^one"))
        expect(subject).not_.to_contain("three", "four").not_.to_match("^wo").not_.to_match(re.compile("^two"))
        assert failure(partial(expect(subject).to_contain, "one", "six"))[1:] == ["  one", "  two"]
        assert failure(partial(expect(subject).not_.to_contain, "six", "two"))[1:] == ["  one", "  two"]
    assert failure(lambda: expect("a").to_match("b+"))[0] == "the text: expected to match /b+/"
    assert failure(lambda: expect(file).to_contain("six"))[0] == f"{file}: expected to contain 'six'"
    expect([1, 2]).to_contain(2).not_.to_contain(3)


def test_what_was_judged_is_what_is_shown() -> None:
    assert failure(lambda: expect(Screen("one", "two")).to_contain("two"))[1:] == ["  one"]
    assert failure(lambda: expect(Screen("one", "two")).not_.to_contain("one"))[1:] == ["  one"]


def test_a_missing_file_neither_contains_nor_lacks(tmp_path: Path) -> None:
    assert failure(lambda: expect(tmp_path / "no").to_contain("a"))[0].endswith("there is no such file")
    assert failure(lambda: expect(tmp_path / "no").not_.to_contain("a"))[0].endswith("there is no such file")


def test_equal_texts_and_their_difference() -> None:
    expect("a\nb\n").to_equal("a\nb\n").not_.to_equal("a")
    message = failure(lambda: expect("a\nX\nc\n").to_equal("a\nb\nc\n"))
    assert message[0] == "the text: expected to equal this"
    assert message[4:] == [" a", "-b", "+X", " c", " "]


def test_white_space_is_shown_when_nothing_else_differs() -> None:
    assert failure(lambda: expect("a b\n").to_equal("a  b"))[4:] == ["-a··b", "+a·b⏎", "+"]


def test_equal_values() -> None:
    expect(3).to_equal(3).not_.to_equal(4)
    expect([]).to_be_empty()
    expect({"a": 1}).not_.to_be_empty()
    assert failure(lambda: expect(3).to_equal(4)) == ["3: expected to equal 4, is 3"]
    message = failure(lambda: expect(list(range(100))).to_equal(list(range(99))))
    assert " 98," not in message
    assert "+ 99]" in message


def test_empty(shell: Callable[..., Result]) -> None:
    expect(shell("true")).to_be_empty()
    expect("").to_be_empty()
    assert failure(lambda: expect(shell("echo x >&2")).to_be_empty())[1:] == ["! x"]
    assert failure(expect("").not_.to_be_empty) == ["the text: expected not to be empty", "  (nothing)"]


def test_json_with_holes(shell: Callable[..., Result]) -> None:
    result = shell("""echo noise >&2; echo '{"a": [1, {"id": "x7"}], "b": null, "c": true}'""")
    expect(result).to_be_json().to_be_json({"a": [1, {"id": ...}], "b": None, "c": ...})
    expect(result).to_be_json({"a": ..., ...: ...}).to_be_json({"a": [1, {...: ...}], ...: ...}).to_be_json(...)
    expect(result).not_.to_be_json({"a": ...}).not_.to_be_json({"d": ..., ...: ...}).not_.to_be_json(
        {"a": [], ...: ...}
    )
    message = failure(lambda: expect(result).to_be_json({"a": [2, {"id": ...}], ...: ...}))
    assert [line for line in message[3:] if line[0] in "-+"] == ["-    2,", "+    1,"]
    expect({"a": 1, "b": 2}).to_be_json({"a": 1, ...: ...})


def test_what_is_no_json(shell: Callable[..., Result]) -> None:
    expect(shell("echo '{'")).not_.to_be_json()
    message = failure(lambda: expect(shell("echo '{'")).to_be_json())
    assert message[0].startswith("`$ echo '{'`: expected to be JSON, Expecting property name")
    assert message[1:] == ["  {"]


def test_long_output_is_cut_in_the_middle_and_controls_are_shown() -> None:
    message = failure(lambda: expect("\n".join(map(str, range(1000)))).to_contain("x"))
    assert len(message) == 42
    assert (message[20], message[21], message[22]) == ("  19", "  … 960 more lines …", "  980")
    assert len(failure(lambda: expect("y" * 10_000).to_contain("x"))[1]) < 500
    assert failure(lambda: expect("\x1b[31mred\udcff").to_be_empty())[1] == "  ␛[31mred\\udcff"


def test_eventually_looks_again(shell: Callable[..., Result], tmp_path: Path) -> None:
    expect(shell("echo x >> log; cat log; [ $(wc -l < log) = 3 ]")).to_eventually_succeed().to_equal("x\nx\nx\n")
    expect(Screen("", "starting", "ready")).to_eventually_contain("ready")
    expect(Screen("busy", "busy", "idle")).not_.to_eventually_contain("busy", "working")
    values = iter([1, 2, 3, 4])
    expect(lambda: next(values)).to_eventually_equal(3).to_equal(3)
    lines = iter(["{", '{"state": "done"}'])
    expect(lambda: json.loads(next(lines))["state"]).to_eventually_match("^d")
    expect(Screen("x", "")).to_eventually_be_empty()
    expect(shell("echo y >> more; exit $(($(wc -l < more) - 1))")).to_eventually_fail()
    late = shell("(while [ ! -e go ]; do :; done; echo hello > late) >/dev/null 2>&1 & touch go")
    expect(late).to_succeed()
    expect(tmp_path / "late").to_eventually_equal("hello\n")


def test_eventually_tells_how_often_how_long_and_the_last_failure() -> None:
    message = failure(lambda: expect(Screen("one", "two")).to_eventually_contain("three", timeout=0.1))
    assert message[0] == "the screen of editor: expected to contain 'three' within 0.1 s"
    assert re.fullmatch(r"tried \d+ times in 0\.\d s; the last time:", message[1])
    assert message[2:] == ["  two"]

    def broken() -> str:
        raise KeyError("port")

    message = failure(lambda: expect(broken).not_.to_eventually_contain("a", timeout=0))
    assert message == [
        "broken(): expected not to contain 'a' within 0 s, raised KeyError",
        "tried once in 0.0 s; the last time:",
        "  'port'",
    ]


def test_none_of_several_is_to_be_there_in_the_end() -> None:
    message = failure(lambda: expect(Screen("busy")).not_.to_eventually_contain("busy", "working", timeout=0))
    assert message[0] == "the screen of editor: expected not to contain 'busy', 'working' within 0 s"


def test_what_cannot_change_cannot_be_waited_for() -> None:
    with pytest.raises(TypeError, match="a value of type str will never change"):
        expect("a").to_eventually_contain("b")


def test_what_has_no_text_or_exit_code_is_refused() -> None:
    with pytest.raises(TypeError, match="a value of type int has no text"):
        expect(3).to_match("3")
    with pytest.raises(TypeError, match="a value of type str has no exit code"):
        expect("a").to_succeed()


def test_a_traceback_ends_in_the_test(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(
        "from mngr.e2e import expect\n"
        "def test_now():\n    expect('a').to_contain('b')\n"
        "def test_later():\n    expect(lambda: 'a').to_eventually_contain('b', timeout=0)\n"
        "def test_snapshot():\n    expect('a').to_match_snapshot('b')\n"
    )
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(test)]
    shown = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).stdout
    for line in (3, 5, 7):
        assert f"test_it.py:{line}: ExpectationFailed" in shown
    assert "expectation.py" not in shown
