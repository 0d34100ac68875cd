"""Codex without its terminal interface, a process for each turn: the same verbs, the same answers."""

from __future__ import annotations

import pytest

from mngr.dev.model_server import ModelServer
from tests.agents import work_dir
from tests.home import Home, Mngr, wait_until
from tests.real.steps import answers, at_rest, make, state, tell, turns

pytestmark = pytest.mark.usefixtures("repo", "codex", "openai")
FREE = ("--", "-s", "danger-full-access", "-a", "never")
BUSY = "RUN: while [ ! -e go ]; do sleep 0.1; done"
LONG = "\n".join(f"{number:4} {'x' * 94}" for number in range(1000))


def test_messages_arrive_and_their_turns_end(mngr: Mngr, server: ModelServer) -> None:
    texts = ["the same again", "the same again", "first\n\n  third", "-n", "höhe 日本語 🙂", "/status", "!ls", LONG]
    make(mngr, "a", "codex", "--headless", "--message", "SAY: here I am")
    assert state(mngr, "a") == "waiting (turn over)"
    for text in texts:
        assert mngr.ok("message", "a", "--file", "-", input=text) == "delivered a\n"
        assert at_rest(mngr, "a") == "waiting (turn over)"
    assert server.texts() == ["SAY: here I am", *texts]
    assert len({turn["conversation"] for turn in turns(server)}) == 1


def test_messages_in_the_middle_of_a_turn_wait_for_its_end(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--headless", *FREE, "-m", "gpt-5")
    mngr.ok("message", "a", "-m", BUSY)
    wait_until(lambda: turns(server))
    for text in ("SAY: later", LONG, "SAY: last"):
        assert mngr.ok("message", "a", "--file", "-", input=text).startswith("queued a")
    assert state(mngr, "a") == "running"
    (work_dir(mngr, "a") / "go").touch()
    wait_until(lambda: "last" in answers(server), deadline=30)
    at_rest(mngr, "a")
    assert server.texts() == [BUSY, "SAY: later", LONG, "SAY: last"]


def test_what_waits_outlives_a_stop(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--headless", "--message", "the word is plum", *FREE, "-m", "gpt-5")
    mngr.ok("message", "a", "-m", "RUN: sleep 1234")
    wait_until(lambda: "sleep 1234" in home.processes().values(), deadline=30)
    assert mngr.ok("message", "a", "-m", "RECALL: plum").startswith("queued a")
    mngr.ok("stop", "a")
    assert [line for line in home.processes().values() if "tmux" not in line] == []
    mngr.ok("start", "a")
    wait_until(lambda: "the word is plum" in answers(server), deadline=30)
    home.tmux("kill-server")
    mngr.ok("wait", "a", "--for", "stopped", "--timeout", "30")
    mngr.ok("start", "a")
    assert tell(mngr, "a", "SAY: still here") == "waiting (turn over)"
    assert len({turn["conversation"] for turn in turns(server)}) == 1
    assert answers(server)[-2:] == ["the word is plum", "still here"]


def test_turns_that_fail(mngr: Mngr, server: ModelServer) -> None:
    retries = [f"model_providers.mngr.{key}_max_retries=0" for key in ("request", "stream")]
    make(mngr, "a", "codex", "--headless", "--", "-c", retries[0], "-c", retries[1])
    assert tell(mngr, "a", 'FAULT: {"status": 400}') == "waiting (api error: the script says 400)"
    limited = "waiting (rate limit: exceeded retry limit, last status: 429 Too Many Requests)"
    assert tell(mngr, "a", 'FAULT: {"status": 429}') == limited
    assert tell(mngr, "a", "SAY: better") == "waiting (turn over)"
    make(mngr, "b", "codex", "--headless", "--", "--no-such-option")
    assert tell(mngr, "b", "SAY: hello") == "waiting (turn failed: exit 2)"
    mngr.ok("clone", "a", "c")
    assert tell(mngr, "c", "RECALL: better") == "waiting (turn over)"
    assert answers(server)[-1] == "SAY: better"
