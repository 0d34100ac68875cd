"""The codex type: what it seeds, what it makes of a second look, and which records prove a message. The screens in
tests/data are those of the real program."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mngr.agents import Seat, screen
from mngr.agents.codex import CODEX
from mngr.agents.codex_config import HOOKS, checksum
from mngr.agents.screen import Screen
from mngr.errors import UsageError
from mngr.model import Agent

SCREENS = Path(__file__).parents[1] / "data" / "screens"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CODEX_HOME", "MNGR_AGENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    monkeypatch.setattr(screen, "_loaded", {})
    (tmp_path / ".codex").mkdir()
    return tmp_path


def seat(home: Path | None, headless: bool = False, /, **env: str) -> Seat:
    agent = Agent(
        id="0123456789ab",
        name="foo",
        type="codex",
        host="local",
        command=["codex"],
        work_dir="/w/foo bar",
        mode="worktree",
        created=1.0,
        source="/src",
        headless=headless,
    )
    return Seat(agent=agent, directory="/m/agents/it's", env=env, user_home=str(home) if home else None)


def config(home: Path | None, **env: str) -> dict[str, Any]:
    return tomllib.loads(CODEX.seed(seat(home, False, **env)).files["codex/config.toml"])


def hooks(home: Path | None) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(CODEX.seed(seat(home)).files["codex/hooks.json"])["hooks"]
    return found


# What is launched


@pytest.mark.parametrize("word", ["-C", "--cd=/x", "--last"])
def test_what_mngr_does_itself_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="mngr's own business"):
        CODEX.command(["-m", "gpt-5", word])


@pytest.mark.parametrize("word", ["resume", "exec", "do this"])
def test_neither_a_verb_nor_a_prompt_is_taken(word: str) -> None:
    with pytest.raises(UsageError, match="is no option"):
        CODEX.command([word, "-m", "gpt-5"])
    assert CODEX.command(["-p", "review"]) == ["codex", "-p", "review"]


def test_the_words_of_the_user_are_kept() -> None:
    assert CODEX.command(["-a", "never"]) == ["codex", "-a", "never"]
    assert CODEX.headless(["-a", "never"])[:4] == ["codex", "-a", "never", "exec"]  # which has fewer options
    assert CODEX.with_model("gpt-5") == ["-m", "gpt-5"]


def test_only_without_a_terminal_turns_are_run(home: Path) -> None:
    assert "turns" not in CODEX.seed(seat(home)).files
    assert {"turns", "turn", "hook"} <= set(CODEX.seed(seat(home, True)).files)


# What is seeded


@pytest.mark.parametrize("with_home", [True, False])
def test_a_first_start_finds_every_question_answered(home: Path, with_home: bool) -> None:
    found = config(home if with_home else None, OPENAI_BASE_URL="http://here/v1")
    assert found["projects"] == {"/w/foo bar": {"trust_level": "trusted"}}
    assert found["check_for_update_on_startup"] is False
    assert found["features"] == {"daemon_auto_start": False}
    assert found["tui"] == {"animations": False}
    assert found["model_providers"]["mngr"]["base_url"] == "http://here/v1"
    assert "model_provider" not in found  # launch chooses it, where nobody is logged in


def test_every_hook_of_ours_is_trusted(home: Path) -> None:
    found, state = hooks(home), config(home)["hooks"]["state"]
    assert set(found) == set(HOOKS)
    (handler,) = found["PostToolUse"][0]["hooks"]
    assert handler["command"] == "sh '/m/agents/it'\\''s/hook' ToolRan"
    key = "/m/agents/it's/codex/hooks.json:post_tool_use:0:0"
    assert state[key] == {"trusted_hash": checksum("PostToolUse", handler)}
    assert len(state) == len(HOOKS)


def test_a_checksum_is_the_one_that_the_program_makes() -> None:
    handler = {"type": "command", "command": "sh /tmp/a/hook 'ü' $x", "timeout": 10}
    assert checksum("Stop", handler) == "sha256:f42fab2f4132ef5a3042a08f8ecb29cdbee0d566f8f01d0bb1ceb370c1cb3830"


def test_what_the_user_has_is_kept_and_what_would_be_in_the_way_is_not(home: Path) -> None:
    own = """
        model = "gpt-5"
        model_provider = "own"
        tui.theme = "dark"
        tui.status_line = ["model"]
        features.plugins = false
        [model_providers.own]
        env_key = "OWN_KEY"
        [projects."/p"]
        trust_level = "untrusted"
    """
    (home / ".codex" / "config.toml").write_text(own)
    found = config(home)
    assert (found["model"], found["model_provider"]) == ("gpt-5", "own")
    assert found["tui"] == {"theme": "dark", "animations": False}
    assert found["features"] == {"plugins": False, "daemon_auto_start": False}
    assert found["projects"]["/p"] == {"trust_level": "untrusted"}
    assert set(found["model_providers"]) == {"own", "mngr"}
    assert (home / ".codex" / "config.toml").read_text() == own


def test_of_the_users_hooks_those_come_along_that_are_trusted(home: Path) -> None:
    theirs = home / ".codex"
    groups = [{"matcher": "x", "hooks": [{"command": "unknown"}, {"command": "known"}]}, {"hooks": [{"command": "no"}]}]
    (theirs / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": groups}}))
    (theirs / "config.toml").write_text(f"""
        [[hooks.Stop]]
        hooks = [{{ type = "command", command = "say done" }}]
        [hooks.state."{theirs}/hooks.json:pre_tool_use:0:1"]
        trusted_hash = "one"
        [hooks.state."{theirs}/config.toml:stop:0:0"]
        trusted_hash = "two"
        enabled = false
        [hooks.state."/src/.codex/hooks.json:stop:0:0"]
        trusted_hash = "three"
    """)
    found, held = hooks(home), config(home)["hooks"]
    assert found["PreToolUse"] == [{"matcher": "x", "hooks": [{"command": "known"}]}]
    assert [group["hooks"][0]["command"][:3] for group in found["Stop"]] == ["say", "sh "]
    own = "/m/agents/it's/codex/hooks.json"
    assert held["state"][f"{own}:pre_tool_use:0:0"] == {"trusted_hash": "one"}
    assert held["state"][f"{own}:stop:0:0"] == {"trusted_hash": "two", "enabled": False}
    assert held["state"]["/w/foo bar/.codex/hooks.json:stop:0:0"] == {"trusted_hash": "three"}
    assert set(held) == {"state"}


@pytest.mark.parametrize("text", ["", "=", "hooks = 3", "tui = 3\nprojects = []", "[hooks]\nStop = 'x'\nstate = 1"])
def test_a_broken_file_of_the_users_says_nothing(home: Path, text: str) -> None:
    (home / ".codex" / "config.toml").write_text(text)
    (home / ".codex" / "hooks.json").write_text('{"hooks": [')
    assert set(hooks(home)) == set(HOOKS)
    assert config(home)["tui"]["animations"] is False


def test_skills_are_linked_one_by_one_and_a_login_is_never_copied(home: Path) -> None:
    theirs = home / ".codex"
    for name in ("skills/.system", "skills/knots", "rules"):
        (theirs / name).mkdir(parents=True)
    (theirs / "work.config.toml").write_text("")
    (theirs / "auth.json").write_text('{"OPENAI_API_KEY": "hunter2"}')
    found = CODEX.seed(seat(home))
    assert found.links["codex/skills/knots"] == f"{theirs}/skills/knots"
    assert found.links["codex/work.config.toml"] == f"{theirs}/work.config.toml"
    assert found.links["codex/rules"] == f"{theirs}/rules"
    assert not [path for path in found.links if path in ("codex/skills", "codex/config.toml", "codex/skills/.system")]
    assert CODEX.credentials(str(home))["codex/auth.json"] == f"{theirs}/auth.json"
    assert "hunter2" not in "".join(found.files.values())
    assert CODEX.seed(seat(None)).links == {}  # elsewhere nothing of this machine is there


def test_what_counts_as_credentials(home: Path) -> None:
    assert not CODEX.has_credentials({"OPENAI_BASE_URL": "x"}, str(home))
    assert CODEX.has_credentials({"OPENAI_API_KEY": "x"}, None)
    assert CODEX.has_credentials({"CODEX_API_KEY": "x"}, str(home))
    configured = home / ".codex" / "config.toml"
    configured.write_text('model_provider = "own"\nmodel_providers.own.env_key = "OWN_KEY"\n')
    assert not CODEX.has_credentials({}, str(home))
    assert CODEX.has_credentials({"OWN_KEY": "x"}, str(home))
    assert "OWN_KEY" in CODEX.passes
    configured.write_text('model_provider = "own"\nmodel_providers.own.base_url = "http://here"\n')
    assert CODEX.has_credentials({}, str(home))
    configured.write_text('model_provider = "own"\nmodel_providers.own.requires_openai_auth = true\n')
    assert not CODEX.has_credentials({}, str(home))
    (home / ".codex" / "auth.json").write_text("{}")
    assert CODEX.has_credentials({}, str(home))


def test_inside_an_agent_the_users_own_directory_counts_and_not_the_agents(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", "/elsewhere")
    assert CODEX.seed(seat(home)).links["codex/rules"] == "/elsewhere/rules"
    monkeypatch.setenv("MNGR_AGENT_ID", "0")
    assert CODEX.seed(seat(home)).links["codex/rules"] == f"{home}/.codex/rules"


# Its screen

AFTER_A_REFUSAL = ("refused", "shell", "pasted", "retry", "interrupted", "permission")  # which is still to be seen


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("early", Screen()),
        ("idle", Screen(composer="")),
        ("narrow", Screen(composer="")),
        ("interrupted", Screen(composer="")),
        ("busy", Screen(composer="", busy=True)),
        ("queued", Screen(composer="", busy=True, queued=["second message"])),
        ("refused", Screen(composer="/nonsense of\n  two lines")),
        ("shell", Screen(composer="ls")),
        ("pasted", Screen(composer="[Pasted Content 5000 chars]")),
        ("popup", Screen(composer="price in $word")),
        ("permission", Screen(dialog="permission")),
        ("edits", Screen(dialog="permission")),
        ("question", Screen(dialog="question")),
        ("model", Screen(dialog="choice")),
        ("browsing", Screen(dialog="transcript")),
        ("trust", Screen(dialog="trust")),
        ("hooks", Screen(dialog="hooks")),
        ("login", Screen(dialog="login")),
        ("directory", Screen(dialog="directory")),
        ("taken", Screen(dialog="taken")),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_is_seen_on_the_screen(name: str, seen: Screen) -> None:
    found = screen.rules(CODEX.rules).read((SCREENS / f"codex-{name}.txt").read_text())
    assert found.refused == ("/nonsense" if name in AFTER_A_REFUSAL else None)
    assert found.replace(refused=None) == seen


@pytest.mark.parametrize("name", ["permission", "edits", "question", "model", "trust", "hooks", "login", "directory"])
@pytest.mark.usefixtures("home")
def test_where_a_dialog_is_in_front_nothing_is_typed_even_if_nobody_knows_it(name: str) -> None:
    shown = (SCREENS / f"codex-{name}.txt").read_text()
    said = (SCREENS / "codex-interrupted.txt").read_text()
    assert screen.rules(CODEX.rules).read(said + shown.replace("Would you", "Might you")).composer is None


# The second look


def event(kind: str, **members: object) -> str:
    return json.dumps({"type": "event_msg", "payload": {"type": kind, **members}}) + "\n"


def failed(message: str, info: object) -> str:
    return event("task_complete", last_agent_message=None, error={"message": message, "codex_error_info": info})


STARTED, OVER, ABORTED = event("task_started"), event("task_complete", last_agent_message="x"), event("turn_aborted")
ANSWER = json.dumps({"error": {"message": "no such model", "type": "x"}})
LIMIT = "You've hit your usage limit. Upgrade to Pro (https://x), or try again at 3:50 PM."


@pytest.mark.parametrize(
    ("claim", "shown", "tail", "told"),
    [
        ("starting", "early", "", None),
        ("starting", "idle", OVER, ("waiting", "ready")),
        ("starting", "trust", "", ("waiting", "dialog: trust")),
        ("running", "busy", STARTED, None),
        ("running", "idle", STARTED, None),  # it writes its answer
        ("running", "idle", "cut off}\n" + event("token_count"), None),  # a long turn, whose beginning is further up
        ("running", "idle", "", None),
        ("running", "idle", STARTED + OVER, ("waiting", "turn over")),
        ("running", "idle", STARTED + OVER + event("thread_settings_applied"), ("waiting", "turn over")),
        ("running", "idle", STARTED + ABORTED, ("waiting", "interrupted")),
        ("running", "idle", ABORTED + STARTED, None),
        ("running", "idle", failed(ANSWER, "other"), ("waiting", "api error: no such model")),
        ("running", "idle", failed("no\nnet", {"x": 401}), ("waiting", "api error: no net")),
        (
            "running",
            "idle",
            failed("last status: 429", {"http": {"status": 429}}),
            ("waiting", "rate limit: last status: 429"),
        ),
        ("running", "idle", failed(LIMIT, "usage_limit_exceeded"), ("waiting", "rate limit: try again at 3:50 PM.")),
        (
            "running",
            "retry",
            STARTED,
            ("running", "retrying: 1/5 Exceeded retry limit, last status: 429 Too Many Requests"),
        ),
        ("running", "permission", STARTED, ("waiting", "permission")),
        ("waiting permission: Bash", "permission", STARTED, None),
        ("waiting permission: Bash", "busy", STARTED, ("running", "")),
        ("waiting permission: Bash", "idle", STARTED, ("running", "")),
        ("waiting dialog: choice", "idle", OVER, ("waiting", "turn over")),
        ("waiting dialog: trust", "idle", "", ("waiting", "ready")),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_second_look(claim: str, shown: str, tail: str, told: tuple[str, str] | None) -> None:
    assert CODEX.judge(claim, (SCREENS / f"codex-{shown}.txt").read_text(), tail) == told


# What proves a message


def completed(item: dict[str, object]) -> dict[str, object]:
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}


def command(source: str) -> dict[str, object]:
    return completed({"type": "CommandExecution", "source": source, "command": ["/bin/bash", "-lc", "echo a"]})


@pytest.mark.parametrize(
    ("record", "sent", "proof"),
    [
        ({"hook_event_name": "UserPromptSubmit", "prompt": "hi"}, " hi\n", "delivered"),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "hi there"}, "hi", None),
        ({"hook_event_name": "Stop", "last_assistant_message": "hi"}, "hi", None),
        ({"hook_event_name": "Queued", "prompt": "hi"}, "hi", "queued"),
        (completed({"type": "UserMessage", "content": [{"type": "text", "text": "hi"}]}), "hi", "delivered"),
        (completed({"type": "AgentMessage", "content": [{"type": "Text", "text": "hi"}]}), "hi", None),
        (command("user_shell"), "!echo a", "delivered"),
        (command("user_shell"), "echo a", None),
        (command("unified_exec_startup"), "!echo a", None),
        ({"type": "response_item", "payload": {"type": "message", "role": "user", "content": "hi"}}, "hi", None),
        ({"payload": 3}, "hi", None),
    ],
)
def test_what_proves_a_message(record: dict[str, object], sent: str, proof: str | None) -> None:
    assert CODEX.receipt(record, sent) == proof
