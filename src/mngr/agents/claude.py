"""`claude`: Claude Code. It gets a configuration directory of its own, below the agent's, so that neither its dialogs
nor its hooks meet the user's; what is the user's (settings, skills, commands, credentials) is merged in or linked.

State comes from its lifecycle hooks (hook.sh). What they do not tell, a turn that the user interrupts, a server that is
asked again and again, is read from its log and its screen, when the hooks have been silent for a while."""

from __future__ import annotations

import os

from mngr import jsonline
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
)
from mngr.model import RUNNING, STARTING, WAITING
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.log import LogReader

# Those that change the state, and the prompts that prove that a message arrived. A version that does not know one of
# them passes over it.
HOOKS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "Notification",
    "Stop",
    "StopFailure",
)
_LEAD_TO_A_MODEL = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
)
_RESULTS = ("MNGR_RESULT", "MNGR_ARTIFACTS")
_FOR_FILES = ("cp", "mkdir", "mv", "rm", "touch")  # not sed, whose scripts can write to any file
_ASKING = "AskUserQuestion|ExitPlanMode"  # tools before which it stands still: the others need no hook of that kind
_OURS = ("--resume", "-r", "--continue", "-c", "--session-id", "--fork-session", "-p", "--print")
_LINKED = (
    "CLAUDE.md",
    "agents",
    "commands",
    "hooks",
    "keybindings.json",
    "output-styles",
    "plugins",
    "rules",
    "skills",
)
# Not editorMode: with vim's, a pasted message would be commands.
_FROM_USER = ("oauthAccount", "userID", "mcpServers", "theme", "hasAvailableSubscription")

_LAUNCH = """\
if [ -s "$MNGR_AGENT_DIR/conversation" ]; then
  { read -r MNGR_SESSION; read -r MNGR_LOG; } <"$MNGR_AGENT_DIR/conversation"
else
  MNGR_LOG=
fi
MNGR_PROGRAM=$1
shift
if [ -s "$MNGR_LOG" ]; then
  set -- "$MNGR_PROGRAM" --resume "$MNGR_SESSION" "$@"
else
  set -- "$MNGR_PROGRAM" --session-id "$MNGR_SESSION" "$@"
fi"""

# $1: session, $2: log, $3: work dir of the other agent. It knows its conversations by the directory they were held in.
_ADOPT = """\
session=$MNGR_SESSION
own_log=$MNGR_AGENT_DIR/claude/projects/$MNGR_PROJECT/$MNGR_SESSION.jsonl
mkdir -p "${own_log%/*}" &&
  LC_ALL=C sed -e "s/$1/$MNGR_SESSION/g" \\
    -e "s|\\"cwd\\":\\"$(literal "$3")\\"|\\"cwd\\":\\"$(literal "$MNGR_WORK_DIR")\\"|g" \\
    -e '${/}$/!d;}' "$2" >"$own_log"
"""


