"""A provider of hosts from a plugin: here a second home on this machine, reached by the same contract as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.home import Home, Mngr

CELLAR = """
import os
from mngr.hosts.local import LocalHost
from mngr.hosts.provider import Standing

class Cellar(Standing):
    name = "cellar"

    def reach(self, place):
        host = LocalHost(os.environ["HOME"] + "/cellar-" + place.host)
        host.name = place.name
        return host

def mngr_providers():
    return {"cellar": "cellar_plugin:Cellar"}
"""


@pytest.fixture
def with_cellar(home: Home, repo: Path) -> dict[str, str]:
    """The environment in which the plugin is installed."""
    site = home.path / "site"
    info = site / "mngr_cellar-1.dist-info"
    info.mkdir(parents=True)
    (site / "cellar_plugin.py").write_text(CELLAR)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mngr-cellar\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[mngr]\ncellar = cellar_plugin\n")
    return {**home.env, "PYTHONPATH": str(site)}


def test_agents_elsewhere_are_listed_reached_and_removed_like_any_other(
    mngr: Mngr, with_cellar: dict[str, str]
) -> None:
    def ok(*words: str) -> str:
        result = mngr(*words, env=with_cellar)
        assert result.code == 0, result.err
        return result.out

    ok("create", "far@box.cellar", "command", "--", "cat")
    ok("create", "near", "command", "--", "sleep", "1000")
    ok("wait", "far", "near", "--for", "running", "--timeout", "10")
    assert ok("list", "--format", "{name} {state} {host}") == "far running box.cellar\nnear running local\n"
    assert ok("exec", "far", "--", "sh", "-c", "echo $MNGR_HOME").endswith("/cellar-box\n")
    assert ok("message", "--all", "-m", "hello") == "typed far\ntyped near\n"
    assert sorted(ok("stop", "--all").splitlines()) == ["stopped far", "stopped near"]
    ok("start", "far")
    assert ok("gc", "--dry-run") == "nothing is left over\n"
    ok("destroy", "-f", "far")
    assert ok("list", "--names") == "near\n"


def test_agents_on_a_host_out_of_reach_are_unknown_and_never_gone(mngr: Mngr, with_cellar: dict[str, str]) -> None:
    assert mngr("create", "far@box.cellar", "command", "--", "sleep", "1000", env=with_cellar).code == 0
    mngr.ok("create", "near", "command", "--", "sleep", "1000")
    mngr.ok("wait", "near", "--for", "running", "--timeout", "10")
    states = {each["name"]: (each["state"], each["reason"]) for each in mngr.json("list")}
    assert states == {"far": ("unknown", "host cannot be reached"), "near": ("running", "")}
    assert mngr("destroy", "-f", "far").code != 0
    assert mngr.ok("list", "--names") == "far\nnear\n"
    assert mngr("destroy", "-f", "far", env=with_cellar).code == 0
