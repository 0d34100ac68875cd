"""`mngr tutorial sync` and `fill` with Claude Code: the prompt reaches it as a message, and what it does with its tools
is what comes back. What the model answers is scripted."""

from __future__ import annotations

import json
from pathlib import Path

from mngr.dev.model_server import ModelServer
from mngr.dev.script import Script
from tests.agents import agent, commit, files
from tests.home import Home, Mngr
from tests.real.steps import answers

ALLOWED = ("--", "--dangerously-skip-permissions")
TUTORIAL = """\
# Greeting
# ========

# say hello
echo hello

# say goodbye
"""
TEST = 'def test_hello(e2e):\n    e2e.write_tutorial_block("# say hello\\necho hello")\n'


def test_sync_sends_claude_and_takes_its_branch(mngr: Mngr, home: Home, repo: Path, server: ModelServer) -> None:
    (repo / "tutorial.sh").write_text(TUTORIAL)
    (repo / "tests").mkdir()
    (repo / "tests" / "test_other.py").write_text("")
    commit(home, repo, "A tutorial")
    (home.path / "test_hello.py").write_text(TEST)
    write = f"cp {home.path}/test_hello.py tests/ && git add -A && git commit -q -m 'Prove it'"
    server.script = Script([{"when": "uncited: `tutorial.sh`, line 4, section Greeting", "run": write, "times": 1}])
    before = files(repo)
    words = ("tutorial", "sync", "tutorial.sh", "tests", "--type", "claude", "--timeout", "60")
    result = mngr(*words, *ALLOWED, timeout=90)
    assert result.code == 0, result
    (name,) = [line.split()[0] for line in result.out.splitlines() if line.startswith("sync-")]
    assert f"waiting (turn over)  in sync  mngr/{name}" in result.out
    assert files(repo) == before
    (asked,) = [text for text in server.texts() if "Bring the end-to-end tests" in text]
    assert mngr.ok("tutorial", "sync", "tutorial.sh", "tests", "--print-prompt").strip() == asked.strip()
    mngr.ok("pull", name, "--merge")
    assert (repo / "tests" / "test_hello.py").read_text() == TEST


def test_fill_asks_claude_without_its_interface(mngr: Mngr, home: Home, repo: Path, server: ModelServer) -> None:
    (repo / "tutorial.sh").write_text(TUTORIAL)
    item = {"line": 7, "text": "# say goodbye", "blocks": ["echo goodbye"]}
    (home.path / "answer").write_text(json.dumps({"proposals": [item]}))
    server.script = Script([{"when": "line 7, section Greeting", "run": f"cp {home.path}/answer proposals.json"}])
    words = ("tutorial", "fill", "tutorial.sh", "--yes", "--type", "claude", "--timeout", "60")
    result = mngr(*words, *ALLOWED, timeout=90)
    assert result.code == 0, (result, answers(server))
    assert result.out == "tutorial.sh: 1 block written, 0 rejected, 0 to decide\n"
    assert (repo / "tutorial.sh").read_text() == TUTORIAL + "echo goodbye\n"
    (name,) = [found["name"] for found in mngr.json("list")]
    found = agent(mngr, name)
    assert (found["state"], found["headless"], found["labels"]) == ("stopped", True, {"tutorial": "fill"})


def test_the_skill_is_one_of_claude_code(mngr: Mngr, home: Home, repo: Path, server: ModelServer) -> None:
    mngr.ok("tutorial", "sync", "--install-skill", ".claude/skills")
    home.run("claude", "-p", "/sync-tutorial-to-e2e-tests tutorial.sh tests")
    (asked,) = [text for text in server.texts() if "Every block of the tutorial is to be proven" in text]
    assert "tutorial.sh tests" in asked