class ClaudeType(AgentType):
    name = "claude"
    summary = "Claude Code"
    program = Program(
        name="claude",
        oldest="2.1.0",
        install="npm install -g @anthropic-ai/claude-code",
        credentials="run claude once and log in, or set ANTHROPIC_API_KEY",
    )
    env = {  # noqa: RUF012
        "DISABLE_AUTOUPDATER": "1",  # an agent's program does not change under it
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",  # else every agent fetches a catalogue of plugins
    }
    launch = _LAUNCH
    adopt = _ADOPT
    passes = (
        *_LEAD_TO_A_MODEL,
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "ANTHROPIC_FOUNDRY_API_KEY",
        "ANTHROPIC_FOUNDRY_BASE_URL",
        "ANTHROPIC_FOUNDRY_RESOURCE",
        "ANTHROPIC_VERTEX_BASE_URL",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "AWS_ACCESS_KEY_ID",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLOUD_ML_REGION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "IS_SANDBOX",
        *NETWORK,
    )
    reports = proves = True
    rules = "claude.rules"
    erases = ("C-u", "C-k")  # to both sides of the cursor
    logs = ("claude/projects/*/*.jsonl", "claude/projects/*/*/subagents/*.jsonl")

    def command(self, args: list[str]) -> list[str]:
        check_args(args, _OURS)
        return ["claude", *args]

    def headless(self, args: list[str]) -> list[str]:
        stream = "--print --input-format stream-json --output-format stream-json --verbose"
        return [*self.command(args), *stream.split()]

    def with_model(self, model: str) -> list[str]:
        return ["--model", model]

    def permissions(self, policy: str, allow: Sequence[str]) -> Permissions | None:
        """What is not on the list is refused, and the model told so: nobody is asked. It may write in the work dir, and
        where its result goes, which `seed` adds; to commands for files it applies the same rules. A command with a
        variable in it is never on the list, so it must be able to see where that is."""
        commands = [f"{command}:*" for command in (*allow, *_FOR_FILES)] + [f"printenv {name}" for name in _RESULTS]
        rules = [*(f"Bash({command})" for command in commands), "Edit(./**)"]
        return {
            BYPASS: Permissions(args=["--dangerously-skip-permissions"]),
            ALLOWLIST: Permissions(args=["--permission-mode", "dontAsk", "--allowedTools", *rules]),
        }.get(policy)

    def line(self, text: str) -> str:
        return jsonline.dumps({"type": "user", "message": {"role": "user", "content": text}})

    def credentials(self, user_home: str) -> dict[str, str]:
        return {"claude/.credentials.json": f"{_users_directory(user_home)}/.credentials.json"}

    def has_credentials(self, env: Mapping[str, str], user_home: str | None) -> bool:
        settings = _read(f"{_users_directory(user_home)}/settings.json") if user_home else {}
        env = {**env, **held} if isinstance(held := settings.get("env"), dict) else env
        if any(env.get(name) for name in _LEAD_TO_A_MODEL):
            return True
        if user_home is None:
            return False
        if any(map(os.path.exists, self.credentials(user_home).values())) or os.uname().sysname == "Darwin":
            return True  # on macOS they are in the keychain, which nobody is asked for without a reason
        return "apiKeyHelper" in settings

    def seed(self, seat: Seat) -> Seed:
        home = seat.user_home
        theirs = _users_directory(home) if home else None
        settings = _settings(_read(f"{theirs}/settings.json") if theirs else {}, seat.directory)
        account = _read(_users_account(home)) if home else {}
        key = seat.env.get("ANTHROPIC_API_KEY", "")
        links = {f"claude/{name}": f"{theirs}/{name}" for name in _LINKED} if theirs else {}
        return Seed(
            files={
                "claude/settings.json": jsonline.dumps(settings),
                "claude/.claude.json": jsonline.dumps(_accepted(account, seat.agent.work_dir, key)),
                "hook": hook_script(),
            },
            links=links,
            env={
                "CLAUDE_CONFIG_DIR": f"{seat.directory}/claude",
                "MNGR_SESSION": session_id(seat.agent.id),
                "MNGR_PROJECT": _project(seat.agent.work_dir),
            },
        )

    def judge(self, claim: str, screen: str, tail: str) -> tuple[str, str] | None:
        from mngr.agents.screen import rules

        seen = rules(self.rules).read(screen)
        state = claim.partition(" ")[0]
        if seen.dialog:
            if state == WAITING:
                return None
            return WAITING, "question" if seen.dialog == "question" else f"dialog: {seen.dialog}"
        if state == WAITING:  # before a dialog, which is answered: the next hook comes only when the tool has run
            answered = seen.composer is not None
            return ((RUNNING, "") if seen.busy else (WAITING, "turn over")) if answered else None
        if seen.retry:
            if "limit" in seen.retry.lower():
                return WAITING, f"rate limit: {seen.retry}"
            return RUNNING, f"retrying: {seen.retry}"
        if state == STARTING or seen.composer is None:
            return None
        return (WAITING, "interrupted") if not seen.busy and _interrupted(tail, seen.composer) else None

    def receipt(self, record: Mapping[str, object], text: str) -> str | None:
        from mngr.agents.claude_receipt import receipt

        return receipt(record, text)

    def reader(self) -> LogReader:
        from mngr.agents.claude_log import ClaudeLog

        return ClaudeLog()


