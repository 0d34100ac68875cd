"""What the engine makes of what it sees: strangers, hosts that do not answer, and agents that are gone."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mngr
from mngr.fleet.gather import Gathered
from mngr.fleet.survey import Status
from mngr.hosts.place import Place, Places
from mngr.model import Agent, Ref
from mngr.names import Names
from mngr.state import Evidence, Verdict
from mngr.swarm import hands, words
from mngr.swarm.checks import Checks
from mngr.swarm.desk import Desk
from mngr.swarm.dispatch import Dispatch
from mngr.swarm.engine import _is_setting
from mngr.swarm.homecoming import Homecoming
from mngr.swarm.settlement import Settlement
from mngr.swarm.state import Run, Spend
from mngr.swarm.watch import Watch

ID = "0123456789ab"


def status(name: str, id: str, state: str, reason: str = "", run: str | None = None) -> Status:
    """Without a run it is one whose record nobody can read."""
    agent = None
    if run is not None:
        made: dict[str, Any] = {"command": ["x"], "work_dir": "/x", "mode": "clone", "created": 0.0}
        agent = Agent(id=id, name=name, type="replay", host="local", labels={"run": run}, **made)
    verdict = Verdict(state=state, reason=reason, since=None, because="")
    return Status(id=id, name=name, host="local", agent=agent, verdict=verdict, evidence=Evidence(id=id))


class Pen:
    """A writer whose log is a list."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: dict[str, Any]) -> dict[str, Any]:
        self.events.append(event)
        return event


class Office:
    """A run with one task, whose agent is being told what to do or is at work."""

    def __init__(self, home: Path, orchestrators: int = 1) -> None:
        self.run = Run(str(home / "runs" / "r1"))
        plan = {
            "type": "replay",
            "kind": "replay",
            "account": "replay",
            "places": ["local"],
            "base": "b",
            "project": "/p",
        }
        settings = {"retries": 2, "alert-after": 3, "alert-command": None}
        self.run.apply({"event": "planned", **plan, "settings": settings, "tasks": [{"task": "t", "name": "r1-t"}]})
        for _ in range(orchestrators):
            self.run.apply({"event": "started"})
        self.run.apply({"event": "intended", "task": "t", "name": "r1-t", "host": "local"})
        self.run.apply({"event": "launched", "task": "t", "id": ID, "host": "local"})
        self.task = self.run.tasks["t"]
        self.pen = Pen()
        fleet: Any = SimpleNamespace(home=str(home), names=Names(str(home)))
        pen: Any = self.pen
        nobody: Any = None
        self.desk = Desk(fleet, pen, self.run, nobody, nobody, lambda _: None)
        self.watch = Watch(self.desk)
        settlement = Settlement(self.desk)
        self.dispatch = Dispatch(self.desk, self.watch, settlement)
        self.homecoming = Homecoming(self.desk, self.watch, settlement)

    def see(self, *those: Status) -> None:
        """A look has come back."""
        self.desk.looked_at = time.monotonic()
        self.desk.statuses = {each.name: each for each in those}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


# Looking


def test_those_whose_record_cannot_be_read_are_known_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        status("r1-a", "1", "running", run="r1"),
        status("r1-b", "2", "unknown", "host cannot be reached"),
        status("r1-c", "3", "running", run="r2"),
        status("other", "4", "unknown", "damaged"),
    ]
    monkeypatch.setattr(mngr, "statuses", lambda fleet: found, raising=False)
    nobody: Any = None
    looked = hands.look(nobody, "r1", ["r1-a", "r1-b", "r1-c", ""], [], money=False, hosts=[])
    assert set(looked.statuses) == {"r1-a", "r1-b"}
    assert looked.there == {"1", "2", "3", "4"}


