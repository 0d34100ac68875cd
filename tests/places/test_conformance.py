"""The suite that every provider passes, on every kind of host that mngr knows itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mngr import hosts, registry
from mngr.hosts.local import LocalHost
from mngr.process import quote
from mngr.testing import Control, HostConformance, arrived
from mngr.testing.running import AWKWARD
from mngr.testing.stream import Stream
from tests.home import Home
from tests.places.containers import Podman
from tests.places.network import Machine, Network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts import Host


class TestLocal(HostConformance):
    @pytest.fixture
    def host(self, home: Home) -> Host:
        return LocalHost(str(home.mngr_home))


@pytest.fixture(scope="module")
def machine(network: Network) -> Iterator[Machine]:
    machine = network.boot("conforming")
    yield machine
    machine.remove()


@pytest.fixture
def ssh(network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    monkeypatch.setenv("MNGR_CONFIG_PROVIDERS__SSH__CONFIG", str(network.ssh_config))


class TestSsh(HostConformance):
    @pytest.fixture
    def host(self, ssh: None, machine: Machine) -> Iterator[Host]:
        with closing_lines(arrived(registry.provider("ssh"), f"{machine.name}.ssh")) as host:
            yield host

    @pytest.fixture
    def control(self, machine: Machine) -> Control:
        return Control(cut=machine.cut, heal=machine.heal, crash=machine.crash, boot=machine.boot)


NOISE = "echo welcome; echo have a nice day >&2; true"


def test_login_files_that_talk_disturb_nobody(ssh: None, machine: Machine) -> None:
    machine.run(f"printf '%s\\n' '{NOISE}' >.bashrc && cp .bashrc .profile")
    try:
        assert (
            subprocess.run(
                ["ssh", "-F", os.environ["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"], machine.name, "true"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            ).stdout
            == "welcome\n"
        )
        with closing_lines(arrived(registry.provider("ssh"), f"{machine.name}.ssh")) as host:
            for _ in range(2):
                done = hosts.run(host, "echo out; echo err >&2; exit 3")
                assert (done.code, done.out, done.err) == (3, "out\n", "err\n")
    finally:
        machine.run("rm .bashrc .profile")


@pytest.mark.parametrize("shell", ["bash", "dash", "fish", "zsh", "csh"])
def test_any_login_shell_will_do(ssh: None, machine: Machine, shell: str) -> None:
    if not machine.run(f"command -v {shell}", check=False):
        pytest.skip(f"there is no {shell} here")
    machine.run(f"usermod --shell $(command -v {shell}) root")
    try:
        with closing_lines(arrived(registry.provider("ssh"), f"{machine.name}.ssh")) as host:
            for text in AWKWARD:
                assert hosts.check(host, f"printf %s {quote(text)}") == text
            with Stream(host, "printf '%s\\0' \"$@\"; ps -o comm= -p $$; exit 255", AWKWARD) as stream:
                out, _, code = stream.rest()
            assert code == 255
            assert out.split(b"\0") == [*map(os.fsencode, AWKWARD), b"sh\n"]
    finally:
        machine.run("usermod --shell /bin/bash root")


@contextmanager
def closing_lines(host: Host) -> Iterator[Host]:
    try:
        yield host
    finally:
        assert host.lines is not None
        host.lines.close()


@pytest.fixture(scope="module")
def container(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its name; made by the provider itself."""
    with pytest.MonkeyPatch.context() as patch:
        in_podman(patch, podman, tmp_path_factory)
        name = registry.provider("podman").make("conforming", {"image": podman.image}, lambda _: None)
    yield name
    podman.run("rm", "--force", "--time", "0", name)


def in_podman(patch: pytest.MonkeyPatch, podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> None:
    for key, value in podman.env.items():
        patch.setenv(key, value)
    patch.setenv("MNGR_HOME", str(tmp_path_factory.getbasetemp() / "podman"))


class TestPodman(HostConformance):
    @pytest.fixture
    def host(
        self,
        container: str,
        podman: Podman,
        tmp_path_factory: pytest.TempPathFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> Iterator[Host]:
        in_podman(monkeypatch, podman, tmp_path_factory)
        with closing_lines(arrived(registry.provider("podman"), "conforming.podman", id=container)) as host:
            yield host

    @pytest.fixture
    def control(self, container: str, podman: Podman) -> Control:
        return Control(
            crash=lambda: void(podman.run("kill", "--signal", "KILL", container)),
            boot=lambda: void(podman.run("start", container)),
        )


def void(_: str) -> None:
    pass
