"""exec: a command beside the agent, with its own output and exit code; over many, prefixed and summed up."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.agents import launched
from tests.home import Home, Mngr, is_alive, wait_until

# Where and how it runs


def test_a_command_runs_in_the_work_dir_and_environment_of_the_agent(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "-e", "COLOUR=dark blue", "--", "sleep 1000")
    line = 'pwd; echo "$COLOUR|$MNGR_AGENT_NAME|$MNGR_BRANCH|$LEAK|$1"; git symbolic-ref --short HEAD'
    told = mngr.ok("exec", "a", "--", "sh", "-c", line, "sh", "", cwd=home.path, env={"LEAK": "leak"})
    work_dir = mngr.json("list")[0]["work_dir"]
    assert told == f"{work_dir}\ndark blue|a|mngr/a||\nmngr/a\n"


def test_several_words_are_a_program_and_its_arguments(mngr: Mngr) -> None:
    create(mngr, "a")
    assert mngr.ok("exec", "a", "--", "printf", "%s|", "$HOME", "two  blanks", "", "--json", ";") == (
        "$HOME|two  blanks||--json|;|"
    )


def test_one_word_with_blanks_is_a_line_for_the_shell(mngr: Mngr) -> None:
    create(mngr, "a")
    assert mngr.ok("exec", "a", "--", "echo one two | wc -w | tr -d ' '") == "2\n"


@pytest.mark.parametrize("program", ["sleep 1000", "exit 3"])
def test_the_agent_need_not_run(mngr: Mngr, program: str) -> None:
    create(mngr, "a", program)
    mngr.ok("stop", "a")
    assert mngr.ok("exec", "a", "--", "echo still here") == "still here\n"


def test_the_agent_notices_nothing(mngr: Mngr, home: Home) -> None:
    create(mngr, "a")
    launched(home, 1)
    before = mngr.json("events", "a")
    mngr.ok("exec", "a", "--", "true")
    assert mngr.json("events", "a") == before
    assert mngr.json("list")[0]["state"] == "running"


# Streams and exit codes


@pytest.mark.parametrize(
    ("line", "code"),
    [("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("exit 125", 125), ("kill -9 $$", 137), ("no-such-program", 127)],
)
def test_the_exit_code_is_the_commands_own(mngr: Mngr, line: str, code: int) -> None:
    create(mngr, "a")
    assert mngr("exec", "a", "--", "sh", "-c", line).code == code


def test_both_streams_are_passed_on(mngr: Mngr) -> None:
    create(mngr, "a")
    result = mngr("exec", "a", "--", "echo out; echo err >&2; exit 4")
    assert result == (4, "out\n", "err\n")


def test_output_is_passed_on_as_it_comes_and_input_as_it_is_given(mngr: Mngr) -> None:
    create(mngr, "a")
    process = mngr.popen("exec", "a", "--", "echo ready; read line; echo got $line; read line; exit 9")
    assert process.stdout
    assert process.stdin
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("this\n")
    process.stdin.flush()
    assert process.stdout.readline() == "got this\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(10) == 9


def test_bytes_pass_through_unchanged(mngr: Mngr, home: Home) -> None:
    create(mngr, "a")
    data = bytes(range(256)) * 2000 + b"no newline at the end"
    done = subprocess.run([mngr.program, "exec", "a", "--", "cat"], input=data, env=home.env, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == data


# The end of patience


def test_a_timeout_ends_the_command_and_everything_it_started(mngr: Mngr, home: Home) -> None:
    create(mngr, "a")
    stubborn = "(trap '' TERM INT HUP; echo x >>started; exec sleep 1000) & echo $! >>pids; echo $$ >>pids; sleep 1000"
    result = mngr("exec", "a", "--timeout", "3", "--", stubborn)
    assert (result.code, result.err) == (124, "mngr: ended after 3\n")
    assert (home.path / "started").exists()
    assert living(home, 2) == []


def test_a_command_that_ends_in_time_keeps_its_exit_code(mngr: Mngr) -> None:
    create(mngr, "a")
    assert mngr("exec", "a", "--timeout", "1h", "--", "exit 3").code == 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_command_ends_with_mngr(mngr: Mngr, home: Home, number: signal.Signals, code: int) -> None:
    create(mngr, "a")
    process = mngr.popen("exec", "a", "--", "sleep 1000 & echo $! >>pids; echo $$ >>pids; wait")
    living(home, 2)
    process.send_signal(number)
    assert process.wait(10) == code
    wait_until(lambda: living(home, 2) == [], what="the command to end")


# mngr's own failures


def test_a_work_dir_that_is_gone_is_mngrs_own_failure(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "sleep 1000")
    work_dir = Path(mngr.json("list")[0]["work_dir"])
    work_dir.rename(work_dir.with_name("elsewhere"))
    result = mngr("exec", "a", "--", "pwd")
    assert (result.code, result.out) == (125, "")
    assert str(work_dir) in result.err


def test_an_agent_that_is_not_there_any_more_is_told(mngr: Mngr, home: Home) -> None:
    create(mngr, "a")
    id = mngr.json("list")[0]["id"]
    (home.mngr_home / "agents" / id).rename(home.mngr_home / "moved")
    result = mngr("exec", "a", "--", "true")
    assert result.code == 3
    assert result.err.startswith("mngr: a is known by name but not there any more\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["a"], 2),
        (["a", "--"], 2),
        (["a", "true"], 2),
        (["--", "true"], 2),
        (["a", "--timeout", "soon", "--", "true"], 2),
        (["b", "--", "true"], 3),
    ],
)
def test_words_that_make_no_sense_are_refused(mngr: Mngr, words: list[str], code: int) -> None:
    create(mngr, "a")
    result = mngr("exec", *words)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("mngr: ")


# Many


def test_over_many_each_line_says_whose_it_is(mngr: Mngr) -> None:
    create_two(mngr)
    result = mngr("exec", "--all", "--", 'echo "one $MNGR_AGENT_NAME"; echo two >&2; printf three')
    assert result.code == 0
    assert sorted(result.out.splitlines()) == [
        "a      | one a",
        "a      | three",
        "longer | one longer",
        "longer | three",
    ]
    assert sorted(result.err.splitlines()) == ["a      | two", "longer | two"]


def test_over_many_lines_come_as_they_are_written_and_agents_side_by_side(mngr: Mngr, home: Home) -> None:
    create_two(mngr)
    line = 'echo here; touch "here-$MNGR_AGENT_NAME"; until [ -e here-a ] && [ -e here-longer ]; do sleep 0.02; done'
    process = mngr.popen("exec", "a", "longer", "--", line)
    assert process.stdout
    assert sorted(process.stdout.readline().split()[0] for _ in range(2)) == ["a", "longer"]
    assert process.wait(10) == 0


def test_over_many_failures_are_summed_up(mngr: Mngr) -> None:
    create_two(mngr)
    result = mngr("exec", "a", "longer", "--", '[ "$MNGR_AGENT_NAME" = a ] || exit 3; echo fine')
    assert (result.code, result.out) == (6, "a      | fine\n")
    assert result.err == "mngr: 1 of 2 failed: longer exit 3\n"


def test_over_many_a_timeout_ends_those_that_are_late(mngr: Mngr, home: Home) -> None:
    create_two(mngr)
    line = '[ "$MNGR_AGENT_NAME" = a ] && exit; sleep 1000 & echo $! >>pids; echo $$ >>pids; wait'
    result = mngr("exec", "a", "longer", "--timeout", "3", "--", line)
    assert (result.code, result.err) == (6, "mngr: 1 of 2 failed: longer timed out\n")
    assert living(home, 2) == []


def test_over_many_nothing_is_read_from_standard_input(mngr: Mngr) -> None:
    create_two(mngr)
    told = mngr.ok("exec", "--all", "--", "cat; echo end", input="mine\n")
    assert sorted(told.splitlines()) == ["a      | end", "longer | end"]


# JSON


def test_json_tells_output_and_exit_code_of_each(mngr: Mngr) -> None:
    create_two(mngr)
    result = mngr("exec", "a", "longer", "--json", "--", 'echo out; echo err >&2; [ "$MNGR_AGENT_NAME" = a ]')
    assert result.code == 6
    told = [(each["name"], each["code"], each["stdout"], each["stderr"]) for each in json.loads(result.out)]
    assert told == [("a", 0, "out\n", "err\n"), ("longer", 1, "out\n", "err\n")]


def test_json_of_one_agent_keeps_the_exit_code_of_the_command(mngr: Mngr) -> None:
    create(mngr, "a")
    result = mngr("exec", "a", "--json", "--", "echo out; exit 3")
    assert (result.code, result.err) == (3, "")
    assert [(each["code"], each["stdout"]) for each in json.loads(result.out)] == [(3, "out\n")]


# What these tests speak about


def create(mngr: Mngr, name: str, line: str = "sleep 1000") -> None:
    """An agent that works in the home directory itself, where what a command writes is easy to find."""
    mngr.ok("create", name, "command", "--mode", "none", "--", line)


def create_two(mngr: Mngr) -> None:
    create(mngr, "a")
    create(mngr, "longer")


def living(home: Home, count: int) -> list[int]:
    """Those of the processes that wrote their number to `pids` that still live, once there are that many."""
    file = home.path / "pids"
    pids = wait_until(
        lambda: pids if file.exists() and len(pids := [int(word) for word in file.read_text().split()]) >= count else []
    )
    return [pid for pid in pids if is_alive(pid)]
