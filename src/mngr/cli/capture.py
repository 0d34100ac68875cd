"""capture: the screen of agents as text."""

from __future__ import annotations

import sys

from mngr.cli.output import JSON_OPTION, print_json, tame
from mngr.cli.selection import SELECTION, SELECTORS, chosen
from mngr.errors import MngrError, SomeFailed
from mngr.fleet.fleet import Fleet
from mngr.fleet.screen import capture as read_screens
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "capture",
    summary="print the screen of agents as text",
    usage=["capture SELECTION [--full] [--colours] [--window NAME]"],
    about="""Prints what the agent's terminal shows now; with --full, what has scrolled away too. Also after its
program has ended, as long as its session is there. Several agents are read in one tmux call and printed under their
names.""",
    arguments=[SELECTION],
    options=[
        *SELECTORS,
        option("--full", "with everything that has scrolled away"),
        option("--colours", "keep the escape sequences for colours"),
        option("--window NAME", "another window of the agent than its own"),
        JSON_OPTION,
    ],
    examples=[("mngr capture fix-login", "one screen"), ("mngr capture --state waiting", "what they all ask")],
)
def capture(args: Args) -> int:
    fleet = Fleet()
    refs = chosen(fleet, args)
    window = args.text("window") or ""
    screens = read_screens(fleet, refs, full=args.flag("full"), colours=args.flag("colours"), window=window)
    missing = [ref.name for ref in refs if screens[ref.id] is None]
    if args.flag("json"):
        print_json([{"id": ref.id, "name": ref.name, "screen": screens[ref.id]} for ref in refs])
    else:
        for ref in refs:
            screen = screens[ref.id]
            if screen is not None:
                if sys.stdout.isatty():
                    screen = tame(screen, colours=args.flag("colours"))
                sys.stdout.write((f"== {ref.name}\n" if len(refs) > 1 else "") + screen)
    if missing and len(refs) == 1:
        what = f"has no window {window}" if window else "has no screen: it is stopped"
        raise MngrError(f"{missing[0]} {what}", None if window else f"mngr start {missing[0]}")
    if missing:
        raise SomeFailed(f"{len(missing)} of {len(refs)} have no screen: {', '.join(missing[:8])}")
    return 0
