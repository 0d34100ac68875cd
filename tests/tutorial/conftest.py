"""The world of tutorial.sh: a git repository with one commit, a home without any agent, and a recording of every
terminal that a command connects to. `agents` adds the real agent programs, with a scripted model behind them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mngr.dev.model_server import ModelServer
from mngr.e2e import E2eSession
from mngr.hosts.sockets import end_of_server
from tests.home import make_mngr_home
from tests.real_programs import Wall, programs, server, use_claude, use_codex, use_openai, use_opencode, wall

__all__ = ["programs", "server", "wall"]  # fixtures
CONFIG = """\
[commands.create]
connect_command = "mngr-e2e-connect"
[commands.connect]
connect_command = "mngr-e2e-connect"
[commands.swarm_run]
max_load = 1000
min_memory = 0
"""
# For a terminal that somebody sits down at, who is to be attached in place of being recorded.
ATTACH = {"MNGR_CONFIG_COMMANDS__CREATE__CONNECT_COMMAND": "", "MNGR_CONFIG_COMMANDS__CONNECT__CONNECT_COMMAND": ""}


@pytest.fixture
def e2e(e2e: E2eSession, template_repo: Path) -> E2eSession:
    mngr_home = e2e.root / "m"
    make_mngr_home(mngr_home)
    e2e.env |= {"MNGR_HOME": str(mngr_home), "GIT_CONFIG_NOSYSTEM": "1"}
    (mngr_home / "config.toml").write_text(CONFIG)
    (e2e.home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n"
    )
    e2e.dir = e2e.work / "shop"
    shutil.copytree(template_repo, e2e.dir, symlinks=True)
    e2e.at_end(end_of_server(str(mngr_home)))
    return e2e


@pytest.fixture
def agents(e2e: E2eSession, programs: Path, server: ModelServer, wall: Wall) -> ModelServer:
    """Claude Code, Codex and OpenCode are installed, and this is the model that they speak to."""
    use_claude(e2e.env, programs, server, wall)
    use_codex(e2e.home, wall)
    use_openai(e2e.env, server)
    use_opencode(e2e.env, e2e.home, server)
    return server
