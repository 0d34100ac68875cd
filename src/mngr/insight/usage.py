"""What agents have spent, summed by agent, label, model or day: all that the ledger knows, of destroyed agents too,
after a look at what is new in the logs of those that live."""

from __future__ import annotations

import time
from decimal import Decimal
from fnmatch import fnmatchcase

from mngr.address import nearest
from mngr.errors import NoSuchAgent, UsageError
from mngr.fleet.collect import collect
from mngr.fleet.ledger import CLASSES, Account, with_ledger
from mngr.fleet.select import has_labels
from mngr.fleet.survey import agents, natural
from mngr.insight.prices import Prices
from mngr.model import STATES
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.fleet.fleet import Fleet
    from mngr.fleet.ledger import Batch, Ledger
    from mngr.fleet.select import Selection
    from mngr.fleet.survey import Status


class Sum:
    """Messages, their tokens by class, and what they cost in USD. `unpriced` of the messages are not in the cost."""

    def __init__(self) -> None:
        self.messages = self.unpriced = 0
        self.tokens = [0] * len(CLASSES)
        self.cost = Decimal(0)

    def add(self, batch: Batch, cost: Decimal | None) -> None:
        self.messages += batch.messages
        self.tokens = [held + count for held, count in zip(self.tokens, batch.tokens, strict=True)]
        if cost is None:
            self.unpriced += batch.messages
        else:
            self.cost += cost

    @property
    def fresh(self) -> int:
        """Tokens that were not read from a cache: what is, is the same context again and again."""
        return sum(self.tokens) - self.tokens[CLASSES.index("cache_read")]


class Row(Record):
    key: str | None  # name of the agent or model, the day, the label's value; None: without that label
    sum: Sum
    account: Account | None = None  # of the agent, when it is summed by agent


class Report(Record):
    rows: list[Row]
    total: Sum
    unpriced: list[str]  # models, of which a price is missing


def usage(
    fleet: Fleet, selection: Selection, tell: Callable[[str], None], *, since: float = float("-inf"), by: str = "agent"
) -> Report:
    """Of everybody when nothing is selected. A host that cannot be asked is told, and known as of the last time."""
    _check_way(by)
    for state in selection.states:
        if state not in STATES:
            raise UsageError(f"there is no state {state!r}", f"one of {', '.join(STATES)}")
    prices = Prices(fleet.home)
    statuses = agents(fleet)

    def act(ledger: Ledger) -> Report:
        collect(ledger, fleet, statuses, tell, again=False)
        living = {status.id for status in statuses} | {ref.id for ref in fleet.names.all()}
        ledger.bury(account.id for account in ledger.accounts().values() if account.id not in living)
        chosen = _chosen(selection, ledger.accounts(), statuses)
        return _sum_up(ledger, chosen, prices, since, by)

    return with_ledger(fleet.home, tell, act)


def spent(fleet: Fleet, statuses: Sequence[Status], tell: Callable[[str], None]) -> dict[str, Sum]:
    """What exactly these agents have spent, by id. Cheap however much the ledger knows of others, so that it can be
    asked again and again while they work."""
    prices = Prices(fleet.home)
    ids = [status.id for status in statuses]

    def act(ledger: Ledger) -> dict[str, Sum]:
        collect(ledger, fleet, statuses, tell)
        sums = {id: Sum() for id in ids}
        for batch in ledger.batches(float("-inf"), prices.steps(ledger.models(ids)), ids):
            sums[batch.agent].add(batch, prices.cost(batch))
        return sums

    return with_ledger(fleet.home, tell, act)


def _check_way(by: str) -> None:
    kind, _, key = by.partition(":")
    if by not in ("agent", "model", "day", "label") and not (kind == "label" and key):
        raise UsageError(f"--by is agent, model, day, label or label:KEY, not {by!r}")


def _chosen(selection: Selection, accounts: dict[str, Account], statuses: list[Status]) -> dict[str, Account]:
    """Who is meant, of those who have an account. A word may mean an agent without one, who has spent nothing."""
    names = [(account.id, account.name, account.host) for account in accounts.values()]
    names += [(status.id, status.name, status.host) for status in statuses if status.id not in accounts]
    meant = {id for word in selection.words for id in _meant(word, names)}
    states = {status.id: status.state for status in statuses}
    return {
        account.id: account
        for account in accounts.values()
        if (not selection.words or account.id in meant)
        and (not selection.states or states.get(account.id) in selection.states)
        and (not selection.hosts or account.host in selection.hosts)
        and (not selection.types or account.type in selection.types)
        and has_labels(account.labels, selection.labels)
    }


def _meant(word: str, names: list[tuple[str, str, str]]) -> list[str]:
    """Names and globs, also of the last names of destroyed agents; with @HOST if need be."""
    found = [id for id, name, host in names if fnmatchcase(f"{name}@{host}" if "@" in word else name, word)]
    if not found:
        close = nearest(word, [name for _, name, _ in names])
        raise NoSuchAgent(f"no agent is or was called {word}", f"did you mean {close}?" if close else "see mngr usage")
    return found


def _sum_up(ledger: Ledger, accounts: dict[str, Account], prices: Prices, since: float, by: str) -> Report:
    key_of = _key_of(accounts, by)
    sums: dict[str | None, Sum] = {}
    total = Sum()
    unpriced: set[str] = set()
    for batch in ledger.batches(since, prices.steps(ledger.models())):
        if batch.agent not in accounts:
            continue
        cost = prices.cost(batch)
        if cost is None:
            unpriced.add(batch.model)
        sums.setdefault(key_of(batch), Sum()).add(batch, cost)
        total.add(batch, cost)
    rows = [Row(key=key, sum=sum) for key, sum in sums.items()]
    if by == "agent":
        rows = [row.replace(key=accounts[row.key or ""].name, account=accounts[row.key or ""]) for row in rows]
    rows.sort(key=lambda row: (row.key is None, natural(row.key or ""), row.account.created if row.account else 0))
    return Report(rows=rows, total=total, unpriced=sorted(unpriced))


def _key_of(accounts: dict[str, Account], by: str) -> Callable[[Batch], str | None]:
    if by == "agent":
        return lambda batch: batch.agent
    if by == "model":
        return lambda batch: batch.model
    if by == "day":
        return lambda batch: time.strftime("%Y-%m-%d", time.localtime(batch.time))
    label = by.partition(":")[2]
    if label:
        return lambda batch: accounts[batch.agent].labels.get(label)
    return lambda batch: ",".join(f"{k}={v}" for k, v in sorted(accounts[batch.agent].labels.items())) or None