def _project(work_dir: str) -> str:
    """Its name for the directory that it works in."""
    path = os.path.realpath(work_dir)
    return "".join(char if char.isascii() and char.isalnum() else "-" * (1 + (char > "\uffff")) for char in path)


def _users_directory(home: str) -> str:
    """Not that of the agent that we may be inside of."""
    chosen = "" if "MNGR_AGENT_ID" in os.environ else os.environ.get("CLAUDE_CONFIG_DIR")
    return chosen or f"{home}/.claude"


def _users_account(home: str) -> str:
    directory = _users_directory(home)
    return f"{home}/.claude.json" if directory == f"{home}/.claude" else f"{directory}/.claude.json"


def _read(path: str) -> dict[str, object]:
    """A file of the user's; one that is missing or broken says nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            found = jsonline.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _settings(theirs: Mapping[str, object], directory: str) -> dict[str, object]:
    """The user's, with our hooks beside theirs, and with leave to write where its result goes, but not to its own hooks
    and settings beside that. A waiting terminal with a spinner costs 16 % of a core, without 2 %."""
    allowed: dict[str, object] = dict(found) if isinstance(found := theirs.get("permissions"), dict) else {}
    rules = found if isinstance(found := allowed.get("allow"), list) else []
    handing_in = [f"Edit(/{directory}/{place})" for place in ("result.json*", "artifacts/**")]  # // is the root's
    hooks: dict[str, object] = dict(found) if isinstance(found := theirs.get("hooks"), dict) else {}
    for event in HOOKS:
        held = hooks.get(event)
        matcher = {"matcher": _ASKING} if event == "PreToolUse" else {}
        command = f"sh {quote(directory + '/hook')} {event} lags"  # its log does: see there
        ours = {**matcher, "hooks": [{"type": "command", "command": command, "timeout": 30}]}
        hooks[event] = [*(held if isinstance(held, list) else []), ours]
    kept = {name: value for name, value in theirs.items() if name != "disableAllHooks"}  # without ours it has no state
    return {
        **kept,
        "hooks": hooks,
        "permissions": {**allowed, "allow": [*rules, *handing_in]},
        "cleanupPeriodDays": 36500,  # its log is the agent's memory, however long it was stopped
        "prefersReducedMotion": True,
        "promptSuggestionEnabled": False,
        "skipDangerousModePermissionPrompt": True,
        "spinnerTipsEnabled": False,
    }


def _accepted(theirs: Mapping[str, object], work_dir: str, key: str) -> dict[str, object]:
    """What it asks at a first start, answered: to make an agent here is to trust this directory, and to give it a key
    is to want it used. Which dialogs each member prevents was found by leaving it out."""
    project = {
        "hasTrustDialogAccepted": True,
        "hasCompletedProjectOnboarding": True,
        "hasClaudeMdExternalIncludesApproved": True,
        "projectOnboardingSeenCount": 5,
        "allowedTools": [],
        "mcpServers": {},
    }
    return {
        "theme": "dark",
        **{name: theirs[name] for name in _FROM_USER if name in theirs},
        "hasCompletedOnboarding": True,
        "lastOnboardingVersion": "99.0.0",
        "hasAcknowledgedCostThreshold": True,
        "effortCalloutDismissed": True,
        "bypassPermissionsModeAccepted": True,
        "autoUpdates": False,
        "numStartups": 5,
        "messageIdleNotifThresholdMs": 1000,
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
        "projects": dict.fromkeys((work_dir, os.path.realpath(work_dir)), project),
    }


def _interrupted(tail: str, typed: str) -> bool:
    """Its log ends with the interruption; or, when nothing had been answered yet, it has taken the last prompt back:
    that stands where one types."""
    from mngr.agents.claude_receipt import interrupted

    return interrupted(tail, typed)


CLAUDE = ClaudeType()
