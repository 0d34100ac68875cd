"""push: your commits, or files, to agents."""

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
    "push",
    summary="send commits or files to agents",
    usage=["push SELECTION [--rev REV] [--merge]", "push SRC AGENT:PATH"],
    about="""Moves the agent's branch and work dir forward to a commit of your repository (default: what you have
checked out). If the agent has commits of its own in between, that is an error, unless --merge merges there; a merge
that conflicts is undone.

SRC AGENT:PATH copies a file or directory into the agent's work dir.""",
    arguments=[
        Argument(
            name="AGENT or SRC",
            help="agents; or a file or directory, followed by AGENT:PATH",
            optional=True,
            many=True,
            completes="agents files",
        ),
        Argument(name="AGENT:PATH", help="where SRC goes in the agent's work dir", optional=True),
    ],
    options=[
        *SELECTORS,
        option("--rev REV", "the commit to push (default: HEAD)", completes="branches"),
        option("--merge", "merge it there when the agent has commits of its own"),
        option("--repo DIR", "another repository than the one that the agent came from", completes="dirs"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr push 'try-*' --rev main", "bring a group up to date"),
        ("mngr push .env fix-login:.env", "one file"),
    ],
)
def push(args: Args) -> int:
    fleet = Fleet()
    parts = split_path(args.words[1]) if len(args.words) == 2 else None
    if parts:
        from mngr.fleet.files import push_files

        push_files(fleet, args.words[0], one_ref(fleet, parts[0]), parts[1])
        return 0
    if any(split_path(word) for word in args.words):
        raise UsageError("files are pushed as SRC AGENT:PATH", "for example: mngr push .env fix-login:.env")
    from mngr.fleet.handover import push as push_commits

    rev, source, merge = args.text("rev") or "HEAD", args.text("repo"), args.flag("merge")
    refs = chosen(fleet, args)
    return report(args, one_by_one(refs, lambda ref: push_commits(fleet, ref, rev=rev, source=source, merge=merge)))
