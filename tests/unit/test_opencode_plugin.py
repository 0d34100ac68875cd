"""The plugin for OpenCode, told events as OpenCode tells them. Here it is run by node, which loads it as well."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mngr.agents import opencode as module
from tests.home import BIN

PLUGIN = Path(module.__file__).with_name("opencode_plugin.js")
DRIVER = """
import { readFileSync, writeFileSync } from "node:fs"
const [place, pid, events] = JSON.parse(readFileSync(0))
writeFileSync(`${place}/pid`, `1 ${pid || process.pid}`)
const { event } = await (await import(`${place}/opencode/plugin.mjs`)).Agent()
const states = [readFileSync(`${place}/state`, "utf8")]
for (const each of events) {
  event({ event: each })
  states.push(readFileSync(`${place}/state`, "utf8"))
}
console.log(JSON.stringify([states, process.env]))
"""
ID = "0123456789ab"


class Place:
    """An agent's directory, with the plugin in it."""

    def __init__(self, home: Path) -> None:
        self.home, self.path = home, home / "agents" / ID
        (self.path / "opencode").mkdir(parents=True)
        (self.path / "opencode" / "plugin.mjs").write_text(PLUGIN.read_text())
        (self.path / "state").write_text("starting 1\n")

    def hear(self, *events: dict[str, Any], pid: int = 0, **env: str) -> list[str]:
        """The states after its load, and after each event; their times left out."""
        done = subprocess.run(
            ["node", "--input-type=module", "-e", DRIVER],
            input=json.dumps([str(self.path), pid, events]),
            env={"PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]), **env},
            capture_output=True,
            text=True,
            check=True,
        )
        states, self.env = json.loads(done.stdout)
        return [" ".join(state.split(" ")[:1] + state.split(" ")[2:]).strip() for state in states]

    def log(self, session: str = "ses_1") -> list[dict[str, Any]]:
        path = self.path / "opencode" / "log" / f"{session}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def told(type: str, **properties: object) -> dict[str, Any]:
    return {"type": type, "properties": {"sessionID": "ses_1", **properties}}


def session(id: str = "ses_1", **more: str) -> dict[str, Any]:
    info = {"id": id, "title": "t", "time": {"created": 1, "updated": 2}, **more}
    return told("session.created", sessionID=id, info=info)


def message(id: str, role: str, **more: object) -> dict[str, Any]:
    info = {"id": id, "sessionID": "ses_1", "role": role, "time": {"created": 1}, "modelID": "m", **more}
    return told("message.updated", info=info)


def text(id: str, message: str, said: str, **more: object) -> dict[str, Any]:
    part = {"id": id, "messageID": message, "sessionID": "ses_1", "type": "text", "text": said, **more}
    return told("message.part.updated", part=part, time=5)


def status(type: str, id: str = "ses_1", **more: object) -> dict[str, Any]:
    return told("session.status", sessionID=id, status={"type": type, **more})


def error(name: str, id: str = "ses_1", **data: object) -> dict[str, Any]:
    return told("session.error", sessionID=id, error={"name": name, "data": data})


BUSY, IDLE = status("busy"), status("idle")
RETRY = status("retry", attempt=2, message='over"loaded')
SAID = (message("msg_1", "user"), text("prt_1", "msg_1", "hello"))


def test_a_turn_is_told_and_logged_and_the_users_words_only_when_it_has_begun(place: Place) -> None:
    assert place.hear(session(), *SAID) == ["waiting ready"] * 4
    assert [record["type"] for record in place.log()] == ["session"]
    assert not (place.path / "conversation").exists()
    answer = text("prt_2", "msg_2", "Hi", time={"start": 1, "end": 2})
    states = place.hear(
        *SAID,
        BUSY,
        message("msg_2", "assistant"),
        text("prt_2", "msg_2", ""),
        answer,
        answer,
        message("msg_2", "assistant", time={"created": 1, "completed": 2}),
        IDLE,
        IDLE,
    )
    assert states == ["waiting ready"] * 3 + ["running"] * 6 + ["waiting turn over"] * 2
    logged = place.log()[1:]
    assert [(record["type"], record["id"], record["role"]) for record in logged] == [
        ("message", "msg_1", "user"),
        ("part", "prt_1", "user"),
        ("part", "prt_2", "assistant"),
        ("message", "msg_2", "assistant"),
    ]
    assert [list(record)[-1] for record in logged] == ["data"] * 4
    log = place.path / "opencode" / "log" / "ses_1.jsonl"
    assert (place.path / "conversation").read_text() == f"ses_1\n{log}\n"
    assert (place.path / "conversations").read_text() == f"{log}\n"
    feed = (place.home / "feed").read_text()
    assert feed == (place.path / "events.jsonl").read_text()
    events = [json.loads(line) for line in feed.splitlines()]
    assert [(event["agent"], event["event"], event.get("reason")) for event in events] == [
        (ID, "waiting", "ready"),
        (ID, "running", None),
        (ID, "waiting", "turn over"),
    ]


def test_what_comes_during_a_turn_is_queued(place: Place) -> None:
    place.hear(session(), *SAID, BUSY, message("msg_3", "user"), text("prt_3", "msg_3", "next"))
    parts = [record for record in place.log() if record["type"] == "part"]
    assert [record.get("queued") for record in parts] == [None, True]


@pytest.mark.parametrize(
    ("events", "ending"),
    [
        ((RETRY, IDLE), "interrupted"),
        ((RETRY, BUSY, IDLE), "turn over"),
        ((error("MessageAbortedError", message="Aborted"), IDLE, IDLE), "interrupted"),
        ((RETRY, error("APIError", message='no "such" model', statusCode=400), IDLE), "api error: no  such  model"),
        ((error("APIError", message="slow", statusCode=429), IDLE), "rate limit: slow"),
        ((error("UnknownError"), IDLE), "api error: UnknownError"),
        ((error("UnknownError"), IDLE, BUSY, IDLE), "turn over"),
        ((session("ses_2", parentID="ses_1"), error("UnknownError", id="ses_2"), IDLE), "turn over"),
    ],
)
def test_how_a_turn_ends(place: Place, events: tuple[dict[str, Any], ...], ending: str) -> None:
    assert place.hear(session(), BUSY, *events)[-1] == f"waiting {ending}"


def test_what_is_asked_of_the_user_is_waited_for_whatever_else_goes_on(place: Place) -> None:
    states = place.hear(
        BUSY,
        told("permission.asked", id="per_1", permission="bash"),
        BUSY,
        told("question.asked", id="que_1"),
        told("permission.replied", requestID="per_1"),
        told("question.rejected", requestID="que_1"),
        told("question.asked", id="que_2"),
        IDLE,
    )
    asking = "waiting permission: bash"
    assert states[1:5] == ["running", asking, asking, asking]
    assert states[5:] == ["waiting question", "running", "waiting question", "waiting turn over"]


def test_a_server_that_is_asked_again(place: Place) -> None:
    assert place.hear(BUSY, RETRY)[-1] == "running retrying: attempt 2, over loaded"


def test_a_subagent_keeps_it_at_work_and_its_session_is_not_the_conversation(place: Place) -> None:
    child = session("ses_2", parentID="ses_1")
    states = place.hear(session(), BUSY, child, status("busy", "ses_2"), IDLE, status("idle", "ses_2"))
    assert states[-2:] == ["running", "waiting turn over"]
    assert (place.path / "conversation").read_text().startswith("ses_1\n")
    assert place.log("ses_2")


def test_one_that_was_stopped_stays_so(place: Place) -> None:
    (place.path / "state").write_text("stopped 1\n")
    assert place.hear(BUSY, IDLE) == ["stopped"] * 3


def test_another_opencode_that_the_agent_runs_is_not_the_agent(place: Place) -> None:
    (place.path / "state").write_text("running 1\n")
    assert place.hear(session(), *SAID, BUSY, IDLE, pid=1) == ["running"] * 6
    assert not (place.path / "conversation").exists()
    assert len(place.log()) == 3  # what it spends is the agent's all the same


def test_the_turn_of_an_agent_without_a_terminal_ends_when_its_runner_says_so(place: Place) -> None:
    (place.path / "state").write_text("running 1\n")
    states = place.hear(session(), *SAID, BUSY, RETRY, BUSY, IDLE, pid=1, MNGR_TURN="1")
    assert states[-3:] == ["running retrying: attempt 2, over loaded", "running", "running"]
    assert (place.path / "conversation").read_text().startswith("ses_1\n")
    assert "MNGR_TURN" not in place.env


def test_what_is_taken_back_and_a_conversation_that_is_deleted(place: Place) -> None:
    removed = told("message.removed", messageID="msg_1"), told("message.part.removed", partID="prt_1")
    place.hear(session(), *SAID, BUSY, IDLE, *removed, told("session.deleted", info={"id": "ses_1"}))
    assert [(record["type"], record["id"]) for record in place.log()[-2:]] == [
        ("removed", "msg_1"),
        ("removed", "prt_1"),
    ]
    assert not (place.path / "conversation").exists()


def test_what_the_launcher_changed_is_put_back_for_what_the_agent_runs(place: Place) -> None:
    place.hear(
        XDG_STATE_HOME="/ours",
        MNGR_THEIR_XDG_STATE_HOME="/theirs",
        npm_config_fetch_retries="0",
        MNGR_THEIR_npm_config_fetch_retries="",
    )
    assert place.env["XDG_STATE_HOME"] == "/theirs"
    assert not [name for name in place.env if name.startswith(("npm_", "MNGR_"))]
