"""events: the history of agents."""

from __future__ import annotations

import sys
import time

from mngr.cli.output import JSON_OPTIONS, clean, print_json
from mngr.cli.selection import SELECTION, SELECTORS, selection
from mngr.errors import NoSuchAgent
from mngr.fleet.fleet import Fleet
from mngr.fleet.history import LATEST, history
from mngr.fleet.select import select
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.select import Selection
    from mngr.grammar import Args
    from mngr.model import Ref


@command(
    "events",
    summary="show what happened to agents",
    usage=["events SELECTION [--follow] [--json | --jsonl]"],
    about="""Prints the recorded events of the agents (created, running, exited, stopped, started, ...) in the order
in which they happened; with --follow it goes on with what happens, until Ctrl-C, also to agents that are made
meanwhile and match.""",
    arguments=[SELECTION],
    options=[*SELECTORS, option("-f, --follow", "go on with what happens"), *JSON_OPTIONS],
    examples=[
        ("mngr events fix-login", "its history"),
        ("mngr events --all --follow --jsonl", "a stream for a script"),
    ],
)
def events(args: Args) -> int:
    fleet = Fleet()
    wanted = selection(args)
    refs = select(fleet, wanted)
    names = {ref.id: ref.name for ref in refs}

    def show(event: dict[str, object]) -> None:
        named = {"name": names.get(str(event.get("agent")), "?"), **event}
        if args.flag("json") or args.flag("jsonl"):
            print_json(named, indent=None)
        else:
            print(_line(named))
        sys.stdout.flush()

    if not args.flag("follow"):
        found = history(fleet, refs)
        if args.flag("json"):
            print_json([{"name": names.get(str(event.get("agent")), "?"), **event} for event in found])
            return 0
        for event in found:
            show(event)
        return 0
    from mngr.fleet.follow import Feed, followable

    others: set[str] = set()
    with Feed(followable(fleet, fleet.host_names())) as feed:
        for event in history(fleet, refs):
            show(event)
        for event in feed.events():
            id = str(event.get("agent"))
            if id not in names and id not in others:  # a new one: is it meant too?
                others.add(id)
                names |= {ref.id: ref.name for ref in _meant_now(fleet, wanted)}
            if id in names:
                show(event)
    return 0


def _meant_now(fleet: Fleet, wanted: Selection) -> list[Ref]:
    try:
        return select(fleet, wanted)
    except NoSuchAgent:
        return []  # those that the words named have gone meanwhile


def _line(event: dict[str, object]) -> str:
    when = event.get("time")
    known = isinstance(when, int | float) and 0 <= when < LATEST
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when)) if known else "?"  # type: ignore[arg-type]
    rest = " ".join(f"{key}={value}" for key, value in event.items() if key not in ("time", "agent", "event", "name"))
    return clean(f"{stamp}  {event['name']}  {event.get('event')}" + (f"  {rest}" if rest else ""))
