"""host add, list, check, remove, stop, start: the places that agents are on."""

from __future__ import annotations

from mngr.cli.findings import show_findings
from mngr.cli.outcomes import error_of
from mngr.cli.output import JSON_OPTION, clean, notice, on_terminal, print_json, print_table
from mngr.cli.selection import pairs
from mngr.errors import HostUnreachable, MngrError, UsageError
from mngr.fleet import acquaint, hosting
from mngr.fleet.fleet import LOCAL, Fleet
from mngr.fleet.outcome import counted
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.acquaint import Sight
    from mngr.grammar import Args
    from mngr.hosts.place import Place
    from mngr.model import Ref

_HOST = Argument(name="HOST", help="HOST.PROVIDER, as in box.ssh", completes="places")


@command(
    "host add",
    summary="make a machine known, or known again",
    usage=[
        "host add HOST.ssh [--with KEY=VALUE]... [--accept-new] [--adopt]",
        "host add HOST.PROVIDER [--adopt]",
    ],
    about="""Goes there once, and keeps how. `create NAME@HOST.ssh` does that by itself for a machine that your ssh
reaches by that name; what your ssh does not know is said by --with: target, port, key, jump, home. Adding a host that
is known changes what is given, and checks it; an empty value takes one away.

The host key must be known to ssh. One that is not is refused: go there once yourself, or --accept-new. In a
terminal ssh may ask for a password or passphrase, for this one connection, which all verbs share while it lasts.

A host that mngr made and that nobody here knows any more (`mngr host list --discover`) is taken over. --adopt makes
the agents that are found there agents of this home; one whose name is taken here is told, and left out.""",
    arguments=[_HOST],
    options=[
        option("--with KEY=VALUE", "how it is reached: target, port, key, jump, home", many=True),
        option("--accept-new", "take a host key that ssh does not know yet as it is"),
        option("--adopt", "take the agents that are there into this home"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr host add box.ssh", "the machine that `ssh box` reaches"),
        ("mngr host add gpu.ssh --with target=ada@10.0.0.7 --with port=2222", "one that your ssh does not know"),
        ("mngr host add old.docker --adopt", "a container of yours, and its agents, after your home was lost"),
    ],
)
def add(args: Args) -> int:
    fleet = Fleet()
    name = acquaint.place_name(args.words[0])
    place, missing = acquaint.add(
        fleet,
        name,
        pairs(args.many("with"), "--with"),
        accept_new=args.flag("accept_new"),
        ask=on_terminal(),
    )
    adopted = acquaint.adopt(fleet, place) if args.flag("adopt") and not missing else acquaint.Adopted()
    if args.flag("json"):
        print_json({**_item(place), "missing": missing, **adopted.to_dict()})
    else:
        print(f"added {name}")
        for taken in adopted.taken:
            print(f"adopted {taken}")
    for clash in adopted.clashing:
        notice(f"{clash} is on {name} too, and stays out: another agent here has that name (mngr rename it first)")
    if missing:
        raise MngrError(
            f"{name} is known, but there is no {' and no '.join(missing)} on it", f"mngr host check {name} --install"
        )
    return 0


def _item(place: Place) -> dict[str, object]:
    return {"name": place.name, "home": place.home, "made": place.made, "options": place.options}


@command(
    "host list",
    summary="show the hosts that are known, and how they are",
    usage=["host list [--discover] [--json]"],
    about="""Shows this machine and every host that is known here: whether it answers, the agents on it, whether mngr
made it, and its system. All are asked at once, so that those which do not answer cost one deadline together.

--discover asks the providers as well, for hosts that mngr made and that nobody here knows: those are `new`, and
`mngr host add` takes them over. A provider that gives no answer is named; that is not the same as having none.""",
    options=[option("--discover", "ask the providers for hosts that are not known here"), JSON_OPTION],
    examples=[
        ("mngr host list", "what is there"),
        ("mngr host list --discover", "and what else mngr has made, on any of its providers"),
    ],
)
def list_(args: Args) -> int:
    fleet = Fleet()
    found = acquaint.look(fleet)
    silent: dict[str, str] = {}
    if args.flag("discover"):
        fresh, silent = acquaint.discover(fleet)
        found += fresh
    if args.flag("json"):
        unasked = [{"name": None, "provider": name, "state": "unreachable", "reason": silent[name]} for name in silent]
        print_json([*({**sight.to_dict(), "provider": _provider(sight)} for sight in found), *unasked])
        return 0
    print_table([_row(sight) for sight in found], ["NAME", "STATE", "AGENTS", "MADE", "SYSTEM"])
    for name, why in silent.items():
        notice(f"{name} was not asked: {clean(why)}")
    return 0


def _provider(sight: Sight) -> str:
    return sight.name.rpartition(".")[2]


def _row(sight: Sight) -> list[str]:
    state = f"{sight.state} ({sight.reason})" if sight.reason else sight.state
    agents = "-" if sight.state == "new" else str(len(sight.agents))
    return [sight.name, state, agents, "by mngr" if sight.made else "-", sight.system or "-"]


@command(
    "host check",
    summary="say what a host has and what it lacks",
    usage=["host check HOST [TYPE...] [--install]"],
    about="""Goes there and looks: the system, tmux and git with their versions, other programs that are needed, room
on the disk, the clock. It need not be known here. With a TYPE, or several, it looks for the programs of these agents
too. Exit code 1 when something is missing or too old.

--install has it put there by the package manager of that machine (apt-get, apk, dnf, yum, pacman, zypper, brew), and
the programs of agents by npm; with sudo where that takes root and needs no password. Credentials do not come along:
each agent gets its own, by -e, --pass-env or --copy-credentials of create.""",
    arguments=[
        _HOST,
        Argument(name="TYPE", help="agent type, as in claude", optional=True, many=True, completes="types"),
    ],
    options=[option("--install", "install what is missing"), JSON_OPTION],
    examples=[
        ("mngr host check box.ssh", "before the first agent goes there"),
        ("mngr host check box.ssh --install", "make it fit"),
        ("mngr host check box.ssh claude --install", "make it fit for agents of that type"),
    ],
)
def check(args: Args) -> int:
    fleet = Fleet()
    name = args.words[0] if args.words[0] == LOCAL else acquaint.place_name(args.words[0])
    types = list(dict.fromkeys(args.words[1:]))
    findings, lacks, manager = acquaint.check(fleet, name, types)
    if lacks and args.flag("install"):
        notice(f"installing {', '.join(lacks)} on {name}")
        acquaint.install(fleet, name, lacks, manager, types)
        findings, lacks, _ = acquaint.check(fleet, name, types)
        if not lacks:
            acquaint.settle_in(fleet, name)
    return show_findings(findings, json=args.flag("json"))


@command(
    "host remove",
    summary="take a host away, or forget it",
    usage=["host remove HOST [-f | --purge] [--forget]"],
    about="""A host that mngr made is taken away, with everything in it; one that stands somewhere is only forgotten,
and the connection to it closed. It refuses while agents of yours are there, unless -f destroys them as `mngr destroy
-f` does, and while snapshots or parked work are on a host that would go; --purge drops those too.

--forget is for a host that is gone for good: only what is known of it here goes, with -f also the names of its
agents.""",
    arguments=[_HOST],
    options=[
        option("-f, --force", "destroy the agents there; what they have and nobody else is parked for 14 days"),
        option("--purge", "destroy the agents there, and drop everything"),
        option("--forget", "do not go there: forget it, and with -f the agents there"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr host remove box.ssh", "no agent is there any more"),
        ("mngr host remove try.docker -f", "with its agents"),
        ("mngr host remove stolen.ssh --forget -f", "nobody will ever reach it again"),
    ],
)
def remove(args: Args) -> int:
    fleet = Fleet()
    place = _place(fleet, args.words[0])
    refs = hosting.agents_on(fleet, place.name)
    force, purge = args.flag("force") or args.flag("purge"), args.flag("purge")
    if refs and not force:
        names = ", ".join(ref.name for ref in refs[:5]) + (", ..." if len(refs) > 5 else "")
        how = "-f forgets them too" if args.flag("forget") else "mngr destroy them, or -f"
        raise MngrError(f"{place.name} has {counted(len(refs), 'agent')}: {names}", how)
    if args.flag("forget"):
        hosting.give_up(fleet, place, refs)
    else:
        _take_away(fleet, place, refs, purge)
    did = "removed" if place.made and not args.flag("forget") else "forgotten"
    if args.flag("json"):
        print_json({"name": place.name, "did": did, "agents": [ref.name for ref in refs]})
    else:
        print(f"{did} {place.name}")
    return 0


def _take_away(fleet: Fleet, place: Place, refs: list[Ref], purge: bool) -> None:
    hint = f"if it is gone for good: mngr host remove {place.name} --forget" + (" -f" if refs else "")
    try:
        _empty(fleet, place, refs, purge, hint)
        hosting.remove(fleet, place)
    except HostUnreachable as error:
        if not hosting.is_gone(place):
            raise HostUnreachable(error.message, hint) from None
        hosting.give_up(fleet, place, refs)


def _empty(fleet: Fleet, place: Place, refs: list[Ref], purge: bool, hint: str) -> None:
    """Nothing that exists nowhere else is on it any more, or MngrError."""
    slept = fleet.is_stopped(place.name)
    if refs:
        from mngr.fleet.destroy import destroy

        for outcome in destroy(fleet, refs, force=not purge, purge=purge, keep_host=True):
            if not outcome.ok:
                error = error_of(outcome)
                raise type(error)(error.message, hint)
            if outcome.why:
                notice(f"{outcome.name}: {outcome.why}")
    if place.made and not purge:
        hosting.wake(fleet, [place.name])
        try:
            what = hosting.holds(fleet, fleet.place(place.name))
        except HostUnreachable:
            if hosting.is_gone(place):
                raise
            hosting.revive(fleet, place.name)  # somebody else may have stopped it
            what = hosting.holds(fleet, fleet.place(place.name))
        if what:
            if slept:
                hosting.stop(fleet, place)
            raise MngrError(f"{place.name} is kept: {what}", "--purge drops it")


@command(
    "host stop",
    summary="stop a host that mngr made, with its agents",
    usage=["host stop HOST"],
    about="""Stops the agents on it, as `mngr stop` does, and then the host: it costs nothing any more, and keeps its
files. `mngr start` of an agent there, or `mngr host start`, brings it back.""",
    arguments=[_HOST],
    options=[JSON_OPTION],
    examples=[("mngr host stop try.docker", "for the night")],
)
def stop(args: Args) -> int:
    from mngr.fleet.stop import stop as stop_agents

    fleet = Fleet()
    place = _made(fleet, args.words[0], "stopped")
    if not fleet.is_stopped(place.name):
        try:
            for outcome in stop_agents(fleet, hosting.agents_on(fleet, place.name), keep_host=True):
                if not outcome.ok:
                    raise error_of(outcome)
        except HostUnreachable:
            pass  # then nothing runs there, or its provider says what is wrong
        hosting.stop(fleet, place)
    return _said(args, "stopped", place)


@command(
    "host start",
    summary="start a host that mngr made",
    usage=["host start HOST"],
    about="Starts the host alone; the agents on it stay as they are. `mngr start AGENT` starts both.",
    arguments=[_HOST],
    options=[JSON_OPTION],
    examples=[("mngr host start try.docker", "to look at what is on it")],
)
def start(args: Args) -> int:
    fleet = Fleet()
    place = _made(fleet, args.words[0], "started")
    hosting.start(fleet, place)
    return _said(args, "started", place)


def _place(fleet: Fleet, name: str) -> Place:
    if name == LOCAL:
        raise UsageError("this machine is always there")
    return fleet.place(name)


def _made(fleet: Fleet, name: str, what: str) -> Place:
    place = _place(fleet, name)
    if not place.made:
        raise UsageError(f"{name} was not made by mngr, and is not {what} by it", "mngr stop and start its agents")
    return place


def _said(args: Args, did: str, place: Place) -> int:
    if args.flag("json"):
        print_json({"name": place.name, "did": did})
    else:
        print(f"{did} {place.name}")
    return 0
