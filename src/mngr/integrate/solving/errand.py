"""An errand: an agent that is made with one question, watched until it answers, and removed when the answer is good.
What is to be done about it meanwhile is decided where the swarm decides it (mngr.swarm.supervise): one that stands
still is nudged, one that meets a limit goes on behind it, and a result that is no good goes back to it once.

Its name follows from the question. So whoever asks the same again, after Ctrl-C or a kill, goes on with the same agent;
and one that could not answer is asked no second time as long as it is there."""

from __future__ import annotations

import os
import time

import mngr
from mngr import jsonline, prompts
from mngr.errors import MngrError
from mngr.record import Record
from mngr.swarm import desk, hands, settings, supervise, words
from mngr.swarm.log import Reader
from mngr.swarm.report import spend_of
from mngr.swarm.schema import read_result
from mngr.swarm.secrets import known, redact
from mngr.swarm.state import Sample, Spend, Task
from mngr.swarm.watch import Observed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mngr.fleet.activity import Activity
    from mngr.fleet.survey import Status
    from mngr.model import Agent, Ref

PLACE = "agents"  # in the directory of an integration: what its agents left
LABEL = "integration"  # of the agents that are sent: by which integration
_QUESTION = "question"  # another label: which one
_PULSE = 1.0  # seconds
_SPENT = "spent.jsonl"  # what each has used, in the directory with what they left


class Question(Record):
    agent: str  # the name of whoever is asked
    id: str  # the same for the same question
    request: mngr.Request  # how it is made, but for its name
    prompt: str
    schema: dict[str, Any]  # of the answer
    check: Callable[[dict[str, Any]], str]  # what is wrong with an answer, for the agent; "" for nothing
    refusal: Callable[[dict[str, Any]], str] = lambda _: ""  # why an answer says that there is none


class Answer(Record):
    result: dict[str, Any] | None = None
    why: str = ""  # there is none that could be used


def ask(
    fleet: mngr.Fleet,
    questions: list[Question],
    *,
    into: str,
    timeout: float,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Answer]:
    """By the name of the agent. What they leave (transcript, artifacts) comes into directories of their names in
    `into`. Those that answered are destroyed, the others stopped and kept. Ctrl-C, or any error, stops all of them."""
    errands = [_Errand(fleet, question, into, timeout, say) for question in questions]
    try:
        for errand in errands:
            errand.begin()
        _brief(fleet, errands)
        with mngr.Feed([fleet.host("local")]) as feed:
            events = feed.events(pulse=_PULSE)
            while going := [errand for errand in errands if errand.answer is None]:
                _look(fleet, going)
                ids = {errand.ref.id for errand in going if errand.answer is None}
                while ids and (event := next(events)) and event.get("agent") not in ids:
                    pass
    except BaseException:
        if left := [errand.ref for errand in errands if errand.answer is None and errand.is_there]:
            mngr.stop(fleet, left)
        raise
    return {errand.question.agent: errand.answer for errand in errands if errand.answer}


def spent_in(into: str) -> tuple[int, Spend]:
    """How many agents there were, and what they have used, in all that was ever asked there."""
    found: dict[str, Spend] = {}
    for line in Reader(os.path.join(into, _SPENT)).events():
        used = {name: line.get(name) or 0 for name in Spend.__slots__}
        found[str(line.get("id"))] = Spend(**used)
    return len(found), sum(found.values(), Spend())


def _brief(fleet: mngr.Fleet, errands: list[_Errand]) -> None:
    """All at once: they start side by side. One that was asked by somebody before us may have been stopped since."""
    waiting = [each for each in errands if each.answer is None]
    wrong: dict[str, str] = {}
    for inherited in (False, True):
        texts = {
            each.ref: each.question.prompt for each in waiting if each.must_be_told and each.is_inherited == inherited
        }
        wrong |= hands.say(fleet, texts, start=inherited) if texts else {}
    for errand in waiting:
        errand.briefed(wrong.get(errand.ref.id, ""))


def _look(fleet: mngr.Fleet, errands: list[_Errand]) -> None:
    statuses = {status.id: status for status in mngr.statuses(fleet)}
    activities = mngr.activity(fleet, [errand.ref for errand in errands])
    for errand in errands:
        try:
            errand.see(statuses.get(errand.ref.id), activities.get(errand.ref.id))
        except MngrError as error:  # its trouble, and nobody else's
            errand.answer = Answer(why=error.message)


