"""gc: clear away what is left over."""

from __future__ import annotations

from mngr.cli.output import JSON_OPTION, notice, print_json
from mngr.errors import MngrError
from mngr.fleet.fleet import LOCAL, Fleet
from mngr.fleet.gc import Leftover, leftovers, sweep
from mngr.grammar import command, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "gc",
    summary="clear away leftovers of interrupted work",
    usage=["gc [--dry-run]"],
    about="""Removes what belongs to no agent: names and directories of creates that were interrupted, sessions and
clean work dirs without an agent, object stores that nobody borrows from, the scratch repositories and checkouts of
integrations that were killed, and parked work older than 14 days; hosts that mngr made and that have no agent, also
those that only their provider still knows, and images older than a day that others began from. A work dir with
unsaved work, and a host on which something is kept, is named and left alone. All known hosts are looked at; of one that
cannot be reached nothing is removed.""",
    options=[option("--dry-run", "say what would be removed, and remove nothing"), JSON_OPTION],
    examples=[("mngr gc --dry-run", "look first"), ("mngr gc", "clear it away")],
)
def gc(args: Args) -> int:
    fleet = Fleet()
    found, killed = leftovers(fleet, notice), _integrations(fleet)
    if args.flag("dry_run"):
        gone = [each for each in [*found, *killed] if each.removable]
    else:
        gone = sweep(fleet, found, notice) + [each for each in killed if _is_swept(each)]
    found += killed
    if args.flag("json"):
        print_json(
            [{"host": each.host, "kind": each.kind, "what": each.what, "removed": each in gone} for each in found]
        )
        return 0
    for each in found:
        if each in gone:
            print(f"{'would remove' if args.flag('dry_run') else 'removed'} {each}")
        else:
            notice(str(each))
    if not found:
        print("nothing is left over")
    return 0


def _integrations(fleet: Fleet) -> list[Leftover]:
    from mngr.integrate.leftovers import leftovers as of_integrations

    return [Leftover(host=LOCAL, kind="integration", what=place) for place in of_integrations(fleet.home)]


def _is_swept(leftover: Leftover) -> bool:
    from mngr.integrate.leftovers import sweep as clear_away

    try:
        clear_away(leftover.what)
    except MngrError:
        return False
    return True
