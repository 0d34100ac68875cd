"""Checking what agents claim: a program of the recipe, run as an agent of its own in a clean checkout on the same host,
made and set up as a work dir is."""

from __future__ import annotations

import os
import time

from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.model import Ref
from mngr.swarm import hands, supervise, words
from mngr.swarm.desk import PATIENCE, by_host
from mngr.swarm.schema import read_result
from mngr.swarm.secrets import known, redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.fleet.gather import Gathered
    from mngr.fleet.survey import Status
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
        self._away: dict[str, float] = {}  # by task, monotonic: since when its host does not answer
        self._known: dict[str, Check | None] = {}  # by task: what is to be run for it, and
        self._errors: dict[str, str] = {}  # why nobody can say that

    def begin(self) -> None:
        """Those that came home with a result. What has no result needs no check."""
        desk = self._desk
        room = self._room()
        for task in desk.free(words.HOME):
            if task.ending or desk.run.cancelled:
                desk.note("checked", task)
            elif room.get(task.host, AT_ONCE) > 0:
                if self._wanted(task) is None:
                    self._pass_over(task)
                else:
                    desk.note("checking", task, name=f"{task.name}-check", stage=words.VERIFY)
                    room[task.host] = room.get(task.host, AT_ONCE) - 1
        for task in desk.free(words.CHECKING):
            if task.checker not in desk.statuses and self._was_looked_for(task) and self._watch.is_free(task.checker):
                self._send(task)

    def _room(self) -> dict[str, int]:
        """For so many more checkers, on the hosts that have some."""
        return {host: AT_ONCE - len(tasks) for host, tasks in by_host(self._desk.run.in_phase(words.CHECKING))}

    def _was_looked_for(self, task: Task) -> bool:
        """One that we have just sent has not been seen yet."""
        seen = self._desk.looked_at
        return seen is not None and seen > self._since.get(task.id, float("-inf"))

    def _wanted(self, task: Task) -> Check | None:
        """A mistake in a recipe costs one check, and not the run."""
        if task.id not in self._known:
            home = self._settlement.home(task)
            self._known[task.id] = None
            if home.result is not None:
                try:
                    self._known[task.id] = self._desk.recipe.check(task.data, home)
                except Exception as error:  # noqa: BLE001 - whatever it is
                    self._errors[task.id] = f"the recipe cannot say what to check: {type(error).__name__}: {error}"
        return self._known[task.id]

    def _pass_over(self, task: Task) -> None:
        why = self._errors.get(task.id)
        self._desk.note("checked", task, check={"error": why} if why else {})

    def _send(self, task: Task) -> None:
        desk, wanted = self._desk, self._wanted(task)
        if wanted is None:  # it was wanted when somebody before us asked
            self._pass_over(task)
            return
        request = desk.request.replace(
            address=None if task.host == "local" else f"@{task.host}",
            type=hands.CHECKER,
            args=wanted.command,
            headless=False,
            base=wanted.base or task.home["head"],
            labels={"run": desk.run.id, "role": hands.CHECK},
        )

        def then(found: hands.Launched | MngrError) -> None:
            why = found.message if isinstance(found, MngrError) else found.failed.get(task.checker, "")
            if why:
                desk.made.discard(task.checker)
            away = isinstance(found, hands.Launched) and found.away
            if why and desk.hold(task) >= (PATIENCE if away else TRIES):
                desk.note("checked", task, check={"error": why})
            elif not isinstance(found, MngrError) and task.checker in found.agents:
                desk.unhold(task)  # what else may go wrong has tries of its own
                self._since[task.id] = time.monotonic()
                self._watch.follow(found.agents[task.checker].host)
                desk.look_due = 0.0  # until it has been seen, it would be sent again

        wish = hands.Launch(names=[task.checker], inputs=[wanted.input])
        desk.made.add(task.checker)
        desk.go(("check", task.id), [task], lambda: hands.launch(desk.fleet, request, wish), then, task.host)

    def collect(self) -> None:
        """From checkers that have ended, or have had their time."""
        for task in self._desk.free(words.CHECKING):
            status = self._desk.statuses.get(task.checker)
            if status is None:
                continue
            if not self._desk.is_away(task):
                self._away.pop(task.id, None)
            wanted = self._wanted(task)
            began = self._since.setdefault(task.id, time.monotonic())
            if self._desk.is_away(task):
                self._wait_for_host(task)
            elif status.state in _ENDS:
                self._collect(task, _ref(status), status.verdict.reason or status.state)
            elif wanted is None or time.monotonic() - began > wanted.timeout:
                self._collect(task, _ref(status), "had no time left")

    def _wait_for_host(self, task: Task) -> None:
        """Nobody knows how far the check is. When its host is back it has all its time once more."""
        now = time.monotonic()
        self._since[task.id] = now
        if now - self._away.setdefault(task.id, now) > supervise.TIME_TO_COME_BACK:
            self._desk.note("checked", task, check={"error": f"{task.host} has been out of reach for too long"})

    def _collect(self, task: Task, ref: Ref, how: str) -> None:
        desk = self._desk
        into = os.path.join(desk.place(task), "check")

        def then(found: dict[str, Gathered] | MngrError) -> None:
            if isinstance(found, MngrError):
                away = isinstance(found, HostUnreachable | TimedOut)
                if desk.hold(task) >= (PATIENCE if away else TRIES):
                    desk.note("checked", task, check={"error": found.message})
                return
            if ref.id not in found and desk.hold(task) < PATIENCE:
                return  # its host did not answer
            self._known.pop(task.id, None)
            value, flaw = read_result(os.path.join(into, ref.name, "result.json"), None)
            desk.note("checked", task, check=value or {"error": f"the check {how}: {flaw}"})

        values = known(desk.request, desk.run.plan["type"])

        def act() -> dict[str, Gathered]:
            found = hands.gather(desk.fleet, [ref], into)
            redact(into, values)
            return found

        desk.go(("checked", task.id), [task], act, then, task.host)

    def sweep(self) -> None:
        """Checkers that nobody waits for any more are removed: what they found is in the log."""
        for host in {ref.host for ref in self.left()}:
            if ("sweep", host) not in self._desk.lanes:
                self._sweep(host, [ref for ref in self.left() if ref.host == host])

    def _sweep(self, host: str, refs: list[Ref]) -> None:
        """The host stays: the agents whose work they checked are still there, and are cleared away next."""
        desk, gone = self._desk, {ref.name for ref in refs}

        def then(found: dict[str, str] | MngrError) -> None:
            desk.statuses = {name: status for name, status in desk.statuses.items() if name not in gone}

        desk.go(("sweep", host), [], lambda: hands.clear(desk.fleet, refs, [], keep_host=True), then)

    def left(self) -> list[Ref]:
        done = {task.checker for task in self._desk.run.tasks.values() if task.phase != words.CHECKING}
        return [_ref(status) for name, status in self._desk.statuses.items() if name in done]


def _ref(status: Status) -> Ref:
    """Also when its record cannot be read."""
    return Ref(id=status.id, name=status.name, type=hands.CHECKER, host=status.host)
