"""swarm status and swarm list: how a run goes, and which runs there are."""

from __future__ import annotations

import os
import sys
import time

from mngr.cli.output import JSON_OPTIONS, age, clean, colour, print_json, print_table
from mngr.errors import MngrError, UsageError
from mngr.grammar import Argument, command, option
from mngr.home import home_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.grammar import Args
    from mngr.swarm.state import Run

RUN = Argument(name="RUN", help="the run; the latest one when none is named", optional=True, completes="runs")
HEAD = ("STATE", "TIME", "SPENT", "TASK", "WHY")
_LOOK = 0.2  # seconds between looks at the log
_AGES = 1.0  # seconds after which the ages on a terminal are stale


@command(
    "swarm status",
    summary="show how a run goes",
    usage=["swarm status [RUN] [--watch | --once] [--json | --jsonl]"],
    about="""On a terminal a live picture, until the run is over, nobody works on it any more, or Ctrl-C: how far it is,
what it has spent of its budget and what is reserved, a grid with one sign for each task, and below it the tasks that
are at work or went wrong. Elsewhere a line for each task, then one for the run.

With --watch and no terminal, a line for each task whenever its state changes, and at the end one for the run. --json is
the run with all its figures and the list `tasks`.""",
    arguments=[RUN],
    options=[
        option("-w, --watch", "go on showing what changes, on a terminal or not"),
        option("--once", "show it once, on a terminal too"),
        *JSON_OPTIONS,
    ],
    examples=[
        ("mngr swarm status", "the latest run, live"),
        ("mngr swarm status r3 --once", "another one, as it is"),
        ("mngr swarm status --jsonl | grep stuck", "for a script"),
    ],
)
def status(args: Args) -> int:
    from mngr.swarm.runs import find_run
    from mngr.swarm.state import load

    if args.flag("watch") and (args.flag("once") or args.flag("json")):
        raise UsageError(f"--watch and --{'once' if args.flag('once') else 'json'} do not go together")
    directory = find_run(home_path(), args.word(0))
    run = load(directory)
    on_screen = sys.stdout.isatty() and not args.flag("jsonl")
    if args.flag("json"):
        print_json(whole(run))
    elif on_screen and not args.flag("once"):
        live(directory)
    elif args.flag("watch"):
        _follow(directory, args.flag("jsonl"))
    elif args.flag("jsonl"):
        print_tasks(run)
    elif on_screen:
        print(*_picture(run), sep="\n")
    else:
        print_run(run)
    return 0


@command(
    "swarm list",
    summary="show the runs, the latest last",
    usage=["swarm list [--json | --jsonl]"],
    about="""One line for each run: its project, whether it is going on, how many tasks it has, how many of them went
well and badly, what it has spent, and when it began. A run that is `left` is not done, and nobody works on it:
mngr swarm resume does.""",
    options=[*JSON_OPTIONS],
    examples=[("mngr swarm list", "all of them"), ("mngr swarm list --json", "for a script, with all figures")],
)
def list_(args: Args) -> int:
    from mngr.swarm.report import cost, summary
    from mngr.swarm.runs import find_run, known_runs
    from mngr.swarm.state import load

    found = []
    for name in known_runs(home_path()):
        try:
            found.append(summary(load(find_run(home_path(), name))))
        except MngrError as error:
            print(f"mngr: {clean(error.message)}", file=sys.stderr)
    if args.flag("json"):
        print_json(found)
    elif args.flag("jsonl"):
        for each in found:
            print_json(each, indent=None)
    elif found:
        rows = [
            [
                *(each["run"], os.path.basename(str(each["project"] or "-")), each["state"]),
                *(str(each[count]) for count in ("tasks", "good", "bad")),
                *(cost(each["spend"]), age(each["started"])),
            ]
            for each in found
        ]
        print_table(rows, ("RUN", "PROJECT", "STATE", "TASKS", "GOOD", "BAD", "SPENT", "AGE"))
    else:
        print("no runs yet: mngr swarm run tests")
    return 0


# Shared with swarm show.


def whole(run: Run) -> dict[str, Any]:
    """The tasks in place of their number, which one can count."""
    from mngr.swarm.report import rows, summary

    return {**summary(run), "tasks": rows(run)}


def print_tasks(run: Run) -> None:
    from mngr.swarm.report import rows

    for each in rows(run):
        print_json(each, indent=None)


def print_run(run: Run) -> None:
    from mngr.swarm.integrated import line
    from mngr.swarm.report import in_a_line, rows, summary

    print_table([_cells(each) for each in rows(run)], HEAD)
    told = summary(run)
    for each in (in_a_line(told), *line(told["integrated"])):
        print(clean(each))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    from mngr.swarm.report import cost, flat, span

    return (row["state"], span(row["age"]), cost(row["spend"]), row["title"], flat(row["why"]))


# Going on.


class _Watched:
    """A run that grows with its log."""

    def __init__(self, directory: str) -> None:
        from mngr.swarm.log import EVENTS, Reader
        from mngr.swarm.state import Run

        self.run = Run(directory)
        self._reader = Reader(os.path.join(directory, EVENTS))

    def has_grown(self) -> bool:
        grown = False
        for event in self._reader.events():
            self.run.apply(event)
            grown = True
        return grown

    def is_over(self) -> bool:
        from mngr.swarm.report import is_attended

        return not is_attended(self.run)


def live(directory: str) -> None:
    """In place on the terminal, as long as somebody works on the run."""
    watched = _Watched(directory)
    drawn = 0.0
    try:
        while True:
            over = watched.is_over()  # before the log is read: nothing is written after that
            if watched.has_grown() or over or time.monotonic() - drawn >= _AGES:
                _draw(watched.run)
                drawn = time.monotonic()
            if over:
                return
            time.sleep(_LOOK)
    finally:
        _leave()


def _draw(run: Run) -> None:
    """In place, line over line: a screen that is emptied first flickers."""
    sys.stdout.write("\033[?25l\033[H" + "".join(f"{line}\033[K\n" for line in _picture(run)) + "\033[J")
    sys.stdout.flush()


def _leave() -> None:
    """The cursor is there again."""
    sys.stdout.write("\033[?25h")
    sys.stdout.flush()


def _picture(run: Run) -> list[str]:
    from mngr.swarm.picture import lines

    size = os.get_terminal_size(sys.stdout.fileno())
    return lines(run, time.time(), size.columns or 80, (size.lines or 24) - 1, _paint)  # one line is for the cursor


def _paint(text: str, word: str) -> str:
    from mngr.swarm import words

    text = clean(text)
    if word in words.GOOD:
        return colour(text, "32")
    if word in (words.PENDING, words.SKIPPED, words.CANCELLED):
        return colour(text, "2")
    if word in (words.PARKED, words.BLOCKED, words.RATE_LIMITED, words.OVER_BUDGET):
        return colour(text, "33")
    if word in words.ENDINGS:
        return colour(text, "31")
    return colour(text, "36") if word else text


def _follow(directory: str, as_json: bool) -> None:
    """A line for each task when its state is another than it was."""
    from mngr.swarm.report import in_a_line, rows, summary

    watched = _Watched(directory)
    before: dict[str, str] = {}
    while True:
        over = watched.is_over()
        if watched.has_grown():
            for each in rows(watched.run):
                if before.get(each["task"]) != each["state"]:
                    before[each["task"]] = each["state"]
                    print_json(each, indent=None) if as_json else print(clean("  ".join(_cells(each)).rstrip()))
            sys.stdout.flush()
        if over:
            break
        time.sleep(_LOOK)
    if not as_json:
        print(clean(in_a_line(summary(watched.run))))
