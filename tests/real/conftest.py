"""Real agent programs in the `home` of a test: tests/real_programs.py has what they need."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.dev.model_server import ModelServer
from tests.home import Home
from tests.real_programs import Wall, programs, server, use_claude, use_codex, use_openai, wall

__all__ = ["programs", "server", "wall"]  # fixtures


@pytest.fixture
def home(home: Home, programs: Path, server: ModelServer, wall: Wall) -> Home:
    use_claude(home.env, programs, server, wall)
    return home


@pytest.fixture
def codex(home: Home, wall: Wall) -> Path:
    return use_codex(home.path, wall)


@pytest.fixture
def openai(home: Home, server: ModelServer) -> None:
    use_openai(home.env, server)
