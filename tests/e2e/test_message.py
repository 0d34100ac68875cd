"""message: what arrives at a program's terminal is what was sent, whole, once, and at the right agent."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.home import Home, Mngr, wait_until

RAW = "stty raw -echo; touch ready; exec cat >got"
BRACKETED = r"stty raw -echo; printf '\033[?2004h'; touch ready; exec cat >got"


# It arrives


def test_a_message_is_typed_and_entered(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    assert mngr.ok("message", "a", "-m", "and add a test") == "typed a\n"
    assert_got(home, "and add a test\n")


def test_the_text_comes_from_a_file(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    (home.path / "prompt.md").write_text("first\n\n\tthird\n")
    mngr.ok("message", "a", "--file", "prompt.md")
    assert_got(home, "first\n\n\tthird\n")


@pytest.mark.parametrize("words", [[], ["--file", "-"]])
def test_the_text_comes_from_standard_input(mngr: Mngr, home: Home, words: list[str]) -> None:
    create(mngr, "a", "exec cat >got")
    mngr.ok("message", "a", *words, input="from a pipe\r\nwith Windows lines\r\n")
    assert_got(home, "from a pipe\nwith Windows lines\n")


def test_one_message_goes_to_several_agents(mngr: Mngr, home: Home) -> None:
    mngr.ok("create", "try", "command", "--mode", "none", "-n", "3", "--", 'exec cat >"got-$MNGR_AGENT_NAME"')
    assert mngr.ok("message", "try-*", "-m", "all of you") == "typed try-1\ntyped try-2\ntyped try-3\n"
    for name in ("try-1", "try-2", "try-3"):
        assert_got(home, "all of you\n", f"got-{name}")


@pytest.mark.parametrize(
    "text",
    [
        "-n --help",
        "--",
        "übergröße 日本語 🙂 e\u0301",
        """it's "quoted" `id` $(touch pwned) ${HOME} $HOME \\n \\\\ %s %d * ? [a] ~ !! & | < > #""",
        "#{pane_id} #(touch pwned) #S ; kill-server ; \\; } { C-c Enter q",
        "ends in a backslash\\",
        "   blanks around   ",
    ],
)
def test_nothing_in_a_text_means_anything_on_the_way(mngr: Mngr, home: Home, text: str) -> None:
    create(mngr, "a", "exec cat >got")
    mngr.ok("message", "a", "-m", text)
    assert_got(home, text + "\n")
    assert not (home.path / "pwned").exists()


