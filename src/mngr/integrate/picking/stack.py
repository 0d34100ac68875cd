"""The stack: which changes are in, one upon the other, as trees. First everything that is no fix, folded into one step,
then each fix as a step of its own. It follows from the plan alone: the same plan gives the same trees.

Every group of the plan ends in exactly one place: in a pick, among what was left out, among what was there already, or
among what was dropped. The other half of a commit is not in without its fix. What conflicts is tried in this order: as
it was solved before, as a union, in another order, together with a fix of its branch; only then is it left out.

It stays linear: each change is picked at its place, once more at the end of its lane, and once more behind a fix, and
all trials of another order together pick at most `_TRIES_EACH` times as many changes as the plan has."""

from __future__ import annotations

from mngr.integrate.picking.attempt import RESOLVED, UNION, attempt
from mngr.integrate.picking.kinship import bereft, builds_on, comes_after, touches
from mngr.integrate.picking.pick import Picked
from mngr.integrate.picking.trace import Trace
from mngr.integrate.plain import few
from mngr.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.integrate.change import Group, Ranked
    from mngr.integrate.picking.attempt import Solve
    from mngr.integrate.picking.scratch import Scratch

REST, FIX = "rest", "fix"  # kinds of steps
ORDER = "order"  # how a pick came in, besides UNION and RESOLVED
_TRIES_EACH = 4


class Plan(Record):
    """What is to be integrated, in this order. Dropped groups may still be in the lists."""

    rest: list[Group] = []  # noqa: RUF012 - that are no fixes
    fixes: list[Ranked] = []  # noqa: RUF012
    carried: dict[str, str] = {}  # noqa: RUF012 - key of a group of the rest, to that of the fix it travels with
    dropped: dict[str, str] = {}  # noqa: RUF012 - by key: why it is not to be in
    solved: Solve | None = None  # the tree for a change, what came of its pick, and the tree it was picked onto


class Pick(Record):
    """A group that is in."""

    group: Group
    tree: str  # with it
    how: str = ""  # UNION, RESOLVED or ORDER; empty: just so
    text: str = ""  # of that, for people


class Step(Record):
    """What becomes one commit."""

    kind: str  # REST or FIX
    ranked: Ranked | None = None  # of a fix
    picks: list[Pick]  # of a fix: the fix itself, then what it carries
    tree: str  # with all of them
    notes: list[str] = []  # noqa: RUF012


class Left(Record):
    """A group that could not be placed."""

    group: Group
    why: str
    paths: list[str] = []  # noqa: RUF012 - that conflict; none if it was left out because of another
    against: list[Group] = []  # noqa: RUF012 - what is in and in its way
    picked: Picked
    onto: str  # the tree that it was picked onto


class Stack(Record):
    steps: list[Step]
    left: list[Left]
    there: list[Group]  # they add nothing
    dropped: list[Group]
    tree: str  # with all steps; that of the base if there are none

    @property
    def picks(self) -> list[Pick]:
        return [each for step in self.steps for each in step.picks]


def build(scratch: Scratch, plan: Plan) -> Stack:
    """Of a commit that was split, the other half is bound to the fix if that is out: so it follows it, wherever it goes
    when everything is placed anew."""
    fixes = [ranked.group for ranked in plan.fixes]
    bound = bereft(plan.rest, fixes, plan.dropped)
    while True:
        stack = _Builder(scratch, plan.replace(carried={**plan.carried, **bound})).stack()
        out = {*plan.dropped, *(left.group.key for left in stack.left)}
        more = bereft([group for group in plan.rest if group.key not in bound], fixes, out)
        if not more:
            return stack
        bound |= more


