"""`mngr integrate` with Claude Code as the integrator of one conflict. What the model answers is scripted, as by
somebody who keeps to the prompt; what comes of it is Claude Code's to do, or to refuse."""

from __future__ import annotations

import json
from collections.abc import Generator
from inspect import GEN_CREATED, getgeneratorstate
from pathlib import Path

from mngr.dev.exchange import Call, Turn
from mngr.dev.model_server import ModelServer
from mngr.dev.script import Plan, Script
from tests.clashes import Clash
from tests.home import Home, Mngr

BASE = "def limits():\n    return [1]\n"
LEFT, RIGHT, BOTH = (BASE.replace("[1]", limits) for limits in ("[1, 2]", "[0, 1]", "[0, 1, 2]"))
TEST = "from app import limits\n\n\ndef test_{name}():\n    assert {limit} in limits()\n"
Steps = Generator[Plan, str, None]  # each step is told what the last tool said


class Model(Script):
    """Takes these steps, whatever it is asked."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.prompts: list[str] = []
        self._steps = steps

    def plan(self, turn: Turn) -> Plan:
        if turn.is_aside:
            return super().plan(turn)
        self.prompts = turn.said
        begins = getgeneratorstate(self._steps) == GEN_CREATED
        return next(self._steps) if begins else self._steps.send(turn.result or "")


def sh(line: str) -> Plan:
    return Plan(call=Call("Bash", {"command": line, "description": "scripted"}))


def tool(name: str, **input: str) -> Plan:
    return Plan(call=Call(name, input))


def solve(said: list[str]) -> Steps:
    """In the prompt's own way."""
    said.append((yield sh("git status --short")))
    top = (yield sh("git rev-parse --show-toplevel")).strip()
    said.append((yield tool("Read", file_path=f"{top}/app.py")))
    yield tool("Write", file_path=f"{top}/app.py", content=BOTH)
    said.append((yield sh("python3 -m pytest -q -p no:cacheprovider tests/test_left.py tests/test_right.py")))
    yield sh("git add app.py")
    yield sh("git commit --no-edit")
    path = (yield sh("printenv MNGR_RESULT")).strip()
    yield tool("Write", file_path=f"{path}.draft", content=json.dumps({"resolved": True, "why": "All three limits."}))
    yield sh(f"mv {path}.draft {path}")
    yield Plan(say="That is all.")


def test_a_conflict_is_solved(mngr: Mngr, home: Home, server: ModelServer) -> None:
    """It looks, edits, runs both tests, commits and hands in a result; nobody is asked for anything."""
    clash = Clash(
        home.root,
        {"app.py": BASE, "conftest.py": ""},
        left={"app.py": LEFT, "tests/test_left.py": TEST.format(name="left", limit=2)},
        right={"app.py": RIGHT, "tests/test_right.py": TEST.format(name="right", limit=0)},
    )
    said: list[str] = []
    server.script = model = Model(solve(said))
    home.cwd = clash.history.top
    words = ["integrate", "left", "right", "--base", "main", "--into", "review", "--type", "claude"]
    told = mngr.json(*words, "--pytest", "python3 -m pytest", "-e", "CLAUDE_CODE_MAX_RETRIES=1", timeout=150)

    assert (told["left"], told["aside"], told["verified"]) == ([], [], True)
    assert home.run("git", "show", "review:app.py") == BOTH
    status, shown, ran = said
    assert "UU app.py" in status
    assert "return [1, 2]" in shown
    assert ">>>>>>>" in shown
    assert "2 passed" in ran
    assert "a cherry-pick of the other one is in progress" in model.prompts[0]
    assert mngr.json("list") == []
    (place,) = Path(told["directory"]).glob("agents/*/")
    entries = [json.loads(line) for line in (place / "transcript.jsonl").read_text().splitlines()]
    assert entries[-1]["text"] == "That is all."
    assert "permission" not in (place / "events.jsonl").read_text()
