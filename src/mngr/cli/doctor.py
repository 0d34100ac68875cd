"""doctor: is everything as it should be, and if not, what to do."""

from __future__ import annotations

from mngr.cli.output import JSON_OPTION, clean, colour, print_json
from mngr.fleet.checkup import BAD, OK, checkup
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
    findings = list(checkup(Fleet()))
    if args.flag("json"):
        print_json([finding.to_dict() for finding in findings])
    else:
        for finding in findings:
            mark = colour(f"{finding.level:4}", "32" if finding.level == OK else "31" if finding.level == BAD else "33")
            print(f"{mark}  {clean(finding.what)}" + (f"  ->  {finding.do}" if finding.do else ""))
    return 1 if any(finding.level == BAD for finding in findings) else 0
