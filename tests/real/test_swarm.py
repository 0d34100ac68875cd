"""`mngr swarm run` with Claude Code, on tests of the sample project. What the model answers is scripted, as by somebody
who keeps to the prompt; what comes of it is Claude Code's to do, or to refuse."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Generator
from inspect import GEN_CREATED, getgeneratorstate

from mngr.dev.exchange import Call, Turn
from mngr.dev.model_server import ModelServer
from mngr.dev.script import Plan, Script
from tests.agents import commit
from tests.home import Home, Mngr
from tests.real.steps import turns
from tests.real_programs import TOP

FIXED = "tests/test_finding.py::test_tags_ignore_case"
FINE = "tests/test_finding.py::test_tags_are_shown"
LIMITED = "tests/test_books.py::test_add_needs_a_title"
LIMIT = {"status": 429, "message": "This request would exceed your rate limit. Please try again in 2s."}
OPTIONS = "--type claude --permissions allowlist --max-load 100 --timeout 90s -e CLAUDE_CODE_MAX_RETRIES=1".split()
Steps = Generator[Plan, str, None]  # each step is told what the last tool said


class Model(Script):
    """Takes the steps for the test that its prompt names."""

    def __init__(self, steps: dict[str, Steps]) -> None:
        super().__init__()
        self._steps = steps

    def plan(self, turn: Turn) -> Plan:
        if turn.is_aside:
            return super().plan(turn)
        steps = self._steps[_test(turn.said[0])]
        return next(steps) if getgeneratorstate(steps) == GEN_CREATED else steps.send(turn.result or "")


def _test(prompt: str) -> str:
    return prompt.splitlines()[2].strip()


def sh(line: str) -> Plan:
    return Plan(call=Call("Bash", {"command": line, "description": "scripted"}))


def tool(name: str, **input: str) -> Plan:
    return Plan(call=Call(name, input))


def look_at(test: str) -> Plan:
    return sh(f"timeout 120 python3 -m pytest {test} 2>&1 | tail -n 30")


def hand_in(test: str, before: bool, changes: list[dict[str, str]]) -> Steps:
    """In the prompt's own way."""
    result = {"test": test, "passed_before": before, "passed_after": True, "changes": changes, "escalations": []}
    text = json.dumps({**result, "blocked": None, "summary": 'It\'s "done".'})
    path = (yield sh("printenv MNGR_RESULT")).strip()
    yield tool("Write", file_path=f"{path}.draft", content=text)
    yield sh(f"mv {path}.draft {path}")
    yield Plan(say="That is all.")


def fix() -> Steps:
    yield look_at(FIXED)
    top = (yield sh("git rev-parse --show-toplevel")).strip()
    yield tool("Read", file_path=f"{top}/shelf/tags.py")
    yield tool("Edit", file_path=f"{top}/shelf/tags.py", old_string='("#")', new_string='("#").lower()')
    yield look_at(FIXED)
    yield sh("git add -A && git commit -m 'Keep tags in lower case' -m 'Kind: implementation'")
    commit = (yield sh("git rev-parse HEAD")).strip()
    change = {"kind": "implementation", "commit": commit, "summary": "lower case", "importance": "medium"}
    yield from hand_in(FIXED, False, [change])


def leave_alone(refused: list[str]) -> Steps:
    """And try something that is on no list, in between."""
    yield look_at(FINE)
    refused.append((yield sh("pip install something")))
    yield from hand_in(FINE, True, [])


def meet_a_limit() -> Steps:
    yield Plan(fault=LIMIT)
    yield Plan(fault=LIMIT)  # it tries again by itself, once
    yield look_at(LIMITED)
    yield from hand_in(LIMITED, True, [])


def test_tests_of_the_sample(mngr: Mngr, home: Home, server: ModelServer) -> None:
    """One is mended, one is fine, one runs into a limit and goes on behind it; nobody is asked for anything."""
    home.cwd = home.root / "shelf"
    shutil.copytree(TOP / "demo" / "sample", home.cwd, ignore=shutil.ignore_patterns("__pycache__"))
    home.run("git", "init", "-q")
    base = commit(home, home.cwd, "First commit")
    refused: list[str] = []
    server.script = Model({FIXED: fix(), FINE: leave_alone(refused), LIMITED: meet_a_limit()})
    told = mngr.json("swarm", "run", FIXED, FINE, LIMITED, *OPTIONS, timeout=150)
    tasks = {task["title"]: task for task in told["tasks"]}
    assert {title: task["outcome"] for title, task in tasks.items()} == {
        FIXED: "fixed",
        FINE: "unchanged",
        LIMITED: "unchanged",
    }

    branch = tasks[FIXED]["branch"]
    made = home.run("git", "log", "--format=%s; %(trailers)", f"{base}..{branch}")
    assert made.split("\n")[0] == "Keep tags in lower case; Kind: implementation"
    assert '("#").lower()' in home.run("git", "show", f"{branch}:shelf/tags.py")
    shown = mngr.json("swarm", "show", "r1", FIXED)
    assert shown["check"]["before"] == {"claim": False, "check": "failed"}
    assert shown["check"]["after"] == {"claim": True, "check": "passed"}
    assert (shown["notes"], shown["evidence"]["uncommitted"]) == ([], 0)

    handed_out: Counter[str] = Counter()
    for turn in turns(server):
        usage = turn["usage"] or {}
        fresh = sum(usage.get(kind, 0) for kind in ("input", "output", "cache_write_5m", "cache_write_1h"))
        handed_out[turn["conversation"]] += fresh
    assert sorted(task["spend"]["tokens"] for task in tasks.values()) == sorted(handed_out.values())

    assert tasks[LIMITED]["throttled"] > 0
    assert [tasks[test]["throttled"] for test in (FIXED, FINE)] == [0, 0]
    assert "denied" in refused[0]
    for task in tasks.values():
        place = home.mngr_home / "runs" / "r1" / "tasks" / task["agent"]
        said = [json.loads(line) for line in (place / "transcript.jsonl").read_text().splitlines()]
        assert "and it is yours alone" in said[0]["text"]
        assert said[-1]["text"] == "That is all."
        assert "permission" not in (place / "events.jsonl").read_text()
