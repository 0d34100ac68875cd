"""The launch file of an agent, run by a real shell as tmux runs it: the program gets its words, its environment and its
work dir as they were given, and how it ends is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.agents.command import COMMAND_TYPE
from mngr.fleet.launch import exports, launch_file, own_environment
from mngr.hosts.local import LocalHost
from mngr.model import Agent
from mngr.process import run
from tests.home import wait_until

TOLD = ["sh", "-c", 'printf "%s\\0" "$@" >told', "sh"]  # writes its arguments to a file


class Launch:
    """The directory of one agent, without tmux."""

    def __init__(self, root: Path) -> None:
        self.home = root / "it's a home"
        self.place = self.home / "agents" / "a1"
        self.work = root / "work $dir"
        self.place.mkdir(parents=True)
        self.work.mkdir()
        self.agent = Agent(
            id="a1",
            name="foo",
            type="command",
            host="local",
            command=["true"],
            work_dir=str(self.work),
            mode="none",
            created=1.0,
            branch="mngr/foo",
        )

    def write(self, *command: str, given: dict[str, str] | None = None, windows: dict[str, str] | None = None) -> None:
        agent = self.agent.replace(command=list(command), windows=windows or {})
        (self.place / "launch").write_text(launch_file(agent, COMMAND_TYPE))
        (self.place / "given").write_text(exports({"PATH": os.environ["PATH"], **(given or {})}))
        (self.place / "env").write_text(own_environment(LocalHost(str(self.home)), self.agent, {}))
        (self.place / "state").write_text("starting 1\n")

    def popen(self, role: str = "agent") -> subprocess.Popen[bytes]:
        """In a session of its own, as in a pane."""
        argv = ["env", "-i", "TERM=screen", "sh", str(self.place / "launch"), role]
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)

    def run(self, role: str = "agent") -> tuple[int, str]:
        with self.popen(role) as process:
            out, _ = process.communicate(timeout=10)
            return process.returncode, out.decode()

    def read(self, name: str) -> str:
        return (self.place / name).read_text() if (self.place / name).exists() else ""

    def events(self) -> list[str]:
        lines = [json.loads(line) for line in self.read("events.jsonl").splitlines()]
        assert all(line["agent"] == "a1" for line in lines)
        return [line["event"] + (f" {line['status']}" if "status" in line else "") for line in lines]


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(tmp_path)


def test_the_program_gets_its_words_as_they_were_given(launch: Launch) -> None:
    words = ["", " ", "two words", "it's", '"', "$HOME", "`id`", "a\nb", "*", "\\", "é漢", "-n", "--", "#", ";"]
    launch.write(*TOLD, *words)
    assert launch.run() == (0, "")
    assert (launch.work / "told").read_text().split("\0")[:-1] == words


def test_the_program_runs_in_its_work_dir_with_the_variables_of_its_agent_and_nothing_else(launch: Launch) -> None:
    launch.write("env", given={"GREETING": "it's\nfine", "MNGR_HOME": "not this one"})
    code, out = launch.run()
    assert code == 0
    told = dict(line.split("=", 1) for line in out.replace("it's\nfine", "it's/fine").splitlines())
    assert told.pop("PATH") == os.environ["PATH"]
    assert told.pop("PWD") == str(launch.work)
    assert {key: value for key, value in told.items() if key not in ("_", "SHLVL", "OLDPWD")} == {
        "TERM": "screen",
        "GREETING": "it's/fine",
        "MNGR_HOME": str(launch.home),
        "MNGR_AGENT_ID": "a1",
        "MNGR_AGENT_NAME": "foo",
        "MNGR_AGENT_DIR": str(launch.place),
        "MNGR_WORK_DIR": str(launch.work),
        "MNGR_BRANCH": "mngr/foo",
        "MNGR_BASE": "",
        "MNGR_RESULT": f"{launch.place}/result.json",
        "MNGR_ARTIFACTS": f"{launch.place}/artifacts",
    }


@pytest.mark.parametrize(
    ("line", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("nosuchprogram", 127)]
)
def test_how_the_program_ends_is_kept_and_told(launch: Launch, line: str, status: int) -> None:
    launch.write("sh", "-c", f"{line} 2>/dev/null")
    assert launch.run()[0] == status
    assert launch.read("exit").split()[1:] == [str(status), "-"]
    assert launch.read("state").startswith("running ")
    assert launch.events() == ["running", f"exited {status}"]
    assert (launch.home / "feed").read_text() == launch.read("events.jsonl")


def test_while_it_runs_the_pids_of_launcher_and_program_are_told(launch: Launch) -> None:
    launch.write("sleep", "1000")
    with launch.popen() as process:
        launcher, program = wait_until(lambda: launch.read("pid").split())
        assert int(launcher) == process.pid
        wait_until(lambda: Path(f"/proc/{program}/cmdline").read_bytes() == b"sleep\0001000\0")
        os.kill(int(program), signal.SIGTERM)
        assert process.wait(10) == 143


def test_a_signal_to_all_ends_the_program_and_the_launcher_still_tells(launch: Launch) -> None:
    """Ctrl-C in the terminal goes to both."""
    launch.write("sh", "-c", "trap 'exit 5' INT; while :; do sleep 0.02; done")
    with launch.popen() as process:
        wait_until(lambda: launch.read("pid"))
        wait_until(lambda: any(line.startswith("sleep ") for line in children_of(process.pid)))
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(10) == 5
    assert launch.events() == ["running", "exited 5"]


def test_the_program_itself_can_be_interrupted(launch: Launch) -> None:
    """The traps of the launcher are not inherited as ignored signals."""
    launch.write("sh", "-c", 'for s in INT QUIT TERM HUP; do sh -c "kill -$s \\$\\$"; echo $?; done')
    assert launch.run() == (0, "130\n131\n143\n129\n")


def test_what_was_stopped_by_us_leaves_no_exit(launch: Launch) -> None:
    launch.write("sh", "-c", 'echo "stopped 5" >"$MNGR_AGENT_DIR/state"; exit 7')
    assert launch.run()[0] == 7
    assert launch.read("exit") == ""
    assert launch.read("state") == "stopped 5\n"
    assert launch.events() == ["running"]


def test_a_hangup_is_no_ending_of_its_own(launch: Launch) -> None:
    launch.write("sleep", "1000")
    with launch.popen() as process:
        wait_until(lambda: launch.read("pid"))
        os.killpg(process.pid, signal.SIGHUP)
        process.wait(10)
    assert launch.read("exit") == ""
    assert launch.events() == ["running"]


def test_a_work_dir_that_is_gone_runs_nothing(launch: Launch) -> None:
    launch.write("touch", "../ran")
    launch.work.rmdir()
    assert launch.run()[0] == 1
    assert not (launch.work.parent / "ran").exists()


def test_a_window_runs_its_own_line_and_keeps_nothing(launch: Launch) -> None:
    launch.write("false", windows={"logs": 'echo "$MNGR_AGENT_NAME\'s logs"; exit 4', "other": "echo other"})
    assert launch.run("window logs") == (4, "foo's logs\n")
    assert launch.run("window other") == (0, "other\n")
    assert launch.run("window missing") == (1, "")
    assert launch.read("exit") == ""
    assert launch.events() == []


def test_a_shell_beside_it_is_the_users(launch: Launch) -> None:
    launch.write("false", given={"SHELL": "/bin/echo"})
    assert launch.run("shell") == (0, "\n")
    launch.write("false")
    assert launch.run("shell") == (0, "")


values = st.dictionaries(
    st.from_regex(r"[A-Z_a-z][A-Z_a-z0-9]{2,9}", fullmatch=True).filter(lambda key: key not in ("PATH", "PWD", "IFS")),
    st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"])),
    max_size=6,
)


@settings(max_examples=30)
@given(values)
def test_any_value_of_a_variable_comes_through(given_values: dict[str, str]) -> None:
    script = f"{exports({'x_first': '1', **given_values})}\nexec env -0"
    said = run(["env", "-i", f"PATH={os.environ['PATH']}", "sh", "-c", script]).out.split("\0")
    told = dict(item.split("=", 1) for item in said if item)
    assert {key: told.get(key) for key in given_values} == given_values


def children_of(pid: int) -> list[str]:
    """The command lines of everything in the session of that process."""
    found = run(["ps", "-A", "-o", "sess=", "-o", "args="]).out.splitlines()
    return [line.split(None, 1)[1] for line in found if line.split(None, 1)[0] == str(pid)]
