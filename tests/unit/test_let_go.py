"""A create that is broken off: which names are free again, and what the user is told of the others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mngr import hosts
from mngr.errors import HostUnreachable
from mngr.fleet import create
from mngr.fleet.fleet import LOCAL, Fleet
from mngr.fleet.plan import Request
from mngr.model import Agent

AGENTS = [
    Agent(id=id, name=name, type="command", host=LOCAL, command=["true"], work_dir="/w", mode="none", created=1.0)
    for id, name in (("a1", "one"), ("b2", "two"), ("c3", "three"))
]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    fleet = Fleet()
    for agent in AGENTS:
        fleet.names.reserve(agent.ref)
    return fleet


def let_go(fleet: Fleet, *, fresh: bool) -> tuple[list[str], list[str]]:
    """The names that stay, and what was told."""
    told: list[str] = []
    create._let_go(fleet, fleet.host(LOCAL), AGENTS, told.append, fresh=fresh)
    return sorted(ref.name for ref in fleet.names.all()), told


def lay(fleet: Fleet, *paths: str) -> None:
    for path in paths:
        place = Path(fleet.home, "agents", path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("99999999\n")  # as a pid: nobody's


def test_names_of_those_that_are_not_there_are_free(fleet: Fleet) -> None:
    lay(fleet, "b2/agent.json", "c3/agent.json", "c3/creating")
    assert let_go(fleet, fresh=False) == (
        ["three", "two"],
        ["there already, and kept: two", "could not be taken back, mngr gc clears away: three"],
    )


def test_a_host_that_was_made_for_them_stays_only_for_one_that_lives(fleet: Fleet) -> None:
    lay(fleet, "b2/agent.json", "c3/agent.json", "c3/creating")
    assert let_go(fleet, fresh=True)[0] == ["three", "two"]  # on a host that stays, nobody is without a name
    shutil.rmtree(Path(fleet.home, "agents", "b2"))
    assert let_go(fleet, fresh=True) == ([], [])


def test_who_is_still_being_taken_back_is_not_called_left_over(fleet: Fleet) -> None:
    lay(fleet, "b2/agent.json")
    Path(fleet.home, "agents", "b2", "creating").write_text(f"{os.getpid()}\n")
    assert let_go(fleet, fresh=False) == (["two"], ["still being taken back: two"])


@pytest.mark.parametrize("trouble", [HostUnreachable("it is down"), KeyboardInterrupt()])
def test_where_nobody_can_say_names_stay_in_doubt_unless_the_host_goes(
    fleet: Fleet, trouble: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(*_: object, **__: object) -> str:
        raise trouble

    monkeypatch.setattr(hosts, "check", no_answer)
    words = ["mngr list tells what became of one: it is down"] if isinstance(trouble, HostUnreachable) else []
    assert let_go(fleet, fresh=False) == (["one", "three", "two"], words)
    assert all(fleet.names.is_leftover(agent.ref) for agent in AGENTS)
    assert let_go(fleet, fresh=True) == ([], [])


def test_before_anything_is_asked_of_the_host_names_are_free_at_once(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(*_: object) -> None:
        assert fleet.names.find("four")
        raise KeyboardInterrupt

    monkeypatch.setattr(create, "carry", broken_off)
    monkeypatch.setattr(create, "_WHO_IS_THERE", "exit 1")
    request = Request(names=["four"], args=["true"], mode="none", source=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        create.create(fleet, request)
    assert fleet.names.find("four") is None
