"""Bringing home what ended agents have made: result, artifacts, transcript and branch. Then the agents are cleared
away. A result that is invalid goes back to its agent, once, while that is still there to be told."""

from __future__ import annotations

import os

from mngr.errors import HostUnreachable, MngrError, TimedOut
from mngr.swarm import hands, words
from mngr.swarm.desk import PATIENCE, by_host
from mngr.swarm.secrets import known, redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.fleet.gather import Gathered
    from mngr.swarm.desk import Desk
    from mngr.swarm.settlement import Settlement
    from mngr.swarm.state import Task
    from mngr.swarm.watch import Watch

TRIES = 5


class Homecoming:
    def __init__(self, desk: Desk, watch: Watch, settlement: Settlement) -> None:
        self._desk, self._watch, self._settlement = desk, watch, settlement
        self._halted: dict[str, str] = {}  # by task: what the terminal of one that was ended by us showed
        self._gathered: dict[str, Gathered] = {}  # by task: what has been fetched, but not yet its branch
        self._flaws: dict[str, str] = {}  # of these, why the result is none; "" if it is one

    def halt(self) -> None:
        """Those that did not hand in a result, at once: they would go on spending, and changing what is fetched."""
        desk = self._desk
        waiting = [task for task in desk.free(words.ENDED) if task.ending and task.id not in self._halted]
        for host, tasks in by_host(waiting):
            lane = ("halt", host)
            if lane not in desk.lanes:
                desk.go(lane, tasks, self._halt_act(tasks), self._halt_then(tasks))

    def _halt_act(self, tasks: list[Task]) -> Callable[[], dict[str, str | None]]:
        desk, refs = self._desk, [self._desk.ref(task) for task in tasks]
        return lambda: hands.halt(desk.fleet, refs)

    def _halt_then(self, tasks: list[Task]) -> Callable[[dict[str, str | None] | MngrError], None]:
        def then(found: dict[str, str | None] | MngrError) -> None:
            for task in tasks:  # one that could not be reached is stopped when it is brought home
                self._halted[task.id] = "" if isinstance(found, MngrError) else found.get(task.agent) or ""

        return then

    def gather(self) -> None:
        """What they left, in one stream for each host."""
        desk = self._desk
        ready = [task for task in desk.free(words.ENDED) if not task.ending or task.id in self._halted]
        for host, tasks in by_host(task for task in ready if task.id not in self._gathered):
            lane = ("gather", host)
            if lane not in desk.lanes:
                desk.go(lane, tasks, self._gather_act(tasks), self._gather_then(tasks), host)

    def _gather_act(self, tasks: list[Task]) -> Callable[[], dict[str, Gathered]]:
        desk = self._desk
        refs, into = [desk.ref(task) for task in tasks], os.path.join(desk.run.directory, "tasks")
        values = known(desk.request, desk.run.plan["type"])

        def act() -> dict[str, Gathered]:
            found = hands.gather(desk.fleet, refs, into)
            for task in tasks:
                if task.agent in found:
                    self._keep_screen(task)
                    redact(desk.place(task), values)
            return found

        return act

    def _gather_then(self, tasks: list[Task]) -> Callable[[dict[str, Gathered] | MngrError], None]:
        desk = self._desk

        def then(found: dict[str, Gathered] | MngrError) -> None:
            for task in tasks:
                if isinstance(found, MngrError):
                    self._later(task, found.message, _tries(found, task))
                elif task.agent in found:
                    desk.unhold(task)  # what else may go wrong has tries of its own
                    self._gathered[task.id] = found[task.agent]
                    self._flaws[task.id] = self._settlement.result(task, found[task.agent].result_bytes)[1]
                elif (status := self._desk.statuses.get(task.name)) and status.id == task.agent:
                    self._later(task, f"{task.host} did not answer", _patience(task))
                else:
                    self._settlement.settle(
                        task, task.ending or words.LOST, task.why or "its agent is not there any more"
                    )

        return then

    def bring(self) -> None:
        desk = self._desk
        ready = []
        for task in desk.free(words.ENDED):
            if task.id not in self._gathered:
                continue
            flaw = self._flaws[task.id]
            if task.ending or not flaw or task.returned or not self._can_be_told(task):
                ready.append(task)
            else:
                del self._gathered[task.id]
                self._watch.send_back(task, flaw)
        for host, tasks in by_host(ready):
            lane = ("bring", host)
            if lane not in desk.lanes:
                desk.go(lane, tasks, self._bring_act(tasks), self._bring_then(tasks), host)

    def _can_be_told(self, task: Task) -> bool:
        status = self._desk.statuses.get(task.name)
        return self._desk.speaks and status is not None and status.state in ("running", "waiting")

    def _bring_act(self, tasks: list[Task]) -> Callable[[], dict[str, hands.Brought]]:
        desk = self._desk
        refs = {task.agent: desk.ref(task) for task in tasks}
        gathered = {task.agent: self._gathered[task.id] for task in tasks}
        repo, base = desk.run.plan["project"], desk.run.plan["base"]
        return lambda: hands.bring(desk.fleet, refs, gathered, repo, base)

    def _bring_then(self, tasks: list[Task]) -> Callable[[dict[str, hands.Brought] | MngrError], None]:
        def then(found: dict[str, hands.Brought] | MngrError) -> None:
            for task in tasks:
                brought = None if isinstance(found, MngrError) else found.get(task.agent)
                if brought is None:
                    why = found if isinstance(found, MngrError) else MngrError("it is gone")
                    self._later(task, why.message, _tries(why, task))
                    continue
                if brought.spend:
                    self._watch.book(task, brought.spend)
                seen, base = self._gathered[task.id].head, self._desk.run.plan["base"]
                if brought.why and not seen:  # it has destroyed its own repository
                    self._give_up(task, words.FAILED, brought.why)
                elif brought.why or (brought.head == base and seen not in ("", base)):
                    tries = _patience(task) if brought.away else TRIES
                    self._later(task, brought.why or "its branch did not come", tries)
                else:
                    self._come_home(task, brought)

        return then

    def _come_home(self, task: Task, brought: hands.Brought) -> None:
        desk = self._desk
        gathered = self._gathered.pop(task.id)
        desk.unhold(task)
        stage = {} if task.ending else {"stage": words.PULL}
        desk.note(
            "home",
            task,
            head=brought.head,
            base=desk.run.plan["base"],
            commits=brought.commits,
            dirty=gathered.dirty,
            left=gathered.left,
            result_bytes=gathered.result_bytes,
            exit=gathered.exit,
            **stage,
        )

    def _later(self, task: Task, why: str, tries: int = TRIES) -> None:
        """An ending that was known stays what it is; a result that nobody can fetch is none."""
        if self._desk.hold(task) >= tries:
            self._give_up(task, words.INFRASTRUCTURE, why)

    def _give_up(self, task: Task, ending: str, why: str) -> None:
        self._gathered.pop(task.id, None)
        told = f"its work could not be brought home: {why}"
        self._settlement.settle(task, task.ending or ending, f"{task.why}; {told}" if task.ending else told)

    def _keep_screen(self, task: Task) -> None:
        """Of one that has no terminal any more."""
        path = os.path.join(self._desk.place(task), "screen.txt")
        if (shown := self._halted.get(task.id)) and not os.path.exists(path):
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(shown)

    def clear(self) -> None:
        """Agents whose tasks are settled: destroyed or kept, as the settings say. One whose work could not be brought
        home is kept in any case."""
        desk = self._desk
        waiting = [task for task in desk.free(words.SETTLED) if task.agent and not task.cleared]
        # Who has checked its work goes first, so that a host which was made for the two of them goes with the agent.
        for host, tasks in by_host(task for task in waiting if task.checker not in desk.statuses):
            if ("clear", host) not in desk.lanes:
                # The last one stays on a host that the run has made and may need again, and takes it along in the end.
                self._clear(host, tasks[:-1] if desk.is_in_use(host) and desk.is_made(host) else tasks)

    def _clear(self, host: str, tasks: list[Task]) -> None:
        desk = self._desk
        doomed = [desk.ref(task) for task in tasks if task.home and self._is_doomed(task)]
        gone = {ref.id for ref in doomed}
        kept = [desk.ref(task) for task in tasks if task.agent not in gone]
        stays = desk.is_needed_after(host, tasks)

        def then(found: dict[str, str] | MngrError) -> None:
            for task in tasks:
                how = f"left: {found.message}" if isinstance(found, MngrError) else found.get(task.agent, "gone")
                tries = _tries(found, task) if isinstance(found, MngrError) else _tries_of(how, task)
                if not how.startswith("left") or desk.hold(task) >= tries:
                    desk.note("cleared", task, how=how)
            if not stays:
                self._watch.unfollow(host)

        if tasks:
            desk.go(("clear", host), tasks, lambda: hands.clear(desk.fleet, doomed, kept, keep_host=stays), then, host)

    def _is_doomed(self, task: Task) -> bool:
        keep = self._desk.run.settings["keep"]
        return keep == "none" or (keep == "failed" and task.outcome in words.GOOD)


def _tries(error: MngrError, task: Task) -> int:
    return _patience(task) if isinstance(error, HostUnreachable | TimedOut) else TRIES


def _tries_of(how: str, task: Task) -> int:
    return _patience(task) if how.startswith(hands.OUT_OF_REACH) else TRIES


def _patience(task: Task) -> int:
    """With a host that does not answer. One that has cost an agent its task was waited for long enough."""
    return TRIES if words.LOST in (task.ending, task.outcome) else PATIENCE
