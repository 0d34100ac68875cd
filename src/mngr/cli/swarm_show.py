"""swarm show: what became of a run, or of one of its tasks."""

from __future__ import annotations

from mngr.cli.output import JSON_OPTIONS, clean, print_json
from mngr.cli.swarm_status import print_run, print_tasks, whole
from mngr.grammar import Argument, command
from mngr.home import home_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "swarm show",
    summary="show what became of a run, or of one of its tasks",
    usage=["swarm show RUN [TEST] [--json | --jsonl]"],
    about="""Of a run: every task with its outcome and the reason for it, then the summary: what was fixed and improved,
what is blocked and by what, what failed and why, what agents escalated, what it cost, and where to look next.

Of one task: what its agent claims beside what the check found, its commits, and the evidence of how it ended: the last
lines of its screen, its last events, its exit code, the time for which it was throttled, and where its files are.""",
    arguments=[
        Argument(name="RUN", help="the run: see mngr swarm list", completes="runs"),
        Argument(
            name="TEST",
            help="one of its tasks: the test, a part of its name, or its short name",
            optional=True,
            completes="tasks",
        ),
    ],
    options=[*JSON_OPTIONS],
    examples=[
        ("mngr swarm show r3", "what became of each test, and the summary"),
        ("mngr swarm show r3 test_login", "all about one of them"),
    ],
)
def show(args: Args) -> int:
    from mngr.swarm import report
    from mngr.swarm.runs import find_run
    from mngr.swarm.state import load

    run = load(find_run(home_path(), args.word(0)))
    if word := args.word(1):
        told = report.details(run, report.find_task(run, word))
        if args.flag("json") or args.flag("jsonl"):
            print_json(told, indent=None if args.flag("jsonl") else 2)
        else:
            _print(report.detail_lines(told))
    elif args.flag("json"):
        print_json(whole(run))
    elif args.flag("jsonl"):
        print_tasks(run)
    else:
        print_run(run)
        if policy := report.permissions(run):
            print(f"permissions: {clean(policy)}")
        _print(["", *report.ending_lines(run)[1:]])
    return 0


def _print(lines: list[str]) -> None:
    for line in lines:
        print(clean(line))
