"""What runs: nothing but the agents and one tmux server between calls, a constant number of processes per call, and
nothing of the caller inside the server."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.agents import launched
from tests.home import Home, Mngr, wait_until

COUNTED = "sh tmux git ps grep awk cat sed date tail tr xargs rm mv mkdir stty".split()


class Calls:
    """Wrappers of programs, first on PATH, that write down each call and go on to the real one."""

    def __init__(self, home: Home) -> None:
        self.log = home.root / "calls"
        self.bin = home.root / "counting"
        self.bin.mkdir()
        for name in COUNTED:
            real = shutil.which(name, path=home.env["PATH"])
            if real is not None:
                wrapper = self.bin / name
                wrapper.write_text(f'#!/bin/sh\necho {name} >>"{self.log}"\nexec {real} "$@"\n')
                wrapper.chmod(0o755)
        self.path = f"{self.bin}:{home.env['PATH']}"

    def calls(self, mngr: Mngr, *words: str) -> Counter[str]:
        self.log.write_text("")
        mngr.ok(*words, env={"PATH": self.path})
        return Counter(self.log.read_text().split())


@pytest.fixture
def count(home: Home) -> Calls:
    return Calls(home)


def create(mngr: Mngr, name: str, number: int = 1) -> list[str]:
    """That many agents, without a repository; their names."""
    (mngr.home.cwd / "work").mkdir(exist_ok=True)
    words = ["-n", str(number), "--mode", "none", "--from", "./work", "command", "--", "sleep", "1000"]
    return mngr.ok("create", name, *words).split()


def server_pid(home: Home) -> int:
    return int(home.tmux("display", "-p", "#{pid}"))


# What stays.


def test_beside_each_program_and_its_launcher_only_the_server_runs(mngr: Mngr, repo: Path, home: Home) -> None:
    mngr.ok("create", "foo", "-n", "10", "command", "--", "sleep", "1000")
    wait_until(lambda: list(home.processes().values()).count("sleep 1000") == 10, what="every launcher to be through")
    running = Counter(line.replace(str(home.mngr_home), "HOME") for line in home.processes().values())
    launchers = {
        line: n for line, n in running.items() if line.startswith("sh HOME/agents/") and "/launch agent" in line
    }
    assert sum(launchers.values()) == 10
    assert running["sleep 1000"] == 10
    others = {line for line in running if line not in launchers and line != "sleep 1000"}
    assert len(others) == 1, others
    assert server_pid(home) in home.processes()


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["message", "foo", "-m", "hello"],
        ["capture", "foo"],
        ["explain", "foo"],
        ["events", "foo"],
        ["exec", "foo", "--", "true"],
        ["wait", "foo", "--for", "running"],
        ["label", "foo", "a=b"],
        ["snapshot", "list"],
        ["gc"],
        ["doctor"],
    ],
    ids=lambda words: words[0],
)
def test_no_process_of_a_verb_outlives_it(mngr: Mngr, home: Home, words: list[str]) -> None:
    create(mngr, "foo")
    wait_until(lambda: "sleep 1000" in home.processes().values())
    before = home.processes()
    mngr.ok(*words)
    wait_until(lambda: home.processes() == before, what="nothing to be left of it")


def test_a_call_that_times_out_leaves_no_process_behind(mngr: Mngr, home: Home) -> None:
    create(mngr, "foo")
    wait_until(lambda: "sleep 1000" in home.processes().values())
    before = home.processes()
    assert mngr("wait", "foo", "--for", "done", "--timeout", "0.2").code == 4
    assert mngr("exec", "foo", "--timeout", "0.2", "--", "sleep 1000 & sleep 1000").code == 124
    wait_until(lambda: home.processes() == before, what="nothing to be left of them")


def test_stop_and_destroy_leave_the_server_alone(mngr: Mngr, home: Home) -> None:
    names = create(mngr, "foo", 3)
    mngr.ok("stop", *names)
    mngr.ok("destroy", "-f", *names)
    assert list(home.processes()) == [server_pid(home)]


def test_a_launcher_that_is_killed_is_told_from_one_that_ended(mngr: Mngr, home: Home) -> None:
    """tmux can miss the end of a process: list sees to it that it is told all the same."""
    names = create(mngr, "foo", 6)
    launched(home, 6)
    for pane in home.tmux("list-panes", "-a", "-F", "#{pane_pid}").split():
        os.kill(int(pane), 9)
    wait_until(lambda: "0" not in home.tmux("list-panes", "-a", "-F", "#{pane_dead}").split())
    assert {item["name"]: (item["state"], item["reason"]) for item in mngr.json("list")} == dict.fromkeys(
        names, ("failed", "signal 9")
    )


# How many there are.


def test_list_of_one_and_of_twenty_is_no_call_of_tmux_and_the_same_of_everything(
    mngr: Mngr, home: Home, count: Calls
) -> None:
    """Who lives is known to the kernel; tmux is asked about who does not, once for all."""
    create(mngr, "foo")
    launched(home, 1)
    one = count.calls(mngr, "list")
    create(mngr, "bar", 19)
    launched(home, 20)
    assert count.calls(mngr, "list") == one
    assert count.calls(mngr, "list", "--json") == one
    assert one["tmux"] == 0
    assert one.total() <= 2, one
    gone = next(each["id"] for each in mngr.json("list") if each["name"] == "foo")
    home.tmux("kill-session", "-t", f"={gone}")
    wait_until(lambda: [each["name"] for each in mngr.json("list", "--state", "stopped")] == ["foo"])
    assert count.calls(mngr, "list")["tmux"] == 1


def test_list_does_not_wait_for_a_tmux_that_hangs(mngr: Mngr, home: Home) -> None:
    create(mngr, "foo")
    launched(home, 1)
    server = int(home.tmux("display", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        assert [each["state"] for each in mngr.json("list")] == ["running"]
    finally:
        os.kill(server, signal.SIGCONT)


@pytest.mark.parametrize(
    "verb",
    [
        ["message", "-m", "hello"],
        ["capture"],
        ["events"],
        ["stop"],
        ["start"],
    ],
    ids=lambda verb: verb[0],
)
def test_a_verb_over_two_agents_and_over_twenty_is_the_same_number_of_processes(
    mngr: Mngr, home: Home, count: Calls, verb: list[str]
) -> None:
    names = create(mngr, "foo", 22)
    launched(home, 22)
    if verb[0] == "start":
        mngr.ok("stop", *names)
    two = count.calls(mngr, verb[0], *names[:2], *verb[1:])
    twenty = count.calls(mngr, verb[0], *names[2:], *verb[1:])
    assert two.total() > 0
    assert twenty == two


def test_a_verb_on_one_agent_asks_nothing_about_the_others(mngr: Mngr, home: Home, count: Calls) -> None:
    create(mngr, "foo")
    alone = count.calls(mngr, "message", "foo", "-m", "hello")
    create(mngr, "bar", 20)
    assert count.calls(mngr, "message", "foo", "-m", "hello") == alone


# What is inside the server.


def test_the_server_carries_nothing_of_the_first_caller(mngr: Mngr, home: Home) -> None:
    """It is made by a call with a secret in its environment and on its command line, a lock on descriptor 9, and a
    current directory that goes away: none of it may live on."""
    there = home.root / "gone soon"
    work, lock = home.root / "work", home.root / "lock"
    there.mkdir()
    work.mkdir()
    line = 'exec 9>"$1"; flock 9; shift; exec "$@"'
    words = [
        "create",
        "foo",
        "--mode",
        "none",
        "--from",
        str(work),
        "-e",
        "TOKEN=secret-2",
        "command",
        "--",
        "sleep",
        "1000",
    ]
    subprocess.run(
        ["bash", "-c", line, "bash", str(lock), mngr.program, *words],
        cwd=there,
        env={**home.env, "API_KEY": "secret-1"},
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    there.rmdir()
    process = Path(f"/proc/{server_pid(home)}")
    variables = dict(item.split("=", 1) for item in (process / "environ").read_text().split("\0") if item)
    assert variables.keys() <= {"PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"}
    assert os.readlink(process / "cwd") == "/"
    targets = {os.readlink(fd) for fd in (process / "fd").iterdir()}
    assert all(target.startswith(("/dev/", "pipe:", "socket:", "anon_inode:")) for target in targets), targets
    assert b"secret" not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert "secret" not in home.tmux("show-environment", "-g")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert "secret-1" not in mngr.ok("exec", "foo", "--", "env")


def test_no_secret_is_on_a_command_line_while_an_agent_is_made(mngr: Mngr, repo: Path, home: Home) -> None:
    """Everybody on a machine can read those."""
    looking = mngr.popen(
        *["create", "foo", "-e", "TOKEN=from-a-file", "--setup", "cat /proc/[0-9]*/cmdline >seen 2>/dev/null || :"],
        *["command", "--", "sleep", "1000"],
    )
    assert looking.wait(20) == 0
    (item,) = mngr.json("list")
    seen = (Path(item["work_dir"]) / "seen").read_bytes()
    assert b"/bin/sh" in seen or b"sh\0" in seen, "nobody looked"
    ours = [line for line in seen.split(b"\0") if b"from-a-file" in line]
    assert ours in ([], [b"TOKEN=from-a-file"]), "only in the words that the user typed"
