"""list: what is there and how it is."""

from __future__ import annotations

from mngr.cli.output import JSON_OPTIONS, age, print_formatted, print_json, print_table
from mngr.cli.selection import SELECTION, SELECTORS, selection
from mngr.fleet.asking import forget_ahead
from mngr.fleet.fleet import Fleet
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.select import Selection
    from mngr.fleet.survey import Status
    from mngr.grammar import Args


@command(
    "list",
    summary="show agents and their states",
    usage=[
        "list [SELECTION] [--state STATE] [--label K=V] [--git] [--labels]",
        "list [SELECTION] --json | --jsonl | --format TEMPLATE | --names",
    ],
    aliases=["ls"],
    about="""Lists all agents, or those selected, with their state, the reason for it, how long they have been in it,
type, host and branch. One round trip per host, however many agents it carries.

A damaged agent (an unreadable agent.json) is listed as unknown, with its id where its name cannot be told.""",
    arguments=[SELECTION],
    options=[
        *SELECTORS,
        option("--git", "add commits ahead of the base and files changed"),
        option("--labels", "add the labels"),
        *JSON_OPTIONS,
        option("--format TEMPLATE", r"one line per agent, for example '{name}\t{state}'"),
        option("--names", "print names only"),
        option("-w, --watch", "show it again whenever something happens, until Ctrl-C"),
    ],
    examples=[
        ("mngr list", "everything"),
        ("mngr ls --state waiting,failed", "those that want you"),
        ("mngr list --label run=nightly --json", "for a script"),
        ("mngr list --names --state done | mngr pull -", "a pipeline"),
    ],
)
def list_(args: Args) -> int:
    fleet = Fleet()
    if "-" in args.words:
        forget_ahead()  # who writes these names may do something first
    wanted = selection(args)
    if args.flag("watch"):
        from mngr.cli.watch import watch

        forget_ahead()  # nothing may fall between a picture and what is followed from then on
        return watch(fleet, lambda: show(fleet, wanted, args))
    show(fleet, wanted, args)
    return 0


def show(fleet: Fleet, wanted: Selection, args: Args) -> None:
    from mngr.fleet.select import statuses

    found = statuses(fleet, wanted)
    work: dict[str, tuple[str, str]] = {}
    if args.flag("git"):
        from mngr.fleet.work import work_done

        work = work_done(fleet, found)
    if args.flag("names"):
        for status in found:
            print(status.name)
        return
    items = [item(status, work.get(status.id)) for status in found]
    if args.flag("json"):
        print_json(items)
    elif args.flag("jsonl"):
        for each in items:
            print_json(each, indent=None)
    elif template := args.text("format"):
        print_formatted(items, template)
    elif found:
        _table(found, work, args)
    elif wanted.filters or wanted.words:
        print("no agents match")
    else:
        print("no agents yet: mngr create NAME command -- PROGRAM")


def item(status: Status, work: tuple[str, str] | None = None) -> dict[str, object]:
    """One agent for scripts: what is stored, and how it is."""
    agent, verdict = status.agent, status.verdict
    stored = agent.to_dict() if agent else {"id": status.id, "name": status.name, "host": status.host}
    told = {
        **stored,
        "state": verdict.state,
        "reason": verdict.reason,
        "since": verdict.since,
        "exit_code": verdict.exit_code,
        "damage": status.evidence.damage,
    }
    if work:
        told["ahead"], told["changed"] = (int(count) if count.isdecimal() else None for count in work)
    return told


def _table(found: list[Status], work: dict[str, tuple[str, str]], args: Args) -> None:
    head = ["NAME", "STATE", "AGE", "TYPE", "HOST", "BRANCH"]
    head += ["AHEAD", "CHANGED"] if args.flag("git") else []
    head += ["LABELS"] if args.flag("labels") else []
    rows = []
    for status in found:
        agent, verdict = status.agent, status.verdict
        state = f"{verdict.state} ({verdict.reason})" if verdict.reason else verdict.state
        row = [
            status.name,
            state,
            age(verdict.since),
            agent.type if agent else "-",
            status.host,
            (agent and agent.branch) or "-",
        ]
        row += list(work.get(status.id, ("-", "-"))) if args.flag("git") else []
        row += [",".join(f"{k}={v}" for k, v in (agent.labels if agent else {}).items())] if args.flag("labels") else []
        rows.append(row)
    print_table(rows, head)
