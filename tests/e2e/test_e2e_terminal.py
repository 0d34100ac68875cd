"""Terminal programs under a test's control: keys in, screens out, and a recording that plays."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mngr.e2e import cast
from mngr.e2e.terminal import Terminal, Terminals
from tests.home import BIN, Home, is_alive, wait_until


class Spawn:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.casts = home.root / "casts"
        self.terminals = Terminals(home.root, self.casts)

    def __call__(self, command: str, name: str = "t", **how: Any) -> Terminal:
        size = {"width": 80, "height": 24}
        return self.terminals.spawn(command, name, **{"env": self.home.env, "cwd": self.home.path, **size, **how})

    def recorded(self, name: str = "t") -> cast.Cast:
        self.terminals.close()
        return cast.read(self.casts / f"{name}.cast")


@pytest.fixture
def spawn(home: Home) -> Iterator[Spawn]:
    spawn = Spawn(home)
    yield spawn
    spawn.terminals.close()
    wait_until(lambda: not home.processes(), what="the end of all that ran in terminals")


# Looking and typing


def test_a_program_is_waited_for_typed_into_and_looked_at(spawn: Spawn) -> None:
    terminal = spawn("printf 'Your name? '; read -r name; echo; echo \"Hello, $name\"; exit 3")
    terminal.wait_for_text("Your name?").type("Ada").press("Enter")
    assert terminal.wait_for_exit() == 3
    assert terminal.screen == "Your name? Ada\n\nHello, Ada"
    assert terminal.exit_code == 3


@pytest.mark.parametrize(
    "text",
    [
        """it's "quoted"; `ticks` $HOME ${x} #{pane_id} \\ \\n ~ %1 -l { } | & > *""",
        "-l",
        ";",
        "~",
        "äöü 中文 🎉 é",
        "x" * 2000,
    ],
)
def test_text_arrives_as_it_was_typed(spawn: Spawn, home: Home, text: str) -> None:
    terminal = spawn("IFS= read -r line; printf '%s' \"$line\" >got")
    terminal.type(text + "\n").wait_for_exit()
    assert (home.path / "got").read_text() == text


def test_text_typed_before_the_program_reads_is_not_lost(spawn: Spawn) -> None:
    terminal = spawn('while ! [ -e ready ]; do sleep 0.01; done; read -r line; echo "got $line"')
    terminal.type("early\n")
    (spawn.home.path / "ready").touch()
    terminal.wait_for_text("got early")


def test_keys_have_names_and_others_are_refused(spawn: Spawn) -> None:
    terminal = spawn("stty raw -echo; echo ready; exec cat -v").wait_for_text("ready")
    terminal.press("Up", "Escape", "C-a", "M-x", "F5", ";", "é", "Tab", "Space", "$").type("end").wait_for_text("end")
    assert terminal.screen.split() == ["ready", "^[[A^[^A^[x^[[15~;M-CM-)", "$end"]
    for key in ("Entr", "", "two words", "C-", "F13", "C-Entr"):
        with pytest.raises(ValueError, match="no such key"):
            terminal.press(key)


def test_ctrl_c_reaches_the_program_alone(spawn: Spawn) -> None:
    handled = spawn("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.01; done", "a")
    handled.wait_for_text("ready").press("C-c")
    assert handled.wait_for_exit() == 7
    assert "caught" in handled.screen
    unhandled = spawn("echo ready; exec sleep 1000", "b")
    unhandled.wait_for_text("ready").press("C-c")
    assert unhandled.wait_for_exit() == 128 + signal.SIGINT


def test_full_screen_programs_and_wide_characters(spawn: Spawn) -> None:
    terminal = spawn(r"echo before; printf '\033[?1049h\033[2J\033[3;5H中文 🎉 é|'; read -r x; printf '\033[?1049l'")
    terminal.wait_for_text("é|")
    assert terminal.screen == "\n\n    中文 🎉 é|"
    terminal.press("Enter").wait_for_exit()
    assert terminal.screen == "before"


def test_patterns_and_texts_broken_at_the_edge_are_found(spawn: Spawn) -> None:
    terminal = spawn("echo " + "0123456789" * 5 + "; read x", width=30)
    terminal.wait_for_text("0123456789" * 5)
    terminal.wait_for_text(re.compile(r"^(0123456789){3}$", re.MULTILINE))
    assert terminal.screen.split("\n")[:2] == ["0123456789" * 3, "0123456789" * 2]


def test_text_that_goes_away_is_waited_for(spawn: Spawn) -> None:
    terminal = spawn(r"echo loading; read -r x; printf '\033[2J\033[Hdone'; read -r x").wait_for_text("loading")
    terminal.press("Enter").wait_for_no_text("loading")
    assert terminal.screen == "done"


def test_an_interactive_shell(spawn: Spawn) -> None:
    terminal = spawn("PS1='> ' exec bash --norc --noprofile -i").wait_for_text(">")
    terminal.type("sh -c 'echo st''arted; exec sleep 1000'\n").wait_for_text("started")
    terminal.press("C-z").wait_for_text("Stopped")
    # `wait` does not wait for a job that is stopped, and it is, for a moment after the signal.
    terminal.type('kill %1; while [ "$(jobs)" ]; do sleep 0.05; done; echo left=$((40 + 2))\n')
    terminal.wait_for_text("left=42")
    terminal.type("exit 9\n")
    assert terminal.wait_for_exit() == 9


