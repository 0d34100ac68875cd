"""create: what makes a new work dir able to run the project: `copy`, for ignored files, and `setup`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents import SLEEP, files, make, work_dir
from tests.home import Mngr


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_copy_carries_ignored_files_directories_and_patterns(mngr: Mngr, repo: Path, mode: str) -> None:
    (repo / ".gitignore").write_text(".env*\nnode_modules/\n")
    (repo / ".env").write_text("A=1\n")
    (repo / ".env.local test").write_text("B=2\n")
    (repo / "node_modules" / "a b").mkdir(parents=True)
    (repo / "node_modules" / "a b" / "run").write_text("x\n")
    (repo / "node_modules" / "a b" / "run").chmod(0o755)
    mngr.ok("config", "set", "copy", '[".env*", "node_modules", "absent"]')
    work = make(mngr, "foo", "--mode", mode, "--dirty")
    assert files(work) == files(repo)
    assert (work / "node_modules" / "a b" / "run").stat().st_mode & 0o777 == 0o755


def test_copy_said_outright_replaces_the_configured_one(mngr: Mngr, repo: Path) -> None:
    (repo / ".gitignore").write_text(".env\n.other\n")
    (repo / ".env").write_text("A=1\n")
    (repo / ".other").write_text("B=2\n")
    mngr.ok("config", "set", "copy", '[".env"]')
    work = make(mngr, "foo", "--copy", ".other")
    assert (work / ".other").exists()
    assert not (work / ".env").exists()


def test_copy_has_nothing_to_do_in_place(mngr: Mngr, repo: Path) -> None:
    (repo / ".env").write_text("A=1\n")
    make(mngr, "foo", "--mode", "none", "--copy", ".env")
    assert (repo / ".env").read_text() == "A=1\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "src/../../secret"])
def test_copy_takes_nothing_from_outside_of_the_source(mngr: Mngr, repo: Path, path: str) -> None:
    result = mngr("create", "foo", "command", "--copy", path, *SLEEP)
    assert result.code == 2
    assert path in result.err


def test_setup_runs_in_the_work_dir_and_environment_before_the_program(mngr: Mngr, repo: Path) -> None:
    (repo / ".env").write_text("from .env\n")
    setup = 'echo "$A $MNGR_AGENT_NAME $(pwd -P)" >log; cat .env >>log'
    options = ["--setup", setup, "--env", "A=1", "--copy", ".env"]
    result = mngr("create", "foo", "command", *options, "--", "echo program >>log")
    assert (result.code, result.err) == (0, f"mngr: setting up: {setup}\n")
    mngr.ok("wait", "foo", "--for", "done")
    work = work_dir(mngr, "foo")
    assert (work / "log").read_text() == f"1 foo {work}\nfrom .env\nprogram\n"


def test_setup_of_the_configuration_runs_unless_another_is_given(mngr: Mngr, repo: Path) -> None:
    mngr.ok("config", "set", "setup", "touch configured")
    assert (make(mngr, "foo") / "configured").exists()
    assert (make(mngr, "bar", "--setup", "touch given") / "given").exists()
    assert not (work_dir(mngr, "bar") / "configured").exists()
    assert not (make(mngr, "baz", "--setup", "") / "configured").exists()
