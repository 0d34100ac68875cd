"""The words and options that choose agents, the same for every verb that acts on them."""

from __future__ import annotations

import sys

from mngr.cli.output import notice
from mngr.errors import UsageError
from mngr.grammar import Argument, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.fleet import Fleet
    from mngr.fleet.select import Selection
    from mngr.grammar import Args
    from mngr.model import Ref

SELECTION = Argument(
    name="SELECTION",
    help="names, globs such as 'fix-*', or - to read names from standard input",
    optional=True,
    many=True,
    completes="agents",
)
FILTERS = (
    option("--label K=V", "only agents with this label; K= for any value", many=True, completes="labels"),
    option("--state STATE", "only agents in this state", many=True, completes="states"),
    option("--type TYPE", "only agents of this type", many=True, completes="types"),
    option("--host HOST", "only agents on this host", many=True, completes="hosts"),
)
SELECTORS = (*FILTERS, option("-a, --all", "all agents"))


def chosen(fleet: Fleet, args: Args, words: list[str] | None = None) -> list[Ref]:
    """Who is meant. That it is nobody is no error, because verbs are joined by pipes; but silence would look like
    something done."""
    from mngr.fleet.select import select

    wanted = selection(args, words)
    refs = select(fleet, wanted)
    if not refs and not wanted.nobody:
        notice("no agent matches")
    return refs


def selection(args: Args, words: list[str] | None = None) -> Selection:
    from mngr.fleet.select import Selection

    given = args.words if words is None else words
    names: list[str] = []
    for word in given:
        names += sys.stdin.read().split() if word == "-" else [word]
    if given and not names:
        notice("no names on standard input")
    return Selection(
        words=names,
        nobody=bool(given) and not names,
        all=args.flag("all"),
        states=[state for given in args.many("state") for state in given.split(",")],
        labels=pairs(args.many("label"), "--label"),
        types=args.many("type"),
        hosts=args.many("host"),
    )


def pairs(given: list[str], what: str) -> dict[str, str]:
    """`K=V` words as a table."""
    table = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UsageError(f"{what} takes K=V, not {item!r}")
        table[key] = value
    return table
