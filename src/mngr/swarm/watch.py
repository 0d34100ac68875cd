"""Watching the agents of a run: one listener per host, one look at all of them at once, and what follows from it for
each. What is to be done is decided in supervise.py and budget.py; here it is done and written down."""

from __future__ import annotations

import threading
import time

import mngr
from mngr.errors import MngrError
from mngr.swarm import budget, hands, supervise, words
from mngr.swarm.state import Sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mngr.fleet.activity import Activity
    from mngr.fleet.machine import Machine
    from mngr.fleet.survey import Status
    from mngr.swarm.desk import Desk
    from mngr.swarm.dispatch import Dispatch
    from mngr.swarm.state import Spend, Task

PULSE = 1.0  # seconds after which everything is looked at, also when nothing was heard
QUIET = 2.0  # seconds in which what our predecessor may have said to an agent shows, or it was not said
MONEY = 10.0  # seconds between two looks at what was spent, when nothing limits that
ABOUT_MACHINES = 5.0  # seconds that what is known of a host's memory and load may be old


class Observed:
    """What was seen of an agent, and since when."""

    def __init__(self) -> None:
        self.state = self.reason = ""
        self.since = self.result_since = 0.0
        self.result: str | None = None
        self.missed = 0

    def see(self, state: str, reason: str, result: str | None, now: float) -> None:
        if (state, reason) != (self.state, self.reason):
            self.state, self.reason, self.since = state, reason, now
        if result != self.result:
            self.result, self.result_since = result, now

    def as_look(self, now: float, sample: Sample | None, *, reports: bool, inherited: bool) -> supervise.Look:
        return supervise.Look(
            state=self.state,
            reason=self.reason,
            since=now - self.since,
            result=self.result,
            result_since=now - self.result_since,
            sample=sample,
            interrupted=self.reason == "create was interrupted",
            reports=reports,
            inherited=inherited,
        )


