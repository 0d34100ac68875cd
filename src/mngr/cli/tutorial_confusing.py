"""tutorial confusing: which parts of an interface confuse its users most, with examples."""

from __future__ import annotations

import time

from mngr.cli.output import JSON_OPTION, clean, notice, print_json
from mngr.cli.selection import FILTERS, SELECTION, selection
from mngr.cli.usage import moment
from mngr.errors import HostUnreachable, NoSuchAgent, TimedOut, UsageError
from mngr.fleet.fleet import Fleet
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.fleet.select import Selection
    from mngr.grammar import Args
    from mngr.tutorial.confusion import Rank, Signal


@command(
    "tutorial confusing",
    summary="show which commands confuse agents most",
    usage=["tutorial confusing [SELECTION] [--program NAME] [--since TIME] [--json]"],
    about="""Ranks the subcommands of a program by what went wrong with them: proposals that a person rejected with a
reason (3 points each), calls that failed with a usage error (2), options that were tried and do not exist (2), and help
that was asked for again in the same conversation (1). Each comes with up to three examples: what was tried, what it
said, and where.

It reads the transcripts of agents, that is, the shell commands that they ran and what these said: exit code 2, or a
line that only a usage error has. Without a selection it reads those of all agents that keep one, and what
mngr tutorial fill has put down in confusion.jsonl in MNGR_HOME.

--json prints an object with `program` and the list `subcommands`, each with `subcommand`, `weight`, `counts` by kind
(rejected, usage-error, unknown-flag, help) and `examples` (`time`, `kind`, `subcommand`, `words`, `detail`, `source`).
""",
    arguments=[SELECTION],
    options=[
        *FILTERS,
        option("--program NAME", "the program whose interface is looked at (default: mngr)"),
        option("--since TIME", "only what happened since then: 24h, 7d, 2026-11-01"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr tutorial confusing", "what agents get wrong about mngr"),
        ("mngr tutorial confusing 'fix-*' --program gh --since 7d", "about another program"),
    ],
)
def confusing(args: Args) -> int:
    from mngr.tutorial.confusion import PROGRAM, kept, rank

    fleet, wanted, program = Fleet(), selection(args), args.text("program") or PROGRAM
    since = args.text("since")
    begin = moment(since) if since else float("-inf")
    signals = list(_heard(fleet, wanted, program))
    if _is_everybody(wanted):
        signals += kept(fleet.home, program)
    ranks = rank(signal for signal in signals if signal.time >= begin)
    if args.flag("json"):
        print_json({"program": program, "subcommands": [_plain(each) for each in ranks]})
    elif ranks:
        for each in ranks:
            _show(each, program)
    else:
        print(f"nothing about {clean(program)} has confused anybody")
    return 0


def _heard(fleet: Fleet, wanted: Selection, program: str) -> Iterator[Signal]:
    """From the logs of each agent that has some. Nobody is left out because of another."""
    from mngr.fleet.select import select
    from mngr.fleet.transcript import Transcript
    from mngr.tutorial.confusion import from_entries

    everybody = _is_everybody(wanted)
    for ref in select(fleet, wanted.replace(all=True) if everybody else wanted):
        try:
            yield from from_entries(Transcript(fleet, ref).entries(), program, ref.name)
        except (UsageError, NoSuchAgent, HostUnreachable, TimedOut) as error:
            if not everybody or not isinstance(error, UsageError):
                notice(clean(error.message))


def _is_everybody(wanted: Selection) -> bool:
    return not (wanted.words or wanted.filters or wanted.nobody)


def _show(rank: Rank, program: str) -> None:
    name = program if rank.subcommand == program else f"{program} {rank.subcommand}"
    counts = ", ".join(f"{number} {kind}" for kind, number in rank.counts.items())
    print(clean(f"{name}: {rank.weight} ({counts})"))
    for signal in rank.examples:
        for line in signal.words.split("\n"):
            print(f"    {clean(line.expandtabs())}")
        where = f"{signal.source}, {_day(signal.time)}" if signal.time else signal.source
        said = " ".join(signal.detail.split())
        print(f"        {clean(f'{signal.kind}: {said} ({where})')}")


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def _plain(rank: Rank) -> dict[str, object]:
    return {**rank.to_dict(), "examples": [signal.to_dict() for signal in rank.examples]}
