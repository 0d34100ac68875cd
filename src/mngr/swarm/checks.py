"""Checking what agents claim: a program of the recipe, run as an agent of its own in a clean checkout on the same host,
made and set up as a work dir is."""

from __future__ import annotations

import os
import time

from mngr.errors import MngrError
from mngr.swarm import hands, words
from mngr.swarm.schema import read_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.gather import Gathered
    from mngr.model import Ref
    from mngr.swarm.desk import Desk
    from mngr.swarm.recipe import Check
    from mngr.swarm.settlement import Settlement
    from mngr.swarm.state import Task
    from mngr.swarm.watch import Watch

AT_ONCE = 2  # on each host
TRIES = 3
_ENDS = ("done", "failed", "stopped")


class Checks:
    def __init__(self, desk: Desk, watch: Watch, settlement: Settlement) -> None:
        self._desk, self._watch, self._settlement = desk, watch, settlement
        self._since: dict[str, float] = {}  # by task, monotonic
        self._known: dict[str, Check | None] = {}  # by task: what is to be run for it

    def begin(self) -> None:
        """Those that came home with a result. What has no result needs no check."""
        desk = self._desk
        for task in desk.free(words.HOME):
            if task.ending or desk.run.cancelled:
                desk.note("checked", task)
            elif self._is_room(task.host):
                if self._wanted(task) is None:
                    desk.note("checked", task)
                else:
                    desk.note("checking", task, name=f"{task.name[:57]}-check", stage=words.VERIFY)
        for task in desk.free(words.CHECKING):
            if task.checker not in desk.statuses and desk.looked_at is not None and self._watch.is_free(task.checker):
                self._send(task)

    def _is_room(self, host: str) -> bool:
        return len([task for task in self._desk.run.in_phase(words.CHECKING) if task.host == host]) < AT_ONCE

    def _wanted(self, task: Task) -> Check | None:
        if task.id not in self._known:
            home = self._settlement.home(task)
            self._known[task.id] = None if home.result is None else self._desk.recipe.check(task.data, home)
        return self._known[task.id]

    def _send(self, task: Task) -> None:
        desk, wanted = self._desk, self._wanted(task)
        assert wanted is not None
        request = desk.request.replace(
            address=None if task.host == "local" else f"@{task.host}",
            type="command",
            args=wanted.command,
            headless=False,
            base=wanted.base or task.home["head"],
            labels={"run": desk.run.id, "role": hands.CHECK},
        )

        def then(found: hands.Launched | MngrError) -> None:
            why = found.message if isinstance(found, MngrError) else found.failed.get(task.checker, "")
            if why and desk.hold(task) >= TRIES:
                desk.note("checked", task, check={"error": why})
            elif not isinstance(found, MngrError) and task.checker in found.agents:
                self._since[task.id] = time.monotonic()
                self._watch.follow(found.agents[task.checker].host)
                desk.look_due = 0.0  # until it has been seen, it would be sent again

        wish = hands.Launch(names=[task.checker], inputs=[wanted.input])
        desk.go(("check", task.id), [task], lambda: hands.launch(desk.fleet, request, wish), then)

    def collect(self) -> None:
        """From checkers that have ended, or have had their time."""
        for task in self._desk.free(words.CHECKING):
            status = self._desk.statuses.get(task.checker)
            if status is None or status.agent is None:
                continue
            wanted = self._wanted(task)
            began = self._since.setdefault(task.id, time.monotonic())
            if status.state in _ENDS:
                self._collect(task, status.agent.ref, status.verdict.reason or status.state)
            elif wanted is None or time.monotonic() - began > wanted.timeout:
                self._collect(task, status.agent.ref, "had no time left")

    def _collect(self, task: Task, ref: Ref, how: str) -> None:
        desk = self._desk
        into = os.path.join(desk.place(task), "check")

        def then(found: dict[str, Gathered] | MngrError) -> None:
            if isinstance(found, MngrError):
                if desk.hold(task) >= TRIES:
                    desk.note("checked", task, check={"error": found.message})
                return
            self._known.pop(task.id, None)
            value, flaw = read_result(os.path.join(into, ref.name, "result.json"), None)
            desk.note("checked", task, check=value or {"error": f"the check {how}: {flaw}"})

        desk.go(("checked", task.id), [task], lambda: hands.gather(desk.fleet, [ref], into), then)

    def sweep(self) -> None:
        """Checkers that nobody waits for any more are removed: what they found is in the log."""
        desk = self._desk
        if self.left() and ("sweep",) not in desk.lanes:
            refs = self.left()
            gone = {ref.name for ref in refs}

            def then(found: dict[str, str] | MngrError) -> None:
                desk.statuses = {name: status for name, status in desk.statuses.items() if name not in gone}

            desk.go(("sweep",), [], lambda: hands.clear(desk.fleet, refs, []), then)

    def left(self) -> list[Ref]:
        wanted = {task.checker for task in self._desk.run.in_phase(words.CHECKING)}
        return [
            status.agent.ref
            for name, status in self._desk.statuses.items()
            if status.agent and status.agent.labels.get("role") == hands.CHECK and name not in wanted
        ]
