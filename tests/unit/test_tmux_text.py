"""What we say to tmux means the same to a real one, whatever the paths of the home and of the work dir are called."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mngr import process
from mngr.model import Agent
from mngr.tmux import HEIGHT, NO_SERVER, PANE_DIED, PANE_FIELDS, WIDTH, server_config, session_commands, setup_lines
from tests.home import wait_until

WEIRD = [
    "plain",
    "two words",
    "it's",
    'a"quote',
    "back\\slash\\",
    "$HOME`id`$(id)",
    "C#Sharp",  # #S is the session's name to tmux
    "a#{pid}b",
    "a#(touch ran)b",
    "##",
    "semi;colon",
    "%if 100%",
    "{brace} }",
    "~",
    "=-x",
    "[a]*?",
    "ünïcödé 漢",
    "tab\tand\nnewline",
    "caf\udce9 in latin-1",
]
# Like launch, it keeps its pid and its state; the test kills it, so that only the hook can tell its end.
LAUNCH = """
d=${0%/*}
[ "$1" != agent ] || printf '%s\\n' "$$ 0" >"$d/pid"
echo 'running 1' >"$d/state"
pwd >"$d/pwd"
printf '%s\\n' "$1" >>"$d/ran"
exec sleep 1000
"""


class Server:
    """A tmux server of our own, started as up.sh does it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def tmux(self, *words: str, input: str = "") -> str:
        """Through process.run: words need not be UTF-8. What tmux complains of is an error."""
        line = 'cd "$0" && exec env -i PATH="$PATH" LANG=C.UTF-8 tmux -u -S "$0/s" "$@"'
        done = process.run(["sh", "-c", line, str(self.root), *words], input=os.fsencode(input), deadline=20)
        assert (done.code, done.err) == (0, ""), done
        return done.out


@pytest.fixture
def server() -> Iterator[Server]:
    with TemporaryDirectory(prefix="mngr-t-", dir="/tmp") as root:
        server = Server(Path(root))
        yield server
        subprocess.run(["tmux", "-S", f"{root}/s", "kill-server"], capture_output=True)


def agent(work_dir: Path, windows: dict[str, str]) -> Agent:
    return Agent(
        id="0a1",  # tmux takes a text that begins with 0 for a no, if it is asked the wrong way
        name="foo",
        type="command",
        host="local",
        command=["x"],
        work_dir=str(work_dir),
        mode="none",
        created=1.0,
        windows=windows,
    )


def new_home(server: Server, name: str) -> Path:
    home = server.root / name
    (home / "agents" / "0a1").mkdir(parents=True)
    (home / "agents" / "0a1" / "launch").write_text(LAUNCH)
    (home / "pane-died").write_text(PANE_DIED)
    (home / "conf").write_bytes(os.fsencode(server_config(str(home))))
    (home / "tmux.user.conf").write_text("set -g @users-own yes\n")
    return home


@pytest.mark.parametrize("name", WEIRD, ids=ascii)
def test_a_session_comes_up_in_its_work_dir_and_its_end_is_told(name: str, server: Server) -> None:
    home = new_home(server, name)
    place, work = home / "agents" / "0a1", home / "work" / name
    work.mkdir(parents=True)
    commands = session_commands(str(home), agent(work, {"logs": "x"}))
    told = server.tmux("-f", f"{home}/conf", "start-server", ";", "source-file", "-", input=commands)
    assert told == "up 0a1\n"
    wait_until(lambda: sorted(lines(place / "ran")) == ["agent", "window logs"], what="both windows")
    os.kill(int(server.tmux("display", "-p", "-t", "=0a1:agent", "#{pane_pid}")), 9)
    tmux_pid = int(server.tmux("display", "-p", "#{pid}"))

    def told_of_its_end() -> list[str]:
        os.kill(tmux_pid, signal.SIGCHLD)  # tmux 3.3a misses the end of a process that closes its terminal first
        return lines(home / "feed")

    wait_until(told_of_its_end, what="the hook")
    assert lines(place / "exit")[0].endswith(" - 9")
    assert (place / "pwd").read_bytes() == os.fsencode(work) + b"\n"
    assert '"event":"exited"' in lines(home / "feed")[0]
    assert server.tmux("show", "-gv", "@users-own") == "yes\n"
    assert server.tmux("list-windows", "-t", "=0a1", "-F", "#{window_name}") == "agent\nlogs\n"
    assert list(server.root.glob("**/ran*")) == [place / "ran"], "no part of a path was run"


def test_the_panes_of_agents_are_told_from_others(server: Server) -> None:
    home = new_home(server, "home")
    (home / "agents" / "0a1" / "launch").write_text("exec sleep 1000\n")
    commands = session_commands(str(home), agent(home, {"logs": "x"}))
    server.tmux("-f", f"{home}/conf", "start-server", ";", "source-file", "-", input=commands)
    server.tmux("new-window", "-d", "-t", "=0a1:", "sleep 1000", ";", "new-session", "-d", "-s", "mine", "sleep 1000")
    (line,) = server.tmux("list-panes", "-a", "-f", "#{@mngr}", "-F", PANE_FIELDS).splitlines()
    pid = server.tmux("display", "-p", "-t", "=0a1:agent", "#{pane_pid}").strip()
    assert line == f"pane 0a1|0|||{pid}"
    assert server.tmux("display", "-p", "-t", "=0a1:agent", "#{window_width}x#{window_height}") == f"{WIDTH}x{HEIGHT}\n"


def test_a_session_that_somebody_renames_is_called_by_its_id_again(server: Server) -> None:
    home = new_home(server, "home")
    (home / "agents" / "0a1" / "launch").write_text("exec sleep 1000\n")
    commands = session_commands(str(home), agent(home, {}))
    server.tmux("-f", f"{home}/conf", "start-server", ";", "source-file", "-", input=commands)
    server.tmux("rename-session", "-t", "=0a1", "mine")
    wait_until(lambda: server.tmux("list-sessions", "-F", "#{session_name}") == "0a1\n", what="the hook")


def test_the_server_lives_on_without_sessions_and_carries_nothing_of_who_started_it(server: Server) -> None:
    home = new_home(server, "home")
    server.tmux("-f", f"{home}/conf", "start-server")
    assert server.tmux("show", "-gv", "exit-empty") == "off\n"
    assert server.tmux("show", "-gv", "update-environment").strip() == ""
    names = {line.partition("=")[0] for line in server.tmux("show-environment", "-g").splitlines()}
    assert names <= {"PATH", "LANG", "PWD"}


def test_an_end_that_its_launcher_or_a_verb_has_told_is_not_told_again(tmp_path: Path) -> None:
    place = tmp_path / "agents" / "0a1"
    place.mkdir(parents=True)

    def died(pid: str = "77") -> None:
        done = process.run(["sh", "-c", PANE_DIED, "pane-died", str(tmp_path), "0a1", pid, "", "9"])
        assert done.code == 0

    (place / "pid").write_text("77 78\n")
    (place / "state").write_text("running 1\n")
    died(pid="70")  # the pane of an earlier start
    assert not (place / "exit").exists()
    (place / "state").write_text("stopped 1\n")
    died()
    assert not (place / "exit").exists()
    (place / "state").write_text("running 1\n")
    died()
    assert (place / "exit").read_text().split()[1:] == ["-", "9"]
    (place / "exit").write_text("1 0 -\n")
    died()
    assert (place / "exit").read_text() == "1 0 -\n"
    assert len((tmp_path / "feed").read_text().splitlines()) == 1


def test_a_new_configuration_gets_a_file_of_its_own() -> None:
    lines = [setup_lines(home) for home in ("/home/a", "/home/b", "/home/a", "/home/\udcff")]
    marks = [line.split()[0] for line in lines]
    assert marks[0] == marks[2]
    assert len(set(marks)) == 3


def test_without_a_server_tmux_says_one_of_the_words_that_we_know(server: Server) -> None:
    socket = server.root / "s"
    absent = subprocess.run(["tmux", "-S", socket, "ls"], capture_output=True, text=True).stderr
    server.tmux("new-session", "-d", "sleep 1000")
    server.tmux("kill-server")
    ended = subprocess.run(["tmux", "-S", socket, "ls"], capture_output=True, text=True).stderr
    for said in (absent, ended):
        assert any(words in said for words in NO_SERVER), said


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
