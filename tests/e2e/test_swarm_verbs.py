"""swarm status, list, show, set and cancel, over runs whose logs the tests write: no orchestrator, no agent."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mngr.cli import swarm_run
from mngr.cli.main import main
from mngr.swarm import words
from mngr.swarm.state import load
from tests.home import Home, Mngr, is_alive
from tests.runs import Log

ONE, TWO, EVIL = "tests/test_a.py::test_one", "tests/test_a.py::test_two", "tests/\x1b]0;evil\x07.py::test_[é 日本]"
TASKS = {"one": ONE, "two": TWO, "evil": EVIL}


@pytest.fixture
def log(home: Home) -> Iterator[Log]:
    """r1 is going on: one task is settled, one at work, one not begun."""
    with Log(home.mngr_home, "r1", TASKS, budget=5.0) as log:
        log.launch("one", "two")
        log.spend("one", 1.25)
        log.settle("one", words.FIXED, claim={"summary": "the sum was \x1b[31moff by one"})
        yield log


def wishes(log: Log) -> list[dict[str, Any]]:
    path = log.directory / "control.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# Status.


def test_status_in_a_pipe_is_a_line_for_each_task_and_one_for_the_run(mngr: Mngr, log: Log) -> None:
    head, one, two, evil, last = mngr.ok("swarm", "status").splitlines()
    assert head.split() == ["STATE", "TIME", "SPENT", "TASK", "WHY"]
    assert one.split() == ["fixed", "4s", "$1.25", ONE]
    assert two.split()[0] == "running"
    assert two.split()[-1] == TWO
    assert "test_[é 日本]" in evil
    assert "\x1b" not in evil
    assert last.startswith("r1: going on, 1 fixed, 1 pending, 1 running; $1.25 of $5.00, 10,000 tokens; ")


def test_status_for_scripts_has_all_figures_and_every_task(mngr: Mngr, log: Log) -> None:
    told = mngr.json("swarm", "status", "r1")
    assert (told["run"], told["state"], told["spend"]["usd"]) == ("r1", "going on", 1.25)
    assert [task["title"] for task in told["tasks"]] == list(TASKS.values())
    lines = [json.loads(line) for line in mngr.ok("swarm", "status", "--jsonl").splitlines()]
    assert [(line["task"], line["state"]) for line in lines] == [
        ("one", "fixed"),
        ("two", "running"),
        ("evil", "pending"),
    ]


def test_watching_in_a_pipe_tells_each_change_once_and_ends_with_the_run(mngr: Mngr, log: Log) -> None:
    watching = mngr.popen("swarm", "status", "--watch")
    assert watching.stdout is not None
    assert [watching.stdout.readline().split()[0] for _ in TASKS] == ["fixed", "running", "pending"]
    log.settle("two", words.STUCK, "nothing moved")
    told = watching.stdout.readline()
    assert told.split()[0] == "stuck"
    assert told.endswith("nothing moved\n")
    log.settle("evil", words.UNCHANGED)
    rest = watching.stdout.read().splitlines()
    assert [line.split()[0] for line in rest] == ["unchanged", "r1:"]
    assert watching.wait(10) == 0


def test_watching_ends_when_nobody_works_on_the_run_any_more(mngr: Mngr, home: Home) -> None:
    with Log(home.mngr_home, "r1", TASKS):
        watching = mngr.popen("swarm", "status", "--watch", "--jsonl")
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["task"] == "one"
    assert [json.loads(line)["task"] for line in watching.stdout] == ["two", "evil"]
    assert watching.wait(10) == 0


class Screen:
    """`mngr WORDS` on a terminal of 80 by 24, and all that it wrote there."""

    def __init__(self, mngr: Mngr, *words: str) -> None:
        self.ours, theirs = pty.openpty()
        subprocess.run(["stty", "rows", "24", "cols", "80", "-opost"], stdin=theirs, check=True)
        self.process = mngr.popen(*words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.written = ""

    def read(self) -> bool:
        try:
            chunk = os.read(self.ours, 65536)
        except OSError:  # Linux says EIO where others say end of file
            chunk = b""
        self.written += chunk.decode("utf-8", "replace")
        return bool(chunk)

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + 20
        while text not in self.picture():
            assert time.monotonic() < end, f"no {text!r} in {self.picture()!r}"
            assert self.read(), f"it ended without {text!r}: {self.picture()!r}"

    def picture(self) -> str:
        """The latest one, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.written.rpartition("\x1b[H")[2])

    def end(self) -> int:
        while self.read():
            pass
        os.close(self.ours)
        return self.process.wait(20)


