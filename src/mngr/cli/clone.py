"""clone: a new agent that starts where another one is."""

from __future__ import annotations

from mngr.cli.made import connect_if_wanted, show
from mngr.cli.output import JSON_OPTION, notice
from mngr.fleet.create import create
from mngr.fleet.fleet import Fleet
from mngr.fleet.plan import Request
from mngr.fleet.select import one_ref
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "clone",
    summary="make a new agent from an existing one",
    usage=["clone AGENT [NEW] [-- ARGS...]"],
    about="""Makes a new agent with the type, command, labels, windows and environment of another, on a branch of its
own that starts at the other's commit, with its uncommitted and untracked files in place. The other is not disturbed.
It is the same as `mngr create NEW --from AGENT`; use that for further options.""",
    arguments=[
        Argument(name="AGENT", help="the agent to clone", completes="agents"),
        Argument(name="NEW", help="name of the new one (default: made up)", optional=True),
    ],
    rest="ARGS",
    options=[option("--[no-]connect", "attach to it afterwards (default: only in a terminal)"), JSON_OPTION],
    examples=[("mngr clone fix-login fix-login-b", "two ways from here")],
)
def clone(args: Args) -> int:
    fleet = Fleet()
    one_ref(fleet, args.words[0])
    agents = create(fleet, Request(address=args.word(1), source=args.words[0], args=args.rest), notice)
    show(args, agents)
    return connect_if_wanted(args, fleet, agents)
