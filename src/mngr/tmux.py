"""Everything we say to tmux, as text: the private server's configuration, and the commands that bring one agent's
session up. The `t` of common.sh and `up` of up.sh are the only callers of the program itself.

Sessions are named by the agent's id, so a rename touches nothing that a target could miss; targets are exact (`=id:`).
The pane of the agent itself carries the option @mngr: by it the list and the pane-died hook tell it from others."""

from __future__ import annotations

import binascii
import os

from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.model import Agent

WIDTH, HEIGHT = 200, 50
MAIN_WINDOW = "agent"
PANE_FIELDS = "pane #{@mngr}|#{pane_dead}|#{pane_dead_status}|#{pane_dead_signal}|#{pane_pid}"

NO_SERVER = (
    "no current target",
    "no server running",
    "No such file",
    "onnection refused",
    "server exited",
    "lost server",
)


def server_config(home: str) -> str:
    """exit-empty: the server outlives its last agent. update-environment: attaching must not change what agents see.
    remain-on-exit-format: tmux's own line about the end would push the first line off a screen that is not full (3.2
    has no such option, hence -q). window-size is never set globally: that crashes tmux 3.3a. For `if -F` a text that
    begins with 0 is false, and ids may: so it is asked for a 1."""
    ending = "#{@mngr} #{pane_pid} '#{pane_dead_status}' '#{pane_dead_signal}'"
    died = quote(f"sh {_literal(quote(home + '/pane-died'))} {_literal(quote(home))} {ending}")
    return f"""\
set -g exit-empty off
set -g remain-on-exit on
set -gq remain-on-exit-format ''
set -g default-terminal screen-256color
set -g default-size {WIDTH}x{HEIGHT}
set -g history-limit 10000
set -g update-environment ''
set -g allow-rename off
set -g automatic-rename off
set -g focus-events on
set -s escape-time 20
set -sa terminal-features ',*:RGB'
set -g status-left ' #{{@name}} '
set -g status-left-length 64
set -g status-right ' #{{?pane_dead,it has ended; ,}}#{{prefix}} d leaves it#{{?pane_dead,, running}} '
set -g set-titles on
set -g set-titles-string '#{{@name}}'
set-hook -g client-attached 'set -w window-size latest'
set-hook -g client-detached "if -F '#{{session_attached}}' '' 'resize-window -t :={MAIN_WINDOW} -x {WIDTH} -y {HEIGHT}'"
unbind '$'
set-hook -g session-renamed {{ if -F '#{{?@id,1,}}' {{ rename-session '#{{@id}}' }} }}
set-hook -g pane-died {{ if -F '#{{?@stopping,,#{{?@mngr,1,}}}}' {{ run-shell -b {died} }} }}
source-file -q {quote(_no_glob(home) + "/tmux.user.conf")}
"""


PANE_DIED = r"""
# Run by the tmux server when the pane of an agent died. Its launcher has written how the program ended, unless the
# launcher itself was killed: then we do, and tell those who wait.
H=$1 id=$2 pid=$3 status=${4:--} signal=${5:--}
d=$H/agents/$id
[ ! -e "$d/exit" ] && read -r launcher _ <"$d/pid" && [ "$launcher" = "$pid" ] || exit 0
read -r state _ <"$d/state" && [ "$state" != stopped ] || exit 0
now=$(date +%s)
line="{\"time\":$now,\"agent\":\"$id\",\"event\":\"exited\",\"status\":\"$status\",\"signal\":\"$signal\"}"
printf '%s\n' "$line" >>"$d/events.jsonl"
printf '%s %s %s\n' "$now" "$status" "$signal" >"$d/exit"
printf '%s\n' "$line" >>"$H/feed"
""".lstrip()


def setup_lines(home: str) -> str:
    """Shell assignments that up.sh writes to files when they are missing. The name carries a checksum: a new version
    of the configuration gets a file of its own."""
    config = server_config(home)
    return f"CONF={binascii.crc32(os.fsencode(config)):08x} TMUX_CONF={quote(config)} PANE_DIED={quote(PANE_DIED)}\n"


def _literal(text: str) -> str:
    """For where tmux expands formats: a directory called `C#Sharp` is no session name, and `#(...)` is not run."""
    return text.replace("#", "##")


def _no_glob(path: str) -> str:
    return "".join(f"\\{char}" if char in "\\*?[" else char for char in path)


def session_commands(home: str, agent: Agent) -> str:
    """The tmux commands that bring this agent up; kept in its `session` file, which create and start feed to tmux."""
    target = f"={agent.id}:"
    launch = f"env -i TERM=screen-256color COLORTERM=truecolor sh {quote(f'{home}/agents/{agent.id}/launch')}"
    work, size = quote(_literal(agent.work_dir)), f"-x {WIDTH} -y {HEIGHT}"
    lines = [
        f"new-session -d -s {agent.id} -n {MAIN_WINDOW} {size} -c {work} {launch} agent",
        f"set -p -t {target} @mngr {agent.id}",
        f"set -w -t {target} window-size manual",
        f"set -t {target} @name {quote(agent.name)}",
        f"set -t {target} @id {agent.id}",  # whatever it is renamed to, it is called that again
        f"set -t {target} default-command {quote(launch + ' shell')}",
    ]
    lines += [
        f"new-window -d -t {target} -n {name} -c {work} {launch} {quote('window ' + name)}" for name in agent.windows
    ]
    lines.append(f"display -p -t {target} 'up {agent.id}'")
    return "\n".join(lines) + "\n"
