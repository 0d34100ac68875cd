"""THE SWARM of tutorial.sh, over a project with two tests. Agents play the script of the first block; runs of which only
the log matters are written, not run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mngr.e2e import E2eSession, expect
from tests.runs import Log

GREETS, ONE_LINE = "tests/test_app.py::test_it_greets", "tests/test_app.py::test_it_greets_in_one_line"
TASKS = {"test-it-greets": GREETS, "test-it-greets-in-one-line": ONE_LINE}
TESTS = '''\
import subprocess
import sys

def greeting():
    return subprocess.run([sys.executable, "src/app.py"], capture_output=True, text=True).stdout

def test_it_greets():
    """Whoever starts the program is greeted."""
    assert greeting() == "hello\\n"

def test_it_greets_in_one_line():
    assert greeting().count("\\n") == 1
'''
AGENT = """\
cat >agent.sh <<'EOF'
say 'I run my test as it stands.'
run python3 -m pytest -q tests && before pass && after pass
finish 'It proves what it promises.'
EOF
"""
TYPE = """\
mngr config set agent_types.tester.parent replay
mngr config set agent_types.tester.args "$PWD/agent.sh"
"""


@pytest.fixture
def e2e(e2e: E2eSession) -> E2eSession:
    (e2e.dir / "tests").mkdir()
    (e2e.dir / "tests" / "test_app.py").write_text(TESTS)
    (e2e.dir / "tutorial.sh").write_text("#!/bin/sh\n\n# It says hello.\npython3 src/app.py\n")
    e2e.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest starts in half the time
    e2e.run("git add -A && git commit -qm 'Two tests'", comment="a project with two tests")
    return e2e


@pytest.fixture
def tester(e2e: E2eSession) -> None:
    """The type of the first block is there."""
    e2e.run(AGENT + TYPE, comment="agents that need no model")


def log(e2e: E2eSession, run: str) -> Log:
    return Log(e2e.root / "m", run, TASKS, budget=20.0)


def settings(e2e: E2eSession, run: str) -> dict[str, Any]:
    """With which the run began."""
    first = (e2e.root / "m" / "runs" / run / "events.jsonl").read_text().partition("\n")[0]
    found: dict[str, Any] = json.loads(first)["settings"]
    return found


def test_one_agent_for_each_test(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # One agent for each test: it runs the test, mends what is broken, makes it prove just what it promises, and hands in a
        # result, which is checked. These play a script, and need no model; with claude the lines below stay the same.
        cat >agent.sh <<'EOF'
        say 'I run my test as it stands.'
        run python3 -m pytest -q tests && before pass && after pass
        finish 'It proves what it promises.'
        EOF
        mngr config set agent_types.tester.parent replay
        mngr config set agent_types.tester.args "$PWD/agent.sh"
        mngr swarm run tests --type tester
    """)
    e2e.write_tutorial_block("""
        # What became of them, and of one of them: what it claims, what the check found, and its last screen.
        mngr swarm show r1
        mngr swarm show r1 test_it_greets
        git branch --list 'mngr/r1-*'
    """)
    e2e.write_tutorial_block("""
        # Skip what cannot have changed: a test counts as the same with the same text, fixtures, tutorial block, program, lock
        # file, prompt and model. Some of the skipped are run all the same, to see whether skipping is right.
        mngr swarm estimate tests --type tester --changed-since last
        mngr swarm estimate tests --type tester --changed-since HEAD --program src --audit 50%
        mngr swarm run tests --type tester --changed-since HEAD --program src --audit 0%
    """)
    e2e.run(AGENT, comment="what an agent does")
    e2e.run(TYPE, comment="as a type of its own")
    run = e2e.run("mngr swarm run tests --type tester", comment="one for each test")
    expect(run).to_succeed().to_contain("r1: 2 tests, 2 to do", f"unchanged: {GREETS}\n", f"unchanged: {ONE_LINE}\n")
    expect(e2e.run("mngr list --json", comment="nobody is left")).to_be_json([])

    shown = e2e.run("mngr swarm show r1", comment="what became of them?").stdout
    expect(shown).to_contain(GREETS, ONE_LINE, "r1: done, 2 unchanged")
    one = e2e.run("mngr swarm show r1 test-it-greets", comment="and of one of them?").stdout
    expect(one).to_contain("summary: It proves what it promises.").to_match(r"after:\n +claim: yes\n +check: passed")
    expect(one).to_contain("last on its screen", "1 passed" if False else "2 passed")
    expect(e2e.run("git branch --list 'mngr/r1-*'", comment="nobody has changed anything").stdout).to_be_empty()

    estimate = e2e.run("mngr swarm estimate tests --type tester --changed-since last", comment="and once more?")
    expect(estimate).to_contain("2 tests, 1 agents of type tester, 1 skipped", "as they were at run r1")
    half = "mngr swarm estimate tests --type tester --changed-since HEAD --program src --audit 50%"
    expect(e2e.run(half, comment="every other one all the same")).to_contain("1 agents of type tester, 1 skipped")
    none = "mngr swarm run tests --type tester --changed-since HEAD --program src --audit 0%"
    expect(e2e.run(none, comment="nothing can have changed")).to_succeed().to_contain("r2: done, 2 skipped")
