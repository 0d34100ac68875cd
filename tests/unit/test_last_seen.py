"""What was last seen of agents elsewhere: a cache that is believed only as long as the host says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr import jsonline
from mngr.fleet.agreed import agree
from mngr.fleet.fleet import Fleet
from mngr.fleet.last_seen import LastSeen
from mngr.fleet.survey import Status
from mngr.model import RUNNING, Agent
from mngr.state import Evidence, Verdict
from mngr.version import VERSION

AGENT = Agent(
    id="a1", name="one", type="command", host="box.ssh", command=["true"], work_dir="/w", mode="none", created=1.0
)
TOLD = jsonline.dumps({**AGENT.to_dict(), "branch": "what the host says"})


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("MNGR_HOME", str(tmp_path / "m"))
    return Fleet()


def status(agent: Agent | None = AGENT, *, told: str = TOLD, id: str = "a1", state: str = RUNNING) -> Status:
    verdict = Verdict(state=state, reason="", since=None, because="")
    evidence = Evidence(id=id, agent=agent, told=told)
    return Status(id=id, name=id, host="box.ssh", agent=agent, verdict=verdict, evidence=evidence)


def file(fleet: Fleet) -> Path:
    return Path(fleet.home, "seen", "box.ssh")


def test_what_was_kept_is_known_and_stands_for_the_same_record_alone(fleet: Fleet) -> None:
    LastSeen(fleet, "box.ssh").keep([status()])
    last = LastSeen(fleet, "box.ssh")
    assert (last.agent("a1"), last.state("a1")) == (AGENT, RUNNING)
    assert last.as_told("a1", TOLD) is last.agent("a1")
    assert last.as_told("a1", TOLD.replace("true", "false")) is None
    assert (last.agent("b2"), last.state("b2"), last.as_told("b2", TOLD)) == (None, "", None)


@pytest.mark.parametrize(
    "told", ["", "two\nlines", "odd \x1b sign", "h\N{LATIN SMALL LETTER O WITH DIAERESIS}", "\udcff"]
)
def test_a_record_that_is_no_plain_line_is_read_again_each_time(fleet: Fleet, told: str) -> None:
    LastSeen(fleet, "box.ssh").keep([status(told=told), status(AGENT.replace(id="b2"), id="b2")])
    last = LastSeen(fleet, "box.ssh")
    assert last.agent("a1") == AGENT
    assert last.as_told("a1", told) is None
    assert last.as_told("a1", "") is None
    assert last.as_told("b2", TOLD) is not None


def test_it_is_written_when_something_changed(fleet: Fleet) -> None:
    LastSeen(fleet, "box.ssh").keep([status()])
    before = file(fleet).stat()
    last = LastSeen(fleet, "box.ssh")
    last.keep([status(last.agent("a1"))])
    assert file(fleet).stat().st_ino == before.st_ino
    last.keep([status(last.agent("a1"), state="done")])
    assert file(fleet).stat().st_ino != before.st_ino
    assert LastSeen(fleet, "box.ssh").state("a1") == "done"
    LastSeen(fleet, "box.ssh").keep([status(None)])  # whose record is damaged
    assert file(fleet).read_text() == f"{VERSION}\n"


@pytest.mark.parametrize("damage", ["b2 done\n{}", "b2 done\n{}\n[1]\n", "b2 done\n{}\n{\n", "\0\n" * 3, "b2\n\n\n"])
def test_of_one_that_is_damaged_counts_what_stands_before_that(fleet: Fleet, damage: str) -> None:
    LastSeen(fleet, "box.ssh").keep([status()])
    with file(fleet).open("a") as kept:
        kept.write(damage)
    last = LastSeen(fleet, "box.ssh")
    assert (last.agent("a1"), last.state("a1"), last.agent("b2"), last.state("b2")) == (AGENT, RUNNING, None, "")
    last.keep([status(last.agent("a1"))])
    assert "b2" not in file(fleet).read_text()
    file(fleet).write_text(damage)
    assert LastSeen(fleet, "box.ssh").agent("a1") is None


def test_what_another_version_wrote_is_known_but_judged_again(fleet: Fleet) -> None:
    """Whose rules were others, and whose agents had other fields."""
    LastSeen(fleet, "box.ssh").keep([status()])
    ours = {**AGENT.to_dict(), "later": "a field"}
    file(fleet).write_text(f"0.0.0\na1 running\n{TOLD}\n{jsonline.dumps(ours)}\n")
    last = LastSeen(fleet, "box.ssh")
    assert (last.agent("a1"), last.state("a1"), last.as_told("a1", TOLD)) == (AGENT, RUNNING, None)
    last.keep([status()])
    assert LastSeen(fleet, "box.ssh").as_told("a1", TOLD) == AGENT


def test_a_new_agreement_is_not_hidden_by_what_was_seen_before(fleet: Fleet) -> None:
    LastSeen(fleet, "box.ssh").keep([status()])
    agree(fleet, [AGENT.replace(branch="mngr/one")])
    assert LastSeen(fleet, "box.ssh").agent("a1") is None


def test_one_more_agent_takes_nothing_from_what_is_known_of_the_others(fleet: Fleet) -> None:
    LastSeen(fleet, "box.ssh").keep([status()])
    agree(fleet, [AGENT.replace(id="a2")])
    assert LastSeen(fleet, "box.ssh").agent("a1") == AGENT


def test_one_that_cannot_be_written_is_no_error(fleet: Fleet) -> None:
    file(fleet).parent.mkdir(parents=True)
    file(fleet).mkdir()
    LastSeen(fleet, "box.ssh").keep([status()])
    assert [path.name for path in file(fleet).parent.iterdir() if path.is_file()] == []