# How programs run and end


def test_the_environment_directory_and_size_are_those_given(spawn: Spawn) -> None:
    odd = spawn.home.root / "odd #{pane_id} 'dir'; $x"
    odd.mkdir()
    env = {"PATH": spawn.home.env["PATH"], "ODD": "a 'b' \"c\"; $d #{e}\n~ é", "EMPTY": ""}
    code = (
        "import json, os; json.dump([dict(os.environ), os.getcwd(), list(os.get_terminal_size())], open('../got', 'w'))"
    )
    terminal = spawn(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}", env=env, cwd=odd, width=101, height=33)
    assert terminal.wait_for_exit() == 0
    seen, cwd, size = json.loads((spawn.home.root / "got").read_text())
    assert {key: seen[key] for key in seen.keys() - {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}} == env
    assert cwd == str(odd)
    assert size == [101, 33]


def test_each_terminal_has_its_own_size_and_can_get_another(spawn: Spawn) -> None:
    wide = spawn("trap 'stty size' WINCH; stty size; while :; do sleep 0.01; done", "wide", width=120, height=10)
    narrow = spawn("stty size; read x", "narrow", width=40, height=30)
    wide.wait_for_text("10 120")
    narrow.wait_for_text("30 40")
    wide.resize(60, 15).wait_for_text("15 60")
    assert (narrow.width, wide.width, wide.height) == (40, 60, 15)
    assert (cast.RESIZE, "60x15") in [event[1:] for event in spawn.recorded("wide").events]


@pytest.mark.parametrize(
    ("command", "code", "screen"),
    [
        ("true", 0, ""),
        ("exit 42", 42, ""),
        ("echo last words; exit 1", 1, "last words"),
        ("printf 'no newline'", 0, "no newline"),
        ("echo killed; kill -9 $$", 137, "killed"),
        ("echo group; kill 0", 143, "group"),
        ("no-such-command-here", 127, "sh: 1: no-such-command-here: not found"),
    ],
)
def test_the_end_of_a_program_is_seen_with_all_that_it_said(spawn: Spawn, command: str, code: int, screen: str) -> None:
    terminals = [spawn(command, f"t{number}") for number in range(5)]
    assert [terminal.wait_for_exit() for terminal in terminals] == [code] * 5
    if code == 127:
        assert all("no-such-command-here" in terminal.screen for terminal in terminals)
    else:
        assert [terminal.screen for terminal in terminals] == [screen] * 5
        recorded = ["".join(data for _, _, data in spawn.recorded(f"t{number}").events) for number in range(5)]
        assert [text.strip() for text in recorded] == [screen] * 5


def test_a_program_that_kills_everything_around_it_has_ended_too(spawn: Spawn) -> None:
    assert spawn("echo x; read y; kill -9 0").wait_for_text("x").press("Enter").wait_for_exit() == 137


def test_a_directory_that_is_not_there_is_named_on_the_screen(spawn: Spawn) -> None:
    terminal = spawn("echo never", cwd=spawn.home.root / "nowhere")
    assert terminal.wait_for_exit() != 0
    assert "nowhere" in terminal.screen
    assert "never" not in terminal.screen


def test_a_burst_of_output_is_recorded_whole(spawn: Spawn) -> None:
    terminal = spawn('i=0; while [ $i -lt 10000 ]; do echo "line $i ü中"; i=$((i + 1)); done; echo over')
    terminal.wait_for_text("over", timeout=60).wait_for_exit()
    text = "".join(data for _, code, data in spawn.recorded().events if code == cast.OUTPUT)
    assert text == "".join(f"line {number} ü中\r\n" for number in range(10000)) + "over\r\n"


def test_the_exit_code_is_understood_wherever_tmux_cuts_it(spawn: Spawn) -> None:
    sequence = "\x1b[1mbold\x1b]7777;{token};3\a more"
    for cut in range(len(sequence.format(token="0" * 16))):
        terminal = spawn("read x", f"t{cut}")
        whole = sequence.format(token=terminal.token)
        with terminal._control.changed:
            terminal.printed(whole[:cut])
            terminal.printed(whole[cut:])
        assert terminal.exit_code == 3
        terminal.close()
        assert "".join(data for _, _, data in cast.read(spawn.casts / f"t{cut}.cast").events) == "\x1b[1mbold more"


# When waiting is in vain


def test_a_wait_in_vain_shows_what_was_waited_for_and_the_screen(spawn: Spawn) -> None:
    terminal = spawn("echo something else; read x", "greeter").wait_for_text("something")
    with pytest.raises(AssertionError) as failure:
        terminal.wait_for_text("Hello", timeout=0.1)
    message = str(failure.value)
    assert message.startswith(
        "greeter: waited 0.1 s in vain for 'Hello'\n$ echo something else; read x  (still running)\n"
    )
    assert "\n│something else\n" in message
    with pytest.raises(AssertionError, match="in vain for 'something' to go away"):
        terminal.wait_for_no_text("something", timeout=0.1)
    with pytest.raises(AssertionError, match="in vain for the end"):
        terminal.wait_for_exit(timeout=0.1)


