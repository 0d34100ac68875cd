"""Agents on three machines, of which one is cut off for a while: the others do not notice, and afterwards nothing is
lost and nothing is there twice. bench/proof_hosts.py does the same with sixty agents, and says how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.agents import commit_noise, entries
from tests.home import Mngr, wait_until
from tests.places.network import Machine, Network

CUT_OFF = ("unknown", "host cannot be reached; it was running")


@pytest.fixture
def boxes(over_ssh: Network) -> Iterator[list[Machine]]:
    machines = [over_ssh.boot(f"box{number}") for number in (1, 2, 3)]
    yield machines
    for machine in machines:
        machine.remove()


def seen(mngr: Mngr) -> dict[str, tuple[str, str]]:
    """State and reason of each agent; what else is known of it, its branch, say, always is."""
    found = mngr.json("list")
    assert [each["branch"] for each in found] == [f"mngr/{each['name']}" for each in found]
    return {each["name"]: (each["state"], each["reason"]) for each in found}


def shows_again(mngr: Mngr, name: str) -> bool:
    """What was typed, and what cat made of it, once."""
    return mngr.ok("capture", name).count("again\n") == 2


def test_one_of_three_is_cut_off_and_comes_back(mngr: Mngr, repo: Path, boxes: list[Machine]) -> None:
    two = boxes[1]
    for box in boxes:
        mngr.ok("create", f"{box.name}@{box.name}.ssh", "-n", "2", "command", "--", "cat")
    mngr.ok("create", "near", "command", "--", "cat")
    mngr.ok("wait", "--all", "--for", "running", "--timeout", "20")
    names = [f"{box.name}-{number}" for box in boxes for number in (1, 2)] + ["near"]
    ids = {each["name"]: each["id"] for each in mngr.json("list")}
    assert list(ids) == names

    two.cut()
    lost = mngr.popen("message", "box2-1", "-m", "into the void")  # over a connection that does not know it yet
    assert seen(mngr) == {name: CUT_OFF if name.startswith("box2") else ("running", "") for name in names}
    assert mngr.ok("message", "box1-1", "box3-1", "-m", "hello") == "typed box1-1\ntyped box3-1\n"
    assert mngr.ok("exec", "box3-1", "--", "hostname") == "box3\n"
    stopped = mngr("stop", "box1-2", "box2-2", "box3-2", "near")
    assert (stopped.code, stopped.out) == (6, "stopped box1-2\nstopped box3-2\nstopped near\n"), stopped
    assert "box2.ssh" in stopped.err
    assert "box2.ssh" in lost.communicate(timeout=60)[1]
    assert lost.returncode == 5

    two.run(f"read -r _ pid <.mngr/agents/{ids['box2-2']}/pid && kill $pid")

    two.heal()
    ended = dict.fromkeys(("box1-2", "box3-2", "near"), ("stopped", "")) | {"box2-2": ("failed", "exit 143, signal 15")}
    wait_until(lambda: seen(mngr) == dict.fromkeys(names, ("running", "")) | ended)
    assert {each["name"]: each["id"] for each in mngr.json("list")} == ids
    assert [len(box.run("ls .mngr/agents").split()) for box in boxes] == [2, 2, 2]
    mngr.ok("message", "--all", "--state", "running", "-m", "again")
    for name in ("box1-1", "box2-1", "box3-1"):
        wait_until(partial(shows_again, mngr, name))
    assert "void" not in mngr.ok("capture", "box2-1")
    mngr.ok("destroy", "-f", "--all")


def test_a_large_repository_goes_to_all_of_them_at_once(mngr: Mngr, repo: Path, boxes: list[Machine]) -> None:
    commit_noise(mngr.home, repo, 20)
    creates = [mngr.popen("create", f"{box.name}@{box.name}.ssh", "command", "--", "cat") for box in boxes]
    told = [create.communicate(timeout=120)[1] for create in creates]
    assert [create.returncode for create in creates] == [0] * 3, told
    assert entries(mngr.home.mngr_home / "carry") == []
    mngr.ok("destroy", "-f", "--all")
