"""The world of one test, and its end, whatever dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mngr.e2e.command import run
from mngr.e2e.sandbox import MARK, Sandbox, processes
from tests.home import is_alive, wait_until


def test_nothing_of_the_callers_environment_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/somewhere,1,0")
    monkeypatch.setenv("API_TOKEN", "secret")
    sandbox = Sandbox()
    assert "TMUX" not in sandbox.env
    assert "secret" not in sandbox.env.values()
    assert sandbox.env["HOME"] == str(sandbox.home)
    sandbox.remove()
    assert not sandbox.root.exists()


def test_all_processes_end_with_it_also_those_that_hid() -> None:
    sandbox = Sandbox()
    hidden = "setsid sh -c 'cd /; echo $$ >$HOME/pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &"
    run(hidden, env=sandbox.env, cwd=sandbox.work)
    wait_until(lambda: (sandbox.home / "pid").exists() and (sandbox.home / "pid").read_text().strip())
    pid = int((sandbox.home / "pid").read_text())
    assert list(processes(sandbox.root)) == [pid]
    sandbox.remove()
    assert not is_alive(pid)


def test_a_neighbour_whose_name_begins_the_same_is_left_alone(tmp_path: Path) -> None:
    near = tmp_path / "e2e-ab"
    process = subprocess.Popen(["sleep", "1000"], env={MARK: f"{near}c", "PATH": os.defpath}, cwd="/")
    try:
        assert processes(near) == {}
        assert list(processes(tmp_path / "e2e-abc")) == [process.pid]
    finally:
        process.kill()
        process.wait()


def test_rights_that_were_taken_away_do_not_keep_it() -> None:
    sandbox = Sandbox()
    (sandbox.work / "locked" / "deep").mkdir(parents=True)
    (sandbox.work / "locked" / "deep" / "file").touch()
    (sandbox.work / "locked").chmod(0o500)
    sandbox.remove()
    assert not sandbox.root.exists()


def test_what_the_mark_does_not_reach_is_ended_by_a_command() -> None:
    sandbox = Sandbox()
    process = subprocess.Popen(["sleep", "1000"], env={"PATH": os.defpath}, cwd="/")
    sandbox.at_end(f"kill {process.pid}")
    sandbox.remove()
    assert process.wait(10) == -signal.SIGTERM


def test_commands_at_the_end_run_in_the_world_of_the_test(tmp_path: Path) -> None:
    sandbox = Sandbox()
    sandbox.at_end("exit 3")
    sandbox.at_end(f'echo "$HOME" >{tmp_path}/home')
    sandbox.remove()
    assert (tmp_path / "home").read_text() == f"{sandbox.home}\n"


def test_one_that_is_gone_already_leaves_its_neighbourhood_alone(tmp_path: Path) -> None:
    """Whoever removes as root could change the rights of what is above it."""
    before = os.stat("/tmp").st_mode
    sandbox = Sandbox()
    shutil.rmtree(sandbox.root)
    sandbox.remove()
    assert os.stat("/tmp").st_mode == before


def test_what_is_mounted_in_it_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    sandbox = Sandbox()
    place = sandbox.work / "mounted"
    place.mkdir()
    mounted = subprocess.run(["mount", "--bind", str(tmp_path), str(place)], capture_output=True, text=True)
    sandbox.remove()
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.strip()}")
    assert (tmp_path / "precious").exists()
    assert not sandbox.root.exists()


def test_a_reaper_that_was_ended_is_replaced() -> None:
    script = """
import os, signal, subprocess, sys
from pathlib import Path
from mngr.e2e.sandbox import Sandbox
first = Sandbox()
[pid] = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout.split()[:1]
os.kill(int(pid), signal.SIGKILL)
os.waitpid(int(pid), 0)
second = Sandbox()
print(first.root, second.root, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    roots = told.stdout.split()
    assert len(roots) == 2, told.stderr
    wait_until(lambda: not any(map(os.path.exists, roots)))


def test_who_stands_in_it_and_removes_it_lives_on() -> None:
    sandbox = Sandbox()
    sandbox.keep()
    done = subprocess.run(
        ["sh", "-c", f"cd {sandbox.work} && {sandbox.root}/remove; echo survived"], capture_output=True, text=True
    )
    assert done.stdout == "survived\n"
    assert not sandbox.root.exists()


KILLED = """
import os, signal, subprocess
from mngr.e2e.sandbox import Sandbox
sandbox = Sandbox()
child = subprocess.Popen(["sleep", "1000"], env=sandbox.env, cwd="/", start_new_session=True)
kept = Sandbox()
kept.keep()
print(sandbox.root, kept.root, child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_owner_leaves_nothing_but_what_was_to_be_kept() -> None:
    told = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True)
    root, kept, pid = told.stdout.split()
    wait_until(lambda: not os.path.exists(root))
    assert not is_alive(int(pid))
    entered = subprocess.run([f"{kept}/enter", "-c", "pwd; echo $HOME"], capture_output=True, text=True)
    assert entered.stdout == f"{kept}/work\n{kept}/home\n"
    subprocess.run([f"{kept}/remove"], check=True)
    assert not os.path.exists(kept)
