"""gc removes what belongs to nobody, never what might be work; doctor says what is wrong and what to do about it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents import launched
from tests.home import Home, Mngr, wait_until

DAY = 86400
NOTHING = "nothing is left over\n"


# gc: what goes


def test_where_all_is_well_gc_finds_nothing(mngr: Mngr, home: Home, repo: Path) -> None:
    assert mngr.ok("gc") == NOTHING
    for name, mode in (("a", "worktree"), ("b", "clone"), ("c", "none")):
        create(mngr, name, mode)
    mngr.ok("stop", "b")
    mngr.ok("snapshot", "create", "b", "first")
    assert mngr.ok("gc") == NOTHING
    assert [each["state"] for each in mngr.json("list")] == ["running", "stopped", "running"]


@pytest.mark.parametrize("place", ["agents/.new", "agents/.log", "agents/.gone.0123456789ab", ".park"])
def test_files_of_a_script_that_is_gone(mngr: Mngr, home: Home, place: str) -> None:
    mngr.ok("create", "a", "command", "--mode", "none", "--", "sleep 1000")
    left = home.mngr_home / f"{place}.{dead_pid()}"
    left.mkdir()
    (left / "file").touch()
    in_use = home.mngr_home / f"{place}.{os.getpid()}"
    in_use.mkdir()
    assert mngr.ok("gc") == f"removed {left.relative_to(home.mngr_home)}: temporary file of a script that is gone\n"
    assert (left.exists(), in_use.exists()) == (False, True)


def test_a_clean_worktree_and_a_session_without_an_agent(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    create(mngr, "b")
    home.tmux("new-session", "-d", "-s", "somebodys", "sleep 1000")
    lose(home, agent)
    found = {each["kind"]: each["what"] for each in mngr.json("gc")}
    assert found == {"name": "a", "work": f"work/{agent['id']}", "session": agent["id"]}
    assert not work(agent).exists()
    assert agent["id"] not in home.run("git", "worktree", "list")
    assert set(home.tmux("list-sessions", "-F", "#{session_name}").split()) == {"somebodys", one(mngr, "b")["id"]}
    assert mngr.ok("list", "--names") == "b\n"
    assert mngr.ok("gc") == NOTHING


def test_a_name_without_an_agent_unless_it_is_just_being_made(mngr: Mngr, home: Home) -> None:
    mngr.ok("create", "a", "command", "--mode", "none", "--", "sleep 1000")
    names = home.mngr_home / "names"
    for name, age in (("old", 3600), ("young", 0)):
        (names / name).symlink_to("local/0123456789ab/command")
        os.utime(names / name, (time.time() - age, time.time() - age), follow_symlinks=False)
    assert mngr.ok("gc") == "removed old: name without an agent\n"
    assert sorted(path.name for path in names.iterdir() if path.is_symlink()) == ["a", "young"]


def test_an_agent_whose_create_was_interrupted(mngr: Mngr, home: Home, repo: Path) -> None:
    agent, running = create(mngr, "a"), create(mngr, "b")
    (work(agent) / "new").write_text("work")
    creating = home.mngr_home / "agents"
    (creating / agent["id"] / "creating").write_text(f"{dead_pid()}\n")
    (creating / running["id"] / "creating").write_text(f"{os.getpid()}\n")
    assert one(mngr, "a")["reason"] == "create was interrupted"
    assert mngr.ok("gc") == "removed a: agent whose create was interrupted\n"
    assert mngr.ok("list", "--names") == "b\n"
    assert home.run("git", "show", f"refs/mngr/trash/{agent['id']}:new") == "work"


def test_a_store_that_nobody_borrows_from(mngr: Mngr, home: Home, repo: Path) -> None:
    create(mngr, "a", "clone")
    create(mngr, "b", "clone")
    mngr.ok("destroy", "-f", "a")
    assert mngr.ok("gc") == NOTHING
    mngr.ok("destroy", "-f", "b")
    (store,) = (home.mngr_home / "repos").iterdir()
    assert mngr.ok("gc") == f"removed repos/{store.name}: object store that nobody borrows from\n"
    assert not store.exists()


def test_a_feed_that_has_grown_long_is_set_aside_and_followed_on(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "none")
    launched(home, 1)
    feed = home.mngr_home / "feed"
    feed.write_text("".join(f'{{"number":{number},"padding":"{"x" * 500}"}}\n' for number in range(20_001)))
    waiting = mngr.popen("wait", "a", "--for", "stopped", "--timeout", "10")
    assert mngr.ok("gc") == "removed feed: feed of events, grown long\n"
    assert feed.read_text() == ""
    assert (home.mngr_home / "feed.old").stat().st_size > 10_000_000
    mngr.ok("stop", "a")
    assert waiting.wait(12) == 0
    assert mngr.ok("gc") == NOTHING


@pytest.mark.parametrize("ending", ["dead", "alive"])
def test_half_a_store_of_a_script_that_is_gone(mngr: Mngr, home: Home, repo: Path, ending: str) -> None:
    create(mngr, "a", "clone")
    half = home.mngr_home / "repos" / f"repo-0123.git.{dead_pid() if ending == 'dead' else os.getpid()}"
    half.mkdir()
    mngr.ok("gc")
    assert half.exists() == (ending == "alive")


# gc: parked work


def test_parked_work_stays_for_fourteen_days(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    commit(home, agent, "Work")
    mngr.ok("destroy", "-f", "a")
    ref = f"refs/mngr/trash/{agent['id']}"
    set_age(home, agent, 13.9)
    assert mngr.ok("gc") == NOTHING
    assert refs(home) == [ref]
    set_age(home, agent, 14.1)
    assert mngr.ok("gc") == f"removed trash/{agent['id']}: parked work, older than 14 days\n"
    assert refs(home) == []
    assert list((home.mngr_home / "trash").iterdir()) == []


def test_parked_files_of_a_copy_go_after_fourteen_days(mngr: Mngr, home: Home) -> None:
    home.cwd = home.path / "plain"
    home.cwd.mkdir()
    agent = create(mngr, "a", "copy")
    (work(agent) / "new").write_text("work")
    mngr.ok("destroy", "-f", "a")
    assert mngr.ok("gc") == NOTHING
    assert (home.mngr_home / "trash" / f"{agent['id']}.files" / "new").read_text() == "work"
    set_age(home, agent, 15)
    mngr.ok("gc")
    assert list((home.mngr_home / "trash").iterdir()) == []


# gc: what is never removed


@pytest.mark.parametrize("mode", ["worktree", "clone"])
@pytest.mark.parametrize(
    "unsaved",
    ["echo new >new", "echo changed >>README.md", "git checkout -q --detach && git commit -q --allow-empty -m Beside"],
)
def test_unsaved_work_without_an_agent_is_named_and_left_alone(
    mngr: Mngr, home: Home, repo: Path, mode: str, unsaved: str
) -> None:
    agent = create(mngr, "a", mode)
    home.run("sh", "-c", unsaved, cwd=work(agent))
    mngr.ok("stop", "a")
    lose(home, agent)
    for _ in range(2):
        assert f"mngr: work/{agent['id']}: work dir without an agent, with unsaved work" in mngr("gc").err
    assert work(agent).exists()
    if mode == "clone":
        home.run("git", "fsck", cwd=work(agent))  # its store is still there


def test_commits_that_only_a_clone_has_are_unsaved_work(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a", "clone")
    clean = create(mngr, "b", "clone")
    tip = commit(home, agent, "Work")
    mngr.ok("stop", "--all")
    for each in (agent, clean):
        lose(home, each)
    mngr.ok("gc")
    assert home.run("git", "rev-parse", "HEAD", cwd=work(agent)).strip() == tip
    assert not work(clean).exists()


def test_the_branch_of_a_lost_agent_stays(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    tip = commit(home, agent, "Work")
    lose(home, agent)
    mngr.ok("gc")
    assert not work(agent).exists()
    assert home.run("git", "rev-parse", "mngr/a").strip() == tip


@pytest.mark.parametrize("what", ["a directory", "a file"])
def test_what_is_no_repository_is_left_alone(mngr: Mngr, home: Home, what: str) -> None:
    create(mngr, "a", "none")
    left = home.mngr_home / "work" / "something"
    if what == "a directory":
        left.mkdir(parents=True)
        (left / "precious").touch()
    else:
        left.parent.mkdir(exist_ok=True)
        left.touch()
    result = mngr("gc")
    assert (result.code, result.out) == (0, "")
    assert "work/something: work dir without an agent, with unsaved work" in result.err
    assert left.exists()


@pytest.mark.parametrize("directory", ["work", "trash", "agents", "repos"])
def test_a_name_with_a_newline_forges_nothing(mngr: Mngr, home: Home, directory: str) -> None:
    create(mngr, "a", "none")
    (home.mngr_home / "work").mkdir(exist_ok=True)
    names = {"agents": f".x\nfile work.{dead_pid()}", "repos": "x\nfile work\nx.git"}
    evil = home.mngr_home / directory / names.get(directory, "x\nfile work")
    if directory == "trash":
        evil.parent.mkdir()
        evil.write_text("1\n")
    else:
        evil.mkdir(parents=True)
    assert "would remove" not in mngr.ok("gc", "--dry-run")
    mngr.ok("gc")
    assert (evil.exists(), (home.mngr_home / "work").exists()) == (True, True)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        *[("file", "work"), ("file", "agents"), ("file", "agents/../work/.x.1"), ("store", "repos")],
        *[("work", "work"), ("work", "work/../agents"), ("work", "work/x.git"), ("store", "work/x.git")],
        *[("trash", "names"), ("session", "somebodys"), ("feed", "config.toml")],
    ],
)
def test_nothing_is_swept_but_what_has_the_shape_of_a_leftover(home: Home, mngr: Mngr, kind: str, what: str) -> None:
    create(mngr, "a", "none")
    wait_until(lambda: list(home.mngr_home.glob("agents/*/pid")))  # the last file that it makes
    home.tmux("new-session", "-d", "-s", "somebodys", "sleep 1000")
    (home.mngr_home / "work" / "x.git").mkdir(parents=True)
    before = (paths(home), home.tmux("list-sessions"))
    line = (
        "from mngr.fleet.gc import *; from mngr.fleet.fleet import Fleet; import sys; "
        "sweep(Fleet(), [Leftover(host='local', kind=sys.argv[1], what=sys.argv[2])])"
    )
    told = subprocess.run([sys.executable, "-c", line, kind, what], env=home.env, text=True, capture_output=True)
    assert f"{what} is no leftover" in told.stderr
    assert (paths(home), home.tmux("list-sessions")) == before


def test_a_store_with_packed_refs_of_snapshots_stays(mngr: Mngr, home: Home, repo: Path) -> None:
    create(mngr, "a", "clone")
    mngr.ok("snapshot", "create", "a", "x")
    mngr.ok("destroy", "-f", "a")
    (store,) = (home.mngr_home / "repos").iterdir()
    home.run("git", "pack-refs", "--all", cwd=store)
    assert mngr.ok("gc") == NOTHING
    mngr.ok("create", "b", "--from", "a/x")


def test_no_store_goes_while_an_agent_is_being_made(mngr: Mngr, home: Home, repo: Path) -> None:
    create(mngr, "a", "clone")
    making = create(mngr, "b")
    mngr.ok("destroy", "-f", "a")
    creating = home.mngr_home / "agents" / making["id"] / "creating"
    creating.write_text(f"{os.getpid()}\n")
    assert mngr.ok("gc") == NOTHING
    creating.unlink()
    assert "object store that nobody borrows from" in mngr.ok("gc")


def test_parked_files_without_a_record_are_named_and_left_alone(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "none")
    left = home.mngr_home / "trash" / "0123456789ab.files"
    left.mkdir(parents=True)
    assert "mngr: trash/0123456789ab.files: " in mngr("gc").err
    assert left.exists()


def test_gc_forgets_no_worktree_of_the_users(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "worktree", "add", "-q", "-b", "mine", str(home.root / "disk"))
    shutil.rmtree(home.root / "disk")
    agent = create(mngr, "a")
    lose(home, agent)
    mngr.ok("gc")
    listed = home.run("git", "worktree", "list")
    assert (agent["id"] in listed, "/disk " in listed) == (False, True)


def test_dry_run_tells_and_changes_nothing(mngr: Mngr, home: Home, repo: Path) -> None:
    agent, parked = create(mngr, "a"), create(mngr, "b", "clone")
    commit(home, parked, "Work")
    mngr.ok("destroy", "-f", "b")
    set_age(home, parked, 15)
    (home.mngr_home / "agents" / f".new.{dead_pid()}").mkdir()
    lose(home, agent)
    before = (paths(home), refs(home), home.tmux("list-sessions"))
    told = mngr.ok("gc", "--dry-run")
    assert {line.split()[0] + " " + line.split()[1] for line in told.splitlines()} == {"would remove"}
    assert {each["kind"] for each in mngr.json("gc", "--dry-run")} == {
        "name",
        "file",
        "work",
        "trash",
        "session",
        "store",
    }
    assert (paths(home), refs(home), home.tmux("list-sessions")) == before
    assert told.replace("would remove", "removed") == mngr.ok("gc")
    assert mngr.ok("gc") == NOTHING


# doctor


def test_doctor_is_content_before_the_first_agent_and_with_one(mngr: Mngr, home: Home) -> None:
    shutil.rmtree(home.mngr_home)
    assert "does not exist yet" in mngr.ok("doctor")
    assert not (home.mngr_home / "agents").exists()
    create(mngr, "a", "none")
    told = mngr.ok("doctor")
    assert {line.split()[0] for line in told.splitlines()} == {"ok"}
    assert "1 agent" in told
    assert {finding["level"] for finding in mngr.json("doctor")} == {"ok"}


def test_doctor_finds_a_damaged_agent(mngr: Mngr, home: Home) -> None:
    agent = create(mngr, "a", "none")
    (home.mngr_home / "agents" / agent["id"] / "agent.json").write_text("{")
    result = mngr("doctor")
    assert result.code == 1
    (line,) = [line for line in result.out.splitlines() if line.startswith("bad")]
    assert "a is damaged" in line
    assert line.endswith("->  mngr destroy -f a")
    mngr.ok("destroy", "-f", "a")
    mngr.ok("doctor")


@pytest.mark.parametrize(("program", "version"), [("tmux", "tmux 2.9a"), ("git", "git version 2.11.0")])
def test_doctor_finds_a_program_that_is_too_old(mngr: Mngr, home: Home, program: str, version: str) -> None:
    shadow(home, program, f"echo {version}")
    result = mngr("doctor")
    assert result.code == 1
    assert f"{version.replace('version ', '')} is too old  ->  install" in result.out


@pytest.mark.parametrize("version", ["tmux next-3.6", "tmux openbsd-7.6", "tmux 3.5a"])
def test_doctor_takes_a_new_program_of_any_spelling(mngr: Mngr, home: Home, version: str) -> None:
    shadow(home, "tmux", f"echo {version}")
    assert version in mngr.ok("doctor")


@pytest.mark.parametrize("program", ["tmux", "git", "tar", "awk"])
def test_doctor_finds_a_program_that_is_missing(mngr: Mngr, home: Home, program: str) -> None:
    programs = home.root / "programs"
    programs.mkdir()
    for directory in home.env["PATH"].split(":"):
        for path in Path(directory).iterdir():
            if path.name != program and not (programs / path.name).is_symlink():
                (programs / path.name).symlink_to(path)
    result = mngr("doctor", env={"PATH": str(programs)})
    assert result.code == 1
    assert f"bad   local: {program} is missing  ->  install {program}" in result.out


def test_doctor_warns_of_directories_that_others_can_read(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "none")
    agents = home.mngr_home / "agents"
    agents.chmod(0o755)
    told = mngr.ok("doctor")
    assert f"warn  {agents} can be read by others, and holds environments  ->  chmod 700 {agents}" in told
    agents.chmod(0o700)
    assert "warn" not in mngr.ok("doctor")


def test_doctor_warns_of_leftovers_and_removes_none(mngr: Mngr, home: Home, repo: Path) -> None:
    agent = create(mngr, "a")
    lose(home, agent)
    before = paths(home)
    told = mngr.ok("doctor")
    assert f"warn  work/{agent['id']}: work dir without an agent, with nothing unsaved in it  ->  mngr gc" in told
    assert paths(home) == before


def test_doctor_warns_of_an_agent_without_a_work_dir_or_without_a_session(mngr: Mngr, home: Home, repo: Path) -> None:
    shutil.rmtree(work(create(mngr, "a")))
    line = "trap '' HUP; touch ready; while :; do sleep 1000; done"
    mngr.ok("create", "b", "command", "--mode", "none", "--", "sh", "-c", line)
    wait_until((repo / "ready").exists)
    os.kill(int(home.tmux("display", "-p", "#{pid}")), signal.SIGKILL)
    told = wait_until(lambda: text if "without a session" in (text := mngr("doctor").out) else "")
    assert "warn  the work dir of a is gone  ->  mngr destroy a" in told
    assert "warn  b lives without a session  ->  mngr stop b, then mngr start it" in told


def test_doctor_finds_a_configuration_that_cannot_be_read(mngr: Mngr, home: Home) -> None:
    (home.mngr_home / "config.toml").write_text("type = \n")
    result = mngr("doctor")
    assert result.code == 1
    assert "bad" in result.out
    assert "config.toml" in result.out


# What these tests speak about


def create(mngr: Mngr, name: str, mode: str = "worktree") -> dict[str, Any]:
    made: dict[str, Any] = mngr.json("create", name, "command", "--mode", mode, "--", "sleep 1000")[0]
    return made


def one(mngr: Mngr, name: str) -> dict[str, Any]:
    found: dict[str, Any] = mngr.json("list", name)[0]
    return found


def work(agent: dict[str, Any]) -> Path:
    return Path(agent["work_dir"])


def lose(home: Home, agent: dict[str, Any]) -> None:
    """The agent's own directory is lost, an hour after it was made."""
    directory = home.mngr_home / "agents" / agent["id"]
    # The last file that its launcher makes; one that was stopped before it began makes none.
    wait_until(lambda: (directory / "pid").exists() or (directory / "state").read_text().startswith("stopped"))
    shutil.rmtree(directory)
    os.utime(home.mngr_home / "names" / agent["name"], (time.time() - 3600,) * 2, follow_symlinks=False)


def commit(home: Home, agent: dict[str, Any], subject: str) -> str:
    home.run("git", "commit", "-q", "--allow-empty", "-m", subject, cwd=work(agent))
    return home.run("git", "rev-parse", "HEAD", cwd=work(agent)).strip()


def refs(home: Home) -> list[str]:
    return home.run("git", "for-each-ref", "--format=%(refname)", "refs/mngr").split()


def paths(home: Home) -> list[str]:
    return sorted(str(path) for path in home.mngr_home.rglob("*"))


def set_age(home: Home, agent: dict[str, Any], days: float) -> None:
    """As if it had been parked that long ago."""
    file = home.mngr_home / "trash" / agent["id"]
    _, _, rest = file.read_text().partition("\n")
    file.write_text(f"{int(time.time() - days * DAY)}\n{rest}")


def dead_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


def shadow(home: Home, program: str, line: str) -> None:
    """From now on that program is this."""
    (home.root / "fake").mkdir()
    (home.root / "fake" / program).write_text(f"#!/bin/sh\n{line}\n")
    (home.root / "fake" / program).chmod(0o755)
    home.env["PATH"] = f"{home.root}/fake:{home.env['PATH']}"
