"""The claude type: what it seeds, what it makes of a second look, and which records prove a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mngr.agents import Seat, screen, session_id
from mngr.agents.claude import CLAUDE, HOOKS
from mngr.errors import UsageError
from mngr.model import Agent

SCREENS = Path(__file__).parents[1] / "data" / "screens"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "MNGR_AGENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    monkeypatch.setattr(screen, "_loaded", {})
    return tmp_path


def seat(home: Path | None, **env: str) -> Seat:
    agent = Agent(
        id="0123456789ab",
        name="foo",
        type="claude",
        host="local",
        command=["claude"],
        work_dir="/w/foo bar",
        mode="none",
        created=1.0,
    )
    return Seat(agent=agent, directory="/m/agents/it's", env=env, user_home=str(home) if home else None)


def seeded(home: Path | None, name: str, **env: str) -> Any:
    return json.loads(CLAUDE.seed(seat(home, **env)).files[f"claude/{name}"])


# What is launched


def test_the_session_is_known_in_advance() -> None:
    assert session_id("0123456789ab") == "01234567-89ab-4000-8000-0123456789ab"
    assert CLAUDE.seed(seat(None)).env["MNGR_SESSION"] == session_id("0123456789ab")


@pytest.mark.parametrize("word", ["--resume", "-c", "--session-id=x", "-p", "--print", "--fork-session"])
def test_what_mngr_does_itself_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="mngr's own business"):
        CLAUDE.command(["--model", "opus", word])


def test_the_words_of_the_user_are_kept() -> None:
    assert CLAUDE.command(["--model", "opus"]) == ["claude", "--model", "opus"]
    assert CLAUDE.headless(["--model", "opus"])[:4] == ["claude", "--model", "opus", "--print"]
    assert json.loads(CLAUDE.line('a\n"b" é')) == {"type": "user", "message": {"role": "user", "content": 'a\n"b" é'}}


# What is seeded


def test_a_first_start_finds_every_question_answered(home: Path) -> None:
    account = seeded(home, ".claude.json", ANTHROPIC_API_KEY="sk-ant-0123456789abcdefghijklmnop")
    assert account["hasCompletedOnboarding"] is True
    assert account["projects"]["/w/foo bar"]["hasTrustDialogAccepted"] is True
    assert account["customApiKeyResponses"] == {"approved": ["6789abcdefghijklmnop"], "rejected": []}
    settings = seeded(home, "settings.json")
    assert settings["prefersReducedMotion"] is True
    assert settings["skipDangerousModePermissionPrompt"] is True


def test_every_event_calls_the_hook_of_this_agent(home: Path) -> None:
    hooks = seeded(home, "settings.json")["hooks"]
    assert set(hooks) == set(HOOKS)
    assert hooks["Stop"][0]["hooks"][0]["command"] == "sh '/m/agents/it'\\''s/hook' Stop lags"
    assert hooks["PreToolUse"][0]["matcher"] == "AskUserQuestion|ExitPlanMode"


def test_what_the_user_has_is_kept(home: Path) -> None:
    own = {
        "model": "opus",
        "disableAllHooks": True,
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}], "Own": []},
    }
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps(own))
    (home / ".claude.json").write_text(json.dumps({"theme": "light", "oauthAccount": {"x": 1}, "projects": {"/p": {}}}))
    settings, account = seeded(home, "settings.json"), seeded(home, ".claude.json")
    assert settings["model"] == "opus"
    assert "disableAllHooks" not in settings
    assert settings["hooks"]["Own"] == []
    assert [each["hooks"][0]["command"][:3] for each in settings["hooks"]["Stop"]] == ["say", "sh "]
    assert (account["theme"], account["oauthAccount"]) == ("light", {"x": 1})
    assert set(account["projects"]) == {"/w/foo bar"}
    assert json.loads((home / ".claude" / "settings.json").read_text()) == own


@pytest.mark.parametrize("text", ["", "{", "[]", '{"hooks": 3}', '{"hooks": {"Stop": "x"}}'])
def test_a_broken_file_of_the_users_says_nothing(home: Path, text: str) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(text)
    assert len(seeded(home, "settings.json")["hooks"]["Stop"]) == 1


def test_credentials_are_linked_and_never_copied(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / ".credentials.json").write_text('{"secret": "hunter2"}')
    held = {"claude/.credentials.json": f"{home}/.claude/.credentials.json"}
    assert CLAUDE.credentials(str(home)) == held
    assert "hunter2" not in "".join(CLAUDE.seed(seat(home)).files.values())
    assert CLAUDE.seed(seat(None)).links == {}  # elsewhere nothing of this machine is there


def test_what_counts_as_credentials(home: Path) -> None:
    assert not CLAUDE.has_credentials({}, str(home))
    assert not CLAUDE.has_credentials({"ANTHROPIC_BASE_URL": "x", "HTTPS_PROXY": "y"}, str(home))
    assert CLAUDE.has_credentials({"ANTHROPIC_API_KEY": "x"}, None)
    assert CLAUDE.has_credentials({"CLAUDE_CODE_USE_BEDROCK": "1"}, None)
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"apiKeyHelper": "x"}')
    assert CLAUDE.has_credentials({}, str(home))
    (home / ".claude" / "settings.json").write_text('{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}')
    assert CLAUDE.has_credentials({}, str(home))
    (home / ".claude" / "settings.json").unlink()
    assert not CLAUDE.has_credentials({"AWS_PROFILE": "x"}, str(home))
    (home / ".claude" / ".credentials.json").write_text("{}")
    assert CLAUDE.has_credentials({}, str(home))


def test_inside_an_agent_the_users_own_directory_counts_and_not_the_agents(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere")
    assert CLAUDE.seed(seat(home)).links["claude/skills"] == "/elsewhere/skills"
    monkeypatch.setenv("MNGR_AGENT_ID", "0")
    assert CLAUDE.seed(seat(home)).links["claude/skills"] == f"{home}/.claude/skills"


# The second look

INTERRUPTED = (
    '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}'
)
PROMPT = json.dumps(
    {"type": "user", "message": {"role": "user", "content": 'FAULT: {"status":529,"times":9,"retry_after":30}'}}
)
ANSWER = '{"type":"assistant","message":{"content":[]}}'


@pytest.mark.parametrize(
    ("claim", "shown", "tail", "told"),
    [
        ("running", "busy", PROMPT, None),
        ("running", "idle", INTERRUPTED, ("waiting", "interrupted")),
        ("running", "idle", f'{INTERRUPTED}\n{{"type":"mode"}}\n', ("waiting", "interrupted")),
        ("running", "idle", f"{INTERRUPTED}\n{ANSWER}", None),
        ("running", "idle", PROMPT, None),  # a hook may be on its way
        ("running", "taken-back", PROMPT, ("waiting", "interrupted")),
        ("running", "taken-back", ANSWER, None),
        ("running", "retry", PROMPT, ("running", "retrying: API error attempt 1/10")),
        ("running", "limit", PROMPT, ("waiting", "rate limit: Session limit reached (12:46am) attempt 3/10")),
        ("running", "permission", "", ("waiting", "dialog: permission")),
        ("starting", "idle", "", None),
        ("starting", "trust", "", ("waiting", "dialog: trust")),
        ("waiting permission: Bash", "permission", "", None),
        ("waiting permission: Bash", "busy", "", ("running", "")),
        ("waiting dialog: choice", "idle", "", ("waiting", "turn over")),
        ("running", "idle", "cut off\nnot json {", None),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_second_look(claim: str, shown: str, tail: str, told: tuple[str, str] | None) -> None:
    assert CLAUDE.judge(claim, (SCREENS / f"claude-{shown}.txt").read_text(), tail) == told


# What proves a message


def user(content: object) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": content}}


@pytest.mark.parametrize(
    ("record", "sent", "proof"),
    [
        ({"hook_event_name": "UserPromptSubmit", "prompt": "hi"}, "hi", "delivered"),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "a    b\n c"}, " a\tb\n c\n", "delivered"),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "hi there"}, "hi", None),
        ({"hook_event_name": "UserPromptSubmit", "prompt": None}, "hi", None),
        ({"hook_event_name": "SessionStart", "source": "clear"}, "/clear", "delivered"),
        ({"hook_event_name": "SessionStart", "source": "resume"}, "/clear", None),
        (user("hi"), "hi", "delivered"),
        (user([{"type": "text", "text": "hi"}]), "hi", "delivered"),
        (user([{"type": "tool_result", "content": "hi"}]), "hi", None),
        (user("<bash-input>echo a</bash-input>"), "!echo a", "delivered"),
        (user("<command-name>/compact</command-name>"), "/compact please", "delivered"),
        ({"type": "queue-operation", "operation": "enqueue", "content": "hi"}, "hi", "queued"),
        ({"type": "queue-operation", "operation": "dequeue"}, "hi", None),
        ({"type": "system", "content": "<command-name>/model</command-name>"}, "/model", "delivered"),
        ({"type": "system", "content": "Unknown command: /nope"}, "/nope x", "refused it knows no command /nope"),
        (
            {"type": "system", "content": "Unknown command: /no. Did you mean /n?"},
            "/no",
            "refused it knows no command /no",
        ),
        ({"type": "system", "content": "Unknown command: /nope"}, "/no", None),
        ({"type": "assistant", "message": {"content": "hi"}}, "hi", None),
        ({}, "hi", None),
    ],
)
def test_what_proves_a_message(record: dict[str, object], sent: str, proof: str | None) -> None:
    assert CLAUDE.receipt(record, sent) == proof
