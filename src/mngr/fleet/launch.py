"""The `launch` and `env` files of an agent: what tmux runs, under `env -i`, and the variables it sees."""

from __future__ import annotations

from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mngr.agents import AgentType
    from mngr.hosts import Host
    from mngr.model import Agent

_HEAD = """\
# Run by tmux under env -i: as the agent itself, as one of its further windows, or as a shell beside it.
# Its own variables begin with MNGR_, which nobody can give: one of the agent's must neither lead it astray nor be lost.
. "${0%/*}/env"
cd "${MNGR_WORK_DIR:?the env file is damaged}" || exit 1
case $1 in
shell) exec "${SHELL:-/bin/sh}" ;;
agent) ;;
*)
  case $1 in
"""
_TAIL = """
  esac
  exit 1
  ;;
esac
tell() { # tell EVENT [MEMBERS]: to the agent's history and to the feed that waiters follow
  MNGR_LINE="{\\"time\\":$MNGR_NOW,\\"agent\\":\\"$MNGR_AGENT_ID\\",\\"event\\":\\"$1\\"${2:+,$2}}"
  printf '%s\\n' "$MNGR_LINE" >>"$MNGR_AGENT_DIR/events.jsonl"
  # In between: who sees that it has ended finds that in its history, and who hears of it sees that it has.
  [ -z "${MNGR_EXIT:-}" ] || printf '%s\\n' "$MNGR_EXIT" >"$MNGR_AGENT_DIR/exit"
  printf '%s\\n' "$MNGR_LINE" >>"$MNGR_HOME/feed"
}
# This shell outlives the program, to keep how it ended: tmux's own hook misses some quick endings. The traps are reset
# in the program. HUP is not caught: it means that the session went away, which is no ending to be kept, and only when
# this shell goes does the kernel hang up the program too.
trap : INT QUIT TERM
MNGR_NOW=$(date +%s)
read -r MNGR_STATE _ 2>/dev/null <"$MNGR_AGENT_DIR/state"
[ "${MNGR_STATE:-}" != stopped ] || exit 0 # whoever stopped it was faster
[ ! -e "$MNGR_AGENT_DIR/exit" ] || rm -f "$MNGR_AGENT_DIR/exit" # somebody respawned the pane by hand
"""
_RUNNING = """\
printf 'running %s\\n' "$MNGR_NOW" >"$MNGR_AGENT_DIR/state"
tell running
"""
_STARTING = """\
printf 'starting %s\\n' "$MNGR_NOW" >"$MNGR_AGENT_DIR/state"
"""
_PIPE = """\
[ -p "$MNGR_AGENT_DIR/in" ] || mkfifo "$MNGR_AGENT_DIR/in"
exec <>"$MNGR_AGENT_DIR/in" # open for both, so that it has no end
"""
_END = """
sh -c 'echo "$PPID $$" >"$MNGR_AGENT_DIR/pid"; exec "$@"' sh "$@"
MNGR_STATUS=$?
read -r MNGR_STATE _ <"$MNGR_AGENT_DIR/state"
[ "$MNGR_STATE" = stopped ] && exit $MNGR_STATUS
MNGR_NOW=$(date +%s)
MNGR_EXIT="$MNGR_NOW $MNGR_STATUS -"
tell exited "\\"status\\":$MNGR_STATUS"
exit $MNGR_STATUS"""


def launch_file(agent: Agent, type: AgentType) -> str:
    """What tells its state itself is starting until it does so; anything else runs."""
    names = "\n".join(
        f"  {quote('window ' + name)}) exec sh -c {quote(line)} ;;" for name, line in agent.windows.items()
    )
    parts = [_HEAD, names or "  none) ;;", _TAIL, _STARTING if type.reports else _RUNNING]
    parts += [_PIPE if agent.headless else "", "set -- ", " ".join(map(quote, agent.command)), "\n", type.launch, _END]
    return "".join(parts)


def own_environment(host: Host, agent: Agent, seeded: Mapping[str, str]) -> str:
    """The last part of the `env` file: what the user gave, then what the type and mngr itself say, which nothing
    overrides."""
    directory = f"{host.home}/agents/{agent.id}"
    values = {
        **seeded,
        "MNGR_HOME": host.home,
        "MNGR_AGENT_ID": agent.id,
        "MNGR_AGENT_NAME": agent.name,
        "MNGR_AGENT_DIR": directory,
        "MNGR_WORK_DIR": agent.work_dir,
        "MNGR_BRANCH": agent.branch or "",
        "MNGR_BASE": agent.base or "",
        "MNGR_RESULT": f"{directory}/result.json",
        "MNGR_ARTIFACTS": f"{directory}/artifacts",
    }
    return f". {quote(directory + '/given')}\n" + exports(values)


def exports(values: Mapping[str, str]) -> str:
    return "\n".join(f"export {key}={quote(value)}" for key, value in values.items())
