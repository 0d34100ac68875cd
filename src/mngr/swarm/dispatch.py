"""Dispatch: which tasks get an agent now. Through three gates (slots, money, room on a host), with the intent in the
log before anything is made, and its task told to each agent that is up."""

from __future__ import annotations

import time

import mngr
from mngr.errors import MngrError
from mngr.swarm import budget, hands, supervise, words
from mngr.swarm.account import Account
from mngr.swarm.room import room
from mngr.swarm.settings import AUTO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.fleet.survey import Status
    from mngr.model import Agent, Ref
    from mngr.swarm.desk import Desk, Lane
    from mngr.swarm.settlement import Settlement
    from mngr.swarm.state import Task
    from mngr.swarm.watch import Watch

BATCH = 25  # agents that are made at once on a host
NEW_HOSTS = 8  # that are made at the same time
REST, LONGEST_REST = 10.0, 60.0  # seconds for a host on which nobody could be made, if there is another
EVERY = 0.5  # seconds: how often the account is asked
BRIEF = "brief"  # the lanes in which agents are told what to do: so many
BRIEFINGS = 2  # at the same time, since each waits for the slowest of its agents
TRIES = 3  # to tell one what to do
LONGEST_WAIT = 3600.0  # seconds; a retry that seems to be further away was put off before the clock was set back


