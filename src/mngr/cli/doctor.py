"""doctor: is everything as it should be, and if not, what to do."""

from __future__ import annotations

from mngr.cli.findings import show_findings
from mngr.cli.output import JSON_OPTION
from mngr.fleet.checkup import checkup
from mngr.fleet.fleet import Fleet
from mngr.grammar import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "doctor",
    summary="check the installation and say what to do",
    usage=["doctor [--json]"],
    about="""Checks tmux, git and the other programs that hosts need, versions, permissions, the configuration, plugins,
damaged agents and leftovers. It changes nothing. Exit code 1 when something is bad.""",
    options=[JSON_OPTION],
    examples=[("mngr doctor", "the first thing to do when something is strange")],
)
def doctor(args: Args) -> int:
    return show_findings(list(checkup(Fleet())), json=args.flag("json"))
