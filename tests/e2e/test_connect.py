"""connect: the live terminal of an agent, driven through a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from mngr.e2e.terminal import Terminal, Terminals
from tests.agents import launched
from tests.home import Home, Mngr, wait_until

# Attaching


def test_connect_shows_the_screen_and_types_into_the_program(mngr: Mngr, spawn: Spawn, home: Home) -> None:
    create(mngr, "a", ": >got; echo hello from a; exec cat >got")
    spawn("mngr connect a").wait_for_text("hello from a").type("typed").press("Enter")
    wait_until(lambda: (home.path / "got").read_text() == "typed\n")


def test_detaching_leaves_the_agent_running(mngr: Mngr, spawn: Spawn, home: Home) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    launched(home, 1)
    before = one(mngr, "a")
    assert spawn("mngr connect a").wait_for_text("hello").press("C-b", "d").wait_for_exit() == 0
    assert one(mngr, "a") == before


def test_connect_brings_a_stopped_agent_back(mngr: Mngr, spawn: Spawn) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    mngr.ok("stop", "a")
    terminal = spawn("mngr connect a").wait_for_text("hello")
    assert one(mngr, "a")["state"] == "running"
    terminal.press("C-b", "d").wait_for_text("mngr: a was stopped: started again")


def test_the_last_screen_of_an_ended_program_can_be_looked_at(mngr: Mngr, spawn: Spawn) -> None:
    create(mngr, "a", "echo last words; exit 3")
    mngr.ok("wait", "a", "--for", "failed")
    spawn("mngr connect a").wait_for_text("last words")
    assert one(mngr, "a")["state"] == "failed"


def test_create_in_a_terminal_attaches_unless_told_not_to(mngr: Mngr, spawn: Spawn, home: Home) -> None:
    assert spawn("mngr create a command --mode none --no-connect -- sleep 1000").wait_for_exit() == 0
    spawn("mngr create b command --mode none -- 'echo hello from b; exec sleep 1000'").wait_for_text("hello from b")
    assert attached(home) == ["b"]


# The size of the window


def test_the_window_has_the_size_of_the_terminal_while_attached(mngr: Mngr, spawn: Spawn) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    assert size_of(mngr, "a") == "200x50"
    terminal = spawn("mngr connect a")
    wait_until(lambda: size_of(mngr, "a") == "100x29")  # one line of the terminal's 30 is the status line
    terminal.resize(120, 40)
    wait_until(lambda: size_of(mngr, "a") == "120x39")
    terminal.press("C-b", "d")
    wait_until(lambda: size_of(mngr, "a") == "200x50")


def test_a_terminal_that_is_closed_leaves_the_window_as_it_was(mngr: Mngr, spawn: Spawn) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    terminal = spawn("mngr connect a")
    wait_until(lambda: size_of(mngr, "a") == "100x29")
    terminal.close()
    wait_until(lambda: size_of(mngr, "a") == "200x50")
    assert one(mngr, "a")["state"] == "running"


def test_the_window_of_the_agent_gets_its_size_back_whatever_was_in_front(mngr: Mngr, spawn: Spawn) -> None:
    create(mngr, "a", "exec sleep 1000", "--window", "log=echo beside; exec sleep 1000")
    terminal = spawn("mngr connect a")
    wait_until(lambda: size_of(mngr, "a") == "100x29")
    terminal.press("C-b", "n").wait_for_text("beside").press("C-b", "d")
    wait_until(lambda: size_of(mngr, "a") == "200x50")


def test_while_another_terminal_is_attached_the_window_is_left_to_it(mngr: Mngr, spawn: Spawn, home: Home) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    first = spawn("mngr connect a")
    wait_until(lambda: attached(home) == ["a"])
    second = spawn("mngr connect a", 80, 24)
    wait_until(lambda: attached(home) == ["a", "a"])
    wait_until(lambda: size_of(mngr, "a") == "80x23")
    first.press("C-b", "d")
    wait_until(lambda: attached(home) == ["a"])
    assert size_of(mngr, "a") == "80x23"
    second.press("C-b", "d")
    wait_until(lambda: size_of(mngr, "a") == "200x50")


# Inside the user's own tmux


def test_inside_the_users_tmux_a_window_there_attaches(mngr: Mngr, spawn: Spawn, home: Home) -> None:
    create(mngr, "a", "echo hello from a; exec sleep 1000")
    own = f"tmux -u -S {home.root}/own"
    terminal = spawn(f"{own} -f /dev/null new-session -n sh sh")
    terminal.type("mngr connect a; echo code=$?").press("Enter")
    terminal.wait_for_text("hello from a")  # the new window is in front
    assert home.run(*own.split(), "list-windows", "-F", "#{window_name}").split() == ["sh", "a"]
    assert attached(home) == ["a"]
    home.run(*own.split(), "select-window", "-t", ":sh")
    terminal.wait_for_text("mngr: a is in a new window of your tmux\ncode=0")


# connect_command

TELL = 'printf "%s|" "$MNGR_AGENT_NAME" "$MNGR_AGENT_ID" "$MNGR_SESSION" "$MNGR_WORK_DIR" "$MNGR_AGENT_HOST"'
TELL += ' "$MNGR_AGENT_DIR" "$MNGR_TMUX_SOCKET"'


def told(home: Home, agent: dict[str, Any]) -> str:
    id = agent["id"]
    return f"{agent['name']}|{id}|{id}|{agent['work_dir']}|local|{home.mngr_home}/agents/{id}|{home.socket}|"


def test_connect_command_replaces_the_attach_also_without_a_terminal(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec sleep 1000")
    expected = told(home, one(mngr, "a"))
    assert mngr("connect", "a", "--connect-command", f"{TELL}; exit 7") == (7, expected, "")
    mngr.ok("config", "set", "commands.connect.connect_command", TELL)
    assert mngr("connect", "a") == (0, expected, "")
    assert attached(home) == []


def test_connect_command_of_create_runs_for_each_new_agent(mngr: Mngr, home: Home) -> None:
    mngr.ok("config", "set", "commands.create.connect_command", TELL)
    result = mngr("create", "a", "command", "--mode", "none", "--", "sleep 1000")
    assert result == (0, "a\n" + told(home, one(mngr, "a")), "")
    assert mngr("create", "b", "command", "--mode", "none", "--no-connect", "--", "sleep 1000").out == "b\n"
    assert mngr("create", "c", "command", "--mode", "none", "-n", "2", "--", "sleep 1000").out == "c-1\nc-2\n"


def test_connect_command_gets_the_terminal(mngr: Mngr, spawn: Spawn) -> None:
    create(mngr, "a", "exec sleep 1000")
    terminal = spawn("mngr connect a --connect-command 'stty size; read line; echo got $line'")
    terminal.wait_for_text("30 100").type("this").press("Enter").wait_for_text("got this")
    assert terminal.wait_for_exit() == 0


def test_connect_command_finds_a_stopped_agent_brought_back(mngr: Mngr) -> None:
    create(mngr, "a", "exec sleep 1000")
    mngr.ok("stop", "a")
    line = 'tmux -S "$MNGR_TMUX_SOCKET" has-session -t "=$MNGR_SESSION" && echo there'
    assert mngr("connect", "a", "--connect-command", line) == (0, "there\n", "mngr: a was stopped: started again\n")


def test_a_connect_command_that_connects_attaches_for_real(mngr: Mngr, spawn: Spawn) -> None:
    create(mngr, "a", "echo hello from a; exec sleep 1000")
    mngr.ok("config", "set", "commands.connect.connect_command", "echo once; mngr connect $MNGR_AGENT_NAME")
    terminal = spawn("mngr connect a").wait_for_text("hello from a")
    assert terminal.press("C-b", "d").wait_for_exit() == 0
    assert terminal.screen.count("once\n") == 1


def test_a_connect_command_that_connects_or_creates_never_loops(mngr: Mngr) -> None:
    create(mngr, "a", "exec sleep 1000")
    mngr.ok("config", "set", "commands.connect.connect_command", "echo once; mngr connect $MNGR_AGENT_NAME")
    result = mngr("connect", "a")
    assert (result.code, result.out) == (0, "once\n")
    assert result.err == "mngr: not a terminal, so not attached: mngr connect a does it in one\n"
    line = "mngr create $MNGR_AGENT_NAME-again command --mode none -- sleep 1000"
    mngr.ok("config", "set", "commands.create.connect_command", line)
    mngr.ok("create", "b", "command", "--mode", "none", "--", "sleep 1000")
    assert mngr.ok("list", "--names").split() == ["a", "b", "b-again"]


# Not possible


def test_without_a_terminal_the_attach_is_skipped_with_one_line(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec sleep 1000")
    line = "mngr: not a terminal, so not attached: mngr connect a does it in one\n"
    assert mngr("connect", "a") == (0, "", line)
    assert mngr("connect", "a", env={"TMUX": "/nowhere,1,0"}) == (0, "", line)
    assert attached(home) == []


@pytest.mark.parametrize(("words", "code"), [([], 2), (["b"], 3), (["a", "b"], 2), (["a*"], 2)])
def test_words_that_make_no_sense_are_refused(mngr: Mngr, words: list[str], code: int) -> None:
    create(mngr, "a", "exec sleep 1000")
    create(mngr, "a2", "exec sleep 1000")
    result = mngr("connect", *words)
    assert (result.code, result.out) == (code, "")


def test_an_agent_that_has_ended_and_lost_its_screen_is_not_started_by_accident(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exit 0")
    mngr.ok("wait", "a", "--for", "done")
    mngr.ok("stop", "a")
    result = mngr("connect", "a")
    assert (result.code, result.out) == (1, "")
    assert result.err == "mngr: a has ended and its screen is gone\nhint: mngr start a runs it again\n"


def test_an_agent_that_cannot_be_brought_back_is_told(mngr: Mngr, home: Home, repo: Path) -> None:
    mngr.ok("create", "a", "command", "--", "sleep 1000")
    mngr.ok("stop", "a")
    work_dir = Path(one(mngr, "a")["work_dir"])
    work_dir.rename(work_dir.with_name("elsewhere"))
    result = mngr("connect", "a")
    assert result.code == 1
    assert "its work dir is gone" in result.err


# What these tests speak about


class Spawn(Protocol):
    def __call__(self, command: str, width: int = 100, height: int = 30) -> Terminal: ...


@pytest.fixture
def spawn(home: Home) -> Iterator[Spawn]:
    """A terminal of the user's, with that command in it."""
    terminals = Terminals(home.root, None)
    yield lambda command, width=100, height=30: terminals.spawn(command, "t", home.env, home.cwd, width, height)
    terminals.close()


def size_of(mngr: Mngr, name: str) -> str:
    target = f"={one(mngr, name)['id']}:agent"
    return mngr.home.tmux("display", "-p", "-t", target, "#{window_width}x#{window_height}").strip()


def create(mngr: Mngr, name: str, line: str, *options: str) -> None:
    mngr.ok("create", name, "command", "--mode", "none", *options, "--", "sh", "-c", line)


def one(mngr: Mngr, name: str) -> dict[str, Any]:
    found: dict[str, Any] = mngr.json("list", name)[0]
    return found


def attached(home: Home) -> list[str]:
    """The names of the agents that terminals are attached to."""
    return sorted(home.tmux("list-clients", "-F", "#{@name}").split())
