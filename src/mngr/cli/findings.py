"""What a look at this machine or at another has found, and what to do about it."""

from __future__ import annotations

from mngr.cli.output import clean, colour, print_json
from mngr.fleet.checkup import BAD, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.fleet.checkup import Finding


def show_findings(findings: Sequence[Finding], *, json: bool) -> int:
    """The exit code: 1 when something is bad."""
    if json:
        print_json([finding.to_dict() for finding in findings])
    else:
        for finding in findings:
            mark = colour(f"{finding.level:4}", "32" if finding.level == OK else "31" if finding.level == BAD else "33")
            print(f"{mark}  {clean(finding.what)}" + (f"  ->  {finding.do}" if finding.do else ""))
    return 1 if any(finding.level == BAD for finding in findings) else 0
