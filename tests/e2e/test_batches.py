"""What is done to many agents in one go, through the API: making them by name, telling each something else, looking at
them, bringing home what they have made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import mngr as api
from mngr.errors import UsageError
from mngr.fleet.create import SomeNotCreated
from mngr.names import NameTaken
from tests.agents import branches, commit, entries, head
from tests.home import Home, Mngr, each, wait_until

READ = ': >got; touch "$MNGR_AGENT_DIR/ready"; exec cat >got'


@pytest.fixture
def fleet(home: Home, repo: Path, monkeypatch: pytest.MonkeyPatch) -> api.Fleet:
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(repo)
    return api.Fleet()


def directory(home: Home, id: str) -> Path:
    return home.mngr_home / "agents" / id


# Names


def test_agents_have_exactly_the_names_that_are_given_and_their_inputs(fleet: api.Fleet, home: Home) -> None:
    names = ["r1-first", "r1-2", "other"]
    request = api.Request(names=names, inputs=["a b", "", "c"], args=['printf %s "$MNGR_INPUT" >got'], address="@local")
    agents = api.create(fleet, request)
    api.wait(fleet, agents, ["done"], timeout=30)
    assert [agent.name for agent in agents] == names
    assert [Path(agent.work_dir, "got").read_text() for agent in agents] == ["a b", "", "c"]
    assert set(branches(home)) == {"main", *(f"mngr/{name}" for name in names)}


def test_who_failed_is_told_by_name_and_the_others_run(fleet: api.Fleet, home: Home) -> None:
    home.run("git", "branch", "mngr/b")
    with pytest.raises(SomeNotCreated) as caught:
        api.create(fleet, api.Request(names=["a", "b", "c"], args=["true"]))
    assert [agent.name for agent in caught.value.made] == ["a", "c"]
    assert caught.value.failed == {"b": "branch mngr/b exists already"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": ["a", "a"]},
        {"names": ["a", "B"]},
        {"names": ["a"], "inputs": ["x", "y"]},
        {"names": ["a"], "address": "b@local"},
        {"names": ["a", "b"], "branch": "x"},
    ],
)
def test_names_that_cannot_be_are_refused_before_anything_is_made(
    fleet: api.Fleet, home: Home, wrong: Mapping[str, object]
) -> None:
    with pytest.raises(UsageError):
        api.create(fleet, api.Request(args=["true"], **wrong))  # type: ignore[arg-type]
    assert branches(home) == ["main"]


def test_no_names_make_no_agents_and_a_taken_one_makes_none(fleet: api.Fleet, mngr: Mngr) -> None:
    assert api.create(fleet, api.Request(names=[])) == []
    mngr.ok("create", "b", "command", "--", "sleep", "100")
    with pytest.raises(NameTaken):
        api.create(fleet, api.Request(names=["a", "b"], args=["true"]))
    assert mngr.ok("list", "--names") == "b\n"


# Messages


def test_each_gets_its_own_message(fleet: api.Fleet, home: Home) -> None:
    agents = api.create(fleet, api.Request(names=["a", "b", "c"], args=[READ]))
    for agent in agents:
        wait_until((directory(home, agent.id) / "ready").exists)
    texts = dict(zip((agent.id for agent in agents), ["one", "two\nlines $HOME", "one"], strict=True))
    outcomes = api.message(fleet, agents, texts)
    assert [(outcome.name, outcome.did) for outcome in outcomes] == [("a", "typed"), ("b", "typed"), ("c", "typed")]
    wait_until(lambda: all(Path(agent.work_dir, "got").read_text() == texts[agent.id] + "\n" for agent in agents))


def test_an_agent_without_a_text_of_its_own_stops_the_message_to_all(fleet: api.Fleet, home: Home) -> None:
    agents = api.create(fleet, api.Request(names=["a", "b"], args=[READ]))
    with pytest.raises(UsageError, match="an empty message"):
        api.message(fleet, agents, {agents[0].id: "hello"})
    assert not (directory(home, agents[0].id) / "messages.jsonl").exists()


# Looking


def test_activity_shows_work_and_ends_with_the_program(fleet: api.Fleet, home: Home) -> None:
    job = "sh -c 'while [ ! -e stop ]; do :; done'; echo done"
    busy, idle = api.create(fleet, api.Request(names=["busy", "idle"], args=["sh", "-c", job]))
    Path(idle.work_dir, "stop").touch()
    api.wait(fleet, [idle], ["done"], timeout=30)
    wait_until(lambda: api.activity(fleet, [busy])[busy.id].processes == 3, what="launcher, shell and loop")
    wait_until(lambda: api.activity(fleet, [idle])[idle.id].processes == 0, what="its launcher to end")
    before = api.activity(fleet, [busy, idle])
    assert before[idle.id].screen != before[busy.id].screen != ""
    wait_until(lambda: api.activity(fleet, [busy])[busy.id].cpu > before[busy.id].cpu)
    Path(busy.work_dir, "stop").touch()
    api.wait(fleet, [busy], ["done"], timeout=30)
    after = api.activity(fleet, [busy, idle])
    assert after[busy.id].screen == after[idle.id].screen == before[idle.id].screen
    api.stop(fleet, [busy])
    assert api.activity(fleet, [busy])[busy.id].screen == ""


# Bringing home


def test_several_that_gather_into_one_directory_leave_it_whole(fleet: api.Fleet, tmp_path: Path) -> None:
    agents = api.create(fleet, api.Request(names=["a", "b", "c"], args=["true"]))
    api.wait(fleet, agents, ["done"], timeout=30)
    told: list[int] = []

    def gather() -> None:
        told.extend(len(api.gather(fleet, agents, str(tmp_path / "into"))) for _ in range(3))

    each([gather] * 4)
    assert told == [3] * 12
    assert entries(tmp_path / "into") == ["a", "b", "c"]


def test_what_another_gathers_between_two_steps_of_ours_is_replaced(
    fleet: api.Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has moved away what was there, and another puts its own in the place."""
    (agent,) = api.create(fleet, api.Request(names=["a"], args=["true"]))
    api.wait(fleet, [agent], ["done"], timeout=30)
    target, rename = tmp_path / "into" / "a", os.rename
    others = [target / "other"] * 2

    def late(source: str, goal: str) -> None:
        if goal == str(target) and others:
            target.mkdir()
            others.pop().touch()
        rename(source, goal)

    monkeypatch.setattr(os, "rename", late)
    api.gather(fleet, [agent], str(tmp_path / "into"))
    assert others == []
    assert "other" not in entries(target)


