"""turns.sh: a program that does one turn and ends, as an agent that stays. The program here is a few lines of sh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.agents import turns
from tests.home import wait_until

# It keeps what it was told in `told`, waits for the file `go` if there is a file `wait`, and fails as it is asked to.
TURN = """
take_turn() {
  text=$(cat)
  printf '%s|%s\\n' "$*" "$text" >>"$d/told"
  while [ -e "$d/wait" ] && [ ! -e "$d/go" ]; do sleep 0.02; done
  case $text in fail*) echo "no good"; return 3 ;; esac
}
failure() { kind=api_error told=$(cat "$1"); case $told in 'no good') ;; *) return 1 ;; esac; }
"""


class Runner:
    """The directory of one agent, with turns.sh as its program."""

    def __init__(self, root: Path) -> None:
        self.place = root / "agents" / "a1"
        self.place.mkdir(parents=True)
        for name, text in turns.laid(TURN).items():
            (self.place / name).write_text(text)
        os.mkfifo(self.place / "in")
        self.start()

    def start(self) -> None:
        (self.place / "state").write_text("starting 1\n")
        line = 'echo "$PPID $$" >"$1/pid"; exec sh "$1/turns" prog -x <>"$1/in"'
        self.program = subprocess.Popen(
            ["sh", "-c", line, "sh", str(self.place)], start_new_session=True, stdout=subprocess.DEVNULL
        )
        wait_until(lambda: self.state not in ("", "starting"))

    def end(self) -> None:
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait(10)

    def send(self, text: str) -> None:
        with (self.place / "in").open("w") as pipe:
            pipe.write(turns.line(text) + "\n")

    @property
    def state(self) -> str:
        word, _, *reason = (self.place / "state").read_text().split() or ["", ""]
        return " ".join([word, *reason])

    def told(self) -> list[str]:
        path = self.place / "told"
        return path.read_text().splitlines() if path.exists() else []

    def has(self, command: str) -> bool:
        """Whether it runs this."""
        words = ["pgrep", "-g", str(self.program.pid), "-x", "-f", command]
        return subprocess.run(words, capture_output=True).returncode == 0

    def receipts(self, text: str) -> list[str | None]:
        lines = (self.place / "received").read_text().rpartition("\n")[0].splitlines()  # whole ones
        return [found for line in lines if line and (found := turns.receipt(json.loads(line), text))]


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    runner = Runner(tmp_path)
    yield runner
    runner.end()


def test_a_message_is_a_turn(runner: Runner) -> None:
    runner.send("one 'quoted' \\n $x")
    wait_until(lambda: runner.state == "waiting turn over")
    assert runner.told() == ["prog -x|one 'quoted' \\n $x"]
    assert runner.receipts("one 'quoted' \\n $x") == ["delivered"]


def test_what_comes_during_a_turn_waits_for_its_end_and_is_told_so(runner: Runner) -> None:
    (runner.place / "wait").touch()
    long = "x" * 200_000  # more than a pipe holds
    for text in ("first", long, "last"):
        runner.send(text)
    wait_until(lambda: runner.receipts("last"))
    assert (runner.receipts("first"), runner.receipts("last")) == (["delivered"], ["queued"])
    assert runner.state == "running"
    (runner.place / "go").touch()
    wait_until(lambda: len(runner.told()) == 3 and runner.state == "waiting turn over")
    assert [line.partition("|")[2] for line in runner.told()] == ["first", long, "last"]


def test_what_waits_outlives_the_process_and_has_its_turn_once(runner: Runner) -> None:
    (runner.place / "wait").touch()
    runner.send("first")
    runner.send("second")
    wait_until(lambda: runner.receipts("second") and runner.told())
    runner.end()
    (runner.place / "wait").unlink()
    runner.start()
    wait_until(lambda: runner.state == "waiting turn over")
    assert runner.told() == ["prog -x|first", "prog -x|second"]
    runner.send("third")
    wait_until(lambda: len(runner.told()) == 3)
    assert runner.receipts("third") == ["delivered"]


def test_a_stop_that_ends_a_turn_before_it_ends_us_takes_nothing_of_what_waits(runner: Runner) -> None:
    (runner.place / "wait").touch()
    runner.send("first")
    runner.send("second")
    wait_until(lambda: runner.receipts("second") and runner.told())
    (runner.place / "state").write_text("stopped 1\n")
    (runner.place / "go").touch()
    wait_until(lambda: runner.has("sleep 60") or len(runner.told()) == 2)
    assert runner.told() == ["prog -x|first"]
    assert (runner.place / "taken").read_text() == "1\n"
    runner.end()
    runner.start()
    wait_until(lambda: len(runner.told()) == 2)


def test_why_a_turn_failed(runner: Runner) -> None:
    runner.send("fail")
    wait_until(lambda: runner.state == "waiting api error: no good")
    (runner.place / "turn").write_text("take_turn() { return 3; }\nfailure() { return 1; }\n")
    runner.end()
    runner.start()
    runner.send("again")
    wait_until(lambda: runner.state == "waiting turn failed: exit 3")


def test_the_hooks_of_the_program_count_but_the_message_is_told_once(runner: Runner) -> None:
    """Of the program that does the turn, not of one that runs inside of it."""
    told = '{"hook_event_name":"UserPromptSubmit","session_id":"%s","transcript_path":"/log","prompt":"one"}'
    program = f"{sys.executable} -c 'import subprocess, sys; subprocess.call(sys.argv[1:])'"
    hook = 'sh "$d/hook" UserPromptSubmit'
    lines = [
        f"printf '{told % 'own'}' | {program} {hook}",
        f"printf '{told % 'nested'}' | {program} {program} {hook}",
    ]
    (runner.place / "turn").write_text("take_turn() {\n" + "\n".join(lines) + "\n}\nfailure() { return 1; }\n")
    runner.end()
    runner.start()
    runner.send("one")
    wait_until(lambda: runner.state == "waiting turn over")
    assert (runner.place / "conversation").read_text() == "own\n/log\n"
    assert runner.receipts("one") == ["delivered"]
