"""stop: end agents and keep everything else of them. No short alias: hard to hit by accident."""

from __future__ import annotations

from mngr.cli.outcomes import report
from mngr.cli.output import JSON_OPTION, notice
from mngr.cli.selection import SELECTION, SELECTORS, chosen
from mngr.fleet.fleet import Fleet
from mngr.fleet.stop import GRACE
from mngr.fleet.stop import stop as stop_agents
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "stop",
    summary="end agents; start brings them back",
    usage=["stop SELECTION [--grace TIME] [--keep-host]"],
    about="""Ends the whole process tree of each agent, children that detached themselves included, and its tmux
session. Processes get TERM first, and KILL when they are still there after the grace time. Work dir, branch,
environment and history stay: `mngr start` and `mngr connect` bring the agent back.

An agent whose program has ended by itself stays done or failed; only its session goes.

A host that mngr made (a container, a sandbox) stops with the last agent that runs on it, and starts with the first that
is started again; --keep-host leaves it as it is.""",
    arguments=[SELECTION],
    options=[
        *SELECTORS,
        option("--keep-host", "leave a host that mngr made running, also without an agent that runs"),
        option("--grace TIME", f"patience before KILL (default: stop_grace of the configuration, {GRACE:g}s)"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr stop fix-login", "one"),
        ("mngr stop 'try-*' --grace 30s", "a group, with time to finish"),
        ("mngr stop --state waiting", "all that wait"),
    ],
)
def stop(args: Args) -> int:
    fleet = Fleet()
    refs = chosen(fleet, args)
    grace = args.number("grace")
    if grace is None:
        grace = fleet.config.number("stop_grace")
    patience = GRACE if grace is None else grace
    return report(args, stop_agents(fleet, refs, patience, keep_host=args.flag("keep_host"), tell=notice))
