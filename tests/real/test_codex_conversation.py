"""Codex's conversation outlives its program: stops, lost sessions, clones and snapshots carry it on; and what it cost
is counted to the token."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.dev.exchange import NO_USAGE
from mngr.dev.model_server import ModelServer
from tests.agents import directory
from tests.home import Home, Mngr
from tests.real.steps import answers, at_rest, make, press, tell, turns

pytestmark = pytest.mark.usefixtures("repo", "codex", "openai")
FREE = ("--", "-s", "danger-full-access", "-a", "never")


def recalls(mngr: Mngr, server: ModelServer, name: str, word: str) -> str:
    """What the model finds about it in what that agent's user said before."""
    tell(mngr, name, f"RECALL: word is {word}")
    return answers(server)[-1]


def counted(mngr: Mngr) -> dict[str, int]:
    """What all agents have spent, as `mngr usage` has it."""
    total = mngr.json("usage")["total"]
    return {kind: total[kind] for kind in NO_USAGE}


def handed_out(server: ModelServer) -> dict[str, int]:
    """What the turns have cost. The program keeps no record of what it asks aside. On the wire, reasoning is a part of
    the output."""
    total = {kind: sum(turn["usage"][kind] for turn in turns(server) if turn["usage"]) for kind in NO_USAGE}
    return {**total, "output": total["output"] - total["reasoning"]}


def log_of(mngr: Mngr, name: str) -> Path:
    return Path((directory(mngr, name) / "conversation").read_text().splitlines()[1])


def test_a_stop_and_a_lost_session_are_followed_by_the_same_conversation(
    mngr: Mngr, home: Home, server: ModelServer
) -> None:
    make(mngr, "a", "codex", "--message", "the word is plum")
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


def test_a_clone_knows_what_was_said_and_goes_its_own_way(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--message", "the word is plum")
    log = log_of(mngr, "a")
    before = log.read_bytes()
    mngr.ok("clone", "a", "b")
    at_rest(mngr, "b")
    assert recalls(mngr, server, "b", "plum") == "the word is plum"
    tell(mngr, "b", "the word is pear")
    now = log.read_bytes()
    assert (now.startswith(before), b"pear" in now) == (True, False)
    assert recalls(mngr, server, "a", "pear") == "I recall nothing"
    assert len({turn["conversation"] for turn in turns(server)}) == 2
    assert counted(mngr) == handed_out(server)


@pytest.mark.proof
def test_a_clone_of_a_fork_has_what_it_goes_on_from(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--message", "the word is plum")
    assert mngr("message", "a", "-m", "/fork").code == 7  # it asks where
    press(mngr, "a", "Enter")
    tell(mngr, "a", "the word is pear")
    mngr.ok("clone", "a", "b")
    at_rest(mngr, "b")
    assert recalls(mngr, server, "b", "plum") == "the word is plum"
    assert recalls(mngr, server, "b", "pear") == "the word is pear"
    assert counted(mngr) == handed_out(server)


@pytest.mark.proof
def test_a_snapshot_has_the_conversation_as_it_was(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--message", "the word is plum")
    mngr.ok("snapshot", "create", "a", "early")
    tell(mngr, "a", "the word is pear")
    make(mngr, "b", "codex", "--from", "a/early")
    assert recalls(mngr, server, "b", "plum") == "the word is plum"
    assert recalls(mngr, server, "b", "pear") == "I recall nothing"
    mngr.ok("snapshot", "restore", "a", "early")
    at_rest(mngr, "a")
    assert recalls(mngr, server, "a", "plum") == "the word is plum"
    assert recalls(mngr, server, "a", "pear") == "I recall nothing"
    assert counted(mngr) == handed_out(server)


def test_what_was_said_and_done_is_in_the_transcript_once(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--message", "RUN: echo from a tool; false", *FREE, "-m", "gpt-5")
    mngr.ok("message", "a", "-m", "!echo from a shell")
    tell(mngr, "a", 'FAULT: {"status": 400}')
    tell(mngr, "a", 'SAY: whole again\nFAULT: {"cut": 1, "times": 1}')
    entries = mngr.json("transcript", "a")
    said = [
        (entry["kind"], entry["role"], entry.get("text", "")) for entry in entries if entry["kind"] != "tool_result"
    ]
    assert said == [
        ("message", "user", "RUN: echo from a tool; false"),
        ("tool_call", "assistant", ""),
        ("message", "assistant", answers(server)[0]),
        ("message", "user", "! echo from a shell"),
        ("notice", "system", "from a shell\n"),
        ("message", "user", 'FAULT: {"status": 400}'),
        ("error", "system", said[6][2]),
        ("message", "user", 'SAY: whole again\nFAULT: {"cut": 1, "times": 1}'),
        ("message", "assistant", "whole again"),
    ]
    assert "the script says 400" in said[6][2]
    (result,) = [entry for entry in entries if entry["kind"] == "tool_result"]
    assert "from a tool" in result["text"]
    assert (result["tool"], result["failed"]) == ("exec_command", True)
    assert {entry["model"] for entry in entries if entry["role"] == "assistant"} == {"gpt-5"}
    assert counted(mngr) == handed_out(server)
