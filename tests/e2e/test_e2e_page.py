"""docs/e2e.md: its project is laid out as the page shows it, and its commands do what the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_agent_types_page import lay, made_by

PAGE = (Path(__file__).parents[2] / "docs" / "e2e.md").read_text()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    lay(tmp_path, made_by(PAGE))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(project: Path, command: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(project), "MNGR_HOME": str(project / "m")}
    return subprocess.run(command, shell=True, cwd=project, env=env, capture_output=True, text=True, timeout=120)


def test_the_example_is_green_and_in_step_with_its_tutorial(project: Path) -> None:
    commands = PAGE.partition("## Running it")[2].partition("```sh\n")[2].partition("```")[0].splitlines()
    assert len(commands) == 3
    for command in commands:
        done = run(project, command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (project / ".test_output" / "e2e" / "view" / "index.html").exists()
    assert (project / ".test_output" / "e2e" / "latest").exists()
    assert list(project.glob(".test_output/e2e/latest/*/ask.cast"))


def test_an_edited_block_is_found(project: Path) -> None:
    tutorial = project / "tutorial.sh"
    tutorial.write_text(tutorial.read_text().replace("A wrong number is an error", "A wrong number is a mistake"))
    done = run(project, "mngr tutorial check tutorial.sh tests")
    assert done.returncode == 1
    shown = PAGE.partition("is not there any more:\n\n```\n")[2].partition("\n```")[0]
    assert shown in done.stdout + done.stderr


def test_every_method_of_expect_is_on_the_page() -> None:
    from mngr.e2e.expectation import Expectation

    methods = {name for name in vars(Expectation) if name.startswith("to_") and not name.startswith("to_eventually")}
    assert {name for name in methods if f"`{name}`" not in PAGE} == set()
    eventually = {name.replace("eventually_", "") for name in vars(Expectation) if name.startswith("to_eventually")}
    assert eventually == methods - {"to_match_snapshot"}
