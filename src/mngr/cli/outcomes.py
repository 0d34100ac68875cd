"""Telling what became of many agents: a line for each, the exit code for all."""

from __future__ import annotations

import sys

from mngr.cli.output import clean, print_json
from mngr.errors import Blocked, HostUnreachable, MngrError, NoSuchAgent, SomeFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.outcome import Outcome
    from mngr.grammar import Args


def error_of(outcome: Outcome) -> MngrError:
    """The one error that says what became of this one agent."""
    if outcome.did == "gone":
        return NoSuchAgent(f"{outcome.name}: {outcome.why}")
    if outcome.did == "unreachable":
        return HostUnreachable(f"{outcome.name}: {outcome.why}")
    if outcome.did in ("blocked", "delivered"):
        return Blocked(f"{outcome.name}: {outcome.why}")
    return MngrError(f"{outcome.name}: {outcome.why}")


def report(args: Args, outcomes: list[Outcome]) -> int:
    """stdout gets `DID NAME` for those that went well, stderr the rest. One failure alone is raised as itself; some of
    many give exit code 6."""
    if args.flag("json"):
        print_json([outcome.to_dict() for outcome in outcomes])
    else:
        for outcome in outcomes:
            if outcome.ok:
                print(f"{outcome.did} {outcome.name}" + (f": {clean(outcome.why)}" if outcome.why else ""))
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if not failed:
        return 0
    sys.stdout.flush()
    if len(outcomes) == 1:
        raise error_of(failed[0])
    for outcome in failed:
        print(f"mngr: {outcome.name}: {clean(outcome.why)}", file=sys.stderr)
    raise SomeFailed(f"{len(failed)} of {len(outcomes)} failed")
