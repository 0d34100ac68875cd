"""What agents, machines and people can do to a run, and what is left of it then: every task accounted for, each by its
own doing, and nothing of anybody else's touched."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from mngr.swarm.state import Run
from tests.home import Home, Mngr, wait_until
from tests.swarm import GOOD, ROOT, Swarm, outcomes

NOTHING = 'say "Nothing to do."\nbefore pass\nafter pass\nfinish "It was fine."\n'
NO_RESULT = "it ended its turn without a result, and again when it was asked for one"


@pytest.fixture
def swarm(home: Home, repo: Path) -> Iterator[Swarm]:
    swarm = Swarm(home, repo)
    yield swarm
    swarm.end()


def happened(swarm: Swarm, event: str, times: int = 1) -> None:
    """Waits for it."""

    def seen() -> bool:
        try:
            return [each["event"] for each in swarm.events("a")].count(event) >= times
        except (FileNotFoundError, ValueError):
            return False

    wait_until(seen, 60, f"{times} {event}")


def ended(process: Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, out + err
    return err


def going_on(mngr: Mngr, *words: str) -> Any:
    return mngr("swarm", *words, env={"PYTHONPATH": str(ROOT)}, timeout=90)


def whys(run: Run) -> dict[str, str]:
    return {task.id: task.why for task in run.tasks.values()}


# What agents do


def test_whatever_agents_do_to_themselves_costs_nobody_else(home: Home, mngr: Mngr, repo: Path, swarm: Swarm) -> None:
    swarm.play(
        killed="say Ah.\nthink 1\nkill -9 $PPID\nkill -9 $$\n# turn\n" + NOTHING,
        forks="run 'setsid sleep 4711 & setsid -f sleep 4711'\n" + NOTHING,
        full="say Ah.\nulimit -f 1\nhead -c 100000 /dev/zero >x\n# turn\nrm x\n" + NOTHING,
        leaves="git checkout -q -b elsewhere\n" + GOOD,
        repoless="say Ah.\nrm -rf .git\n" + NOTHING,
        homeless='say Ah.\nrm -rf "$PWD"\n' + NOTHING,
        locked="chmod 000 .\n" + NOTHING,
        selfless='say Ah.\nrm -rf "$MNGR_AGENT_DIR"\nsleep 4712\n',
        recordless='think 1\necho "{" >"$MNGR_AGENT_DIR/agent.json"\n' + NOTHING,
        linked='say Ah.\nln -s /etc/passwd "$MNGR_RESULT"\n# turn\n:\n',
        piped='say Ah.\nmkfifo "$MNGR_RESULT"\n# turn\n:\n',
        packed='say Ah.\nmkdir "$MNGR_RESULT"\n# turn\n:\n',
    )
    run = swarm("begin", "a", "keep=none", "max-agents=20")
    assert outcomes(run) == {
        "killed": "unchanged",
        "forks": "unchanged",
        "full": "unchanged",
        "leaves": "unchanged",
        "repoless": "failed",
        "homeless": "failed",
        "locked": "unchanged",
        "selfless": "lost",
        "recordless": "unchanged",
        "linked": "failed",
        "piped": "failed",
        "packed": "failed",
    }
    assert run.tasks["killed"].restarts == 1
    assert [whys(run)[task] for task in ("linked", "piped", "packed")] == [NO_RESULT] * 3
    assert "could not be brought home" in whys(run)["repoless"]
    assert whys(run)["repoless"].endswith("does not appear to be a git repository")
    assert not [line for line in home.processes().values() if "4711" in line]
    assert {agent["name"] for agent in mngr.json("list")} <= {"a-repoless", "a-homeless"}  # whose work is nowhere else


def test_what_is_too_much_stays_where_it_is_and_is_told(home: Home, swarm: Swarm) -> None:
    swarm.play(
        big='dd count=0 bs=1 seek=200000000 of="$MNGR_ARTIFACTS/big"\necho 1 >"$MNGR_ARTIFACTS/small"\n' + NOTHING,
        many='(cd "$MNGR_ARTIFACTS" && seq 2000 | xargs touch)\n' + NOTHING,
        long='dd count=0 bs=1 seek=200000000 of="$MNGR_RESULT"\n# turn\n' + NOTHING,
    )
    run = swarm("begin", "a")
    assert outcomes(run) == {"big": "unchanged", "long": "unchanged", "many": "unchanged"}
    assert [event["flaw"] for event in swarm.events("a") if event["event"] == "returned"] == [
        "the result is too long: it has 200,000,000 bytes, and may have 1,048,576"
    ]
    assert run.tasks["big"].home["left"] == ["artifacts/big"]
    tasks = home.mngr_home / "runs" / "a" / "tasks"
    assert [path.name for path in (tasks / "a-big" / "artifacts").iterdir()] == ["small"]
    assert len(list((tasks / "a-many" / "artifacts").iterdir())) == 2000


def test_what_agents_say_moves_nobodys_terminal(mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(loud="blocked \"$(printf '\\033]0;mine\\007\\033[31mred')\"\n")
    process = swarm.start("begin", "a")
    ended(process)
    for words in (("show", "a"), ("show", "a", "loud"), ("status", "a"), ("list",)):
        told = going_on(mngr, *words).out
        assert told
        assert "\x1b" not in told
        assert "\x07" not in told


# What others do


def test_a_strangers_agent_keeps_its_name(home: Home, mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(fine=NOTHING, good=GOOD)
    for name in ("a-fine", "a-good-check"):
        mngr.ok("create", name, "command", "--mode", "none", "--", "sleep", "600")
    run = swarm("begin", "a", "retries=0", "keep=none")
    assert outcomes(run) == {"fine": "infrastructure", "good": "failed"}
    assert whys(run)["fine"] == "there is already an agent called a-fine"
    assert run.tasks["good"].check == {"error": "there is already an agent called a-good-check"}
    assert {agent["name"]: agent["state"] for agent in mngr.json("list")} == {
        "a-fine": "running",
        "a-good-check": "running",
    }


def test_a_recipe_with_mistakes_costs_only_the_tasks_they_are_about(swarm: Swarm) -> None:
    swarm.play(fine=NOTHING, odd=NOTHING, unchecked=NOTHING, unjudged=NOTHING)
    run = swarm("begin", "a", RECIPE="tests.swarm:Flawed")
    assert {task: (outcome, whys(run)[task]) for task, outcome in outcomes(run).items()} == {
        "fine": ("done", ""),
        "odd": ("infrastructure", "the recipe cannot judge it: ValueError: 'splendid' is no ending"),
        "unchecked": ("done", ""),
        "unjudged": ("infrastructure", "the recipe cannot judge it: KeyError: 'verdict'"),
    }
    assert run.tasks["unchecked"].check == {"error": "the recipe cannot say what to check: KeyError: 'command'"}


def test_wishes_that_make_no_sense_are_passed_over(home: Home, swarm: Swarm) -> None:
    swarm.play(fine=f"until [ -e {home.root}/go ]; do think 0.05; done\n" + NOTHING)
    process = swarm.start("begin", "a")
    happened(swarm, "briefed")
    wishes = [
        "no json",
        '{"wish": "set"}',
        '{"wish": "set", "key": "max-agents", "value": "many"}',
        '{"wish": "set", "key": ["max-agents"], "value": {}}',
        '{"wish": "dance"}',
        "\\udcff\x00",
        '{"wish": "set", "key": "retries", "value": 7, "who": 4}',
        '{"wish": "set", "key": "retries", "val',
    ]
    with (home.mngr_home / "runs" / "a" / "control.jsonl").open("a") as file:
        file.write("\n".join(wishes))
    happened(swarm, "set")
    (home.root / "go").touch()
    ended(process)
    run = swarm.load("a")
    assert outcomes(run) == {"fine": "unchanged"}
    assert [(change["key"], change["value"]) for change in run.changes] == [("retries", 7)]


def test_a_run_that_was_ended_goes_on_and_only_once(mngr: Mngr, home: Home, swarm: Swarm) -> None:
    swarm.play(fine=f"until [ -e {home.root}/go ]; do think 0.05; done\n" + NOTHING)
    process = swarm.start("begin", "a")
    happened(swarm, "briefed")
    process.send_signal(signal.SIGTERM)
    ended(process, -signal.SIGTERM)
    with (home.mngr_home / "runs" / "a" / "events.jsonl").open("a") as file:
        file.write('{"event": "sett')
    both = [swarm.start("resume", "a") for _ in range(2)]
    wait_until(lambda: [each for each in both if each.poll() is not None], 30, "one of them to be refused")
    (home.root / "go").touch()
    codes = {each: each.wait(60) for each in both}
    assert sorted(codes.values()) == [0, 1]
    refused = next(each for each, code in codes.items() if code)
    assert "a is being worked on by process" in ended(refused, 1)
    ended(next(each for each in both if each is not refused))
    assert outcomes(swarm.load("a")) == {"fine": "unchanged"}
    assert len([each for each in swarm.events("a") if each["event"] == "launched"]) == 1


def test_a_run_that_nobody_is_at_is_cancelled(mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(at_work="say On.\nhang\n", waits=NOTHING)
    process = swarm.start("begin", "a", "max-agents=1", "keep=none")
    happened(swarm, "briefed")
    process.kill()
    ended(process, -signal.SIGKILL)
    assert going_on(mngr, "cancel", "a").out == "cancelled a\n"
    run = swarm.load("a")
    assert outcomes(run) == {"at-work": "cancelled", "waits": "cancelled"}
    assert mngr.json("list") == []


# What happens to machines


def test_a_setup_that_fails_once_is_tried_again(home: Home, swarm: Swarm) -> None:
    swarm.play(fine=NOTHING)
    run = swarm("begin", "a", "keep=all", SETUP=f"[ -e {home.root}/x ] || {{ touch {home.root}/x; false; }}")
    fine = run.tasks["fine"]
    assert (fine.outcome, fine.attempt, fine.cleared) == ("unchanged", 2, "stopped")


def test_the_end_of_the_tmux_server_while_agents_are_made_ends_no_task(home: Home, swarm: Swarm) -> None:
    waits = f"until [ -e {home.root}/go ]; do think 0.05; done\n" + NOTHING
    swarm.play(**{f"t{number}": "# turn\n".join([waits] * 3) for number in range(3)})
    process = swarm.start("begin", "a", "max-agents=3")
    wait_until(lambda: home.tmux("list-sessions", check=False), 30, "the first session")
    home.tmux("kill-server")
    happened(swarm, "briefed", 3)
    (home.root / "go").touch()
    ended(process)
    run = swarm.load("a")
    assert outcomes(run) == dict.fromkeys(("t0", "t1", "t2"), "unchanged")
    for task in run.tasks.values():
        said = (home.mngr_home / "runs" / "a" / "tasks" / task.name / "transcript.jsonl").read_text()
        assert f"play {task.id}" in said  # its task, and not only that it should go on with it


@pytest.mark.skipif(sys.platform != "linux", reason="nobody else can limit a process")
def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(home: Home, mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(fine=f"until [ -e {home.root}/go ]; do think 0.05; done\n" + NOTHING)
    process = swarm.start("begin", "a")
    happened(swarm, "briefed")
    process.kill()
    ended(process, -signal.SIGKILL)
    process = mngr.popen("swarm", "resume", "a", env={"PYTHONPATH": str(ROOT)})
    happened(swarm, "started", 2)
    size = (home.mngr_home / "runs" / "a" / "events.jsonl").stat().st_size
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
    (home.root / "go").touch()
    told = ended(process, 1)
    assert "File too large" in told
    assert "Traceback" not in told
    run = swarm("resume", "a")
    assert outcomes(run) == {"fine": "unchanged"}


HOURS = 5 * 3600


def set_clock(clock: Path, seconds: int) -> None:
    """From one moment to the next: it is read all the time."""
    new = clock.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(clock)


@pytest.mark.parametrize("step", [HOURS, -HOURS], ids=["forwards", "backwards"])
def test_the_clock_is_set(home: Home, swarm: Swarm, step: int) -> None:
    """Whatever waits for an hour of the clock goes on, and whatever takes its time is not cut short."""
    clock = home.root / "clock"
    set_clock(clock, 0)
    swarm.play(
        limited="say Ah.\nlimit 3600\n# turn\n" + NOTHING,
        slow=f"until [ -e {home.root}/go ]; do think 0.05; done\n" + NOTHING,
    )
    process = swarm.start("begin", "a", "timeout=1h", "max-agents=2", CLOCK=str(clock))
    happened(swarm, "parked")
    set_clock(clock, step)
    happened(swarm, "unparked")
    (home.root / "go").touch()
    ended(process)
    run = swarm.load("a")
    assert outcomes(run) == {"limited": "unchanged", "slow": "unchanged"}
    assert run.tasks["limited"].parks == 1


@pytest.mark.parametrize("step", [HOURS, -HOURS], ids=["forwards", "backwards"])
def test_the_clock_is_set_while_nobody_is_at_the_run(home: Home, swarm: Swarm, step: int) -> None:
    clock = home.root / "clock"
    set_clock(clock, 0)
    swarm.play(limited="say Ah.\nlimit 3600\n# turn\n" + NOTHING)
    process = swarm.start("begin", "a", "max-agents=1", CLOCK=str(clock))
    happened(swarm, "parked")
    process.kill()
    ended(process, -signal.SIGKILL)
    set_clock(clock, step)
    run = swarm("resume", "a", CLOCK=str(clock))
    assert outcomes(run) == {"limited": "unchanged"}


def test_a_parked_agent_waits_for_its_time_whoever_is_at_the_run(swarm: Swarm) -> None:
    swarm.play(limited="say Ah.\nlimit 4\n# turn\n" + NOTHING)
    process = swarm.start("begin", "a")
    happened(swarm, "parked")
    process.kill()
    ended(process, -signal.SIGKILL)
    run = swarm("resume", "a")
    assert outcomes(run) == {"limited": "unchanged"}
    events = {each["event"]: each for each in swarm.events("a")}
    assert events["unparked"]["time"] >= events["parked"]["until"]
    assert run.tasks["limited"].parks == 1