class _Unit(Record):
    """What stands and moves together: a change that is folded, or a fix with what it carries."""

    ranked: Ranked | None
    picks: list[Pick]
    left: list[Left] = []  # noqa: RUF012 - of what it should carry
    there: list[Group] = []  # noqa: RUF012
    notes: list[str] = []  # noqa: RUF012

    @property
    def tree(self) -> str:
        return self.picks[-1].tree

    def touches(self, paths: set[str]) -> bool:
        return any(touches(each.group, paths) for each in self.picks)


class _Lane:
    """Units one upon the other, from a tree on. Nothing moves from one lane to the other."""

    def __init__(self, onto: str) -> None:
        self.onto = onto
        self.units: list[_Unit] = []

    def tree(self, place: int | None = None) -> str:
        """Below the unit at that place; without one, with all of them."""
        below = len(self.units) if place is None else place
        return self.units[below - 1].tree if below else self.onto


class _Builder:
    def __init__(self, scratch: Scratch, plan: Plan) -> None:
        self._scratch, self._plan = scratch, plan
        self._tries = _TRIES_EACH * (len(plan.rest) + len(plan.fixes))
        self._fold = _Lane(scratch.tree_of(scratch.base))
        self._fixes = _Lane(self._fold.onto)
        self._followers: dict[str, list[Group]] = {}  # by the key of a fix: what comes in right behind it
        self._placed: list[Group] = []  # in the order in which they were
        self._trace = Trace(scratch)
        self._left: dict[str, Left] = {}
        self._there: dict[str, Group] = {}

    def stack(self) -> Stack:
        plan = self._plan
        fixes = {ranked.group.key: ranked for ranked in plan.fixes}
        carried = {key: fix for key, fix in plan.carried.items() if fix in fixes}
        rest = [group for group in plan.rest if group.key not in plan.dropped]
        self._fill(self._fold, [(group, None) for group in rest if group.key not in carried])
        self._fixes.onto = self._fold.tree()
        wanted = [(ranked.group, ranked) for key, ranked in fixes.items() if key not in plan.dropped]
        for group in rest:
            self._let_follow(group, carried, fixes)
        self._fill(self._fixes, wanted)
        everything = [*plan.rest, *(ranked.group for ranked in plan.fixes)]
        return Stack(
            steps=self._steps(),
            left=[self._left[group.key] for group in everything if group.key in self._left],
            there=[group for group in everything if group.key in self._there],
            dropped=[group for group in everything if group.key in plan.dropped],
            tree=self._fixes.tree(),
        )

    def _steps(self) -> list[Step]:
        folded = [pick for unit in self._fold.units for pick in unit.picks]
        notes = [note for unit in self._fold.units for note in unit.notes]
        steps = [Step(kind=REST, picks=folded, tree=self._fold.tree(), notes=notes)] if folded else []
        return steps + [
            Step(kind=FIX, ranked=unit.ranked, picks=unit.picks, tree=unit.tree, notes=unit.notes)
            for unit in self._fixes.units
        ]

    def _let_follow(self, group: Group, carried: dict[str, str], fixes: dict[str, Ranked]) -> None:
        """Behind the fix that it was said to travel with. If it has found no place in the fold: behind the fix that
        carries what it builds on; or else behind the last fix of its branch, and rather one that changes what it
        conflicts in."""
        fix = carried.get(group.key)
        if fix in self._plan.dropped:
            self._left[group.key] = self._left_behind(group, fixes[fix].group, "dropped", self._fold.tree())
        elif fix:
            self._followers.setdefault(fix, []).append(group)
        elif left := self._left.get(group.key):
            below = {carried[each.key] for each in self._plan.rest if each.key in carried and builds_on(group, each)}
            wanted = [ranked.group for key, ranked in fixes.items() if key not in self._plan.dropped]
            own = [each for each in wanted if any(change.branch == group.first.branch for change in each.changes)]
            paths = set(left.paths)
            near = [each for each in wanted if each.key in below] or [each for each in own if touches(each, paths)]
            if near or own:
                self._followers.setdefault((near or own)[-1].key, []).append(group)

    # Filling a lane

    def _fill(self, lane: _Lane, wanted: Sequence[tuple[Group, Ranked | None]]) -> None:
        waiting = []
        for group, ranked in wanted:
            left = self._place(lane, group, ranked)
            if left:
                self._left[group.key] = left
                waiting.append((len(self._placed), group, ranked, set(left.paths)))
        for since, group, ranked, paths in waiting:
            has_changed = any(touches(each, paths) for each in self._placed[since:])
            if not (has_changed and self._place_behind(lane, group, ranked)):
                self._leave_followers(group)

    def _place(self, lane: _Lane, group: Group, ranked: Ranked | None) -> Left | None:
        onto = lane.tree()
        unit = self._unit(group, ranked, onto)
        if isinstance(unit, Picked):
            placed = self._place_before(lane, group, ranked, unit)
            return None if placed else self._left_out(group, unit, onto)
        self._take(lane, len(lane.units), group, unit)
        return None

    def _place_behind(self, lane: _Lane, group: Group, ranked: Ranked | None) -> bool:
        """What conflicted at its place, when what was in its way may have been changed by others."""
        last = lane.units[-1].picks[0].group.name if lane.units else ""
        unit = self._unit(group, ranked, lane.tree())
        if isinstance(unit, Picked):
            return False
        paths = self._left[group.key].paths
        unit = unit and _moved(unit, f"placed behind {last}: at its own place it conflicts in {few(paths)}")
        self._take(lane, len(lane.units), group, unit)
        return True

    def _place_before(self, lane: _Lane, group: Group, ranked: Ranked | None, picked: Picked) -> bool:
        """The other order: below the first one that it conflicts with, if all that stand above it stay as they are."""
        place = _first_met(lane, group, picked)
        if place is None or self._tries <= sum(len(unit.picks) for unit in lane.units[place:]):
            return False
        self._tries -= 1
        unit = self._unit(group, ranked, lane.tree(place))
        if isinstance(unit, Picked) or (unit and unit.picks[0].how):
            return False
        if unit:
            above = self._all_again(lane.units[place:], unit.tree)
            if above is None:
                return False
            met, paths = lane.units[place].picks[0].group.name, few(picked.paths)
            unit = _moved(unit, f"placed before {met}: behind it, it conflicts in {paths}")
            lane.units[place:] = above
        self._take(lane, place, group, unit)
        return True

    def _all_again(self, units: list[_Unit], onto: str) -> list[_Unit] | None:
        done = []
        for unit in units:
            picks = []
            for old in unit.picks:
                self._tries -= 1
                new = self._attempt(old.group, onto)
                had_conflict = old.how in (UNION, RESOLVED)
                if isinstance(new, Picked) or new.tree == onto or (new.how and not had_conflict):
                    return None
                picks.append(new if had_conflict else old.replace(tree=new.tree))
                onto = new.tree
            done.append(unit.replace(picks=picks))
        return done

    def _take(self, lane: _Lane, place: int, group: Group, unit: _Unit | None) -> None:
        """Without a unit, there is nothing to do for this group."""
        if unit is None:
            self._left.pop(group.key, None)
            self._there[group.key] = group
            self._follow_nothing(lane, self._followers.pop(group.key, []))
            return
        lane.units.insert(place, unit)
        self._account(unit, [each.group for each in unit.picks])

    def _account(self, unit: _Unit, new: Iterable[Group]) -> None:
        for group in new:
            self._placed.append(group)
            self._left.pop(group.key, None)
        for group in unit.there:
            self._left.pop(group.key, None)
            self._there[group.key] = group
        for left in unit.left:
            self._left.setdefault(left.group.key, left)

    # What travels with a fix

    def _follow_nothing(self, lane: _Lane, followers: list[Group]) -> None:
        """Their fix is there already, so that they come in behind what stands below it."""
        if followers and lane.units:
            before = lane.units[-1]
            unit = self._with_followers(before.replace(left=[], there=[]), followers)
            lane.units[-1] = unit
            self._account(unit, [each.group for each in unit.picks[len(before.picks) :]])
        elif followers:
            self._fill(self._fold, [(group, None) for group in followers])
            lane.onto = self._fold.tree()

    def _leave_followers(self, fix: Group) -> None:
        for group in self._followers.pop(fix.key, []):
            left = self._left_behind(group, fix, "left out", self._fixes.tree())
            self._left.setdefault(group.key, left)

    def _with_followers(self, unit: _Unit, followers: list[Group]) -> _Unit:
        picks, left, there, notes = list(unit.picks), [], [], list(unit.notes)
        for group in followers:
            onto = picks[-1].tree
            new = self._attempt(group, onto)
            if isinstance(new, Picked):
                left.append(self._left_out(group, new, onto))
            elif new.tree == onto:
                there.append(group)
            else:
                picks.append(new)
                if in_fold := self._left.get(group.key):
                    notes.append(f"{group.name} travels with it: before it, it conflicts in {few(in_fold.paths)}")
        return unit.replace(picks=picks, left=left, there=there, notes=notes)

    # One change

    def _unit(self, group: Group, ranked: Ranked | None, onto: str) -> _Unit | Picked | None:
        """None if it adds nothing; the conflict if there is no way to have it here."""
        own = self._attempt(group, onto)
        if isinstance(own, Picked):
            return own
        if own.tree == onto:
            return None
        return self._with_followers(_Unit(ranked=ranked, picks=[own]), self._followers.get(group.key, []))

    def _attempt(self, group: Group, onto: str) -> Pick | Picked:
        came = attempt(self._scratch, onto, group.first, self._plan.solved)
        if isinstance(came, Picked):
            return came
        self._trace.note(group, onto, came.tree)
        return Pick(group=group, **came.to_dict())

    def _left_out(self, group: Group, picked: Picked, onto: str) -> Left:
        paths = picked.paths
        against = self._trace.against(group, picked, onto)
        missing = self._missing(group)
        if missing:
            why = f"builds on {missing[0].name}, which was {'dropped' if self._is_dropped(missing[0]) else 'left out'}"
        else:
            why = f"conflicts with {few([each.name for each in against]) or 'the base'}"
        return Left(group=group, why=f"{why}, in {few(paths)}", paths=paths, against=against, picked=picked, onto=onto)

    def _missing(self, group: Group) -> list[Group]:
        """What it builds on and is not in, the latest first."""
        plan = self._plan
        everything = [*plan.rest, *(ranked.group for ranked in plan.fixes)]
        out = [each for each in everything if self._is_dropped(each) or each.key in self._left]
        return [each for each in reversed(out) if builds_on(group, each)]

    def _is_dropped(self, group: Group) -> bool:
        return group.key in self._plan.dropped

    def _left_behind(self, group: Group, fix: Group, how: str, onto: str) -> Left:
        why = f"travels with {fix.name}, which was {how}"
        if group.key in bereft([group], [fix], [fix.key]):
            why = f"the fix of the same commit, {fix.name}, is not in"
        return Left(group=group, why=why, picked=Picked(tree=onto), onto=onto)


def _first_met(lane: _Lane, group: Group, picked: Picked) -> int | None:
    """The first unit that it can conflict with. What its branch made before stays below it."""
    begin = max((n + 1 for n, unit in enumerate(lane.units) if comes_after(group, unit.picks[0].group)), default=0)
    for paths in (set(picked.paths), set(group.first.paths)):
        for place in range(begin, len(lane.units)):
            if lane.units[place].touches(paths):
                return place
    return None


def _moved(unit: _Unit, text: str) -> _Unit:
    own = unit.picks[0]
    return unit.replace(picks=[own.replace(how=own.how or ORDER, text=own.text or text), *unit.picks[1:]])
