"""connect: into the live terminal of an agent."""

from __future__ import annotations

from mngr.cli.output import notice
from mngr.fleet.connect import connect as attach
from mngr.fleet.fleet import Fleet
from mngr.fleet.select import one_ref
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "connect",
    summary="attach to an agent's terminal",
    usage=["connect AGENT [--connect-command CMD]"],
    about="""Attaches to the live terminal of the agent; a stopped one is started again first. The tmux keys apply:
prefix d (Ctrl-b d) leaves it running. While you are attached the window has the size of your terminal, afterwards
200x50 again.

Inside your own tmux a new window there attaches. `connect_command` in [commands.connect] or [commands.create] of the
configuration replaces the attach: it is run by sh with MNGR_AGENT_NAME, MNGR_AGENT_ID, MNGR_SESSION,
MNGR_TMUX_SOCKET, MNGR_WORK_DIR, MNGR_AGENT_DIR and MNGR_AGENT_HOST set, also without a terminal, and a `mngr connect`
inside it attaches for real.""",
    arguments=[Argument(name="AGENT", help="the agent's name", completes="agents")],
    options=[option("--connect-command CMD", "run this instead of attaching")],
    examples=[("mngr connect fix-login", "look and type; Ctrl-b d leaves")],
)
def connect(args: Args) -> int:
    fleet = Fleet()
    return attach(fleet, one_ref(fleet, args.words[0]), args.text("connect_command"), notice)
