"""When a rate limit ends, in the words of the programs and servers that tell of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.state import reset_time

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 15, 14, 30, 20, tzinfo=BERLIN).timestamp()


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(day: int, hour: int, minute: int = 0, second: int = 0, month: int = 11) -> float:
    return datetime(2026, month, day, hour, minute, second, tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(
    ("reason", "when"),
    [
        ("rate limit: usage limit reached, resets 2026-11-15T14:00:00Z", at(15, 15)),
        ("rate limit: until 2026-11-15T16:00:05+0100.", at(15, 16, 0, 5)),
        ("rate limit: 2026-11-16 08:00", at(16, 8)),
        ("rate limit: Claude AI usage limit reached 1794750000", 1794750000.0),
        ("rate limit: Claude AI usage limit reached|1794750000", 1794750000.0),
        ("rate limit: reset 1794750000123", 1794750000.0),
        ("rate limit: limit reached, resets 3pm", at(15, 15)),
        ("rate limit: 5-hour limit reached   resets 2pm", at(16, 14)),
        ("rate limit: resets 2:30pm", at(15, 14, 30)),  # twenty seconds ago
        ("rate limit: resets at 3:50 PM", at(15, 15, 50)),
        ("rate limit: You ve hit your usage limit. Try again at 3:50 PM.", at(15, 15, 50)),
        ("rate limit: try again at 12:05 AM.", at(16, 0, 5)),
        ("rate limit: resets 12pm", at(16, 12)),
        ("rate limit: resets 23:15", at(15, 23, 15)),
        ("rate limit: resets 3pm (UTC)", at(15, 16)),
        ("rate limit: resets 3pm (America/New_York)", at(15, 21)),
        ("rate limit: resets 3pm (Nowhere/Atall)", at(15, 15)),
        ("rate limit: weekly limit reached, resets Nov 17 at 5pm (Europe/Berlin)", at(17, 17)),
        ("rate limit: resets Nov 18, 5:30am", at(18, 5, 30)),
        ("rate limit: try again at Nov 20th, 2026 3:50 PM.", at(20, 15, 50)),
        ("rate limit: Please try again in 20s.", NOW + 20),
        ("rate limit: try again in 1.5s", NOW + 1.5),
        ("rate limit: try again in 200ms", NOW + 0.2),
        ("rate limit: try again in 5 minutes", NOW + 300),
        ("rate limit: try again in 6m0s.", NOW + 360),
        ("rate limit: try again in 2 days 3 hours", NOW + 51 * 3600),
        ("rate limit: try again in 1 day, 2 hours and 5 minutes", NOW + 26 * 3600 + 300),
        ("rate limit: retry after 30", NOW + 30),
        ("rate limit: 429 retry-after: 30", NOW + 30),
        ("rate limit: resets in 3h", NOW + 3 * 3600),
    ],
)
def test_a_reason_that_says_when(reason: str, when: float) -> None:
    assert reset_time(reason, NOW) == pytest.approx(when)


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "turn over",
        "rate limit: Number of requests has exceeded your limit",
        "rate limit: 5 of 5 requests used, attempt 4 of 10",
        "rate limit: resets 3",
        "rate limit: resets 25:00",
        "rate limit: resets Feb 30 at 3pm",
        "rate limit: 2026-13-45T99:00:00Z",
        "rate limit: 2027-11-15T14:00:00Z",
        "rate limit: order 4000000000",
        "rate limit: try again in 30 days",
    ],
)
def test_a_reason_that_does_not_say_or_cannot_be(reason: str) -> None:
    assert reset_time(reason, NOW) is None


def test_a_limit_that_has_ended_by_now_says_so() -> None:
    assert reset_time("rate limit: resets 2026-11-15T13:30:10Z", NOW) == NOW - 10


def test_the_year_turns() -> None:
    eve = datetime(2026, 12, 30, 12, tzinfo=BERLIN).timestamp()
    assert reset_time("resets Jan 2 at 3pm", eve) == datetime(2027, 1, 2, 15, tzinfo=BERLIN).timestamp()


@given(st.text(), st.sampled_from(["resets {}", "try again in {}", "at {}:00 PM", "resets Nov {} at 3pm ({})", "{}"]))
def test_whatever_somebody_writes_it_is_a_time_nearby_or_none(text: str, form: str) -> None:
    found = reset_time(form.replace("{}", text), NOW)
    assert found is None or abs(found - NOW) <= 8 * 86400
