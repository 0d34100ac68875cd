"""What is said about a run: figures, lines, and a picture that fits every terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.swarm import picture, report, state, words
from mngr.swarm.state import Run
from tests.runs import BEGUN, Log

TASKS = {"one": "tests/test_a.py::test_one", "two": "tests/test_a.py::test_two", "three": "tests/test_b.py::test_three"}


def loaded(log: Log) -> Run:
    return state.load(str(log.directory))


# How it stands.


def test_a_run_is_going_on_as_long_as_somebody_holds_it_and_left_afterwards(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        assert report.standing(loaded(log)) == report.GOING_ON
    assert report.standing(loaded(log)) == report.LEFT


def test_a_paused_run_is_paused_held_or_not(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        log("paused", why="3 of the first 5 tasks ended at launch")
        assert report.standing(loaded(log)) == report.PAUSED
    assert report.standing(loaded(log)) == report.PAUSED
    assert report.summary(loaded(log))["attended"] is False


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_run_is_done_when_every_task_is_settled(tmp_path: Path, is_cancelled: bool) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        if is_cancelled:
            log("cancelled", who="ada@box")
        for task in TASKS:
            log.settle(task, words.FIXED)
        assert report.standing(loaded(log)) == (report.IS_CANCELLED if is_cancelled else report.IS_DONE)


# Figures.


def test_the_summary_counts_endings_phases_and_money(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS, budget=5.0) as log:
        log.launch("one", "two", usd=0.5)
        log.spend("one", 0.25)
        log.spend("two", 0.1, messages=4, unpriced=1)
        log.settle("one", words.FIXED)
        log("limit", slots=8, why="saturated and clean")
        log("set", key="budget", value=9.0, who="ada@box")
        told = report.summary(loaded(log), now=log.now)
    assert told["endings"] == {"fixed": 1}
    assert told["phases"] == {"pending": 1, "running": 1, "settled": 1}
    assert (told["tasks"], told["settled"], told["good"], told["bad"]) == (3, 1, 1, 0)
    assert told["spend"] == {"usd": 0.35, "tokens": 14000, "messages": 14, "unpriced": 1}
    assert told["reserved"]["usd"] == pytest.approx(0.4)
    assert told["budget"]["usd"] == 9.0
    assert told["changes"] == [{"time": log.now - 1, "who": "ada@box", "key": "budget", "value": 9.0}]
    assert told["slots"] == {"limit": 8, "why": "saturated and clean"}
    assert told["elapsed"] == log.now - BEGUN - 1


def test_the_summary_says_what_agents_may_do_if_anybody_has_said_so(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        run = loaded(log)
    assert report.summary(run)["permissions"] is None
    run.plan["notes"] = {"permissions": "allowlist"}
    assert report.summary(run)["permissions"] == "allowlist"


def test_rates_are_those_of_the_last_minutes(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        log.launch("one", "two")
        log.spend("one", 1.0)
        log.settle("one", words.FIXED)
        log.now += 3600
        log.spend("two", 2.0)
        log("ended", "two", ending="", why="")
        log.settle("two", words.FIXED)
        told = report.summary(loaded(log), now=log.now)["rate"]
    assert told["tasks_per_minute"] == pytest.approx(60 / 300)
    assert told["usd_per_hour"] == pytest.approx(2.0, rel=0.2)  # its dollars took an hour


def test_time_stands_still_for_a_run_that_was_left(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        log.launch("one")
    late = log.now + 86400
    assert report.summary(loaded(log), now=late)["elapsed"] < 60
    assert report.rows(loaded(log), now=late)[0]["age"] < 60


def test_a_row_tells_what_became_of_its_task(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        log.launch("one")
        log("parked", "one", until=log.now + 10, why="rate limit")
        log("unparked", "one", seconds=10.0)
        log("nudged", "one", why="standstill")
        log("ended", "one", ending=words.STUCK, why="nothing moved")
        log.settle("one", words.STUCK, "nothing moved")
        first, second, _ = report.rows(loaded(log), now=log.now + 100)
    assert (first["state"], first["why"], first["nudges"]) == ("stuck", "nothing moved", ["standstill"])
    assert (first["agent"], first["host"], first["branch"]) == ("r1-one", "local", "mngr/r1-one")
    assert (first["age"], first["throttled"], first["attempts"]) == (5.0, 10.0, 1)
    assert (second["state"], second["agent"], second["stage"], second["age"]) == ("pending", "", "", None)


def test_a_fixed_number_of_slots_is_told_in_place_of_what_was_found_out_before(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        log("limit", slots=8, why="saturated and clean")
        log("set", key="max-agents", value=30, who="ada@box")
    assert report.summary(loaded(log))["slots"] == {"limit": 30, "why": ""}


# Wrong skips.


@pytest.mark.parametrize(
    ("outcome", "is_wrong"),
    [(words.UNCHANGED, False), (words.FIXED, True), (words.IMPROVED, True), (words.FAILED, True), (words.LOST, False)],
)
def test_a_skip_was_wrong_when_its_audit_finds_something_to_do(tmp_path: Path, outcome: str, is_wrong: bool) -> None:
    with Log(tmp_path, "r1", TASKS, data={"one": {"audit": "same key as in r0"}}) as log:
        log.launch("one")
        log.settle("one", outcome)
        for task in ("two", "three"):
            log.settle(task, words.FIXED)
    told = [line for line in report.ending_lines(loaded(log)) if line.startswith("WRONG SKIP")]
    assert len(told) == is_wrong
    assert all("test_one" in line and "same key as in r0" in line and outcome in line for line in told)


# The ending.


CLAIM: dict[str, Any] = {
    "passed_before": False,
    "passed_after": True,
    "summary": "the total\nwas off by one",
    "changes": [
        {"kind": "implementation", "commit": "c0ffee", "summary": "count from one", "importance": "high"},
        {"kind": "test", "commit": "dead", "summary": "a test", "importance": "low"},
    ],
    "escalations": [{"kind": "shared pattern", "summary": "the same sum is in export"}],
    "blocked": None,
}


def test_the_ending_says_what_was_done_what_is_needed_and_what_went_wrong(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", {**TASKS, "four": "tests/test_b.py::test_four"}, budget=5.0) as log:
        log.launch(*TASKS)
        log.spend("one", 1.5, messages=20, unpriced=2)
        log("home", "one", commits=["c0ffee" + "0" * 34], head="c0ffee" + "0" * 34)
        log.settle("one", words.FIXED, claim=CLAIM)
        log.settle("two", words.BLOCKED, claim={"blocked": "a licence key", "escalations": CLAIM["escalations"]})
        log.settle("three", words.STUCK, "nothing moved for 300 s")
        log.settle("four", words.UNCHANGED)
        log("alerted", pattern="3 stuck at work", count=3)
    told = report.ending_lines(loaded(log))
    assert told[0].startswith("r1: done, 1 fixed, 1 unchanged, 1 blocked, 1 stuck; $1.50+ of $5.00, 20,000 tokens; ")
    for line in (
        "alert: 3 stuck at work (3 tasks)",
        "fixed (1)",
        "  tests/test_a.py::test_one: the total was off by one",
        "  tests/test_a.py::test_two: a licence key",
        "  tests/test_b.py::test_three: nothing moved for 300 s",
        "  shared pattern: the same sum is in export (tests/test_a.py::test_one, tests/test_a.py::test_two)",
        "2 messages have no price and are not in the sum: see mngr help usage",
    ):
        assert line in told
    steps = [line.split("  ")[1] for line in told[told.index("next") + 1 :]]
    assert steps == ["mngr swarm show r1 two", "git branch --list 'mngr/r1-*'", f"ls {log.directory}/tasks"]
    assert not any("test_four" in line for line in told)


def test_a_thousand_endings_are_told_in_few_lines(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", {f"t{number}": f"tests/test_a.py::test_{number}" for number in range(1000)}) as log:
        for number in range(1000):
            log.settle(f"t{number}", words.FAILED, "no result")
    told = report.ending_lines(loaded(log))
    assert len(told) < 40
    assert "  and 980 more" in told


def test_the_ending_of_a_run_that_was_left_says_how_to_go_on(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        log.launch("one")
        assert "mngr swarm resume r1" not in " ".join(report.ending_lines(loaded(log)))
    assert "mngr swarm resume r1" in " ".join(report.ending_lines(loaded(log)))


# One task.


def test_the_details_have_claim_beside_check_and_the_evidence(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        log.launch("one")
        log("ended", "one", ending="", why="", evidence={"state": "waiting", "reason": "turn over", "result": "ab12"})
        commits = ["c0ffee" + "0" * 34, "f" * 40]
        log("home", "one", commits=commits, head=commits[-1], dirty=2, left=["big.bin"], exit="1700000000 3 0")
        log("checked", "one", check={"before": "failed", "after": "passed", "others": []})
        log.settle("one", words.FIXED, claim=CLAIM)
    place = log.directory / "tasks" / "r1-one"
    place.mkdir(parents=True)
    (place / "screen.txt").write_text("\n".join(f"line {number}" for number in range(100)) + "\n\n")
    run = loaded(log)
    details = report.details(run, run.tasks["one"])
    assert details["evidence"]["exit"] == 3
    assert details["evidence"]["screen"][-1] == "line 99"
    assert details["files"] == [str(place / "screen.txt")]
    told = report.detail_lines(details)
    assert told[:2] == ["tests/test_a.py::test_one", "fixed"]
    for line in (
        "  passed_before: no",
        "  summary: the total was off by one",
        "  before: failed",
        "  after: passed",
        "  c0ffee0000 implementation (high): count from one",
        "  ffffffffff not declared",
        "  dead test (low): a test: NOT ON THE BRANCH",
        "  shared pattern: the same sum is in export",
        "  reason: turn over",
        "  exit: 3",
        "  uncommitted: 2",
        "  line 99",
        f"  {place / 'screen.txt'}",
    ):
        assert line in told


@pytest.mark.parametrize(
    "claim", [{"changes": "none"}, {"changes": [1, None], "escalations": {}}, {"summary": {"a": [1, {"b": None}]}}]
)
def test_a_result_of_another_form_is_shown_all_the_same(tmp_path: Path, claim: dict[str, Any]) -> None:
    with Log(tmp_path, "r1", {"one": "a page"}) as log:
        log.launch("one")
        log.settle("one", words.DONE, claim=claim)
    run = loaded(log)
    assert report.detail_lines(report.details(run, run.tasks["one"]))[:2] == ["a page", "done"]
    assert report.ending_lines(run)


def test_a_task_is_found_by_its_id_its_title_and_a_part_that_no_other_has(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", TASKS) as log:
        run = loaded(log)
    for word in ("one", "tests/test_a.py::test_one", "test_one"):
        assert report.find_task(run, word).id == "one"
    with pytest.raises(UsageError, match="part of 2 tasks") as several:
        report.find_task(run, "test_a.py")
    assert several.value.hint == "one of one, two"
    with pytest.raises(UsageError, match="r1 has no task 'thrree'") as close:
        report.find_task(run, "thrree")
    assert close.value.hint == "did you mean three?"


# The picture.


def busy_run(tmp_path: Path, count: int) -> Run:
    """Of every kind of ending and phase, with names that are hard to fit."""
    titles = {f"t{n}": f"tests/é日本/test_{n}.py::test_[ключ-{n}]" for n in range(count)}
    with Log(tmp_path, "r1", titles, budget=20.0) as log:
        log("paused", why="a long story " * 20)
        for number, task in enumerate(titles):
            if number % 20 == 0:
                continue
            log.launch(task, usd=0.1)
            if number % 5 == 0:
                log("nudged", task, why="standstill")
            elif number % 3 == 0:
                log.settle(task, words.ENDINGS[number % len(words.ENDINGS)], "why 日本 " * 10)
    return loaded(log)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return busy_run(tmp_path_factory.mktemp("home"), 1000)


@given(width=st.integers(1, 300), height=st.integers(1, 100))
def test_the_picture_fits_every_terminal(thousand: Run, width: int, height: int) -> None:
    told = picture.lines(thousand, BEGUN, width, height)
    assert 0 < len(told) <= height
    assert max(map(picture.columns, told)) <= width


def test_a_thousand_tasks_are_all_in_the_grid_of_an_ordinary_terminal(thousand: Run) -> None:
    told = picture.lines(thousand, BEGUN, 80, 24)
    signs = [picture.SIGNS[task.outcome or task.phase] for task in thousand.tasks.values()]
    grid = "".join(told[2 : 2 + 13])  # below the headline and why it is paused
    assert grid == "".join(signs)
    assert told[-1].startswith("and ")


def test_every_sign_is_explained_and_every_state_has_one(thousand: Run) -> None:
    assert set(picture.SIGNS) == {*words.PHASES, *words.ENDINGS} - {words.SETTLED}
    told = "  ".join(picture.lines(thousand, BEGUN, 200, 60))
    for state_, count in thousand.counts().items():
        assert f"{picture.SIGNS[state_]} {count} {state_}" in told


def test_what_went_wrong_has_a_place_in_the_list_beside_those_at_work(thousand: Run) -> None:
    told = picture.lines(thousand, BEGUN, 120, 40)
    listed = [line for line in told if "::test_" in line]
    assert any(line.startswith("* running") for line in listed)
    assert any(line.startswith(("x failed", "B blocked", "s stuck", "t timed out")) for line in listed)


def test_a_line_tells_age_spending_the_end_of_a_long_name_and_the_stage(tmp_path: Path) -> None:
    with Log(tmp_path, "r1", {"one": "tests/" + "deep/" * 30 + "test_a.py::test_one"}) as log:
        log.launch("one")
        log.spend("one", 0.25)
        log.now += 70
        told = picture.lines(loaded(log), log.now, 80, 24)[-1]
    assert told.startswith("* running      1m")
    assert "$0.2500" in told
    assert "…" in told
    assert told.endswith("test_a.py::test_one  work")


def test_all_that_is_drawn_goes_through_the_painter(thousand: Run) -> None:
    plain = picture.lines(thousand, BEGUN, 100, 30)
    painted = picture.lines(thousand, BEGUN, 100, 30, lambda text, _: "#" * len(text))
    assert [len(line) for line in painted] == [len(line) for line in plain]
    assert {char for line in painted for char in line} <= {"#", " "}  # blanks between the parts of the legend


@pytest.mark.parametrize(
    ("seconds", "told"), [(None, "-"), (-5, "0s"), (59.9, "59s"), (72, "1m12s"), (7500, "2h05m"), (273600, "3d04h")]
)
def test_spans(seconds: float | None, told: str) -> None:
    assert report.span(seconds) == told
