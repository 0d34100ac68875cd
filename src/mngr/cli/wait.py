"""wait: until agents are in some state."""

from __future__ import annotations

from mngr.cli.list import item
from mngr.cli.output import JSON_OPTION, print_json
from mngr.cli.selection import SELECTION, SELECTORS, chosen
from mngr.errors import UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.wait import WANTS_YOU
from mngr.fleet.wait import wait as wait_for
from mngr.grammar import command, option
from mngr.model import STATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.survey import Status
    from mngr.grammar import Args


@command(
    "wait",
    summary="wait until agents are in a state",
    usage=["wait SELECTION [--for STATE[,STATE]] [--any] [--timeout TIME]"],
    about="""Waits until all selected agents, or with --any one of them, are in one of the states. It follows the feed
of their hosts and wakes on the event itself. Each agent is printed, with its state, when it gets there.

Ends with 4 after --timeout, with 1 when it can no longer happen (waiting for done, and the agent failed), and with 3
when an agent is destroyed meanwhile. Without --for: until it wants you (waiting, done, failed or stopped).""",
    arguments=[SELECTION],
    options=[
        *SELECTORS,
        option("--for STATES", f"one or several of {', '.join(STATES)}, separated by commas", completes="states"),
        option("--any", "one of the agents is enough"),
        option("--timeout TIME", "give up after this time, with exit code 4"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr wait fix-login --for done,failed", "until its program has ended"),
        ("mngr wait 'try-*' --any --timeout 10m", "until the first of a group wants you"),
    ],
)
def wait(args: Args) -> int:
    states = (args.text("for") or ",".join(WANTS_YOU)).split(",")
    for state in states:
        if state not in STATES:
            raise UsageError(f"there is no state {state!r}", f"one of {', '.join(STATES)}")
    fleet = Fleet()
    as_json = args.flag("json")

    def reached(status: Status) -> None:
        if not as_json:
            print(f"{status.name} {status.state}", flush=True)

    found = wait_for(
        fleet,
        chosen(fleet, args),
        states,
        any=args.flag("any"),
        timeout=args.number("timeout"),
        reached=reached,
    )
    if as_json:
        print_json([item(status) for status in found])
    return 0
