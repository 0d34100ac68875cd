"""destroy: remove agents for good."""

from __future__ import annotations

import sys

from mngr.cli.outcomes import report
from mngr.cli.output import JSON_OPTION, notice
from mngr.cli.selection import SELECTION, SELECTORS, chosen
from mngr.errors import MngrError
from mngr.fleet.destroy import carry_out, look
from mngr.fleet.fleet import LOCAL, Fleet
from mngr.fleet.stop import GRACE
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.destroy import Doomed
    from mngr.grammar import Args


@command(
    "destroy",
    summary="remove agents, losing no work",
    usage=["destroy SELECTION [-f | --purge] [--dry-run] [--keep-host]"],
    aliases=["rm"],
    about="""Ends the agent and removes its session, work dir, directory and branch, after asking. It refuses when
commits or uncommitted files would be lost that exist nowhere else: no other branch, tag or remote has them. Files that
git ignores are not kept, and do not make it refuse.

-f does not ask, and parks such work for 14 days under refs/mngr/trash/ID of the source repository (`git branch NAME
refs/mngr/trash/ID` brings it back). --purge does not ask, parks nothing, and removes the agent's snapshots too.

A host that mngr made (a container, a sandbox) is removed with the last agent on it, unless snapshots or parked work are
there that exist nowhere else; --keep-host keeps it in any case.""",
    arguments=[SELECTION],
    options=[
        *SELECTORS,
        option("-f, --force", "do not ask; park unsaved work for 14 days"),
        option("--purge", "do not ask; drop unsaved work and snapshots"),
        option("--keep-host", "keep a host that mngr made, also without an agent on it"),
        option("--dry-run", "say what would happen, and do nothing"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr destroy fix-login", "asks first"),
        ("mngr rm -f 'try-*'", "a whole group; what they have not handed over is kept for two weeks"),
        ("mngr destroy --state done --dry-run", "what would be lost?"),
    ],
)
def destroy(args: Args) -> int:
    fleet = Fleet()
    force, purge, dry_run = args.flag("force"), args.flag("purge"), args.flag("dry_run")
    refs = chosen(fleet, args)
    asleep = [ref.host for ref in refs if ref.host != LOCAL and fleet.is_stopped(ref.host)]
    try:
        doomed = look(fleet, refs, count=dry_run or not (force or purge), ignored=dry_run)
        if dry_run:
            for each in doomed:
                ignored = "; ignored files are not kept" if each.loss.ignored else ""
                print(f"{each.ref.name}: {_fate(each, force, purge)}{ignored}")
            return 0
        if doomed and not (force or purge):
            _ask(doomed)
        grace = fleet.config.number("stop_grace")
        outcomes = carry_out(
            fleet,
            doomed,
            force=force,
            purge=purge,
            grace=GRACE if grace is None else grace,
            keep_host=args.flag("keep_host"),
            tell=notice,
        )
    finally:
        if asleep:  # started in order to look, and nobody may have gone on from there
            from mngr.fleet.hosting import rest

            rest(fleet, asleep)
    return report(args, outcomes)


def _fate(each: Doomed, force: bool, purge: bool) -> str:
    if each.trouble:
        return f"would not be destroyed: {each.trouble.message}"
    if not each.loss:
        return "would be destroyed; nothing is lost"
    if purge:
        return f"would be destroyed; {each.loss} would be dropped"
    return (
        f"would be destroyed; {each.loss} would be kept for 14 days"
        if force
        else f"would be refused: {each.loss} would be lost"
    )


def _ask(doomed: list[Doomed]) -> None:
    """Only about those that can go; the others are refused anyway. No answer is no."""
    going = [each.ref.name for each in doomed if not each.loss and not each.trouble]
    if not going:
        return
    what = (
        going[0]
        if len(going) == 1
        else f"{len(going)} agents ({', '.join(going[:5])}{', ...' if len(going) > 5 else ''})"
    )
    print(f"destroy {what}? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        raise MngrError("nothing was destroyed", "answer y, or use -f")
