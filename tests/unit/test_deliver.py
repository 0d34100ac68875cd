"""Handing over a message, against a program whose screen and records the test makes up: what is pressed, and when."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from mngr.agents import AgentType
from mngr.fleet import deliver as engine
from mngr.fleet.deliver import _Sender
from mngr.fleet.outcome import Outcome
from mngr.model import Ref

REF = Ref(id="a1", name="foo", type="parrot", host="local")


class Parrot(AgentType):
    proves = True
    erases = ("C-u",)

    def receipt(self, record: Any, text: str) -> str | None:
        return "delivered" if record.get("prompt") == text else None


class Stage:
    """A host with one agent, as the sender's questions see it. `enter` is what a pressed Enter does."""

    def __init__(self) -> None:
        self.composer: str | None = ""
        self.dialog = False
        self.state = "waiting 1 ready"
        self.received: list[str] = []
        self.entered = 0
        self.enter: Callable[[], None] = self.submit
        self.clock = 0.0
        self.queued = False  # an earlier message of the same text
        self.erased = 0
        self.unseen = float("inf")  # when the screen shows that the message is gone

    def submit(self) -> None:
        self.received.append('{"prompt": "hello"}')
        self.composer = ""

    def ask(self, script: str, **_: object) -> str:
        self.clock += 0.01
        word, *rest = script.split()
        if word == "take":
            return "mine a1\n"
        if word == "look":
            self.composer = "" if self.clock > self.unseen else self.composer
            shown = "sure?" if self.dialog else "" if self.composer is None else f"> {self.composer}"
            return f"{rest[0]} state a1 {self.state}\n{rest[0]} screen a1\n{shown}\n"
        if word == "lengths":
            return f"a1 {sum(len(line) + 1 for line in self.received)} 0 /log\n"
        if word == "news":
            return "".join(f"received a1 {line}\n" for line in self.received)
        if word == "was_queued":
            return "yes\n" if self.queued else ""
        if "paste-buffer" in script:
            self.composer = "hello"
        elif word == "keys" and "C-u" in script:
            self.erased += 1
            self.composer = "" if self.erased == 2 else "hel"
        elif word == "keys":
            self.entered += 1
            self.enter()
        return ""


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    from mngr.agents import screen
    from mngr.agents.screen import Rules

    made = Stage()
    monkeypatch.setattr(screen, "_loaded", {"": Rules("composer ^> (.*)$\ndialog sure sure", "here")})
    monkeypatch.setattr("time.monotonic", lambda: made.clock)
    monkeypatch.setattr("time.sleep", lambda seconds: setattr(made, "clock", made.clock + seconds))
    return made


def send(stage: Stage) -> Outcome:
    shell: Any = stage
    (outcome,) = _Sender(shell, Parrot(), 60).send([REF], {"a1": "hello"})
    return outcome


def test_a_message_that_is_taken_at_once(stage: Stage) -> None:
    assert (send(stage).did, stage.entered) == ("delivered", 1)


def test_an_enter_that_is_swallowed_is_pressed_again_and_the_text_is_not(stage: Stage) -> None:
    def swallow() -> None:
        if stage.entered == 3:
            stage.submit()

    stage.enter = swallow
    assert (send(stage).did, stage.entered, len(stage.received)) == ("delivered", 3, 1)


def test_who_never_takes_it_gets_a_few_enters_and_no_storm(stage: Stage) -> None:
    stage.enter = lambda: None
    outcome = send(stage)
    assert (outcome.did, outcome.ok) == ("undelivered", False)
    assert 1 < stage.entered <= len(engine._ENTERS) + 1


def test_a_dialog_in_front_gets_neither_text_nor_enter(stage: Stage) -> None:
    stage.dialog = True
    assert (send(stage).did, stage.entered, stage.composer) == ("blocked", 0, "")


def test_a_dialog_that_comes_after_the_enter_gets_no_second_one(stage: Stage) -> None:
    stage.enter = lambda: setattr(stage, "dialog", True)
    assert (send(stage).did, stage.entered) == ("blocked", 1)


def test_what_somebody_else_has_typed_is_not_sent_along(stage: Stage) -> None:
    stage.composer = "a draft"
    outcome = send(stage)
    assert (outcome.did, stage.entered, stage.composer) == ("undelivered", 0, "a draft")
    assert "holds a text already: 'a draft'" in outcome.why


