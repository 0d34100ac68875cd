"""In which order fixes come, and why. The rule compares one thing after the other, and the first that differs decides:

    1. how many tests it fixes: those of its branches that failed before and pass with it
    2. how severe it is: critical, high, medium, low, as its agents say; a step more if a test of it was seen to fail
    3. how many agents have made it
    4. in how many directories the tests lie that it fixes
    5. how few lines it changes; what is no text comes last, since nobody knows
    6. its key, so that no two are equal

Fixes of one branch stay in the order in which they were made, since a later one may need an earlier one wherever that
is: one that ranks high pulls up those before it. A rank file, written by a person or an agent, decides before all of
this; what it does not name follows in the order of the rule."""

from __future__ import annotations

import os
from bisect import bisect_left

from mngr.errors import UsageError
from mngr.integrate.change import Ranked
from mngr.integrate.plain import counted
from mngr.record import Record
from mngr.swarm import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mngr.integrate.change import Group, Source

_IMPORTANCE = ("", "low", "medium", "high", "critical")
_IS_RED = ("failed", "error", "timed out")
_IS_GREEN = "passed"
_PICK, _DROP = ("pick", "p"), ("drop", "d")
_SHORTEST_NAME = 4
_HEADER = """\
# The fixes in the order in which they are integrated, one a line: pick NAME or drop NAME. Only these two words count.
# Move lines to reorder them. A fix without a line comes behind the others.
"""


class RankFile(Record):
    order: list[str]  # names, also of what is dropped
    dropped: list[str] = []  # noqa: RUF012
    why: dict[str, str] = {}  # noqa: RUF012 - by name: what whoever moved it says


def ranked(groups: Sequence[Group], sources: Iterable[Source], order: RankFile | None = None) -> list[Ranked]:
    """All of them, also those that the file drops: best first. UsageError if the file names what is none of them."""
    by_branch = {source.branch: source for source in sources}
    weights = {group.key: _Weight(group, by_branch) for group in groups}
    by_rule, pulled = _by_rule(groups, weights)
    wanted, moved = (by_rule, {}) if order is None else _by_file(by_rule, order)
    place = {group.key: number for number, group in enumerate(wanted)}
    done: list[Ranked] = []
    for group in wanted:
        above = pulled.get(group.key)
        is_before = above is not None and place[group.key] < place[above.key]
        told = [f"before {above.name}: its branch made it first"] if above and is_before else []
        done.append(Ranked(group=group, reasons=weights[group.key].reasons() + (moved.get(group.key) or told)))
    return done


def find(groups: Sequence[Group], name: str) -> Group:
    """The one with this name, or of which it is the beginning. UsageError if there is none, or more than one."""
    found = [group for group in groups if len(name) >= _SHORTEST_NAME and group.key.startswith(name)]
    if len(found) != 1:
        what = "no change" if not found else "more than one change"
        raise UsageError(f"{what} is called {name}", "--dry-run shows all names")
    return found[0]


def read_rank(text: str) -> RankFile:
    """Comments and blank lines are free; of the others the first two words count."""
    order, dropped = [], []
    for number, line in enumerate(text.splitlines(), 1):
        said = line.split("#")[0].split()
        if not said:
            continue
        if len(said) < 2 or said[0] not in (*_PICK, *_DROP):
            raise UsageError(f"line {number} of the rank file is none: {line.strip()}", "write pick NAME or drop NAME")
        if said[1] in order:
            raise UsageError(f"{said[1]} is in the rank file twice, the second time in line {number}", "once is enough")
        order.append(said[1])
        if said[0] in _DROP:
            dropped.append(said[1])
    return RankFile(order=order, dropped=dropped)


def write_rank(fixes: Iterable[Ranked], dropped: Collection[str] = ()) -> str:
    """`dropped` are keys or names."""
    lines = []
    for each in fixes:
        is_dropped = each.group.key in dropped or each.group.name in dropped
        subject, reasons = _printed(each.group.first.subject), _printed("; ".join(each.reasons))
        lines.append(f"{_DROP[0] if is_dropped else _PICK[0]} {each.group.name}  {subject}  # {reasons}")
    return _HEADER + "".join(f"{line}\n" for line in lines)


