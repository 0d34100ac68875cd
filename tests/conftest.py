"""The fixtures of the end-to-end tests. tests/home.py has what they give; tests/README.md shows how to use them."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.home import Home, Mngr

# A deadline per example measures the neighbours of a shared machine, not the code.
settings.register_profile("mngr", deadline=None)
settings.load_profile("mngr")

# Files whose tests take half a minute and more, each: begun last, one of them would keep everybody waiting.
LONG = {
    "test_coding_agents.py",
    "test_demo.py",
    "test_integrate_history.py",
    "test_opencode.py",
    "test_swarm_anywhere.py",
    "test_swarm_page.py",
}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Thousands of tests are made and stay until the end: nobody needs to look through them for what can go, nor often
    for what comes later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each worker begins with its share of the long ones. They get the tests in contiguous shares at first, and then
    take over from each other."""
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    long = [item for item in items if item.path.name in LONG]
    rest = [item for item in items if item.path.name not in LONG]
    share = -(-len(rest) // workers)
    items[:] = [
        item
        for number in range(workers)
        for item in (*long[number::workers], *rest[number * share : (number + 1) * share])
    ]


@pytest.fixture
def home() -> Iterator[Home]:
    home = Home()
    yield home
    home.remove()


@pytest.fixture
def mngr(home: Home) -> Iterator[Mngr]:
    assert shutil.which("mngr", path=home.env["PATH"]), "mngr is not installed here: make venv"
    mngr = Mngr(home)
    yield mngr
    mngr.end_started()


@pytest.fixture
def repo(home: Home, template_repo: Path) -> Path:
    """A repository of this test's own, with one commit on `main`; `mngr` runs in it from now on."""
    shutil.copytree(template_repo, home.root / "repo", symlinks=True)
    home.cwd = home.root / "repo"
    return home.cwd


@pytest.fixture(scope="session")
def template_repo() -> Iterator[Path]:
    home = Home()
    top = home.root / "template"
    (top / "src").mkdir(parents=True)
    (top / "README.md").write_text("# Sample\n")
    (top / "src" / "app.py").write_text('print("hello")\n')
    (top / ".gitignore").write_text(".env\n__pycache__/\n")
    home.run("git", "init", "-q", "-b", "main", cwd=top)
    home.run("git", "add", "-A", cwd=top)
    home.run("git", "commit", "-q", "-m", "First commit", cwd=top)
    yield top
    home.remove()
