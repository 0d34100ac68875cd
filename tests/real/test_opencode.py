"""OpenCode as an agent. Its start costs seconds and nearly a gigabyte: there are few tests, and each asks for much."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from mngr.dev.model_server import ModelServer
from tests.agents import directory, entries, files, work_dir
from tests.home import Home, Mngr, wait_until
from tests.real.steps import answers, at_rest, becomes, make, press, screen, state, tell, turns
from tests.real_programs import use_opencode

MODEL = "scripted-1"
LONG = "\n".join(f"{number} {'x' * 94}" for number in range(1000))
UNTIL_GO = "while [ ! -e go ]; do sleep 0.1; done"


@pytest.fixture
def home(home: Home, server: ModelServer) -> Home:
    """Of a user who has a model, and OpenCode in use: it has fetched what it fetches at its first start."""
    use_opencode(home.env, home.path, server)
    return home


def call(tool: str, **input: object) -> str:
    return "CALL: " + json.dumps({"name": tool, "input": input})


def fault(**what: object) -> str:
    return "FAULT: " + json.dumps(what)


def is_all_counted(mngr: Mngr, server: ModelServer) -> None:
    """To the token. A title has no place in its log, and so none here."""
    spent = [turn["usage"] for turn in turns(server)]
    used = mngr.json("usage")["total"]
    assert used["messages"] == len(spent)
    for name in ("input", "cache_read", "reasoning"):
        assert used[name] == sum(usage[name] for usage in spent) > 0
    assert used["output"] + used["reasoning"] == sum(usage["output"] for usage in spent)


def test_starts_unattended_and_what_is_sent_arrives_as_it_is(
    mngr: Mngr, home: Home, repo: Path, server: ModelServer
) -> None:
    before = files(home.path / ".config")
    texts = [
        "first of all",
        "the same again",
        "the same again",
        "see\n\n  @src",
        "-n --or so",
        "/etc",
        "it ends in \\",
        "höhe 🙂",
    ]
    make(mngr, "a", "opencode", "--message", texts[0])
    assert state(mngr, "a") == "waiting (turn over)"
    for text in [*texts[1:], LONG]:
        assert mngr.ok("message", "a", "--file", "-", input=text) == "delivered a\n"
        assert at_rest(mngr, "a") == "waiting (turn over)"
    assert [text.rstrip(" ") for text in server.texts()] == [*texts, LONG]
    told = mngr.json("transcript", "a")
    assert [entry["text"].strip() for entry in told if entry["role"] == "user"] == [*texts, LONG]
    assert [entry["text"] for entry in told if entry["role"] == "assistant"] == answers(server)
    assert tell(mngr, "a", "RUN: env | grep -c -E '^(XDG|npm)_'") == "waiting (turn over)"
    assert answers(server)[-1] == "DONE: 0"
    is_all_counted(mngr, server)
    mngr.ok("stop", "a")
    assert files(home.path / ".config") == before
    assert entries(home.path / ".local" / "share" / "opencode" / "opencode.db") == []
    assert entries(home.path / ".local" / "state" / "opencode") == ["locks"]


@pytest.mark.proof
@pytest.mark.usefixtures("repo")
def test_what_it_does_and_what_it_waits_for_without_a_network_too(mngr: Mngr, home: Home, server: ModelServer) -> None:
    def not_now(dialog: str) -> None:
        result = mngr("message", "a", "-m", "SAY: not now")
        assert (result.code, result.out) == (7, "")
        assert f"a dialog is in front of it ({dialog})" in result.err
        assert "not now" not in screen(mngr, "a")

    # Without a network. What it would fetch is asked for here, where nobody is, and not at the wall.
    (home.path / ".config" / "opencode" / "package-lock.json").unlink()
    nobody = ("-e", "npm_config_registry=http://127.0.0.1:9")
    asks = ("-e", 'OPENCODE_PERMISSION={"bash":"ask"}')
    mngr.ok("create", "a", "opencode", *nobody, *asks, "--message", f"RUN: {UNTIL_GO}", timeout=70)
    assert at_rest(mngr, "a") == "waiting (permission: bash)"
    not_now("permission")
    press(mngr, "a", "Enter")
    mngr.ok("wait", "a", "--for", "running", "--timeout", "30")
    assert mngr.ok("message", "a", "-m", "SAY: next").startswith("queued a")
    (work_dir(mngr, "a") / "go").touch()
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert answers(server) == ["next"]
    options = [{"label": label, "description": label} for label in ("red", "blue")]
    question = {"question": "Which colour?", "header": "Colour", "options": options}
    assert tell(mngr, "a", call("question", questions=[question])) == "waiting (question)"
    not_now("question")
    press(mngr, "a", "Enter")
    becomes(mngr, "a", "waiting (turn over)")
    press(mngr, "a", "C-p")
    wait_until(lambda: "Commands" in screen(mngr, "a"))
    not_now("choice")
    press(mngr, "a", "Escape")
    mngr.ok("message", "a", "-m", "PACE: 0.2\nSAY: " + "and " * 100)
    wait_until(lambda: "and and" in screen(mngr, "a"))
    press(mngr, "a", "Escape")
    wait_until(lambda: "esc again to interrupt" in screen(mngr, "a"))
    press(mngr, "a", "Escape")
    assert at_rest(mngr, "a") == "waiting (interrupted)"
    assert tell(mngr, "a", fault(status=400)) == "waiting (api error: the script says 400)"
    mngr.ok("message", "a", "-m", fault(status=429, times=1, retry_after=3) + "\nSAY: at last")
    becomes(mngr, "a", "running (retrying: attempt 1, the script says 429)")
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert answers(server)[-1] == "at last"
    assert "SAY: not now" not in server.texts()


@pytest.mark.proof
@pytest.mark.usefixtures("repo")
def test_its_conversation_goes_on_in_it_and_in_others(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "opencode", "--message", "the word is plum")
    tell(mngr, "a", "the word is pear")
    os.kill(int((directory(mngr, "a") / "pid").read_text().split()[1]), signal.SIGKILL)
    mngr.ok("wait", "a", "--for", "failed", "--timeout", "20")
    mngr.ok("start", "a")
    mngr.ok("clone", "a", "b", timeout=70)
    for name in ("a", "b"):
        assert at_rest(mngr, name) == "waiting (ready)"
        tell(mngr, name, "RECALL: pear")
        assert answers(server)[-1] == "the word is pear"
    tell(mngr, "b", "RUN: pwd; echo mine >own")
    assert (work_dir(mngr, "b") / "own").exists()
    mngr.ok("stop", "b")
    is_all_counted(mngr, server)


@pytest.mark.proof
@pytest.mark.usefixtures("repo")
def test_a_program_of_its_kind_inside_does_not_speak_for_it(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "opencode", "--message", "the word is plum")
    assert tell(mngr, "a", "RUN: opencode run 'SAY: nested' </dev/null") == "waiting (turn over)"
    assert len({turn["conversation"] for turn in turns(server)}) == 2
    tell(mngr, "a", "RECALL: plum")
    assert answers(server)[-1] == "the word is plum"


@pytest.mark.proof
@pytest.mark.usefixtures("repo")
def test_a_snapshot_has_the_conversation_as_it_was(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "opencode", "--message", "the word is plum")
    tell(mngr, "a", "RUN: echo done")
    mngr.ok("snapshot", "create", "a", "early")
    tell(mngr, "a", "the word is pear")
    mngr.ok("snapshot", "restore", "a", "early", timeout=70)
    at_rest(mngr, "a")
    for word, known in (("pear", "I recall nothing"), ("plum", "the word is plum")):
        tell(mngr, "a", f"RECALL: {word}")
        assert answers(server)[-1] == known
    assert "the word is pear" not in mngr.ok("transcript", "a")


@pytest.mark.proof
@pytest.mark.usefixtures("repo")
def test_without_a_terminal(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "opencode", "--headless", "--message", "the word is fig")
    mngr.ok("message", "a", "-m", f"RUN: {UNTIL_GO}")
    assert mngr.ok("message", "a", "-m", "RECALL: fig").startswith("queued a")
    (work_dir(mngr, "a") / "go").touch()
    wait_until(lambda: "the word is fig" in answers(server), deadline=60)
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert tell(mngr, "a", fault(status=400)) == "waiting (api error: the script says 400)"
    mngr.ok("stop", "a")
    mngr.ok("start", "a")
    assert tell(mngr, "a", "-n\nRECALL: fig") == "waiting (turn over)"
    assert answers(server)[-1] == "the word is fig"
    assert "the word is fig" in mngr.ok("transcript", "a")


@pytest.mark.usefixtures("repo")
def test_does_not_start_without_a_model(mngr: Mngr, home: Home) -> None:
    (home.path / ".config" / "opencode" / "opencode.json").write_text("{}")
    result = mngr("create", "a", "opencode", env={"ANTHROPIC_API_KEY": ""})
    assert (result.code, result.out) == (1, "")
    assert "opencode has no credentials" in result.err
    assert entries(home.mngr_home / "agents") == []