def test_a_draft_that_appears_behind_ours_is_not_entered(stage: Stage) -> None:
    def submit_and_type() -> None:
        stage.composer = "a draft"

    stage.enter = submit_and_type
    assert (send(stage).did, stage.entered) == ("undelivered", 1)


def test_the_proof_of_an_earlier_message_of_the_same_text_is_not_ours(stage: Stage) -> None:
    stage.queued = True
    stage.enter = lambda: stage.received.append('{"prompt": "hello"}')  # while ours still stands there
    outcome = send(stage)
    assert (outcome.did, stage.entered, stage.erased) == ("undelivered", 1, 0)
    assert "it stands in its input line" in outcome.why


def test_a_text_that_is_shown_for_good_although_it_was_taken_is_erased(stage: Stage) -> None:
    stage.enter = lambda: stage.received.append('{"prompt": "hello"}')
    assert (send(stage).did, stage.entered, stage.erased, stage.composer) == ("delivered", 1, 2, "")


def test_with_a_proof_no_enter_is_pressed_however_late_the_screen_is(stage: Stage) -> None:
    def submit_unseen() -> None:
        stage.received.append('{"prompt": "hello"}')
        stage.unseen = stage.clock + 2

    stage.enter = submit_unseen
    assert (send(stage).did, stage.entered, stage.erased) == ("delivered", 1, 0)


def test_it_waits_for_one_that_starts(stage: Stage) -> None:
    stage.state, stage.composer = "starting 1", None
    looks = 0
    ask = stage.ask

    def ask_and_start(script: str, **how: object) -> str:
        nonlocal looks
        looks += script.startswith("look")
        if looks == 5:
            stage.state, stage.composer = "waiting 2 ready", ""
            looks += 1
        return ask(script, **how)

    stage.ask = ask_and_start  # type: ignore[method-assign]
    assert send(stage).did == "delivered"
    assert looks > 5


def test_one_that_never_becomes_ready_is_told(stage: Stage) -> None:
    stage.state = "starting 1"
    outcome = send(stage)
    assert (outcome.did, stage.entered) == ("undelivered", 0)
    assert "not ready within 60 s" in outcome.why


# Several agents


class Crowd:
    """Agents in pipes, as the sender's questions see them: what each was fed, and how many questions there were."""

    def __init__(self, *ids: str) -> None:
        self.ids, self.asked = ids, 0
        self.fed: dict[str, str] = {}
        self.recorded: dict[str, str] = {}

    def ask(self, script: str, **_: object) -> str:
        self.asked += 1
        lines = [shlex.split(line) for line in script.splitlines()]
        for word, *rest in lines:
            if word == "feed":
                self.fed |= dict.fromkeys(rest[1:], rest[0])
            elif word == "record":
                self.recorded[rest[2]] = json.loads(rest[0] + "}")["text"]
        word, *rest = lines[0]
        if word == "take":
            return "".join(f"mine {id}\npipe {id}\n" for id in rest)
        if word == "look":
            return "".join(f"{rest[0]} state {id} waiting 1\n{rest[0]} screen {id}\n" for id in rest[1:])
        if word == "lengths":
            return "".join(f"{id} {len(self.fed.get(id, ''))} 0 /log\n" for id in rest)
        if word == "news":
            return "".join(f"received {id} {json.dumps({'prompt': self.fed[id]})}\n" for _, id, *_ in lines)
        return ""


def hand_over(texts: dict[str, str]) -> tuple[Crowd, list[Outcome]]:
    crowd: Any = Crowd(*texts)
    refs = [Ref(id=id, name=id, type="parrot", host="local") for id in texts]
    return crowd, _Sender(crowd, Parrot(), 60).send(refs, texts)


def test_each_agent_gets_its_own_text_and_proves_that_one(stage: Stage) -> None:
    texts = {"a1": "hello", "b2": "two words", "c3": "hello"}
    crowd, outcomes = hand_over(texts)
    assert [outcome.did for outcome in outcomes] == ["delivered"] * 3
    assert crowd.fed == crowd.recorded == texts


def test_many_texts_cost_no_more_questions_than_one(stage: Stage) -> None:
    one, _ = hand_over({"a1": "hello"})
    many, _ = hand_over({f"a{number}": f"hello {number}" for number in range(50)})
    assert many.asked == one.asked
