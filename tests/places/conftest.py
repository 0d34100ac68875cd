"""Places for agents to be in, for the tests of this directory: network.py, containers.py and
sandboxes.py have what they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.hosts.owner import home_id
from tests.home import Home
from tests.places.containers import Podman
from tests.places.network import Machine, Network, close_connections
from tests.places.sandboxes import Sandboxes, end_servers


@pytest.fixture(scope="session")
def network() -> Iterator[Network]:
    """A network without machines. What a test boots, it removes, or others of this worker can use it too."""
    with Network() as network:
        yield network


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    with Podman() as podman:
        yield podman


@pytest.fixture(scope="session")
def sandboxes(podman: Podman) -> Iterator[Sandboxes]:
    """The stand-in for Modal. Whoever makes things go wrong there sets them right again."""
    with Sandboxes(podman) as sandboxes:
        yield sandboxes


@pytest.fixture
def modal(home: Home, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandboxes]:
    """`NAME@.modal` is a sandbox of the stand-in, for the `mngr` of this home and for the SDK in this process."""
    home.env.update(sandboxes.env)
    monkeypatch.setenv("MNGR_HOME", str(home.mngr_home))
    for name, value in sandboxes.env.items():
        monkeypatch.setenv(name, value)
    yield sandboxes
    end_servers(str(home.mngr_home))


@pytest.fixture
def over_ssh(home: Home, network: Network) -> Iterator[Network]:
    """`NAME@box.ssh` is the machine `box` of the network, for the `mngr` of this home."""
    home.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(network.ssh_config)
    yield network
    close_connections(home.mngr_home)


@pytest.fixture
def box(over_ssh: Network) -> Iterator[Machine]:
    """A machine of this test's own."""
    machine = over_ssh.boot("box")
    yield machine
    machine.remove()


@pytest.fixture
def pods(home: Home, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Podman]:
    """`NAME@.podman` is a container of the tests' own podman, for the `mngr` of this home; it knows those of this test
    alone, and removes them: their processes have this home in their environment."""
    with Podman() as podman:
        home.env |= podman.env
        home.env["MNGR_CONFIG_PROVIDERS__PODMAN__IMAGE"] = podman.image
        yield podman
        monkeypatch.setenv("MNGR_HOME", str(home.mngr_home))
        if images := podman.run("images", "--quiet", f"localhost/mngr-{home_id()}").split():
            podman.run("rmi", "--force", *images)
