"""How Codex is, as list, wait and explain tell it: at work, in need of somebody, interrupted, in trouble."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from mngr.agents.codex import CODEX
from mngr.agents.screen import rules
from mngr.dev.model_server import ModelServer
from tests.agents import agent, directory, work_dir
from tests.home import Home, Mngr, wait_until
from tests.real.steps import answers, at_rest, becomes, make, press, screen, state, tell, turns

pytestmark = pytest.mark.usefixtures("repo", "codex", "openai")
FREE = ("--", "-s", "danger-full-access", "-a", "never")
AT_ONCE = tuple(word for key in ("request", "stream") for word in ("-c", f"model_providers.mngr.{key}_max_retries=0"))
UNTIL_GO = "while [ ! -e go ]; do sleep 0.1; done"


def call(tool: str, **input: object) -> str:
    return "CALL: " + json.dumps({"name": tool, "input": input})


def fault(**what: object) -> str:
    return "FAULT: " + json.dumps(what)


def outside_the_sandbox(command: str) -> str:
    return call("exec_command", cmd=command, sandbox_permissions="require_escalated", justification="scripted")


def test_a_permission_is_waited_for_and_nothing_typed_meanwhile(mngr: Mngr, home: Home, server: ModelServer) -> None:
    mngr.ok("create", "a", "codex", "--message", outside_the_sandbox(f"touch made; {UNTIL_GO}"), "--", "-m", "gpt-5")
    assert at_rest(mngr, "a") == "waiting (permission: Bash)"
    made, go = (work_dir(mngr, "a") / name for name in ("made", "go"))
    result = mngr("message", "a", "-m", "SAY: not now")
    assert (result.code, result.out) == (7, "")
    assert "a dialog is in front of it (permission)" in result.err
    assert "Would you like to run the following command?" in mngr.ok("explain", "a")
    assert not made.exists()
    asks = rules(CODEX.rules).guard  # by which tmux would hold back an Enter of ours
    assert home.tmux("display", "-p", "-t", f"={agent(mngr, 'a')['id']}:", asks).strip() == "1"
    press(mngr, "a", "y")
    mngr.ok("wait", "a", "--for", "running", "--timeout", "30")
    wait_until(made.exists)
    go.touch()
    assert at_rest(mngr, "a") == "waiting (turn over)"
    mngr.ok("message", "a", "-m", outside_the_sandbox("touch more"))
    assert at_rest(mngr, "a") == "waiting (permission: Bash)"
    press(mngr, "a", "Escape")
    becomes(mngr, "a", "waiting (interrupted)")
    assert not (work_dir(mngr, "a") / "more").exists()
    assert "SAY: not now" not in server.texts()


def test_a_question_is_waited_for(mngr: Mngr, server: ModelServer) -> None:
    options = [{"label": label, "description": label} for label in ("red", "blue")]
    question = {"id": "colour", "header": "Colour", "question": "Which colour?", "options": options}
    make(mngr, "a", "codex")
    mngr.ok("message", "a", "-m", "/plan")
    mngr.ok("message", "a", "-m", call("request_user_input", questions=[question]))
    assert at_rest(mngr, "a") == "waiting (question)"
    assert mngr("message", "a", "-m", "SAY: not now").code == 7
    press(mngr, "a", "Enter")
    wait_until(lambda: answers(server))
    becomes(mngr, "a", "waiting (turn over)")
    assert "red" in answers(server)[-1]


def test_interrupted_in_a_tool_and_while_it_writes(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "codex", *FREE)
    mngr.ok("message", "a", "-m", "RUN: sleep 1234")
    wait_until(lambda: "sleep 1234" in home.processes().values())
    press(mngr, "a", "Escape")
    assert at_rest(mngr, "a") == "waiting (interrupted)"
    mngr.ok("message", "a", "-m", "SAY: one two three four\nPACE: 100")
    wait_until(lambda: "one" in screen(mngr, "a"))
    press(mngr, "a", "Escape")
    assert at_rest(mngr, "a") == "waiting (interrupted)"
    assert tell(mngr, "a", "SAY: on") == "waiting (turn over)"
    assert answers(server)[-1] == "on"


def test_turns_that_end_in_an_error(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--", *AT_ONCE)
    assert tell(mngr, "a", fault(status=400)) == "waiting (api error: the script says 400)"
    assert "api error: unexpected status 401 Unauthorized" in tell(mngr, "a", fault(status=401))
    assert "api error: We" in tell(mngr, "a", fault(status=500))
    assert "api error: stream disconnected" in tell(mngr, "a", fault(cut=2))
    limited = "waiting (rate limit: exceeded retry limit, last status: 429 Too Many Requests)"
    assert tell(mngr, "a", fault(status=429)) == limited
    assert tell(mngr, "a", "SAY: better") == "waiting (turn over)"
    assert answers(server) == ["better"]


@pytest.mark.parametrize("status", [pytest.param(429, marks=pytest.mark.proof), 500])
def test_a_server_that_is_asked_again(mngr: Mngr, server: ModelServer, status: int) -> None:
    text = fault(status=status, times=2, retry_after=4)
    mngr.ok("create", "a", "codex", "--message", text, "--", "-c", "model_providers.mngr.request_max_retries=0")
    becomes(mngr, "a", "running (retrying: ")
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert [turn["status"] for turn in turns(server)] == [status, status, 200]
    assert server.texts() == [text]


def test_a_crash_in_the_middle_of_a_turn(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--message", "the word is plum", *FREE)
    mngr.ok("message", "a", "-m", "RUN: sleep 1234")
    wait_until(lambda: "sleep 1234" in home.processes().values())
    _, program = (directory(mngr, "a") / "pid").read_text().split()
    for native in [int(program), *children(int(program))]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(native, signal.SIGKILL)
    mngr.ok("wait", "a", "--for", "failed", "--timeout", "30")
    assert mngr("message", "a", "-m", "SAY: nothing").code == 1
    mngr.ok("start", "a")
    at_rest(mngr, "a")
    tell(mngr, "a", "RECALL: plum")
    assert answers(server)[-1] == "the word is plum"


def children(pid: int) -> list[int]:
    """The program may be the child of a wrapper."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_program_of_its_kind_inside_does_not_speak_for_it(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex", "--message", "SAY: first", *FREE, "-m", "gpt-5")
    conversation = directory(mngr, "a") / "conversation"
    before = conversation.read_text()
    nested = f"codex exec 'SAY: nested' </dev/null && touch nested && {UNTIL_GO}"
    mngr.ok("message", "a", "-m", call("exec_command", cmd=nested, login=False))
    wait_until((work_dir(mngr, "a") / "nested").exists, deadline=30)
    assert "nested" in answers(server)
    assert state(mngr, "a") == "running"
    assert conversation.read_text() == before
    (work_dir(mngr, "a") / "go").touch()
    assert at_rest(mngr, "a") == "waiting (turn over)"
