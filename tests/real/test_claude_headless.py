"""Claude Code without its terminal interface: the same verbs, the same answers."""

from __future__ import annotations

import pytest

from mngr.dev.model_server import ModelServer
from tests.agents import work_dir
from tests.home import Home, Mngr, wait_until
from tests.real.steps import answers, at_rest, make, state, tell, turns

pytestmark = pytest.mark.usefixtures("repo")
BUSY = "RUN: while [ ! -e go ]; do sleep 0.1; done"
LONG = "\n".join(f"{number:4} {'x' * 94}" for number in range(1000))


def test_messages_arrive_and_their_turns_end(mngr: Mngr, server: ModelServer) -> None:
    texts = ["the same again", "the same again", "first\n\n  third", "-n", "höhe 日本語 🙂", "end\033[201~", LONG]
    make(mngr, "a", "claude", "--headless", "--message", "SAY: here I am")
    assert state(mngr, "a") == "waiting (turn over)"
    for text in texts:
        assert mngr.ok("message", "a", "--file", "-", input=text) == "delivered a\n"
        assert at_rest(mngr, "a") == "waiting (turn over)"
    assert server.texts() == ["SAY: here I am", *texts[:-2], "end[201~", LONG]


def test_a_message_in_the_middle_of_a_turn_is_read_once(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--headless", "--", "--dangerously-skip-permissions")
    mngr.ok("message", "a", "-m", BUSY)
    wait_until(lambda: turns(server))
    assert mngr.ok("message", "a", "-m", "SAY: later").startswith("queued a")
    assert state(mngr, "a") == "running"
    (work_dir(mngr, "a") / "go").touch()
    at_rest(mngr, "a")
    wait_until(lambda: "later" in answers(server))
    assert server.texts() == [BUSY, "SAY: later"]


def test_a_stop_and_a_lost_session_are_followed_by_the_same_conversation(
    mngr: Mngr, home: Home, server: ModelServer
) -> None:
    make(mngr, "a", "claude", "--headless", "--message", "the word is plum")
    mngr.ok("stop", "a")
    mngr.ok("start", "a")
    home.tmux("kill-server")
    mngr.ok("wait", "a", "--for", "stopped", "--timeout", "30")
    mngr.ok("start", "a")
    assert tell(mngr, "a", "RECALL: plum") == "waiting (turn over)"
    assert answers(server)[-1] == "the word is plum"
    assert len({turn["conversation"] for turn in turns(server)}) == 1
