"""list and explain: states and their evidence, the forms of output, filters, --watch."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents import SLEEP, agent, directory, launched, work_dir
from tests.home import Home, Mngr, wait_until


def ended(mngr: Mngr, name: str, line: str) -> dict[str, Any]:
    """An agent whose program has ended by itself."""
    mngr.ok("create", name, "command", "--", "sh", "-c", line)
    mngr.ok("wait", name, "--for", "done,failed", "--timeout", "20")
    return agent(mngr, name)


# States.


def test_a_command_runs_while_its_process_lives(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "10")
    found = agent(mngr, "foo")
    assert (found["state"], found["reason"], found["exit_code"]) == ("running", "", None)
    assert time.time() - 60 < found["since"] <= time.time()


def test_a_program_that_ends_well_is_done(mngr: Mngr, repo: Path) -> None:
    found = ended(mngr, "foo", "exit 0")
    assert (found["state"], found["reason"], found["exit_code"]) == ("done", "", 0)


@pytest.mark.parametrize("code", [1, 7, 255])
def test_a_program_that_fails_is_failed_with_its_exit_code(mngr: Mngr, repo: Path, code: int) -> None:
    found = ended(mngr, "foo", f"exit {code}")
    assert (found["state"], found["reason"], found["exit_code"]) == ("failed", f"exit {code}", code)


def test_a_program_that_is_killed_is_failed_with_the_signal(mngr: Mngr, repo: Path) -> None:
    found = ended(mngr, "foo", "kill -9 $$")
    assert (found["state"], found["reason"]) == ("failed", "exit 137, signal 9")


def test_a_launcher_that_is_killed_is_failed_with_the_signal(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    launched(home, 1)
    os.kill(int(home.tmux("list-panes", "-a", "-F", "#{pane_pid}")), signal.SIGKILL)
    assert mngr("wait", "foo", "--for", "failed", "--timeout", "10").out == "foo failed\n"
    assert agent(mngr, "foo")["reason"] == "signal 9"


def test_a_stopped_agent_is_stopped_and_runs_again_after_start(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--", "trap 'exit 0' TERM; while :; do sleep 0.05; done")
    mngr.ok("stop", "foo")
    assert agent(mngr, "foo")["state"] == "stopped"
    mngr.ok("start", "foo")
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "10")


def test_a_session_that_went_away_is_stopped(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    home.tmux("kill-server")
    wait_until(lambda: agent(mngr, "foo")["reason"] == "session gone", what="its program to end")
    assert agent(mngr, "foo")["state"] == "stopped"


def test_a_program_that_outlives_its_session_is_unknown(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--", "trap '' HUP; touch ready; while :; do sleep 0.1; done")
    wait_until((work_dir(mngr, "foo") / "ready").exists)
    home.tmux("kill-server")
    wait_until(lambda: not home.tmux("list-sessions", check=False))
    found = agent(mngr, "foo")
    assert (found["state"], found["reason"]) == ("unknown", "alive without a session")
    assert "is its program, alive" in mngr.ok("explain", "foo")


def test_a_damaged_record_is_unknown_and_hurts_nobody_else(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "well", "command", *SLEEP)
    mngr.ok("create", "hurt", "command", *SLEEP)
    mngr.ok("wait", "well", "--for", "running", "--timeout", "10")
    record = directory(mngr, "hurt") / "agent.json"
    for damage in (b"", b"{", b"[]", b'{"id":"x"}', b"\0\0\0", b"\xff\xfe", b"[" * 100_000):
        record.write_bytes(damage)
        assert {each["name"]: each["state"] for each in mngr.json("list")} == {"hurt": "unknown", "well": "running"}
        assert agent(mngr, "hurt")["reason"] == "damaged"
    assert "unknown (damaged)" in mngr.ok("list")
    assert "its agent.json cannot be read" in mngr.ok("explain", "hurt")


def test_a_lost_record_is_unknown(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "hurt", "command", *SLEEP)
    (directory(mngr, "hurt") / "agent.json").unlink()
    assert mngr.ok("list", "--format", "{name} {state}") == "hurt unknown\n"


def test_a_garbled_state_file_does_not_matter_while_the_process_tells(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    mngr.ok("wait", "foo", "--for", "running", "--timeout", "10")
    state = directory(mngr, "foo") / "state"
    for text in ("", "nonsense", "running", "running soon", "exploded 5", "\x1b[2J 1", "running 1\nstopped 2\n"):
        state.write_text(text)
        assert agent(mngr, "foo")["state"] == "running", text


def test_explain_prints_the_evidence(mngr: Mngr, home: Home, repo: Path) -> None:
    found = ended(mngr, "foo", "echo 'last words'; exit 3")
    told = mngr.ok("explain", "foo")
    assert told.startswith("foo is failed (exit 3), since ")
    assert found["id"] in told
    assert "status 3" in told
    assert f"work dir     {found['work_dir']}" in told
    assert "  | last words" in told
    asked = mngr.json("explain", "foo")
    assert (asked["state"], asked["reason"]) == ("failed", "exit 3")
    assert asked["evidence"]["exit"].startswith("status 3")


# Forms of output.


def test_an_empty_list_says_what_to_do(mngr: Mngr, repo: Path) -> None:
    assert mngr.ok("list") == "no agents yet: mngr create NAME command -- PROGRAM\n"
    assert mngr.json("list") == []
    assert mngr.ok("list", "--jsonl") == mngr.ok("list", "--names") == mngr.ok("list", "--format", "{name}") == ""
    assert mngr.ok("list", "--state", "done") == "no agents match\n"


def test_the_table_has_a_row_per_agent_under_its_head(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--label", "a=1", "--label", "b=2", *SLEEP)
    ended(mngr, "a-longer-name", "exit 4")
    head, *rows = mngr.ok("list", "--labels").splitlines()
    assert head.split() == ["NAME", "STATE", "AGE", "TYPE", "HOST", "BRANCH", "LABELS"]
    assert [row[: head.index("STATE")].strip() for row in rows] == ["a-longer-name", "foo"]
    assert [row[head.index("STATE") : head.index("AGE")].strip() for row in rows] == ["failed (exit 4)", "running"]
    assert [row[head.index("BRANCH") :].split() for row in rows] == [["mngr/a-longer-name"], ["mngr/foo", "a=1,b=2"]]


def test_names_are_sorted_as_people_count(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--count", "11", *SLEEP)
    assert mngr.ok("list", "--names").split() == [f"foo-{number}" for number in range(1, 12)]


def test_git_counts_commits_and_changed_files(mngr: Mngr, home: Home, repo: Path) -> None:
    for mode in ("worktree", "clone"):
        mngr.ok("create", mode, "command", "--mode", mode, *SLEEP)
        work = work_dir(mngr, mode)
        for number in range(2):
            home.run("git", "commit", "-q", "--allow-empty", "-m", str(number), cwd=work)
        (work / "new").write_text("x\n")
    mngr.ok("create", "in-place", "command", "--mode", "none", *SLEEP)
    head, *rows = mngr.ok("list", "--git").splitlines()
    counted = [row[head.index("AHEAD") :].split() for row in rows]
    assert counted == [["2", "1"], ["-", "-"], ["2", "1"]]
    found = {each["name"]: (each.get("ahead"), each.get("changed")) for each in mngr.json("list", "--git")}
    assert found == {"clone": (2, 1), "in-place": (None, None), "worktree": (2, 1)}


def test_json_is_one_document_and_jsonl_one_per_line(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--count", "2", "--label", 'why=it\'s "so"\n\u00fc', *SLEEP)
    launched(mngr.home, 2)
    whole = mngr.json("list")
    lines = [json.loads(line) for line in mngr.ok("list", "--jsonl").splitlines()]
    assert lines == whole
    assert whole[0]["labels"] == {"why": 'it\'s "so"\n\u00fc'}
    wanted = {"id", "name", "type", "host", "command", "work_dir", "mode", "branch", "base", "state", "since"}
    assert wanted <= set(whole[0])


def test_format_prints_a_line_per_agent(mngr: Mngr, repo: Path) -> None:
    ended(mngr, "foo", "true")
    assert mngr.ok("list", "--format", r"{name}\t{state}") == "foo\tdone\n"
    assert mngr.ok("list", "--format", "{command[2]}|{name:>5}|{exit_code}") == "true|  foo|0\n"


def test_a_wrong_format_is_refused_with_the_fields_there_are(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    for template in ("{nmae}", "{", "{name", "{name.x}", "{}", "{command[9]}", "{labels[x]}", "{name:d}"):
        result = mngr("list", "--format", template)
        assert result.code == 2, template
        assert "hint: fields: id, name, type" in result.err


def test_nothing_that_an_agent_wrote_acts_on_the_terminal(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", "--label", "x=\x1b[31mred\x07", *SLEEP)
    launched(mngr.home, 1)
    (directory(mngr, "foo") / "state").write_text(f"waiting {int(time.time())} \x1b]0;title\x07\n")
    shown = mngr.ok("list", "--labels") + mngr.ok("explain", "foo")
    assert "waiting" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_closed_pipe_is_no_error_message(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    assert (
        home.run("sh", "-c", "{ mngr list; echo $? >&2; } 2>&1 >/dev/full | cat")
        == "mngr: No space left on device\n1\n"
    )
    assert home.run("sh", "-c", "{ mngr list; } 2>&1 | true; mngr list --names") == "foo\n"


# Filters.


def test_filters_narrow_what_is_listed(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "done", "command", "--label", "batch=2", "--", "true")
    mngr.ok("create", "live", "command", "--count", "2", "--label", "batch=1", *SLEEP)
    mngr.ok("label", "live-1", "team=a")
    mngr.ok("wait", "done", "--for", "done", "--timeout", "20")
    mngr.ok("wait", "live-*", "--for", "running", "--timeout", "20")
    for words, names in {
        "": "done live-1 live-2",
        "--all": "done live-1 live-2",
        "live-2 done": "live-2 done",
        "live-*": "live-1 live-2",
        "--state running": "live-1 live-2",
        "--state done,failed": "done",
        "--state done --state running": "done live-1 live-2",
        "--label batch=1": "live-1 live-2",
        "--label batch=": "done live-1 live-2",
        "--label batch=1 --label team=a": "live-1",
        "--label team=b": "",
        "--type command": "done live-1 live-2",
        "--type other": "",
        "--host local": "done live-1 live-2",
        "--host elsewhere": "",
        "live-* --label team=a": "live-1",
        "live-* --state done": "",
    }.items():
        assert mngr.ok("list", "--names", *words.split()).split() == names.split(), words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--state gone", "there is no state 'gone'"),
        ("--label x", "--label takes K=V"),
        ("--label =x", "--label takes K=V"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(mngr: Mngr, words: str, said: str) -> None:
    result = mngr("list", *words.split())
    assert result.code == 2
    assert said in result.err


# --watch.


def test_watch_shows_what_changes_as_it_changes(mngr: Mngr, repo: Path) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    watching = mngr.popen("list", "--watch", "--format", "{name}={state}")
    assert watching.stdout is not None
    seen: list[str] = []

    def read_until(line: str) -> None:
        assert watching.stdout is not None
        while line not in seen:
            said = watching.stdout.readline()
            assert said, f"it ended before {line}; seen: {seen}"
            seen.append(said.strip())

    read_until("foo=running")
    mngr.ok("create", "bar", "command", *SLEEP)
    read_until("bar=running")
    mngr.ok("stop", "foo")
    read_until("foo=stopped")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(10) == 130
    assert "Traceback" not in watching.communicate()[1]


def test_names_that_come_through_a_pipe_are_asked_about_when_they_are_there(mngr: Mngr, home: Home, repo: Path) -> None:
    """Whoever writes them may do something first; a list asks before it reads anything else."""
    mngr.ok("create", "foo", "command", "--", "sleep 1000")
    words = shlex.quote(mngr.program)
    piped = f"{{ {words} stop foo >&2; echo foo; }} | {words} list - --format '{{name}} {{state}}'"
    told = subprocess.run(["sh", "-c", piped], env=home.env, cwd=repo, stdout=subprocess.PIPE, text=True, check=True)
    assert told.stdout == "foo stopped\n"


# Who lives, as the kernel tells it.


def test_a_number_that_another_process_has_now_is_nobodys(mngr: Mngr, home: Home, repo: Path) -> None:
    """As after a restart of the machine, when numbers are given anew: a launcher's, a user's shell's, anybody's."""
    for name in ("foo", "bar"):
        mngr.ok("create", name, "command", *SLEEP)
    mngr.ok("wait", "--all", "--for", "running")
    mngr.ok("stop", "foo")
    home.tmux("new-window", "-d", "-t", f"={agent(mngr, 'bar')['id']}:", "sleep 1000")
    panes = home.tmux("list-panes", "-a", "-F", "#{pane_pid}").split()
    for number in [*panes, str(os.getpid()), "1", "../self", ""]:
        (directory(mngr, "foo") / "pid").write_text(f"{number} {number}\n")
        assert states(mngr) == {"bar": "running", "foo": "stopped"}, number


def test_one_whose_number_is_lost_lives_all_the_same(mngr: Mngr, repo: Path, home: Home) -> None:
    mngr.ok("create", "foo", "command", *SLEEP)
    launched(home, 1)
    place = directory(mngr, "foo")
    for state in ("running 5", "stopped 5"):
        (place / "pid").unlink(missing_ok=True)
        (place / "state").write_text(f"{state}\n")
        assert states(mngr) == {"foo": "running"}, state


def test_a_pipe_in_the_place_of_a_number_hangs_nobody(mngr: Mngr, repo: Path, home: Home) -> None:
    for name in ("foo", "bar"):
        mngr.ok("create", name, "command", *SLEEP)
    launched(home, 2)
    for name in ("foo", "bar"):
        (directory(mngr, name) / "pid").unlink()
        os.mkfifo(directory(mngr, name) / "pid")
    assert states(mngr) == {"bar": "running", "foo": "running"}


def states(mngr: Mngr) -> dict[str, str]:
    return {each["name"]: each["state"] for each in mngr.json("list")}
