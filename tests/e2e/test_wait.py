"""wait: wakes on the event itself, says why when it is in vain, and leaves no process behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.agents import launched
from tests.home import Home, Mngr, wait_until

UNTIL_GO = "until [ -e go ]; do sleep 0.02; done"


# It wakes


@pytest.mark.parametrize(("ending", "state"), [("exit 0", "done"), ("exit 3", "failed"), ("kill -9 $$", "failed")])
def test_wait_wakes_when_the_program_ends(mngr: Mngr, home: Home, ending: str, state: str) -> None:
    create(mngr, "a", f"{UNTIL_GO}; {ending}")
    waiting = waiter(mngr, home, "a", "--for", "done,failed")
    (home.path / "go").touch()
    assert waiting.communicate(timeout=60) == (f"a {state}\n", "")
    assert waiting.returncode == 0


def test_wait_wakes_when_the_agent_is_stopped_and_started(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    stopped = waiter(mngr, home, "a", "--for", "stopped")
    mngr.ok("stop", "a")
    assert stopped.communicate(timeout=60) == ("a stopped\n", "")
    running = waiter(mngr, home, "a", "--for", "running")
    mngr.ok("start", "a")
    assert running.communicate(timeout=60) == ("a running\n", "")


def test_wait_wakes_when_the_tmux_server_is_killed(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    waiting = waiter(mngr, home, "a", "--for", "stopped", "--timeout", "60")
    os.kill(int(home.tmux("display", "-p", "#{pid}")), signal.SIGKILL)
    assert waiting.communicate(timeout=60) == ("a stopped\n", "")


def test_wait_hears_of_the_end_of_a_program_that_outlives_the_tmux_server(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", f"trap '' HUP; touch ready; {UNTIL_GO}")
    wait_until((home.path / "ready").exists)
    waiting = waiter(mngr, home, "a", "--for", "stopped", "--timeout", "300")
    os.kill(int(home.tmux("display", "-p", "#{pid}")), signal.SIGKILL)
    wait_until(lambda: mngr.json("list")[0]["reason"] == "alive without a session")
    (home.path / "go").touch()
    assert waiting.communicate(timeout=90) == ("a stopped\n", "")


def test_wait_for_running_works_while_there_is_no_tmux_server(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    mngr.ok("stop", "a")
    home.tmux("kill-server")
    waiting = mngr.popen("wait", "a", "--for", "running", "--timeout", "60")
    wait_until(lambda: "tail" in helpers(home))
    mngr.ok("start", "a")
    assert waiting.communicate(timeout=60) == ("a running\n", "")


def test_wait_wakes_on_what_a_hook_of_the_program_writes(mngr: Mngr, home: Home) -> None:
    hook = """
        printf 'waiting %s a question\\n' "$(date +%s)" >"$MNGR_AGENT_DIR/state"
        printf '{"agent":"%s","event":"waiting"}\\n' "$MNGR_AGENT_ID" >>"$MNGR_HOME/feed" """
    create(mngr, "a", f"{UNTIL_GO}; {hook}; sleep 1000")
    waiting = waiter(mngr, home, "a")  # without --for: until it wants you
    (home.path / "go").touch()
    assert waiting.communicate(timeout=60) == ("a waiting\n", "")


def test_wait_returns_at_once_when_it_is_so_already(mngr: Mngr) -> None:
    create(mngr, "a", "sleep 1000")
    mngr.ok("stop", "a")
    assert mngr.ok("wait", "a", "--for", "done,stopped") == "a stopped\n"


# Several


def test_wait_for_all_tells_each_as_it_gets_there(mngr: Mngr, home: Home) -> None:
    mngr.ok(
        "create", "try", "command", "--mode", "none", "-n", "3", "--", UNTIL_GO.replace("go", "go-$MNGR_AGENT_NAME")
    )
    waiting = waiter(mngr, home, "try-*", "--for", "done")
    assert waiting.stdout
    for name in ("try-2", "try-3", "try-1"):
        assert waiting.poll() is None
        (home.path / f"go-{name}").touch()
        assert waiting.stdout.readline() == f"{name} done\n"
    assert waiting.wait(10) == 0


def test_wait_for_any_is_content_with_one(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    create(mngr, "b", UNTIL_GO)
    waiting = waiter(mngr, home, "a", "b", "--any", "--for", "done")
    (home.path / "go").touch()
    assert waiting.communicate(timeout=60) == ("b done\n", "")
    assert waiting.returncode == 0


def test_wait_for_any_goes_on_while_one_can_still_get_there(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exit 1")
    create(mngr, "b", UNTIL_GO)
    waiting = waiter(mngr, home, "a", "b", "--any", "--for", "done")
    (home.path / "go").touch()
    assert waiting.communicate(timeout=60) == ("b done\n", "")


def test_json_tells_of_those_that_got_there(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exit 4")
    told = json.loads(mngr.ok("wait", "a", "--for", "failed", "--json"))
    assert [(each["name"], each["state"], each["exit_code"]) for each in told] == [("a", "failed", 4)]


# In vain


def test_a_timeout_says_who_is_missing(mngr: Mngr) -> None:
    create(mngr, "a", "sleep 1000")
    create(mngr, "b", "exit 0")
    mngr.ok("wait", "b", "--for", "done")
    result = mngr("wait", "a", "b", "--for", "done", "--timeout", "0.5s")
    assert (result.code, result.out) == (4, "b done\n")
    assert result.err == "mngr: not done within 0.5 s: a\n"


def test_what_can_no_longer_happen_is_told_at_once(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", f"{UNTIL_GO}; exit 3")
    waiting = waiter(mngr, home, "a", "--for", "done")
    (home.path / "go").touch()
    assert waiting.communicate(timeout=60) == ("", "mngr: it cannot become done: a is failed (exit 3)\n")
    assert waiting.returncode == 1


def test_an_agent_that_is_destroyed_meanwhile_is_told(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    waiting = waiter(mngr, home, "a", "--for", "done")
    mngr.ok("destroy", "-f", "a")
    assert waiting.communicate(timeout=60) == ("", "mngr: it cannot become done: a is not there any more\n")
    assert waiting.returncode == 3


def test_words_that_make_no_sense_are_refused(mngr: Mngr) -> None:
    create(mngr, "a", "sleep 1000")
    for words, code, said in (
        (["a", "--for", "finished"], 2, "there is no state 'finished'"),
        (["a", "--timeout", "soon"], 2, "--timeout takes seconds"),
        ([], 2, "which agents?"),
        (["b"], 3, "no agent called b"),
    ):
        result = mngr("wait", *words)
        assert result.code == code, words
        assert said in result.err, words


# Quietly, and without a trace


def test_wait_asks_once_and_then_only_listens(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    launched(home, 1)
    calls = spy_on(home, "tmux", "grep")
    assert mngr("wait", "a", "--for", "done", "--timeout", "5").code == 4
    called = [line.split() for line in calls.read_text().splitlines()]
    assert sorted(words[4] if words[0] == "tmux" else words[0] for words in called) == [
        "grep",
        "list-sessions",
        "wait-for",
    ]


def test_while_it_waits_there_is_a_tail_and_a_tmux_client_and_nothing_that_works(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "touch ready; exec sleep 1000")
    wait_until((home.path / "ready").exists)
    before = set(home.processes())
    waiting = waiter(mngr, home, "a", "--for", "done")

    def programs() -> list[str]:
        mine = [line for pid, line in home.processes().items() if pid not in before and pid != waiting.pid]
        return sorted(Path(line.split()[0]).name for line in mine if line)

    wait_until(lambda: programs() == ["sh", "sh", "tail", "tmux"], what="nothing else")
    assert waiting.poll() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_wait_that_is_ended_leaves_no_process(mngr: Mngr, home: Home, number: signal.Signals) -> None:
    create(mngr, "a", "touch ready; exec sleep 1000")
    wait_until((home.path / "ready").exists)
    before = set(home.processes())
    waiting = waiter(mngr, home, "a", "--for", "done")
    waiting.send_signal(number)
    waiting.wait(10)
    wait_until(lambda: set(home.processes()) <= before, what="its helpers to end")


def test_a_wait_that_got_what_it_wanted_leaves_no_process(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    create(mngr, "b", UNTIL_GO)
    waiting = waiter(mngr, home, "b", "--for", "done")
    (home.path / "go").touch()
    assert waiting.wait(10) == 0
    wait_until(lambda: helpers(home) == set(), what="its helpers to end")


# What these tests speak about


def create(mngr: Mngr, name: str, line: str) -> None:
    """An agent that works in the home directory itself, where it finds the `go` file."""
    mngr.ok("create", name, "command", "--mode", "none", "--", "sh", "-c", line)


def waiter(mngr: Mngr, home: Home, *words: str) -> subprocess.Popen[str]:
    """A `mngr wait` in the background that has looked once and listens now."""
    process = mngr.popen("wait", *words)
    wait_until(lambda: helpers(home) >= {"tail", "wait-for"}, what="wait to listen")
    return process


def helpers(home: Home) -> set[str]:
    """What `mngr wait` keeps running beside itself. Its sh is no proof: both words stand in the script that it runs."""
    found = set()
    for program, *words in (line.split() for line in home.processes().values() if line):
        if Path(program).name == "tail":
            found.add("tail")
        elif Path(program).name == "tmux" and "wait-for" in words:
            found.add("wait-for")
    return found


def spy_on(home: Home, *programs: str) -> Path:
    """From now on each call of these programs is written to the file before it is made."""
    spies, calls = home.root / "spies", home.root / "calls"
    spies.mkdir()
    calls.touch()
    for program in programs:
        real = shutil.which(program, path=home.env["PATH"])
        (spies / program).write_text(f'#!/bin/sh\necho "{program} $*" >>{calls}\nexec {real} "$@"\n')
        (spies / program).chmod(0o755)
    home.env["PATH"] = f"{spies}:{home.env['PATH']}"
    return calls
