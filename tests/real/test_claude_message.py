"""What is sent to Claude Code arrives whole and once, and is said to have arrived only then; or it is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from mngr.dev.model_server import ModelServer
from tests.agents import work_dir
from tests.home import Mngr, wait_until
from tests.real.steps import answers, at_rest, make, press, screen, state, tell, turns

pytestmark = pytest.mark.usefixtures("repo")
LONG = "\n".join(f"{number:4} {'x' * 94}" for number in range(1000))
BUSY = "RUN: while [ ! -e go ]; do sleep 0.1; done"


def test_the_first_message_is_answered(mngr: Mngr, server: ModelServer) -> None:
    mngr.ok("create", "a", "claude", "--message", "SAY: here I am")
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert server.texts() == ["SAY: here I am"]
    wait_until(lambda: "● here I am" in screen(mngr, "a"))


def test_texts_arrive_as_they_are(mngr: Mngr, server: ModelServer) -> None:
    texts = [
        "the same again",
        "the same again",
        "first\n\n  third line, indented\n",
        "-n --or an option",
        "höhe 日本語 🙂 👨‍👩‍👧 ½",
        "'; $(touch x) `touch x` \\ #{pane_id} %s",
        "the end is a backslash \\",
        "is there a @READ",
        LONG,
    ]
    make(mngr, "a", "claude")
    for text in texts:
        assert mngr.ok("message", "a", "--file", "-", input=text) == "delivered a\n"
        at_rest(mngr, "a")
    assert server.texts() == [text.rstrip("\n") for text in texts]


def test_a_text_cannot_leave_its_paste_and_accents_may_be_composed(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude")
    for text in ("end\033[201~\r!touch x\r", "e\u0301"):
        assert mngr.ok("message", "a", "-m", text) == "delivered a\n"
        at_rest(mngr, "a")
    assert server.texts() == ["end[201~\n!touch x", "\u00e9"]
    assert not (work_dir(mngr, "a") / "x").exists()


@pytest.mark.proof
def test_commands_of_the_program(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--message", "the word is plum")
    assert mngr.ok("message", "a", "-m", "!echo from a shell") == "delivered a\n"
    at_rest(mngr, "a")
    assert "<bash-stdout>from a shell" in server.texts()[-1]
    assert mngr.ok("message", "a", "-m", "/clear") == "delivered a\n"
    tell(mngr, "a", "RECALL: plum")
    assert answers(server)[-1] == "I recall nothing"
    unknown = mngr("message", "a", "-m", "/nonsense")
    assert (unknown.code, unknown.out) == (1, "")
    assert "it knows no command /nonsense" in unknown.err
    dialog = mngr("message", "a", "-m", "/model")
    assert dialog.code == 7
    assert "a dialog is in front of it now" in dialog.err
    refused = mngr("message", "a", "-m", "SAY: not now")
    assert refused.code == 7
    press(mngr, "a", "Escape")
    wait_until(lambda: "Esc to cancel" not in screen(mngr, "a"))
    tell(mngr, "a", "SAY: now")
    assert answers(server)[-1] == "now"
    assert "SAY: not now" not in server.texts()


def test_many_senders_at_once(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--", "--dangerously-skip-permissions")
    mngr.ok("message", "a", "-m", BUSY)
    wait_until(lambda: turns(server))
    texts = [f"message {number}" for number in range(10)]
    with ThreadPoolExecutor(len(texts)) as pool:
        told = list(pool.map(lambda text: mngr.ok("message", "a", "-m", text, timeout=120), texts))
    assert {line.split()[0] for line in told} == {"queued"}
    (work_dir(mngr, "a") / "go").touch()
    wait_until(lambda: len(server.texts()) > len(texts), deadline=30)
    at_rest(mngr, "a")
    assert sorted(server.texts()[1:]) == texts


def test_a_message_in_the_middle_of_a_turn_is_queued_and_read_once(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--", "--dangerously-skip-permissions")
    mngr.ok("message", "a", "-m", BUSY)
    wait_until(lambda: turns(server))
    assert mngr.ok("message", "a", "-m", "SAY: later").startswith("queued a")
    assert state(mngr, "a") == "running"
    (work_dir(mngr, "a") / "go").touch()
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert server.texts() == [BUSY, "SAY: later"]


def test_an_agent_with_queued_messages_has_not_come_to_rest_at_the_end_of_a_turn(
    mngr: Mngr, server: ModelServer
) -> None:
    make(mngr, "a", "claude")
    for texts in (["one"], ["two", "three"]):
        mngr.ok("message", "a", "-m", "PACE: 2\nsome words to be slow with")
        for text in texts:
            assert mngr.ok("message", "a", "-m", text).startswith("queued a")
        assert at_rest(mngr, "a") == "waiting (turn over)"
        assert answers(server)[-1].endswith(f"You said: {texts[-1]}")
