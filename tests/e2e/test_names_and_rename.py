"""rename and label: what an agent is called and marked with, changed while it goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.agents import SLEEP, agent, launched, work_dir
from tests.home import Home, Mngr, wait_until


@pytest.fixture
def foo(mngr: Mngr, repo: Path) -> dict[str, Any]:
    mngr.ok("create", "foo", "command", "--label", "a=1", *SLEEP)
    launched(mngr.home, 1)
    return agent(mngr, "foo")


# rename.


def test_rename_changes_the_name_and_nothing_else(mngr: Mngr, home: Home, foo: dict[str, Any]) -> None:
    pane = home.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid} #{pane_dead}")
    assert mngr.ok("rename", "foo", "bar") == "renamed foo to bar (branch stays mngr/foo)\n"
    assert agent(mngr, "bar") == {**foo, "name": "bar"}
    assert home.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid} #{pane_dead}") == pane
    assert home.tmux("show", "-v", "-t", f"={foo['id']}:", "@name") == "bar\n"


def test_the_old_name_is_free_again(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    mngr.ok("rename", "foo", "bar")
    assert mngr("explain", "foo").code == 3
    mngr.ok("create", "foo", "command", "--branch", "mngr/foo-2", *SLEEP)
    assert mngr.ok("list", "--names") == "bar\nfoo\n"
    assert agent(mngr, "foo")["id"] != foo["id"]


def test_the_environment_has_the_new_name_from_the_next_start_on(mngr: Mngr, repo: Path) -> None:
    program = 'echo "$MNGR_AGENT_NAME" >>names; exec sleep 100'
    mngr.ok("create", "foo", "command", "--", program)
    names = work_dir(mngr, "foo") / "names"
    assert wait_until(lambda: names.exists() and names.read_text()) == "foo\n"
    mngr.ok("rename", "foo", "bar")
    mngr.ok("stop", "bar")
    mngr.ok("start", "bar")
    assert wait_until(lambda: len(names.read_text().split()) == 2)
    assert names.read_text() == "foo\nbar\n"


def test_verbs_work_under_the_new_name(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    mngr.ok("rename", "foo", "bar")
    mngr.ok("message", "bar", "-m", "hello")
    mngr.ok("snapshot", "create", "bar", "x")
    mngr.ok("clone", "bar", "baz")
    assert mngr.ok("stop", "bar") == "stopped bar\n"
    assert mngr.ok("destroy", "-f", "bar").startswith("destroyed bar")
    assert mngr.ok("list", "--names") == "baz\n"


def test_a_stopped_agent_can_be_renamed(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    mngr.ok("stop", "foo")
    mngr.ok("rename", "foo", "bar")
    assert mngr.ok("start", "bar") == "started bar\n"


def test_a_rename_there_and_back_again(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    mngr.ok("rename", "foo", "bar")
    mngr.ok("rename", "bar", "foo")
    assert agent(mngr, "foo") == foo


def test_an_agent_may_rename_itself(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    mngr.ok("exec", "foo", "--", 'mngr rename "$MNGR_AGENT_NAME" bar')
    assert mngr.ok("list", "--names") == "bar\n"


def test_a_name_that_cannot_be_is_refused(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    for name in ("", "Bar", "two words", "a/b", "höhe", "_x", "x" * 64, "a@local", "foo", "command"):
        result = mngr("rename", "foo", name)
        assert (result.code, result.out) == (2, ""), name
        assert result.err.startswith("mngr: ")
    assert agent(mngr, "foo") == foo


def test_a_taken_name_is_refused(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    mngr.ok("create", "bar", "command", *SLEEP)
    result = mngr("rename", "foo", "bar")
    assert result.code == 1
    assert result.err.splitlines()[0] == "mngr: there is already an agent called bar"
    assert mngr.ok("list", "--names") == "bar\nfoo\n"


def test_a_damaged_agent_keeps_its_name(mngr: Mngr, home: Home, foo: dict[str, Any]) -> None:
    (home.mngr_home / "agents" / foo["id"] / "agent.json").write_text("{")
    result = mngr("rename", "foo", "bar")
    assert result.code == 1
    assert "foo is damaged" in result.err
    assert mngr.ok("list", "--names") == "foo\n"
    mngr.ok("create", "bar", "command", *SLEEP)


def test_of_several_renames_to_one_name_one_wins(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--count", "3", *SLEEP)
    started = [mngr.popen("rename", f"foo-{number}", "winner") for number in (1, 2, 3)]
    assert sorted(each.wait(20) for each in started) == [0, 1, 1]
    names = mngr.ok("list", "--names").split()
    assert names.count("winner") == 1
    assert len(names) == 3


@pytest.mark.parametrize("old_record", [True, False])
def test_a_rename_that_was_killed_half_way_is_tidied_up(
    mngr: Mngr, home: Home, foo: dict[str, Any], old_record: bool
) -> None:
    """Both names lead to the agent then; the one that its record does not have is a leftover."""
    names = home.mngr_home / "names"
    if old_record:
        (names / "bar").symlink_to((names / "foo").readlink())
    else:
        mngr.ok("rename", "foo", "bar")
        (names / "foo").symlink_to((names / "bar").readlink())
    for name in ("foo", "bar"):
        os.utime(names / name, (1, 1), follow_symlinks=False)
    wrong, right = ("bar", "foo") if old_record else ("foo", "bar")
    assert mngr.ok("gc") == f"removed {wrong}: name without an agent\n"
    assert agent(mngr, right)["id"] == foo["id"]
    assert mngr("explain", wrong).code == 3


# label.


def test_labels_are_set_changed_and_removed(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    assert mngr.ok("label", "foo", "b=2", "c=it's = so", "empty=") == "labelled foo\n"
    assert agent(mngr, "foo")["labels"] == {"a": "1", "b": "2", "c": "it's = so", "empty": ""}
    mngr.ok("label", "foo", "b=3", "a-", "never-there-")
    assert agent(mngr, "foo")["labels"] == {"b": "3", "c": "it's = so", "empty": ""}
    assert agent(mngr, "foo") == {**foo, "labels": {"b": "3", "c": "it's = so", "empty": ""}}


def test_of_one_label_given_twice_the_last_counts(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    mngr.ok("label", "foo", "x=1", "x=2")
    assert agent(mngr, "foo")["labels"]["x"] == "2"


def test_labels_select_agents(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--count", "3", *SLEEP)
    mngr.ok("label", "foo-1", "foo-3", "batch=1")
    assert mngr.ok("list", "--names", "--label", "batch=1") == "foo-1\nfoo-3\n"
    mngr.ok("label", "--label", "batch=1", "batch=2")
    mngr.ok("label", "--all", "seen=yes")
    assert mngr.ok("stop", "--label", "batch=2") == "stopped foo-1\nstopped foo-3\n"
    assert [each["labels"].get("seen") for each in mngr.json("list")] == ["yes"] * 3


def test_words_that_are_no_label_are_refused(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    for words in ("foo", "foo =x", "foo -", "foo plain", "", "foo --"):
        result = mngr("label", *words.split())
        assert result.code == 2, words
        assert result.err.startswith("mngr: ")
    assert agent(mngr, "foo")["labels"] == {"a": "1"}


def test_labels_set_at_the_same_time_are_all_kept(mngr: Mngr, repo: Path, foo: dict[str, Any]) -> None:
    started = [mngr.popen("label", "foo", f"n{number}=x") for number in range(6)]
    assert [each.wait(30) for each in started] == [0] * 6
    assert agent(mngr, "foo")["labels"] == {"a": "1"} | {f"n{number}": "x" for number in range(6)}


def test_a_lock_of_a_dead_process_is_taken_over(mngr: Mngr, home: Home, foo: dict[str, Any]) -> None:
    dead = mngr.popen("--version")
    dead.wait(10)
    (home.mngr_home / "agents" / foo["id"] / "lock").write_text(f"{dead.pid}\n")
    mngr.ok("label", "foo", "b=2")
    assert agent(mngr, "foo")["labels"] == {"a": "1", "b": "2"}
    assert not (home.mngr_home / "agents" / foo["id"] / "lock").exists()