def test_a_program_that_has_ended_is_not_waited_for(spawn: Spawn) -> None:
    terminal = spawn("echo bye; exit 4")
    with pytest.raises(AssertionError, match=r"(?s)'Hello': the program has ended.*exit code 4.*│bye"):
        terminal.wait_for_text("Hello", timeout=1000)
    with pytest.raises(AssertionError, match="cannot type: the program has ended"):
        terminal.type("x")
    with pytest.raises(AssertionError, match="cannot press a key: the program has ended"):
        terminal.press("Enter")


def test_the_death_of_the_server_is_told_to_those_who_wait(spawn: Spawn) -> None:
    terminal = spawn("echo here; read x").wait_for_text("here")
    killer = threading.Timer(0.1, spawn.home.run, ("tmux", "-S", str(spawn.home.root / "terminals"), "kill-server"))
    killer.start()
    with pytest.raises(RuntimeError, match="the tmux server has ended"):
        terminal.wait_for_text("never", timeout=1000)
    killer.join()
    with pytest.raises(RuntimeError, match="the tmux server has ended"):
        terminal.type("x")


def test_without_tmux_it_is_said(home: Home) -> None:
    terminals = Terminals(home.root, None)
    with pytest.raises(RuntimeError, match="no tmux on the PATH"):
        terminals.spawn("true", "t", {"PATH": str(home.path)}, home.path, 80, 24)
    terminals.close()


def test_what_is_done_is_told_also_when_it_fails(spawn: Spawn) -> None:
    told = []
    terminal = spawn("read x; echo got $x; read x")
    terminal.tell = lambda kind, text, began, duration: told.append((kind, text))
    terminal.type("a").press("Enter", "C-l").wait_for_text("got a")
    with pytest.raises(AssertionError):
        terminal.wait_for_text("b", timeout=0)
    assert told == [("type", "a"), ("press", "Enter C-l"), ("wait", "for 'got a'"), ("wait", "for 'b'")]


# Closing


def test_closing_hangs_up_what_runs(spawn: Spawn, home: Home) -> None:
    one, other = (spawn(f"echo $$ >{name}; echo ready; exec sleep 1000", name) for name in "ab")
    one.wait_for_text("ready")
    other.wait_for_text("ready")
    one.close()
    wait_until(lambda: not is_alive(int((home.path / "a").read_text())))
    assert is_alive(int((home.path / "b").read_text()))
    with pytest.raises(RuntimeError, match="the terminal a is closed"):
        _ = one.screen
    spawn.terminals.close()
    spawn.terminals.close()
    wait_until(lambda: not is_alive(int((home.path / "b").read_text())))
    assert not (home.root / "terminals").exists()


def test_nothing_is_left_when_the_tests_are_killed(home: Home) -> None:
    code = f"""
import os, signal
from pathlib import Path
from mngr.e2e.terminal import Terminals
terminals = Terminals(Path({str(home.root)!r}), None)
terminal = terminals.spawn("echo ready; exec sleep 1000", "t", dict(os.environ), Path("/"), 80, 24)
terminal.wait_for_text("ready")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], env=home.env, capture_output=True, timeout=30)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until(lambda: not home.processes())


# The recording


def test_the_recording_plays_in_asciinema(spawn: Spawn, home: Home) -> None:
    assert (BIN / "asciinema").exists(), "asciinema is not installed here: make venv"
    spawn("echo 'first ü中'; read x; echo second").wait_for_text("first").press("Enter").wait_for_exit()
    spawn.terminals.close()
    path = spawn.casts / "t.cast"
    cast.add_markers(path, [(0, "1 the first step"), (9e9, "2 the last one")])
    player = Terminals(home.root, None)
    try:
        for command in ("cat", "play -s 100 -i 0.1"):
            shown = player.spawn(f"asciinema {command} {path}", "player", home.env, home.path, 80, 24)
            assert shown.wait_for_exit(30) == 0
            assert shown.screen.split("\n")[0] == "first ü中"
            assert "second" in shown.screen
    finally:
        player.close()


def test_terminals_of_the_same_name_are_recorded_apart(spawn: Spawn) -> None:
    terminals = [spawn(f"echo {number}") for number in range(3)]
    for terminal in terminals:
        terminal.wait_for_exit()
    assert [path.name for terminal in terminals if (path := terminal.cast)] == ["t.cast", "t-2.cast", "t-3.cast"]
    assert [event[1:] for event in spawn.recorded("t-3").events] == [("o", "2\r\n"), ("o", "")]


def test_nothing_is_recorded_unless_wanted(home: Home) -> None:
    terminals = Terminals(home.root, None)
    terminal = terminals.spawn("echo x", "t", home.env, home.path, 80, 24)
    terminal.wait_for_exit()
    assert (terminal.cast, terminal.screen) == (None, "x")
    terminals.close()
    assert not list(home.root.rglob("*.cast"))
