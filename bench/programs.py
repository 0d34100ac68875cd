"""The real agent programs in a world: those of `make programs`, with a scripted model server as all that they reach.
The way out is a proxy that is not there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from world import CommandFailed, World

from mngr.dev.model_server import ModelServer

_TOP = Path(__file__).parents[1]
_NOWHERE = "http://127.0.0.1:9"


def install(world: World, server: ModelServer) -> None:
    """Into the environment of that world."""
    told = subprocess.run([_TOP / ".ci" / "programs", "where"], check=True, capture_output=True, text=True)
    place = told.stdout.strip()
    if not os.path.isdir(place):
        raise CommandFailed("the agent programs are not installed: run make programs")
    world.env |= {
        "PATH": os.pathsep.join([place, world.env["PATH"]]),
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy-0123456789abcdefghij",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",  # without it, Claude Code refuses to skip permissions for root
        "HTTP_PROXY": _NOWHERE,
        "HTTPS_PROXY": _NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
    }
