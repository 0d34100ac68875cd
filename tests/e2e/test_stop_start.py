"""stop ends the whole process tree of an agent and nothing else; start brings the same agent back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.home import Home, Mngr, is_alive, wait_until

STUBBORN = "trap '' TERM HUP INT; echo $$ >>pids; while :; do sleep 1000; done"


# What stop ends


def test_stop_ends_children_however_they_detached_themselves(mngr: Mngr, home: Home) -> None:
    program = """
        sleep 1000 & echo $! >>pids
        nohup sleep 1000 >/dev/null 2>&1 & echo $! >>pids
        setsid sh -c 'echo $$ >>pids; exec sleep 1000' &
        (sleep 1000 & echo $! >>pids)
        (setsid sh -c '(echo $$ >>pids; exec sleep 1000) &' &)
        wait; exec sleep 1000"""
    create(mngr, "a", program)
    pids = pids_in(home, 5)
    assert mngr.ok("stop", "a") == "stopped a\n"
    assert living(pids) == []
    assert state(mngr, "a") == "stopped"


def test_stop_gives_the_program_time_to_end_in_its_own_way(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "trap 'echo saved >last-words; exit 7' TERM; echo $$ >>pids; while :; do sleep 0.1; done")
    pids_in(home, 1)
    mngr.ok("stop", "a")
    assert (home.path / "last-words").read_text() == "saved\n"
    assert state(mngr, "a") == "stopped"  # by us, whatever its exit code


def test_stop_kills_what_ignores_term_and_hup_after_the_grace(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", STUBBORN)
    pids = pids_in(home, 1)
    mngr.ok("stop", "a", "--grace", "0.1")
    assert living(pids) == []
    assert state(mngr, "a") == "stopped"


def test_the_grace_can_be_configured(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", STUBBORN)
    pids = pids_in(home, 1)
    mngr.ok("stop", "a", "-S", "stop_grace=0.1", env={"MNGR_CONFIG_STOP_GRACE": "3600"})
    assert living(pids) == []


def test_stop_ends_an_interactive_shell_without_waiting_for_the_grace(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec bash --norc -i")
    pid = pane_pid(home, mngr, "a")
    mngr.ok("message", "a", "-m", "trap '' TERM; sleep 1000 & echo $! >>pids; echo $$ >>pids")
    pids = pids_in(home, 2)
    mngr.ok("stop", "a", "--grace", "1h")
    assert living([pid, *pids]) == []


def test_stop_ends_a_suspended_program(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "echo $$ >>pids; exec sleep 1000")
    (pid,) = pids_in(home, 1)
    os.kill(pid, signal.SIGSTOP)
    mngr.ok("stop", "a", "--grace", "1h")
    assert living([pid]) == []


def test_stop_ends_what_is_started_while_it_stops(mngr: Mngr, home: Home) -> None:
    (home.path / "heir").write_text("trap '' TERM HUP; echo $$ >>pids; exec sleep 1000")
    create(mngr, "a", "trap 'setsid sh heir & wait; exit' TERM; echo $$ >>pids; while :; do sleep 0.05; done")
    pids_in(home, 1)
    mngr.ok("stop", "a", "--grace", "5")
    assert living(pids_in(home, 2)) == []


def test_stop_leaves_its_helpers_to_a_program_that_ends_in_its_own_way(mngr: Mngr, home: Home) -> None:
    (home.path / "save").write_text("sleep 0.5; echo saved >last-words")
    create(mngr, "a", "trap 'sh save; exit' TERM; echo $$ >>pids; while :; do sleep 0.05; done")
    pids_in(home, 1)
    mngr.ok("stop", "a", "--grace", "1h")
    assert (home.path / "last-words").read_text() == "saved\n"


def test_stop_is_polite_to_a_program_whose_launcher_was_just_about_to_start_it(mngr: Mngr, home: Home) -> None:
    """A launcher that finds how its program ended removes that: here by an `rm` that takes until TERM comes."""
    (home.path / "rm").write_text(
        "#!/bin/sh\ntrap 'touch go' TERM; touch late; until [ -e go ]; do sleep 0.02; done; exec /bin/rm \"$@\"\n"
    )
    (home.path / "rm").chmod(0o755)
    program = "[ -e go ] || exit 1; trap 'echo saved >last-words; exit' TERM; while :; do sleep 0.05; done"
    create(mngr, "a", program, "-e", f"PATH={home.path}:{os.environ['PATH']}")
    mngr.ok("wait", "a", "--for", "failed")
    exit_file(home, mngr, "a").with_name("pid").unlink()
    home.tmux("respawn-pane", "-k", "-t", f"={agent_id(mngr, 'a')}:")
    wait_until((home.path / "late").exists)
    mngr.ok("stop", "a", "--grace", "1h")
    assert (home.path / "last-words").read_text() == "saved\n"


def test_stop_ends_further_windows_also_those_that_the_user_opened(mngr: Mngr, home: Home) -> None:
    window = "echo $$ >>pids; trap '' HUP; exec sleep 1000"
    create(mngr, "a", "sleep 1000", "--window", f"log={window}")
    home.tmux("new-window", "-d", "-t", f"={agent_id(mngr, 'a')}:", "-c", str(home.path), window)
    pids = pids_in(home, 2)
    mngr.ok("stop", "a")
    assert living(pids) == []


# What stop spares


def test_stop_spares_everything_that_is_not_the_agents(mngr: Mngr, home: Home, bystanders: Bystanders) -> None:
    create(mngr, "a", "sleep 1000")
    create(mngr, "b", "sleep 1000")
    id, server = agent_id(mngr, "a"), home.tmux("display", "-p", "#{pid}")
    work_dir = mngr.json("list", "a")[0]["work_dir"]
    others = [
        bystanders("sleep", "1000", cwd=work_dir),
        bystanders("sh", "-c", "read line", f"MNGR_AGENT_ID={id}", str(home.mngr_home / "agents" / id)),
        bystanders("sleep", "1000", env={"MNGR_AGENT_ID": f"{id}0"}),
        bystanders("sleep", "1000", env={"OTHER_MNGR_AGENT_ID": id}),
        bystanders("sleep", "1000", env={"NOTE": f"the log says MNGR_AGENT_ID={id} here"}),
        pane_pid(home, mngr, "b"),
    ]
    mngr.ok("stop", "a")
    assert living(others) == others
    assert state(mngr, "b") == "running"
    assert home.tmux("display", "-p", "#{pid}") == server


def test_stop_spares_what_the_user_runs_as_connect_command(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    editor = mngr.popen("connect", "a", "--connect-command", "echo $$ >>pids; read line")
    pids = pids_in(home, 1)
    mngr.ok("stop", "a")
    assert living(pids) == pids
    assert editor.poll() is None


# An agent stops itself


def test_an_agent_can_be_stopped_from_within_by_exec(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", STUBBORN)
    pids = pids_in(home, 1)
    line = "mngr stop a --grace 0.1; echo and goes on"
    assert mngr.ok("exec", "a", "--", line) == "stopped a\nand goes on\n"
    assert living(pids) == []
    assert state(mngr, "a") == "stopped"


def test_a_program_can_stop_its_own_agent(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "echo $$ >>pids; until [ -e go ]; do sleep 0.02; done; mngr stop a; exec sleep 1000")
    pids = [*pids_in(home, 1), pane_pid(home, mngr, "a")]
    waiting = mngr.popen("wait", "a", "--for", "stopped", "--timeout", "10")
    (home.path / "go").touch()
    assert waiting.wait(10) == 0
    wait_until(lambda: living(pids) == [], what="the program to end")
    assert home.tmux("list-sessions", check=False) == ""
    assert state(mngr, "a") == "stopped"


def test_a_program_can_stop_its_own_agent_along_with_others(mngr: Mngr, home: Home) -> None:
    create(mngr, "z", "sleep 1000")
    create(mngr, "a", "until [ -e go ]; do sleep 0.02; done; mngr stop a z; exec sleep 1000")
    waiting = mngr.popen("wait", "a", "z", "--for", "stopped", "--timeout", "10")
    (home.path / "go").touch()
    assert waiting.wait(12) == 0
    wait_until(lambda: mngr.json("events", "z")[-1]["event"] == "stopped")


# What has just ended


def test_an_agent_whose_launcher_has_not_ended_yet_is_started_and_told_nothing(mngr: Mngr, home: Home) -> None:
    """It tells how its program ended as its last act, and who hears that may be faster than its end. Here it tells that
    to a pipe which is full."""
    create(mngr, "a", "echo $$ >>pids; exec sleep 1000")
    (program,) = pids_in(home, 1)
    launcher, feed, ended = pane_pid(home, mngr, "a"), home.mngr_home / "feed", exit_file(home, mngr, "a")
    feed.rename(home.root / "feed")
    os.mkfifo(feed)
    pipe = os.open(feed, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(pipe, b"x" * 1_000_000)
        os.kill(program, signal.SIGKILL)
        wait_until(lambda: ended.exists() and ended.read_text().endswith("\n"))
        (home.root / "feed").replace(feed)
        assert state(mngr, "a") == "failed"
        assert mngr("message", "a", "-m", "hello").code != 0
        assert is_alive(launcher)
        assert mngr.ok("start", "a") == "started a\n"
    finally:
        os.close(pipe)
    assert len(living(pids_in(home, 2))) == 1


def test_what_somebody_runs_by_hand_in_the_pane_of_an_ended_agent_is_left_alone(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exit 3")
    mngr.ok("wait", "a", "--for", "failed")
    by_hand = "echo $$ >>pids; exec sleep 1000"
    home.tmux("respawn-pane", "-k", "-t", f"={agent_id(mngr, 'a')}:", "-c", str(home.path), by_hand)
    (pid,) = pids_in(home, 1)
    assert "running" in mngr.ok("start", "a")
    assert living([pid]) == [pid]


# What stop says


def test_stop_of_many_says_what_became_of_each(mngr: Mngr) -> None:
    mngr.ok("create", "try", "command", "--mode", "none", "--count", "3", "--", "sleep 1000")
    mngr.ok("stop", "try-2")
    assert mngr.ok("stop", "try-*") == "stopped try-1\nidle try-2\nstopped try-3\n"
    assert [outcome["did"] for outcome in mngr.json("stop", "--all")] == ["idle", "idle", "idle"]


def test_stop_of_an_unknown_agent_names_the_nearest_and_stops_nobody(mngr: Mngr) -> None:
    create(mngr, "walrus", "sleep 1000")
    result = mngr("stop", "walrus", "walruss")
    assert (result.code, result.out) == (3, "")
    assert result.err == "mngr: no agent called walruss\nhint: did you mean walrus?\n"
    assert state(mngr, "walrus") == "running"


@pytest.mark.parametrize("words", [[], ["a", "--all"], ["a", "--grace", "soon"], ["a", "--gracee", "1"]])
def test_stop_refuses_words_that_make_no_sense(mngr: Mngr, words: list[str]) -> None:
    create(mngr, "a", "sleep 1000")
    assert mngr("stop", *words).code == 2
    assert state(mngr, "a") == "running"


def test_agents_that_have_ended_keep_their_state_and_lose_their_session(mngr: Mngr, home: Home) -> None:
    create(mngr, "good", "exit 0")
    create(mngr, "bad", "exit 3")
    mngr.ok("wait", "good", "bad", "--for", "done,failed")
    mngr.ok("stop", "good", "bad")
    assert home.tmux("list-sessions", check=False) == ""
    told = [(each["state"], each["exit_code"], each["reason"]) for each in mngr.json("list", "good", "bad")]
    assert told == [("done", 0, ""), ("failed", 3, "exit 3")]


def test_stop_ends_what_an_ended_program_left_running(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "setsid sh -c 'echo $$ >>pids; exec sleep 1000' & until [ -s pids ]; do sleep 0.02; done")
    mngr.ok("wait", "a", "--for", "done")
    pids = pids_in(home, 1)
    assert living(pids) == pids
    assert mngr.ok("stop", "a") == "idle a\n"
    assert living(pids) == []
    assert state(mngr, "a") == "done"


# start


def test_start_brings_back_the_same_command_environment_and_work_dir(mngr: Mngr, home: Home, repo: Path) -> None:
    report = 'printf "%s|" "$0" "$@" "$PWD" "$COLOUR" "$MNGR_BRANCH" "$MNGR_AGENT_ID"; echo'
    (repo / "program").write_text(f'#!/bin/sh\n{{ {report}; }} >>"$HOME/lives"\nexec sleep 1000\n')
    (repo / "program").chmod(0o755)
    home.run("git", "add", "program")
    home.run("git", "commit", "-q", "-m", "Program")
    mngr.ok("create", "a", "command", "-e", "COLOUR=dark  'blue'", "--", "./program", "two words", "$HOME", "")
    lives = home.path / "lives"
    wait_until(lambda: lives.exists() and lives.read_text().count("\n") == 1)
    mngr.ok("stop", "a")
    assert mngr.ok("start", "a", cwd=home.path, env={"COLOUR": "another"}) == "started a\n"
    wait_until(lambda: lives.read_text().count("\n") == 2)
    first, second = lives.read_text().splitlines()
    assert first == second
    assert first.startswith(f"./program|two words|$HOME||{home.mngr_home}/work/")
    assert "|dark  'blue'|mngr/a|" in first


def test_an_agent_can_be_stopped_and_started_again_and_again(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "echo $$ >>pids; exec sleep 1000")
    for life in (1, 2, 3):
        pids = pids_in(home, life)
        assert len(living(pids)) == 1
        assert state(mngr, "a") == "running"
        assert mngr.ok("stop", "a") == "stopped a\n"
        assert living(pids) == []
        assert mngr.ok("start", "a") == "started a\n"
    names = [event["event"] for event in mngr.json("events", "a")]
    assert (names.count("stopped"), names.count("started")) == (3, 3)


def test_start_leaves_a_running_agent_alone(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000")
    pid = pane_pid(home, mngr, "a")
    assert mngr.ok("start", "a") == "running a\n"
    assert pane_pid(home, mngr, "a") == pid


@pytest.mark.parametrize(("ending", "then"), [("exit 0", "done"), ("exit 5", "failed")])
def test_start_runs_an_ended_agent_again(mngr: Mngr, ending: str, then: str) -> None:
    create(mngr, "a", f"[ -e again ] || {{ touch again; {ending}; }}; exec sleep 1000")
    mngr.ok("wait", "a", "--for", then)
    assert mngr.ok("start", "a") == "started a\n"
    assert mngr.ok("wait", "a", "--for", "running", "--timeout", "5") == "a running\n"


def test_start_brings_further_windows_back(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "sleep 1000", "--window", "log=sleep 1000")
    mngr.ok("stop", "a")
    mngr.ok("start", "a")
    target = f"={agent_id(mngr, 'a')}:"
    assert home.tmux("list-windows", "-t", target, "-F", "#{window_name}") == "agent\nlog\n"


def test_start_refuses_when_the_work_dir_is_gone(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "sleep 1000")
    work_dir = Path(mngr.json("list")[0]["work_dir"])
    mngr.ok("stop", "a")
    work_dir.rename(work_dir.with_name("elsewhere"))
    result = mngr("start", "a")
    assert result.code == 1
    assert f"work dir is gone: {work_dir}" in result.err
    assert state(mngr, "a") == "stopped"
    work_dir.with_name("elsewhere").rename(work_dir)
    mngr.ok("start", "a")


def test_start_of_some_that_cannot_be_started_starts_the_others(mngr: Mngr, home: Home) -> None:
    create(mngr, "good", "sleep 1000")
    create(mngr, "bad", "sleep 1000")
    mngr.ok("stop", "--all")
    (home.mngr_home / "agents" / agent_id(mngr, "bad") / "launch").write_text("")
    result = mngr("start", "bad", "good")
    assert (result.code, result.out) == (6, "started good\n")
    assert result.err == "mngr: bad: its files are damaged\nmngr: 1 of 2 failed\n"


def test_two_starts_at_once_never_give_two_copies(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", STUBBORN)
    pids_in(home, 1)
    mngr.ok("stop", "a", "--grace", "0")
    (home.path / "pids").unlink()
    starts = [mngr.popen("start", "a") for _ in range(4)]
    assert [start.wait(10) for start in starts] == [0, 0, 0, 0]
    assert len(living(pids_in(home, 1))) == 1


# The tmux server goes away


def test_agents_of_a_killed_tmux_server_are_stopped_and_come_back(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "echo $$ >>pids; exec sleep 1000")
    create(mngr, "b", "echo $$ >>pids; exec sleep 1000")
    pids = pids_in(home, 2)
    kill_server(home)
    wait_until(lambda: living(pids) == [], what="the programs to be hung up")
    told = {each["name"]: (each["state"], each["reason"]) for each in mngr.json("list")}
    assert told == {"a": ("stopped", "session gone"), "b": ("stopped", "session gone")}
    assert mngr.ok("start", "--state", "stopped") == "started a\nstarted b\n"
    assert len(living(pids_in(home, 4))) == 2


def test_a_program_without_a_session_is_unknown_and_never_started_twice(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", STUBBORN)
    pids = pids_in(home, 1)
    kill_server(home)
    told = mngr.json("list")[0]
    assert (told["state"], told["reason"]) == ("unknown", "alive without a session")
    result = mngr("start", "a")
    assert (result.code, result.out) == (1, "")
    assert f"process {pids[0]} is its program, alive without a session" in result.err
    assert mngr.ok("stop", "a", "--grace", "0.1") == "stopped a\n"
    assert living(pids) == []
    assert state(mngr, "a") == "stopped"
    assert mngr.ok("start", "a") == "started a\n"


# What these tests speak about


def create(mngr: Mngr, name: str, line: str, *options: str) -> None:
    """An agent that works in the home directory itself, where its `pids` file is easy to find."""
    mngr.ok("create", name, "command", "--mode", "none", *options, "--", "sh", "-c", line)


def exit_file(home: Home, mngr: Mngr, name: str) -> Path:
    return home.mngr_home / "agents" / agent_id(mngr, name) / "exit"


def state(mngr: Mngr, name: str) -> str:
    return str(mngr.json("list", name)[0]["state"])


def agent_id(mngr: Mngr, name: str) -> str:
    return str(mngr.json("list", name)[0]["id"])


def pane_pid(home: Home, mngr: Mngr, name: str) -> int:
    return int(home.tmux("display", "-p", "-t", f"={agent_id(mngr, name)}:", "#{pane_pid}"))


def pids_in(home: Home, count: int) -> list[int]:
    """What programs wrote to the `pids` file, as soon as there are that many."""
    file = home.path / "pids"
    return wait_until(
        lambda: pids if file.exists() and len(pids := [int(word) for word in file.read_text().split()]) >= count else []
    )


def living(pids: list[int]) -> list[int]:
    return [pid for pid in pids if is_alive(pid)]


def kill_server(home: Home) -> None:
    pid = int(home.tmux("display", "-p", "#{pid}"))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))


class Bystanders:
    """Processes of the user's own, beside the agents."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.started: list[subprocess.Popen[bytes]] = []

    def __call__(self, *argv: str, cwd: str | None = None, env: dict[str, str] | None = None) -> int:
        whole = {**self.home.env, **(env or {})}
        process = subprocess.Popen(argv, cwd=cwd or self.home.path, env=whole, stdin=subprocess.PIPE)
        self.started.append(process)
        return process.pid


@pytest.fixture
def bystanders(home: Home) -> Iterator[Bystanders]:
    found = Bystanders(home)
    yield found
    for process in found.started:
        process.kill()
        process.communicate()