class _Errand:
    """One question, from here to its answer."""

    ref: Ref  # of the agent, once it is there

    def __init__(
        self, fleet: mngr.Fleet, question: Question, into: str, timeout: float, say: Callable[[str], None]
    ) -> None:
        self.question, self.answer = question, None  # type: Question, Answer | None
        self.is_there = False
        self._fleet, self._into, self._tell = fleet, into, say
        self._settings = {**settings.defaults(), "timeout": timeout}
        self._task = Task(question.agent, question.agent, {})
        self._task.phase = words.RUNNING
        self._seen = Observed()
        self.is_inherited = False
        self._flaw = ""  # of the answer that went back
        self._clock, self._looked = 0.0, None  # type: float, float | None
        self._status: Status | None = None

    # Its beginning

    def begin(self) -> None:
        """Makes the agent, or finds the one that somebody before us has made for the same question."""
        try:
            if self._adopt() or self.answer:
                return
            (agent,) = mngr.create(self._fleet, self._request(), self._tell)
        except MngrError as error:
            self.answer = Answer(why=error.message)
            return
        self.ref, self.is_there = agent.ref, True
        self._remember()
        self._tell(f"{agent.name} is asked")

    def _request(self) -> mngr.Request:
        question = self.question
        labels = {**question.request.labels, _QUESTION: question.id}
        return question.request.replace(names=[question.agent], inputs=[question.prompt], labels=labels)

    def _adopt(self) -> bool:
        name = self.question.agent
        ref = self._fleet.names.find(name)
        if ref is None:
            return False
        status = next((status for status in mngr.statuses(self._fleet) if status.id == ref.id), None)
        if status is None:
            hands.forget(self._fleet, [ref])
            return False
        labels = status.agent.labels if status.agent else {}
        if LABEL not in labels or not self._works_here(status.agent):
            why = f"there is an agent {name} that has nothing to do with this (mngr rename {name} NEW)"
            self.answer = Answer(why=why)
        elif labels.get(_QUESTION) != self.question.id:
            hands.clear(self._fleet, [ref], [], keep_host=False)
        elif why := str(self._memory().get("why", "")):
            self.answer = Answer(why=f"{why} (mngr destroy {name}, and it is asked anew)")
        else:
            self.ref, self.is_there, self.is_inherited = ref, True, True
            self._tell(f"{name} was asked already")
        return self.is_there

    def _works_here(self, agent: Agent | None) -> bool:
        """Two integrations in two places can have the same name, and the same question."""
        here = os.path.realpath(self.question.request.source or os.curdir)
        return agent is not None and os.path.realpath(agent.work_dir) == here

    @property
    def must_be_told(self) -> bool:
        """A plain command has the question in $MNGR_INPUT; what is typed into it would be taken for its input."""
        return self._speaks and not (self.is_inherited and self._memory().get("briefed"))

    @property
    def _speaks(self) -> bool:
        return self.ref.kind != "command"

    def briefed(self, wrong: str) -> None:
        self._task.briefed = True
        if wrong:
            self._give_up(f"it runs, but was not told what to do: {wrong}")
        else:
            self._remember(briefed=True)

    # What is seen of it, and done about it

    def see(self, status: Status | None, active: Activity | None) -> None:
        now = time.monotonic()
        passed, self._looked = now - (self._looked or now), now
        self._status = status
        if status is None:
            self._seen.missed += 1
            if self._seen.missed == 1:
                return  # it may have been renamed just then
            self._seen.see("", "", None, now)
        else:
            self._seen.missed = 0
            result = active.result if active and active.result != self._task.refused else None
            self._seen.see(status.state, status.verdict.reason or "", result, now)
        self._let_go_on()
        self._clock += passed if self._task.phase == words.RUNNING else 0.0
        self._act(self._judge(active, now))

    def _judge(self, active: Activity | None, now: float) -> supervise.Act:
        task = self._task
        sample = Sample(self._clock, active.log, active.screen, active.cpu) if active else None
        if sample and task.phase == words.RUNNING:
            self._sample(sample)
        look = self._seen.as_look(now, sample, reports=self._speaks, inherited=self.is_inherited)
        return supervise.judge(task, look, self._settings, self._clock, time.time())

    def _sample(self, sample: Sample) -> None:
        last = self._task.samples[-1] if self._task.samples else None
        if last is None or sample.elapsed - last.elapsed >= self._settings["stuck-after"] / 6:
            if last is None or supervise.moved(last, sample):
                self._task.samples = []
            self._task.samples.append(sample)

    def _act(self, act: supervise.Act) -> None:
        task = self._task
        if act.do == supervise.END:
            self._give_up(act.why) if act.ending else self._take_result()
        elif act.do == supervise.RELAUNCH:
            self._give_up(act.why)
        elif act.do == supervise.PARK:
            task.phase, task.parked_until, task.parks = words.PARKED, act.until, task.parks + 1
            self._tell(f"{self.ref.name} waits: {act.why}")
        elif act.do == supervise.NUDGE:
            task.nudges.append(act.why)
            self._say("resume" if act.why == supervise.API_ERROR else "nudge", why=act.why)
        elif act.do == supervise.RESTART:
            task.restarts += 1
            self.is_inherited = False
            mngr.start(self._fleet, [self.ref])
            self._say("resume", why=act.why)

    def _let_go_on(self) -> None:
        """Behind a limit."""
        task = self._task
        if task.phase == words.PARKED and (self._seen.state == "running" or time.time() >= (task.parked_until or 0.0)):
            task.phase = words.RUNNING
            if self._seen.state != "running":
                self._say("resume", why="the limit is over")

    def _say(self, name: str, **values: str) -> None:
        """One of the swarm's own prompts. Who did not take it is seen as it is by the next look."""
        text = prompts.filled(prompts.find(self._fleet.home, desk.__file__, name), values)
        if self._speaks:
            hands.say(self._fleet, {self.ref: text})
        self._seen = Observed()

    # Its end

    def _take_result(self) -> None:
        name, task = self.question.agent, self._task
        self._settle()
        hands.gather(self._fleet, [self.ref], self._into)
        place = os.path.join(self._into, name)
        redact(place, known(self.question.request, self.ref.type))
        result, flaw = read_result(os.path.join(place, "result.json"), self.question.schema)
        if result is not None and (why := self.question.refusal(result)):
            self._give_up(why)
            return
        flaw = flaw if result is None else self.question.check(result)
        if not flaw:
            self.answer = Answer(result=result)
            self._forget()
        elif task.returned or not self._can_be_told():
            self._flaw = ""
            self._give_up(f"its answer cannot be used: {flaw}")
        else:
            self._tell(f"{name} is told that its answer cannot be used: {flaw}")
            task.returned, task.refused, task.nudges, self._flaw = 1, self._seen.result or "", [], flaw
            self._say("return", flaw=flaw)

    def _can_be_told(self) -> bool:
        return self._speaks and self._status is not None and self._status.state in ("running", "waiting")

    def _give_up(self, why: str) -> None:
        why += f"; an answer before could not be used: {self._flaw}" if self._flaw else ""
        self.answer = Answer(why=why)
        if self._status is not None or self._seen.missed == 0:
            self._settle()
            hands.gather(self._fleet, [self.ref], self._into)
            redact(os.path.join(self._into, self.question.agent), known(self.question.request, self.ref.type))
            hands.clear(self._fleet, [], [self.ref], keep_host=False)
        self._remember(why=why)

    def _settle(self) -> None:
        """What it has used so far."""
        used = hands.spent(self._fleet, [self._status] if self._status else [])
        if self.ref.id in used:
            with open(os.path.join(self._into, _SPENT), "a", encoding="ascii") as file:
                file.write(jsonline.dumps({"id": self.ref.id, **spend_of(used[self.ref.id])}) + "\n")

    def _forget(self) -> None:
        hands.clear(self._fleet, [self.ref], [], keep_host=False)
        if os.path.exists(self._path):
            os.remove(self._path)

    # What whoever comes after us must know

    @property
    def _path(self) -> str:
        return os.path.join(self._into, f"{self.question.agent}.json")

    def _memory(self) -> dict[str, Any]:
        try:
            with open(self._path, encoding="ascii") as file:
                found = jsonline.loads(file.read())
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and found.get("question") == self.question.id else {}

    def _remember(self, **facts: object) -> None:
        kept = {**(self._memory() if facts else {}), "question": self.question.id, **facts}
        try:
            os.makedirs(self._into, exist_ok=True)
            with open(f"{self._path}.new", "w", encoding="ascii") as file:
                file.write(jsonline.dumps(kept) + "\n")
            os.replace(f"{self._path}.new", self._path)
        except OSError as error:
            raise MngrError(f"{self._path} cannot be written: {error.strerror}") from None
