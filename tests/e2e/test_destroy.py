"""destroy: removes everything of an agent, and loses no work unless told to twice."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agents import launched
from tests.home import Home, Mngr, is_alive, wait_until

# What goes


def test_destroy_asks_and_then_removes_everything_of_the_agent(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a", "setsid sleep 1000 & echo $! >pid; echo pid >.gitignore; git add .gitignore; wait")
    pid = int(wait_until(lambda: text if (text := read(agent, "pid")).endswith("\n") else ""))
    wait_until(lambda: home.run("git", "diff", "--cached", "--name-only", cwd=work(agent)) == ".gitignore\n")
    home.run("git", "reset", "-q", "--hard", cwd=work(agent))
    (work(agent) / "pid").unlink()
    result = mngr("destroy", "a", input="y\n")
    assert result == (0, "destroyed a\n", "destroy a? [y/N] ")
    assert not is_alive(pid)
    assert nothing_left(home, agent) == []
    assert branches(home) == ["main"]
    assert mngr.ok("list", "--names") == ""
    create(mngr, home, "a")  # the name is free again


def test_only_y_or_yes_is_a_yes(mngr: Mngr, home: Home) -> None:
    mngr.ok("create", "a", "command", "--mode", "none", "--", "sleep 1000")
    for answer in ("", "n\n", "\n", "yes please\n"):
        result = mngr("destroy", "a", input=answer)
        assert (result.code, result.out) == (1, ""), answer
        assert result.err.replace("\n", "").endswith("mngr: nothing was destroyedhint: answer y, or use -f")
    assert mngr.json("list")[0]["state"] == "running"
    assert mngr("destroy", "a", input="Y").code == 0


def test_force_and_purge_do_not_ask(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "-n", "3", "command", "--", "sleep 1000")
    for name, option in (("a-1", "-f"), ("a-2", "--force"), ("a-3", "--purge")):
        assert mngr("rm", option, name) == (0, f"destroyed {name}\n", "")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_a_branch_that_is_merged_goes_without_fuss(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, home, "a", "--mode", mode)
    commit(home, agent, "Work")
    mngr.ok("pull", "a", "--merge")
    mngr.ok("destroy", "a", input="y\n")
    assert nothing_left(home, agent) == []
    assert home.run("git", "log", "--format=%s", "main").splitlines() == ["Work", "First commit"]
    assert refs(home, "refs/mngr") == []


def test_commits_that_something_else_holds_are_not_lost(mngr: Mngr, home: Home, repo: Path) -> None:
    kept = {"a": "refs/heads/kept", "b": "refs/tags/kept", "c": "refs/remotes/origin/kept"}
    tips = {}
    for name, where in kept.items():
        tips[where] = commit(home, create(mngr, home, name), f"Work of {name}")
        home.run("git", "update-ref", where, tips[where])
    mngr.ok("destroy", *kept, input="y\n")
    assert {where: home.run("git", "rev-parse", where).strip() for where in tips} == tips


def test_a_branch_that_was_there_before_is_never_deleted(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "branch", "mine")
    agent = create(mngr, home, "a", "--branch", "mine")
    tip = commit(home, agent, "Work")
    mngr.ok("destroy", "a", input="y\n")
    assert branches(home) == ["main", "mine"]
    assert home.run("git", "rev-parse", "mine").strip() == tip


def test_a_directory_that_the_agent_only_worked_in_stays(mngr: Mngr, home: Home, repo: Path) -> None:
    (repo / "new.txt").write_text("new")
    agent = create(mngr, home, "a", "--mode", "none")
    mngr.ok("destroy", "a", input="y\n")
    assert (repo / "new.txt").read_text() == "new"
    assert not (home.mngr_home / "agents" / agent["id"]).exists()


def test_the_users_own_worktree_on_a_disk_that_is_away_stays_known(mngr: Mngr, home: Home, repo: Path) -> None:
    disk = home.root / "disk"
    home.run("git", "worktree", "add", "-q", "-b", "mine", str(disk))
    disk.rename(home.root / "unmounted")
    agent = create(mngr, home, "a")
    mngr.ok("destroy", "a", input="y\n")
    assert nothing_left(home, agent) == []
    assert mngr("create", "b", "command", "--setup", "false", "--", "sleep 1000").code != 0
    (home.root / "unmounted").rename(disk)
    assert home.run("git", "symbolic-ref", "HEAD", cwd=disk) == "refs/heads/mine\n"


def test_destroy_touches_nothing_where_a_record_claims_another_work_dir(mngr: Mngr, home: Home, repo: Path) -> None:
    precious = home.root / "precious"
    precious.mkdir()
    agent = create(mngr, home, "a")
    (precious / "file").write_text("work")
    record = home.mngr_home / "agents" / agent["id"] / "agent.json"
    changed = {**json.loads(record.read_text()), "mode": "copy", "work_dir": str(precious)}
    record.write_text(json.dumps(changed) + "\n")
    mngr("destroy", "-f", "a")
    assert (precious / "file").read_text() == "work"


def test_what_is_read_only_goes_too(mngr: Mngr, home: Home, repo: Path) -> None:
    only_writable(home)
    agent = create(mngr, home, "a")
    read_only(work(agent))
    assert mngr("destroy", "a", input="y\n")[:2] == (0, "destroyed a\n")
    assert nothing_left(home, agent) == []


def test_files_that_cannot_be_removed_are_a_failure(mngr: Mngr, home: Home, repo: Path) -> None:
    only_writable(home)
    shadow(home, "chmod", "exit 1")
    agent = create(mngr, home, "a")
    read_only(work(agent))
    result = mngr("destroy", "a", input="y\n")
    assert (result.code, result.out) == (1, "")
    assert f"mngr: a: it is gone, but not {work(agent)}" in result.err


def test_an_agent_with_a_process_that_nothing_ends_is_not_destroyed(mngr: Mngr, home: Home, repo: Path) -> None:
    agent, other = create(mngr, home, "a"), create(mngr, home, "b")
    (pane,) = home.tmux("list-panes", "-t", f"={agent['id']}", "-F", "#{pane_pid}").split()
    said = f"/proc/99999999/stat:99999999 (no such pid can be) D {pane} 99999999 99999999"
    shadow(home, "grep", f'case $* in *"/stat "*) echo "{said}" ;; esac; exec {shutil.which("grep")} "$@"')
    result = mngr("destroy", "--purge", "a", "b")
    assert (result.code, result.out) == (6, "destroyed b\n")
    assert "mngr: a: still alive: process 99999999" in result.err
    assert (work(agent).exists(), work(other).exists()) == (True, False)
    assert mngr.ok("list", "--names") == "a\n"


# What is refused


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_commits_that_exist_nowhere_else_make_it_refuse(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, home, "a", "--mode", mode)
    tip = commit(home, agent, "Work")
    result = mngr("destroy", "a", input="y\n")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("mngr: a: 1 commit would be lost: mngr pull it first")
    assert mngr.json("list")[0]["state"] == "running"
    assert home.run("git", "rev-parse", "HEAD", cwd=work(agent)).strip() == tip


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_uncommitted_work_makes_it_refuse(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, home, "a", "--mode", mode)
    for change in ("echo changed >>README.md", "echo new >new.txt", "git rm -q README.md"):
        home.run("sh", "-c", change, cwd=work(agent))
        result = mngr("destroy", "a", input="y\n")
        assert result.code == 1, change
        assert "1 uncommitted file would be lost" in result.err, change
        home.run("sh", "-c", "git reset -q --hard && git clean -q -f", cwd=work(agent))
    assert work(agent).exists()
    mngr.ok("destroy", "a", input="y\n")


def test_untracked_files_count_whatever_git_is_told_to_show(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "config", "--global", "status.showUntrackedFiles", "no")
    agent = create(mngr, home, "a")
    (work(agent) / "new").touch()
    assert "1 uncommitted file would be lost" in mngr("destroy", "a", input="y\n").err


def test_work_in_a_copy_makes_it_refuse_however_old_it_looks(mngr: Mngr, home: Home) -> None:
    source = home.path / "plain"
    source.mkdir()
    (source / "file").write_text("old")
    home.cwd = source
    agent = create(mngr, home, "a")
    assert agent["mode"] == "copy"
    (work(agent) / "unpacked").write_text("from an archive")
    os.utime(work(agent) / "unpacked", (0, 0))
    result = mngr("destroy", "a", input="y\n")
    assert "1 uncommitted file would be lost" in result.err


def test_a_copy_that_does_not_know_when_it_was_made_makes_it_refuse(mngr: Mngr, home: Home) -> None:
    home.cwd = home.path / "plain"
    home.cwd.mkdir()
    agent = create(mngr, home, "a")
    (home.mngr_home / "agents" / agent["id"] / "made").unlink()
    (work(agent) / "new").write_text("work")
    assert "would be lost" in mngr("destroy", "a", input="y\n").err
    mngr.ok("destroy", "-f", "a")
    assert (home.mngr_home / "trash" / f"{agent['id']}.files" / "new").read_text() == "work"


@pytest.mark.parametrize(
    ("mode", "then"),  # what a worktree has of a submodule lies elsewhere than what a clone has
    [
        ("worktree", "true"),
        ("worktree", "git rm -q sub && git commit -q -m Without"),
        ("clone", "git submodule deinit -q -f sub"),
        ("clone", "git rm -q sub && git commit -q -m Without"),
    ],
)
def test_commits_in_a_submodule_make_it_refuse(mngr: Mngr, home: Home, repo: Path, mode: str, then: str) -> None:
    add_submodule(home, repo)
    agent = create(mngr, home, "a", "--mode", mode)
    home.run("git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", cwd=work(agent))
    assert mngr.ok("destroy", "--dry-run", "a") == "a: would be destroyed; nothing is lost\n"
    home.run("git", "commit", "-q", "--allow-empty", "-m", "In it", cwd=work(agent) / "sub")
    home.run("git", "commit", "-q", "-a", "-m", "Bump", cwd=work(agent))
    home.run("sh", "-c", then, cwd=work(agent))
    home.run("git", "fetch", "-q", "--no-recurse-submodules", str(work(agent)), "HEAD:refs/heads/kept")
    assert "would be lost" in mngr("destroy", "a", input="y\n").err
    result = mngr("destroy", "-f", "a")
    assert "could not be kept (--purge drops it): its submodules have work of their own" in result.err
    assert work(agent).exists()
    mngr.ok("destroy", "--purge", "a")
    assert nothing_left(home, agent) == []


def test_a_commit_beside_the_branch_makes_it_refuse(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    home.run("git", "checkout", "-q", "--detach", cwd=work(agent))
    commit(home, agent, "Beside")
    assert "1 commit would be lost" in mngr("destroy", "a", input="y\n").err


@pytest.mark.parametrize("aside", ["git checkout -q -b aside && git commit -q --allow-empty -m Aside", "git stash -q"])
def test_what_a_clone_has_beside_its_branch_makes_it_refuse(mngr: Mngr, home: Home, repo: Path, aside: str) -> None:
    agent = create(mngr, home, "a", "--mode", "clone")
    home.run("sh", "-c", f"echo changed >>README.md && {aside} && git checkout -q -f mngr/a", cwd=work(agent))
    assert home.run("git", "status", "--porcelain", cwd=work(agent)) == ""
    result = mngr("destroy", "a", input="y\n")
    assert result.code == 1
    assert "would be lost" in result.err


def test_two_agents_that_hold_each_others_commits_are_not_destroyed_together(
    mngr: Mngr, home: Home, repo: Path
) -> None:
    commit(home, create(mngr, home, "a"), "Work of a")
    create(mngr, home, "b", "--from", "a")
    result = mngr("destroy", "a", "b", input="y\n")
    assert result.code == 6
    assert branches(home) == ["main", "mngr/a", "mngr/b"]
    mngr.ok("destroy", "b", input="y\n")  # alone it loses nothing: a has it
    assert branches(home) == ["main", "mngr/a"]


def test_a_work_dir_that_git_cannot_read_makes_it_refuse(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    (work(agent) / "precious").write_text("work")
    (work(agent) / ".git").unlink()
    result = mngr("destroy", "a", input="y\n")
    assert result.code == 1
    assert "work that git cannot account for would be lost" in result.err
    assert mngr("destroy", "-f", "a").code == 1  # it cannot be kept, so it is not removed
    assert (work(agent) / "precious").read_text() == "work"
    mngr.ok("destroy", "--purge", "a")
    assert nothing_left(home, agent) == []


def test_work_done_while_it_asks_is_not_lost(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    asking = mngr.popen("destroy", "a")
    assert asking.stderr
    assert asking.stderr.read(11) == "destroy a? "
    (work(agent) / "late").write_text("work")
    out, err = asking.communicate("y\n", timeout=10)
    assert (asking.returncode, out) == (1, "")
    assert "mngr: a: 1 uncommitted file would be lost" in err
    assert (work(agent) / "late").exists()


def test_work_done_on_the_way_out_is_parked(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(
        mngr, home, "a", "trap 'echo last >words; exit' TERM; touch .git.ready; while :; do sleep 0.05; done"
    )
    wait_until((work(agent) / ".git.ready").exists)
    mngr.ok("destroy", "-f", "a")
    assert home.run("git", "show", f"refs/mngr/trash/{agent['id']}:words") == "last\n"


def test_of_several_those_that_lose_nothing_go(mngr: Mngr, home: Home, repo: Path) -> None:
    for name in ("a", "b", "c"):
        agent = create(mngr, home, name)
        if name == "b":
            commit(home, agent, "Work")
    result = mngr("destroy", "--all", input="y\n")
    assert (result.code, result.out) == (6, "destroyed a\ndestroyed c\n")
    assert result.err.startswith("destroy 2 agents (a, c)? [y/N] mngr: b: 1 commit would be lost")
    assert result.err.endswith("\nmngr: 1 of 3 failed\n")
    assert mngr.ok("list", "--names") == "b\n"


def test_nobody_is_destroyed_when_one_name_is_wrong(mngr: Mngr, home: Home) -> None:
    mngr.ok("create", "a", "command", "--mode", "none", "--", "sleep 1000")
    assert mngr("destroy", "-f", "a", "b").code == 3
    assert mngr("destroy", "-f").code == 2
    assert mngr.ok("list", "--names") == "a\n"


# What is parked


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_force_parks_commits_and_files_to_be_brought_back_byte_for_byte(
    mngr: Mngr, home: Home, repo: Path, mode: str
) -> None:
    agent = create(mngr, home, "a", "--mode", mode)
    tip = commit(home, agent, "Work")
    top = work(agent)
    (top / "README.md").write_bytes(b"changed\r\n\0\xff")
    (top / "deep" / "er").mkdir(parents=True)
    (top / "deep" / "er" / "ünï cödé\n'\"").write_bytes(bytes(range(256)))
    (top / "run").write_text("#!/bin/sh\n")
    (top / "run").chmod(0o755)
    (top / "link").symlink_to("deep/er")
    (top / "src" / "app.py").unlink()
    expected = picture(top)
    result = mngr("destroy", "-f", "a")
    ref = f"refs/mngr/trash/{agent['id']}"
    assert result.code == 0
    assert result.out == f"destroyed a: 1 commit and 5 uncommitted files kept for 14 days as {ref} in {repo}\n"
    assert nothing_left(home, agent) == []
    assert branches(home) == ["main"]
    home.run("git", "worktree", "add", "-q", "-b", "back", str(home.root / "back"), ref)
    assert picture(home.root / "back") == expected
    assert tip in home.run("git", "rev-list", "back").split()


def test_force_parks_every_commit_that_the_agent_stands_on(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    on_branch = commit(home, agent, "On the branch")
    home.run("git", "checkout", "-q", "--detach", "main", cwd=work(agent))
    beside = commit(home, agent, "Beside it")
    mngr.ok("destroy", "-f", "a")
    assert {on_branch, beside} <= set(home.run("git", "rev-list", f"refs/mngr/trash/{agent['id']}").split())


def test_force_parks_what_a_clone_has_beside_its_branch(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a", "--mode", "clone")
    home.run("git", "checkout", "-q", "-b", "aside", cwd=work(agent))
    aside = commit(home, agent, "Aside")
    home.run("git", "checkout", "-q", "mngr/a", cwd=work(agent))
    mngr.ok("destroy", "-f", "a")
    assert aside in home.run("git", "rev-list", f"refs/mngr/trash/{agent['id']}").split()


def test_force_does_not_remove_what_git_cannot_hold(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    nested = work(agent) / "vendor"
    home.run("git", "init", "-q", str(nested))
    (nested / "precious").write_text("work")
    home.run("git", "add", "-A", cwd=nested)
    home.run("git", "commit", "-q", "-m", "Nested", cwd=nested)
    result = mngr("destroy", "-f", "a")
    assert result.code == 1
    assert "could not be kept (--purge drops it): vendor is a repository of its own" in result.err
    assert (nested / "precious").exists()
    assert mngr.json("list")[0]["state"] == "stopped"


def test_force_parks_the_files_of_a_copy(mngr: Mngr, home: Home) -> None:
    home.cwd = home.path / "plain"
    home.cwd.mkdir()
    (home.cwd / "file").write_text("old")
    agent = create(mngr, home, "a")
    (work(agent) / "file").write_text("new")
    expected = picture(work(agent))
    place = home.mngr_home / "trash" / f"{agent['id']}.files"
    assert mngr.ok("destroy", "-f", "a") == f"destroyed a: 1 uncommitted file kept for 14 days as {place}\n"
    assert picture(place) == expected


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_hooks_for_pushing_are_not_for_us(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    hook = repo / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {home.root}/pushed\nexit 1\n")
    hook.chmod(0o755)
    home.run("git", "config", "--global", "core.hooksPath", str(hook.parent))
    agent = create(mngr, home, "a", "--mode", mode)
    commit(home, agent, "Work")
    mngr.ok("snapshot", "create", "a", "x")
    mngr.ok("destroy", "-f", "a")
    assert not (home.root / "pushed").exists()


def test_the_commits_of_a_clone_outlive_its_source(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a", "--mode", "clone")
    tip = commit(home, agent, "Work")
    home.cwd = home.path
    shutil.rmtree(repo)
    assert "would be lost" in mngr("destroy", "a", input="y\n").err
    told = mngr.ok("destroy", "-f", "a")
    store = Path(told.split(" in ")[1].strip())
    mngr.ok("gc")
    assert tip in home.run("git", "rev-list", f"refs/mngr/trash/{agent['id']}", cwd=store).split()


def test_purge_drops_everything(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    commit(home, agent, "Work")
    (work(agent) / "new").touch()
    mngr.ok("snapshot", "create", "a", "first")
    assert mngr.ok("destroy", "--purge", "a") == "destroyed a\n"
    assert nothing_left(home, agent) == []
    assert (branches(home), refs(home, "refs/mngr")) == (["main"], [])
    assert not (home.mngr_home / "trash").exists()


# --dry-run


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "would be refused: 1 commit and 1 uncommitted file would be lost"),
        (["-f"], "would be destroyed; 1 commit and 1 uncommitted file would be kept for 14 days"),
        (["--purge"], "would be destroyed; 1 commit and 1 uncommitted file would be dropped"),
    ],
)
def test_dry_run_tells_and_changes_nothing(mngr: Mngr, home: Home, repo: Path, options: list[str], told: str) -> None:
    create(mngr, home, "clean")
    agent = create(mngr, home, "busy")
    commit(home, agent, "Work")
    (work(agent) / "new").touch()
    launched(home, 2)
    before = (picture(home.mngr_home), picture(repo), home.tmux("list-panes", "-a", "-F", "#{pane_pid}"))
    assert mngr("destroy", "--all", "--dry-run", *options) == (
        0,
        f"busy: {told}\nclean: would be destroyed; nothing is lost\n",
        "",
    )
    assert (picture(home.mngr_home), picture(repo), home.tmux("list-panes", "-a", "-F", "#{pane_pid}")) == before


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_dry_run_says_that_ignored_files_are_not_kept(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    agent = create(mngr, home, "a", "--mode", mode)
    (work(agent) / ".env").write_text("A=1")
    told = "a: would be destroyed; nothing is lost; ignored files are not kept\n"
    assert mngr.ok("destroy", "a", "--dry-run") == told
    (work(agent) / "new").touch()
    told = "a: would be destroyed; 1 uncommitted file would be kept for 14 days; ignored files are not kept\n"
    assert mngr.ok("destroy", "a", "-f", "--dry-run") == told


# Agents that are not well


@pytest.mark.parametrize("mode", ["worktree", "clone"])
@pytest.mark.parametrize("record", ["", "{not json", '{"id": "another"}'])
def test_a_damaged_agent_can_be_destroyed(mngr: Mngr, home: Home, repo: Path, mode: str, record: str) -> None:
    agent = create(mngr, home, "a", "--mode", mode)
    (home.mngr_home / "agents" / agent["id"] / "agent.json").write_text(record)
    mngr.ok("destroy", "a", input="y\n")
    assert nothing_left(home, agent) == []
    assert branches(home) == ["main"]


def test_a_damaged_agent_loses_no_work_either(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    tip = commit(home, agent, "Work")
    (work(agent) / "new").write_text("new")
    (home.mngr_home / "agents" / agent["id"] / "agent.json").write_text("")
    assert mngr("destroy", "a", input="y\n").code == 1
    mngr.ok("destroy", "-f", "a")
    ref = f"refs/mngr/trash/{agent['id']}"
    assert tip in home.run("git", "rev-list", ref).split()
    assert home.run("git", "show", f"{ref}:new") == "new"


def test_an_agent_whose_work_dir_was_deleted_by_hand_can_be_destroyed(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    shutil.rmtree(work(agent))
    mngr.ok("destroy", "a", input="y\n")
    assert nothing_left(home, agent) == []
    assert branches(home) == ["main"]


def test_the_commits_of_a_deleted_work_dir_are_not_lost(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, home, "a")
    tip = commit(home, agent, "Work")
    shutil.rmtree(work(agent))
    assert "1 commit would be lost" in mngr("destroy", "a", input="y\n").err
    mngr.ok("destroy", "-f", "a")
    assert home.run("git", "rev-parse", f"refs/mngr/trash/{agent['id']}").strip() == tip


def test_an_agent_of_which_only_the_name_is_left_can_be_destroyed(mngr: Mngr, home: Home) -> None:
    mngr.ok("create", "a", "command", "--mode", "none", "--", "sleep 1000")
    launched(home, 1)
    shutil.rmtree(home.mngr_home / "agents" / mngr.json("list")[0]["id"])
    os.utime(home.mngr_home / "names" / "a", (0, 0), follow_symlinks=False)  # nobody is just making it
    mngr.ok("destroy", "a", input="y\n")
    assert mngr("destroy", "a").code == 3


def test_json_tells_what_became_of_each(mngr: Mngr, home: Home, repo: Path) -> None:
    create(mngr, home, "a")
    commit(home, create(mngr, home, "b"), "Work")
    result = mngr("destroy", "a", "b", "--json", input="y\n")
    assert result.code == 6
    assert [(each["name"], each["did"], each["ok"]) for each in json.loads(result.out)] == [
        ("a", "destroyed", True),
        ("b", "refused", False),
    ]


# What these tests speak about


def create(mngr: Mngr, home: Home, name: str, *words: str) -> dict[str, Any]:
    """An agent made in the repository. The words are options, or one line for it to run."""
    options = [] if len(words) == 1 else list(words)
    line = words[0] if len(words) == 1 else "sleep 1000"
    made: dict[str, Any] = mngr.json("create", name, "command", *options, "--", "sh", "-c", line)[0]
    return made


def work(agent: dict[str, Any]) -> Path:
    return Path(agent["work_dir"])


def read(agent: dict[str, Any], name: str) -> str:
    file = work(agent) / name
    return file.read_text() if file.exists() else ""


def commit(home: Home, agent: dict[str, Any], subject: str) -> str:
    """The id of a new commit in the agent's work dir."""
    name = subject.lower().replace(" ", "-")
    (work(agent) / name).write_text(subject)
    home.run("git", "add", name, cwd=work(agent))
    home.run("git", "commit", "-q", "-m", subject, cwd=work(agent))
    return home.run("git", "rev-parse", "HEAD", cwd=work(agent)).strip()


