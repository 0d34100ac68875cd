"""The type `opencode`: what it seeds and refuses, its screens, and what a session log is made into for a clone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mngr.agents import Seat, screen
from mngr.agents import opencode as module
from mngr.agents.opencode import OPENCODE
from mngr.agents.screen import Screen
from mngr.errors import UsageError
from mngr.model import UNKNOWN, Agent

DATA = Path(__file__).parents[1] / "data"
LOG = DATA / "opencode-1.18.33.jsonl"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MNGR_HOME", str(tmp_path))
    monkeypatch.setattr(screen, "_loaded", {})
    return tmp_path


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# Launching


def test_what_is_mngrs_own_business_is_refused() -> None:
    assert OPENCODE.command(["--model", "a/b"]) == ["opencode", "--model", "a/b"]
    assert OPENCODE.headless(["--model", "a/b"]) == ["opencode", "run", "--format", "json", "--model", "a/b"]
    for words in (["--session=x"], ["--model", "a/b", "-c"], ["--pure"], ["serve"], ["."]):
        with pytest.raises(UsageError):
            OPENCODE.command(words)


def test_a_key_a_login_or_a_chosen_model_are_credentials(home: Path) -> None:
    def has(**env: str) -> bool:
        return OPENCODE.has_credentials(env, str(home))

    assert not has()
    assert not has(OPENAI_API_KEY="")
    assert has(OPENAI_API_KEY="k")
    assert OPENCODE.has_credentials({"OPENAI_API_KEY": "k"}, None)
    assert has(OPENCODE_CONFIG_CONTENT='{"model": "a/b"}')
    assert has(OPENCODE_CONFIG=str(put(home / "mine.json", '{"provider": {}}')))
    login = put(home / ".local" / "share" / "opencode" / "auth.json", "{}")
    assert not has()  # logged out
    login.write_text('{"a": {"type": "api", "key": "k"}}')
    assert has()
    assert not OPENCODE.has_credentials({}, None)
    login.unlink()
    put(home / ".config" / "opencode" / "opencode.jsonc", '{\n  // mine\n  "model": "a/b",\n}')
    assert has()


def test_the_plugin_comes_beside_what_the_user_gave_and_chose(home: Path) -> None:
    theirs = home / ".local" / "state" / "opencode"
    put(theirs / "kv.json", '{"theme": "mine", "sidebar": "auto"}')
    put(theirs / "model.json", '{"recent": []}')
    given = {"OPENCODE_CONFIG_CONTENT": '{"share": "manual", "plugin": ["mine"]}'}
    agent = Agent(
        id="0123456789ab", name="a", type="opencode", host="local", command=[], work_dir="/w", mode="none", created=1.0
    )
    seed = OPENCODE.seed(Seat(agent=agent, directory="/d", env=given, user_home=str(home)))
    config = json.loads(seed.env["OPENCODE_CONFIG_CONTENT"])
    assert config == {"share": "manual", "autoupdate": False, "plugin": ["mine", "/d/opencode/plugin.js"]}
    kept = json.loads(seed.files["opencode/state/opencode/kv.json"])
    assert kept == {"theme": "mine", "sidebar": "hide", "animations_enabled": False}
    assert seed.files["opencode/state/opencode/model.json"] == '{"recent": []}'
    elsewhere = OPENCODE.seed(Seat(agent=agent, directory="/d", env={}, user_home=None))
    assert json.loads(elsewhere.files["opencode/state/opencode/model.json"]) == {}


# Its screen


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("home", Screen(composer="")),
        ("idle", Screen(composer="")),
        ("sidebar", Screen(composer="")),
        ("typed", Screen(composer="draft of somebody")),
        ("busy", Screen(composer="", busy=True)),
        ("queued", Screen(composer="", busy=True)),
        ("retry", Screen(composer="", busy=True, retry="the script says 429 attempt #1")),
        ("permission", Screen(dialog="permission")),
        ("question", Screen(dialog="question")),
        ("menu", Screen(dialog="choice")),
        ("shell", Screen(dialog="shell")),
    ],
)
def test_what_it_shows(name: str, seen: Screen) -> None:
    assert screen.rules("opencode.rules").read(shown(name)) == seen


def test_what_stands_in_the_sidebar_is_not_typed() -> None:
    lines = shown("sidebar").split("\n")
    last = max(number for number, line in enumerate(lines) if "╹▀" in line)
    for line in (last - 2, last - 3, last - 4):
        lines[line] = lines[line].ljust(160) + "of the sidebar"
    assert screen.rules("opencode.rules").read("\n".join(lines)).composer == ""


@pytest.mark.parametrize(
    ("lines", "typed"),
    [("", ""), ("  one", "one"), ("  one\n  ┃  two", "two"), ("  one\n  ┃", "one"), ("  Ask anything… or so", "")],
)
def test_a_draft_is_seen_by_its_last_line(lines: str, typed: str) -> None:
    place = f"\n  ┃\n  ┃{lines}\n  ┃\n  ┃  Build · Model Provider\n  ╹{'▀' * 100}\n"
    assert screen.rules("opencode.rules").read(place).composer == typed


def test_one_whose_plugin_is_silent_when_one_can_type_is_not_known() -> None:
    told = OPENCODE.judge("starting", shown("home"), "")
    assert told is not None
    assert told[0] == UNKNOWN
    assert OPENCODE.judge("starting", "\n" * 50, "") is None
    assert OPENCODE.judge("running", shown("idle"), "") is None


def shown(name: str) -> str:
    return (DATA / "screens" / f"opencode-{name}.txt").read_text()


def test_a_blank_is_typed_only_where_a_list_would_open() -> None:
    assert OPENCODE.typed("do it") == "do it"
    assert OPENCODE.typed("see @src") == "see @src "
    assert OPENCODE.typed("mail a@b.example") == "mail a@b.example"
    assert OPENCODE.typed("/etc") == "/etc "
    assert OPENCODE.typed("/new") == "/new"


# A conversation that goes to another agent


def imported(path: Path) -> Any:
    script = Path(module.__file__).with_name("opencode_import.awk")
    return json.loads(subprocess.run(["awk", "-f", script, path], check=True, capture_output=True).stdout)


def test_a_log_becomes_what_opencode_imports(tmp_path: Path) -> None:
    records = [json.loads(line) for line in LOG.read_text().splitlines()]
    last = {record["id"]: record["data"] for record in records}
    found = imported(LOG)
    assert found["info"] == last[found["info"]["id"]]
    assert found["info"]["title"] == "Scripted"
    messages = list(dict.fromkeys(record["id"] for record in records if record["type"] == "message"))
    assert [message["info"] for message in found["messages"]] == [last[id] for id in messages]
    parts = [part for message in found["messages"] for part in message["parts"]]
    assert sorted(part["id"] for part in parts) == sorted({r["id"] for r in records if r["type"] == "part"})
    assert all(part == last[part["id"]] for part in parts)
    assert all(part["messageID"] == message["info"]["id"] for message in found["messages"] for part in message["parts"])


def line(kind: str, id: str, data: object, **more: str) -> str:
    return json.dumps({"type": kind, "id": id, **more, "data": data}, separators=(",", ":"))


def test_what_is_half_removed_or_changed_later_is_imported_as_it_is_now(tmp_path: Path) -> None:
    log = tmp_path / "log"
    text = 'she said ",\\"data\\":" \\\\ and } {'
    lines = [
        line("session", "ses_1", {"title": "old"}),
        line("message", "msg_1", {"n": 1}, role="user"),
        line("part", "prt_1", {"text": text}, message="msg_1", role="user"),
        line("part", "prt_2", {"text": "gone"}, message="msg_1", role="user"),
        line("message", "msg_2", {"n": 2}, role="assistant"),
        line("part", "prt_3", {"text": "of a turn that goes on"}, message="msg_3", role="assistant"),
        line("session", "ses_1", {"title": "new"}),
        line("message", "msg_1", {"n": 1, "more": True}, role="user"),
        line("removed", "prt_2", None),
        line("removed", "msg_2", None),
        line("message", "msg_4", {"n": 4}, role="user")[:-2],
    ]
    log.write_text("\n".join(lines))
    assert imported(log) == {
        "info": {"title": "new"},
        "messages": [{"info": {"n": 1, "more": True}, "parts": [{"text": text}]}],
    }
