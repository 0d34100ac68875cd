"""What is decided about an integration beyond its rules: the order of the fixes, and what is dropped. A person decides
by a rank file or by --drop, an agent by its answer; the file `rank` in the directory of the integration has it as it
was carried out, and is written anew every time. What is dropped in it stays so; its order counts in the next one if a
person has ever had a hand in that."""

from __future__ import annotations

import hashlib
import os

from mngr.errors import UsageError
from mngr.integrate.picking.rank import RankFile, find, ranked, read_rank, write_rank
from mngr.record import Record
from mngr.swarm.integrated import LOG
from mngr.swarm.log import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.integrate.change import Group, Ranked, Source
    from mngr.integrate.log import Log
    from mngr.integrate.wanted import Wanted

RANK = "rank"
RULE, PERSON, AGENT = "rule", "person", "agent"
_EVENT = "ranked"


class Before(Record):
    """What the rank file of the integrations before says."""

    said: RankFile
    is_edited: bool  # since the last one wrote it
    has_order: bool  # of a person: else the rule decides again


class Decided(Record):
    fixes: list[Ranked]  # in order, also those that are dropped
    rest: list[Group]
    dropped: dict[str, str]  # by key: why
    by: str  # who had the order last


def decide(
    groups: Sequence[Group],
    sources: Sequence[Source],
    wanted: Wanted,
    found: Before | None,
    ask: Callable[[list[Ranked]], RankFile | None] = lambda _: None,
) -> Decided:
    """`found` is what was decided before, if it counts; `ask` asks an agent."""
    fixes = [group for group in groups if group.first.is_fix]
    rest = [group for group in groups if not group.first.is_fix]
    dropped = {find(groups, name).key: "dropped by --drop" for name in wanted.drop}
    if wanted.rank_file is not None:
        order, has_order = read_rank(_text_of(wanted.rank_file)), True
    elif found is not None:
        order, has_order = found.said if found.is_edited else _known_only(groups, found.said), found.has_order
    else:
        order, has_order = RankFile(order=[]), False
    names = {name for name in order.order if any(group.key.startswith(name) for group in rest)}
    if kept := sorted(names.difference(order.dropped)):
        raise UsageError(
            f"{kept[0]} is no fix: all that is none goes into one commit", "drop NAME leaves it out; else no line"
        )
    dropped = {find(groups, name).key: "dropped in the rank file" for name in order.dropped} | dropped
    if has_order:
        order = order.replace(order=[name for name in order.order if name not in names])
        return Decided(fixes=ranked(fixes, sources, order), rest=rest, dropped=dropped, by=PERSON)
    made = ranked(fixes, sources)
    said = ask(made) if len(made) > 1 else None
    made = ranked(fixes, sources, said) if said else made
    return Decided(fixes=made, rest=rest, dropped=dropped, by=AGENT if said else RULE)


def found_in(directory: str) -> Before | None:
    """None if there is no such file."""
    try:
        text = _text_of(os.path.join(directory, RANK))
    except UsageError:
        return None
    mark = _sum(text)
    events = Reader(os.path.join(directory, LOG)).events()
    written = [each for each in events if each.get("event") == _EVENT and each.get("sum") == mark]
    has_order = not written or written[-1].get("by") == PERSON
    return Before(said=read_rank(text), is_edited=not written, has_order=has_order)


def write(log: Log, decided: Decided) -> None:
    """As it is carried out now."""
    others = [group for group in decided.rest if group.key in decided.dropped]
    text = write_rank(decided.fixes, decided.dropped)
    text += "".join(f"drop {group.name}  # {group.first.kind}\n" for group in others)
    path = os.path.join(log.directory, RANK)
    with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    # First what is remembered of it: a file that nobody has written down would look like one that was edited.
    log.note(_EVENT, by=decided.by, sum=_sum(text), dropped=sorted(key[:12] for key in decided.dropped))
    os.replace(f"{path}.new", path)


def _known_only(groups: Sequence[Group], order: RankFile) -> RankFile:
    """Without what was there when it was written, and is not any more."""
    known = [name for name in order.order if any(group.key.startswith(name) for group in groups)]
    return order.replace(order=known, dropped=[name for name in order.dropped if name in known])


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