def test_only_hosts_that_were_made_for_a_run_go_with_it(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, gone = office.desk.fleet, list[str]()
    fleet.places = Places(fleet.home)
    for name in ("r1-t.podman", "r1-mine.podman", "prepare-r1.podman", "prepare-r10.podman"):
        fleet.places.keep(Place(name=name, made=True))
    fleet.places.keep(Place(name="r1-t.ssh"))
    fleet.names.reserve(Ref(id=ID, name="prepare-r1", type="command", host="prepare-r1.podman"))
    monkeypatch.setattr(mngr, "release_hosts", lambda fleet, names: gone.extend(names), raising=False)
    hands.release_hosts(fleet, office.run)
    assert sorted(gone) == ["prepare-r1.podman", "r1-t.podman"]
    assert fleet.names.find("prepare-r1") is None  # who was there to prepare it


def test_why_looks_fail_is_written_down_once(office: Office) -> None:
    for why in ("the disk is full", "the disk is full", "tmux hangs"):
        office.watch._miss(why)
    assert [event["why"] for event in office.pen.events] == ["the disk is full", "tmux hangs"]


# Names


def reserve(office: Office, id: str, host: str = "local") -> None:
    office.desk.fleet.names.reserve(Ref(id=id, name="r1-t", type="replay", host=host))


def test_a_name_that_stands_for_nobody_is_released(tmp_path: Path) -> None:
    office = Office(tmp_path, orchestrators=0)
    assert office.watch.is_free("r1-t")
    reserve(office, "aaaaaaaaaaaa")
    assert office.watch.is_free("r1-t")
    assert office.desk.fleet.names.find("r1-t") is None


def test_a_name_that_a_stranger_has_stays_theirs(tmp_path: Path) -> None:
    office = Office(tmp_path, orchestrators=0)
    reserve(office, "aaaaaaaaaaaa")
    office.watch._there = {"aaaaaaaaaaaa"}
    assert office.watch.is_free("r1-t")  # whoever uses it will hear that it is taken
    assert office.desk.fleet.names.find("r1-t") is not None


@pytest.mark.parametrize("host", ["local", "box.ssh"])
def test_what_somebody_before_us_was_making_may_still_come(office: Office, host: str) -> None:
    reserve(office, "aaaaaaaaaaaa", host)
    assert not office.watch.is_free("r1-t")
    assert office.desk.fleet.names.find("r1-t") is not None


def test_a_checker_that_was_just_sent_is_not_missed(office: Office) -> None:
    checks = Checks(office.desk, office.watch, Settlement(office.desk))
    assert not checks._was_looked_for(office.task)
    office.see()
    assert checks._was_looked_for(office.task)
    checks._since["t"] = time.monotonic()
    assert not checks._was_looked_for(office.task)


# Telling


@pytest.mark.parametrize(
    ("seen", "let_go"),
    [
        ([status("r1-t", ID, "starting", run="r1")], False),
        ([status("r1-t", ID, "waiting", "ready", run="r1")], False),
        ([status("r1-t", ID, "unknown", "host cannot be reached")], False),
        ([status("r1-t", ID, "running", run="r1")], True),
        ([status("r1-t", ID, "waiting", "turn over", run="r1")], True),
        ([status("r1-t", "another", "waiting", "ready", run="r1")], True),
        ([], True),
    ],
)
def test_nobody_waits_for_the_slowest_that_is_told(office: Office, seen: list[Status], let_go: bool) -> None:
    lane = ("brief", "0")
    office.desk.lanes[lane] = {"t"}
    office.dispatch._telling[lane] = time.monotonic()
    office.see(*seen)
    office.dispatch._let_go()
    assert (not office.desk.lanes[lane], office.task.briefed) == (let_go, let_go)


def test_what_was_seen_before_it_was_told_says_nothing(office: Office) -> None:
    office.see()
    lane = ("brief", "0")
    office.desk.lanes[lane] = {"t"}
    office.dispatch._telling[lane] = time.monotonic()
    office.dispatch._let_go()
    assert office.desk.lanes[lane] == {"t"}


def test_a_launch_that_fails_in_a_cancelled_run_is_cancelled(office: Office) -> None:
    office.desk.note("cancelled", who="ada")
    office.dispatch.try_again(office.task, "no disk", words.LAUNCH)
    assert (office.task.outcome, office.task.why) == (words.CANCELLED, "the run was cancelled by ada")


# Bringing home


def test_a_host_that_does_not_answer_loses_no_result(office: Office) -> None:
    office.desk.note("ended", office.task)
    office.see(status("r1-t", ID, "unknown", "host cannot be reached"))
    office.homecoming._gather_then([office.task])({})
    assert office.task.phase == words.ENDED
    office.see()
    office.homecoming._gather_then([office.task])({})
    assert office.task.outcome == words.LOST


def test_what_is_spent_counts_also_when_nothing_can_be_brought(office: Office) -> None:
    office.desk.note("ended", office.task)
    office.homecoming._gathered["t"] = Gathered()
    brought = hands.Brought(spend=Spend(messages=3, tokens=40), why="there is no branch")
    office.homecoming._bring_then([office.task])({ID: brought})
    assert (office.task.outcome, office.task.spend.tokens) == (words.FAILED, 40)


@pytest.mark.parametrize(("seen", "phase"), [("b", words.HOME), ("c", words.ENDED)])
def test_commits_that_were_seen_and_did_not_come_are_fetched_again(office: Office, seen: str, phase: str) -> None:
    office.desk.note("ended", office.task)
    office.homecoming._gathered["t"] = Gathered(head=seen)
    office.homecoming._bring_then([office.task])({ID: hands.Brought(head="b")})
    assert office.task.phase == phase


# Wishes


@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        ("max-agents", "auto", True),
        ("max-agents", 3, True),
        ("max-agents", "3", False),
        ("max-agents", 0, False),
        ("max-agents", True, False),
        ("budget", None, True),
        ("budget", 2.5, True),
        ("max-tokens", 5_000_000, True),
        ("timeout", 90.0, True),
        ("timeout", None, False),
        ("alert-command", "echo x", True),
        ("keep", "some", False),
        ("dance", 1, False),
        (None, None, False),
        ({}, [], False),
    ],
)
def test_a_wish_is_a_setting_with_a_value_that_it_can_have(key: Any, value: Any, valid: bool) -> None:
    assert _is_setting(key, value) == valid