def add_submodule(home: Home, repo: Path) -> None:
    """The repository has one at `sub`, from now on."""
    home.run("git", "init", "-q", str(home.root / "library"))
    home.run("git", "commit", "-q", "--allow-empty", "-m", "Library", cwd=home.root / "library")
    home.run(
        "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(home.root / "library"), "sub"
    )
    home.run("git", "commit", "-q", "-m", "Add sub")


def read_only(top: Path) -> None:
    """As package managers leave their caches, ignored by git."""
    cache = top / "__pycache__"
    cache.mkdir()
    (cache / "module").touch()
    cache.chmod(0o555)


def only_writable(home: Home) -> None:
    """For root too, rm keeps what is in a directory that is read-only."""
    real = shutil.which("rm")
    shadow(home, "rm", f'shift\n[ -z "$(find "$@" -type d ! -perm -200 2>/dev/null)" ] || exit 1\nexec {real} -rf "$@"')


def shadow(home: Home, program: str, line: str) -> None:
    """From now on that program is this."""
    (home.root / "fake").mkdir(exist_ok=True)
    (home.root / "fake" / program).write_text(f"#!/bin/sh\n{line}\n")
    (home.root / "fake" / program).chmod(0o755)
    home.env["PATH"] = f"{home.root}/fake:{home.env['PATH']}"


def branches(home: Home) -> list[str]:
    return [ref.removeprefix("refs/heads/") for ref in refs(home, "refs/heads")]


def refs(home: Home, below: str) -> list[str]:
    return home.run("git", "for-each-ref", "--format=%(refname)", below).splitlines()


def nothing_left(home: Home, agent: dict[str, Any]) -> list[str]:
    """What still knows the agent's id: files, worktrees, sessions."""
    id = agent["id"]
    found = [str(path) for path in home.mngr_home.rglob(f"*{id}*") if "trash" not in path.parts]
    if (home.cwd / ".git").exists():
        found += [line for line in home.run("git", "worktree", "list").splitlines() if id in line]
    return found + [line for line in home.tmux("list-sessions", check=False).splitlines() if id in line]


def picture(top: Path) -> dict[str, tuple[str, bytes]]:
    """Everything in a directory but what git keeps for itself: kind and executability, and content."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if name.split("/")[0] == ".git" or path.is_socket():
            continue
        if path.is_symlink():
            found[name] = ("link", os.fsencode(os.readlink(path)))
        elif path.is_file():
            found[name] = (
                "program" if os.access(path, os.X_OK) and path.stat().st_mode & 0o100 else "file",
                path.read_bytes(),
            )
    return found
