"""The truth table of states: every combination of evidence, and the rules that hold over all of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.model import DONE, FAILED, RUNNING, STARTING, STATES, STOPPED, UNKNOWN, WAITING, Agent
from mngr.state import (
    Ended,
    Evidence,
    Pane,
    Verdict,
    Written,
    ends_unseen,
    needs_a_second_look,
    read_ended,
    read_pane,
    read_written,
    verdict,
)

AGENT = Agent(
    id="a1", name="foo", type="claude", host="local", command=["true"], work_dir="/w", mode="none", created=1.0
)
WRITTEN = [None, *(Written(state=state, time=10.0, reason="why") for state in STATES)]
ENDED = [
    None,
    *(
        Ended(time=20.0, status=status, signal=signal)
        for status, signal in ((0, None), (3, None), (143, None), (None, 9), (None, None), (0, 15))
    ),
]
PANES = [
    None,
    Pane(dead=False, status=None, signal=None, pid=7),
    *(
        Pane(dead=True, status=status, signal=signal, pid=7)
        for status, signal in ((0, None), (3, None), (None, 9), (None, None))
    ),
]


def everything() -> Iterator[Evidence]:
    """All there can be: 8 x 7 x 6 of what is written, with every other fact in both of its forms."""
    for agent, written, ended, pane, creating, creator, trouble, survivor in product(
        (AGENT, None), WRITTEN, ENDED, PANES, (False, True), (False, True), (None, "no answer"), (None, 42)
    ):
        yield Evidence(
            id="a1",
            agent=agent,
            damage=None if agent else "it is empty",
            written=written,
            ended=ended,
            pane=pane,
            creating=creating,
            creator_alive=creator,
            tmux_trouble=trouble,
            survivor=survivor,
        )


ALL = [(evidence, verdict(evidence)) for evidence in everything()]
# What is left when nothing stands in the way of looking at the program itself.
PLAIN = [(e, v) for e, v in ALL if e.agent and not e.creating and not e.tmux_trouble]
STOPPED_BY_US = [(e, v) for e, v in PLAIN if e.written and e.written.state == STOPPED]
NOT_STOPPED_BY_US = [(e, v) for e, v in PLAIN if not (e.written and e.written.state == STOPPED)]


def states(table: list[tuple[Evidence, Verdict]]) -> set[str]:
    assert table, "a rule about nothing holds always"
    return {v.state for _, v in table}


def test_every_combination_has_one_known_state_and_a_reason_to_tell() -> None:
    assert states(ALL) == set(STATES)
    assert all(v.because and "\n" not in v.because and isinstance(v.reason, str) for _, v in ALL)


def test_a_damaged_agent_is_unknown_whatever_else_is_there() -> None:
    damaged = [(e, v) for e, v in ALL if e.agent is None]
    assert {(v.state, v.reason) for _, v in damaged} == {(UNKNOWN, "damaged")}
    assert all("it is empty" in v.because for _, v in damaged)


def test_a_plain_program_that_lives_runs_whether_its_launcher_has_said_so_or_not() -> None:
    pane = Pane(dead=False, status=None, signal=None, pid=7)
    starting = Evidence(id="a1", agent=AGENT, written=Written(state=STARTING, time=10.0, reason=""), pane=pane)
    assert verdict(starting).state == STARTING
    assert verdict(starting.replace(agent=AGENT.replace(type="command"))).state == RUNNING


def test_a_create_that_goes_on_is_starting_and_an_interrupted_one_failed() -> None:
    creating = [(e, v) for e, v in ALL if e.agent and e.creating]
    going_on = [(e, v) for e, v in creating if e.creator_alive]
    assert states([(e, v) for e, v in going_on if e.pane is None and e.ended is None]) == {STARTING}
    # Its program runs, or has ended: whoever waits for that hears of it once, and the create may tidy up for long.
    for e, v in going_on:
        if e.pane or e.ended:
            assert v == verdict(e.replace(creating=False)), e
    assert {(v.state, v.reason) for e, v in creating if not e.creator_alive} == {(FAILED, "create was interrupted")}


def test_when_tmux_does_not_answer_no_session_means_nothing() -> None:
    troubled = [(e, v) for e, v in ALL if e.agent and not e.creating and e.tmux_trouble]
    assert states(troubled) == {UNKNOWN}
    assert all(v.because == "no answer" for _, v in troubled)


def test_what_we_stopped_is_stopped_whatever_its_exit_code() -> None:
    assert states([(e, v) for e, v in STOPPED_BY_US if e.pane is None or e.pane.dead]) == {STOPPED}


def test_a_live_pane_is_running_even_if_it_was_once_stopped() -> None:
    assert states([(e, v) for e, v in STOPPED_BY_US if e.pane and not e.pane.dead and not e.ended]) == {RUNNING}


def test_a_program_that_has_ended_is_not_running_although_its_launcher_still_is() -> None:
    """The event that waiters wake up on is written by the launcher: they can look before it is gone."""
    ended = [(e, v) for e, v in NOT_STOPPED_BY_US if e.pane and not e.pane.dead and e.ended]
    without_session = {repr(e.ended): v.state for e, v in NOT_STOPPED_BY_US if e.pane is None and e.ended}
    assert {repr(e.ended): v.state for e, v in ended} == without_session


@pytest.mark.parametrize("last", [None, *STATES])
def test_a_live_pane_is_what_the_program_last_said_of_itself_or_running(last: str | None) -> None:
    live = [(e, v) for e, v in PLAIN if e.pane and not e.pane.dead and not e.ended]
    alive = [(e, v) for e, v in live if (e.written.state if e.written else None) == last]
    assert states(alive) == {last if last in (STARTING, WAITING) else RUNNING}
    assert {v.reason for _, v in alive} == {"why" if last in (STARTING, WAITING, RUNNING) else ""}


def test_an_exit_without_a_session_is_done_or_failed() -> None:
    ended = [(e, v) for e, v in NOT_STOPPED_BY_US if e.pane is None and e.ended]
    told = {(e.ended.status, e.ended.signal): (v.state, v.reason) for e, v in ended if e.ended}
    assert told == {
        (0, None): (DONE, ""),
        (3, None): (FAILED, "exit 3"),
        (143, None): (FAILED, "exit 143, signal 15"),
        (None, 9): (FAILED, "signal 9"),
        (0, 15): (FAILED, "signal 15"),
        (None, None): (UNKNOWN, "no exit status"),
    }
    assert {v.since for _, v in ended} == {20.0}, "it is so since it ended, not since something was last written"


def test_a_session_gone_without_an_exit_is_stopped() -> None:
    gone = [(e, v) for e, v in NOT_STOPPED_BY_US if e.pane is None and not e.ended and e.survivor is None]
    assert {(v.state, v.reason) for _, v in gone} == {(STOPPED, "session gone")}


def test_a_program_alive_without_a_session_is_unknown() -> None:
    orphans = [(e, v) for e, v in NOT_STOPPED_BY_US if e.pane is None and not e.ended and e.survivor]
    assert {(v.state, v.reason) for _, v in orphans} == {(UNKNOWN, "alive without a session")}
    assert all("42" in v.because for _, v in orphans)


def test_a_dead_pane_tells_the_ending_and_the_exit_file_only_what_the_pane_does_not() -> None:
    dead = [(e, v) for e, v in NOT_STOPPED_BY_US if e.pane and e.pane.dead]
    told = [(e, v) for e, v in dead if e.pane and (e.pane.status is not None or e.pane.signal is not None)]
    assert {(e.pane.status, e.pane.signal, v.state) for e, v in told if e.pane} == {
        (0, None, DONE),
        (3, None, FAILED),
        (None, 9, FAILED),
    }
    silent = [(e, v) for e, v in dead if e.pane and e.pane.status is None and e.pane.signal is None]
    assert {(v.state, v.reason) for e, v in silent if not e.ended} == {(RUNNING, "ending")}
    without_session = {repr(e.ended): v.state for e, v in NOT_STOPPED_BY_US if e.pane is None and e.ended}
    assert {repr(e.ended): v.state for e, v in silent if e.ended} == without_session


def test_missing_data_is_neither_success_nor_failure() -> None:
    """done needs a status of 0; failed needs a status, a signal, or a create that died."""
    for e, v in ALL:
        endings = [told for told in (e.pane if e.pane and e.pane.dead else None, e.ended) if told]
        if v.state == DONE:
            assert any(told.status == 0 for told in endings), e
        if v.state == FAILED:
            assert e.creating or any(told.status or told.signal is not None for told in endings), e


def test_a_second_look_is_taken_only_where_a_survivor_would_change_the_state() -> None:
    by_key: dict[str, set[str]] = {}
    for e, v in ALL:
        by_key.setdefault(repr(e.replace(survivor=None)), set()).add(v.state)
    for e, _ in ALL:
        assert needs_a_second_look(e) == (len(by_key[repr(e.replace(survivor=None))]) > 1), e


def test_an_end_is_unseen_exactly_where_the_state_is_a_program_about_to_end() -> None:
    assert {v.reason for e, v in NOT_STOPPED_BY_US if ends_unseen(e)} == {"ending"}
    assert not any(v.reason == "ending" for e, v in ALL if not ends_unseen(e))


# The files that the evidence is read from.


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("running 1700000000\n", Written(state=RUNNING, time=1700000000.0, reason="")),
        ("waiting 5.25 permission: rm -r build", Written(state=WAITING, time=5.25, reason="permission: rm -r build")),
        ("", None),
        ("running", None),
        ("running soon", None),
        ("flying 5", None),
        ("running -5", None),
        ("running 1e9", None),
        ("running nan", None),
        ("running ٣", None),  # a digit, but not one that we write
        ("running " + "9" * 5000, None),
        ("\0\0\0\0", None),
    ],
)
def test_the_state_file_is_read_or_passed_over(text: str, read: Written | None) -> None:
    assert read_written(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("20 0 -\n", Ended(time=20.0, status=0, signal=None)),
        ("20 - 9", Ended(time=20.0, status=None, signal=9)),
        ("20 what -", Ended(time=20.0, status=None, signal=None)),
        ("20 " + "1" * 5000 + " -", Ended(time=20.0, status=None, signal=None)),
        ("20 0", None),
        ("20 0 - more", None),
        ("late 0 -", None),
        ("", None),
    ],
)
def test_the_exit_file_is_read_or_passed_over(text: str, read: Ended | None) -> None:
    assert read_ended(text) == read


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("a1|0|||77", ("a1", Pane(dead=False, status=None, signal=None, pid=77))),
        ("a1|1|3||77", ("a1", Pane(dead=True, status=3, signal=None, pid=77))),
        ("a1|1||9|77", ("a1", Pane(dead=True, status=None, signal=9, pid=77))),
        ("a1|1||9", None),
        ("a1|1||9|", None),
        ("a1|1||9|" + "7" * 5000, None),
        ("", None),
    ],
)
def test_a_line_about_a_pane_is_read_or_passed_over(line: str, read: tuple[str, Pane] | None) -> None:
    assert read_pane(line) == read


@given(st.text())
def test_no_text_whatever_makes_a_reader_raise(text: str) -> None:
    for read in (read_written, read_ended, read_pane):
        read(text)
