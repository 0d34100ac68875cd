"""label: mark agents."""

from __future__ import annotations

from mngr.cli.outcomes import report
from mngr.cli.output import JSON_OPTION
from mngr.cli.selection import SELECTORS, chosen
from mngr.errors import UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.update import label as put_labels
from mngr.grammar import Argument, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args


@command(
    "label",
    summary="add labels to agents or remove them",
    usage=["label SELECTION K=V... K-..."],
    about="""K=V sets a label, K- removes it. Labels are free text; every verb can select by them with --label.""",
    arguments=[
        Argument(
            name="SELECTION",
            help="names, globs, or - for names on standard input",
            optional=True,
            many=True,
            completes="agents",
        ),
        Argument(name="K=V", help="a label to set; K- removes it", many=True),
    ],
    options=[*SELECTORS, JSON_OPTION],
    examples=[
        ("mngr label fix-login owner=ann", "set one"),
        ("mngr label 'try-*' batch=2 tmp-", "set one and remove another"),
    ],
)
def label(args: Args) -> int:
    words = list(args.words)
    put: dict[str, str] = {}
    drop: list[str] = []
    while words and words[-1] != "-" and ("=" in words[-1] or words[-1].endswith("-")):
        key, equals, value = words.pop().partition("=")
        if equals and key:
            put.setdefault(key, value)
        elif not equals and key[:-1]:
            drop.append(key[:-1])
        else:
            raise UsageError("a label needs a name: K=V, or K-")
    if not put and not drop:
        raise UsageError("which labels?", "usage: mngr label SELECTION K=V K-")
    fleet = Fleet()
    return report(args, put_labels(fleet, chosen(fleet, args, words), dict(reversed(put.items())), drop))
