"""What is decided about an integration beyond its rules: the order of the fixes, and what is dropped. A person decides
by a rank file or by --drop, an agent by its answer; the file `rank` in the directory of the integration has it as it
was carried out, is written anew every time, and counts in the next one if a person has ever had a hand in it."""

from __future__ import annotations

import hashlib
import os

from mngr.errors import UsageError
from mngr.integrate.rank import RankFile, find, ranked, read_rank, write_rank
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


class Decided(Record):
    fixes: list[Ranked]  # in order, also those that are dropped
    rest: list[Group]
    dropped: dict[str, str]  # by key: why
    by: str  # who had the order last


def decide(
    groups: Sequence[Group],
    sources: Sequence[Source],
    wanted: Wanted,
    found: tuple[str, bool] | None,
    ask: Callable[[list[Ranked]], RankFile | None] = lambda _: None,
) -> Decided:
    """`found` is the rank file of before, if it counts, and whether it was edited since; `ask` asks an agent."""
    fixes = [group for group in groups if group.first.is_fix]
    rest = [group for group in groups if not group.first.is_fix]
    dropped = {find(groups, name).key: "dropped by --drop" for name in wanted.drop}
    if wanted.rank_file is not None:
        order, by, is_strict = read_rank(_text_of(wanted.rank_file)), PERSON, True
    elif found is not None:
        order, by, is_strict = read_rank(found[0]), PERSON, found[1]
    else:
        made = ranked(fixes, sources)
        said = ask(made) if len(made) > 1 else None
        by = PERSON if dropped else AGENT if said else RULE
        return Decided(fixes=ranked(fixes, sources, said) if said else made, rest=rest, dropped=dropped, by=by)
    order = order if is_strict else _known_only(groups, order)
    names = {name for name in order.order if any(group.key.startswith(name) for group in rest)}
    if kept := sorted(names.difference(order.dropped)):
        raise UsageError(
            f"{kept[0]} is no fix: all that is none goes into one commit", "drop NAME leaves it out; else no line"
        )
    dropped = {find(groups, name).key: "dropped in the rank file" for name in order.dropped} | dropped
    order = order.replace(order=[name for name in order.order if name not in names])
    return Decided(fixes=ranked(fixes, sources, order), rest=rest, dropped=dropped, by=by)


def found_in(directory: str) -> tuple[str, bool] | None:
    """The rank file of the integrations before, and whether it was edited since the last one wrote it. None if nobody
    has: then the rule decides again."""
    try:
        text = _text_of(os.path.join(directory, RANK))
    except UsageError:
        return None
    mark = _sum(text)
    events = Reader(os.path.join(directory, LOG)).events()
    written = [each for each in events if each.get("event") == _EVENT and each.get("sum") == mark]
    if not written:
        return text, True
    return (text, False) if written[-1].get("by") == PERSON else None


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
