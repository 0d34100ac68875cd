"""`codex`: Codex. It gets a home of its own, below the agent's directory, so that neither its dialogs nor its hooks
meet the user's; what is the user's (configuration, prompts, skills, login) is merged in or linked.

State comes from its lifecycle hooks (hook.sh), but for three things that no hook tells: that it is ready, which is when
one can type; that a turn failed, which its log tells; that the server is asked again, which its screen shows.

Without its terminal interface it does one turn per process: turns.sh runs one for each message."""

from __future__ import annotations

import os

from mngr.agents import (
    ALLOWLIST,
    BYPASS,
    NETWORK,
    AgentType,
    Permissions,
    Program,
    Seat,
    Seed,
    check_args,
    hook_script,
    session_id,
    turns,
)
from mngr.hosts import read_script
from mngr.model import RUNNING, STARTING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.log import LogReader

_OURS = ("-C", "--cd", "--last")
_KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY")
_PASSED = (*_KEYS, "OPENAI_BASE_URL", *NETWORK)
_SANDBOX = 'sandbox_mode="workspace-write"'

# In that sandbox it may not write to .git, nor to where its result goes, unless it is told so. A worktree has no .git
# of its own: there it cannot commit.
_LAUNCH = f"""
case "$*" in *'{_SANDBOX}'*)
  MNGR_ROOTS="\\"$MNGR_AGENT_DIR\\""
  [ ! -d "$MNGR_WORK_DIR/.git" ] || MNGR_ROOTS="$MNGR_ROOTS,\\"$MNGR_WORK_DIR/.git\\""
  set -- "$@" -c "sandbox_workspace_write.writable_roots=[$MNGR_ROOTS]"
  ;;
esac"""


class CodexType(AgentType):
    name = "codex"
    summary = "Codex"
    program = Program(
        name="codex",
        oldest="0.166.0",  # hooks, and how they are trusted, were others before
        install="npm install -g @openai/codex",
        credentials="run codex login, or set OPENAI_API_KEY",
    )
    launch = read_script(__file__, "codex_launch.sh") + _LAUNCH
    adopt = read_script(__file__, "codex_adopt.sh")
    reports = proves = ready_by_screen = True
    rules = "codex.rules"
    erases = ("C-k", "C-u")  # not Ctrl-C, which ends it when there is nothing to erase
    logs = ("codex/sessions/*/*/*/*.jsonl",)

    @property
    def passes(self) -> tuple[str, ...]:  # type: ignore[override]
        from mngr.agents.codex_config import key_variable, users_config

        chosen = key_variable(users_config(os.path.expanduser("~")))
        return (*_PASSED, chosen) if chosen else _PASSED

    def command(self, args: list[str]) -> list[str]:
        check_args(args, _OURS)
        return ["codex", *args]

    def headless(self, args: list[str]) -> list[str]:
        return [*self.command(args), "exec", "--skip-git-repo-check", "--json"]

    def with_model(self, model: str) -> list[str]:
        return ["-m", model]

    def permissions(self, policy: str, allow: Sequence[str]) -> Permissions | None:
        """In place of a list it has a sandbox, which is about what a command does: any may run, but write only below
        the work dir, the agent's own and /tmp, and reach no network. What it does not let through fails: nobody is
        asked."""
        return {
            BYPASS: Permissions(args=["--dangerously-bypass-approvals-and-sandbox"]),
            ALLOWLIST: Permissions(args=["-c", 'approval_policy="never"', "-c", _SANDBOX]),
        }.get(policy)

    def credentials(self, user_home: str) -> dict[str, str]:
        from mngr.agents.codex_config import users_directory

        return {f"codex/{name}": f"{users_directory(user_home)}/{name}" for name in ("auth.json", ".credentials.json")}

    def has_credentials(self, env: Mapping[str, str], user_home: str | None) -> bool:
        from mngr.agents.codex_config import key_variable, users_config

        if any(env.get(name) for name in _KEYS):
            return True
        if user_home is None:
            return False
        key = key_variable(users_config(user_home))
        return os.path.exists(self.credentials(user_home)["codex/auth.json"]) if key is None else not key or key in env

    def seed(self, seat: Seat) -> Seed:
        from mngr.agents.codex_config import files, links, users_directory

        runner = turns.laid(read_script(__file__, "codex_turn.sh")) if seat.agent.headless else {}
        return Seed(
            files={**files(seat), **runner, "hook": hook_script()},
            links=links(users_directory(seat.user_home)) if seat.user_home else {},
            env={"CODEX_HOME": f"{seat.directory}/codex", "MNGR_SESSION": session_id(seat.agent.id)},
        )

    def judge(self, claim: str, screen: str, tail: str) -> tuple[str, str] | None:
        """While it writes its answer, its screen looks as if it did nothing: only its log says that a turn is over."""
        from mngr.agents.codex_receipt import ending
        from mngr.agents.screen import rules

        seen = rules(self.rules).read(screen)
        state = claim.partition(" ")[0]
        if seen.dialog:
            asks = seen.dialog in ("permission", "question")
            return None if state == WAITING else (WAITING, seen.dialog if asks else f"dialog: {seen.dialog}")
        if seen.composer is None:
            return None
        if state == STARTING:
            return WAITING, "ready"
        if seen.retry and state == RUNNING:
            return RUNNING, f"retrying: {seen.retry}"
        end = ending(tail)
        if state == RUNNING:
            return end if end and end[0] == WAITING else None
        # its dialog has been answered: the next hook comes only when the tool has run
        return end or (WAITING, "ready")

    def receipt(self, record: Mapping[str, object], text: str) -> str | None:
        from mngr.agents.codex_receipt import receipt

        return receipt(record, text) or turns.receipt(record, text)

    def line(self, text: str) -> str:
        return turns.line(text)

    def reader(self) -> LogReader:
        from mngr.agents.codex_log import CodexLog

        return CodexLog()


CODEX = CodexType()
