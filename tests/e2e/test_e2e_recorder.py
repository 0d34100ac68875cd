"""mngr-e2e-connect: agents are recorded from the moment they are made, by recorders that end with what they record."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.e2e.cast import Cast, add_markers, read
from mngr.e2e.recorder import stop_recorders
from tests.home import Home, Mngr, is_alive, wait_until

RECORD = f"{shlex.quote(sys.executable)} -m mngr.e2e.recorder"


@pytest.fixture
def casts(home: Home) -> Iterator[Path]:
    casts = home.root / "casts"
    casts.mkdir()
    home.env["MNGR_E2E_CASTS"] = str(casts)
    yield casts
    stop_recorders(casts)
    assert not list(casts.glob("*.pid"))


def test_an_agent_is_recorded_without_anybody_attached(mngr: Mngr, home: Home, casts: Path) -> None:
    create(mngr, "a", "echo hello ü中; while ! [ -e go ]; do sleep 0.02; done; echo again; exec sleep 1000")
    began = time.time()
    (home.path / "go").touch()
    wait_until(lambda: "again" in text(casts / "a.cast"))
    stop_recorders(casts)
    add_markers(casts / "a.cast", [(began, "2 go"), (0, "1 create")])
    cast = read(casts / "a.cast")
    assert (cast.width, cast.height) == (200, 50)
    assert text(casts / "a.cast").count("hello ü中") == 1
    assert labels_before(cast, "again") == ["1 create", "2 go"]
    assert mngr.json("list")[0]["state"] == "running"


def test_what_was_on_the_screen_before_is_in_the_recording(mngr: Mngr, casts: Path) -> None:
    mngr.ok("create", "a", "command", "--mode", "none", "--no-connect", "--", "printf '\\033[31mred'; exec cat")
    wait_until(lambda: "red" in mngr.ok("capture", "a"))
    mngr.ok("connect", "a", "--connect-command", RECORD)
    at, code, data = read(casts / "a.cast").events[0]
    assert (at, code) == (0, "o")
    assert "\x1b[31mred" in data
    assert data.endswith("\x1b[1;4H\x1b[?25h")


def test_the_window_keeps_its_size(mngr: Mngr, home: Home, casts: Path) -> None:
    create(mngr, "a", "trap 'echo resized' WINCH; while :; do sleep 0.02; done")
    assert window_sizes(home) == ["200x50"]
    assert home.tmux("list-clients", "-F", "#{client_readonly}").split() == ["1"]
    stop_recorders(casts)
    wait_until(lambda: not home.tmux("list-clients"))
    assert window_sizes(home) == ["200x50"]
    assert "resized" not in mngr.ok("capture", "a")


def test_a_window_that_changes_its_size_does_so_in_the_recording(mngr: Mngr, home: Home, casts: Path) -> None:
    create(mngr, "a", "exec sleep 1000")
    home.tmux("resize-window", "-x", "100", "-y", "30")
    wait_until(lambda: ("r", "100x30") in [event[1:] for event in read(casts / "a.cast").events])


def test_agents_of_the_same_name_are_recorded_apart(mngr: Mngr, casts: Path) -> None:
    create(mngr, "a", "echo first; exec sleep 1000")
    mngr.ok("destroy", "a", "--force")
    create(mngr, "a", "echo second; exec sleep 1000")
    wait_until(lambda: "second" in text(casts / "a-2.cast"))
    assert "second" not in text(casts / "a.cast")


def test_the_recording_of_a_program_that_ended_ends_with_its_last_screen(mngr: Mngr, home: Home, casts: Path) -> None:
    create(mngr, "a", "while ! [ -e go ]; do sleep 0.02; done; echo last words; exit 3")
    (home.path / "go").touch()
    mngr.ok("wait", "a", "--for", "failed")
    stop_recorders(casts)
    *_, (_, code, data), end = read(casts / "a.cast").events
    assert (code, end[1:]) == ("o", ("o", ""))
    assert "\x1b[2Jlast words\x1b[m" in data


# Recorders end


def test_a_destroyed_agent_ends_its_recorder(mngr: Mngr, casts: Path) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    pid = recorder(casts)
    wait_until(lambda: "hello" in text(casts / "a.cast"))
    mngr.ok("destroy", "a", "--force")
    wait_until(lambda: not is_alive(pid))
    wait_until(lambda: not list(casts.glob("*.pid")))
    assert "hello" in text(casts / "a.cast")


def test_the_end_of_the_server_ends_the_recorder(mngr: Mngr, home: Home, casts: Path) -> None:
    create(mngr, "a", "exec sleep 1000")
    pid = recorder(casts)
    home.tmux("kill-server")
    wait_until(lambda: not is_alive(pid))


@pytest.mark.parametrize("collected", [True, False])
def test_the_end_of_its_owner_ends_the_recorder(mngr: Mngr, home: Home, casts: Path, collected: bool) -> None:
    owner = subprocess.Popen(["sleep", "1000"])
    home.env["MNGR_E2E_OWNER"] = str(owner.pid)
    create(mngr, "a", "exec sleep 1000")
    pid = recorder(casts)
    assert is_alive(pid)
    owner.kill()
    if collected:
        owner.wait()
    wait_until(lambda: not is_alive(pid))
    owner.wait()
    assert not list(casts.glob("*.pid"))
    assert mngr.json("list")[0]["state"] == "running"
    result = mngr("connect", "a", "--connect-command", RECORD)
    assert (result.code, f"process {owner.pid}, for which this would record, is gone" in result.err) == (1, True)


def test_a_killed_recorder_leaves_a_recording_and_nothing_else(mngr: Mngr, home: Home, casts: Path) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    pid = recorder(casts)
    wait_until(lambda: "hello" in text(casts / "a.cast"))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not home.tmux("list-clients"))
    stop_recorders(casts)
    assert [path.name for path in casts.iterdir()] == ["a.cast"]
    assert "hello" in text(casts / "a.cast")
    assert "hello" in home.run("asciinema", "cat", str(casts / "a.cast"))


def test_a_recorder_that_does_not_listen_is_killed(mngr: Mngr, casts: Path) -> None:
    create(mngr, "a", "exec sleep 1000")
    pid = recorder(casts)
    os.kill(pid, signal.SIGSTOP)
    stop_recorders(casts, timeout=0.2)
    wait_until(lambda: not is_alive(pid))  # its lock goes a moment earlier than itself
    assert not list(casts.glob("*.pid"))


def test_a_number_that_belongs_to_another_process_by_now_is_left_alone(casts: Path) -> None:
    other = subprocess.Popen(["sleep", "1000"])
    (casts / "a.cast.pid").write_text(f"{other.pid}\n")
    stop_recorders(casts)
    assert other.poll() is None
    other.kill()
    other.wait()
    assert not list(casts.iterdir())


# What is missing is said


def test_without_a_directory_or_a_session_it_refuses(home: Home) -> None:
    for env, missing in (({}, "MNGR_E2E_CASTS"), ({"MNGR_E2E_CASTS": "x"}, "MNGR_SESSION")):
        done = run({**home.env, **env})
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"mngr-e2e-connect: {missing}")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("socket", [True, False])
def test_a_session_that_is_not_there_is_said(mngr: Mngr, home: Home, casts: Path, socket: bool) -> None:
    if socket:
        mngr.ok("create", "a", "command", "--mode", "none", "--no-connect", "--", "sleep", "1000")
    done = run({**home.env, "MNGR_SESSION": "nobody", "MNGR_TMUX_SOCKET": str(home.socket)})
    assert done.returncode == 1
    assert ("nobody" if socket else str(home.socket)) in done.stderr
    assert not list(casts.iterdir())


def create(mngr: Mngr, name: str, line: str) -> None:
    mngr.ok("create", name, "command", "--mode", "none", "--connect-command", RECORD, "--", line)


def recorder(casts: Path) -> int:
    (path,) = casts.glob("*.pid")
    return int(path.read_text())


def text(path: Path) -> str:
    return "".join(data for _, code, data in read(path).events if code == "o")


def labels_before(cast: Cast, wanted: str) -> list[str]:
    place = next(number for number, event in enumerate(cast.events) if wanted in event[2])
    return [data for _, code, data in cast.events[:place] if code == "m"]


def window_sizes(home: Home) -> list[str]:
    return home.tmux("list-windows", "-a", "-F", "#{window_width}x#{window_height}").split()


def run(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(shlex.split(RECORD), env=env, capture_output=True, text=True, timeout=30)
