"""transcript: the conversation of an agent, from the logs of its program. The program here is one that only sleeps; its
logs, and what its hooks would write, are laid by hand."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.agents import directory, launched
from tests.home import Home, Mngr, wait_until

SAMPLE = Path(__file__).parents[1] / "data" / "claude-2.1.197.jsonl"


@pytest.fixture
def ada(mngr: Mngr, home: Home) -> Ada:
    """An agent of type claude."""
    program = home.root / "bin" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" != --version ] || { echo "2.1.197 (Claude Code)"; exit; }\nexec sleep 1000\n')
    program.chmod(0o755)
    home.env["PATH"] = f"{program.parent}:{home.env['PATH']}"
    home.env["ANTHROPIC_API_KEY"] = "sk-ant-none"
    mngr.ok("create", "ada", "claude", "--mode", "none")
    launched(home, 1)
    return Ada(mngr)


class Ada:
    """The agent, and what its program does."""

    def __init__(self, mngr: Mngr) -> None:
        self.directory = directory(mngr, "ada")
        self.feed = mngr.home.mngr_home / "feed"
        self.log = self.directory / "none.jsonl"

    def begin(self, name: str, text: str = "", *, tell: bool = True) -> None:
        """A conversation in that log, new or resumed, as the hook writes and tells it."""
        self.log = self.directory / name
        conversations = self.directory / "conversations"
        known = conversations.read_text() if conversations.exists() else ""
        if str(self.log) not in known:
            conversations.write_text(f"{known}{self.log}\n")
        (self.directory / "conversation").write_text(f"session\n{self.log}\n")
        self.write(text)
        if tell:
            with self.feed.open("a") as feed:
                feed.write(json.dumps({"time": 1, "agent": self.directory.name, "event": "running"}) + "\n")

    def write(self, text: str) -> None:
        with self.log.open("a") as file:
            file.write(text)


def test_people_read_who_said_what_and_when(mngr: Mngr, ada: Ada) -> None:
    ada.begin("log", SAMPLE.read_text())
    shown = mngr.ok("transcript", "ada", "--head", "7")
    assert (
        shown
        == """\
2026-11-15 13:31:38  user
  TWO: go
2026-11-15 13:31:38  assistant  thinking
  Let me think about this.
  Two lines.
2026-11-15 13:31:38  assistant
  Two at once.
2026-11-15 13:31:38  assistant  Bash  echo one
2026-11-15 13:31:38  assistant  Read  /nonexistent
2026-11-15 13:31:39  tool  Read  failed
  File does not exist. Note: your current working directory is /home/ada/project.
2026-11-15 13:31:39  tool  Bash
  one
