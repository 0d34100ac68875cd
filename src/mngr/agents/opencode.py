"""`opencode`: OpenCode. It runs with the user's own configuration and credentials, and a database of its own below the
agent's directory. A plugin in its process (opencode_plugin.js) tells its state and writes the log of its sessions.
Without its terminal interface it does one turn per process: turns.sh runs one for each message.

Of the database and that log the log counts: it is what snapshots keep and clones get. Where there is no database, it is
made from the log before the program starts."""

from __future__ import annotations

import os

from mngr import jsonline
from mngr.agents import ALLOWLIST, BYPASS, NETWORK, AgentType, Permissions, Program, Seat, Seed, check_args, turns
from mngr.hosts import read_script
from mngr.model import STARTING, UNKNOWN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.log import LogReader

_OURS = ("-s", "--session", "-c", "--continue", "--fork", "--prompt", "--pure")
# Of those that its terminal has: such a word alone is chosen from the list that opens over it.
_COMMANDS = ("/clear", "/compact", "/new")
# On every list: its rule for directories keeps them where they belong. Not cat: what the shell redirects has none.
_FOR_FILES = ("cp", "mkdir", "mv", "printenv", "rm", "touch")
_KEYS = (
    "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_PROFILE",
    "AZURE_API_KEY",
    "CEREBRAS_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZHIPU_API_KEY",
)

# What turns.sh calls.
_TURN = """\
take_turn() { # take_turn COMMAND...: the message is on standard input
  log=''
  [ ! -s "$d/conversation" ] || { read -r session && IFS= read -r log; } <"$d/conversation"
  [ ! -s "$log" ] || set -- "$@" -s "$session"
  "$@"
}

failure() { # failure OUTPUT: what it said of why the turn failed
  told=$(grep '^{"type":"error"' "$1" | tail -n 1)
  [ -n "$told" ] || return 1
  case $told in *'"statusCode":429'*) kind=rate_limit ;; *) kind=api_error ;; esac
  told=${told#*'"message":"'} told=${told%%'"'*}
}"""

# $1: session, $2: log of the other agent
_ADOPT = """\
session=$MNGR_SESSION
own_log=$MNGR_AGENT_DIR/opencode/log/$MNGR_SESSION.jsonl
mkdir -p "${own_log%/*}" &&
  LC_ALL=C sed -e "s/$1/$MNGR_SESSION/g" -e '${/}$/!d;}' "$2" >"$own_log"
"""


