"""The directory of an integration: one at a time, and a log that survives whoever was killed while writing it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mngr.errors import MngrError
from mngr.integrate import api
from mngr.integrate.log import Log, directory_of
from mngr.integrate.wanted import Wanted


def test_who_comes_second_is_told_who_was_first(tmp_path: Path) -> None:
    with Log(str(tmp_path / "it")), pytest.raises(MngrError, match=f"process {os.getpid()}"), Log(str(tmp_path / "it")):
        pass
    with Log(str(tmp_path / "it")) as log:
        assert log.events == []


def test_the_next_one_knows_what_was_done_before(tmp_path: Path) -> None:
    with Log(str(tmp_path)) as log:
        log.note("publishing", branch="review", commit="1" * 40)
    with Log(str(tmp_path)) as log:
        (event,) = log.events
    assert (event["event"], event["branch"]) == ("publishing", "review")


def test_half_a_line_is_passed_over_and_swallows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "began"}\n{"event": "publi')
    with Log(str(tmp_path)) as log:
        assert [each["event"] for each in log.events] == ["began"]
        log.note("done")
    assert json.loads(path.read_text().splitlines()[-1])["event"] == "done"
    with Log(str(tmp_path)) as log:
        assert [each["event"] for each in log.events] == ["began", "done"]


def test_branches_and_repositories_do_not_share_a_directory() -> None:
    places = {
        directory_of("/home", repo, into) for repo in ("/one", "/two") for into in ("a/b", "a-b", "é", "ü", "x" * 200)
    }
    assert len(places) == 10
    assert all(len(os.path.basename(place)) < 60 for place in places)


def test_a_full_disk_names_the_directory_and_not_what_was_to_be_copied_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/else/program.py")

    monkeypatch.setattr(api, "look_at", lambda *_: SimpleNamespace(notes=[], directory=str(tmp_path)))
    monkeypatch.setattr(api._Work, "done", full)
    fleet: Any = None
    with pytest.raises(OSError, match="No space left") as caught:
        api.integrate(fleet, Wanted())
    assert caught.value.filename == str(tmp_path)
