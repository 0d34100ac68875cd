"""What follows when agents were made, by create or by clone: their names are printed, and one is connected to."""

from __future__ import annotations

import os
import sys

from mngr.cli.output import notice, on_terminal, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.grammar import Args
    from mngr.model import Agent


def show(args: Args, agents: list[Agent]) -> None:
    if args.flag("json"):
        print_json([agent.to_dict() for agent in agents])
    else:
        for agent in agents:
            print(agent.name)
    sys.stdout.flush()


def connect_if_wanted(args: Args, fleet: Fleet, agents: list[Agent]) -> int:
    """Wanted: said, or one agent in a terminal (but not an agent's own, which would be stuck in it), or a command that
    connects in place of the attach."""
    own_command = args.text("connect_command")
    if own_command is None:
        own_command = fleet.config.text("commands.create.connect_command")
    by_itself = own_command is not None or (on_terminal() and "MNGR_AGENT_ID" not in os.environ)
    wanted = args.flag("connect", default=len(agents) == 1 and by_itself)
    if not wanted or args.flag("json"):
        return 0
    if len(agents) > 1:
        notice("several agents were made: connect to one of them by name")
        return 0
    from mngr.fleet.connect import connect

    return connect(fleet, agents[0].ref, own_command, notice)
