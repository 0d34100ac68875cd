"""The question that this machine is asked ahead: heard once, or let go. That of others is in tests/places."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.fleet import asking, survey
from mngr.home import home_path
from mngr.hosts.local import LocalHost
from tests.home import is_alive, wait_until


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with an agent, and a tmux that writes down its pid for each call and then does as `then` says."""
    home, programs = tmp_path / "m", tmp_path / "bin"
    (home / "agents" / "aaa").mkdir(parents=True)
    programs.mkdir()
    log, then = tmp_path / "calls", tmp_path / "then"
    then.touch()
    (programs / "tmux").write_text(f"#!/bin/sh\necho $$ >>{log}; . {then}\n")
    (programs / "tmux").chmod(0o755)
    monkeypatch.setenv("MNGR_HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path := str(tmp_path / "s"))
        monkeypatch.setattr("mngr.hosts.local.socket_path", lambda _: path)
        yield log
    asking.forget_ahead()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_it_is_heard_once(calls: Path) -> None:
    asking.ask_ahead()
    wait_until(calls.exists)
    here = LocalHost(home_path())
    before = descriptors()
    assert [evidence.id for evidence in survey.ask(here)] == ["aaa"]
    assert len(calls.read_text().splitlines()) == 1
    assert descriptors() == before - 2
    assert [evidence.id for evidence in survey.ask(here)] == ["aaa"]
    assert len(calls.read_text().splitlines()) == 2


def test_one_that_nobody_wants_ends(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "then").write_text("exec sleep 1000")
    before = descriptors()
    asking.ask_ahead()
    wait_until(lambda: calls.exists() and calls.read_text().endswith("\n"))
    (pid,) = map(int, calls.read_text().split())
    assert is_alive(pid)
    asking.forget_ahead()
    wait_until(lambda: not is_alive(pid))
    assert descriptors() == before
    asking.forget_ahead()  # there is nothing left


def test_what_another_home_was_asked_is_not_its_answer(calls: Path, tmp_path: Path) -> None:
    asking.ask_ahead()
    other = LocalHost(str(tmp_path / "other"))
    assert survey.ask(other) == []
    assert [evidence.id for evidence in survey.ask(LocalHost(home_path()))] == ["aaa"]
    assert len(calls.read_text().splitlines()) == 1
