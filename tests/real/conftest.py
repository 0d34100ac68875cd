"""Real agent programs in the `home` of a test: tests/real_programs.py has what they need."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.dev.model_server import ModelServer
from tests.home import Home
from tests.real_programs import Wall, programs, server, use_claude, use_codex, use_openai, wall

__all__ = ["programs", "server", "wall"]  # fixtures


@pytest.fixture(scope="session")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mngr has kept of the programs' versions: to ask OpenCode for its own costs a second."""
    return tmp_path_factory.mktemp("versions")


@pytest.fixture
def home(home: Home, programs: Path, server: ModelServer, wall: Wall, versions: Path) -> Iterator[Home]:
    use_claude(home.env, programs, server, wall)
    kept = home.mngr_home / "versions"
    shutil.copytree(versions, kept)
    yield home
    shutil.copytree(kept, versions, dirs_exist_ok=True)


@pytest.fixture
def codex(home: Home, wall: Wall) -> Path:
    return use_codex(home.path, wall)


@pytest.fixture
def openai(home: Home, server: ModelServer) -> None:
    use_openai(home.env, server)
