"""The agent type `replay`, through the CLI: a script in the place of a model, with all that a live agent has."""

from __future__ import annotations

import json
from pathlib import Path
from time import time

import pytest

from mngr.state import reset_time
from tests.agents import agent, directory, head, work_dir
from tests.home import Home, Mngr, wait_until

FIX = """\
test 'tests/test_app.py::test_it'
cost 1000 50 20000 300
say 'I look at "it".'
run 'cat README.md; exit 3' || before fail
edit README.md Sample Example
commit docs 'Another title' low
# turn
say 'Where was I?'
after pass
finish 'It is well.'
"""


@pytest.fixture
def trajectories(home: Home, repo: Path) -> Path:
    place = home.root / "trajectories"
    place.mkdir()
    return place


def play(mngr: Mngr, trajectories: Path, name: str, text: str, *options: str) -> None:
    """An agent that has been told to go."""
    (trajectories / f"{name}.sh").write_text(text)
    mngr.ok("create", name, "replay", "--message", "go", *options, "--", str(trajectories))


def state(mngr: Mngr, name: str) -> str:
    """Once it does not work any more, as `list` shows it."""
    mngr.ok("wait", name, "--timeout", "20")
    found = agent(mngr, name)
    return f"{found['state']} ({found['reason']})" if found["reason"] else str(found["state"])


def tell(mngr: Mngr, name: str) -> str:
    assert mngr.ok("message", name, "-m", "go on") == f"delivered {name}\n"
    return state(mngr, name)


def test_a_trajectory_is_played_turn_by_turn(mngr: Mngr, home: Home, trajectories: Path) -> None:
    play(mngr, trajectories, "fix", FIX)
    assert state(mngr, "fix") == "waiting (turn over)"
    assert (work_dir(mngr, "fix") / "README.md").read_text() == "# Example\n"
    assert not (directory(mngr, "fix") / "result.json").exists()

    mngr.ok("stop", "fix")
    mngr.ok("clone", "fix", "other-fix")
    mngr.ok("start", "fix")
    assert state(mngr, "fix") == "waiting (ready)"
    assert tell(mngr, "fix") == tell(mngr, "other-fix") == "waiting (turn over)"
    change = {"kind": "docs", "commit": head(home, work_dir(mngr, "fix")), "summary": "Another title"}
    assert json.loads((directory(mngr, "fix") / "result.json").read_text()) == {
        "test": "tests/test_app.py::test_it",
        "passed_before": False,
        "passed_after": True,
        "changes": [{**change, "importance": "low"}],
        "escalations": [],
        "blocked": None,
        "summary": "It is well.",
    }
    assert (
        home.run("git", "log", "-1", "--format=%B", cwd=work_dir(mngr, "fix")).strip() == "Another title\n\nKind: docs"
    )
    tell(mngr, "fix")
    said = mngr.json("transcript", "fix")
    assert [
        (entry["kind"], entry["role"], entry["text"]) for entry in said if entry["kind"] in ("notice", "message")
    ] == [
        ("notice", "system", f"A replay of {trajectories}/fix.sh: no model was asked."),
        ("message", "user", "go"),
        ("message", "assistant", 'I look at "it".'),
        ("message", "user", "go on"),
        ("message", "assistant", "Where was I?"),
        ("message", "user", "go on"),
        ("message", "assistant", "The trajectory has no part for this message."),
    ]
    assert [(entry["tool"], entry["failed"]) for entry in said if entry["kind"] == "tool_result"] == [
        ("run", True),
        ("edit", False),
        ("commit", False),
        ("finish", False),
    ]
    assert "This is a replay of" in mngr.ok("capture", "fix", "--full")

    used = {row["key"]: row for row in mngr.json("usage", "fix", "other-fix")["rows"]}
    of_one = {"input": 1000, "output": 50, "cache_read": 20000, "cache_write_5m": 300}
    assert {kind: used["fix"][kind] for kind in of_one} == {kind: 4 * tokens for kind, tokens in of_one.items()}
    assert used["fix"]["messages"] == 4
    assert used["other-fix"]["messages"] == 1  # what the clone took over is not its own


def test_a_turn_that_does_not_end_well(mngr: Mngr, trajectories: Path) -> None:
    now = time()
    play(mngr, trajectories, "limit", "limit 600\n# turn\nblocked 'I need \"a key\".'\n")
    waits = state(mngr, "limit")
    assert waits.startswith("waiting (rate limit: usage limit reached, resets ")
    resets = reset_time(waits, now)
    assert resets is not None
    assert now + 590 < resets < time() + 610
    assert tell(mngr, "limit") == "waiting (turn over)"
    result = json.loads((directory(mngr, "limit") / "result.json").read_text())
    assert (result["blocked"], result["summary"], result["changes"]) == ('I need "a key".',) * 2 + ([],)

    play(
        mngr,
        trajectories,
        "ask",
        "ask 'Which one?'\n# turn\nprintf 'no JSON' | result\n# turn\nedit README.md gone x\n",
    )
    assert state(mngr, "ask") == "waiting (question)"
    assert tell(mngr, "ask") == "waiting (turn over)"
    assert (directory(mngr, "ask") / "result.json").read_text() == "no JSON"
    assert tell(mngr, "ask") == "waiting (turn failed: exit 1)"
    assert mngr.json("transcript", "ask")[-1]["text"] == "cannot edit README.md: the text is not in it"


def test_a_program_that_ends_or_does_not(mngr: Mngr, trajectories: Path) -> None:
    play(mngr, trajectories, "fail", "fail 7\n# turn\nsay back\n")
    play(mngr, trajectories, "crash", "crash\n")
    play(mngr, trajectories, "hang", "say 'I wait.'\nhang\n")
    assert state(mngr, "fail") == "failed (exit 7)"
    assert state(mngr, "crash") == "failed (exit 137, signal 9)"
    mngr.ok("start", "fail")
    assert tell(mngr, "fail") == "waiting (turn over)"

    wait_until(lambda: "I wait." in mngr.ok("capture", "hang"))
    assert mngr.ok("message", "hang", "-m", "are you there?").startswith("queued hang")
    assert agent(mngr, "hang")["state"] == "running"


def test_what_cannot_be_played_is_refused(mngr: Mngr, trajectories: Path) -> None:
    for words, told in (
        ([], "a replay needs one trajectory"),
        (["--", "nowhere"], "there is no trajectory nowhere"),
        (["--", str(trajectories)], f"cannot read the trajectory {trajectories}/default.sh: No such file or directory"),
    ):
        result = mngr("create", "x", "replay", *words)
        assert (result.code, result.err.splitlines()[0]) == (2, f"mngr: {told}")
    assert mngr.json("list") == []