def test_bytes_that_are_no_text_arrive_as_they_are(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    (home.path / "latin1").write_bytes(b"caf\xe9\n")
    mngr.ok("message", "a", "--file", "latin1")
    assert_got(home, b"caf\xe9\n")


def test_control_characters_are_removed_so_that_none_of_them_acts(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    mngr.ok("message", "a", "-m", "keep\x03\x04\x15\x1a\x7f\x08\x1b[201~ \x9b31mgoing\ttab")
    assert_got(home, "keep[201~ 31mgoing\ttab\n")


def test_a_program_that_asked_for_it_gets_one_bracketed_paste(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", BRACKETED)
    ready(home)
    mngr.ok("message", "a", "-m", "one\n\x1b[201~rm -rf two\n")
    assert_got(home, b"\x1b[200~one\r[201~rm -rf two\x1b[201~\r")


# Long texts


def test_a_long_text_arrives_whole_at_a_program_that_reads_lines(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    mngr.ok("message", "a", input=LONG)
    assert_got(home, LONG)


def test_a_long_text_arrives_whole_at_a_program_in_raw_mode(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", RAW)
    ready(home)
    mngr.ok("message", "a", input=LONG)
    assert_got(home, LONG.replace("\n", "\r"))


def test_a_line_that_the_terminal_would_cut_off_is_refused(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    result = mngr("message", "a", input="short\n" + "x" * 5000)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("mngr: a: a line of more than 4095 bytes would be cut off")
    mngr.ok("message", "a", "-m", "next")
    assert_got(home, "next\n")


def test_the_longest_line_that_a_terminal_takes_arrives(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    mngr.ok("message", "a", input="ü" * 2047 + "x")
    assert_got(home, "ü" * 2047 + "x\n")


def test_a_program_in_raw_mode_gets_a_line_of_any_length(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", RAW)
    ready(home)
    mngr.ok("message", "a", input="x" * 20_000)
    assert_got(home, "x" * 20_000 + "\r")


# The right place


def test_a_message_goes_to_the_agent_whatever_window_is_in_front(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got", "--window", "log=exec cat >wrong")
    session = f"={one(mngr, 'a')['id']}"
    home.tmux("select-window", "-t", f"{session}:log")
    home.tmux("split-window", "-t", f"{session}:agent", "-c", str(home.path), "exec cat >wrong")
    mngr.ok("message", "a", "-m", "for the agent")
    assert_got(home, "for the agent\n")
    wait_until((home.path / "wrong").exists)
    assert (home.path / "wrong").read_text() == ""


def test_a_message_is_entered_although_somebody_scrolls_in_the_window(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    home.tmux("copy-mode", "-t", f"={one(mngr, 'a')['id']}:")
    mngr.ok("message", "a", "-m", "do you read me")
    assert_got(home, "do you read me\n")


def test_two_senders_at_once_never_mix(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    texts = ["".join(f"{sender}-{line}\n" for line in range(200)) for sender in "ABCDEF"]
    for number, text in enumerate(texts):
        (home.path / f"text-{number}").write_text(text)
    senders = [mngr.popen("message", "a", "--file", f"text-{number}") for number in range(len(texts))]
    assert [sender.wait(10) for sender in senders] == [0] * len(texts)
    got = wait_until(lambda: read(home) if len(read(home)) >= len("".join(texts)) else b"").decode()
    order = sorted(range(len(texts)), key=lambda number: got.index(texts[number][:4]))
    assert got == "".join(texts[number] for number in order)


# Refused


@pytest.mark.parametrize("text", ["", " \n\t\n", "\x1b\x07"])
def test_an_empty_message_is_refused(mngr: Mngr, home: Home, text: str) -> None:
    create(mngr, "a", "exec cat >got")
    result = mngr("message", "a", input=text)
    assert result.code == 2
    assert result.err.startswith("mngr: an empty message\nhint: ")
    assert messages(home, mngr, "a") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a", "-m", "x", "--file", "f"], "exclude each other"),
        (["a", "--file", "nowhere"], "cannot read nowhere: No such file or directory"),
        (["-"], "standard input cannot be both"),
        (["-m", "x"], "which agents?"),
    ],
)
def test_words_that_make_no_sense_are_refused(mngr: Mngr, words: list[str], said: str) -> None:
    result = mngr("message", *words)
    assert result.code == 2
    assert said in result.err


def test_a_message_to_nobody_says_so(mngr: Mngr) -> None:
    assert mngr("message", "nobody", "-m", "x").code == 3


def test_a_message_to_a_stopped_agent_is_refused(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    mngr.ok("stop", "a")
    result = mngr("message", "a", "-m", "x")
    assert (result.code, result.out) == (1, "")
    assert result.err == "mngr: a: it is stopped: mngr start it, or message --start\n"


@pytest.mark.parametrize("ending", ["exit 0", "exit 1"])
def test_a_message_to_an_ended_program_is_refused_and_harms_nobody(mngr: Mngr, home: Home, ending: str) -> None:
    create(mngr, "a", ending)
    create(mngr, "b", "exec cat >got")
    mngr.ok("wait", "a", "--for", "done,failed")
    result = mngr("message", "a", "-m", "x")
    assert (result.code, result.out) == (1, "")
    assert result.err == "mngr: a: its program has ended: mngr start it, or message --start\n"
    assert one(mngr, "b")["state"] == "running"


def test_when_some_of_many_refuse_the_others_get_it(mngr: Mngr, home: Home) -> None:
    create(mngr, "dead", "exit 0")
    create(mngr, "live", "exec cat >got")
    create(mngr, "off", "exec cat >got")
    mngr.ok("stop", "off")
    mngr.ok("wait", "dead", "--for", "done")
    result = mngr("message", "--all", "-m", "hello")
    assert (result.code, result.out) == (6, "typed live\n")
    assert [line.split(": ")[1] for line in result.err.splitlines()] == ["dead", "off", "2 of 3 failed"]
    assert_got(home, "hello\n")


def test_outcomes_are_told_as_json(mngr: Mngr) -> None:
    create(mngr, "a", "exec cat >got")
    create(mngr, "b", "exec cat >got")
    mngr.ok("stop", "b")
    result = mngr("message", "a", "b", "-m", "x", "--json")
    assert result.code == 6
    assert [(each["name"], each["did"], each["ok"]) for each in json.loads(result.out)] == [
        ("a", "typed", True),
        ("b", "refused", False),
    ]


# --start


@pytest.mark.parametrize("how", ["stopped", "ended"])
def test_an_agent_that_does_not_run_is_brought_back_for_it(mngr: Mngr, home: Home, how: str) -> None:
    create(mngr, "a", "[ -e again ] || { touch again; [ -e stay ] || exit 0; }; exec cat >got")
    if how == "stopped":
        (home.path / "stay").touch()
        mngr.ok("stop", "a")
    else:
        mngr.ok("wait", "a", "--for", "done")
    (home.path / "again").touch()
    assert mngr.ok("message", "a", "-m", "wake up", "--start") == "typed a\n"
    assert_got(home, "wake up\n")


def test_an_agent_that_cannot_be_brought_back_is_told_and_the_others_get_it(mngr: Mngr, home: Home) -> None:
    create(mngr, "good", "exec cat >got")
    create(mngr, "bad", "exec cat >got")
    mngr.ok("stop", "--all")
    (home.mngr_home / "agents" / one(mngr, "bad")["id"] / "launch").write_text("")
    result = mngr("message", "good", "bad", "-m", "wake up", "--start")
    assert (result.code, result.out) == (6, "typed good\n")
    assert result.err == "mngr: bad: its files are damaged\nmngr: 1 of 2 failed\n"
    assert_got(home, "wake up\n")


# The record


def test_what_was_sent_and_what_became_of_it_is_recorded_for_the_user_alone(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    mngr.ok("message", "a", "-m", 'say "hi"\n\\o/ ü')
    mngr("message", "a", "-m", "x" * 5000)
    mngr.ok("stop", "a")
    mngr("message", "a", "-m", "too late")
    recorded = messages(home, mngr, "a")
    assert [(each["text"], each["outcome"]) for each in recorded] == [
        ('say "hi"\n\\o/ ü', "typed"),
        ("x" * 5000, "toolong"),
        ("too late", "missing"),
    ]
    assert len({each["id"] for each in recorded}) == 3
    file = home.mngr_home / "agents" / one(mngr, "a")["id"] / "messages.jsonl"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_no_text_stays_behind_in_tmux(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec cat >got")
    create(mngr, "b", "exit 0")
    mngr.ok("wait", "b", "--for", "done")
    mngr("message", "a", "b", "-m", "secret")
    mngr("message", "b", "-m", "secret")
    assert home.tmux("list-buffers") == ""


# What these tests speak about

LONG = "".join(f"{number:5} {'long ' * 18}\n" for number in range(1_050))
assert len(LONG) > 100_000


def create(mngr: Mngr, name: str, line: str, *options: str) -> None:
    """An agent that works in the home directory itself, where what it writes is easy to find."""
    mngr.ok("create", name, "command", "--mode", "none", *options, "--", "sh", "-c", line)


def one(mngr: Mngr, name: str) -> dict[str, Any]:
    found: dict[str, Any] = mngr.json("list", name)[0]
    return found


def ready(home: Home) -> None:
    wait_until((home.path / "ready").exists, what="the program to set its terminal")


def read(home: Home, name: str = "got") -> bytes:
    file = home.path / name
    return file.read_bytes() if file.exists() else b""


def assert_got(home: Home, text: str | bytes, name: str = "got") -> None:
    """Exactly this, and in time."""
    expected = text.encode() if isinstance(text, str) else text
    wait_until(lambda: len(read(home, name)) >= len(expected), what=f"{len(expected)} bytes in {name}")
    assert read(home, name) == expected


def messages(home: Home, mngr: Mngr, name: str) -> list[dict[str, Any]]:
    file: Path = home.mngr_home / "agents" / one(mngr, name)["id"] / "messages.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
