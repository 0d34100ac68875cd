"""A run from its first agent to its last, with agents that do what agents do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mngr.swarm import words
from tests.home import Home, Mngr, wait_until
from tests.swarm import GOOD, Swarm, outcomes

NOTHING = 'say "Nothing to do."\nbefore pass\nafter pass\nfinish "It was fine."\n'


@pytest.fixture
def swarm(home: Home, repo: Path) -> Iterator[Swarm]:
    swarm = Swarm(home, repo)
    yield swarm
    swarm.end()


def branch_files(home: Home, repo: Path, branch: str) -> list[str]:
    return home.run("git", "ls-tree", "-r", "--name-only", branch, "--", "done", cwd=repo).split()


def test_every_task_comes_home_with_everything(home: Home, mngr: Mngr, repo: Path, swarm: Swarm) -> None:
    swarm.play(
        good='say "$SWARM_TOKEN"\nrun "echo $SWARM_TOKEN >$MNGR_ARTIFACTS/token"\n' + GOOD,
        fine=NOTHING,
        lost='blocked "a key for the shop"',
    )
    run = swarm("begin", "a", "keep=failed")
    assert outcomes(run) == {"good": "improved", "fine": "unchanged", "lost": "blocked"}
    good = run.tasks["good"]
    assert branch_files(home, repo, "mngr/a-good") == ["done/a-good"]
    assert good.home["commits"] == home.run("git", "rev-parse", "mngr/a-good", cwd=repo).split()
    assert good.check == {"done": 1}
    assert (good.spend.messages, good.spend.tokens) == (4, 2200)
    assert (good.cleared, run.tasks["lost"].cleared) == ("destroyed", "stopped")
    assert run.tasks["lost"].why == "a key for the shop"
    place = home.mngr_home / "runs" / "a" / "tasks" / "a-good"
    assert json.loads((place / "result.json").read_text())["summary"] == "It is done."
    assert "I begin with a-good." in (place / "transcript.jsonl").read_text()
    assert "I begin with a-good." in (place / "screen.txt").read_text()
    files = [
        path for path in (home.mngr_home / "runs" / "a").rglob("*") if path.is_file() and path.name != "request.json"
    ]
    kept = "".join(path.read_text() for path in files)
    assert "[SWARM_TOKEN]" in kept
    assert "sesame-sesame" not in kept
    assert (place / "check" / "a-good-check" / "artifacts" / "ls").read_text() == "a-good\n"
    assert [agent["name"] for agent in mngr.json("list")] == ["a-lost"]
    assert mngr.json("list")[0]["state"] == "stopped"


def test_no_more_agents_at_a_time_than_allowed(swarm: Swarm) -> None:
    swarm.play(**{f"t{number}": NOTHING for number in range(5)})
    run = swarm("begin", "a", "max-agents=2")
    assert outcomes(run) == dict.fromkeys(run.tasks, "unchanged")
    busy, most = set(), 0
    for event in swarm.events("a"):
        if event["event"] == "intended":
            busy.add(event["task"])
        elif event["event"] in ("ended", "relaunch"):
            busy.discard(event["task"])
        most = max(most, len(busy))
    assert most == 2


def test_bad_results_are_sent_back_once(swarm: Swarm) -> None:
    garbage = "printf 'no json {' | result\n# turn\n"
    huge = "head -c 3000000 /dev/zero | tr '\\0' x | result\n"
    swarm.play(
        learns=garbage + NOTHING,
        insists=garbage + "printf '[1]' | result\n",
        truncated='printf \'{"summary": "it\' | result\n# turn\n' + NOTHING,
        huge=f"{huge}# turn\n{huge}",
        silent='say "I am done."\n# turn\nsay "I said I am."\n',
        late='say "I am done."\n# turn\n' + NOTHING,
    )
    run = swarm("begin", "a")
    assert outcomes(run) == {
        "learns": "unchanged",
        "insists": "failed",
        "truncated": "unchanged",
        "huge": "failed",
        "silent": "failed",
        "late": "unchanged",
    }
    assert [run.tasks[name].returned for name in ("learns", "insists", "truncated", "huge")] == [1, 1, 1, 1]
    assert "its result is invalid" in run.tasks["insists"].why
    assert "without a result" in run.tasks["silent"].why


def test_each_ending_has_its_name_and_evidence(home: Home, swarm: Swarm) -> None:
    swarm.play(
        fails='say "Oh."\nfail 3\n',
        asks='ask "Which one?"\n',
        hangs="hang\n# turn\nhang\n",
        limited="limit 2\n# turn\n" + NOTHING,
        crashes="crash\n# turn\n" + NOTHING,
    )
    run = swarm("begin", "a", "stuck-after=5", "max-agents=5")
    assert outcomes(run) == {
        "fails": "failed",
        "asks": "blocked",
        "hangs": "stuck",
        "limited": "unchanged",
        "crashes": "unchanged",
    }
    assert run.tasks["fails"].why == "its program failed: exit 3"
    assert run.tasks["asks"].why.startswith("it waits for a person: question")
    assert run.tasks["hangs"].nudges == ["standstill"]
    assert run.tasks["limited"].parks == 1
    assert run.tasks["limited"].throttled >= 1
    assert run.tasks["crashes"].restarts == 1
    assert run.tasks["fails"].home["exit"].split()[1] == "3"


def test_time_runs_out(swarm: Swarm) -> None:
    swarm.play(slow="while :; do say again; think 0.2; done\n")
    run = swarm("begin", "a", "timeout=2")
    assert outcomes(run) == {"slow": "timed out"}
    assert run.tasks["slow"].home["dirty"] == 0


def test_the_end_of_the_tmux_server_ends_no_task(home: Home, swarm: Swarm) -> None:
    """The agents are started again where they were, and go on."""
    begun = home.root / "begun"
    begun.mkdir()
    swarm.play(**{f"t{number}": f': >"{begun}/$MNGR_AGENT_NAME"\nhang\n# turn\n{NOTHING}' for number in range(3)})
    process = swarm.start("begin", "a", "max-agents=3")
    wait_until(lambda: Counter(event["event"] for event in _events(swarm))["briefed"] == 3, 30, "all have their task")
    wait_until(lambda: len(os.listdir(begun)) == 3, 30, "all are at it")  # one that had not begun would hang once more
    home.tmux("kill-server")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    run = swarm.load("a")
    assert outcomes(run) == dict.fromkeys(run.tasks, "unchanged")
    assert [task.restarts for task in run.tasks.values()] == [1, 1, 1]


def test_an_agent_that_somebody_destroys_is_lost_and_said_to_be(mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(gone="hang\n", fine=NOTHING)
    process = swarm.start("begin", "a")
    wait_until(lambda: any(e["event"] == "briefed" and e["task"] == "gone" for e in _events(swarm)), 30)
    mngr.ok("destroy", "a-gone", "--purge")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert outcomes(swarm.load("a")) == {"fine": "unchanged", "gone": "lost"}


def test_when_nothing_can_start_dispatch_pauses_and_says_why(mngr: Mngr, home: Home, swarm: Swarm) -> None:
    swarm.play(**{f"t{number}": NOTHING for number in range(8)})
    told, disk = home.root / "told", home.root / "disk"
    setup = f"[ -e {disk} ] || {{ echo no disk; false; }}"
    run = swarm("begin", "a", "max-agents=2", "retries=0", f'alert-command=echo "$MNGR_ALERT" >>{told}', SETUP=setup)
    assert not run.is_done
    assert run.paused.startswith("3 of the first 5 tasks ended at setup (infrastructure) before any model call")
    assert [json.loads(line)["pattern"] for line in told.read_text().splitlines()] == ["infrastructure at setup"]
    pending = [task for task in run.tasks.values() if task.phase == words.PENDING]
    assert len(pending) >= 3
    disk.touch()
    run = swarm("resume", "a")
    assert run.is_done
    assert {run.tasks[task.id].outcome for task in pending} == {"unchanged"}


def test_a_result_that_comes_after_a_pause_lets_the_run_go_on(home: Home, swarm: Swarm) -> None:
    go = home.root / "go"
    patient = f"until [ -e {go} ]; do think 0.1; done\n{NOTHING}"
    swarm.play(**dict.fromkeys(("bad1", "bad2", "bad3"), NOTHING), good=patient, later=patient, latest=patient)
    setup = "case $MNGR_AGENT_NAME in a-bad*) echo no disk; false ;; esac"
    process = swarm.start("begin", "a", "max-agents=4", "retries=0", SETUP=setup)
    wait_until(lambda: any(event["event"] == "paused" for event in _events(swarm)), 30)
    go.touch()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    run = swarm.load("a")
    assert run.is_done
    assert [task.outcome for task in run.tasks.values()] == ["infrastructure"] * 3 + ["unchanged"] * 3
    assert "unpaused" in [event["event"] for event in _events(swarm)]


def test_a_run_is_retuned_and_cancelled_while_it_goes_on(mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(**{f"t{number}": "hang\n" for number in range(4)})
    process = swarm.start("begin", "a", "max-agents=1")
    wait_until(lambda: Counter(event["event"] for event in _events(swarm))["briefed"] == 1, 30)
    mngr.ok("swarm", "set", "a", "max-agents=2")
    wait_until(lambda: Counter(event["event"] for event in _events(swarm))["briefed"] == 2, 30)
    mngr.ok("swarm", "cancel", "a")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    run = swarm.load("a")
    assert outcomes(run) == dict.fromkeys(run.tasks, "cancelled")
    assert run.settings["max-agents"] == 2
    assert not run.alerts
    assert [change["key"] for change in run.changes] == ["max-agents"]
    assert "@" in run.changes[0]["who"]
    assert {agent["state"] for agent in mngr.json("list")} == {"stopped"}


def test_two_of_us_cannot_work_on_one_run(mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(waits="hang\n")
    process = swarm.start("begin", "a")
    wait_until(lambda: any(event["event"] == "briefed" for event in _events(swarm)), 30)
    second = mngr("swarm", "resume", "a")
    assert second.code == 1
    assert f"a is being worked on by process {process.pid}" in second.err
    mngr.ok("swarm", "cancel", "a")
    process.communicate(timeout=60)


def test_ctrl_c_leaves_the_agents_at_work_and_a_second_one_stops_them(home: Home, mngr: Mngr, swarm: Swarm) -> None:
    """And whoever resumes the run starts them again."""
    swarm.play(first="while [ ! -e ../../go ]; do think 0.05; done\n" + NOTHING + "# turn\n" + NOTHING)
    process = swarm.start("begin", "a")
    wait_until(lambda: any(event["event"] == "briefed" for event in _events(swarm)), 30)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert [agent["state"] for agent in mngr.json("list")] == ["running"]
    again = mngr.popen(
        "swarm", "resume", "a", env={"PYTHONPATH": str(Path(__file__).parents[2])}, stdin=subprocess.DEVNULL
    )
    wait_until(lambda: Counter(event["event"] for event in _events(swarm))["started"] == 2, 30)
    again.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again" in os.read(again.stderr.fileno(), 4096).decode(), 30)  # type: ignore[union-attr]
    again.send_signal(signal.SIGINT)
    assert again.wait(30) == 130
    assert [agent["state"] for agent in mngr.json("list")] == ["stopped"]
    (home.mngr_home / "go").touch()
    run = swarm("resume", "a")
    assert outcomes(run) == {"first": "unchanged"}


def test_limits_lead_to_no_more_agents_than_allowed(mngr: Mngr, swarm: Swarm) -> None:
    """Those that are parked are there, and go on before anybody else is sent."""
    swarm.play(**{f"t{number}": "limit 2\n# turn\n" + NOTHING for number in range(4)})
    run = swarm("begin", "a", "max-agents=2")
    assert outcomes(run) == dict.fromkeys(run.tasks, "unchanged")
    there, awake, most_there, most_awake = set(), set(), 0, 0
    for event in swarm.events("a"):
        if event["event"] == "intended":
            there.add(event["task"])
        if event["event"] in ("intended", "unparked"):
            awake.add(event["task"])
        if event["event"] == "ended":
            there.discard(event["task"])
        if event["event"] in ("ended", "parked"):
            awake.discard(event["task"])
        most_there, most_awake = max(most_there, len(there)), max(most_awake, len(awake))
    assert (most_there, most_awake) == (2, 2)


def test_what_was_never_begun_for_want_of_money_is_when_there_is_some(mngr: Mngr, swarm: Swarm) -> None:
    swarm.play(**{f"t{number}": "cost 40000 10\n" + NOTHING for number in range(3)})
    run = swarm("begin", "a", "max-agents=1", "max-tokens=60000")
    assert sorted(outcomes(run).values()) == ["over budget", "over budget", "unchanged"]
    mngr.ok("swarm", "set", "a", "max-tokens=500000")
    assert sorted(outcomes(swarm("resume", "a")).values()) == ["unchanged"] * 3


def test_an_agent_that_is_ended_stops_at_once_and_what_it_showed_is_kept(home: Home, swarm: Swarm) -> None:
    swarm.play(slow='while :; do say "again and again"; think 0.1; done\n')
    run = swarm("begin", "a", "timeout=4")
    assert outcomes(run) == {"slow": "timed out"}
    place = home.mngr_home / "runs" / "a" / "tasks" / "a-slow"
    assert "again and again" in (place / "screen.txt").read_text()
    spent = [line for line in (place / "transcript.jsonl").read_text().splitlines() if "again and again" in line]
    assert run.tasks["slow"].spend.messages == len(spent)  # nothing was said after what came home


def _events(swarm: Swarm) -> list[dict[str, Any]]:
    try:
        return swarm.events("a")
    except (FileNotFoundError, ValueError):
        return []
