"""Agents over hosts that are made for them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.home import Home, Mngr, wait_until
from tests.places.containers import Podman

STAY = ("command", "--", "sleep", "1000")
# What a setup does to the machine itself is done once; to a work dir, in each.
SETUP = "[ -e /log ] || echo once >/log; touch made-by-setup"


def hosts_of(mngr: Mngr) -> dict[str, str]:
    return {agent["name"]: agent["host"] for agent in mngr.json("list")}


@pytest.mark.parametrize("place", ["podman", "modal"])
def test_hosts_that_are_shared_begin_as_copies_of_one_that_is_prepared(
    mngr: Mngr, home: Home, repo: Path, place: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue({"podman": "pods", "modal": "modal"}[place])
    secret = ("-e", "SECRET=do-not-keep")
    made = mngr.ok("create", f"t@.{place}", "-n", "3", "--per-host", "2", "--setup", SETUP, *secret, *STAY)
    assert made.split() == ["t-1", "t-2", "t-3"]
    on = hosts_of(mngr)
    assert on["t-1"] == on["t-2"] == f"t-1.{place}"
    assert on["t-3"] == f"t-3.{place}"
    for name in on:
        told = mngr.ok("exec", name, "--", "sh", "-c", "cat /log; ls made-by-setup; git log --oneline | wc -l")
        assert told.split() == ["once", "made-by-setup", "1"]
        # Of who prepared it there is nothing: no agent, and no secret.
        assert mngr.ok("exec", name, "--", "sh", "-c", 'ls "$MNGR_HOME/agents" | wc -l').split() == [
            "1" if name == "t-3" else "2"
        ]
    assert sorted(host["name"] for host in mngr.json("host", "list")) == ["local", f"t-1.{place}", f"t-3.{place}"]
    mngr.ok("destroy", "-f", "t-1", "t-2", "t-3")
    assert [host["name"] for host in mngr.json("host", "list")] == ["local"]


def test_an_image_is_left_over_when_its_time_is_up_and_no_host_has_it(mngr: Mngr, pods: Podman) -> None:
    mngr.ok("create", "t@.podman", "-n", "2", *STAY)
    assert hosts_of(mngr) == {"t-1": "t-1.podman", "t-2": "t-2.podman"}
    image, *others = pods.run("inspect", "--format", "{{.ImageName}}", *pods.containers()).split()
    assert others == [image]
    old = f"{image.rpartition('-')[0]}-1700000000"
    pods.run("tag", image, old)
    mngr.ok("create", "x@.podman", "--with", f"image={old}", *STAY)
    mngr.ok("destroy", "-f", "t-1", "t-2")
    assert "image" not in mngr.ok("gc", "--dry-run")  # one is too young, of the other there is a host
    mngr.ok("destroy", "-f", "x")
    assert f"podman:{old}: image that hosts began from, and none is left of" in mngr.ok("gc", "--dry-run")
    mngr.ok("gc")
    assert pods.run("images", "--quiet", old) == ""
    assert pods.run("images", "--quiet", image)


def test_a_setup_that_fails_leaves_nothing(mngr: Mngr, pods: Podman) -> None:
    failed = mngr("create", "t@.podman", "-n", "3", "--setup", "exit 3", *STAY)
    assert failed.code == 1
    assert "setup" in failed.err
    assert mngr.json("list") == []
    assert [host["name"] for host in mngr.json("host", "list")] == ["local"]
    assert pods.containers() == []


def test_an_interrupted_create_keeps_what_is_made_and_leaves_no_host_without_an_agent(
    mngr: Mngr, home: Home, pods: Podman
) -> None:
    hang = "[ -e /log ] || { echo once >/log; exit; }; case $MNGR_AGENT_NAME in t-1) ;; *) sleep 1000 ;; esac"
    said = home.root / "said"
    with said.open("w") as told:
        creating = mngr.popen("create", "t@.podman", "-n", "4", "--setup", hang, *STAY, stderr=told)
    wait_until(lambda: "1 of 4 agents run" in said.read_text(), 60)
    creating.send_signal(signal.SIGINT)
    creating.communicate(timeout=60)
    assert creating.returncode == 130
    assert hosts_of(mngr) == {"t-1": "t-1.podman"}
    assert [host["name"] for host in mngr.json("host", "list")] == ["local", "t-1.podman"]
    assert len(pods.containers()) == 1


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("where", ["t", "t@box.ssh", "t@pod.podman"])
def test_only_hosts_that_are_made_are_shared_out(mngr: Mngr, where: str) -> None:
    refused = mngr("create", where, "-n", "2", "--per-host", "1", *STAY)
    assert refused.code == 2
    assert "--per-host is for hosts that are made" in refused.err
