"""The engine: takes a run from wherever its log has got to, to its end."""

from __future__ import annotations

import os

from mngr.errors import UsageError
from mngr.swarm import budget, hands, words
from mngr.swarm import settings as tuning
from mngr.swarm.checks import Checks
from mngr.swarm.desk import Desk
from mngr.swarm.dispatch import BRIEF, Dispatch
from mngr.swarm.homecoming import Homecoming
from mngr.swarm.log import CONTROL, Reader
from mngr.swarm.settlement import Settlement
from mngr.swarm.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import mngr
    from mngr.swarm.log import Writer
    from mngr.swarm.recipe import Recipe
    from mngr.swarm.state import Run, Task


class Engine:
    def __init__(
        self,
        fleet: mngr.Fleet,
        writer: Writer,
        run: Run,
        recipe: Recipe,
        request: mngr.Request,
        heard: Callable[[dict[str, Any]], None],
    ) -> None:
        """`heard` is told every event, after it was written."""
        self._desk = desk = Desk(fleet, writer, run, recipe, request, heard)
        self._settlement = Settlement(desk)
        self._watch = Watch(desk)
        self._dispatch = self._watch.dispatch = Dispatch(desk, self._watch, self._settlement)
        self._homecoming = Homecoming(desk, self._watch, self._settlement)
        self._checks = Checks(desk, self._watch, self._settlement)
        self._wishes = Reader(os.path.join(run.directory, CONTROL))
        self._wishes.position = run.controls_read
        self._lesson = 4  # settled tasks, after which something can be learnt

    def work(self) -> None:
        """Until every task is accounted for, or dispatch is paused and nothing else is left to be done."""
        desk, run = self._desk, self._desk.run
        was_over = bool(run.paused) or run.finished_at is not None
        desk.note("started", pid=os.getpid())
        if run.paused:
            desk.note("unpaused")
        self._obey()  # before it is asked what can be paid for
        for task in run.in_phase(words.ENDED, words.SETTLED):
            if self._is_open(task, was_over):
                desk.note("reopened", task)
        makes_hosts = any(place.startswith(".") for place in run.plan["places"])
        if makes_hosts:
            hands.release_hosts(desk.fleet, run)
        for host in {task.host for task in run.in_phase(words.RUNNING, words.PARKED)}:
            self._watch.follow(host)
        try:
            while True:
                self._obey()
                self._learn()
                self._decide()
                desk.sync()
                if self._is_over():
                    break
                desk.take_in(self._watch.wait())
        finally:
            self._watch.leave()
        if run.is_done:
            names = [name for task in run.tasks.values() for name in (task.checker, task.name) if name]
            hands.forget(desk.fleet, [ref for name in names if (ref := desk.fleet.names.find(name))])
            if makes_hosts:
                hands.release_hosts(desk.fleet, run)
            desk.note("finished", counts=run.counts())

    def _is_open(self, task: Task, was_over: bool) -> bool:
        """It ended with a result, and may have been told since that this will not do; or nobody was ever sent, and what
        stood in the way may be gone: money, or what made a run pause."""
        if task.phase == words.ENDED:
            return not task.ending
        if not task.is_unbegun or self._desk.run.cancelled:
            return False
        if task.outcome == words.OVER_BUDGET:
            return not budget.is_used_up(self._desk.run, self._desk.expected)
        return was_over and task.outcome == words.INFRASTRUCTURE

    def _learn(self) -> None:
        """Each time that twice as many tasks are settled: it looks at all of them."""
        settled = len(self._desk.run.endings)
        if settled >= self._lesson:
            self._lesson = 2 * settled
            self._desk.learn()

    def _decide(self) -> None:
        """In the order in which a task goes through it from behind, so that what becomes free is used at once."""
        self._dispatch.ask_account()
        self._dispatch.give_up()
        self._dispatch.reconcile()
        self._homecoming.halt()
        self._homecoming.gather()
        self._homecoming.bring()
        self._checks.begin()
        self._checks.collect()
        self._settlement.judge()
        self._checks.sweep()
        self._homecoming.clear()
        self._watch.unpark()
        self._dispatch.launch()
        self._dispatch.brief()
        self._watch.look()

    def _is_over(self) -> bool:
        desk, run = self._desk, self._desk.run
        at_it = [
            lane for lane, tasks in desk.lanes.items() if tasks or lane[0] != BRIEF
        ]  # some have nobody left to tell
        if at_it or self._checks.left():
            return False
        if run.is_done:
            return all(task.cleared or not task.agent for task in run.tasks.values())
        left = [task for task in run.tasks.values() if not task.is_over]
        return bool(run.paused) and all(task.phase == words.PENDING for task in left)

    def _obey(self) -> None:
        """What others want of the run, by `swarm set` and `swarm cancel`; what makes no sense is passed over."""
        desk = self._desk
        for wish in self._wishes.events():
            who, asked = str(wish.get("who", "")), wish.get("time")
            if wish.get("wish") == "set" and _is_setting(wish.get("key"), wish.get("value")):
                desk.note("set", key=wish["key"], value=wish["value"], who=who, asked=asked)
            elif wish.get("wish") == "cancel" and not desk.run.cancelled:
                desk.note("cancelled", who=who, asked=asked)
        if self._wishes.position > desk.run.controls_read:
            desk.note("controls", bytes=self._wishes.position)


def _is_setting(key: Any, value: Any) -> bool:
    try:
        return bool(tuning.read(str(key), "none" if value is None else str(value)) == value)
    except UsageError:
        return False
