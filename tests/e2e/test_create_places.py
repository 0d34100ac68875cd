"""create: the places that it can be called from. Subdirectories, worktrees, hooks, agents; paths with anything in them;
repositories that have no commits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agents import SLEEP, agent, commit, files, head, make, work_dir
from tests.home import Home, Mngr


def test_from_a_subdirectory_the_whole_repository_is_meant(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP, cwd=repo / "src")
    assert files(work_dir(mngr, "foo")) == files(repo)
    assert agent(mngr, "foo")["source"] == str(repo)


def test_from_a_detached_head_the_commit_is_the_base(mngr: Mngr, home: Home, repo: Path) -> None:
    first = head(home, repo)
    commit(home, repo, "Second commit")
    home.run("git", "switch", "-q", "--detach", first)
    assert head(home, make(mngr, "foo")) == first


def test_from_inside_a_worktree_its_own_head_is_the_base(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "worktree", "add", "-q", "-b", "side", "../side")
    tip = commit(home, home.root / "side", "On the side")
    (home.root / "side" / "new").write_text("new\n")
    mngr.ok("create", "foo", "command", "--dirty", *SLEEP, cwd=home.root / "side")
    assert head(home, work_dir(mngr, "foo")) == tip
    assert files(work_dir(mngr, "foo")) == files(home.root / "side")


def test_an_agent_makes_agents_from_its_own_work(mngr: Mngr, home: Home, repo: Path) -> None:
    parent = make(mngr, "foo")
    tip = commit(home, parent, "By foo")
    assert mngr.ok("exec", "foo", "--", "mngr", "create", "bar", "command", *SLEEP) == "bar\n"
    assert head(home, work_dir(mngr, "bar")) == tip


@pytest.mark.parametrize("hook", ["pre-commit", "post-commit", "post-checkout"])
def test_create_works_in_a_git_hook(mngr: Mngr, home: Home, repo: Path, hook: str) -> None:
    """git sets GIT_DIR, GIT_INDEX_FILE and others for its hooks, which must not mislead our own calls of it."""
    script = repo / ".git" / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text('#!/bin/sh\n[ -n "$INSIDE" ] || INSIDE=1 exec mngr create foo command -- sleep 100\n')
    script.chmod(0o755)
    (repo / "new").write_text("new\n")
    home.run("git", "add", "-A")
    home.run("git", "commit", "-q", "-m", "With a hook")
    if hook == "post-checkout":
        home.run("git", "checkout", "-q", "-b", "side")
    assert agent(mngr, "foo")["state"] in ("starting", "running")
    assert home.run("git", "status", "--porcelain") == ""
    assert home.run("git", "status", "--porcelain", cwd=work_dir(mngr, "foo")) == ""


def test_git_variables_of_the_caller_do_not_mislead(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "init", "-q", "../other")
    other = str(home.root / "other")
    env = {"GIT_DIR": f"{other}/.git", "GIT_WORK_TREE": other, "GIT_INDEX_FILE": f"{other}/index"}
    mngr.ok("create", "foo", "command", "--dirty", *SLEEP, env=env)
    assert agent(mngr, "foo")["source"] == str(repo)
    assert os.listdir(other) == [".git"]


@pytest.mark.parametrize("mode", ["worktree", "clone", "none"])
def test_paths_with_blanks_quotes_and_signs_work(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    moved = home.root / 'it\'s a #S "répo" $HOME'
    repo.rename(moved)
    home.cwd = moved
    (moved / "new").write_text("new\n")
    options = [] if mode == "none" else ["--dirty"]
    program = 'pwd -P >"$MNGR_WORK_DIR/where"; exec sleep 100'
    mngr.ok("create", "foo", "command", "--mode", mode, *options, "--window", "w=exec sleep 100", "--", program)
    work = work_dir(mngr, "foo")
    mngr.ok("exec", "foo", "--", "sh", "-c", "until [ -s where ]; do sleep 0.02; done")
    assert (work / "where").read_text().strip() == str(work)
    assert (work / "new").read_text() == "new\n"
    mngr.ok("stop", "foo")
    mngr.ok("start", "foo")
    assert agent(mngr, "foo")["state"] in ("starting", "running")
    mngr.ok("destroy", "-f", "foo")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_a_home_with_blanks_quotes_and_signs_works(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    strange = home.root / 'it\'s a "höme" #S $x'
    home.env["MNGR_HOME"] = str(strange)
    home.mngr_home = strange
    mngr.ok("create", "foo", "command", "--mode", mode, "--", "echo done >out")
    mngr.ok("wait", "foo", "--for", "done", "--timeout", "20")
    assert work_dir(mngr, "foo").parent.parent == strange
    mngr.ok("snapshot", "create", "foo", "x")
    mngr.ok("start", "foo")
    mngr.ok("wait", "foo", "--for", "done", "--timeout", "20")
    child = Path(str(mngr.json("create", "bar", "--from", "foo/x")[0]["work_dir"]))
    assert (child / "out").read_text() == "done\n"
    mngr.ok("destroy", "-f", "--all")
    assert os.listdir(strange / "agents") == os.listdir(strange / "work") == []


def test_a_repository_without_commits_is_refused_but_for_mode_none(mngr: Mngr, home: Home) -> None:
    home.run("git", "init", "-q", "empty")
    home.cwd = home.path / "empty"
    result = mngr("create", "foo", "command", *SLEEP)
    assert result.code == 1
    assert result.err == (f"mngr: {home.cwd} has no commit yet\nhint: commit something first, or use --mode none\n")
    assert make(mngr, "foo", "--mode", "none") == home.cwd


def test_a_directory_that_has_been_removed_is_refused(mngr: Mngr, home: Home) -> None:
    there = f"mkdir gone && cd gone && rmdir ../gone && {mngr.program} create foo 2>&1"
    said = home.run("sh", "-c", there, check=False)
    assert said == "mngr: the current directory does not exist any more\nhint: go to another, or use --from DIR\n"


def test_a_bare_repository_is_refused(mngr: Mngr, home: Home) -> None:
    home.run("git", "init", "-q", "--bare", "bare.git")
    result = mngr("create", "foo", "command", "--mode", "worktree", *SLEEP, cwd=home.path / "bare.git")
    assert result.code == 1
    assert result.err.startswith("mngr: ")
    assert mngr.json("list") == []
