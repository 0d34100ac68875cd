"""What is sent to Codex arrives whole and once, and is said to have arrived only then; or it is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from mngr.dev.model_server import ModelServer
from tests.agents import work_dir
from tests.home import Mngr, wait_until
from tests.real.steps import answers, at_rest, make, press, screen, state, tell

pytestmark = pytest.mark.usefixtures("repo", "codex", "openai")
LONG = "\n".join(f"{number:04} {'x' * 94}" for number in range(1000))  # the blanks around a text are lost
FREE = ("--", "-s", "danger-full-access", "-a", "never")
BUSY = "RUN: while [ ! -e go ]; do sleep 0.1; done"


def test_texts_arrive_as_they_are(mngr: Mngr, server: ModelServer) -> None:
    texts = [
        "SAY: here I am",
        "the same again",
        "the same again",
        "first\n\n  third line, indented\n",
        "-n --or an option",
        "höhe 日本語 🙂 👨‍👩‍👧 ½",
        "'; $(touch x) `touch x` \\ #{pane_id} %s",
        "what about $HOME",
        "/etc/hosts is no command",
        "end\033[201~\r!touch x\r",
        LONG,
    ]
    mngr.ok("create", "a", "codex", "--message", texts[0])
    for text in texts[1:]:
        assert mngr.ok("message", "a", "--file", "-", input=text) == "delivered a\n"
        assert at_rest(mngr, "a") == "waiting (turn over)"
    texts[9] = "end[201~\n!touch x"
    assert server.texts() == [text.rstrip("\n") for text in texts]
    assert not (work_dir(mngr, "a") / "x").exists()


@pytest.mark.proof
def test_commands_of_the_program(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--message", "the word is plum")
    assert mngr.ok("message", "a", "-m", "!echo from a shell; touch made") == "delivered a\n"
    assert (work_dir(mngr, "a") / "made").exists()
    assert mngr.ok("message", "a", "-m", "/status").startswith("typed a: ")
    unknown = mngr("message", "a", "-m", "/nonsense of\n\ntwo lines")
    assert (unknown.code, unknown.out, unknown.err) == (1, "", "mngr: a: it knows no command /nonsense\n")
    assert tell(mngr, "a", "SAY: nothing before this") == "waiting (turn over)"
    assert server.texts() == ["the word is plum", "SAY: nothing before this"]
    choice = mngr("message", "a", "-m", "/model")
    assert (choice.code, choice.out) == (7, "")
    assert "a dialog is in front of it now (choice)" in choice.err
    assert state(mngr, "a") == "waiting (dialog: choice)"
    assert mngr("message", "a", "-m", "SAY: not now").code == 7
    press(mngr, "a", "Escape")
    assert tell(mngr, "a", "SAY: now") == "waiting (turn over)"
    assert server.texts()[-1] == "SAY: now"


def test_what_somebody_has_typed_is_not_written_over(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex")
    press(mngr, "a", "half a thou")
    wait_until(lambda: "half a thou" in screen(mngr, "a"))  # before, there is nothing that one could see
    result = mngr("message", "a", "-m", "SAY: no")
    assert (result.code, result.out) == (1, "")
    assert "its input line holds a text already: 'half a thou'" in result.err
    press(mngr, "a", "ght")
    wait_until(lambda: "half a thought" in screen(mngr, "a"))
    press(mngr, "a", "Enter")
    wait_until(lambda: server.texts() == ["half a thought"])


@pytest.mark.proof
def test_ten_senders_at_once(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex")
    texts = [f"message number {number}" for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        results = list(pool.map(lambda text: mngr("message", "a", "-m", text, timeout=120), texts))
    assert [result.code for result in results] == [0] * 10
    at_rest(mngr, "a")
    assert sorted(server.texts()) == texts


def test_a_message_while_a_tool_runs_is_queued(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", *FREE, "-m", "gpt-5")
    mngr.ok("message", "a", "-m", BUSY)
    wait_until(lambda: "esc to interrupt" in screen(mngr, "a"))
    assert mngr.ok("message", "a", "-m", "SAY: later\nin two lines").startswith("queued a")
    assert state(mngr, "a") == "running"
    assert server.texts() == [BUSY]
    (work_dir(mngr, "a") / "go").touch()
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert server.texts() == [BUSY, "SAY: later\nin two lines"]
    assert answers(server) == ["later"]


def test_a_message_while_it_writes_is_taken_up_at_once(mngr: Mngr, server: ModelServer) -> None:
    slow = "SAY: one two three four five six\nPACE: 100"
    mngr.ok("create", "a", "codex", "--message", slow)
    assert state(mngr, "a") == "running"
    assert mngr.ok("message", "a", "-m", "SAY: quick") == "delivered a\n"
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert answers(server)[-1] == "quick"
    assert sorted(server.texts()) == [slow, "SAY: quick"]
