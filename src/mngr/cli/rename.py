"""rename: another name for an agent."""

from __future__ import annotations

from mngr.fleet.fleet import Fleet
from mngr.fleet.select import one_ref
from mngr.fleet.update import rename as give_name
from mngr.grammar import Argument, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "rename",
    summary="give an agent another name",
    usage=["rename AGENT NEW"],
    about="""Changes the name only. Work dir, branch and session stay as they are, so the running program notices
nothing; MNGR_AGENT_NAME changes at its next start.""",
    arguments=[
        Argument(name="AGENT", help="the agent's name", completes="agents"),
        Argument(name="NEW", help="its new name"),
    ],
    examples=[("mngr rename brave-otter fix-login", "a name to remember")],
)
def rename(args: Args) -> int:
    fleet = Fleet()
    agent = give_name(fleet, one_ref(fleet, args.words[0]), args.words[1])
    print(f"renamed {args.words[0]} to {agent.name}" + (f" (branch stays {agent.branch})" if agent.branch else ""))
    return 0
