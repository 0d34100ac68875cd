"""OTHER MACHINES of tutorial.sh: real machines in a small network of their own, and containers of a podman that is the
tests' alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.e2e import E2eSession, expect
from tests.places.containers import Podman
from tests.places.network import Machine, Network


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


@pytest.fixture
def box(e2e: E2eSession, network: Network) -> Iterator[Machine]:
    """What `ssh box` reaches."""
    e2e.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(network.ssh_config)
    machine = network.boot("box")
    yield machine
    machine.remove()


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with Podman() as podman:
        yield podman


@pytest.fixture
def image(e2e: E2eSession, podman: Podman) -> Iterator[str]:
    """In place of the tutorial's, which is somebody's own."""
    e2e.env |= podman.env
    yield podman.image
    for container in podman.containers():
        podman.run("rm", "--force", "--time", "0", container, check=False)


def test_an_agent_works_on_another_machine_and_its_work_comes_home(e2e: E2eSession, box: Machine) -> None:
    e2e.write_tutorial_block("""
        # A machine that your ssh reaches is a place for agents like this one: NAME@MACHINE.ssh. Nothing else changes, and the
        # work comes home as ever.
        mngr create fix@box.ssh --no-connect -- 'git commit -q --allow-empty -m "Mended on $(hostname)"'
        mngr wait fix --for done
        mngr pull fix
    """)
    expect(
        e2e.run(
            "mngr create fix@box.ssh --no-connect -- 'git commit -q --allow-empty -m \"Mended on $(hostname)\"'",
            comment="there",
        )
    ).to_succeed()
    expect(e2e.run("mngr wait fix --for done")).to_succeed()
    expect(e2e.run("mngr pull fix", comment="and home")).to_succeed()
    expect(e2e.run("git log -1 --format=%s mngr/fix").stdout).to_equal("Mended on box\n")
    expect(e2e.run("mngr destroy fix", input="y\n", comment="nothing is lost")).to_succeed()


def test_a_machine_is_checked_before_it_is_used(e2e: E2eSession, box: Machine) -> None:
    e2e.write_tutorial_block("""
        # Before the first agent goes there: does it have tmux, git and room? What is missing can be installed.
        mngr host check box.ssh
        mngr host check box.ssh --install --json
    """)
    expect(e2e.run("mngr host check box.ssh")).to_succeed().to_contain("tmux", "git", "MB are free")
    nothing = e2e.run("mngr host check box.ssh --install --json", comment="nothing is missing")
    expect(nothing).to_succeed().to_contain('"level": "ok"')
    box.run("mv /usr/bin/tmux /usr/bin/away")
    lacking = e2e.run("mngr host check box.ssh", comment="now something is")
    expect(lacking).to_have_exit_code(1).to_contain("tmux is missing", "--install")


def test_a_machine_gets_the_program_of_an_agent(e2e: E2eSession, box: Machine) -> None:
    e2e.write_tutorial_block("""
        # And the program of a coding agent? It is looked for, and installed only when you ask for it.
        mngr host check box.ssh claude codex
        mngr host check box.ssh claude --install
    """)
    box.run("cat >/usr/local/bin/codex; chmod +x /usr/local/bin/codex", input="#!/bin/sh\necho codex-cli 0.1.0\n")
    lacking = e2e.run("mngr host check box.ssh claude codex", comment="one is missing, and one is too old")
    expect(lacking).to_have_exit_code(1).to_contain("claude is missing", "codex codex-cli 0.1.0 is too old")
    # There is no way from here to any registry: this npm writes down what it is told, and has the package with it.
    box.run("cat >/usr/local/bin/npm; chmod +x /usr/local/bin/npm", input=NPM)
    expect(e2e.run("mngr host check box.ssh claude --install")).to_succeed().to_contain("claude 2.1.300 (Claude Code)")
    told = box.run("cat told").splitlines()
    expect(told[-1]).to_equal("install -g --no-audit --no-fund --loglevel=error @anthropic-ai/claude-code")


NPM = """#!/bin/sh
[ "$1" = install ] || { echo /usr/local; exit; }
echo "$@" >>/root/told
printf '#!/bin/sh\\necho "2.1.300 (Claude Code)"\\n' >/usr/local/bin/claude
chmod +x /usr/local/bin/claude
"""


def test_a_machine_gets_a_name(e2e: E2eSession, network: Network, box: Machine) -> None:
    e2e.write_tutorial_block("""
        # A machine that your ssh does not know by name, and whose key it has never seen. From now on it is gpu.ssh.
        mngr host add gpu.ssh --with target=ada@10.0.0.7 --with port=2222 --accept-new
        mngr host list
    """)
    known = e2e.home / "known_hosts"
    config = e2e.home / "ssh_config"
    mine = f"UserKnownHostsFile {known}\nStrictHostKeyChecking ask\n"
    config.write_text(mine + Path(network.ssh_config).read_text())
    e2e.env["MNGR_CONFIG_PROVIDERS__SSH__CONFIG"] = str(config)
    add = f"mngr host add gpu.ssh --with target=root@{box.address} --with port=22"
    expect(e2e.run(add, comment="a stranger")).to_have_exit_code(5).to_contain("host key is not known", "--accept-new")
    expect(e2e.run(f"{add} --accept-new", comment="taken at its word")).to_succeed()
    expect(e2e.run("mngr host list")).to_match(r"^gpu\.ssh +up +0 +- +Linux")


def test_a_container_lives_with_its_agent(e2e: E2eSession, podman: Podman, image: str) -> None:
    e2e.write_tutorial_block("""
        # A container, made for this one agent, with what it may use. It stops and starts with the agent, and goes with it.
        mngr create try@.podman --with image=localhost/tools --with memory=1g --no-connect -- sleep 1000
        mngr stop try
        mngr host list --json
        mngr start try
        mngr destroy --force try
    """)
    made = f"mngr create try@.podman --with image={image} --with memory=1g --no-connect -- sleep 1000"
    expect(e2e.run(made)).to_succeed()
    limit = podman.run("container", "inspect", "--format", "{{.HostConfig.Memory}}", *podman.containers())
    expect(limit).to_equal(f"{1 << 30}\n")
    expect(e2e.run("mngr stop try")).to_succeed().to_contain("try.podman is stopped")
    expect(e2e.run("mngr host list --json")).to_succeed().to_contain('"name": "try.podman"', '"state": "stopped"')
    expect(e2e.run("mngr start try", comment="with its host")).to_succeed()
    expect(e2e.run("mngr list")).to_match(r"^try +running .* try\.podman")
    expect(e2e.run("mngr destroy --force try")).to_succeed().to_contain("try.podman is removed")
    assert podman.containers() == []


def test_a_container_is_kept_when_that_is_wanted(e2e: E2eSession, podman: Podman, image: str) -> None:
    e2e.write_tutorial_block("""
        # Several agents in one container: it needs a name. --keep-host leaves it as it is when the last of them stops or goes.
        mngr create one@pod.podman --with image=localhost/tools --no-connect -- sleep 1000
        mngr create two@pod.podman --no-connect -- sleep 1000
        mngr stop one two --keep-host
        mngr destroy --force one two --keep-host
    """)
    expect(e2e.run(f"mngr create one@pod.podman --with image={image} --no-connect -- sleep 1000")).to_succeed()
    expect(e2e.run("mngr create two@pod.podman --no-connect -- sleep 1000")).to_succeed()
    assert len(podman.containers()) == 1
    expect(e2e.run("mngr stop one two --keep-host")).to_succeed()
    expect(e2e.run("mngr host list")).to_match(r"^pod\.podman +up +2 +by mngr")
    expect(e2e.run("mngr destroy --force one two --keep-host")).to_succeed()
    expect(e2e.run("mngr host list")).to_match(r"^pod\.podman +up +0 +by mngr")


def test_many_agents_share_containers_that_begin_alike(e2e: E2eSession, podman: Podman, image: str) -> None:
    e2e.write_tutorial_block("""
        # Many agents, each in a container of its own, or a few in each. One is prepared, with the commits and the setup; the
        # others begin as its copies.
        mngr create batch@.podman --count 3 --per-host 2 --setup 'command -v git' --with image=localhost/tools -- sleep 1000
        mngr list 'batch-*'
        mngr destroy --force 'batch-*'
    """)
    create = "mngr create batch@.podman --count 3 --per-host 2 --setup 'command -v git' --with image={} -- sleep 1000"
    expect(e2e.run(create.format(image))).to_succeed().to_contain("preparing", "3 of 3 agents run")
    expect(e2e.run("mngr list 'batch-*'")).to_match(r"^batch-2 .* batch-1\.podman").to_match(
        r"^batch-3 .* batch-3\.podman"
    )
    copied, *others = podman.run("inspect", "--format", "{{.ImageName}}", *podman.containers()).split()
    assert others == [copied] != [image]
    expect(e2e.run("mngr destroy --force 'batch-*'")).to_succeed()
    assert podman.containers() == []
    podman.run("rmi", copied)


def test_a_container_is_stopped_started_and_removed(e2e: E2eSession, podman: Podman, image: str) -> None:
    e2e.write_tutorial_block("""
        # A container is yours to stop, start and remove, too. With it stop the agents that are on it.
        mngr host stop pod.podman --json
        mngr host start pod.podman --json
        mngr host remove pod.podman --json
    """)
    e2e.run(f"mngr create one@pod.podman --with image={image} --no-connect -- sleep 1000", comment="a container")
    expect(e2e.run("mngr host stop pod.podman --json")).to_succeed().to_contain('"stopped"')
    expect(e2e.run("mngr list one")).to_match("^one +stopped")
    expect(e2e.run("mngr host start pod.podman --json")).to_succeed().to_contain('"started"')
    expect(e2e.run("mngr list one", comment="as it was")).to_match("^one +stopped")
    expect(e2e.run("mngr destroy -f one --keep-host")).to_succeed()
    expect(e2e.run("mngr host remove pod.podman --json")).to_succeed().to_contain('"removed"')
    assert podman.containers() == []


def test_containers_outlive_the_home_they_were_made_from(e2e: E2eSession, image: str) -> None:
    e2e.write_tutorial_block("""
        # Your home directory was lost, and the containers were not: look what mngr has made, and take it over, agents and all.
        mngr host list --discover
        mngr host add pod.podman --adopt --json
    """)
    e2e.run(f"mngr create one@pod.podman --with image={image} --no-connect -- sleep 1000", comment="a container")
    for kept in ("hosts", "names"):
        shutil.rmtree(e2e.root / "m" / kept)
    expect(e2e.run("mngr list --names", comment="nothing is known any more").stdout).to_be_empty()
    expect(e2e.run("mngr host list --discover")).to_match(r"^pod\.podman +new")
    expect(e2e.run("mngr host add pod.podman --adopt --json")).to_succeed().to_contain('"one"')
    expect(e2e.run("mngr list")).to_match(r"^one +running .* pod\.podman")


def test_a_machine_with_agents_is_removed_with_them_only_if_told_to(e2e: E2eSession, box: Machine, image: str) -> None:
    e2e.write_tutorial_block("""
        # A machine with agents is not forgotten by accident. --force destroys them first and parks their work; --purge does not.
        mngr host remove box.ssh || echo "exit code $?"
        mngr host remove box.ssh --force
        mngr host remove pod.podman --purge
    """)
    e2e.run("mngr create fix@box.ssh --no-connect -- sleep 1000", comment="an agent on a machine")
    e2e.run(f"mngr create one@pod.podman --with image={image} --no-connect -- sleep 1000", comment="and on another")
    refused = e2e.run('mngr host remove box.ssh || echo "exit code $?"')
    expect(refused).to_contain("1 agent: fix", "exit code 1")
    expect(e2e.run("mngr host remove box.ssh --force")).to_succeed().to_contain("forgotten box.ssh")
    expect(e2e.run("mngr host remove pod.podman --purge")).to_succeed().to_contain("removed pod.podman")
    expect(e2e.run("mngr list --names").stdout).to_be_empty()


def test_a_machine_that_burnt_down_is_forgotten(e2e: E2eSession, box: Machine) -> None:
    e2e.write_tutorial_block("""
        # A machine has burnt down. Nobody will ever answer there: forget it, and the agents that were on it.
        mngr host remove box.ssh --forget --force
    """)
    e2e.run("mngr create fix@box.ssh --no-connect -- sleep 1000", comment="an agent on a machine")
    box.crash()
    expect(e2e.run("mngr list", comment="not gone, as far as anybody knows")).to_match("^fix +unknown")
    expect(e2e.run("mngr host remove box.ssh --forget --force")).to_succeed()
    expect(e2e.run("mngr list --names").stdout).to_be_empty()
