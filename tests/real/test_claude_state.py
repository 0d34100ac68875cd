"""How Claude Code is, as list, wait and explain tell it: at work, in need of somebody, interrupted, in trouble."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from mngr.dev.model_server import ModelServer
from tests.agents import directory, work_dir
from tests.home import Home, Mngr, wait_until
from tests.real.steps import answers, at_rest, becomes, make, press, screen, state, tell, turns

pytestmark = pytest.mark.usefixtures("repo")
FREE = ("--", "--dangerously-skip-permissions")
UNTIL_GO = "while [ ! -e go ]; do sleep 0.1; done"


def call(tool: str, **input: object) -> str:
    return "CALL: " + json.dumps({"name": tool, "input": input})


def fault(**what: object) -> str:
    return "FAULT: " + json.dumps(what)


def limit() -> dict[str, object]:
    """The headers of a 429 for somebody whose plan is used up."""
    told = {"status": "rejected", "reset": end_of_limit(), "representative-claim": "five_hour"}
    return {f"anthropic-ratelimit-unified-{name}": value for name, value in told.items()}


def end_of_limit() -> int:
    """A full hour, since minutes are shown only where there are some."""
    return int(time.time()) // 3600 * 3600 + 2 * 3600


def test_a_permission_is_waited_for_and_nothing_typed_meanwhile(mngr: Mngr, server: ModelServer) -> None:
    mngr.ok("create", "a", "claude", "--message", f"RUN: touch made; {UNTIL_GO}")
    assert at_rest(mngr, "a") == "waiting (permission: Bash)"
    wait_until(lambda: "Do you want to proceed?" in screen(mngr, "a"))
    result = mngr("message", "a", "-m", "SAY: not now")
    assert (result.code, result.out) == (7, "")
    assert "a dialog is in front of it (permission)" in result.err
    explained = mngr.ok("explain", "a")
    assert "a is waiting (permission: Bash)" in explained
    assert "Do you want to proceed?" in explained
    assert not (work_dir(mngr, "a") / "made").exists()
    press(mngr, "a", "Enter")
    mngr.ok("wait", "a", "--for", "running", "--timeout", "30")
    (work_dir(mngr, "a") / "go").touch()
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert "SAY: not now" not in server.texts()


def test_a_permission_that_is_denied_ends_the_turn(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--message", "RUN: touch made")
    wait_until(lambda: "Do you want to proceed?" in screen(mngr, "a"))
    press(mngr, "a", "Escape")
    becomes(mngr, "a", "waiting (turn over)")
    assert tell(mngr, "a", "SAY: then not") == "waiting (turn over)"
    assert answers(server)[-1] == "then not"
    assert not (work_dir(mngr, "a") / "made").exists()


def test_a_question_is_waited_for(mngr: Mngr, server: ModelServer) -> None:
    options = [{"label": label, "description": label} for label in ("red", "blue")]
    question = {"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": options}
    make(mngr, "a", "claude", "--message", call("AskUserQuestion", questions=[question]))
    assert state(mngr, "a") == "waiting (question)"
    wait_until(lambda: "Chat about this" in screen(mngr, "a"))
    assert mngr("message", "a", "-m", "SAY: not now").code == 7
    press(mngr, "a", "Enter")
    becomes(mngr, "a", "waiting (turn over)")
    assert '"Which colour?"="red"' in answers(server)[-1]


def test_interrupted_in_a_tool(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "claude", *FREE)
    mngr.ok("message", "a", "-m", "RUN: sleep 1234")
    wait_until(lambda: "sleep 1234" in home.processes().values())
    press(mngr, "a", "Escape")
    assert at_rest(mngr, "a") == "waiting (interrupted)"
    assert tell(mngr, "a", "SAY: on") == "waiting (turn over)"
    assert answers(server) == ["on"]


def test_interrupted_before_any_answer_and_the_prompt_is_not_written_over(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude")
    mngr.ok("message", "a", "-m", "DELAY: 1000")
    wait_until(lambda: "esc to interrupt" in screen(mngr, "a"))
    press(mngr, "a", "Escape")
    assert at_rest(mngr, "a") == "waiting (interrupted)"
    result = mngr("message", "a", "-m", "SAY: more")
    assert (result.code, result.out) == (1, "")
    assert "its input line holds a text already: 'DELAY: 1000'" in result.err
    press(mngr, "a", "C-u")
    assert tell(mngr, "a", "SAY: more") == "waiting (turn over)"
    assert server.texts() == ["DELAY: 1000", "SAY: more"]


def test_turns_that_end_in_an_error(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", "-e", "CLAUDE_CODE_MAX_RETRIES=1")
    assert tell(mngr, "a", fault(status=400)) == "waiting (api error: API Error: 400 the script says 400)"
    assert "api error: Please run /login" in tell(mngr, "a", fault(status=401))
    assert "api error: API Error: 529" in tell(mngr, "a", fault(status=529))
    assert "api error: API Error: Connection to the API was lost" in tell(mngr, "a", fault(cut=2))
    mngr.ok("message", "a", "-m", fault(status=429, headers=limit()))
    becomes(mngr, "a", "rate limit: API Error: Request rejected (429)")
    assert tell(mngr, "a", "SAY: better") == "waiting (turn over)"
    assert answers(server) == ["better"]


@pytest.mark.parametrize("status", [429, *(pytest.param(status, marks=pytest.mark.proof) for status in (500, 529))])
def test_a_server_that_is_asked_again(mngr: Mngr, server: ModelServer, status: int) -> None:
    text = fault(status=status, times=2, retry_after=4)
    mngr.ok("create", "a", "claude", "--message", text)
    becomes(mngr, "a", "running (retrying: ")
    assert at_rest(mngr, "a") == "waiting (turn over)"
    assert [turn["status"] for turn in turns(server)] == [status, status, 200]
    assert server.texts() == [text]


def test_a_limit_is_waited_out_and_its_end_told(mngr: Mngr) -> None:
    mngr.ok("create", "a", "claude", "--message", fault(status=429, headers=limit()))
    told = at_rest(mngr, "a")
    assert told.startswith("waiting (rate limit: Session limit reached")
    assert time.strftime("(%-I%p)", time.gmtime(end_of_limit())).lower() in told


def test_a_crash_in_the_middle_of_a_turn(mngr: Mngr, home: Home, server: ModelServer) -> None:
    make(mngr, "a", "claude", "--message", "the word is plum", *FREE)
    mngr.ok("message", "a", "-m", "RUN: sleep 1234")
    wait_until(lambda: "sleep 1234" in home.processes().values())
    _, program = (directory(mngr, "a") / "pid").read_text().split()
    os.kill(int(program), signal.SIGKILL)
    mngr.ok("wait", "a", "--for", "failed", "--timeout", "30")
    assert state(mngr, "a") == "failed (exit 137, signal 9)"
    assert mngr("message", "a", "-m", "SAY: nothing").code == 1
    mngr.ok("start", "a")
    at_rest(mngr, "a")
    tell(mngr, "a", "RECALL: plum")
    assert answers(server)[-1] == "the word is plum"


@pytest.mark.proof
def test_a_program_of_its_kind_inside_does_not_speak_for_it(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude", *FREE)
    conversation = directory(mngr, "a") / "conversation"
    before = conversation.read_text()
    mngr.ok("message", "a", "-m", f"RUN: claude -p 'SAY: nested' && touch nested && {UNTIL_GO}")
    wait_until((work_dir(mngr, "a") / "nested").exists, deadline=30)
    assert "nested" in answers(server)
    assert state(mngr, "a") == "running"
    assert conversation.read_text() == before
    (work_dir(mngr, "a") / "go").touch()
    assert at_rest(mngr, "a") == "waiting (turn over)"


def test_a_command_in_the_background_outlives_the_turn(mngr: Mngr) -> None:
    what = call("Bash", command="sleep 1234", description="a server", run_in_background=True)
    make(mngr, "a", "claude", "--message", what, *FREE)
    assert state(mngr, "a") == "waiting (turn over, a background command goes on)"
