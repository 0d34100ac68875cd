"""pull: an agent's commits, or files of it, to here."""

from __future__ import annotations

from mngr.address import split_path
from mngr.cli.outcomes import report
from mngr.cli.output import JSON_OPTION
from mngr.cli.selection import SELECTORS, chosen
from mngr.errors import UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.outcome import one_by_one
from mngr.fleet.select import one_ref
from mngr.grammar import Argument, command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "pull",
    summary="bring an agent's branch or files here",
    usage=["pull SELECTION [--merge] [--repo DIR]", "pull AGENT:PATH [DEST]"],
    about="""Brings the agent's branch into your repository under the same name: forward only, or a clear error. In
worktree mode the branch is there already, and pull says so. Commits that the agent has elsewhere, and your repository
nowhere, come as mngr/AGENT--BRANCH: those of other branches of its clone, or of no branch. With --merge the agent's
branch is then merged into what you have checked out, if that is clean; a merge that conflicts is undone. Uncommitted
files stay with the agent, and are counted.

AGENT:PATH copies a file or directory of the work dir to DEST (default: here).""",
    arguments=[
        Argument(
            name="AGENT[:PATH]",
            help="agents, or one agent and a path in its work dir",
            optional=True,
            many=True,
            completes="agents",
        ),
        Argument(name="DEST", help="where the file or directory goes", optional=True, completes="files"),
    ],
    options=[
        *SELECTORS,
        option("--merge", "merge the branch into the current branch"),
        option("--repo DIR", "another repository than the one that the agent came from", completes="dirs"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr pull fix-login --merge", "its commits, merged"),
        ("mngr pull fix-login:build/report.html .", "one file, also uncommitted"),
    ],
)
def pull(args: Args) -> int:
    fleet = Fleet()
    parts = split_path(args.words[0]) if args.words else None
    if parts:
        from mngr.fleet.files import pull_files

        if len(args.words) > 2:
            raise UsageError("pull AGENT:PATH takes one destination")
        written = pull_files(fleet, one_ref(fleet, parts[0]), parts[1], args.word(1) or ".")
        print(written)
        return 0
    from mngr.fleet.handover import pull as pull_branch

    into, merge = args.text("repo"), args.flag("merge")
    refs = chosen(fleet, args)
    return report(args, one_by_one(refs, lambda ref: pull_branch(fleet, ref, into=into, merge=merge)))
