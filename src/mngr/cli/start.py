"""start: bring stopped agents back."""

from __future__ import annotations

from mngr.cli.outcomes import report
from mngr.cli.output import JSON_OPTION, notice
from mngr.cli.selection import SELECTION, SELECTORS, chosen
from mngr.fleet.fleet import Fleet
from mngr.fleet.start import start as start_agents
from mngr.grammar import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "start",
    summary="bring stopped agents back",
    usage=["start SELECTION"],
    about="""Starts each agent again with the same command, environment and work dir, in a new tmux session. An agent
that runs already is left alone. One whose program lives on without its session (the tmux server was ended under it)
is refused: there must never be two copies. A host that stopped with its last agent is started first.""",
    arguments=[SELECTION],
    options=[*SELECTORS, JSON_OPTION],
    examples=[
        ("mngr start fix-login", "one"),
        ("mngr start --state stopped", "all that are stopped, for example after a reboot"),
    ],
)
def start(args: Args) -> int:
    fleet = Fleet()
    return report(args, start_agents(fleet, chosen(fleet, args), notice))
