"""`make demo`: the tour does what it says, and nothing of it outlives it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from mngr.hosts.sockets import socket_path
from tests.home import BIN, Home, wait_until

DEMO = Path(__file__).parents[2] / "demo" / "run.sh"


def test_the_demo_does_what_it_says(home: Home) -> None:
    demo = start(home)
    said, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, said
    assert "24 agents, 13 branches with work on them" in said
    assert "98038ca1d99f is solved by r1-solve-98038ca1d99f" in said
    assert "mngr/r1-integrated: 7 commits" in said
    assert "MNGR_DEMO_KEEP=1" in said
    assert_nothing_is_left(home, said)


def test_an_interrupted_demo_can_be_kept(home: Home) -> None:
    demo = start(home, MNGR_DEMO_KEEP="1")
    said = read_until(demo, "r1: 24 tasks, 24 to do")
    os.killpg(demo.pid, signal.SIGINT)
    said += demo.communicate(timeout=60)[0]
    assert demo.returncode == 130, said
    (kept,) = (home.root / "tmp").iterdir()
    assert said.endswith(f"rm -rf {kept}\n")
    assert (kept / "mngr" / "runs" / "r1" / "events.jsonl").exists()
    assert_nothing_runs(home, said)


@pytest.mark.proof
def test_an_interrupted_demo_leaves_nothing(home: Home) -> None:
    demo, moment = start(home), "nudged: "  # some agents have ended, some are at work, one is told to go on
    said = read_until(demo, moment)
    os.killpg(demo.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
    rest, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, said + rest
    assert "24 agents" not in rest
    assert_nothing_is_left(home, said + rest)


def test_a_step_that_goes_wrong_ends_the_demo(home: Home) -> None:
    blind = home.root / "bin" / "mngr"
    blind.parent.mkdir()
    blind.write_text(f'#!/bin/sh\n[ "$1" = tutorial ] || exec {BIN}/mngr "$@"\n')
    blind.chmod(0o755)
    home.env["PATH"] = f"{blind.parent}{os.pathsep}{home.env['PATH']}"
    demo = start(home)
    said, _ = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "demo: it does not show: 12 blocks" in said
    assert_nothing_is_left(home, said)


def start(home: Home, **env: str) -> subprocess.Popen[str]:
    """In a process group of its own, like a job of an interactive shell."""
    return subprocess.Popen(
        ["bash", str(DEMO)],
        env={**home.env, "MNGR_DEMO_PAUSE": "0", **env},
        cwd=home.path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def read_until(demo: subprocess.Popen[str], moment: str) -> str:
    said = ""
    assert demo.stdout is not None
    while moment not in said:
        line = demo.stdout.readline()
        assert line, said
        said += line
    return said


def assert_nothing_is_left(home: Home, said: str) -> None:
    """The demo makes its directory in TMPDIR, and everything that it starts carries that in its environment."""
    assert os.listdir(home.root / "tmp") == [], said
    assert_nothing_runs(home, said)


def assert_nothing_runs(home: Home, said: str) -> None:
    wait_until(lambda: not home.processes(), what="the last process of the demo to end")
    for word in said.split():
        if word.endswith("/mngr/runs/r1"):  # where everything of the run is
            assert not os.path.exists(socket_path(word.removesuffix("/runs/r1")))
