"""The process that has Modal's SDK, which all verbs of a home share: its beginning, its end, and whom it serves."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr import hosts, process
from mngr.errors import HostUnreachable
from mngr.hosts import modal_client
from mngr.hosts.modal import ModalProvider
from mngr.hosts.place import Place
from mngr.hosts.probe import arrive
from mngr.hosts.sockets import socket_path
from tests.home import Home, Mngr, is_alive, wait_until
from tests.places.sandboxes import Sandboxes, servers

PROVIDER = ModalProvider()


@pytest.fixture
def place(modal: Sandboxes) -> Iterator[Place]:
    place = Place(name="one.modal", made=True)
    place = arrive(PROVIDER, place.replace(id=PROVIDER.make("one", {}, lambda _: None)))
    yield place
    PROVIDER.remove(place)


def sockets(home: Home) -> list[str]:
    path = Path(socket_path(str(home.mngr_home)))
    return [str(found) for found in path.parent.glob(f"{path.name}-modal-*")]


def bridge(place: Place, script: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(PROVIDER.reach(place).argv(script, []), stdin=pipe, stdout=pipe, stderr=pipe)


def with_the_sdk(home: Home) -> set[int]:
    """Processes of this home that have loaded it, by a library that it needs."""

    def has_loaded(pid: int) -> bool:
        try:
            return "google/_upb" in Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return False  # it has just ended

    return set(filter(has_loaded, home.processes()))


def test_twenty_commands_at_once_are_one_process_with_the_sdk(place: Place, home: Home) -> None:
    host = PROVIDER.reach(place)
    pipe = process.PIPE
    running = [host.start("read -r x; echo $x $1", [str(n)], stdin=pipe, stdout=pipe, stderr=pipe) for n in range(15)]
    bridges = [bridge(place, f"read -r x; echo $x {n}") for n in range(15, 20)]
    said = set()
    for child in running:
        assert child.stdin is not None
        os.write(child.stdin, b"go\n")
    for process_ in bridges:
        assert process_.stdin is not None
        process_.stdin.write(b"go\n")
        process_.stdin.flush()
    assert with_the_sdk(home) == set(servers(str(home.mngr_home)))
    assert len(servers(str(home.mngr_home))) == 1
    for child in running:
        assert child.stdout is not None
        with open(child.stdout, "rb") as out:
            said.add(out.read())
        assert child.wait() == 0
        for fd in (child.stdin, child.stderr):
            assert fd is not None
            os.close(fd)
    for process_ in bridges:
        said.add(process_.communicate()[0])
        assert process_.returncode == 0
    assert said == {b"go %d\n" % number for number in range(20)}


def test_two_that_start_it_at_once_share_it(modal: Sandboxes, home: Home) -> None:
    pids: list[int] = []
    begin = threading.Barrier(8)

    def ask() -> None:
        begin.wait()
        request = modal_client.Request({"do": "call", "name": "find", "words": ["mngr", {}, ""], "sandbox": ""})
        pids.append(request.server)
        modal_client.answered(request, 60)
        request.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 8
    assert len(set(pids)) == 1
    assert len(sockets(home)) == 1


def test_one_that_is_killed_is_told_in_a_line_and_replaced(place: Place, home: Home) -> None:
    (killed,) = servers(str(home.mngr_home))
    with bridge(place, "echo up; exec sleep 1003") as process_:
        assert process_.stdout
        assert process_.stderr
        assert process_.stdout.readline() == b"up\n"
        os.kill(killed, signal.SIGKILL)
        assert process_.wait(30) == 255
        assert process_.stderr.read().count(b"\n") == 1
    host = PROVIDER.reach(place)
    assert host.lines is not None
    wait_until(lambda: "sleep 1003" not in hosts.check(host, "ps -A -o args="), 30)  # it was ended all the same
    host.lines.close()
    (another,) = servers(str(home.mngr_home))
    assert another != killed
    assert len(sockets(home)) == 1


def test_one_that_is_told_to_go_ends_what_it_runs(place: Place, home: Home) -> None:
    (server,) = servers(str(home.mngr_home))
    with bridge(place, "echo up; exec sleep 1004") as process_:
        assert process_.stdout
        assert process_.stdout.readline() == b"up\n"
        os.kill(server, signal.SIGTERM)
        assert process_.wait(30) == 255
    wait_until(lambda: not is_alive(server), 30)
    assert sockets(home) == []
    host = PROVIDER.reach(place)
    assert host.lines is not None
    assert "sleep 1004" not in hosts.check(host, "ps -A -o args=")
    host.lines.close()


def test_one_that_nobody_needs_goes(modal: Sandboxes, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modal_client, "IDLE", 0.1)
    PROVIDER.find()
    wait_until(lambda: not sockets(home), 30)
    wait_until(lambda: not home.processes(), 30)
    assert PROVIDER.find() == {}  # by another


def test_one_whose_home_is_gone_goes(modal: Sandboxes, home: Home) -> None:
    PROVIDER.find()
    (server,) = servers(str(home.mngr_home))
    shutil.rmtree(home.mngr_home)
    wait_until(lambda: not is_alive(server), 30)
    assert sockets(home) == []


def test_another_token_has_another_one(modal: Sandboxes, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    PROVIDER.find()
    monkeypatch.setenv("MODAL_TOKEN_SECRET", "as-wrong")
    with pytest.raises(HostUnreachable, match="does not let you in"):
        PROVIDER.find()
    assert len(set(servers(str(home.mngr_home)))) == 2
    assert not [line for line in home.processes().values() if "as-wrong" in line or "as-stand-in" in line]


def test_what_an_older_one_left_is_replaced(modal: Sandboxes, home: Home) -> None:
    for name in (modal_client.socket_name(), f"{socket_path(str(home.mngr_home))}-modal-other"):
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(name)
    assert PROVIDER.find() == {}
    assert sockets(home) == [modal_client.socket_name()]


def test_it_is_nobodys_child(mngr: Mngr, modal: Sandboxes, home: Home) -> None:
    mngr.ok("host", "list", "--discover")
    (server,) = servers(str(home.mngr_home))
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    parent, session = int(fields[1]), int(fields[3])
    assert parent != os.getpid()
    assert session != os.getsid(0)
    mngr.ok("host", "list", "--discover")
    assert servers(str(home.mngr_home)) == [server]
