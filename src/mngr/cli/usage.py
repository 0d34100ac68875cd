"""usage: what agents have spent."""

from __future__ import annotations

import time

from mngr.agents.log import Usage
from mngr.cli.output import JSON_OPTION, clean, notice, print_json, print_table
from mngr.cli.selection import FILTERS, SELECTION, selection
from mngr.errors import UsageError
from mngr.fleet.fleet import Fleet
from mngr.fleet.outcome import counted
from mngr.grammar import command, option, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.grammar import Args
    from mngr.insight.usage import Report, Row, Sum

_CLASSES = tuple(Usage.FIELDS)
_HEADS = {"cache_write_5m": "WRITE 5M", "cache_write_1h": "WRITE 1H"}


@command(
    "usage",
    summary="show what agents have spent, in tokens and money",
    usage=["usage [SELECTION] [--since TIME] [--by agent | model | day | label | label:KEY] [--json]"],
    about="""Counts the messages that agents have exchanged with their models, with their tokens by class: fresh input,
read from the cache, written to it for 5 minutes or for 1 hour, output, and reasoning where it is told apart. No
selection means everybody, since this only looks. Destroyed agents stay in the sums under their last name; they can be
selected by it, and by their labels, type and host.

A message counts once, for the agent that had it first, however many logs repeat it: a clone that takes a conversation
over pays for what it adds. What is known is kept in usage.db in MNGR_HOME, and only what is new is read from the logs.

Costs are in USD, at the list price of the time of the message: from prices.toml in MNGR_HOME, else from the tables of
the Python package genai-prices (pip install 'mngr[prices]'). What has no price is called unpriced, and is not in the
total.""",
    arguments=[SELECTION],
    options=[
        *FILTERS,
        option("--since TIME", "only messages since then: 24h, 7d, 2026-11-01"),
        option("--by WHAT", "sum by agent (the default), model, day, all labels, or the value of one: label:KEY"),
        JSON_OPTION,
    ],
    examples=[
        ("mngr usage", "everything so far, agent by agent"),
        ("mngr usage --since 24h --by model", "the last day"),
        ("mngr usage --label run=nightly --by label:task --json", "for a script"),
    ],
)
def usage(args: Args) -> int:
    from mngr.insight.usage import usage as usage_of  # SQLite and decimals: `mngr help` loads all verbs

    by = args.text("by") or "agent"
    since = args.text("since")
    report = usage_of(Fleet(), selection(args), notice, since=moment(since) if since else float("-inf"), by=by)
    if args.flag("json"):
        print_json({"by": by, "rows": [_item(row) for row in report.rows], "total": _figures(report.total)})
    elif report.rows:
        _table(report, by)
    else:
        print("nothing was spent")
    if report.unpriced:
        _explain(report.unpriced)
    return 0


def moment(text: str) -> float:
    """A time ago, or a date, which begins at midnight here."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return time.time() - seconds(text, "")
    except UsageError:
        raise UsageError(
            f"--since takes a time such as 24h or 7d, or a date such as 2026-11-01, not {text!r}"
        ) from None


def _item(row: Row) -> dict[str, object]:
    named: dict[str, object] = {"key": row.key}
    if row.account:
        named.update(id=row.account.id, destroyed=row.account.destroyed)
    return {**named, **_figures(row.sum)}


def _figures(sum: Sum) -> dict[str, object]:
    tokens = dict(zip(_CLASSES, sum.tokens, strict=True))
    cost = None if sum.unpriced and sum.unpriced == sum.messages else float(sum.cost)
    return {"messages": sum.messages, **tokens, "cost": cost, "unpriced": sum.unpriced}


def _table(report: Report, by: str) -> None:
    rows = [[_name(row), *_cells(row.sum)] for row in report.rows]
    rows.append(["total", *_cells(report.total)])
    head = [
        by.removeprefix("label:").upper(),
        "MESSAGES",
        *(_HEADS.get(c, c.upper().replace("_", " ")) for c in _CLASSES),
        "COST",
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    numbers = range(1, len(head) - 1)
    for row in (head, *rows):
        for column in numbers:
            row[column] = row[column].rjust(widths[column])
    print_table(rows, head)


def _name(row: Row) -> str:
    if row.key is None:
        return "-"
    return f"{row.key} (destroyed)" if row.account and row.account.destroyed else row.key


def _cells(sum: Sum) -> list[str]:
    return [f"{number:,}" for number in (sum.messages, *sum.tokens)] + [_cost(sum)]


def _cost(sum: Sum) -> str:
    if sum.unpriced == sum.messages:
        return "unpriced"
    cost = f"${sum.cost:,.2f}" if sum.cost >= 1 else f"${sum.cost:.4f}"
    if not sum.unpriced:
        return cost
    return f"at least {cost}, {counted(sum.unpriced, 'message')} unpriced"


def _explain(models: list[str]) -> None:
    from mngr.insight.prices import FILE, is_library_there

    if is_library_there():
        notice(f"prices are missing for {clean(', '.join(models))}: {FILE} in MNGR_HOME can say them")
    else:
        notice(f"prices are not known: pip install 'mngr[prices]' brings them, {FILE} in MNGR_HOME can say them")