def test_gather_tells_branches_as_they_are(fleet: api.Fleet, home: Home, repo: Path, tmp_path: Path) -> None:
    request = api.Request(names=["clean", "ahead", "away"], mode="clone", args=["echo shown; exec sleep 100"])
    agents = api.create(fleet, request)
    (plain,) = api.create(fleet, api.Request(names=["plain"], mode="none", args=["sh", "-c", "echo shown; exit 3"]))
    api.wait(fleet, [plain], ["failed"], timeout=30)
    clean, ahead, away = agents
    base = head(home, repo)
    Path(ahead.work_dir, "new").write_text("x")
    made = commit(home, Path(ahead.work_dir), "New")
    Path(ahead.work_dir, "more").write_text("x")
    home.run("git", "checkout", "-q", "-b", "elsewhere", cwd=Path(away.work_dir))
    commit(home, Path(away.work_dir), "Elsewhere")
    wait_until(lambda: set(api.capture(fleet, [clean, plain]).values()) == {"shown\n"})
    found = api.gather(fleet, [*agents, plain], str(tmp_path / "into"))
    assert [(found[agent.id].head, found[agent.id].dirty, found[agent.id].on) for agent in (*agents, plain)] == [
        (base, 0, "mngr/clean"),
        (made, 1, "mngr/ahead"),
        (base, 0, "elsewhere"),
        ("", -1, ""),
    ]
    assert found[clean.id].state.startswith("running ")
    assert found[clean.id].exit == ""
    assert found[plain.id].exit.endswith(" 3 -")
    for name in ("clean", "plain"):
        assert (tmp_path / "into" / name / "screen.txt").read_text() == "shown\n"
    home.run("git", "checkout", "-q", "--detach", cwd=Path(away.work_dir))
    assert api.gather(fleet, [away], str(tmp_path / "into"))[away.id].on == ""


def test_a_result_and_artifacts_come_home_and_nothing_is_written_on_the_host(
    fleet: api.Fleet, home: Home, tmp_path: Path
) -> None:
    """Its disk may be full."""
    job = 'echo "{}" >"$MNGR_RESULT.new"; mv "$MNGR_RESULT.new" "$MNGR_RESULT"; echo x >"$MNGR_ARTIFACTS/x"'
    (agent,) = api.create(fleet, api.Request(names=["a"], args=[job]))
    api.wait(fleet, [agent], ["done"], timeout=30)
    size = os.stat(home.mngr_home / "agents" / agent.id / "result.json")
    assert api.activity(fleet, [agent])[agent.id].result == f"{size.st_ino}-3"
    before = sorted(home.mngr_home.rglob("*"))
    found = api.gather(fleet, [agent], str(tmp_path / "into"))
    assert sorted(home.mngr_home.rglob("*")) == before
    assert (found[agent.id].result_bytes, found[agent.id].left) == (3, [])
    assert (tmp_path / "into" / "a" / "artifacts" / "x").read_text() == "x\n"