class OpenCodeType(AgentType):
    name = "opencode"
    summary = "OpenCode"
    program = Program(
        name="opencode",
        oldest="1.18.0",
        install="npm install -g opencode-ai",
        credentials="opencode auth login, or set ANTHROPIC_API_KEY or the like, or name a model in its configuration",
    )
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}  # noqa: RUF012 - an agent's program does not change under it
    launch = read_script(__file__, "opencode_launch.sh")
    adopt = _ADOPT
    passes = (
        *_KEYS,
        "ANTHROPIC_BASE_URL",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_RESOURCE_NAME",
        "GOOGLE_CLOUD_PROJECT",
        *NETWORK,
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_PERMISSION",
        "VERTEX_LOCATION",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    )
    reports = proves = True
    rules = "opencode.rules"
    logs = ("opencode/log/*.jsonl",)

    def command(self, args: list[str]) -> list[str]:
        check_args(args, _OURS)
        return ["opencode", *args]

    def headless(self, args: list[str]) -> list[str]:
        program, *options = self.command(args)
        return [program, "run", "--format", "json", *options]

    def with_model(self, model: str) -> list[str]:
        return ["--model", model]

    def permissions(self, policy: str, allow: Sequence[str]) -> Permissions | None:
        """Of its rules the last that fits counts. What is not on the list is refused, not asked for. What may be
        run may be run for a limited time."""
        lines = [*allow, *(f"timeout * {command}" for command in allow), *_FOR_FILES]
        commands = {pattern: "allow" for line in lines for pattern in (line, f"{line} *")}
        allowed: dict[str, object] = {"edit": "allow", "bash": {"*": "deny", **commands}, "external_directory": "deny"}
        rules: dict[str, dict[str, object]] = {BYPASS: {"*": "allow"}, ALLOWLIST: allowed}
        return Permissions(env={"OPENCODE_PERMISSION": jsonline.dumps(rules[policy])}) if policy in rules else None

    def credentials(self, user_home: str) -> dict[str, str]:
        return {"opencode/auth.json": f"{_place(user_home, 'XDG_DATA_HOME', '.local/share')}/auth.json"}

    def has_credentials(self, env: Mapping[str, str], user_home: str | None) -> bool:
        """Without any it takes a model that its makers offer, and sends them all that it is told. Who names it may."""
        if any(env.get(name) for name in _KEYS) or _chooses(env.get("OPENCODE_CONFIG_CONTENT", "")):
            return True
        if user_home is None:
            return False
        if any(_table(_text(path)) for path in self.credentials(user_home).values()):
            return True
        configured = _place(user_home, "XDG_CONFIG_HOME", ".config")
        files = [f"{configured}/{name}" for name in ("config.json", "opencode.json", "opencode.jsonc")]
        return any(_chooses(_text(path)) for path in (*files, env.get("OPENCODE_CONFIG", "")))

    def seed(self, seat: Seat) -> Seed:
        theirs = _place(seat.user_home, "XDG_STATE_HOME", ".local/state") if seat.user_home else ""
        shown = {**_table(_text(f"{theirs}/kv.json")), "animations_enabled": False, "sidebar": "hide"}
        given = _table(seat.env.get("OPENCODE_CONFIG_CONTENT", ""))
        plugins = found if isinstance(found := given.get("plugin"), list) else []
        config = {
            "share": "disabled",
            "autoupdate": False,
            **given,
            "plugin": [*plugins, f"{seat.directory}/opencode/plugin.js"],
        }
        allowed = _table(seat.env.get("OPENCODE_PERMISSION", ""))
        return Seed(
            files={
                **(turns.laid(_TURN) if seat.agent.headless else {}),
                "opencode/plugin.js": read_script(__file__, "opencode_plugin.js"),
                "opencode/import.awk": read_script(__file__, "opencode_import.awk"),
                "opencode/state/opencode/kv.json": jsonline.dumps(shown),
                "opencode/state/opencode/model.json": _text(f"{theirs}/model.json") or "{}",
            },
            env={
                "OPENCODE_CONFIG_CONTENT": jsonline.dumps(config),
                "OPENCODE_DB": f"{seat.directory}/derived/opencode.db",
                "MNGR_SESSION": f"ses_{seat.agent.id}",
                **({"OPENCODE_PERMISSION": jsonline.dumps(_with_own(allowed, seat.directory))} if allowed else {}),
            },
        )

    def judge(self, claim: str, screen: str, tail: str) -> tuple[str, str] | None:
        """The plugin is there before the screen is: one that has not spoken by then never will."""
        from mngr.agents.screen import rules

        seen = rules(self.rules).read(screen)
        if claim == STARTING and seen.composer is not None:
            return UNKNOWN, "OpenCode has not loaded the plugin that tells its state"
        if seen.dialog and not claim.startswith(WAITING):
            return WAITING, f"dialog: {seen.dialog}"
        return None

    def typed(self, text: str) -> str:
        """It does not trim: the blank is for what would open a list, of files or of commands."""
        opens = text.split()[-1].startswith(("@", "/")) and text not in _COMMANDS
        return super().typed(text) if opens else text

    def receipt(self, record: Mapping[str, object], text: str) -> str | None:
        from mngr.agents.opencode_log import receipt

        return receipt(record, text) or turns.receipt(record, text)

    def line(self, text: str) -> str:
        return turns.line(text)

    def reader(self) -> LogReader:
        from mngr.agents.opencode_log import OpenCodeLog

        return OpenCodeLog()


def _place(home: str, variable: str, default: str) -> str:
    """Where it keeps what is the user's."""
    return f"{os.environ.get(variable) or f'{home}/{default}'}/opencode"


def _with_own(rules: Mapping[str, object], directory: str) -> dict[str, object]:
    """The same, and it may hand in its result, which does not lie in its work dir."""
    outside = rules.get("external_directory", {})
    general = outside if isinstance(outside, dict) else {"*": outside}
    return {**rules, "external_directory": {**general, f"{directory}/*": "allow"}}


def _chooses(config: str) -> bool:
    """It names a model or a provider; comments may stand in it, which JSON does not know."""
    return '"provider"' in config or '"model"' in config


def _text(path: str) -> str:
    """Of a file of the user's; one that is missing or broken says nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _table(text: str) -> dict[str, object]:
    try:
        found = jsonline.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


OPENCODE = OpenCodeType()
