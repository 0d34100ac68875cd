"""The lock of one host, and what becomes of its file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mngr.fleet import hosting
from mngr.fleet.fleet import Fleet
from mngr.fleet.host_lock import Lock
from mngr.hosts.place import Place

NAME = "box.podman"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    return Fleet()


def test_who_forgets_a_host_is_alone_until_the_end_and_takes_the_file_along(fleet: Fleet, tmp_path: Path) -> None:
    fleet.places.keep(Place(name=NAME, made=True))
    file = tmp_path / "hosts" / f".{NAME}.lock"
    entered, order = threading.Event(), []

    def other() -> None:
        entered.wait()
        with Lock(fleet, NAME):
            order.append("other")

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    with Lock(fleet, NAME):
        hosting.forget(fleet, NAME)
        entered.set()
        thread.join(0.3)
        assert file.exists()
        order.append("we")
    thread.join()
    assert order == ["we", "other"]
    assert not file.exists()


def test_the_file_stays_with_the_host(fleet: Fleet, tmp_path: Path) -> None:
    with Lock(fleet, NAME):
        fleet.places.keep(Place(name=NAME, made=True))
    assert (tmp_path / "hosts" / f".{NAME}.lock").exists()
