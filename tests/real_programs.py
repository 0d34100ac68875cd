"""Real agent programs for tests: those of `make programs`, each test with a model server of its own, no network and no
key. What that server saw is what is believed. Without the programs nothing is skipped: it fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Self

import pytest

from mngr.dev.model_server import ModelServer

TOP = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def programs() -> Path:
    told = subprocess.run([TOP / ".ci" / "programs", "where"], check=True, capture_output=True, text=True)
    place = Path(told.stdout.strip())
    assert place.is_dir(), "the agent programs are not installed: run make programs"
    return place


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def wall() -> Iterator[Wall]:
    """The way out: a proxy that lets nobody through. A test in which somebody asked for it fails."""
    with Wall() as wall:
        yield wall
    asked = [line for line in wall.asked if not line.startswith(tuple(wall.tolerated))]
    assert asked == [], "a program wanted to speak to somebody else than the model server"


def use_claude(env: dict[str, str], programs: Path, server: ModelServer, wall: Wall) -> None:
    """With the programs in front of PATH, and the model server as all of their world."""
    node = os.path.dirname(shutil.which("node") or "")
    env |= {
        "PATH": os.pathsep.join([str(programs), env["PATH"], node]),
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy-0123456789abcdefghij",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",  # without it, Claude Code refuses to skip permissions for root
        "HTTP_PROXY": wall.url,
        "HTTPS_PROXY": wall.url,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def use_codex(user_home: Path, wall: Wall) -> Path:
    """The directory of somebody who uses Codex, without what makes it speak to others. Announcements it asks for in
    any case."""
    wall.tolerated.append("CONNECT raw.githubusercontent.com:443 ")
    theirs = user_home / ".codex"
    theirs.mkdir()
    (theirs / "config.toml").write_text("features.plugins = false\nanalytics.enabled = false\n")
    return theirs


def use_openai(env: dict[str, str], server: ModelServer) -> None:
    """A key for OpenAI, and the model server in its place."""
    env |= {"OPENAI_API_KEY": "sk-dummy", "OPENAI_BASE_URL": f"{server.url}/v1"}


def use_opencode(env: dict[str, str], user_home: Path, server: ModelServer, model: str = "scripted-1") -> None:
    """For a user who has a model, and OpenCode in use: it has fetched what it fetches at its first start. The list of
    the world's models is as short as a list can be: each start reads it twice, and the one that the program has in
    itself costs as much time and half as much memory again as all the rest of a start."""
    env |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
    theirs = user_home / ".config" / "opencode"
    (theirs / "node_modules").mkdir(parents=True)
    fetched = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "1"}}}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{server.url}/v1", "apiKey": "dummy"},
        "models": {model: {"limit": {"context": 200_000, "output": 32_000}, "tool_call": True}},
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "model": f"own/{model}",
        "small_model": f"own/{model}",
        "provider": {"own": provider},
    }
    (theirs / "package-lock.json").write_text(json.dumps(fetched))
    (theirs / ".gitignore").write_text("node_modules\n")
    (theirs / "opencode.json").write_text(json.dumps(config))
    models = user_home / ".cache" / "opencode" / "models.json"
    models.parent.mkdir(parents=True)
    models.write_text("{}")


class Wall(ThreadingTCPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: list[str] = []
        self.tolerated: list[str] = []  # beginnings of what may be asked all the same

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, name="wall").start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Asked(StreamRequestHandler):
    server: Wall

    def handle(self) -> None:
        self.server.asked.append(self.rfile.readline().decode(errors="replace").strip())
