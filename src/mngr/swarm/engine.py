"""The engine: takes a run from wherever its log has got to, to its end."""

from __future__ import annotations

import os

from mngr.errors import UsageError
from mngr.swarm import learn, words
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
    from mngr.swarm.state import Run


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
        expected = learn.expected(fleet.home, run.plan["project"], run.plan["type"])
        self._desk = desk = Desk(fleet, writer, run, recipe, request, heard)
        self._settlement = Settlement(desk)
        self._watch = Watch(desk, expected)
        self._dispatch = self._watch.dispatch = Dispatch(desk, self._watch, self._settlement, expected)
        self._homecoming = Homecoming(desk, self._watch, self._settlement)
        self._checks = Checks(desk, self._watch, self._settlement)
        self._wishes = Reader(os.path.join(run.directory, CONTROL))
        self._wishes.position = run.controls_read

    def work(self) -> None:
        """Until every task is accounted for, or dispatch is paused and nothing else is left to be done."""
        desk, run = self._desk, self._desk.run
        desk.note("started", pid=os.getpid())
        if run.paused:
            desk.note("unpaused")
        for task in run.in_phase(words.ENDED):
            if not task.ending:  # it may have been told since that its result will not do
                desk.note("reopened", task)
        for host in {task.host for task in run.in_phase(words.RUNNING, words.PARKED)}:
            self._watch.follow(host)
        try:
            while True:
                self._obey()
                self._decide()
                desk.sync()
                if self._is_over():
                    break
                desk.take_in(self._watch.wait())
        finally:
            self._watch.leave()
        if run.is_done:
            desk.note("finished", counts=run.counts())

    def _decide(self) -> None:
        """In the order in which a task goes through it from behind, so that what becomes free is used at once."""
        self._dispatch.ask_account()
        self._dispatch.give_up()
        self._dispatch.reconcile()
        self._homecoming.gather()
        self._homecoming.bring()
        self._checks.begin()
        self._checks.collect()
        self._settlement.judge()
        self._homecoming.clear()
        self._checks.sweep()
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
