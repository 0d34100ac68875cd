"""Callers that close streams, have no UTF-8, or point the home at a file: one clear line, or the plain answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.home import Home, Mngr


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_nothing_else(mngr: Mngr, home: Home, repo: Path, closed: str) -> None:
    mngr.ok("create", "a", "command", "--", "sleep", "1000")
    said = home.run(
        "sh", "-c", f"(mngr list; mngr exec a -- true; mngr create b command -- sleep 1000) {closed}; echo $?"
    )
    assert said.split()[-1] == "0"
    assert "Traceback" not in said
    assert mngr.ok("list", "--names") == "a\nb\n"


def test_what_a_stream_cannot_show_is_spelled_out(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--label", "who=Jörg", "--", "sleep", "1000")
    ascii_only = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    result = mngr("list", "--labels", env=ascii_only)
    assert (result.code, result.err) == (0, "")
    assert "who=J\\xf6rg" in result.out


def test_a_home_that_is_a_file_is_refused(mngr: Mngr, home: Home) -> None:
    place = home.path / "file"
    place.write_text("")
    result = mngr("list", env={"MNGR_HOME": str(place)})
    assert result.code == 1
    assert result.err.startswith(f"mngr: {place} is not a directory\n")


def test_a_width_beyond_all_memory_is_a_usage_error(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "sleep", "1000")
    assert mngr("list", "--format", "{name:99999999999999}").code == 2


def test_an_empty_lock_is_taken_over(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "sleep", "1000")
    mngr.ok("stop", "a")
    (home.mngr_home / "start.lock").write_text("")
    mngr.ok("start", "a")


def test_an_agents_own_create_does_not_attach_to_it(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "outer", "command", "--", "mngr create inner command -- sleep 1000; touch returned; sleep 1000")
    mngr.ok("wait", "outer", "--for", "running", "--timeout", "10")
    mngr.ok("exec", "outer", "--timeout", "10", "--", "until [ -e returned ]; do sleep 0.05; done")


def test_a_home_with_quotes_and_blanks_in_its_path(mngr: Mngr, home: Home) -> None:
    """Its socket is elsewhere, by the path; locks, traps and hooks have to quote it."""
    place = {"MNGR_HOME": str(home.root / 'it\'s "a" home')}
    try:
        mngr.ok("create", "a", "command", "--mode", "none", "--", "sleep", "100", env=place)
        assert mngr.ok("stop", "a", env=place) == "stopped a\n"
        assert mngr.ok("start", "a", env=place) == "started a\n"
        assert mngr.ok("label", "a", "x=y", env=place) == "labelled a\n"
    finally:
        assert mngr.ok("destroy", "-f", "--all", env=place) == "destroyed a\n"
    assert [path.name for path in Path(place["MNGR_HOME"]).glob("*.lock")] == []
