"""What docs/hosts.md, docs/modal.md and docs/providers.md show is what happens: their lines are run, in the order of
the page, with real machines and containers in the place of those that the pages speak of. So is what help pages say of
exit codes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mngr.hosts.owner import home_id
from mngr.testing import Control
from tests.e2e.test_docs import ROOT, blocks
from tests.home import Home, Mngr, wait_until
from tests.places.containers import Podman
from tests.places.network import Machine, close_connections
from tests.places.sandboxes import Sandboxes

HOSTS, MODAL, PROVIDERS = (ROOT / "docs" / name for name in ("hosts.md", "modal.md", "providers.md"))
STAY = 'type = "stay"\n[agent_types.stay]\nparent = "command"\nargs = ["sleep", "1000"]\n'


def lines(page: Path) -> list[str]:
    """Of its shell blocks, without remarks."""
    found = [line.partition("#")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in found if line]


@pytest.fixture
def world(home: Home, repo: Path, pods: Podman, box: Machine) -> Home:
    """`create` has something to run unless told; docker is podman, as in the package podman-docker."""
    (home.mngr_home / "config.toml").write_text(f'{STAY}[providers.docker]\nimage = "{pods.image}"\n')
    shim = home.path / "bin" / "docker"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec {shutil.which("podman")} "$@"\n')
    shim.chmod(0o755)
    home.env["PATH"] = f"{shim.parent}:{home.env['PATH']}"
    return home


class Page:
    """The lines of a page that have not been run yet."""

    def __init__(self, home: Home, page: Path) -> None:
        self._home, self._left = home, lines(page)

    def run(self, line: str, instead: Mapping[str, str] | None = None) -> str:
        """The next one, which reads so; with words of it replaced by what is there."""
        assert self._left[:1] == [line], "the page shows something else"
        self._left.pop(0)
        for word, other in (instead or {}).items():
            line = line.replace(word, other)
        return self._home.run("sh", "-c", line)

    def skip(self, line: str) -> None:
        """What was done before this test began."""
        assert self._left[:1] == [line], "the page shows something else"
        self._left.pop(0)

    def end(self) -> None:
        assert self._left == [], "the page shows more"


def host_of(mngr: Mngr, name: str) -> str:
    (host,) = [agent["host"] for agent in mngr.json("list") if agent["name"] == name]
    return str(host)


def test_the_lines_of_the_page_about_hosts(world: Home, mngr: Mngr, box: Machine, pods: Podman) -> None:
    page = Page(world, HOSTS)
    for line, host in (
        ("mngr create fix", "local"),
        ("mngr create fix@box.ssh", "box.ssh"),
        ("mngr create fix@.docker", "fix.docker"),
        ("mngr create fix@pod.docker", "pod.docker"),
    ):
        page.run(line)
        assert host_of(mngr, "fix") == host
        mngr.ok("wait", "fix", "--for", "running", "--timeout", "30")
        mngr.ok("destroy", "-f", "fix")
    assert pods.containers() == []

    give_ada_a_door(box)
    page.run("mngr host add gpu.ssh --with target=ada@10.0.0.7 --with port=2222", {"10.0.0.7": box.address})
    assert "tmux" in page.run("mngr host check gpu.ssh --install")
    assert mngr.ok("exec", start_on(mngr, "gpu.ssh"), "--", "id", "-un") == "ada\n"
    mngr.ok("destroy", "-f", "--all")

    line = "mngr create try@.podman --with image=localhost/tools --with memory=2g --with network=none"
    page.run(line, {"localhost/tools": pods.image})
    asked = "{{.ImageName}} {{.HostConfig.Memory}} {{.HostConfig.NetworkMode}}"
    (made,) = pods.containers()
    assert pods.run("container", "inspect", "--format", asked, made).split() == [pods.image, str(2 << 30), "none"]
    mngr.ok("destroy", "-f", "try")

    line = "mngr create batch@.podman --count 20 --per-host 5 --setup 'make deps'"
    page.run(line, {"20": "3", "5": "2", "make deps": "touch deps"})
    assert [host_of(mngr, f"batch-{number}") for number in (1, 2, 3)] == [
        "batch-1.podman",
        "batch-1.podman",
        "batch-3.podman",
    ]
    mngr.ok("destroy", "-f", "--all")

    mngr.ok("create", "one@pod.podman", "--with", f"image={pods.image}")
    for lost in ("names", "hosts", "seen"):
        shutil.rmtree(world.mngr_home / lost, ignore_errors=True)
    assert mngr.json("list") == []
    assert "pod.podman" in page.run("mngr host list --discover")
    assert page.run("mngr host add pod.podman --adopt") == "added pod.podman\nadopted one\n"
    assert host_of(mngr, "one") == "pod.podman"
    mngr.ok("destroy", "-f", "one")
    page.end()


def test_the_lines_of_the_page_about_modal(home: Home, repo: Path, mngr: Mngr, modal: Sandboxes) -> None:
    (home.mngr_home / "config.toml").write_text(STAY)
    page = Page(home, MODAL)
    page.skip("pip install 'mngr[modal]'")
    page.skip("modal token new")  # the stand-in's is in the environment
    page.run("mngr create fix@.modal")
    assert host_of(mngr, "fix") == "fix.modal"
    line = "mngr create try@big.modal --with cpu=8 --with memory=16384 --with timeout=8h"
    page.run(line, {"=8 ": "=0.5 ", "16384": "256"})
    page.run("mngr create more@big.modal")
    page.end()
    assert {host_of(mngr, "try"), host_of(mngr, "more")} == {"big.modal"}
    big = {each["tags"]["mngr.host"]: each for each in ours(modal)}["big"]
    assert big["definition"]["timeout_secs"] == 8 * 3600
    assert big["definition"]["resources"].items() >= {"memory_mb": 256, "milli_cpu": 500}.items()
    mngr.ok("destroy", "-f", "--all")
    assert ours(modal) == []


def ours(modal: Sandboxes) -> list[dict[str, Any]]:
    """Other tests of this process have some, too."""
    return [sandbox for sandbox in modal.running() if sandbox["tags"]["mngr.home"] == home_id()]


def start_on(mngr: Mngr, host: str) -> str:
    mngr.ok("create", f"there@{host}")
    return "there"


def give_ada_a_door(box: Machine) -> None:
    """A user of hers, and an sshd on another port, whose key is known."""
    with open(box.network.directory / "known_hosts", "a") as known:
        known.write(f"[{box.address}]:2222 {box.host_key}\n")
    box.run(
        "useradd --create-home --shell /bin/sh --password '*' ada && cp -r /root/.ssh /home/ada/ &&"
        " chown -R ada: /home/ada/.ssh"
    )
    box.serve(2222, "-o", "PidFile=/run/second.pid")


def test_the_power_over_a_host_that_the_page_about_providers_shows(mngr: Mngr, repo: Path, box: Machine) -> None:
    """The fixture of the page, word by word, with a real machine: it does what the table beside it says."""
    (shown,) = [block for block in blocks(PROVIDERS, "") if "def control" in block]
    names: dict[str, Any] = {"Control": Control}
    exec(f"class Shown:\n{shown.replace('@pytest.fixture', '')}", names)
    power = SimpleNamespace(unplug=box.cut, plug=box.heal, power_off=box.crash, power_on=box.boot)
    control = names["Shown"]().control(power)
    mngr.ok("create", "far@box.ssh", "command", "--", "sleep", "1000")
    for lose, regain, state in (("cut", "heal", "running"), ("crash", "boot", "stopped")):
        getattr(control, lose)()
        assert mngr("exec", "far", "--", "true").code == 5
        getattr(control, regain)()
        wait_until(lambda: mngr.json("list")[0]["state"] != "unknown", 60)
        assert mngr.json("list")[0]["state"] == state


# A host that cannot be reached is exit code 5, whichever verb needs it.

NEED_IT = """
explain far
capture far
events far
connect far
message far -m hello
exec far -- true
exec far --json -- true
exec far --timeout 5s -- true
pull far
pull far:README.md x
push far
push README.md far:x
snapshot create far
snapshot list far
snapshot restore far good
snapshot destroy far good
clone far twin
create more@box.ssh command -- true
start far
stop far
rename far near
label far a=b
destroy far
destroy -f far
host check box.ssh
host add box.ssh
"""
DO_WITHOUT = """
list
list far
usage
gc
host list
"""


@pytest.fixture
def away(home: Home, mngr: Mngr, repo: Path, box: Machine) -> Machine:
    """One with an agent `far` and its snapshot, where nobody answers any more."""
    mngr.ok("create", "far@box.ssh", "command", "--", "sleep", "1000")
    mngr.ok("snapshot", "create", "far", "good")
    close_connections(home.mngr_home)
    box.hang_up()
    return box


def test_who_needs_a_host_that_is_away_says_so(home: Home, mngr: Mngr, away: Machine) -> None:
    for line in NEED_IT.strip().splitlines():
        done = mngr(*line.split())
        assert done.code == 5, (line, done)
        assert "mngr: " in done.err, line
        assert "5" in codes(mngr, line.split()), line
    for line in DO_WITHOUT.strip().splitlines():
        assert mngr(*line.split()).code == 0, line
    assert [each["name"] for each in mngr.json("list")] == ["far"]
    assert list(home.cwd.glob("x")) == []


def codes(mngr: Mngr, words: list[str]) -> list[str]:
    """Those that the help of the verb tells."""
    page = mngr.ok(*words[: 2 if words[0] in ("host", "snapshot") else 1], "--help")
    return [line.split()[0] for line in page.partition("\nExit codes\n")[2].splitlines()]
