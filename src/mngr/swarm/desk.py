"""The desk at which a run is worked on: the run as its log has it, the one pen that writes the log, and the lanes in
which others do what takes time. Whoever sits here (dispatch, watch, homecoming, checks, settlement) decides by what
lies here and writes down what comes of it; that alone decides what is next, so that it may be killed at any line.

One thread decides and writes. What is done elsewhere runs in a thread of its own, one at a time in each lane, and its
outcome comes back by the inbox."""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from contextlib import nullcontext

from mngr.errors import MngrError
from mngr.model import Ref
from mngr.prompts import filled, find
from mngr.swarm import learn, words
from mngr.swarm.supervise import backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import mngr
    from mngr.fleet.survey import Status
    from mngr.swarm.log import Writer
    from mngr.swarm.recipe import Recipe
    from mngr.swarm.state import Run, Task

    Lane = tuple[str, ...]

PATIENCE = 35  # tries with a host that does not answer: a quarter of an hour


class Desk:
    def __init__(
        self,
        fleet: mngr.Fleet,
        writer: Writer,
        run: Run,
        recipe: Recipe,
        request: mngr.Request,
        heard: Callable[[dict[str, Any]], None],
    ) -> None:
        self.fleet, self.run, self.recipe, self.request = fleet, run, recipe, request
        self.lanes: dict[Lane, set[str]] = {}  # with the tasks that are being worked on in each
        self.statuses: dict[str, Status] = {}  # of the run's agents, by name, when they were last looked at
        self.looked_at: float | None = None  # monotonic; None: not yet
        self.look_due = 0.0
        self.away: set[str] = set()  # hosts of its agents that did not answer then
        self.clocks = {task.id: task.elapsed for task in run.tasks.values()}  # seconds that each has been at work
        self.fresh: set[str] = set()  # tasks whose agents were made by this very process, and know nothing yet
        # Agents of somebody who worked on the run before us, and may have died with a word to them on the lips
        self.inherited = {task.id for task in run.tasks.values() if task.phase in (*words.AT_WORK, words.ENDED)}
        self.made: set[str] = set()  # names of agents that this very process makes, or has made
        self._earlier = learn.earlier(fleet.home, run.plan["project"], run.plan["type"], besides=run.id)
        self.learn()
        self._writer, self._heard, self._unsynced = writer, heard, False
        self._touched: dict[str, float] = {}  # by task, monotonic: when something was last done to it
        self._turns: dict[str, threading.Lock] = {}  # by host: who may crowd it
        self._inbox: queue.Queue[Callable[[], None]] = queue.Queue()
        self._holds: dict[str, tuple[int, float]] = {}  # by task: tries so far, and when the next one is due

    # The log

    def note(self, event: str, task: Task | None = None, **members: Any) -> None:
        head = {"event": event} if task is None else {"event": event, "task": task.id}
        written = self._writer.write({**head, **members})
        self._unsynced = True
        self.run.apply(written)
        self._heard(written)

    def sync(self) -> None:
        """What was noted is on the disk from here on."""
        if self._unsynced:
            self._writer.sync()
            self._unsynced = False

    # The lanes

    def go(
        self,
        lane: Lane,
        tasks: Iterable[Task],
        act: Callable[[], Any],
        then: Callable[[Any], None],
        crowds: str | None = None,
    ) -> None:
        """`act` in a thread, then `then` here, with what it gave or with the MngrError that it raised. Until then the
        lane is taken, and nobody does anything else to these tasks. `crowds` is a host on which it runs many processes:
        one such thing at a time, so that the host is left to the agents."""
        self.lanes[lane] = {task.id for task in tasks}
        turn = self._turns.setdefault(crowds, threading.Lock()) if crowds else nullcontext()

        def work() -> None:
            try:
                with turn:
                    found = act()
            except MngrError as error:
                found = error
            except OSError as error:
                found = MngrError(f"{error.filename or 'this machine'}: {error.strerror or error}")
            except BaseException:  # noqa: BLE001 - our own mistake, or a recipe's: it must not leave the run hanging
                trace = traceback.format_exc()
                self.post(lambda: self._break(trace))
                return
            self.post(lambda: finish(found))

        def finish(found: Any) -> None:
            self._touched |= dict.fromkeys(self.lanes.pop(lane), time.monotonic())
            then(found)

        threading.Thread(target=work, name="-".join(lane), daemon=True).start()

    def _break(self, trace: str) -> None:
        raise RuntimeError(f"while this was done:\n{trace}")

    def post(self, call: Callable[[], None]) -> None:
        self._inbox.put(call)

    def take_in(self, wait: float) -> None:
        """What has come, after a wait for the first of it."""
        try:
            self._inbox.get(timeout=wait)()
            while True:
                self._inbox.get_nowait()()
        except queue.Empty:
            pass

    # The tasks

    def free(self, *phases: str) -> list[Task]:
        """Tasks in these phases that nobody is at, and that are not on hold."""
        busy, now = {task for tasks in self.lanes.values() for task in tasks}, time.monotonic()
        return [
            task
            for task in self.run.in_phase(*phases)
            if task.id not in busy and self._holds.get(task.id, (0, 0.0))[1] <= now
        ]

    def is_free(self, task: Task) -> bool:
        return task in self.free(task.phase)

    def untouched_since(self, moment: float, *phases: str) -> list[Task]:
        """Free ones of which what was seen at that moment still holds."""
        return [task for task in self.free(*phases) if self._touched.get(task.id, moment) <= moment]

    def learn(self) -> None:
        """What to expect of one more agent: from those of this run, and then those of earlier ones."""
        self.expected = learn.expected([*learn.of_tasks(self.run.tasks.values()), *self._earlier])

    def hold(self, task: Task) -> int:
        """Not now: a little later. How often that was."""
        tries = self._holds.get(task.id, (0, 0.0))[0] + 1
        self._holds[task.id] = (tries, time.monotonic() + backoff(tries - 1, first=1.0, most=30.0))
        return tries

    def unhold(self, task: Task) -> None:
        self._holds.pop(task.id, None)

    def is_away(self, task: Task) -> bool:
        """Nobody knows how its agent is: what can be put off until its host is back is better done then."""
        return task.host in self.away

    def is_needed_after(self, host: str, leaving: Iterable[Task]) -> bool:
        """Others of this run are there still, or it stays in any case."""
        gone = {task.id for task in leaving}
        there = (task for task in self.run.tasks.values() if task.host == host and task.agent and not task.cleared)
        return self.is_in_use(host) or any(task.id not in gone for task in there)

    def is_in_use(self, host: str) -> bool:
        """It is the user's, or more agents of this run may go there. Any other goes with its last agent."""
        return host in self.run.plan["places"] and not (self.run.is_done and self.is_made(host))

    def is_made(self, host: str) -> bool:
        """The run has made it. A host that was there before the run stays."""
        plan = self.run.plan
        if host == "local" or host in plan.get("found", plan["places"]):  # the log of an older run does not tell
            return False
        place = self.fleet.places.find(host)
        return place is not None and place.made

    def ref(self, task: Task) -> Ref:
        plan = self.run.plan
        program = plan["kind"] if plan["kind"] != plan["type"] else ""
        return Ref(id=task.agent, name=task.name, type=plan["type"], host=task.host, program=program)

    def place(self, task: Task) -> str:
        """Where what comes home of it lies."""
        return os.path.join(self.run.directory, "tasks", task.name)

    def prompt(self, task: Task) -> str:
        path = os.path.join(self.run.directory, "prompts", f"{task.id}.md")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # as it was written
            return file.read()

    def text(self, name: str, **values: str) -> str:
        """A prompt of the engine's own."""
        return filled(find(self.fleet.home, __file__, name), values)

    @property
    def speaks(self) -> bool:
        """Its agents can be spoken to. What is typed into a plain command would be taken for its input."""
        return bool(self.run.plan["kind"] != "command")

    def hurry(self) -> None:
        """Something has happened: look soon, but not all the time."""
        self.look_due = min(self.look_due, time.monotonic() + 0.05)


def by_host(tasks: Iterable[Task]) -> list[tuple[str, list[Task]]]:
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.host, []).append(task)
    return list(groups.items())
