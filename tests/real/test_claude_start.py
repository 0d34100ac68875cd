"""Claude Code comes up with nobody there to answer its questions, and where it cannot, nothing is made."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mngr.dev.model_server import ModelServer
from tests.agents import agent, branches, directory, entries, files
from tests.home import Home, Mngr
from tests.real.steps import at_rest, becomes, make, press, screen, state, tell, turns

MODEL = "claude-haiku-4-5"


@pytest.fixture
def users_own(home: Home) -> Path:
    """A user's configuration: a model, a hook, instructions, a login. The hook keeps what it is told."""
    theirs = home.path / ".claude"
    theirs.mkdir()
    hook = {"hooks": [{"type": "command", "command": f"cat >>{home.root}/told"}]}
    settings = {"model": MODEL, "hooks": {"InstructionsLoaded": [hook], "UserPromptSubmit": [hook]}}
    (theirs / "settings.json").write_text(json.dumps(settings, indent=2))
    (theirs / "CLAUDE.md").write_text("Be brief.\n")
    (theirs / ".credentials.json").write_text("{}")
    return theirs


@pytest.mark.parametrize("arguments", [(), ("--", "--dangerously-skip-permissions")], ids=["default", "bypass"])
def test_starts_unattended_and_with_the_users_own_configuration(
    mngr: Mngr, home: Home, repo: Path, server: ModelServer, users_own: Path, arguments: tuple[str, ...]
) -> None:
    before = files(users_own)
    make(mngr, "a", "claude", *arguments)
    assert state(mngr, "a") == "waiting (ready)"
    assert tell(mngr, "a", "SAY: fine") == "waiting (turn over)"
    assert ("bypass permissions on" in screen(mngr, "a")) == bool(arguments)
    assert [turn["model"] for turn in turns(server)] == [MODEL]
    told = (home.root / "told").read_text()
    assert "SAY: fine" in told
    assert "InstructionsLoaded" in told
    assert (directory(mngr, "a") / "claude" / ".credentials.json").readlink() == users_own / ".credentials.json"
    mngr.ok("stop", "a")
    assert files(users_own) == before


PATHS = ("agents", "work", "names")


def test_what_cannot_run_is_refused_before_anything_is_made(mngr: Mngr, home: Home, repo: Path) -> None:
    def refused(*options: str, **env: str) -> str:
        result = mngr("create", "a", "claude", *options, env=env)
        assert (result.code, result.out) == (1, "")
        assert [entries(home.mngr_home / path) for path in PATHS] == [[], [], []]
        assert branches(home, "mngr/*") == []
        return result.err

    without = [place for place in home.env["PATH"].split(os.pathsep) if not os.path.exists(f"{place}/claude")]
    told = refused(PATH=os.pathsep.join(without))
    assert told == "mngr: there is no program called claude\nhint: npm install -g @anthropic-ai/claude-code\n"
    old = home.root / "old"
    old.mkdir()
    (old / "claude").write_text("#!/bin/sh\necho '1.0.0 (Claude Code)'\n")
    (old / "claude").chmod(0o755)
    assert "claude is version 1.0.0, and must be 2.1.0 or newer" in refused(PATH=f"{old}:{home.env['PATH']}")
    assert "claude has no credentials" in refused(ANTHROPIC_API_KEY="")


@pytest.mark.usefixtures("repo")
def test_a_dialog_that_comes_all_the_same_is_left_to_the_user(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "claude")
    mngr.ok("stop", "a")
    account = directory(mngr, "a") / "claude" / ".claude.json"
    held = json.loads(account.read_text())
    for project in held["projects"].values():
        del project["hasTrustDialogAccepted"]
    account.write_text(json.dumps(held))
    mngr.ok("start", "a")
    assert at_rest(mngr, "a") == "waiting (dialog: trust)"
    shown = screen(mngr, "a")
    result = mngr("message", "a", "-m", "SAY: no")
    assert (result.code, result.out) == (7, "")
    assert "a dialog is in front of it (trust)" in result.err
    assert screen(mngr, "a") == shown
    press(mngr, "a", "Enter")
    becomes(mngr, "a", "waiting (ready)")
    assert tell(mngr, "a", "SAY: yes") == "waiting (turn over)"
    assert server.texts() == ["SAY: yes"]


@pytest.mark.proof
@pytest.mark.usefixtures("repo")
def test_many_at_once_all_get_their_first_message(mngr: Mngr, server: ModelServer) -> None:
    mngr.ok("create", "a", "claude", "--count", "4", "--message", "SAY: one of many", timeout=120)
    at_rest(mngr, *(f"a-{number}" for number in range(1, 5)))
    assert server.texts() == ["SAY: one of many"] * 4
    assert len({turn["conversation"] for turn in turns(server)}) == 4


@pytest.mark.usefixtures("repo")
def test_a_variant_runs_with_its_own_model_arguments_and_variables(mngr: Mngr, home: Home, server: ModelServer) -> None:
    (home.mngr_home / "config.toml").write_text(f"""
[agent_types.reviewer]
parent = "claude"
model = "{MODEL}"
args = ["--dangerously-skip-permissions"]
env = {{ COLOUR = "red" }}
""")
    make(mngr, "a", "reviewer", "--message", 'RUN: echo "it is $COLOUR"')
    assert [turn["model"] for turn in turns(server)] == [MODEL, MODEL]
    assert turns(server)[1]["answered"]["say"] == "DONE: it is red"
    assert agent(mngr, "a")["type"] == "reviewer"
