"""The real agent programs in a world: those of `make programs`, with a scripted model server as all that they reach.
The way out is a proxy that is not there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from world import CommandFailed, World

from mngr.dev.model_server import ModelServer

PROGRAMS = ("claude", "codex", "opencode")
_TOP = Path(__file__).parents[1]
_NOWHERE = "http://127.0.0.1:9"


def install(world: World, server: ModelServer) -> None:
    """For a user who has keys, and OpenCode in use: a model of their own, and what it fetches at its first start."""
    told = subprocess.run([_TOP / ".ci" / "programs", "where"], check=True, capture_output=True, text=True)
    place = told.stdout.strip()
    if not os.path.isdir(place):
        raise CommandFailed("the agent programs are not installed: run make programs")
    world.env |= {
        "PATH": os.pathsep.join([place, world.env["PATH"]]),
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy-0123456789abcdefghij",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": "sk-dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "IS_SANDBOX": "1",  # without it, Claude Code refuses to skip permissions for root
        "HTTP_PROXY": _NOWHERE,
        "HTTPS_PROXY": _NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
    }
    theirs = world.root / "home" / ".config" / "opencode"
    (theirs / "node_modules").mkdir(parents=True)
    fetched = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1"}}}}
    (theirs / "package-lock.json").write_text(json.dumps(fetched))
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{server.url}/v1", "apiKey": "dummy"},
        "models": {"scripted": {"limit": {"context": 200_000, "output": 32_000}, "tool_call": True}},
    }
    model = "own/scripted"
    config = {"model": model, "small_model": model, "provider": {"own": provider}}
    (theirs / "opencode.json").write_text(json.dumps(config))
