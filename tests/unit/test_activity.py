"""What agents show of themselves, and machines: what scripts print, and what is made of it."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from mngr import hosts, registry
from mngr.agents import AgentType
from mngr.fleet import activity as module
from mngr.fleet.activity import Activity, activity
from mngr.fleet.fleet import Fleet
from mngr.fleet.machine import Machine, machine, read_machine
from mngr.model import Ref

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


class Teller(AgentType):
    logs = ("logs/*.jsonl", "logs/*/deep/*.jsonl")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where agents are."""
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    monkeypatch.setattr(registry, "type_of", lambda _: Teller())
    (tmp_path / "m" / "agents" / A).mkdir(parents=True)
    return tmp_path / "m" / "agents"


def ask(*ids: str, host: str = "local") -> dict[str, Activity]:
    return activity(Fleet(), [Ref(id=id, name=id, type="teller", host=host) for id in ids])


def write(file: Path, size: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)


# Agents


def test_logs_are_summed_and_a_result_is_known(place: Path) -> None:
    write(place / A / "logs" / "one.jsonl", 10)
    write(place / A / "logs" / "two words.jsonl", 200)
    write(place / A / "logs" / "x" / "deep" / "side.jsonl", 3000)
    write(place / A / "logs" / "other", 40_000)
    write(place / B / "result.json", 0)
    made = (place / B / "result.json").stat().st_ino
    assert ask(A, B) == {A: Activity(log=3210), B: Activity(result=f"{made}-0")}


def test_a_result_that_takes_the_place_of_another_is_another_one(place: Path) -> None:
    write(place / A / "result.json", 5)
    first = ask(A)[A].result
    write(place / A / "draft", 5)
    (place / A / "draft").rename(place / A / "result.json")
    assert ask(A)[A].result != first


def test_an_agent_that_is_gone_is_missing(place: Path) -> None:
    assert ask(A, B) == {A: Activity()}


def test_a_host_that_cannot_be_asked_takes_nothing_from_the_others(place: Path) -> None:
    there = Ref(id=B, name="b", type="teller", host="box.nowhere")
    here = Ref(id=A, name="a", type="teller", host="local")
    assert activity(Fleet(), [there, here]) == {A: Activity()}


@pytest.mark.parametrize("what", ["directory", "link", "pipe"])
def test_a_result_that_is_no_file_is_none(place: Path, what: str) -> None:
    result = place / A / "result.json"
    if what == "directory":
        result.mkdir()
    elif what == "pipe":
        os.mkfifo(result)
    else:
        result.symlink_to("/etc/hosts")
    assert ask(A) == {A: Activity()}


def test_the_names_of_logs_can_say_nothing(place: Path) -> None:
    write(place / A / "logs" / f"x\n1 2 3 4 5 99 7 8 9 .\n./{B} \x0c.jsonl", 5)
    assert ask(A)[A].result is None


def test_a_spinner_that_turns_and_a_clock_that_counts_are_no_activity() -> None:
    busy = (Path(__file__).parents[1] / "data" / "screens" / "claude-busy.txt").read_text()
    later = busy.replace("● Wibbling… (0s · ↓ 15 tokens)", "✻ Wibbling… (47s · ↑ 312 tokens)")
    further = busy.replace("Running…", "Done")
    assert len({busy, later, further}) == 3
    assert screen(busy) == screen(later) != screen(further)
    assert screen("3 %") != ""


def screen(shown: str) -> str:
    return module._read(f"here {A}\nmark {A}\n{shown}", "mark")[A].screen


def trees(tmp_path: Path, ps: str, panes: str) -> dict[str, str]:
    """What is made of such processes and panes."""
    for name, lines in (("ps", ps), ("tmux", panes)):
        (tmp_path / name).write_text(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\n")
        (tmp_path / name).chmod(0o755)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    functions = hosts.read_script(hosts.__file__, "common.sh") + hosts.read_script(module.__file__, "activity.sh")
    script = f"H={tmp_path} S={tmp_path}/s\n{functions}\ntrees"
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run(["sh", "-c", script], env=env, text=True, capture_output=True, check=True, timeout=30).stdout
    listener.close()
    return {line.split()[1]: " ".join(line.split()[2:]) for line in said.splitlines()}


def test_a_tree_is_everything_below_the_pane_of_an_agent(tmp_path: Path) -> None:
    ps = """
    1     0 Ss   99:00
   10     1 S    00:00:01
   11    10 S    00:01:00
   12    11 R+   01:00:00
   13    11 Z    05:00:00
   20     1 S    2-00:00:03
   30     1 S    77:00
   50    51 S    00:01
   51    50 S    00:01"""
    panes = f"pane {A} 10\npane {B} 20\npane cccccccccccc 0\npane dddddddddddd 40"
    assert trees(tmp_path, ps, panes) == {A: "3 3661.00", B: "1 172803.00", "dddddddddddd": "0 0.00"}


@pytest.mark.parametrize(
    ("time", "seconds"), [("0:07", 7), ("0:01.25", 1.25), ("100:00", 6000), ("1h02", 3720), ("3-01:00:00", 262_800)]
)
def test_times_as_systems_write_them(tmp_path: Path, time: str, seconds: float) -> None:
    assert trees(tmp_path, f"10 1 S {time}", f"pane {A} 10") == {A: f"1 {seconds:.2f}"}


# Machines


def test_this_machine_has_cores_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    found = machine(Fleet(), "local")
    assert found.cores is not None
    assert found.cores >= 1
    assert found.load is not None
    assert found.memory_total is not None
    assert found.memory_free is not None
    assert 0 < found.memory_free <= found.memory_total


def test_what_cannot_be_told_is_not_guessed() -> None:
    assert read_machine("cores \nload \nmemory_total unknown\n") == Machine()
    assert read_machine("cores 4\nload 0.50\nmemory_total 7\n") == Machine(cores=4, load=0.5, memory_total=7)
