"""clone: a new agent that starts where another one is, with all that it is, and without disturbing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.address import is_name
from tests.agents import SLEEP, WEIRD_NAMES, agent, commit, files, head, work_dir, worktrees
from tests.home import Home, Mngr


def do_work(home: Home, work: Path) -> None:
    """A commit, and on top of it: modified, deleted, staged, new."""
    (work / "committed").write_text("committed\n")
    commit(home, work, "Work")
    (work / "README.md").write_text("modified\n")
    (work / "src" / "app.py").unlink()
    (work / "staged").write_text("staged\n")
    home.run("git", "add", "staged", cwd=work)
    (work / "run").write_text("#!/bin/sh\n")
    (work / "run").chmod(0o755)
    (work / "link").symlink_to("README.md")
    for name in WEIRD_NAMES:
        (work / name).write_text(name)


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_a_clone_has_the_commits_and_the_uncommitted_files(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    mngr.ok("create", "foo", "command", "--mode", mode, *SLEEP)
    work = work_dir(mngr, "foo")
    do_work(home, work)
    before = home.run("git", "--no-optional-locks", "status", "--porcelain", cwd=work)
    assert mngr.ok("clone", "foo", "bar") == "bar\n"
    clone = agent(mngr, "bar")
    assert files(Path(clone["work_dir"])) == files(work)
    assert clone["base"] == head(home, work)
    assert (clone["branch"], clone["mode"]) == ("mngr/bar", mode)
    assert home.run("git", "symbolic-ref", "HEAD", cwd=Path(clone["work_dir"])) == "refs/heads/mngr/bar\n"
    assert home.run("git", "--no-optional-locks", "status", "--porcelain", cwd=work) == before


def test_a_clone_has_type_command_labels_windows_and_environment(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok(
        *("create", "foo", "command", "--label", "a=1", "--env", "A=it's\nso", "--env", "B=2"),
        *("--window", "logs=exec sleep 200", "--", "sh", "-c", 'exec sleep "$0"', "100"),
    )
    mngr.ok("clone", "foo", "bar")
    foo, bar = agent(mngr, "foo"), agent(mngr, "bar")
    for key in ("type", "command", "labels", "windows", "source", "host"):
        assert bar[key] == foo[key], key
    assert mngr.ok("exec", "bar", "--", "printenv", "A", "B", "MNGR_AGENT_NAME") == "it's\nso\n2\nbar\n"
    assert home.tmux("list-windows", "-t", f"={bar['id']}", "-F", "#{window_name}").split() == ["agent", "logs"]


def test_the_two_go_different_ways_from_there(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    mngr.ok("clone", "foo", "bar")
    (work_dir(mngr, "foo") / "foo").write_text("foo\n")
    (work_dir(mngr, "bar") / "bar").write_text("bar\n")
    home.run("git", "commit", "-q", "--allow-empty", "-m", "By bar", cwd=work_dir(mngr, "bar"))
    mngr.ok("label", "bar", "only=bar")
    assert not (work_dir(mngr, "foo") / "bar").exists()
    assert not (work_dir(mngr, "bar") / "foo").exists()
    assert home.run("git", "log", "--format=%s", "mngr/foo") == "First commit\n"
    assert agent(mngr, "foo")["labels"] == {}
    mngr.ok("destroy", "-f", "foo")
    assert agent(mngr, "bar")["state"] in ("starting", "running")
    assert (work_dir(mngr, "bar") / "bar").exists()


def test_other_arguments_may_be_given(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    mngr.ok("clone", "foo", "bar", "--", "sleep", "200")
    assert agent(mngr, "bar")["command"] == ["sleep", "200"]


def test_the_name_may_be_made_up_and_json_tells_it(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    assert is_name(mngr.ok("clone", "foo").strip())
    (made,) = mngr.json("clone", "foo")
    assert is_name(made["name"])
    assert len(mngr.json("list")) == 3


def test_a_clone_of_a_clone(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--mode", "clone", "--env", "A=1", *SLEEP)
    do_work(home, work_dir(mngr, "foo"))
    mngr.ok("clone", "foo", "bar")
    (work_dir(mngr, "bar") / "more").write_text("more\n")
    mngr.ok("clone", "bar", "baz")
    assert files(work_dir(mngr, "baz")) == files(work_dir(mngr, "bar"))
    assert mngr.ok("exec", "baz", "--", "printenv", "A") == "1\n"
    assert home.run("git", "fsck", "--no-dangling", cwd=work_dir(mngr, "baz")) == ""
    mngr.ok("destroy", "-f", "foo", "bar")
    assert home.run("git", "log", "--format=%s", cwd=work_dir(mngr, "baz")).splitlines()[0] == "Work"


def test_a_copy_is_cloned_as_it_is_now(mngr: Mngr, home: Home) -> None:
    (home.root / "plain").mkdir()
    mngr.ok("create", "foo", "command", *SLEEP, cwd=home.root / "plain")
    (work_dir(mngr, "foo") / "it's new").write_text("new\n")
    mngr.ok("clone", "foo", "bar")
    assert agent(mngr, "bar")["mode"] == "copy"
    assert files(work_dir(mngr, "bar")) == {"it's new": "new\n "}
    assert work_dir(mngr, "foo") != work_dir(mngr, "bar")


def test_a_clone_of_an_agent_in_place_works_in_the_same_place(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--mode", "none", *SLEEP, cwd=repo / "src")
    mngr.ok("clone", "foo", "bar")
    assert work_dir(mngr, "bar") == work_dir(mngr, "foo") == repo / "src"


def test_agents_that_do_not_run_can_be_cloned(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--", "touch", "new")
    mngr.ok("wait", "foo", "--for", "done", "--timeout", "20")
    mngr.ok("clone", "foo", "bar", *SLEEP)
    mngr.ok("stop", "foo", "bar")
    mngr.ok("clone", "bar", "baz")
    assert (work_dir(mngr, "baz") / "new").exists()


def test_nested_repositories_are_named(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    home.run("git", "init", "-q", "nested", cwd=work_dir(mngr, "foo"))
    result = mngr("clone", "foo", "bar")
    assert (result.code, result.out) == (0, "bar\n")
    assert result.err == "mngr: nested is a repository of its own and is not carried\n"


def test_a_clone_from_inside_an_agent(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    (work_dir(mngr, "foo") / "new").write_text("new\n")
    assert mngr.ok("exec", "foo", "--", 'mngr clone "$MNGR_AGENT_NAME" bar') == "bar\n"
    assert (work_dir(mngr, "bar") / "new").exists()


def test_a_taken_or_impossible_name_is_refused_and_nothing_is_made(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    for name, code in (("foo", 1), ("command", 2), ("Bar", 2), ("", 2)):
        result = mngr("clone", "foo", name)
        assert result.code == code, name
        assert result.err.startswith("mngr: ")
    assert mngr.ok("list", "--names") == "foo\n"
    assert len(worktrees(home)) == 2


def test_a_clone_in_another_mode_than_its_source(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    do_work(home, work_dir(mngr, "foo"))
    mngr.ok("create", "bar", "--from", "foo", "--mode", "clone")
    assert files(work_dir(mngr, "bar")) == files(work_dir(mngr, "foo"))
    result = mngr("create", "baz", "--from", "bar", "--mode", "worktree")
    assert result.code == 1
    assert "use --mode clone" in result.err


def test_a_clone_is_connected_to_as_a_created_agent_is(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    mngr.ok("config", "set", "commands.create.connect_command", "echo connected to $MNGR_AGENT_NAME")
    assert mngr.ok("clone", "foo", "bar") == "bar\nconnected to bar\n"
    assert mngr.ok("clone", "foo", "baz", "--no-connect") == "baz\n"
    assert [made["name"] for made in mngr.json("clone", "foo", "qux")] == ["qux"]
