"""`[hosts.NAME]` says how ssh reaches a machine, below what was given for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr import config
from mngr.hosts.place import Place
from mngr.hosts.ssh import command, target


def test_a_machine_of_our_own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text('[hosts.box]\ntarget = "ada@far"\nport = 2222\nkey = "/k"\njump = "gate"\n')
    config.forget(overrides=True)
    place = Place(name="box.ssh")
    assert target(place) == "ada@far"
    words = " ".join(command(place))
    assert words.endswith("-p 2222 -i /k -J gate")
    given = place.replace(options={"target": "bob@near", "port": "22"})
    assert target(given) == "bob@near"
    assert " ".join(command(given)).endswith("-p 22 -i /k -J gate")
    assert target(Place(name="other.ssh")) == "other"
    config.forget()
