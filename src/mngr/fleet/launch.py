"""The `launch` and `env` files of an agent: what tmux runs, under `env -i`, and the variables it sees."""

from __future__ import annotations

from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mngr.hosts import Host
    from mngr.model import Agent

_HEAD = """\
# Run by tmux under env -i: as the agent itself, as one of its further windows, or as a shell beside it.
d=${0%/*}
. "$d/env"
cd "$MNGR_WORK_DIR" || exit 1
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
echo $$ >"$d/pid"
now=$(date +%s)
printf 'running %s\\n' "$now" >"$d/state"
line="{\\"time\\":$now,\\"agent\\":\\"$MNGR_AGENT_ID\\",\\"event\\":\\"running\\"}"
printf '%s\\n' "$line" >>"$d/events.jsonl"
printf '%s\\n' "$line" >>"$MNGR_HOME/feed"
unset d now line
exec """


def launch_file(command: list[str], windows: Mapping[str, str]) -> str:
    """Everything up to the last line runs in the pane's own process: the program replaces this shell, no helper stays."""
    cases = "\n".join(f"  {quote('window ' + name)}) exec sh -c {quote(line)} ;;" for name, line in windows.items())
    words = " ".join(quote(word) for word in command)
    return _HEAD + (cases or "  none) ;;") + _TAIL + words


def own_environment(host: Host, agent: Agent) -> str:
    """The last part of the `env` file: what the user gave, then what mngr itself says, which nothing overrides."""
    directory = f"{host.home}/agents/{agent.id}"
    values = {
        "MNGR_HOME": host.home,
        "MNGR_AGENT_ID": agent.id,
        "MNGR_AGENT_NAME": agent.name,
        "MNGR_AGENT_DIR": directory,
        "MNGR_WORK_DIR": agent.work_dir,
        "MNGR_BRANCH": agent.branch or "",
        "MNGR_BASE": agent.base or "",
    }
    return f". {quote(directory + '/given')}\n" + exports(values)


def exports(values: Mapping[str, str]) -> str:
    return "\n".join(f"export {key}={quote(value)}" for key, value in values.items())