def test_status_on_a_terminal_is_a_picture_that_follows_the_run_to_its_end(mngr: Mngr, log: Log) -> None:
    screen = Screen(mngr, "swarm", "status")
    screen.wait_for("r1 going on  1/3")
    assert "\n+*.\n" in screen.picture()  # one sign for each
    assert "\x1b[32m+" in screen.written
    log.settle("two", words.BLOCKED, "needs a key")
    screen.wait_for("B blocked")
    assert "\n+B.\n" in screen.picture()
    assert "needs a key" in screen.picture()
    log.settle("evil", words.FAILED, "no result")
    assert screen.end() == 0
    assert "r1 done  3/3" in screen.picture()
    assert "evil" in screen.picture()
    assert "\x07" not in screen.written
    assert "\x1b]" not in screen.written
    assert screen.written.endswith("\x1b[?25h")  # the cursor is back


def test_ctrl_c_ends_the_picture_and_nothing_else(mngr: Mngr, log: Log) -> None:
    screen = Screen(mngr, "swarm", "status")
    screen.wait_for("r1 going on")
    screen.process.send_signal(signal.SIGINT)
    assert screen.end() == 130
    assert "Traceback" not in screen.written
    assert wishes(log) == []


def test_once_on_a_terminal_is_the_picture_and_no_more(mngr: Mngr, log: Log) -> None:
    screen = Screen(mngr, "swarm", "status", "--once")
    assert screen.end() == 0
    assert "r1 going on  1/3" in screen.written
    assert "\x1b[H" not in screen.written
    assert not is_alive(screen.process.pid)


# Run and resume.


def test_a_second_ctrl_c_stops_the_agents_however_early_it_comes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    def go_on(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)  # while the log is being closed, say
            stopped.append("everything was seen to")

    def stop_agents(_: object, run: str) -> int:
        stopped.append(run)
        return 1

    with Log(home.mngr_home, "r1", TASKS):
        pass
    monkeypatch.setenv("MNGR_HOME", str(home.mngr_home))
    monkeypatch.setattr("mngr.swarm.api.resume", go_on)
    monkeypatch.setattr("mngr.swarm.api.stop_agents", stop_agents)
    monkeypatch.setattr("os._exit", sys.exit)
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["swarm", "resume", "r1"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130
    assert stopped == ["everything was seen to", "r1"]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"event": "started"}, "r1: 3 tasks, 3 to do, permissions: bypass (mngr swarm status r1 shows how it goes)"),
        ({"event": "paused", "why": "no login"}, "paused: no login"),
        ({"event": "unpaused"}, ""),
        ({"event": "unpaused", "why": "one has handed in a result"}, "going on: one has handed in a result"),
        ({"event": "warned", "why": "no prices"}, "warning: no prices"),
        ({"event": "full", "host": "box1", "why": "load 9"}, "waiting for room on box1: load 9"),
        ({"event": "alert failed", "pattern": "stuck", "why": "exit 1"}, "alert failed: exit 1 (stuck)"),
        ({"event": "sampled", "task": "one"}, ""),
    ],
)
def test_who_reads_along_is_told_what_matters(tmp_path: Path, event: dict[str, Any], said: str) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        run = load(str(log.directory))
    run.plan["notes"] = {"permissions": "bypass"}
    assert swarm_run.told(run, event) == said


def test_with_a_setup_work_dirs_have_a_venv_of_their_own_and_else_they_use_ours(mngr: Mngr, repo: Path) -> None:
    venv, called, script = (repo / ".venv" / "bin" / "python", repo / "called", repo / "agent.sh")
    venv.parent.mkdir(parents=True)
    venv.write_text(f'#!/bin/sh\necho "$0" >>{called}\nexec {sys.executable} "$@"\n')
    venv.chmod(0o755)
    script.write_text("hang\n")
    (repo / "test_it.py").write_text("def test_it(): pass\n")
    asked = ("swarm", "estimate", "--type", "replay", "--agent-arg", str(script))
    assert mngr.json(*asked)["tests"] == 1
    assert set(called.read_text().splitlines()) == {str(venv)}
    called.unlink()
    assert mngr.json(*asked, "--setup", "make venv")["tests"] == 1
    assert set(called.read_text().splitlines()) == {".venv/bin/python"}


# List and show.


