"""swarm set and swarm cancel: what one can want of a run that is going on. Both are wishes, left where whoever works on
the run reads them, so that there is one writer of its log."""

from __future__ import annotations

import os

from mngr.cli.output import JSON_OPTIONS, print_json
from mngr.errors import MngrError, UsageError
from mngr.grammar import Argument, command
from mngr.home import home_path
from mngr.swarm.settings import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.grammar import Args

_RUN = Argument(name="RUN", help="the run: see mngr swarm list", completes="runs")
_KNOWN = ", ".join(f"{setting.name}={setting.word}" for setting in SETTINGS)


@command(
    "swarm set",
    summary="retune a run that is going on",
    usage=["swarm set RUN KEY=VALUE... [--json | --jsonl]"],
    about=f"""Changes settings of a run while it goes on; the log keeps who did it and when. If nobody works on the run,
they count from the next mngr swarm resume.

The settings are options of mngr swarm run, whose page says what they mean: {_KNOWN}.
`none` as the value of budget or max-tokens takes that limit away.""",
    arguments=[
        _RUN,
        Argument(name="KEY=VALUE", help="a setting and its new value", many=True, completes="settings"),
    ],
    options=[*JSON_OPTIONS],
    examples=[("mngr swarm set r3 max-agents=30 budget=20usd", "more at a time, and more money for all of them")],
)
def set_(args: Args) -> int:
    from mngr.swarm import log, settings

    directory = _unfinished(args.words[0])
    wanted = []
    for word in args.words[1:]:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"swarm set takes KEY=VALUE, not {word!r}", f"for example {key}=...")
        wanted.append((key.replace("_", "-"), settings.read(key, text)))
    for key, value in wanted:
        log.ask(directory, {"wish": "set", "key": key, "value": value, "who": _who()})
    heard = log.is_taken(directory)
    run = os.path.basename(directory)
    items = [{"run": run, "key": key, "value": value, "heard": heard} for key, value in wanted]
    if not _printed(items, args):
        when = "now" if heard else f"when mngr swarm resume {run} goes on with it: nobody works on it"
        for key, value in wanted:
            print(f"{run}: {key}={'none' if value is None else value} counts {when}")
    return 0


@command(
    "swarm cancel",
    summary="end a run and its agents",
    usage=["swarm cancel RUN [--json | --jsonl]"],
    about="""Starts no more agents, ends those at work, and brings home what they have made. Tasks that were not settled
by then are cancelled; what was settled stays. The log keeps who did it. If somebody works on the run, that process does
it; else this one.""",
    arguments=[_RUN],
    options=[*JSON_OPTIONS],
    examples=[("mngr swarm cancel r3", "enough")],
)
def cancel(args: Args) -> int:
    from mngr.swarm import log

    directory = _unfinished(args.words[0])
    run = os.path.basename(directory)
    heard = log.is_taken(directory)
    if heard:
        log.ask(directory, {"wish": "cancel", "who": _who()})
    else:
        from mngr.fleet.fleet import Fleet
        from mngr.swarm.api import cancel

        cancel(Fleet(), directory, _who())
    if not _printed([{"run": run, "heard": heard}], args):
        print(f"{run} is being cancelled: mngr swarm status {run} shows it" if heard else f"cancelled {run}")
    return 0


def _unfinished(name: str) -> str:
    from mngr.swarm.runs import find_run
    from mngr.swarm.state import load

    directory = find_run(home_path(), name)
    run = load(directory)
    if run.is_done and not any(task.is_unbegun for task in run.tasks.values()):
        raise MngrError(
            f"{name} is done: nothing about it can be changed", f"mngr swarm show {name} tells how it ended"
        )
    return directory


def _who() -> str:
    import pwd

    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"


def _printed(items: Sequence[dict[str, object]], args: Args) -> bool:
    if args.flag("json"):
        print_json(items)
    elif args.flag("jsonl"):
        for item in items:
            print_json(item, indent=None)
    return args.flag("json") or args.flag("jsonl")
