"""tutorial sync: agents write and repair the tests of blocks that are out of step."""

from __future__ import annotations

import os
import shutil
import sys

from mngr.cli.create import create, request
from mngr.cli.output import JSON_OPTION, clean, notice, print_json, print_table
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.outcome import counted
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args
    from mngr.tutorial.check import Ledger
    from mngr.tutorial.citations import Citations
    from mngr.tutorial.sync import Errand, Finding, Place, Report

_AS_CREATE = ("headless", "dirty", "env", "env_file", "pass_env", "label", "setup", "copy")


@command(
    "tutorial sync",
    summary="send agents to write and repair the tests of a tutorial's blocks",
    usage=[
        "tutorial sync FILE TESTS... [--per block | section] [--type TYPE] [OPTIONS] [-- ARGS...]",
        "tutorial sync FILE TESTS... --print-prompt",
        "tutorial sync --print-skill | --install-skill DIR",
    ],
    about="""Takes what mngr tutorial check finds (blocks that no test cites, blocks that were edited since, tests of
blocks that are gone) and makes an agent for each block, or with --per section for each section, in a work dir of its
own on the branch mngr/sync-ID. Its prompt says what is wrong, how tests cite blocks and how they are run; a program of
type command finds it in $MNGR_INPUT. What agents may do without asking is for the arguments behind `--` to say.

Then it waits until all of them are done with it, and checks their branches: a branch counts when the tests on it cite
the blocks as your tutorial has them, and no other block has lost its tests. Your own checkout is not touched; mngr pull
--merge takes a branch. Exit code 1 when some of it did not succeed. Agents that have some of these blocks already are
waited for, and no others are sent after the same: destroy one to begin anew.

Agents are told to run their tests with pytest. With --test CMD they are told CMD instead. Then what comes back is also
run: CMD with the files that cite the blocks, in the work dir of the agent, and it has to succeed.

--print-skill and --install-skill are for people who talk to their agent themselves: the same rules as a skill of Claude
Code, sync-tutorial-to-e2e-tests.

--json prints an object with the lists `agents` (each with `name`, `branch`, `state`, `reason`, `blocks`, `in_sync`, the
number of `commits`, the blocks that are `left` or `broken`, paths changed `outside` of the tests, `problems`, the exit
code of its `tests` or null, and what these `said`; with --no-wait `name`, `branch`, `started` and `blocks`) and
`not_started` (`blocks`, `why`).""",
    arguments=[
        Argument(name="FILE", help="the tutorial", optional=True, completes="files"),
        Argument(
            name="TESTS",
            help="files or directories with tests that cite it",
            optional=True,
            many=True,
            completes="files",
        ),
    ],
    rest="ARGS",
    options=[
        option("--per WHAT", "an agent for each block (the default) or section", choices=("block", "section")),
        option("--type TYPE", "the type of the agents, as for create", completes="types"),
        option("--max N", "send at most N agents now"),
        option("--test CMD", "run what comes back with CMD and the files; agents are told CMD instead of pytest"),
        option("--[no-]wait", "wait for the agents, and check their branches (the default)"),
        option("--timeout TIME", "wait no longer than this, with exit code 4; the agents go on"),
        *(declared for declared in create.options if declared.key in _AS_CREATE),
        option("--print-prompt", "print what the agents would be told, and make none"),
        option("--print-skill", "print the skill"),
        option("--install-skill DIR", "write the skill into this directory, such as .claude/skills", completes="dirs"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr tutorial sync tutorial.sh tests/e2e --type claude", "an agent for each block, and what came of it"),
        (
            "mngr tutorial sync tutorial.sh tests/e2e --per section --max 3 --test 'pytest -q'",
            "three sections, verified",
        ),
        ("mngr tutorial sync tutorial.sh tests/e2e --print-prompt", "for an agent of your own"),
        ("mngr tutorial sync --install-skill ~/.claude/skills", "then: /sync-tutorial-to-e2e-tests"),
    ],
)
def sync(args: Args) -> int:
    from mngr.tutorial import sync as work

    if args.flag("print_skill") or args.text("install_skill"):
        return _skill(args.text("install_skill"), work.SKILL)
    from mngr.tutorial.blocks import read_tutorial
    from mngr.tutorial.check import check
    from mngr.tutorial.citations import find_citations

    if len(args.words) < 2:
        raise UsageError("tutorial sync needs FILE and TESTS", f"usage: mngr {args.command.usage[0]}")
    file, *tests = args.words
    fleet = Fleet()
    citations = find_citations(tests)
    ledger = check(read_tutorial(file), citations)
    _refuse_unreadable(citations)
    place = work.locate(fleet, file, tests)
    found = work.findings(ledger, place)
    if not found:
        return _nothing_to_do(args, ledger)
    by_section, test = args.text("per") == "section", args.text("test")
    most = args.count("max", 1) if args.text("max") else None
    if args.flag("print_prompt"):
        tasks = work.split(found, by_section=by_section)[:most]
        print("\n---\n\n".join(work.prompt_for(fleet.home, task, place, test or "pytest") for task in tasks), end="")
        return 0
    wanted = request(args, fleet).replace(address=None, type=args.text("type"))
    errands = work.send(
        fleet, wanted, place, found, by_section=by_section, most=most, test=test or "pytest", tell=notice
    )
    _announce(errands, file)
    if not args.flag("wait", default=True):
        return _sent(args, errands)
    return _hand_back(args, fleet, errands, place, ledger)


def _refuse_unreadable(citations: Citations) -> None:
    """What such a file cites is not known: agents would be sent after blocks that have their tests."""
    if citations.unreadable:
        first, *more = citations.unreadable
        raise MngrError(
            f"{first.file}:{first.line}: {first.message}; mend it first"
            + (f", and {counted(len(more), 'more file')}" if more else "")
        )


def _skill(directory: str | None, path: str) -> int:
    if directory is None:
        with open(path, encoding="utf-8") as file:
            print(file.read(), end="")
        return 0
    own = os.path.join(os.path.expanduser(directory), os.path.basename(os.path.dirname(path)))
    os.makedirs(own, exist_ok=True)
    print(shutil.copy(path, own))
    return 0


def _nothing_to_do(args: Args, ledger: Ledger) -> int:
    if args.flag("json"):
        print_json({"agents": [], "not_started": []})
    elif ledger.in_sync:
        print("in sync: nothing to do")
    else:
        print("nothing that an agent could mend: see mngr tutorial check")
    return 0 if ledger.in_sync else 1


def _announce(errands: list[Errand], file: str) -> None:
    for errand in errands:
        what = ", ".join(_short(finding, file) for finding in errand.task.findings)
        if errand.started and errand.agent:
            notice(f"{errand.agent.name} started: {what}" + (f" ({errand.why})" if errand.why else ""))
        elif errand.agent:
            notice(f"{errand.agent.name} has this already, and is not sent twice: {what}")
        else:
            notice(f"{errand.task.name} was not started: {errand.why}: {what}")


def _short(finding: Finding, file: str) -> str:
    return f"{file}:{finding.line} {finding.what}" if finding.line else f"{finding.cited[0]} {finding.what}"


def _sent(args: Args, errands: list[Errand]) -> int:
    if args.flag("json"):
        agents = [
            {
                "name": errand.agent.name,
                "branch": errand.agent.branch,
                "started": errand.started,
                "blocks": _ids(errand),
            }
            for errand in errands
            if errand.agent
        ]
        print_json({"agents": agents, "not_started": _not_started(errands)})
    else:
        for errand in errands:
            if errand.agent:
                print(errand.agent.name)
    return 1 if _failures(errands) else 0


def _ids(errand: Errand) -> list[str]:
    return [finding.id for finding in errand.task.findings]


def _not_started(errands: list[Errand]) -> list[dict[str, object]]:
    return [{"blocks": _ids(errand), "why": errand.why} for errand in errands if errand.agent is None]


def _failures(errands: list[Errand]) -> list[Errand]:
    """Those that were not sent although they should have been, or have no prompt."""
    return [errand for errand in errands if errand.why and not errand.postponed]


def _hand_back(args: Args, fleet: Fleet, errands: list[Errand], place: Place, before: Ledger) -> int:
    from mngr.fleet.survey import agents
    from mngr.fleet.wait import wait
    from mngr.tutorial.sync import judge

    sent = {errand.agent.id: errand for errand in errands if errand.agent}
    late: TimedOut | None = None
    try:
        wait(
            fleet,
            [errand.agent.ref for errand in sent.values() if errand.agent],
            timeout=args.number("timeout"),
            reached=lambda status: notice(f"{status.name} is {status.state}"),
        )
    except TimedOut as error:
        late = error
    except MngrError as error:
        notice(error.message)  # one of them was destroyed: that is in the reports
    except KeyboardInterrupt:
        notice("the agents go on; the same command waits for them again")
        raise
    _tell_if_edited(args.words[0], before)
    now = {status.id: status for status in agents(fleet)}
    reports = [judge(fleet, errand, now.get(id), place, before, args.text("test")) for id, errand in sent.items()]
    _show(args, reports, errands)
    if late:
        raise TimedOut(late.message, "the agents go on; the same command waits for them again")
    return 1 if _failures(errands) or not all(report.in_sync for report in reports) else 0


def _tell_if_edited(file: str, before: Ledger) -> None:
    from mngr.tutorial.blocks import read_tutorial

    try:
        now = [block.id for block in read_tutorial(file).blocks]
    except UsageError:
        now = []
    if now != [block.id for block in before.tutorial.blocks]:
        notice(f"{file} has changed since: the branches are judged by what it was")


def _show(args: Args, reports: list[Report], errands: list[Errand]) -> None:
    if args.flag("json"):
        print_json({"agents": [report.to_dict() for report in reports], "not_started": _not_started(errands)})
        return
    if not reports:
        return
    rows = [[report.name, _state(report), verdict(report), report.branch] for report in reports]
    print_table(rows, ["AGENT", "STATE", "RESULT", "BRANCH"])
    sys.stdout.flush()
    for report in reports:
        for line in [*report.problems, *(f"it changed {path}, which is no test" for path in report.outside)]:
            notice(clean(f"{report.name}: {line}"))
    if good := [report.name for report in reports if report.in_sync and report.commits]:
        print(f"to take {'it' if len(good) == 1 else 'them'}: mngr pull --merge {' '.join(good)}")
    if bad := [report.name for report in reports if not report.in_sync]:
        print(f"to see why: mngr connect {bad[0]}; to begin anew: mngr destroy {' '.join(bad)}")


def _state(report: Report) -> str:
    return f"{report.state} ({report.reason})" if report.reason else report.state


def verdict(report: Report) -> str:
    if report.left:
        nothing = "" if report.commits else ", nothing committed"
        return f"{len(report.left)} of {counted(len(report.blocks), 'block')} not in sync{nothing}"
    if report.broken:
        whose = "its" if len(report.broken) == 1 else "their"
        return f"in sync, but {counted(len(report.broken), 'other block')} lost {whose} tests"
    if report.tests:
        return f"its tests fail ({report.tests})" + (f": {report.said}" if report.said else "")
    return "in sync" if report.tests is None else "in sync, its tests pass"
