"""The machines of tests are what they claim to be: as far apart as real ones, and as easily lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.home import is_alive, wait_until
from tests.places.network import NETNS, Machine, Network, remove_leftovers


@pytest.fixture
def box(network: Network) -> Iterator[Machine]:
    box = network.boot("box")
    yield box
    box.remove()


def ssh(network: Network, *words: str) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(network.ssh_config), "-o", "BatchMode=yes", *words]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=60)


def test_a_machine_has_a_name_and_processes_and_files_of_its_own(network: Network, box: Machine) -> None:
    other = network.boot("other")
    try:
        other.run("sleep 1000 >/dev/null 2>&1 & echo there > /root/note")
        asked = ssh(network, "box", "hostname; cat /proc/1/comm; ls -A /root /tmp; ps -e -o args")
        name, first, *rest = asked.stdout.splitlines()
        assert (asked.returncode, name, first) == (0, "box", "sh"), asked.stderr
        assert rest[: rest.index("/tmp:")] == ["/root:", ".ssh", ""]
        assert "sleep 1000" not in rest
        assert "sleep 1000" in other.run("ps -e -o args")
        assert other.run("hostname; cat note") == "other\nthere\n"
    finally:
        other.remove()
    assert not Path("/root/note").exists()


def test_a_machine_has_terminals(network: Network, box: Machine) -> None:
    assert ssh(network, "-tt", "box", "tty").stdout.strip() == "/dev/pts/0"


def test_a_client_inside_the_network_needs_no_relay(network: Network, box: Machine) -> None:
    argv = [*network.prefix, "ssh", "-F", str(network.ssh_config), "-o", "ProxyCommand=none", "box", "hostname"]
    assert subprocess.run(argv, text=True, capture_output=True, timeout=60).stdout == "box\n"


def test_data_passes_whole_both_ways(network: Network, box: Machine) -> None:
    data = os.urandom(5_000_000)
    argv = ["ssh", "-F", str(network.ssh_config), "box", "tee copy"]
    assert subprocess.run(argv, input=data, capture_output=True, timeout=60).stdout == data
    assert box.run("wc -c < copy").strip() == "5000000"


def test_a_machine_that_is_cut_off_is_silent_until_it_heals(network: Network, box: Machine) -> None:
    box.cut()
    lost = ssh(network, "-o", "ConnectTimeout=1", "box", "true")
    assert (lost.returncode, "timed out" in lost.stderr) == (255, True), lost.stderr
    box.heal()
    assert ssh(network, "box", "true").returncode == 0


def test_an_open_connection_outlives_a_cut(network: Network, box: Machine) -> None:
    argv = ["ssh", "-F", str(network.ssh_config), "box", "echo begun; read line; echo $line"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdin
        assert client.stdout
        assert client.stdout.readline() == "begun\n"
        box.cut()
        client.stdin.write("after all\n")
        client.stdin.flush()
        box.heal()
        assert client.stdout.readline() == "after all\n"


def test_without_its_sshd_a_machine_refuses_and_lives_on(network: Network, box: Machine) -> None:
    box.hang_up()
    refused = ssh(network, "box", "true")
    assert (refused.returncode, "Connection refused" in refused.stderr) == (255, True), refused.stderr
    box.serve()
    assert ssh(network, "box", "hostname").stdout == "box\n"


def test_a_crash_loses_what_runs_and_keeps_the_files(network: Network, box: Machine) -> None:
    made = ssh(network, "box", "tmux new-session -d sleep 1000 && touch /root/kept /etc/kept /tmp/lost && sync")
    assert made.returncode == 0, made.stderr
    box.crash()
    down = ssh(network, "-o", "ConnectTimeout=1", "box", "true")
    assert (down.returncode, "timed out" in down.stderr) == (255, True), down.stderr
    box.boot()
    assert ssh(network, "box", "ls /root/kept /etc/kept; ls -A /tmp").stdout == "/etc/kept\n/root/kept\n"
    assert ssh(network, "box", "tmux list-sessions").returncode == 1


def test_a_crash_is_not_told_to_those_who_are_connected(network: Network, box: Machine) -> None:
    alive = ["-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=1"]
    argv = ["ssh", "-F", str(network.ssh_config), *alive, "box", "echo begun; sleep 1000"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        assert client.stdout
        assert client.stderr
        assert client.stdout.readline() == "begun\n"
        box.crash()
        assert "not responding" in client.stderr.read()
    assert client.returncode == 255


def test_a_removed_machine_makes_room_for_a_new_one_of_its_name(network: Network) -> None:
    first = network.boot("twice")
    first.run("touch note")
    first.remove()
    second = network.boot("twice")
    try:
        assert second.host_key != first.host_key
        assert ssh(network, "twice", "hostname; ls").stdout == "twice\n"
    finally:
        second.remove()
    assert ssh(network, "twice", "true").returncode == 255


def test_nothing_outlives_a_network() -> None:
    with Network() as network:
        network.boot("one").run("setsid sleep 1000 >/dev/null 2>&1 &")
        assert {path.name for path in NETNS.iterdir()} >= {network.name, f"{network.name}-one"}
    assert not [path for path in NETNS.iterdir() if path.name.startswith(network.name)]
    assert not network.directory.exists()


KILLED = """
import os, signal
from tests.places.network import Network
network = Network().__enter__()
machine = network.boot("one")
print(network.name, network.directory, machine._first_process(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_leaves_is_removed_by_the_next() -> None:
    top = Path(__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=top, text=True, capture_output=True, timeout=60)
    name, directory, first = killed.stdout.split()
    wait_until(lambda: not is_alive(int(first)), what="the machine to end with its network's process")
    remove_leftovers()
    assert not [path for path in NETNS.iterdir() if path.name.startswith(name)]
    assert not Path(directory).exists()
