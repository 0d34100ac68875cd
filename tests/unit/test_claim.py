"""The names of agents that are about to be made, while that takes long."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.fleet.claim import claim, claim_again
from mngr.fleet.fleet import Fleet
from mngr.model import Agent, new_id
from mngr.names import NameTaken


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    return Fleet()


def agent(name: str) -> Agent:
    return Agent(
        id=new_id(), name=name, type="command", host="local", command=["true"], work_dir="/", mode="none", created=0.0
    )


def test_names_that_somebody_took_for_leftovers_are_claimed_again(fleet: Fleet) -> None:
    agents, claimed = [agent("a"), agent("b")], list[Agent]()
    claim(fleet, fleet.host("local"), agents, claimed)
    assert claimed == agents
    fleet.names.release(agents[1].ref)
    claim_again(fleet, fleet.host("local"), agents)
    assert {ref.name: ref.id for ref in fleet.names.all()} == {each.name: each.id for each in agents}


def test_a_name_that_another_has_by_now_is_lost(fleet: Fleet) -> None:
    mine, other = agent("a"), agent("a")
    claim(fleet, fleet.host("local"), [mine], [])
    fleet.names.release(mine.ref)
    fleet.names.reserve(other.ref)
    with pytest.raises(NameTaken):
        claim_again(fleet, fleet.host("local"), [mine])


def test_a_name_that_is_renewed_is_no_leftover(fleet: Fleet) -> None:
    mine = agent("a")
    claim(fleet, fleet.host("local"), [mine], [])
    fleet.names.doubt(mine.ref)
    assert fleet.names.is_leftover(mine.ref)
    fleet.names.renew(mine.ref)
    assert not fleet.names.is_leftover(mine.ref)
    fleet.names.doubt(mine.ref)
    claim_again(fleet, fleet.host("local"), [mine])
    assert not fleet.names.is_leftover(mine.ref)
    fleet.names.doubt(mine.ref)
    fleet.names.renew(agent("a").ref)  # of somebody else who had that name
    assert fleet.names.is_leftover(mine.ref)
