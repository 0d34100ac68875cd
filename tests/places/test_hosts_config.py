"""Machines that our own configuration knows how to reach: `[hosts.NAME]`."""

from __future__ import annotations

from pathlib import Path

from tests.home import Home, Mngr
from tests.places.network import Machine


def test_a_machine_under_a_name_of_ours(home: Home, mngr: Mngr, repo: Path, box: Machine) -> None:
    file = home.mngr_home / "config.toml"
    file.write_text('[hosts.alias]\ntarget = "box"\nhome = "~/elsewhere"\n')
    mngr.ok("create", "foo@alias.ssh", "command", "--", "sleep", "1000")
    assert mngr.ok("exec", "foo", "--", "sh", "-c", "hostname; echo ${MNGR_HOME##*/}") == "box\nelsewhere\n"
    file.write_text('[hosts.alias]\ntarget = "nowhere.invalid"\n')
    assert mngr.json("list")[0]["state"] == "unknown"
    file.write_text('[hosts.alias]\ntarget = "box"\n')
    assert mngr.json("list")[0]["host"] == "alias.ssh"
    mngr.ok("destroy", "-f", "foo")
