"""The world of a test keeps its promises: nothing leaks in, nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.home import Home, is_alive, wait_until


def test_nothing_of_the_callers_environment_reaches_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MNGR_TYPE", "TMUX", "GIT_DIR", "PYTHONPATH"):
        monkeypatch.setenv(name, "leak")
    home = Home()
    try:
        assert "leak" not in home.run("env")
    finally:
        home.remove()


def test_processes_that_ignore_their_end_are_ended_with_the_home() -> None:
    home = Home()
    home.socket.parent.mkdir(mode=0o700, exist_ok=True)
    home.tmux("-f", "/dev/null", "new-session", "-d", "trap '' HUP TERM; setsid sleep 1000 & exec sleep 1000")
    wait_until(lambda: sum("sleep 1000" in line for line in home.processes().values()) >= 2)
    pids = list(home.processes())
    home.remove()
    assert not home.root.exists()
    assert not home.socket.exists()
    assert [pid for pid in pids if is_alive(pid)] == []


def test_a_repository_is_the_tests_own(repo: Path, template_repo: Path, home: Home) -> None:
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Second commit")
    assert home.run("git", "log", "--format=%s %an").splitlines() == [
        "Second commit Test User",
        "First commit Test User",
    ]
    assert home.run("git", "log", "--format=%s", cwd=template_repo) == "First commit\n"
