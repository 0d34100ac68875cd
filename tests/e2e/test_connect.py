"""connect: the live terminal of an agent, driven through a real one: a tmux server of the user's own stands for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.home import Home, Mngr, wait_until

# Attaching


def test_connect_shows_the_screen_and_types_into_the_program(mngr: Mngr, terminal: Terminal, home: Home) -> None:
    create(mngr, "a", "echo hello from a; exec cat >got")
    terminal.run("mngr connect a")
    terminal.shows("hello from a")
    terminal.keys("typed", "Enter")
    wait_until(lambda: (home.path / "got").read_text() == "typed\n")


def test_detaching_leaves_the_agent_running(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    before = one(mngr, "a")
    terminal.run("mngr connect a; echo code=$?")
    terminal.shows("hello")
    terminal.keys("C-b", "d")
    terminal.shows("code=0")
    assert one(mngr, "a") == before


def test_connect_brings_a_stopped_agent_back(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    mngr.ok("stop", "a")
    terminal.run("mngr connect a")
    terminal.shows("hello")
    assert one(mngr, "a")["state"] == "running"
    terminal.keys("C-b", "d")
    terminal.shows("mngr: a was stopped: started again")


def test_the_last_screen_of_an_ended_program_can_be_looked_at(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo last words; exit 3")
    mngr.ok("wait", "a", "--for", "failed")
    terminal.run("mngr connect a")
    terminal.shows("last words")
    assert one(mngr, "a")["state"] == "failed"


def test_create_in_a_terminal_attaches_unless_told_not_to(mngr: Mngr, terminal: Terminal) -> None:
    terminal.run("mngr create a command --mode none --no-connect -- sleep 1000; echo made=$?")
    terminal.shows("made=0")
    terminal.run("mngr create b command --mode none -- 'echo hello from b; exec sleep 1000'")
    wait_until(lambda: attached(mngr, terminal.home) == ["b"])
    terminal.shows("hello from b")


# The size of the window


def test_the_window_has_the_size_of_the_terminal_while_attached(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    assert terminal.size_of(mngr, "a") == "200x50"
    terminal.run("mngr connect a")
    wait_until(lambda: terminal.size_of(mngr, "a") == "100x29")  # one line of the terminal's 30 is the status line
    terminal.tmux("resize-window", "-x", "120", "-y", "40")
    wait_until(lambda: terminal.size_of(mngr, "a") == "120x39")
    terminal.keys("C-b", "d")
    wait_until(lambda: terminal.size_of(mngr, "a") == "200x50")


def test_a_terminal_that_is_closed_leaves_the_window_as_it_was(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    terminal.run("mngr connect a")
    wait_until(lambda: terminal.size_of(mngr, "a") == "100x29")
    terminal.tmux("kill-server")
    wait_until(lambda: terminal.size_of(mngr, "a") == "200x50")
    assert one(mngr, "a")["state"] == "running"


def test_the_window_of_the_agent_gets_its_size_back_whatever_was_in_front(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "exec sleep 1000", "--window", "log=echo beside; exec sleep 1000")
    terminal.run("mngr connect a")
    wait_until(lambda: terminal.size_of(mngr, "a") == "100x29")
    terminal.keys("C-b", "n")
    terminal.shows("beside")
    terminal.keys("C-b", "d")
    wait_until(lambda: terminal.size_of(mngr, "a") == "200x50")


def test_while_another_terminal_is_attached_the_window_is_left_to_it(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo hello; exec sleep 1000")
    terminal.run("mngr connect a")
    wait_until(lambda: attached(mngr, terminal.home) == ["a"])
    second = Terminal(terminal.home, "second", 80, 24)
    second.run("mngr connect a")
    wait_until(lambda: attached(mngr, terminal.home) == ["a", "a"])
    wait_until(lambda: terminal.size_of(mngr, "a") == "80x23")
    terminal.keys("C-b", "d")
    wait_until(lambda: attached(mngr, terminal.home) == ["a"])
    assert terminal.size_of(mngr, "a") == "80x23"
    second.keys("C-b", "d")
    wait_until(lambda: terminal.size_of(mngr, "a") == "200x50")


# Inside the user's own tmux


def test_inside_the_users_tmux_a_window_there_attaches(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo hello from a; exec sleep 1000")
    terminal.inside_tmux = True
    terminal.run("mngr connect a; echo code=$?")
    terminal.shows("hello from a")  # the new window is in front
    assert terminal.tmux("list-windows", "-F", "#{window_name}").split() == ["sh", "a"]
    assert attached(mngr, terminal.home) == ["a"]
    terminal.tmux("select-window", "-t", ":sh")
    terminal.shows("mngr: a is in a new window of your tmux\ncode=0")


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
    assert attached(mngr, home) == []


def test_connect_command_of_create_runs_for_each_new_agent(mngr: Mngr, home: Home) -> None:
    mngr.ok("config", "set", "commands.create.connect_command", TELL)
    result = mngr("create", "a", "command", "--mode", "none", "--", "sleep 1000")
    assert result == (0, "a\n" + told(home, one(mngr, "a")), "")
    assert mngr("create", "b", "command", "--mode", "none", "--no-connect", "--", "sleep 1000").out == "b\n"
    assert mngr("create", "c", "command", "--mode", "none", "-n", "2", "--", "sleep 1000").out == "c-1\nc-2\n"


def test_connect_command_gets_the_terminal(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "exec sleep 1000")
    terminal.run("mngr connect a --connect-command 'stty size; read line; echo got $line'; echo code=$?")
    terminal.shows("30 100")
    terminal.keys("this", "Enter")
    terminal.shows("got this\ncode=0")


def test_connect_command_finds_a_stopped_agent_brought_back(mngr: Mngr) -> None:
    create(mngr, "a", "exec sleep 1000")
    mngr.ok("stop", "a")
    line = 'tmux -S "$MNGR_TMUX_SOCKET" has-session -t "=$MNGR_SESSION" && echo there'
    assert mngr("connect", "a", "--connect-command", line) == (0, "there\n", "mngr: a was stopped: started again\n")


def test_a_connect_command_that_connects_attaches_for_real(mngr: Mngr, terminal: Terminal) -> None:
    create(mngr, "a", "echo hello from a; exec sleep 1000")
    mngr.ok("config", "set", "commands.connect.connect_command", "echo once; mngr connect $MNGR_AGENT_NAME")
    terminal.run("mngr connect a; echo code=$?")
    terminal.shows("hello from a")
    terminal.keys("C-b", "d")
    assert terminal.shows("code=0").count("once\n") == 1


def test_a_connect_command_that_connects_or_creates_never_loops(mngr: Mngr) -> None:
    create(mngr, "a", "exec sleep 1000")
    mngr.ok("config", "set", "commands.connect.connect_command", "echo once; mngr connect $MNGR_AGENT_NAME")
    result = mngr("connect", "a", timeout=10)
    assert (result.code, result.out) == (0, "once\n")
    assert result.err == "mngr: not a terminal, so not attached: mngr connect a does it in one\n"
    line = "mngr create $MNGR_AGENT_NAME-again command --mode none -- sleep 1000"
    mngr.ok("config", "set", "commands.create.connect_command", line)
    mngr.ok("create", "b", "command", "--mode", "none", "--", "sleep 1000", timeout=10)
    assert mngr.ok("list", "--names").split() == ["a", "b", "b-again"]


# Not possible


def test_without_a_terminal_the_attach_is_skipped_with_one_line(mngr: Mngr, home: Home) -> None:
    create(mngr, "a", "exec sleep 1000")
    line = "mngr: not a terminal, so not attached: mngr connect a does it in one\n"
    assert mngr("connect", "a") == (0, "", line)
    assert mngr("connect", "a", env={"TMUX": "/nowhere,1,0"}) == (0, "", line)
    assert attached(mngr, home) == []


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


class Terminal:
    """The user's terminal, with a shell in it: a pane of a tmux server that has nothing to do with mngr."""

    def __init__(self, home: Home, name: str = "terminal", columns: int = 100, lines: int = 30) -> None:
        self.home = home
        self.socket = str(home.root / name)
        self.inside_tmux = False  # does the shell know that it is in tmux?
        self.tmux("-f", "/dev/null", "new-session", "-d", "-n", "sh", "-x", str(columns), "-y", str(lines), "sh")

    def tmux(self, *words: str) -> str:
        return self.home.run("tmux", "-u", "-S", self.socket, *words)

    def run(self, line: str) -> None:
        self.tmux("send-keys", "-l", line if self.inside_tmux else f"unset TMUX; {line}")
        self.tmux("send-keys", "Enter")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def shows(self, text: str) -> str:
        """What is on the screen, as soon as that is."""
        return wait_until(lambda: seen if text in (seen := self.tmux("capture-pane", "-p")) else "", what=text)

    def size_of(self, mngr: Mngr, name: str) -> str:
        target = f"={one(mngr, name)['id']}:agent"
        return self.home.tmux("display", "-p", "-t", target, "#{window_width}x#{window_height}").strip()


@pytest.fixture
def terminal(home: Home) -> Terminal:
    return Terminal(home)


def create(mngr: Mngr, name: str, line: str, *options: str) -> None:
    mngr.ok("create", name, "command", "--mode", "none", *options, "--", "sh", "-c", line)


def one(mngr: Mngr, name: str) -> dict[str, Any]:
    found: dict[str, Any] = mngr.json("list", name)[0]
    return found


def attached(mngr: Mngr, home: Home) -> list[str]:
    """The names of the agents that terminals are attached to."""
    return sorted(home.tmux("list-clients", "-F", "#{@name}").split())
