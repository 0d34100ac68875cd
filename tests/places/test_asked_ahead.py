"""`list` asks machines over connections that are open before it knows whom it needs: each is asked once, whatever is
different from what it took for granted changes nothing, and nothing stays there."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.hosts.sockets import latest_connections
from tests.home import Home, Mngr, wait_until
from tests.places.network import Machine, Network

COUNTED = "echo >>/root/sessions"  # of every session, by the login shell
SHELLS = "ps -eo args= | grep -c '^/bin/sh -s$' || :"
MOST = 10  # MaxSessions of an sshd


@pytest.fixture
def boxes(over_ssh: Network, mngr: Mngr, repo: Path) -> Iterator[list[Machine]]:
    machines = [over_ssh.boot(name) for name in ("box", "crate")]
    for machine in machines:
        mngr.ok("create", f"in-{machine.name}@{machine.name}.ssh", "command", "--", "cat")
    mngr.ok("list")
    for machine in machines:
        machine.run(f"echo '{COUNTED}' >.bashrc")
    yield machines
    for machine in machines:
        machine.remove()


def names(mngr: Mngr, *words: str) -> list[str]:
    told = mngr.json("list", *words)
    assert {each["state"] for each in told} == {"running"}
    return [each["name"] for each in told]


def sessions(machine: Machine) -> int:
    """Since the last time."""
    return int(machine.run("wc -l <sessions; : >sessions"))


def is_deserted(machine: Machine) -> bool:
    return machine.run(SHELLS).strip() == "0"


def connection(home: Home, host: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MNGR_HOME", str(home.mngr_home))
    return latest_connections()[host]


def test_each_machine_is_asked_once_and_left(mngr: Mngr, boxes: list[Machine]) -> None:
    for words in ([], ["in-*"], ["--state", "running"]):
        assert names(mngr, *words) == ["in-box", "in-crate"]
        assert [sessions(machine) for machine in boxes] == [1, 1]
    for machine in boxes:
        wait_until(lambda machine=machine: is_deserted(machine))  # type: ignore[misc]


def test_who_waits_for_names_asks_when_they_are_there(mngr: Mngr, boxes: list[Machine], home: Home) -> None:
    """What was before them says nothing of what somebody did who then wrote them."""
    words = shlex.quote(mngr.program)
    lines = [f"{words} stop in-box >&2; echo in-box", f"{words} create late@crate.ssh command -- cat >&2; echo late"]
    told = []
    for line in lines:
        piped = ["sh", "-c", f"{{ {line}; }} | {words} list - --format '{{name}} {{state}}'"]
        told.append(
            subprocess.run(piped, env=home.env, cwd=home.cwd, stdout=subprocess.PIPE, text=True, check=True).stdout
        )
    assert told == ["in-box stopped\n", "late running\n"]
    assert len(boxes) == 2


def test_a_machine_without_agents_is_let_go(mngr: Mngr, boxes: list[Machine]) -> None:
    box, crate = boxes
    mngr.ok("destroy", "-f", "in-crate")
    crate.run("rm -f sessions; touch sessions")
    assert names(mngr) == ["in-box"]
    assert sessions(crate) <= 1
    wait_until(lambda: is_deserted(crate) and is_deserted(box))


def test_another_way_to_a_machine_is_taken_at_once(mngr: Mngr, boxes: list[Machine], over_ssh: Network) -> None:
    """The connection of the way before is asked in vain."""
    os.utime(over_ssh.ssh_config, (1, 1))
    assert names(mngr) == ["in-box", "in-crate"]
    for machine in boxes:
        sessions(machine)
    assert names(mngr) == ["in-box", "in-crate"]
    assert [sessions(machine) for machine in boxes] == [1, 1]
    spelled = ["-S", f"providers.ssh.config={over_ssh.ssh_config.parent}/../{over_ssh.name}/ssh_config"]
    assert names(mngr, *spelled) == ["in-box", "in-crate"]


def test_a_connection_that_takes_no_more_is_no_trouble(
    mngr: Mngr, boxes: list[Machine], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = boxes[0]
    path = connection(home, "box.ssh", monkeypatch)
    wait_until(lambda: is_deserted(box))
    held = [
        subprocess.Popen(["ssh", "-S", path, "-o", "ControlMaster=no", "box", "exec sleep 100"]) for _ in range(MOST)
    ]
    try:
        wait_until(lambda: box.run("ps -eo args= | grep -c '^sleep 100$' || :").strip() == str(MOST))
        assert names(mngr) == ["in-box", "in-crate"]
    finally:
        for child in held:
            child.kill()
            child.wait()
    assert names(mngr) == ["in-box", "in-crate"]


def test_a_host_whose_record_is_damaged_is_unknown_and_no_more(mngr: Mngr, boxes: list[Machine], home: Home) -> None:
    (home.mngr_home / "hosts" / "box.ssh").write_text("{")
    told = {each["name"]: (each["state"], each["reason"]) for each in mngr.json("list")}
    assert told == {"in-box": ("unknown", "host cannot be reached; it was running"), "in-crate": ("running", "")}
    assert len(boxes) == 2


def test_a_connection_that_died_is_no_trouble(
    mngr: Mngr, boxes: list[Machine], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = connection(home, "box.ssh", monkeypatch)
    told = subprocess.run(["ssh", "-S", path, "-O", "check", "any"], capture_output=True, text=True)
    pid = int(told.stderr.partition("pid=")[2].partition(")")[0])
    os.kill(pid, 9)
    assert names(mngr) == ["in-box", "in-crate"]
    boxes[0].crash()
    boxes[0].boot()
    assert {each["name"]: each["state"] for each in mngr.json("list")} == {"in-box": "stopped", "in-crate": "running"}