class Dispatch:
    def __init__(self, desk: Desk, watch: Watch, settlement: Settlement) -> None:
        self._desk, self._watch, self._settlement = desk, watch, settlement
        self._account = Account(desk.fleet.home, desk.run.plan["account"])
        self._asked_at = float("-inf")  # monotonic: when the account was last asked
        self._share = 0  # what it gave, and is not used yet
        self._used_up_at: float | None = None  # monotonic: when it was first seen that the budget is
        self._full: set[str] = set()  # hosts without room, of which it has been said
        self._resting: dict[str, tuple[int, float]] = {}  # by place: failures in a row; monotonic, until when it rests
        self._begin_with: dict[str, dict[str, str]] = {}  # by provider: options of hosts, once one is prepared
        self._silent: dict[str, float] = {}  # by place, monotonic: since when it does not answer
        self._doubted: dict[str, float] = {}  # by task, monotonic: since when nobody knows whether its agent was made
        self._missing: dict[str, float] = {}  # of these, since when it is not there although its host answers
        self._telling: dict[Lane, float] = {}  # monotonic: when those who are told now were begun with

    # The gates

    def slots(self) -> int:
        """How many more agents may be at work."""
        wanted = self._desk.run.settings["max-agents"]
        return self._share if wanted == AUTO else int(wanted) - self._using()

    def _using(self) -> int:
        """One that is parked counts when it is being woken."""
        run, parked = self._desk.run, self._parked()
        return len(run.in_phase(words.LAUNCHING, words.RUNNING, words.PARKED)) - parked

    def _parked(self) -> int:
        """They use no account, but they are there, and go on before anybody else is sent."""
        return len(self._desk.free(words.PARKED))

    def take_slot(self) -> None:
        self._share -= 1

    def ask_account(self) -> None:
        """Also when the number of agents is fixed: other runs use the same account."""
        desk, watch, now = self._desk, self._watch, time.monotonic()
        if now - self._asked_at < EVERY and not watch.limits:
            return
        self._asked_at = now
        share = self._account.share(
            desk.run.id,
            time.time(),
            using=self._using(),
            wanted=len(desk.run.in_phase(words.PENDING, words.PARKED)),
            asked=watch.asked,
            limits=watch.limits,
            errors=watch.errors,
        )
        watch.asked, watch.limits, watch.errors = set(), [], 0
        self._share = share.free
        known = desk.run.limits[-1]["slots"] if desk.run.limits else None
        if desk.run.settings["max-agents"] == AUTO and known != share.limit:
            desk.note("limit", slots=share.limit, why=share.why)

    def launch(self) -> None:
        desk, now = self._desk, time.time()
        due = [task for task in desk.free(words.PENDING) if not now < task.not_before < now + LONGEST_WAIT]
        if desk.run.paused or desk.run.cancelled or not due:
            return
        for place, lane, most in self._shares(min(self.slots() - self._parked(), len(due))):
            if batch := self._reserve(due, place, most):
                self._make(lane, place, batch)

    def _shares(self, wanted: int) -> list[tuple[str, Lane, int]]:
        """So many agents, one after the other where the fewest of this run are. One that is made for it is empty."""
        openings, hosts = list(self._openings()), [task.host for task in self._desk.run.in_phase(*words.AT_WORK)]
        made = {lane for place, lane, _ in openings if place.startswith(".")}
        crowds = {lane: 0 if lane in made else hosts.count(place) for place, lane, _ in openings}
        shares = dict.fromkeys(crowds, 0)
        for _ in range(wanted):
            free = [lane for _, lane, most in openings if shares[lane] < most]
            if not free:
                break
            begun = [lane for lane in free if lane in made and shares[lane]]  # one that is to be shared is filled first
            least = min(begun or free, key=lambda lane: crowds[lane] + shares[lane])
            shares[least] += 1
        return [(place, lane, shares[lane]) for place, lane, _ in openings if shares[lane]]

    def _openings(self) -> Iterator[tuple[str, Lane, int]]:
        """Where agents can be made now, in which lane, and how many: many at once on one host, or several hosts at the
        same time with a few agents each. A host that has just failed is left alone for a while, if there is another."""
        desk, now = self._desk, time.monotonic()
        places = desk.run.plan["places"]
        rested = [place for place in places if self._resting.get(place, (0, 0.0))[1] <= now and place not in desk.away]
        for place in rested or places:
            if place.startswith("."):
                if not self._prepare(place):
                    continue
                lanes = [("launch", place, str(number)) for number in range(NEW_HOSTS)]
                shared = desk.run.settings["per-host"]
                yield from ((place, lane, shared) for lane in lanes if lane not in desk.lanes)
            elif ("launch", place) not in desk.lanes and not self._is_full(place):
                yield place, ("launch", place), BATCH

    def _prepare(self, place: str) -> bool:
        """Hosts that are made there begin with what one has got of commits and setup, if several are needed: whether
        that is done. One that cannot be prepared fails as each of them would, and that is told with the tasks."""
        desk = self._desk
        if place in self._begin_with:
            return True
        if len(desk.run.in_phase(words.PENDING)) <= desk.run.settings["per-host"]:
            return True
        if ("prepare", place) not in desk.lanes:
            request = desk.request.replace(address=f"@{place}")

            def then(found: dict[str, str] | MngrError) -> None:
                self._begin_with[place] = request.host_options if isinstance(found, MngrError) else found
                desk.hurry()

            name = hands.preparing(desk.run.id)
            desk.go(("prepare", place), [], lambda: mngr.prepare(desk.fleet, request, name=name), then)
        return False

    def _is_full(self, place: str) -> bool:
        machine = self._watch.machines.get(place)
        why = room(machine, self._desk.run.settings) if machine else ""
        if why and place not in self._full:
            self._desk.note("full", host=place, why=why)
        self._full = self._full | {place} if why else self._full - {place}
        return bool(why)

    def _reserve(self, due: list[Task], place: str, most: int) -> list[Task]:
        """The first of those that are due, as far as the money goes, which is put aside. They are due no more."""
        desk = self._desk
        batch: list[Task] = []
        while due and len(batch) < most:
            reserve = budget.reserve(desk.run, due[0], self._desk.expected)
            if reserve is None:
                break
            task = due.pop(0)
            desk.note("intended", task, name=task.name, host=place, usd=round(reserve.usd, 6), tokens=reserve.tokens)
            self.take_slot()
            batch.append(task)
        return batch

    def give_up(self) -> None:
        """What a cancelled run, or one without money, will not do any more."""
        desk = self._desk
        if desk.run.cancelled:
            self._withdraw(words.CANCELLED, f"the run was cancelled by {desk.run.cancelled}")
            return
        at_work = desk.run.in_phase(words.LAUNCHING, words.RUNNING, words.PARKED)
        pending = desk.run.in_phase(words.PENDING)
        if not (at_work or pending) or not budget.is_used_up(desk.run, self._desk.expected):
            self._used_up_at = None
            return
        self._used_up_at = self._used_up_at or time.monotonic()
        if pending and not at_work:
            spent = desk.run.spent()
            why = "not enough is left of the budget" if spent.messages else "the budget does not pay for a single agent"
            for task in desk.free(words.PENDING):
                self._settlement.settle(task, words.OVER_BUDGET, f"{why}: it was not started")
        elif pending and time.monotonic() - self._used_up_at > desk.run.settings["wind-down"]:
            self._withdraw(words.OVER_BUDGET, "the budget is used up")

    def _withdraw(self, outcome: str, why: str) -> None:
        for task in self._desk.free(words.PENDING):
            self._settlement.settle(task, outcome, why)
        for task in self._desk.free(words.RUNNING, words.PARKED):
            self._desk.note("ended", task, ending=outcome, why=why)

    # Making agents

    def _make(self, lane: Lane, place: str, batch: list[Task]) -> None:
        desk = self._desk
        wish = hands.Launch(names=[task.name for task in batch], inputs=[desk.prompt(task) for task in batch])
        request = desk.request.replace(
            address=None if place == "local" else f"@{place}", labels={"run": desk.run.id, "role": hands.WORK}
        )
        if place.startswith("."):
            request = request.replace(
                host_options=self._begin_with.get(place, request.host_options), per_host=desk.run.settings["per-host"]
            )

        def then(found: hands.Launched | MngrError) -> None:
            if isinstance(found, MngrError):
                found = hands.Launched(agents={}, failed=dict.fromkeys(wish.names, found.message))
            self._learn_of(place, found)
            for task in batch:
                agent = found.agents.get(task.name)
                if agent is not None:
                    desk.fresh.add(task.id)
                    self._adopt(task, agent)
                    continue
                desk.made.discard(task.name)
                if task.name in found.doubtful:
                    self._doubted[task.id] = time.monotonic()  # it is launching still: `reconcile` finds out
                    continue
                why = found.failed.get(task.name, "nobody knows why")
                stage = words.SETUP if "setup ended with" in why else words.LAUNCH
                self.try_again(task, why, stage, patient=found.away and self._may_come_back(place))

        desk.made.update(wish.names)
        desk.sync()  # what is intended is on the disk before it is done
        crowds = None if place.startswith(".") else place
        desk.go(lane, batch, lambda: hands.launch(desk.fleet, request, wish), then, crowds)

    def _learn_of(self, place: str, found: hands.Launched) -> None:
        if found.agents:
            self._resting.pop(place, None)
        else:
            failures = self._resting.get(place, (0, 0.0))[0] + 1
            pause = supervise.backoff(failures - 1, first=REST, most=LONGEST_REST)
            self._resting[place] = (failures, time.monotonic() + pause)
            self._begin_with.pop(place, None)  # its image may be gone
        if found.away:
            self._silent.setdefault(place, time.monotonic())
        else:
            self._silent.pop(place, None)

    def _may_come_back(self, place: str) -> bool:
        """Agents of this run have been there: it is away, and not a name for nothing."""
        was_there = any(task.agent and task.host == place for task in self._desk.run.tasks.values())
        return was_there and time.monotonic() - self._silent[place] < supervise.TIME_TO_COME_BACK

    def _adopt(self, task: Task, agent: Agent) -> None:
        desk = self._desk
        desk.note(
            "launched", task, stage=words.READY, id=agent.id, host=agent.host, branch=agent.branch, base=agent.base
        )
        self._watch.follow(agent.host)
        desk.hurry()

    def try_again(self, task: Task, why: str, stage: str, *, patient: bool = False) -> None:
        """Only for what is no fault of the agent's. `patient`: as often as it takes."""
        desk = self._desk
        if desk.run.cancelled:
            self._settlement.settle(task, words.CANCELLED, f"the run was cancelled by {desk.run.cancelled}")
        elif patient or task.attempt <= desk.run.settings["retries"]:
            most = LONGEST_REST if patient else LONGEST_WAIT
            later = time.time() + supervise.backoff(task.attempt - 1, first=2.0, most=most)
            desk.note("relaunch", task, why=why, not_before=round(later, 1), stage=stage)
        else:
            self._settlement.settle(task, words.INFRASTRUCTURE, why, stage=stage)

    def reconcile(self) -> None:
        """A launch that nobody here is at was begun by somebody who is no more, or broke off with the connection to
        its host: what became of it? What was seen before it broke off does not tell."""
        desk = self._desk
        if desk.looked_at is None:
            return
        for task in desk.untouched_since(desk.looked_at, words.LAUNCHING):
            status = desk.statuses.get(task.name)
            if status and status.is_out_of_reach:
                self._missing.pop(task.id, None)
                self._wait_for_host(task, status)
            elif status and status.agent:
                self._doubted.pop(task.id, None)
                desk.inherited.add(task.id)
                self._adopt(task, status.agent)
            elif self._had_time_to_appear(task):
                holder = desk.fleet.names.find(task.name)
                if self._watch.is_free(task.name):
                    self._doubted.pop(task.id, None)
                    self._missing.pop(task.id, None)
                    self._begin_anew(task, holder)

    def _begin_anew(self, task: Task, holder: Ref | None) -> None:
        """Without the host that was made for it, if it was."""
        desk = self._desk

        def then(_: object) -> None:
            desk.note("relaunch", task, why="the launch was interrupted", not_before=0.0)

        if holder is None or holder.host == "local" or desk.is_needed_after(holder.host, [task]):
            then(None)
        else:
            desk.go(("undo", task.id), [task], lambda: mngr.release_hosts(desk.fleet, [holder.host]), then)

    def _wait_for_host(self, task: Task, status: Status) -> None:
        now = time.monotonic()
        if now - self._doubted.setdefault(task.id, now) > supervise.TIME_TO_COME_BACK:
            why = f"nobody knows whether its agent was made: {status.host} has been out of reach for too long"
            self._settlement.settle(task, words.INFRASTRUCTURE, why, stage=words.LAUNCH)

    def _had_time_to_appear(self, task: Task) -> bool:
        """What was on its way to a host when the connection broke off may still arrive there."""
        now = time.monotonic()
        return task.id not in self._doubted or now - self._missing.setdefault(task.id, now) >= supervise.TIME_TO_APPEAR

    # Telling them

    def brief(self) -> None:
        """One that somebody else has launched may know its task already."""
        desk = self._desk
        self._let_go()
        texts: dict[Ref, str] = {}
        tasks = []
        for task in desk.free(words.RUNNING):
            status = desk.statuses.get(task.name)
            if task.briefed or task.id in desk.inherited:
                continue
            if not desk.speaks:
                desk.note("briefed", task)
            elif task.id in desk.fresh or (status and status.id == task.agent and _knows_nothing(status)):
                texts[desk.ref(task)] = desk.prompt(task)
                tasks.append(task)
            elif status and status.id == task.agent and _is_at_work(status):
                desk.note("briefed", task)
        lane = next((lane for n in range(BRIEFINGS) if (lane := (BRIEF, str(n))) not in desk.lanes), None)
        if tasks and lane is not None:
            self._telling[lane] = time.monotonic()
            desk.go(lane, tasks, lambda: hands.say(desk.fleet, texts), lambda found: self._briefed(tasks, found))

    def _let_go(self) -> None:
        """One that is seen at work knows its task, and one that is gone will not: they need not wait for the slowest of
        those that are told with them."""
        desk = self._desk
        for lane, began in self._telling.items():
            told = desk.lanes.get(lane, set())
            for task in [desk.run.tasks[id] for id in told]:
                status = desk.statuses.get(task.name)
                is_there = status is not None and status.id == task.agent
                if _is_at_work(status) if status and is_there else (desk.looked_at or 0.0) > began:
                    told.discard(task.id)
                    desk.fresh.discard(task.id)
                    desk.note("briefed", task)

    def _briefed(self, tasks: list[Task], found: dict[str, str] | MngrError) -> None:
        desk = self._desk
        for task in [task for task in tasks if not task.briefed]:
            why = found.message if isinstance(found, MngrError) else found[task.agent]
            desk.fresh.discard(task.id)
            if not why:
                desk.unhold(task)
                desk.note("briefed", task)
            elif desk.hold(task) >= TRIES:
                ending = words.BLOCKED if why.startswith("blocked") else words.INFRASTRUCTURE
                desk.note("ended", task, ending=ending, why=f"it could not be told its task: {why}")
        desk.hurry()


def _is_at_work(status: Status) -> bool:
    return status.state in ("running", "waiting") and not _knows_nothing(status)


def _knows_nothing(status: Status) -> bool:
    """Nobody has spoken to it yet."""
    return status.state == "starting" or (status.state == "waiting" and status.verdict.reason == "ready")
