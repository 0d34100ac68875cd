"""connect: the live terminal of an agent; or what the user has put in its place (`connect_command`)."""

from __future__ import annotations

import os
import sys

from mngr import hosts, process
from mngr.errors import HostUnreachable, MngrError, NoSuchAgent
from mngr.process import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.fleet import Fleet
    from mngr.hosts import Host
    from mngr.model import Ref

_LOST = 255  # what clients (ssh) end with when the connection does; tmux does not
# What tmux on the other side can no longer do: leave its own screen, and give mouse, cursor, keys and colours back.
_AS_BEFORE = (
    "\033[?1049l\033[?1000l\033[?1002l\033[?1003l\033[?1004l\033[?1006l\033[?2004l\033[?1l\033>\033[?25h\033[0m\r\n"
)
_INSIDE = "MNGR_INSIDE_CONNECT_COMMAND"
_LOOK = """
d=$H/agents/{id}
[ -d "$d" ] || exit 3
[ -S "$S" ] && t has-session -t '={id}' 2>/dev/null && exit 0
[ -s "$d/exit" ] && exit 4
exit 5
"""


def connect(fleet: Fleet, ref: Ref, command: str | None, tell: Callable[[str], None]) -> int:
    """Attach, bringing a stopped agent back first; the exit code of whatever did it."""
    if fleet.is_stopped(ref.host):
        from mngr.fleet.hosting import wake

        wake(fleet, [ref.host], tell)
    host = fleet.host(ref.host)
    _ensure_session(fleet, ref, host, tell)
    if command and not os.environ.get(_INSIDE):
        return _run_command(host, ref, command)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        tell(f"not a terminal, so not attached: mngr connect {ref.name} does it in one")
        return 0
    if os.environ.get("TMUX"):
        return _in_a_window(host, ref, tell)
    sys.stdout.flush()
    words = host.argv(_attach(host, ref), [], tty=True)
    if host.lines is None:
        return os.execvp(words[0], words)
    code = process.run_in_front(words)
    if code == _LOST:
        sys.stdout.write(_AS_BEFORE)
        sys.stdout.flush()
        raise HostUnreachable(_broke_off(ref), f"mngr connect {ref.name} attaches again")
    return code


def _broke_off(ref: Ref) -> str:
    return f"the connection to {ref.host} broke off; {ref.name} goes on there"


def _ensure_session(fleet: Fleet, ref: Ref, host: Host, tell: Callable[[str], None]) -> None:
    code = hosts.run(host, _LOOK.replace("{id}", ref.id), deadline=20).code
    if code == 0:
        return
    if code == 3:
        raise NoSuchAgent(f"{ref.name} is known by name but not there any more", "mngr gc clears such names")
    if code == 4:
        raise MngrError(f"{ref.name} has ended and its screen is gone", f"mngr start {ref.name} runs it again")
    from mngr.fleet.start import start

    for outcome in start(fleet, [ref]):
        if not outcome.ok:
            raise MngrError(f"{ref.name}: {outcome.why}")
        tell(f"{ref.name} was stopped: started again")


def _attach(host: Host, ref: Ref) -> str:
    return f"unset TMUX; exec tmux -u -S {quote(host.socket)} attach-session -t ={ref.id}"


def _in_a_window(host: Host, ref: Ref, tell: Callable[[str], None]) -> int:
    """Inside the user's own tmux: a window there that attaches, instead of one tmux inside the other."""
    line = " ".join(quote(word) for word in host.argv(_attach(host, ref), [], tty=True))
    if host.lines is not None:  # the window would close over what was said
        said = f"mngr: {_broke_off(ref)} (mngr connect {ref.name} attaches again)"
        line += f"; [ $? != {_LOST} ] || {{ printf '\\n%s\\n' {quote(said)}; read -r _; }}"
    done = process.run(["tmux", "new-window", "-n", ref.name, line], deadline=20)
    if done.code:
        raise MngrError(f"your tmux opened no window: {done.err.strip() or done.code}")
    tell(f"{ref.name} is in a new window of your tmux")
    return 0


def _run_command(host: Host, ref: Ref, command: str) -> int:
    """As a child that we wait for, with or without a terminal. A `mngr connect` inside it attaches for real."""
    env = {
        **os.environ,
        _INSIDE: "1",
        "MNGR_AGENT_NAME": ref.name,
        "MNGR_AGENT_ID": ref.id,
        "MNGR_AGENT_TYPE": ref.type,
        "MNGR_AGENT_DIR": f"{host.home}/agents/{ref.id}",
        "MNGR_AGENT_HOST": ref.host,
        "MNGR_SESSION": ref.id,
        "MNGR_TMUX_SOCKET": host.socket,
        "MNGR_WORK_DIR": hosts.check(host, f'. "$H/agents/{ref.id}/env" && printf %s "$MNGR_WORK_DIR"', deadline=20),
        "MNGR_HOME": host.home,
    }
    sys.stdout.flush()
    return process.run_in_front(["/bin/sh", "-c", command], env=env)