"""
    )


def test_what_was_not_said_is_shortened_unless_all_is_wanted(mngr: Mngr, ada: Ada) -> None:
    command = "first\nsecond " + "x" * 200
    ada.begin("log", said("\n".join(map(str, range(9)))))
    ada.write(answer({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": command, "timeout": 9}}))
    ada.write(user([{"type": "tool_result", "tool_use_id": "t", "content": "\n".join(["y" * 200, *"12345678"])}]))
    heads = ("2026-11-15 13:19:06  assistant  Bash", "2026-11-15 13:19:06  tool  Bash")
    call, result = mngr.ok("transcript", "ada").split(heads[0])[1].split(heads[1])
    assert call == f"  first second {'x' * 87}...\n"
    assert result == f"\n  {'y' * 100}...\n  1\n  2\n  3\n  4\n  ... 4 more lines\n"
    whole = mngr.ok("transcript", "ada", "--full")
    call, result = whole.split(heads[0])[1].split(heads[1])
    assert call == f"\n  command: first\n  second {'x' * 200}\n  timeout: 9\n"
    assert result == f"\n  {'y' * 200}\n" + "".join(f"  {digit}\n" for digit in "12345678")
    assert "\n  8\n" in mngr.ok("transcript", "ada", "--role", "user")  # what was said is never shortened


def test_no_text_acts_on_the_terminal_or_passes_for_another_entry(mngr: Mngr, ada: Ada) -> None:
    forged = "2026-11-15 13:19:06  user"
    ada.begin("log", said(f"\x1b[31mred\x1b[0m\x1b]0;title\x07 a\tb \x07\x9b2J\n{forged}\r\n\ud83d"))
    ada.write(answer({"type": "tool_use", "id": "t", "name": "\x1b[2J", "input": {"command": f"a\n{forged}\x1b[2J"}}))
    shown = mngr.ok("transcript", "ada")
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
    assert shown.splitlines().count(forged) == 1
    assert "\n  red a   b ��2J\n  2026-11-15 13:19:06  user\n  �\n" in shown


def test_programs_get_every_entry_whole(mngr: Mngr, ada: Ada) -> None:
    ada.begin("log", said("x\n" * 50))
    ada.begin("second", answer({"type": "text", "text": "yes \x1b[1m"}))
    listed = mngr.json("transcript", "ada")
    assert [entry["text"] for entry in listed] == ["x\n" * 50, "yes \x1b[1m"]
    assert listed[1] == {
        "kind": "message",
        "role": "assistant",
        "time": 1794748746.5,
        "text": "yes \x1b[1m",
        "tool": "",
        "call": "",
        "input": None,
        "failed": False,
        "model": "opus",
        "id": "m1",
        "usage": {
            "input": 1,
            "cache_read": 0,
            "cache_write_5m": 0,
            "cache_write_1h": 0,
            "output": 2,
            "reasoning": 0,
        },
        "side": False,
    }
    assert [json.loads(line) for line in mngr.ok("transcript", "ada", "--jsonl").splitlines()] == listed


def test_a_part_of_it_can_be_chosen(mngr: Mngr, ada: Ada) -> None:
    ada.begin(
        "log", "".join(said(f"q{number}") + answer({"type": "text", "text": f"a{number}"}) for number in range(5))
    )

    def texts(*options: str) -> list[str]:
        return [entry["text"] for entry in mngr.json("transcript", "ada", *options)]

    assert texts("--head", "3") == ["q0", "a0", "q1"]
    assert texts("--tail", "3") == ["a3", "q4", "a4"]
    assert texts("--role", "user", "--tail", "2") == ["q3", "q4"]
    assert texts("--role", "assistant,user", "--head", "2") == ["q0", "a0"]
    assert texts("--role", "tool") == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--role", "model"], "there is no role 'model'"),
        (["--head", "1", "--tail", "1"], "--head and --tail exclude each other"),
        (["--tail", "none"], "--tail takes a whole number"),
        (["--json", "--follow"], "--follow has no end"),
    ],
)
def test_words_that_make_no_sense_are_refused(mngr: Mngr, ada: Ada, options: list[str], complaint: str) -> None:
    result = mngr("transcript", "ada", *options)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err


def test_before_the_first_conversation_there_is_none(mngr: Mngr, ada: Ada) -> None:
    for options, out in (([], ""), (["--json"], "[]\n"), (["--jsonl"], ""), (["--tail", "3"], "")):
        result = mngr("transcript", "ada", *options)
        assert (result.code, result.out, result.err) == (0, out, "mngr: ada has no conversation yet\n")


def test_what_cannot_be_read_is_told_beside_the_rest(mngr: Mngr, ada: Ada) -> None:
    ada.begin("removed")
    ada.log.unlink()
    ada.begin("log", said("one") + '{"type":"\x1bnew"}\nnot json\n' + said("two") + '{"type":"user","mess')
    result = mngr("transcript", "ada", "--jsonl")
    assert result.code == 0
    assert [json.loads(line)["text"] for line in result.out.splitlines()] == ["one", "two"]
    assert result.err.splitlines() == [
        f"mngr: {ada.directory}/removed cannot be read: it was removed, or is not written yet",
        f"mngr: {ada.directory}/log has 2 lines that cannot be read",
        f"mngr: {ada.directory}/log ends with a line that is not complete",
    ]


def test_a_program_without_a_log_has_no_transcript(mngr: Mngr) -> None:
    mngr.ok("create", "foo", "command", "--mode", "none", "--", "sleep", "1000")
    result = mngr("transcript", "foo")
    assert (result.code, result.out) == (2, "")
    assert result.err == "mngr: foo is a command: it keeps no transcript\nhint: mngr capture foo\n"
    assert mngr("transcript", "nobody").code == 3
    assert mngr("transcript").code == 2


def test_the_schema_needs_no_agent(mngr: Mngr) -> None:
    assert json.loads(mngr.ok("transcript", "--schema"))["$id"] == "urn:mngr:transcript:1"


def test_the_first_entries_come_while_the_rest_is_being_read(mngr: Mngr, ada: Ada) -> None:
    ada.begin("log", said("x" * 1000) * 10_000)
    reading = mngr.popen("transcript", "ada", "--jsonl")
    assert reading.stdout
    assert json.loads(reading.stdout.readline())["text"] == "x" * 1000
    ada.log.write_text("")  # what had not been read by then is never seen
    rest = reading.stdout.read()
    assert reading.wait(20) == 0
    assert len(rest) < 5_000_000


def test_a_reader_that_has_enough_is_left_in_silence(mngr: Mngr, ada: Ada, home: Home) -> None:
    ada.begin("log", '{"type":"unknown"}\n' + said("x" * 1000) * 5000)
    before = set(home.processes())
    shown = home.run("sh", "-c", f"{{ {mngr.program} transcript ada 2>err; }} | head -n 1; cat err")
    assert shown == "2026-11-15 13:19:06  user\n"
    wait_until(lambda: set(home.processes()) <= before, what="its helpers to end")


# Following


def test_follow_goes_on_with_what_is_said(mngr: Mngr, ada: Ada, home: Home) -> None:
    ada.begin("log", said("old") + said("last"))
    before = set(home.processes())
    follower = mngr.popen("transcript", "ada", "--follow", "--tail", "1", "--jsonl")
    assert text_of(follower) == "last"
    ada.write(said("new"))
    assert text_of(follower) == "new"
    half = said("in two parts")
    ada.write(half[:30])
    ada.write(half[30:] + '{"type":"unknown"}\n' + said("whole"))
    assert [text_of(follower) for _ in range(2)] == ["in two parts", "whole"]
    follower.send_signal(signal.SIGINT)
    assert follower.wait(10) == 130
    assert follower.stderr
    assert follower.stderr.read() == "mngr: 1 record of an unknown type was skipped: unknown 1\n"
    wait_until(lambda: set(home.processes()) <= before, what="its helpers to end")


def test_follow_waits_for_the_first_conversation_and_goes_with_the_agent_into_others(mngr: Mngr, ada: Ada) -> None:
    follower = mngr.popen("transcript", "ada", "--follow", "--jsonl")
    ada.begin("first", said("one"))
    assert text_of(follower) == "one"
    ada.write(said("two"))
    ada.begin("second", said("three"))  # after /clear
    assert [text_of(follower) for _ in range(2)] == ["two", "three"]
    ada.write(said("four"))
    ada.begin("first", said("five"))  # after /resume
    assert [text_of(follower) for _ in range(2)] == ["four", "five"]
    ada.write(said("six"))
    assert text_of(follower) == "six"


def test_follow_passes_over_no_conversation_however_short(mngr: Mngr, ada: Ada) -> None:
    ada.begin("first", said("one"))
    follower = mngr.popen("transcript", "ada", "--follow", "--jsonl")
    assert text_of(follower) == "one"
    ada.begin("second", said("two"), tell=False)
    ada.begin("third", said("three"))
    assert [text_of(follower) for _ in range(2)] == ["two", "three"]


def test_follow_of_the_last_entries_shows_none_of_an_older_conversation_that_is_resumed(mngr: Mngr, ada: Ada) -> None:
    ada.begin("first", said("old"))
    ada.begin("second", said("a") + said("b"))
    follower = mngr.popen("transcript", "ada", "--follow", "--tail", "1", "--jsonl")
    assert text_of(follower) == "b"
    ada.begin("first", said("resumed"))
    assert text_of(follower) == "resumed"


def test_follow_ends_with_the_agent(mngr: Mngr, ada: Ada) -> None:
    ada.begin("log", said("one"))
    follower = mngr.popen("transcript", "ada", "--follow", "--jsonl")
    assert text_of(follower) == "one"
    mngr.ok("destroy", "-f", "ada")
    assert follower.wait(10) == 0
    assert follower.stderr
    assert follower.stderr.read() == ""


def test_the_helpers_of_a_killed_follower_end(mngr: Mngr, ada: Ada, home: Home) -> None:
    ada.begin("log", said("one"))
    before = set(home.processes())
    follower = mngr.popen("transcript", "ada", "--follow", "--jsonl")
    assert text_of(follower) == "one"
    ada.write(said("two"))
    assert text_of(follower) == "two"
    follower.kill()
    follower.wait(10)
    wait_until(lambda: set(home.processes()) <= before, what="its helpers to end")


# What these tests speak about


def text_of(follower: Any) -> str:
    """The next entry that it prints."""
    return str(json.loads(follower.stdout.readline())["text"])


def said(text: str) -> str:
    return user(text)


def user(content: object) -> str:
    return _line({"type": "user", "message": {"role": "user", "content": content}})


def answer(*blocks: dict[str, Any]) -> str:
    usage = {"input_tokens": 1, "output_tokens": 2}
    return _line({"type": "assistant", "message": {"id": "m1", "model": "opus", "content": blocks, "usage": usage}})


def _line(record: dict[str, Any]) -> str:
    return json.dumps({**record, "timestamp": "2026-11-15T13:19:06.500Z"}) + "\n"
