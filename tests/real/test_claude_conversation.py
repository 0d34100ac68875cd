"""Claude Code's conversation outlives its program: stops, lost sessions, clones and snapshots carry it on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.dev.exchange import NO_USAGE
from mngr.dev.model_server import ModelServer
from tests.agents import directory
from tests.home import Home, Mngr
from tests.real.steps import answers, at_rest, make, tell, turns

pytestmark = pytest.mark.usefixtures("repo")


def log_of(mngr: Mngr, name: str) -> Path:
    return Path((directory(mngr, name) / "conversation").read_text().splitlines()[1])


def recalls(mngr: Mngr, server: ModelServer, name: str, word: str) -> str:
    """What the model finds about it in what that agent's user said before."""
    tell(mngr, name, f"RECALL: word is {word}")
    return answers(server)[-1]


def counted(mngr: Mngr) -> dict[str, int]:
    """What all agents have spent, as `mngr usage` has it."""
    total = mngr.json("usage")["total"]
    return {kind: total[kind] for kind in NO_USAGE}


def handed_out(server: ModelServer) -> dict[str, int]:
    """What the turns have cost. The program keeps no record of what it asks aside."""
    return {kind: sum(turn["usage"][kind] for turn in turns(server)) for kind in NO_USAGE}


def test_a_stop_and_a_lost_session_are_followed_by_the_same_conversation(
    mngr: Mngr, home: Home, server: ModelServer
) -> None:
    make(mngr, "a", "claude", "--message", "the word is plum")
    mngr.ok("stop", "a")
    mngr.ok("start", "a")
    at_rest(mngr, "a")
    assert recalls(mngr, server, "a", "plum") == "the word is plum"
    home.tmux("kill-server")
    mngr.ok("wait", "a", "--for", "stopped", "--timeout", "30")
    mngr.ok("message", "a", "--start", "-m", "the word is pear", timeout=70)
    at_rest(mngr, "a")
    assert recalls(mngr, server, "a", "plum") == "the word is plum"
    assert recalls(mngr, server, "a", "pear") == "the word is pear"
    assert len({turn["conversation"] for turn in turns(server)}) == 1
    assert counted(mngr) == handed_out(server)


@pytest.mark.proof
def test_a_clone_knows_what_was_said_and_goes_its_own_way(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--message", "the word is plum")
    log = log_of(mngr, "a")
    before = log.read_bytes()
    mngr.ok("clone", "a", "b")
    at_rest(mngr, "b")
    assert recalls(mngr, server, "b", "plum") == "the word is plum"
    tell(mngr, "b", "the word is pear")
    assert log.read_bytes().startswith(before)
    assert b"pear" not in log.read_bytes()
    assert recalls(mngr, server, "a", "pear") == "I recall nothing"
    assert len({turn["conversation"] for turn in turns(server)}) == 2
    assert counted(mngr) == handed_out(server)


def test_a_snapshot_has_the_conversation_as_it_was(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--message", "the word is plum")
    mngr.ok("snapshot", "create", "a", "early")
    tell(mngr, "a", "the word is pear")
    make(mngr, "b", "claude", "--from", "a/early")
    assert recalls(mngr, server, "b", "plum") == "the word is plum"
    assert recalls(mngr, server, "b", "pear") == "I recall nothing"
    mngr.ok("snapshot", "restore", "a", "early")
    at_rest(mngr, "a")
    assert recalls(mngr, server, "a", "plum") == "the word is plum"
    assert recalls(mngr, server, "a", "pear") == "I recall nothing"
    assert counted(mngr) == handed_out(server)


def test_when_a_turn_is_over_its_last_words_can_be_read(mngr: Mngr) -> None:
    """Though the program writes them down a moment later than it says so."""
    make(mngr, "a", "claude")
    for text in ("one", "two", "two", "three"):
        tell(mngr, "a", text)
        assert mngr.json("transcript", "a", "--role", "assistant")[-1]["text"].endswith(f"You said: {text}")
