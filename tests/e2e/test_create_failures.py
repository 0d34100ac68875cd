"""create that fails, is interrupted or is killed leaves nothing behind: no work dir, branch, session, directory, name.
The world is compared before and after, and the same create then works."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents import SLEEP, branches, commit, entries
from tests.home import Home, Mngr, Result, wait_until


def traces(home: Home, repo: Path) -> dict[str, Any]:
    """Everything that a create makes, wherever it makes it."""
    places = ("agents", "work", "names", "snapshots", "trash")
    found: dict[str, Any] = {place: entries(home.mngr_home / place) for place in places}
    found["refs"] = home.run("git", "for-each-ref", "--format=%(refname) %(objectname)", cwd=repo)
    found["worktrees"] = home.run("git", "worktree", "list", cwd=repo), entries(repo / ".git" / "worktrees")
    found["status"] = home.run("git", "--no-optional-locks", "status", "--porcelain", cwd=repo)
    found["sessions"] = home.tmux("list-sessions", "-F", "#{session_name}", check=False) if home.socket.exists() else ""
    return found


def fails(mngr: Mngr, *words: str, said: str, code: int = 1) -> Result:
    """The create fails with that exit code, says so in a line, and the world is as before; then a plain one works."""
    home, repo = mngr.home, mngr.home.cwd
    before = traces(home, repo)
    result = mngr("create", "foo", "command", *words)
    assert (result.code, result.out) == (code, ""), result
    assert said in result.err
    assert all(line.startswith(("mngr: ", "hint: ")) for line in result.err.splitlines())
    assert traces(home, repo) == before
    return result


def works_now(mngr: Mngr, *options: str) -> None:
    assert mngr.ok("create", "foo", "command", *options, *SLEEP) == "foo\n"
    assert mngr.json("list")[0]["state"] in ("starting", "running")


# Each step on the way.


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_a_base_that_is_no_commit(mngr: Mngr, repo: Path, mode: str) -> None:
    fails(mngr, "--mode", mode, "--base", "no-such", *SLEEP, said="no-such is not a commit in")
    fails(mngr, "--mode", mode, "--base", "HEAD:README.md", *SLEEP, said="is not a commit in")
    works_now(mngr, "--mode", mode)


def test_a_branch_of_that_name_exists_and_survives(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "branch", "mngr/foo")
    fails(mngr, *SLEEP, said="branch mngr/foo exists already")
    works_now(mngr, "--branch", "mngr/foo")


def test_a_branch_is_in_the_way_of_the_new_one(mngr: Mngr, home: Home, repo: Path) -> None:
    home.run("git", "branch", "mngr")
    fails(mngr, *SLEEP, said="foo was not created: ")
    works_now(mngr, "--branch", "other")


def test_a_branch_that_is_checked_out_elsewhere(mngr: Mngr, repo: Path) -> None:
    fails(mngr, "--branch", "main", *SLEEP, said="already checked out")
    works_now(mngr)


def test_a_name_that_is_no_branch(mngr: Mngr, repo: Path) -> None:
    fails(mngr, "--branch", "a..b", *SLEEP, said="'a..b' is not a valid branch name", code=2)


@pytest.mark.parametrize("mode", ["worktree", "clone", "none"])
def test_a_program_that_does_not_exist(mngr: Mngr, repo: Path, mode: str) -> None:
    fails(mngr, "--mode", mode, "--", "no-such-program", said="there is no program called no-such-program")
    works_now(mngr, "--mode", mode)


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_a_setup_that_fails(mngr: Mngr, repo: Path, mode: str) -> None:
    setup = "git commit -q --allow-empty -m x; touch new; echo 'no compiler' >&2; exit 3"
    result = fails(mngr, "--mode", mode, "--setup", setup, *SLEEP, said="setup ended with 3")
    assert "no compiler" in result.err, "the last words of the setup are the best explanation"
    works_now(mngr, "--mode", mode)


def test_a_setup_that_fails_in_place_leaves_the_users_directory_alone(mngr: Mngr, repo: Path) -> None:
    (repo / ".env").write_text("mine\n")
    fails(mngr, "--mode", "none", "--setup", "false", *SLEEP, said="setup ended with 1")
    assert (repo / ".env").read_text() == "mine\n"
    assert (repo / "README.md").exists()


def test_a_checkout_hook_that_fails(mngr: Mngr, repo: Path) -> None:
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    fails(mngr, *SLEEP, said="foo was not created: ")
    hook.unlink()
    works_now(mngr)


@pytest.mark.parametrize("place", ["work", "agents", "names"])
def test_a_file_in_the_way(mngr: Mngr, home: Home, repo: Path, place: str) -> None:
    (home.mngr_home / place).write_text("in the way\n")
    fails(mngr, *SLEEP, said=f"{home.mngr_home}/{place}")
    assert (home.mngr_home / place).read_text() == "in the way\n"
    (home.mngr_home / place).unlink()
    works_now(mngr)


def test_a_file_in_the_way_of_the_store(mngr: Mngr, home: Home, repo: Path) -> None:
    (home.mngr_home / "repos").write_text("in the way\n")
    fails(mngr, "--mode", "clone", *SLEEP, said="foo was not created: ")
    (home.mngr_home / "repos").unlink()
    works_now(mngr, "--mode", "clone")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_no_room_for_the_files(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    """A limit on the size of files stands for a full disk: git cannot write what it checks out."""
    (repo / "large").write_bytes(os.urandom(600_000))
    commit(home, repo, "A large file")
    before = traces(home, repo)
    limited = mngr.popen("create", "foo", "command", "--mode", mode, *SLEEP, preexec_fn=limit_files(300_000))
    said = limited.communicate(timeout=20)[1]
    assert limited.returncode == 1
    assert said.startswith("mngr: foo was not created: ")
    assert traces(home, repo) == before
    works_now(mngr, "--mode", mode)


def limit_files(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_tmux_that_cannot_start(mngr: Mngr, home: Home, repo: Path) -> None:
    home.socket.mkdir(parents=True, mode=0o700)  # where the server wants its socket
    try:
        fails(mngr, "--window", "logs=sleep 100", *SLEEP, said="foo was not created: ")
    finally:
        home.socket.rmdir()
    works_now(mngr)


def test_no_tmux_at_all(mngr: Mngr, home: Home, repo: Path) -> None:
    tools = home.root / "bin"
    tools.mkdir()
    for directory in home.env["PATH"].split(":"):
        for program in os.listdir(directory) if os.path.isdir(directory) else []:
            if program != "tmux" and not (tools / program).exists():
                (tools / program).symlink_to(f"{directory}/{program}")
    path, home.env["PATH"] = home.env["PATH"], str(tools)
    fails(mngr, *SLEEP, said="tmux")
    home.env["PATH"] = path
    works_now(mngr)


def test_a_source_that_is_gone(mngr: Mngr, home: Home, repo: Path) -> None:
    fails(mngr, "--from", f"{repo}/absent", *SLEEP, said=f"{repo}/absent is not a directory that can be entered")


def test_from_a_damaged_agent(mngr: Mngr, home: Home, repo: Path) -> None:
    (broken,) = mngr.json("create", "broken", "command", *SLEEP)
    (home.mngr_home / "agents" / broken["id"] / "agent.json").write_text("{")
    fails(mngr, "--from", "broken", *SLEEP, said="broken is damaged: ")


def test_from_an_agent_whose_work_dir_is_gone(mngr: Mngr, home: Home, repo: Path) -> None:
    (lost,) = mngr.json("create", "lost", "command", *SLEEP)
    shutil.rmtree(lost["work_dir"])
    fails(mngr, "--from", "lost", *SLEEP, said="lost")


def test_all_of_many_fail(mngr: Mngr, home: Home, repo: Path) -> None:
    before = traces(home, repo)
    result = mngr("create", "foo", "command", "--count", "6", "--setup", "false", *SLEEP)
    assert result.code == 6
    assert result.err.count(" was not created: setup ended with 1") == 6
    assert traces(home, repo) == before


def test_one_setup_of_many_fails_and_only_that_one_is_taken_back(mngr: Mngr, home: Home, repo: Path) -> None:
    result = mngr(*("create", "foo", "command", "--count", "3"), "--setup", '[ "$MNGR_AGENT_NAME" != foo-2 ]', *SLEEP)
    assert (result.code, result.out) == (6, "foo-1\nfoo-3\n")
    assert mngr.ok("list", "--names").split() == ["foo-1", "foo-3"]
    assert branches(home, "mngr/*") == ["mngr/foo-1", "mngr/foo-3"]


# Ctrl-C and kill.


class Slow:
    """A create that is in the middle of its setup, until it is told to go on."""

    def __init__(self, mngr: Mngr, *options: str) -> None:
        self.home = mngr.home
        self.gate = self.home.root / "gate"
        os.mkfifo(self.gate)
        self.held = os.open(self.gate, os.O_RDWR)
        ready = self.home.root / "ready"
        setup = f"touch new '{ready}'; echo $$ >'{ready}'; read go <'{self.gate}'"
        # a session of its own: Ctrl-C in a terminal reaches the whole foreground group
        self.mngr = mngr.popen(
            *("create", "foo", "command", "--setup", setup, *options, *SLEEP),
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.setup_pid = int(wait_until(lambda: ready.exists() and ready.read_text(), what="the setup to run"))
        self.script_group = os.getpgid(self.setup_pid)

    def go_on(self) -> None:
        os.write(self.held, b"go\n")

    def wait_for_the_script(self) -> None:
        """Until nothing of what mngr started lives."""
        wait_until(lambda: self.script_group not in map(group_of, self.home.processes()), what="the script to end")

    def close(self) -> None:
        os.close(self.held)


def group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


@pytest.mark.parametrize("mode", ["worktree", "clone"])
@pytest.mark.parametrize("count", ["1", "3"])
def test_ctrl_c_takes_everything_back(mngr: Mngr, home: Home, repo: Path, mode: str, count: str) -> None:
    before = traces(home, repo)
    slow = Slow(mngr, "--mode", mode, "--count", count)
    os.killpg(slow.mngr.pid, signal.SIGINT)
    assert slow.mngr.wait(20) == 130
    assert traces(home, repo) == before
    slow.wait_for_the_script()
    slow.close()
    works_now(mngr, "--mode", mode)


def test_term_takes_everything_back(mngr: Mngr, home: Home, repo: Path) -> None:
    """As `timeout 60 mngr create ...` does."""
    before = traces(home, repo)
    slow = Slow(mngr)
    slow.mngr.terminate()
    assert slow.mngr.wait(20) == 143
    assert traces(home, repo) == before
    slow.wait_for_the_script()
    slow.close()


def test_ctrl_c_says_nothing_but_that(mngr: Mngr, repo: Path) -> None:
    slow = Slow(mngr)
    os.killpg(slow.mngr.pid, signal.SIGINT)
    out, err = slow.mngr.communicate(timeout=20)
    slow.close()
    assert out == ""
    assert "Traceback" not in err


def test_what_came_to_life_before_ctrl_c_can_be_called_by_its_name(mngr: Mngr, home: Home, repo: Path) -> None:
    held = home.path / "held"
    programs = home.path / "programs"
    programs.mkdir()
    (programs / "rm").write_text(  # the last thing that a create does is to clear up
        f"#!/bin/sh\ncase $* in *creating*) [ -e '{held}' ] || {{ touch '{held}'; sleep 1000; }} ;; esac\n"
        'exec /bin/rm "$@"\n'
    )
    (programs / "rm").chmod(0o755)
    env = {"PATH": f"{programs}:{home.env['PATH']}"}
    creating = mngr.popen("create", "foo", "command", "-n", "2", *SLEEP, env=env)
    wait_until(held.exists)
    creating.send_signal(signal.SIGINT)
    out, err = creating.communicate(timeout=20)
    assert (creating.returncode, out) == (130, "")
    assert "there already, and kept: foo-1 foo-2" in err
    assert mngr.ok("list", "--format", "{name} {state}") == "foo-1 running\nfoo-2 running\n"
    assert mngr.ok("gc") == "nothing is left over\n"
    assert mngr.ok("destroy", "-f", "foo-*") == "destroyed foo-1\ndestroyed foo-2\n"


def test_while_it_is_being_made_an_agent_is_starting(mngr: Mngr, repo: Path) -> None:
    slow = Slow(mngr)
    (listed,) = mngr.json("list")
    assert (listed["name"], listed["state"]) == ("foo", "starting")
    assert mngr("create", "foo", "command", *SLEEP).code == 1
    assert mngr.ok("gc") == "nothing is left over\n", "what is being made is no leftover"
    slow.go_on()
    assert slow.mngr.wait(20) == 0
    slow.close()
    assert mngr.json("list")[0]["state"] in ("starting", "running")


@pytest.mark.parametrize("mode", ["worktree", "clone"])
def test_after_a_kill_of_everything_gc_leaves_nothing(mngr: Mngr, home: Home, repo: Path, mode: str) -> None:
    before = traces(home, repo)
    slow = Slow(mngr, "--mode", mode)
    os.kill(slow.mngr.pid, signal.SIGKILL)
    os.killpg(slow.script_group, signal.SIGKILL)
    slow.mngr.wait(20)
    slow.wait_for_the_script()
    slow.close()
    (listed,) = mngr.json("list")
    assert (listed["state"], listed["reason"]) == ("failed", "create was interrupted")
    assert "foo: agent whose create was interrupted" in mngr.ok("gc")
    assert traces(home, repo) == before
    works_now(mngr, "--mode", mode)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGHUP])
def test_when_only_mngr_is_killed_the_agent_comes_to_life_all_the_same(
    mngr: Mngr, repo: Path, by: signal.Signals
) -> None:
    slow = Slow(mngr)
    os.kill(slow.mngr.pid, by)
    slow.mngr.wait(20)
    slow.go_on()
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "20")
    slow.close()
    slow.wait_for_the_script()
    assert mngr.ok("gc") == "nothing is left over\n"
    assert mngr.json("list")[0]["state"] == "running"


def test_when_only_mngr_is_killed_and_the_setup_fails_all_is_taken_back(mngr: Mngr, home: Home, repo: Path) -> None:
    before = traces(home, repo)
    slow = Slow(mngr)
    os.kill(slow.mngr.pid, signal.SIGKILL)
    slow.mngr.wait(20)
    os.kill(slow.setup_pid, signal.SIGKILL)
    slow.wait_for_the_script()
    slow.close()
    assert {**traces(home, repo), "names": []} == before
    os.utime(home.mngr_home / "names" / "foo", (1, 1), follow_symlinks=False)
    works_now(mngr)


def test_a_name_whose_create_died_before_anything_else_is_free_after_a_minute(
    mngr: Mngr, home: Home, repo: Path
) -> None:
    (home.mngr_home / "names").mkdir()
    name = home.mngr_home / "names" / "foo"
    name.symlink_to("local/0123456789ab/command")
    assert mngr("create", "foo", "command", *SLEEP).code == 1
    assert mngr.ok("gc") == "nothing is left over\n"
    os.utime(name, (1, 1), follow_symlinks=False)
    assert mngr.ok("gc") == "removed foo: name without an agent\n"
    name.symlink_to("local/0123456789ab/command")
    os.utime(name, (1, 1), follow_symlinks=False)
    works_now(mngr)


def test_half_a_directory_of_a_dead_create_is_swept(mngr: Mngr, home: Home, repo: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    half = home.mngr_home / "agents" / f".new.{gone.pid}" / "0123456789ab"
    half.mkdir(parents=True)
    assert mngr.json("list") == []
    assert f".new.{gone.pid}" in mngr.ok("gc")
    assert entries(home.mngr_home / "agents") == []