def _printed(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


# The rule


class _Weight:
    """What the rule knows of one fix."""

    def __init__(self, group: Group, by_branch: dict[str, Source]) -> None:
        known = [by_branch[change.branch] for change in group.changes if change.branch in by_branch]
        self.group = group
        self.tests = sorted({test for source in known for test in _fixed_tests(source)})
        self.was_seen = any(_failed_before(source) for source in known)
        self.declared = max((_level(change.importance) for change in group.changes), default=0)
        names = {source.branch: (source.run, source.agent) for source in known if source.agent}
        self.agents = len({names.get(change.branch, change.branch) for change in group.changes})
        self.directories = len({os.path.dirname(test.partition("::")[0]) for test in self.tests})
        self.lines = group.first.added + group.first.removed

    def sort_key(self) -> tuple[int | str, ...]:
        severity = self.declared + self.was_seen
        first = self.group.first
        size = max(self.lines, len(first.paths))  # what is only renamed has no lines
        wide = -self.agents, -self.directories
        return -len(self.tests), -severity, *wide, not first.is_text, size, self.group.key

    def reasons(self) -> list[str]:
        said = [f"fixes {counted(len(self.tests), 'test')}"] if self.tests else []
        if self.declared:
            said.append(f"declared {_IMPORTANCE[self.declared]}")
        if self.was_seen and not self.tests:
            said.append("its test failed before")
        if self.agents > 1:
            said.append(f"made {self.agents} times")
        if self.directories > 1:
            said.append(f"tests in {self.directories} directories")
        size = counted(self.lines, "line") if self.group.first.is_text else "of unknown size,"
        return [*said, f"{size} in {counted(len(self.group.first.paths), 'file')}"]


def _by_rule(groups: Sequence[Group], weights: dict[str, _Weight]) -> tuple[list[Group], dict[str, Group]]:
    """And those that another one has pulled up, by key, with that one."""
    before = _predecessors(groups)
    placed: set[int] = set()
    done: list[Group] = []
    pulled: dict[str, Group] = {}
    for best in sorted(range(len(groups)), key=lambda number: weights[groups[number].key].sort_key()):
        chain, waiting = set[int](), [best]
        while waiting:
            number = waiting.pop()
            if number not in placed and number not in chain:
                chain.add(number)
                waiting += before[number]
        placed |= chain
        done += [groups[number] for number in sorted(chain)]
        pulled.update((groups[number].key, groups[best]) for number in chain - {best})
    return done, pulled


def _predecessors(groups: Sequence[Group]) -> list[list[int]]:
    """Of each, by number: the one before it on the branch that it is picked from. If that one is picked from another
    branch, the one before that too, and so on. A group is picked from the first branch that has it, and so are those
    before it there: they have lower numbers, and there are no circles. Where that does not hold, none counts."""
    on_branch: dict[str, list[tuple[int, int]]] = {}  # place, number
    for number, group in enumerate(groups):
        for change in group.changes:
            on_branch.setdefault(change.branch, []).append((change.place, number))
    for made in on_branch.values():
        made.sort()
    found: list[list[int]] = []
    for number, group in enumerate(groups):
        branch, mine = group.first.branch, list[int]()
        made = on_branch[branch]
        for _, other in reversed(made[: bisect_left(made, (group.first.place, -1))]):
            if other < number:
                mine.append(other)
                if groups[other].first.branch == branch:
                    break
        found.append(mine)
    return found


def _fixed_tests(source: Source) -> set[str]:
    found = set()
    if source.test and (source.outcome == words.FIXED or (_failed_before(source) and _checked(source, "after"))):
        found.add(source.test)
    for other in source.check.get("others") or []:
        if other.get("base") in _IS_RED and other.get("head") == _IS_GREEN:
            found.add(str(other.get("test")))
    return found


def _failed_before(source: Source) -> bool:
    return source.outcome == words.FIXED or _outcome(source, "before") in _IS_RED


def _checked(source: Source, when: str) -> bool:
    return _outcome(source, when) == _IS_GREEN


def _outcome(source: Source, when: str) -> object:
    """As the check says, beside which the claim may stand."""
    said = source.check.get(when)
    return said.get("check") if isinstance(said, dict) else said


def _level(importance: str) -> int:
    return _IMPORTANCE.index(importance) if importance in _IMPORTANCE else 0


# The file


def _by_file(by_rule: list[Group], order: RankFile) -> tuple[list[Group], dict[str, list[str]]]:
    """And what is to be said of those that it has moved."""
    first = _named(by_rule, order)
    keys = {group.key for group in first}
    wanted = first + [group for group in by_rule if group.key not in keys]
    place = {group.key: number for number, group in enumerate(by_rule)}
    why = {find(by_rule, name).key: f": {text}" for name, text in order.why.items()}
    moved = _moved([place[group.key] for group in wanted])
    return wanted, {
        by_rule[old].key: [f"moved by the rank file, from place {old + 1}{why.get(by_rule[old].key, '')}"]
        for old in moved
    }


def _named(groups: Sequence[Group], order: RankFile) -> list[Group]:
    found, unknown = [], []
    for name in order.order:
        try:
            found.append(find(groups, name))
        except UsageError:
            unknown.append(name)
    if unknown:
        raise UsageError(
            f"the rank file names what is no fix, or more than one: {', '.join(unknown)}",
            "remove these lines; --dry-run shows all names",
        )
    if len({group.key for group in found}) < len(found):
        raise UsageError("the rank file names a fix twice, by names of different length", "once is enough")
    return found


def _moved(places: list[int]) -> list[int]:
    """As few as explain the order: all but the longest run that is still in the old one."""
    ends: list[int] = []  # the best last element of runs, by their length
    lengths = []
    for place in places:
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        lengths.append(length)
    kept, wanted = set(), len(ends) - 1
    for place, length in zip(reversed(places), reversed(lengths), strict=True):
        if length == wanted:
            kept.add(place)
            wanted -= 1
    return [place for place in places if place not in kept]