class Watch:
    dispatch: Dispatch  # who tries again what failed; it is there before the first look

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.machines: dict[str, Machine] = {}
        self.limits: list[float | None] = []  # when rate limits that were met will be over, and
        self.errors = 0  # other errors of the API, and
        self.asked: set[str] = set()  # agents that asked a model: all until the account is told
        self._seen: dict[str, Observed] = {}  # by agent
        self._there: set[str] = set()  # ids of all agents there are, those of others too
        self._money_at = self._machines_at = float("-inf")
        self._trouble = ""  # why the last look failed
        self._followed: set[str] = set()
        self._began = time.monotonic() if desk.run.orchestrators else float("-inf")  # nobody was here before us
        self._warned = False  # that the budget does not see everything
        self._leaving = threading.Event()

    # Listening

    def follow(self, host: str) -> None:
        """Hear what happens there. While a host is away, the pulse goes on."""
        if host in self._followed:
            return
        self._followed.add(host)

        def listen() -> None:
            try:
                with mngr.Feed([self._desk.fleet.host(host)]) as feed:
                    for _ in feed.events(pulse=PULSE):
                        if is_over():
                            return
                        self._desk.post(self._desk.hurry)
            except (MngrError, OSError):
                self._followed.discard(host)  # the next agent there is another try; until then the pulse must do

        def is_over() -> bool:
            return self._leaving.is_set() or host not in self._followed

        threading.Thread(target=listen, name=f"follow-{host}", daemon=True).start()

    def unfollow(self, host: str) -> None:
        """Its last agent is cleared away."""
        self._followed.discard(host)

    def leave(self) -> None:
        self._leaving.set()

    # Looking

    def wait(self) -> float:
        """Seconds for which nothing is to be done unless something comes."""
        if self._is_needed() and ("look",) not in self._desk.lanes:
            return max(0.0, min(self._desk.look_due - time.monotonic(), PULSE))
        return PULSE

    def _is_needed(self) -> bool:
        run = self._desk.run
        waiting = run.in_phase(words.LAUNCHING, words.CHECKING, words.PENDING)  # perhaps for room on a host
        return bool(self._alive() or waiting) or self._desk.looked_at is None

    def _alive(self) -> list[Task]:
        return [task for task in self._desk.run.in_phase(words.RUNNING, words.PARKED) if task.agent]

    def look(self) -> None:
        desk, now = self._desk, time.monotonic()
        if ("look",) in desk.lanes or now < desk.look_due or not self._is_needed():
            return
        settings = desk.run.settings
        limited = settings["budget"] is not None or settings["max-tokens"] is not None
        money = now - self._money_at >= (PULSE / 2 if limited else MONEY)
        hosts = self._hosts() if now - self._machines_at >= ABOUT_MACHINES else []
        refs = [desk.ref(task) for task in self._alive()]
        names = [name for task in desk.run.tasks.values() for name in (task.name, task.checker)]

        def act() -> hands.Looked:
            return hands.look(desk.fleet, desk.run.id, names, refs, money=money, hosts=hosts)

        def then(found: hands.Looked | MngrError) -> None:
            done = time.monotonic()
            desk.look_due = max(done + (done - now), min(desk.look_due, done + PULSE))
            if isinstance(found, MngrError):
                self._miss(found.message)
                return
            self._trouble = ""
            self._money_at = now if money else self._money_at
            self._machines_at = now if hosts else self._machines_at
            self.machines.update(found.machines)
            self._see(found, now)

        desk.look_due = float("inf")  # but for what is heard meanwhile
        desk.go(("look",), [], act, then)

    def _miss(self, why: str) -> None:
        """Nothing is known this time, and that means nothing for the agents. But who wonders why nothing goes on should
        find it."""
        if why != self._trouble:
            self._trouble = why
            self._desk.note("look failed", why=why)

    def _hosts(self) -> list[str]:
        """Those that have a name: one that is made for a single agent has all its memory for that. One that is just
        being made, or that nobody has been to yet, cannot be asked."""
        ready = {"local", *(place.name for place in self._desk.fleet.places.all() if place.home)}
        return [place for place in self._desk.run.plan["places"] if place in ready]

    def _see(self, found: hands.Looked, now: float) -> None:
        desk = self._desk
        passed = 0.0 if desk.looked_at is None else now - desk.looked_at
        desk.looked_at, desk.statuses, self._there = now, found.statuses, found.there
        desk.away = {status.host for status in found.statuses.values() if status.is_out_of_reach}
        for task in self._alive():
            if task.phase == words.RUNNING and not desk.is_away(task):
                desk.clocks[task.id] = desk.clocks.get(task.id, 0.0) + passed
            if found.money is not None and (spend := found.money.get(task.agent)):
                self.book(task, spend)
        self._review()
        for task in desk.untouched_since(now, words.RUNNING, words.PARKED):
            self._supervise(task, found, now)

    def book(self, task: Task, spend: Spend) -> None:
        before = task.spend
        if (spend.messages, spend.tokens, spend.usd) == (before.messages, before.tokens, before.usd):
            return
        self.asked.add(task.agent)
        stage = words.FIRST_RUN if spend.messages == 1 else words.WORK
        stages = {"stage": stage} if words.STAGES.index(task.stage) < words.STAGES.index(stage) else {}
        self._desk.note(
            "spent",
            task,
            messages=spend.messages,
            tokens=spend.tokens,
            usd=round(spend.usd, 6),
            unpriced=spend.unpriced,
            **stages,
        )

    def _review(self) -> None:
        desk = self._desk
        for each in budget.review(desk.run, self._desk.expected):
            task = desk.run.tasks[each.task]
            if each.act == budget.EXTEND:
                desk.note("extended", task, usd=round(each.usd, 6), tokens=each.tokens)
            elif task.phase in (words.RUNNING, words.PARKED) and desk.is_free(task):
                desk.note("ended", task, ending=words.OVER_BUDGET, why="its share of the budget is used up")
        blind = budget.warning(desk.run)
        if blind and not self._warned:
            self._warned = True
            desk.note("warned", why=blind)

    # One agent

    def _supervise(self, task: Task, found: hands.Looked, now: float) -> None:
        desk = self._desk
        status, active = found.statuses.get(task.name), found.activities.get(task.agent)
        seen = self._observe(task, status, active, now)
        if seen is None:
            return
        inherited = task.id in desk.inherited
        if inherited and now - seen.since < QUIET:
            return
        desk.inherited.discard(task.id)
        clock = desk.clocks.get(task.id, 0.0)
        sample = None if active is None else Sample(clock, active.log, active.screen, active.cpu)
        if sample is not None:
            self._sample(task, sample)
        if task.phase == words.PARKED and seen.state == "running":
            self._wake(task)
        look = seen.as_look(now, sample, reports=desk.speaks, inherited=inherited)
        act = supervise.judge(task, look, desk.run.settings, clock, time.time())
        if act.do != supervise.GO_ON:
            _ACTS[act.do](self, task, act, look)

    def _observe(self, task: Task, status: Status | None, active: Activity | None, now: float) -> Observed | None:
        """None: not enough is known this time. One miss is none: it may have been renamed just then."""
        seen = self._seen.setdefault(task.agent, Observed())
        if status is None or status.id != task.agent:
            seen.missed += 1
            seen.see("", "", None, now)
            return seen if seen.missed > 1 else None
        seen.missed = 0
        result = active.result if active and active.result != task.refused else None
        seen.see(status.state, status.verdict.reason, result, now)
        return seen

    def _sample(self, task: Task, sample: Sample) -> None:
        """Into the log, a few in the time that makes an agent stuck."""
        last = task.samples[-1] if task.samples else None
        pause = self._desk.run.settings["stuck-after"] / 6
        if task.phase != words.RUNNING or (last and sample.elapsed - last.elapsed < pause):
            return
        self._desk.note(
            "sampled",
            task,
            elapsed=round(sample.elapsed, 1),
            log=sample.log,
            screen=sample.screen,
            cpu=sample.cpu,
            moved=last is None or supervise.moved(last, sample),
        )

    def _end(self, task: Task, act: supervise.Act, look: supervise.Look) -> None:
        stage = {} if act.ending else {"stage": words.RESULT}
        evidence = {"state": look.state, "reason": look.reason, "result": look.result or ""}
        self._desk.note("ended", task, ending=act.ending, why=act.why, evidence=evidence, **stage)

    def _park(self, task: Task, act: supervise.Act, look: supervise.Look) -> None:
        self._desk.note("parked", task, until=round(act.until, 1), why=act.why)
        self.limits.append(act.until)

    def _nudge(self, task: Task, act: supervise.Act, look: supervise.Look) -> None:
        desk = self._desk
        name = "nudge"
        if act.why == supervise.API_ERROR:
            name = "resume"
            self.errors += 1
        self._say(task, desk.text(name, why=act.why), lambda: desk.note("nudged", task, why=act.why))

    def _restart(self, task: Task, act: supervise.Act, look: supervise.Look) -> None:
        """One that was not told its task yet has nothing to go on with: it is told like any other. One that has said
        nothing since may have ended before it had read it."""
        desk = self._desk
        text = desk.text("resume", why=act.why) if task.spend.messages else desk.prompt(task)
        if not task.briefed:
            text = ""
            desk.fresh.add(task.id)
        self._say(task, text, lambda: desk.note("restarted", task, why=act.why), start=True)

    def _relaunch(self, task: Task, act: supervise.Act, look: supervise.Look) -> None:
        """What is left of it is in the way of the next one."""
        desk, ref = self._desk, self._desk.ref(task)
        desk.go(
            ("undo", task.id),
            [task],
            lambda: hands.clear(desk.fleet, [ref], [], keep_host=desk.is_needed_after(task.host, [task])),
            lambda _: self.dispatch.try_again(task, act.why, words.LAUNCH),
        )

    def send_back(self, task: Task, flaw: str) -> None:
        desk, refused = self._desk, task.evidence.get("result", "")
        self._say(task, desk.text("return", flaw=flaw), lambda: desk.note("returned", task, flaw=flaw, result=refused))

    def unpark(self) -> None:
        """Those whose limit is over by now, as far as there is room for them."""
        desk, now = self._desk, time.time()
        for task in desk.free(words.PARKED):
            if desk.is_away(task):
                continue
            parked, due = task.parked_at or now, task.parked_until or now
            was_set_back = parked > now + 1  # the clock: nobody knows when it is due, and asking too early does no harm
            if (now >= due or was_set_back) and self.dispatch.slots() > 0:
                self.dispatch.take_slot()
                self._resume(task)

    def _resume(self, task: Task) -> None:
        self._say(task, self._desk.text("resume", why="the limit is over"), lambda: self._wake(task))

    def _wake(self, task: Task) -> None:
        seconds = max(0.0, time.time() - (task.parked_at or time.time()))
        self._desk.note("unparked", task, seconds=round(seconds, 1))

    def _say(self, task: Task, text: str, then: Callable[[], None], *, start: bool = False) -> None:
        """`then` in any case: one that did not take it is seen as it is by the next look, and nudged no second time."""
        desk, ref = self._desk, self._desk.ref(task)

        def act() -> Any:
            if start:
                mngr.start(desk.fleet, [ref])
            return hands.say(desk.fleet, {ref: text}) if text and desk.speaks else {}

        def done(_: Any) -> None:
            then()
            self._seen.pop(task.agent, None)
            desk.hurry()

        desk.go(("say", task.id), [task], act, done)

    def is_free(self, name: str) -> bool:
        """No agent of ours has this name, nor will one that somebody before us was making: who makes an agent has its
        name first, and a script that was started on this machine has made it by now, or never will. A name that stands
        for nobody is released. One that a stranger has stays theirs, and whoever tries to use it is told so."""
        names = self._desk.fleet.names
        holder = names.find(name)
        if holder is None or name in self._desk.made:
            return holder is None
        waited = time.monotonic() - self._began
        late = waited >= supervise.TIME_TO_APPEAR if holder.host == "local" else names.is_leftover(holder)
        if name in self._desk.statuses or not late:
            return False
        if holder.id not in self._there:
            names.release(holder)
        return True


_ACTS = {
    supervise.END: Watch._end,
    supervise.PARK: Watch._park,
    supervise.NUDGE: Watch._nudge,
    supervise.RESTART: Watch._restart,
    supervise.RELAUNCH: Watch._relaunch,
}
