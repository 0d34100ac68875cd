"""snapshot create, list, restore, destroy."""

from __future__ import annotations

import time

from mngr.cli.output import JSON_OPTION, age, notice, print_json, print_table
from mngr.fleet.fleet import Fleet
from mngr.fleet.snapshot import agent_around, current_agent, drop, get_snapshot, snapshots, take_snapshot
from mngr.fleet.snapshot import restore as restore_snapshot
from mngr.grammar import Argument, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.snapshot import Snapshot
    from mngr.grammar import Args

_AGENT = Argument(
    name="AGENT",
    help="the agent; inside one, or when there is just one, it may be left out",
    optional=True,
    completes="agents",
)
_NAME = Argument(name="NAME", help="name of the snapshot", completes="snapshots")


@command(
    "snapshot create",
    summary="keep the work of an agent as it is now",
    usage=["snapshot create [AGENT] [NAME]"],
    about="""Keeps the agent's work dir (commits, modified and untracked files), its type, command, labels, windows and
given environment. Files that git ignores are not kept. Nothing is stopped, and neither index nor branches are touched.
In a git repository it is a commit under refs/mngr/snapshots/; elsewhere an archive. A nested repository cannot be
carried, and is named.

A single word is the agent if there is one of that name, else the name of the snapshot. Snapshots outlive their agent:
`mngr create NEW --from AGENT/NAME` starts from one.""",
    arguments=[_AGENT, Argument(name="NAME", help="name of the snapshot (default: made from the time)", optional=True)],
    options=[JSON_OPTION],
    examples=[
        ("mngr snapshot create fix-login before-refactoring", "name both"),
        ("mngr snapshot create my-snapshot", "inside an agent"),
    ],
)
def create(args: Args) -> int:
    fleet = Fleet()
    agent, name = _which(fleet, args)
    taken = take_snapshot(fleet, agent, name)
    for path in taken.left:
        notice(f"{path} is a repository of its own and is not carried")
    if args.flag("json"):
        print_json(_item(taken))
    else:
        print(f"{agent}/{taken.name}")
    return 0


@command(
    "snapshot list",
    summary="show snapshots",
    usage=["snapshot list [AGENT]"],
    about="Lists all snapshots, or one agent's, oldest first; those of destroyed agents too.",
    arguments=[_AGENT],
    options=[JSON_OPTION],
    examples=[("mngr snapshot list fix-login", "one agent's")],
)
def list_(args: Args) -> int:
    found = snapshots(Fleet(), args.word(0), notice)
    if args.flag("json"):
        print_json([_item(snapshot) for snapshot in found])
    elif found:
        rows = [[s.agent.name, s.name, age(s.time), (s.commit or "archive")[:12]] for s in found]
        print_table(rows, ["AGENT", "NAME", "AGE", "COMMIT"])
    else:
        print("no snapshots")
    return 0


@command(
    "snapshot restore",
    summary="put an agent's work back to a snapshot",
    usage=["snapshot restore [AGENT] NAME"],
    about="""Sets the agent's branch and work dir back to what the snapshot holds. No other branch is moved, whichever
is checked out, and ignored files stay as they are. What it has now is kept first, as a snapshot of its own, so nothing
is lost. A running agent is stopped for it and started again.""",
    arguments=[_AGENT, _NAME],
    options=[JSON_OPTION],
    examples=[
        ("mngr snapshot restore fix-login before-refactoring", "back to it"),
        ("mngr snapshot restore my-snapshot", "inside an agent"),
    ],
)
def restore(args: Args) -> int:
    fleet = Fleet()
    snapshot = _find(fleet, args)
    if agent_around(fleet) == snapshot.agent.name:
        import signal

        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # its session ends, and with it our terminal: we go on
    kept, started = restore_snapshot(fleet, snapshot)
    if args.flag("json"):
        print_json({"restored": snapshot.name, "agent": snapshot.agent.name, "kept": kept.name, "started": started})
    else:
        then = ", and started again" if started else ""
        print(
            f"restored {snapshot.agent.name} to {snapshot.name}{then}; what it had is {snapshot.agent.name}/{kept.name}"
        )
    return 0


@command(
    "snapshot destroy",
    summary="remove a snapshot",
    usage=["snapshot destroy [AGENT] NAME"],
    about="Removes the snapshot and its private ref. The agent is not touched.",
    arguments=[_AGENT, _NAME],
    examples=[("mngr snapshot destroy fix-login before-refactoring", "remove one")],
)
def destroy(args: Args) -> int:
    fleet = Fleet()
    snapshot = _find(fleet, args)
    drop(fleet, snapshot)
    print(f"destroyed {snapshot.agent.name}/{snapshot.name}")
    return 0


def _which(fleet: Fleet, args: Args) -> tuple[str, str | None]:
    """(agent, name) of words of which either may be left out."""
    if len(args.words) == 2:
        return args.words[0], args.words[1]
    word = args.word(0)
    if word is not None and fleet.names.find(word):
        return word, None
    return current_agent(fleet), word


def _find(fleet: Fleet, args: Args) -> Snapshot:
    if len(args.words) == 2:
        return get_snapshot(fleet, args.words[1], args.words[0])
    word = args.words[0]
    return get_snapshot(fleet, word, None if "/" in word else agent_around(fleet))


def _item(snapshot: Snapshot) -> dict[str, object]:
    return {
        "name": snapshot.name,
        "agent": snapshot.agent.name,
        "agent_id": snapshot.agent.id,
        "time": snapshot.time,
        "taken": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(snapshot.time)),
        "commit": snapshot.commit,
        "host": snapshot.host,
    }
