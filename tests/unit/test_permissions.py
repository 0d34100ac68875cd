"""What each program is told of a policy, and that it comes with the agent's own directory, which nobody knows before
there is an agent."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mngr import registry
from mngr.agents import AgentType, Permissions, Seat
from mngr.agents.claude import CLAUDE
from mngr.agents.codex import CODEX
from mngr.agents.opencode import OPENCODE
from mngr.model import Agent

LIST = ["git", "python -m pytest"]


def seat(home: Path, type: str, env: dict[str, str] | None = None) -> Seat:
    agent = Agent(id="a1", name="a", type=type, host="local", command=[], work_dir="/w", mode="none", created=1.0)
    return Seat(agent=agent, directory="/m/agents/a1", env=env or {}, user_home=str(home))


def test_a_type_that_says_nothing_can_be_held_to_nothing() -> None:
    assert AgentType().permissions("bypass", []) is None


@pytest.mark.parametrize("name", ["claude", "codex", "opencode"])
def test_there_is_no_third_policy(name: str) -> None:
    assert registry.agent_type(name).permissions("trust", LIST) is None


@pytest.mark.parametrize("policy", ["bypass", "allowlist"])
@pytest.mark.parametrize("name", ["command", "replay"])
def test_what_is_only_a_script_needs_to_be_told_nothing(name: str, policy: str) -> None:
    assert registry.agent_type(name).permissions(policy, LIST) == Permissions()


def test_claude_gets_rules_and_leave_to_hand_in_beside_what_the_user_has(tmp_path: Path) -> None:
    assert CLAUDE.permissions("bypass", LIST) == Permissions(args=["--dangerously-skip-permissions"])
    allowed = CLAUDE.permissions("allowlist", LIST)
    assert allowed is not None
    mode, which, tools, *rules = allowed.args
    assert (mode, which, tools) == ("--permission-mode", "dontAsk", "--allowedTools")
    assert rules[:2] == ["Bash(git:*)", "Bash(python -m pytest:*)"]
    assert CLAUDE.command(allowed.args) == ["claude", *allowed.args]

    (tmp_path / ".claude").mkdir()
    own = {"deny": ["Read(.env)"], "allow": ["Bash(ls:*)"]}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"permissions": own}))
    settings = json.loads(CLAUDE.seed(seat(tmp_path, "claude")).files["claude/settings.json"])
    handing_in = ["Edit(//m/agents/a1/result.json*)", "Edit(//m/agents/a1/artifacts/**)"]
    assert settings["permissions"] == {**own, "allow": ["Bash(ls:*)", *handing_in]}


@pytest.mark.parametrize("has_repository", [True, False])
def test_codex_gets_a_sandbox_in_which_it_can_commit_and_hand_in_its_result(
    tmp_path: Path, has_repository: bool
) -> None:
    (tmp_path / "config.toml").touch()
    git = tmp_path / ".git"
    git.mkdir() if has_repository else git.touch()  # that of a worktree is a file

    def started(policy: str) -> list[str]:
        allowed = CODEX.permissions(policy, LIST)
        assert allowed is not None
        place = str(tmp_path)
        env = {"PATH": "/bin:/usr/bin", "CODEX_HOME": place, "MNGR_AGENT_DIR": place, "MNGR_WORK_DIR": place}
        line = f'{CODEX.launch}\nprintf "%s\\0" "$@"'
        argv = ["sh", "-c", line, "sh", *CODEX.command(allowed.args)]
        return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]

    assert started("bypass") == ["codex", "--dangerously-bypass-approvals-and-sandbox"]
    *line, last = started("allowlist")
    assert line == ["codex", "-c", 'approval_policy="never"', "-c", 'sandbox_mode="workspace-write"', "-c"]
    roots = [str(tmp_path), str(git)] if has_repository else [str(tmp_path)]
    assert last == f"sandbox_workspace_write.writable_roots={json.dumps(roots, separators=(',', ':'))}"


def test_opencode_gets_rules_of_which_the_last_that_fits_counts(tmp_path: Path) -> None:
    free, held = OPENCODE.permissions("bypass", LIST), OPENCODE.permissions("allowlist", LIST)
    assert free is not None
    assert held is not None
    assert json.loads(free.env["OPENCODE_PERMISSION"]) == {"*": "allow"}
    rules = json.loads(held.env["OPENCODE_PERMISSION"])
    assert next(iter(rules["bash"].items())) == ("*", "deny")
    assert [rules["bash"][pattern] for pattern in ("git", "git *", "python -m pytest *", "mv *")] == ["allow"] * 4
    seeded = OPENCODE.seed(seat(tmp_path, "opencode", held.env)).env["OPENCODE_PERMISSION"]
    own = {"*": "deny", "/m/agents/a1/*": "allow"}
    assert json.loads(seeded) == {**rules, "external_directory": own}
    assert list(json.loads(seeded)["external_directory"]) == list(own)


@pytest.mark.parametrize("given", [None, "", "no JSON", '"allow"'])
def test_opencode_is_told_nothing_that_nobody_said(tmp_path: Path, given: str | None) -> None:
    env = {} if given is None else {"OPENCODE_PERMISSION": given}
    assert "OPENCODE_PERMISSION" not in OPENCODE.seed(seat(tmp_path, "opencode", env)).env
