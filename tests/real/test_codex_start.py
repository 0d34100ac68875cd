"""Codex comes up with nobody there to answer its questions, and where it cannot, nothing is made."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mngr.agents.codex_config import checksum
from mngr.dev.model_server import ModelServer
from tests.agents import branches, directory, entries, files
from tests.home import Home, Mngr
from tests.real.steps import at_rest, make, press, screen, state, tell, turns

pytestmark = pytest.mark.usefixtures("repo", "codex")
MODEL = "gpt-5"


@pytest.fixture
def users_own(home: Home, codex: Path, server: ModelServer) -> Path:
    """A user's configuration: a model, a provider, a login, a hook that is trusted and one that is not."""
    (codex / "skills" / "knots").mkdir(parents=True)
    (codex / "skills" / "knots" / "SKILL.md").write_text("---\nname: knots\ndescription: Knots.\n---\nTie them.\n")
    (codex / "AGENTS.md").write_text("Be brief.\n")
    (codex / "auth.json").write_text('{"OPENAI_API_KEY": "sk-of-the-login"}')
    trusted, unknown = ({"type": "command", "command": f"cat >>{home.root}/{name}"} for name in ("told", "secret"))
    hooks = {"hooks": {"UserPromptSubmit": [{"hooks": [unknown]}, {"hooks": [trusted]}]}}
    (codex / "hooks.json").write_text(json.dumps(hooks))
    config = f"""
        {(codex / "config.toml").read_text()}
        model = "{MODEL}"
        model_provider = "own"
        [model_providers.own]
        name = "Own"
        base_url = "{server.url}/v1"
        wire_api = "responses"
        requires_openai_auth = true
        [tui]
        status_line = ["model"]
        [hooks.state."{codex}/hooks.json:user_prompt_submit:1:0"]
        trusted_hash = "{checksum("UserPromptSubmit", {**trusted, "timeout": 600})}"
    """
    (codex / "config.toml").write_text(config)
    return codex


def test_starts_unattended_and_with_the_users_own_configuration(
    mngr: Mngr, home: Home, server: ModelServer, users_own: Path
) -> None:
    before = files(users_own)
    make(mngr, "a", "codex")
    assert state(mngr, "a") == "waiting (ready)"
    assert tell(mngr, "a", "SAY: fine") == "waiting (turn over)"
    assert [turn["model"] for turn in turns(server)] == [MODEL]
    assert "SAY: fine" in (home.root / "told").read_text()
    assert not (home.root / "secret").exists()
    own = directory(mngr, "a") / "codex"
    assert (own / "auth.json").readlink() == users_own / "auth.json"
    assert (own / "AGENTS.md").read_text() == "Be brief.\n"
    assert (own / "skills" / "knots" / "SKILL.md").exists()
    mngr.ok("stop", "a")
    assert files(users_own).items() >= before.items()  # to be asked for its version, it puts things of its own there


PATHS = ("agents", "work", "names")


def test_what_cannot_run_is_refused_before_anything_is_made(mngr: Mngr, home: Home) -> None:
    def refused(*options: str, **env: str) -> str:
        result = mngr("create", "a", "codex", *options, env=env)
        assert (result.code, result.out) == (1, "")
        assert [entries(home.mngr_home / path) for path in PATHS] == [[], [], []]
        assert branches(home, "mngr/*") == []
        return result.err

    without = [place for place in home.env["PATH"].split(os.pathsep) if not os.path.exists(f"{place}/codex")]
    told = refused(PATH=os.pathsep.join(without))
    assert told == "mngr: there is no program called codex\nhint: npm install -g @openai/codex\n"
    old = home.root / "old"
    old.mkdir()
    (old / "codex").write_text("#!/bin/sh\necho 'codex-cli 0.99.0'\n")
    (old / "codex").chmod(0o755)
    assert "codex is version 0.99.0, and must be 0.166.0 or newer" in refused(PATH=f"{old}:{home.env['PATH']}")
    assert "codex has no credentials" in refused()


@pytest.mark.usefixtures("openai")
def test_a_dialog_that_comes_all_the_same_is_left_to_the_user(mngr: Mngr, server: ModelServer) -> None:
    make(mngr, "a", "codex")
    mngr.ok("stop", "a")
    config = directory(mngr, "a") / "codex" / "config.toml"
    config.write_text(config.read_text().replace('"trusted"', '"untrusted"').replace("[projects.", "[other."))
    mngr.ok("start", "a")
    assert at_rest(mngr, "a") == "waiting (dialog: trust)"
    result = mngr("message", "a", "-m", "SAY: hello")
    assert (result.code, result.out) == (7, "")
    assert "a dialog is in front of it (trust)" in result.err
    assert "Trust this folder?" in screen(mngr, "a")
    press(mngr, "a", "Enter")
    assert tell(mngr, "a", "SAY: hello") == "waiting (turn over)"
    assert server.texts() == ["SAY: hello"]
