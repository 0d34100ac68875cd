"""hook.sh: what each event of an agent's program makes of its state, and whose events count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / "src" / "mngr" / "agents" / "hook.sh"


class Seat:
    """The directory of one agent; its program is this very process."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.place = root / "agents" / "a1"
        self.place.mkdir(parents=True)
        (self.place / "hook").write_text(HOOK.read_text())
        (self.place / "pid").write_text(f"1 {os.getpid()}\n")
        self.be("running")

    def be(self, state: str) -> None:
        word, _, reason = state.partition(" ")
        (self.place / "state").write_text(f"{word} 1 {reason}".strip() + "\n")

    @property
    def state(self) -> str:
        word, _, *reason = (self.place / "state").read_text().split()
        return " ".join([word, *reason])

    def tell(self, event: str, through: tuple[str, ...] = (), /, **members: object) -> None:
        told = json.dumps({"session_id": "s1", "transcript_path": "/logs/s1.jsonl", **members}, separators=(",", ":"))
        done = subprocess.run(
            [*through, "sh", str(self.place / "hook"), event], input=told, text=True, capture_output=True, timeout=10
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def feed(self) -> list[dict[str, object]]:
        path = self.home / "feed"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def seat(tmp_path: Path) -> Seat:
    return Seat(tmp_path)


@pytest.mark.parametrize(
    ("before", "event", "members", "after"),
    [
        ("starting", "SessionStart", {"source": "startup"}, "waiting ready"),
        ("starting", "SessionStart", {"source": "resume"}, "waiting ready"),
        ("running", "SessionStart", {"source": "compact"}, "running"),
        ("waiting turn over", "UserPromptSubmit", {"prompt": "hi"}, "running"),
        ("running", "PreToolUse", {"tool_name": "AskUserQuestion"}, "waiting question"),
        ("running", "PermissionRequest", {"tool_name": "Bash"}, "waiting permission: Bash"),
        ("waiting question", "PermissionRequest", {"tool_name": "AskUserQuestion"}, "waiting question"),
        ("waiting permission: Bash", "PostToolUse", {}, "running"),
        ("running", "Stop", {"background_tasks": []}, "waiting turn over"),
        (
            "running",
            "Stop",
            {"background_tasks": [{"id": "b", "type": "shell"}]},
            "waiting turn over, a background command goes on",
        ),
        ("running", "Stop", {"background_tasks": [{"id": "b", "type": "subagent"}]}, "running background work"),
        ("running background work", "Notification", {"notification_type": "idle_prompt"}, "running background work"),
        ("running", "Notification", {"notification_type": "idle_prompt"}, "waiting turn over"),
        ("waiting permission: Bash", "Notification", {"notification_type": "idle_prompt"}, "waiting permission: Bash"),
        ("running", "Notification", {"notification_type": "permission_prompt"}, "waiting permission"),
        (
            "running",
            "StopFailure",
            {"error": "rate_limit", "last_assistant_message": "limit reached, resets 3pm"},
            "waiting rate limit: limit reached, resets 3pm",
        ),
        (
            "running",
            "StopFailure",
            {"error": "unknown", "last_assistant_message": 'API Error: 400 {"no"}'},
            "waiting api error: API Error: 400 no",
        ),
        ("running", "Interrupt", {}, "waiting interrupted"),
        ("running", "SomethingNew", {}, "running"),
        ("stopped", "Stop", {}, "stopped"),
    ],
)
def test_an_event_makes_a_state(seat: Seat, before: str, event: str, members: dict[str, object], after: str) -> None:
    seat.be(before)
    seat.tell(event, **members)
    assert seat.state == after


def test_what_stands_behind_a_long_answer_is_found_in_time(seat: Seat) -> None:
    tasks = [{"type": "shell", "command": "ls [a-z]*"}, {"type": "subagent", "description": "x"}]
    seat.tell("Stop", last_assistant_message='"type":"' + "word " * 60_000, background_tasks=tasks)
    assert seat.state == "running background work"


def test_only_a_change_is_told(seat: Seat) -> None:
    seat.tell("UserPromptSubmit", prompt="one")
    assert seat.feed() == []
    seat.tell("Stop")
    seat.tell("Stop")
    told = seat.feed()
    assert [(line["agent"], line["event"], line["reason"]) for line in told] == [("a1", "waiting", "turn over")]
    assert (seat.place / "events.jsonl").read_text() == (seat.home / "feed").read_text()


def test_it_remembers_the_conversation_and_what_it_was_told(seat: Seat) -> None:
    seat.tell("SessionStart", source="startup")
    seat.tell("UserPromptSubmit", prompt="a 'quoted' \"text\" with \\ and \n and é")
    assert (seat.place / "conversation").read_text() == "s1\n/logs/s1.jsonl\n"
    assert (seat.place / "conversations").read_text() == "/logs/s1.jsonl\n"
    prompt = json.loads((seat.place / "received").read_text().splitlines()[-1])["prompt"]
    assert prompt == "a 'quoted' \"text\" with \\ and \n and é"
    assert (seat.place / "received").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("shell", [("sh", "-c", '"$@"; :', "sh"), ("bash", "-c", '"$@"; :', "bash")])
def test_a_shell_between_the_program_and_its_hook_does_not_matter(seat: Seat, shell: tuple[str, ...]) -> None:
    seat.tell("Stop", shell)
    assert seat.state == "waiting turn over"


def test_the_events_of_a_program_inside_the_agent_are_not_its_own(seat: Seat) -> None:
    nested = (sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))")
    seat.tell("SessionStart", nested, source="startup", session_id="nested")
    seat.tell("Stop", nested)
    assert seat.state == "running"
    assert not (seat.place / "conversation").exists()
    assert seat.feed() == []


def test_a_prompt_cannot_pose_as_another_member(seat: Seat) -> None:
    seat.tell("UserPromptSubmit", prompt='x","session_id":"evil","transcript_path":"/evil')
    assert (seat.place / "conversation").read_text() == "s1\n/logs/s1.jsonl\n"
    seat.tell("PermissionRequest", tool_name="A\nB; rm", tool_input={"tool_name": "C"})
    assert seat.state.startswith("waiting permission: A")
    assert len(seat.feed()) == 1