def test_list_has_a_line_for_each_run_the_latest_last(mngr: Mngr, home: Home, log: Log) -> None:
    assert len(mngr.ok("swarm", "list").splitlines()) == 2
    with Log(home.mngr_home, "nightly", {"one": ONE}) as other:
        other.now += 1000
        other.settle("one", words.FAILED, "no result")
    (home.mngr_home / "runs" / "empty").mkdir()
    (home.mngr_home / "runs" / "empty" / "events.jsonl").write_text('{"event": "pla')
    told = mngr("swarm", "list")
    rows = [line.split("  ") for line in told.out.splitlines()]
    assert [[cell.strip() for cell in row if cell][:6] for row in rows] == [
        ["RUN", "PROJECT", "STATE", "TASKS", "GOOD", "BAD"],
        ["nightly", "shelf", "done", "1", "0", "1"],
        ["r1", "shelf", "going on", "3", "1", "0"],
    ]
    assert "interrupted before it was planned" in told.err
    assert [run["run"] for run in mngr.json("swarm", "list")] == ["nightly", "r1"]


def test_an_empty_list_says_what_to_do(mngr: Mngr) -> None:
    assert mngr.ok("swarm", "list") == "no runs yet: mngr swarm run tests\n"
    result = mngr("swarm", "status")
    assert (result.code, result.err) == (1, "mngr: there is no run yet\nhint: mngr swarm run tests begins one\n")


def test_show_has_every_task_and_the_summary(mngr: Mngr, log: Log) -> None:
    told = mngr.ok("swarm", "show", "r1")
    assert f"  {ONE}: the sum was \N{REPLACEMENT CHARACTER}[31moff by one\n" in told
    assert "\x1b" not in told
    assert [task["task"] for task in mngr.json("swarm", "show", "r1")["tasks"]] == list(TASKS)
    assert len(mngr.ok("swarm", "show", "r1", "--jsonl").splitlines()) == 3


def test_show_of_one_task_has_its_evidence_and_its_files(mngr: Mngr, log: Log) -> None:
    place = log.directory / "tasks" / "r1-two"
    place.mkdir(parents=True)
    (place / "screen.txt").write_text("$ pytest\n\x1b]0;evil\x07 1 failed\n")
    log("ended", "two", ending=words.STUCK, why="nothing moved", evidence={"state": "running"})
    log("home", "two", commits=[], exit="1700000000 7 0")
    log.settle("two", words.STUCK, "nothing moved")
    told = mngr.ok("swarm", "show", "r1", "test_two")
    assert told.startswith(f"{TWO}\nstuck: nothing moved\n")
    assert "  exit: 7\n" in told
    assert " 1 failed\n" in told
    assert str(place / "screen.txt") in told
    assert "\x1b" not in told
    details = mngr.json("swarm", "show", "r1", "two")
    assert (details["outcome"], details["evidence"]["exit"]) == ("stuck", 7)


@pytest.mark.parametrize(
    ("words_", "code", "said"),
    [
        (("status", "r2"), 1, "there is no run r2\nhint: mngr swarm list has them"),
        (("show", "../../etc"), 1, "there is no run ../../etc\nhint: mngr swarm list has them"),
        (("show", "r1", "tvo"), 2, "r1 has no task 'tvo'\nhint: did you mean two?"),
        (("show",), 2, "swarm show needs RUN\nhint: usage: mngr swarm show RUN [TEST] [--json | --jsonl]"),
        (("status", "--watch", "--once"), 2, "--watch and --once do not go together"),
        (("set", "r1", "budget"), 2, "swarm set takes KEY=VALUE, not 'budget'\nhint: for example budget=..."),
        (("set", "r1", "keep=all", "budge=1"), 2, "there is no setting 'budge'\nhint: did you mean budget?"),
        (("set", "r1", "keep=some"), 2, "keep takes one of none, failed, all, not 'some'"),
        (("statsu",), 2, "swarm has no verb 'statsu'\nhint: did you mean swarm status?"),
    ],
)
def test_wrong_words_are_answered_in_a_line(
    mngr: Mngr, log: Log, words_: tuple[str, ...], code: int, said: str
) -> None:
    result = mngr("swarm", *words_)
    assert (result.code, result.err) == (code, f"mngr: {said}\n")
    assert wishes(log) == []


# Set and cancel.


