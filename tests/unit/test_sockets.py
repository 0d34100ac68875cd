"""The sockets of connections: which host each is of, and which are the ones to ask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mngr.hosts import sockets
from mngr.hosts.sockets import control_path, control_paths, latest_connections

LONG = f"{'x' * 60}.ssh"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of the user's own, in which there are those of others."""
    place = tmp_path / "sockets"
    place.mkdir()
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    monkeypatch.setattr(sockets, "socket_path", lambda _: str(place / "0a1b2c3d"))
    (place / "0a1b2c3d").touch()  # a tmux server
    (place / "0a1b2c3d-modal-0011223344556677").touch()
    (place / "ffffffff-00000000-box.ssh").touch()  # of another home
    return place


def made(host: str, way: str, when: int, number: str = "") -> str:
    path = control_path(host, way) + number
    Path(path).touch()
    os.utime(path, (when, when))
    return path


@pytest.mark.usefixtures("directory")
def test_the_latest_way_to_each_host_is_the_one_to_ask() -> None:
    made("box.ssh", "an old way", 10)
    box = made("box.ssh", "the way", 20)
    other = made("box-2.ssh", "the way", 5)
    made("box.ssh", "the way", 30, "-1")  # a further connection
    assert latest_connections() == {"box.ssh": box, "box-2.ssh": other}


@pytest.mark.usefixtures("directory")
def test_those_of_one_host_are_all_its_ways_and_further_connections() -> None:
    paths = {made("box.ssh", "an old way", 10), made("box.ssh", "the way", 20), made("box.ssh", "the way", 30, "-1")}
    made("box-2.ssh", "the way", 20)
    made("my-box.ssh", "the way", 20)
    assert set(control_paths("box.ssh")) == paths
    assert control_paths("nobody.ssh") == []


def test_a_long_name_has_a_short_socket_of_its_own(directory: Path) -> None:
    path = made(LONG, "the way", 10)
    assert len(path) - len(str(directory)) < 40
    assert control_paths(LONG) == [path]
    assert control_paths(f"y{LONG[1:]}") == []


def test_without_a_directory_there_are_none(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    assert (latest_connections(), control_paths("box.ssh")) == ({}, [])


@pytest.mark.usefixtures("directory")
def test_nobody_elses_sockets_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who connects there sends scripts and secrets."""
    made("box.ssh", "the way", 10)
    assert len(control_paths("box.ssh")) == 1
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert (latest_connections(), control_paths("box.ssh")) == ({}, [])


def test_a_directory_by_another_name_is_none(directory: Path) -> None:
    made("box.ssh", "the way", 10)
    real = directory.rename(directory.with_name("real"))
    directory.symlink_to(real)
    assert (latest_connections(), control_paths("box.ssh")) == ({}, [])