def test_set_tells_whoever_works_on_the_run_and_who_wants_it(mngr: Mngr, log: Log) -> None:
    told = mngr.ok("swarm", "set", "r1", "max_agents=30", "budget=20usd", "max-tokens=none")
    assert told.splitlines() == [
        "r1: max-agents=30 counts now",
        "r1: budget=20.0 counts now",
        "r1: max-tokens=none counts now",
    ]
    first, second, third = wishes(log)
    assert (first["wish"], first["key"], first["value"]) == ("set", "max-agents", 30)
    assert (second["key"], second["value"], third["value"]) == ("budget", 20.0, None)
    assert re.fullmatch(r".+@.+", first["who"])


def test_set_of_a_run_that_was_left_counts_when_it_goes_on(mngr: Mngr, home: Home) -> None:
    with Log(home.mngr_home, "r1", TASKS) as log:
        pass
    assert "counts when mngr swarm resume r1" in mngr.ok("swarm", "set", "r1", "keep=all")
    assert mngr.json("swarm", "set", "r1", "retries=1") == [{"run": "r1", "key": "retries", "value": 1, "heard": False}]
    assert len(wishes(log)) == 2


def test_cancel_tells_whoever_works_on_the_run(mngr: Mngr, log: Log) -> None:
    assert "is being cancelled" in mngr.ok("swarm", "cancel", "r1")
    (wish,) = wishes(log)
    assert wish["wish"] == "cancel"


def test_cancel_of_a_run_that_was_left_is_done_at_once(mngr: Mngr, home: Home) -> None:
    with Log(home.mngr_home, "r1", TASKS) as log:
        log.launch("one")
        log.settle("one", words.FIXED)
        log("cleared", "one", how="destroyed")
    assert mngr.ok("swarm", "cancel", "r1") == "cancelled r1\n"
    told = mngr.json("swarm", "status", "r1")
    assert (told["state"], [task["state"] for task in told["tasks"]]) == (
        "cancelled",
        ["fixed", "cancelled", "cancelled"],
    )


@pytest.mark.parametrize("words_", [("set", "r1", "keep=all"), ("cancel", "r1")])
def test_a_run_that_is_done_stays_as_it_is(mngr: Mngr, home: Home, words_: tuple[str, ...]) -> None:
    with Log(home.mngr_home, "r1", {"one": ONE}) as log:
        log.settle("one", words.FIXED)
    result = mngr("swarm", *words_)
    assert result.code == 1
    assert result.err.startswith("mngr: r1 is done: ")
    assert wishes(log) == []


# The tab key.


def completed(mngr: Mngr, *typed: str) -> list[str]:
    return mngr.ok("complete", "--", "swarm", *typed).splitlines()


def test_runs_tasks_and_settings_complete(mngr: Mngr, home: Home, log: Log) -> None:
    with Log(home.mngr_home, "r2", {"other": ONE}):
        pass
    assert set(completed(mngr, "show", "r")) == {"r1", "r2"}
    assert completed(mngr, "show", "r1", "") == list(TASKS)
    assert completed(mngr, "show", "r2", "o") == ["other"]
    assert completed(mngr, "show", "nothing", "") == []
    assert completed(mngr, "set", "r1", "max-") == ["max-agents=", "max-tokens=", "max-load="]
    assert completed(mngr, "set", "r1", "keep=all", "ke") == ["keep="]
    assert completed(mngr, "ca") == ["cancel"]


def test_the_verbs_have_help(mngr: Mngr) -> None:
    assert "  swarm " in mngr.ok("help").partition("\nProve\n")[2].partition("\n\n")[0]
    told = mngr.ok("swarm", "set", "--help")
    assert "max-agents=N" in told
    assert "mngr swarm cancel RUN" in mngr.ok("help", "swarm")


def test_lines_of_a_newer_mngr_and_half_of_one_change_nothing(mngr: Mngr, log: Log) -> None:
    before = mngr.json("swarm", "status")["tasks"]
    with (log.directory / "events.jsonl").open("a") as file:
        file.write('{"event": "danced", "task": "one"}\nnonsense\n{"event": "settled", "task": "two", "outc')
    after = mngr.json("swarm", "status")["tasks"]
    assert [(task["state"], task["spend"]) for task in after] == [(task["state"], task["spend"]) for task in before]


def paths(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*")}


def test_looking_leaves_the_run_as_it_is(mngr: Mngr, log: Log) -> None:
    before = paths(log.directory)
    for verb in ("status", "show"):
        mngr.ok("swarm", verb, "r1")
    mngr.ok("swarm", "list")
    assert paths(log.directory) == before
