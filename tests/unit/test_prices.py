"""What tokens cost: the library's tables, the user's own prices before them, and no guesses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.fleet.ledger import Batch
from mngr.insight.prices import Prices

CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
NONE: Path = Path("/nonexistent")
MILLION = 1_000_000


def own(home: Path, text: str) -> Prices:
    (home / "prices.toml").write_text(text)
    return Prices(str(home))


def cost(prices: Prices, model: str, time: float = NOW, **tokens: int) -> Decimal | None:
    """Of one message."""
    assert set(tokens) <= set(CLASSES)
    return prices.cost(batch(model, time, [tokens.get(name, 0) for name in CLASSES]))


def batch(model: str, time: float, tokens: Sequence[int]) -> Batch:
    return Batch(agent="", model=model, time=int(time), context=sum(tokens[:4]), messages=1, tokens=tuple(tokens))


# The library.


def test_every_class_has_its_own_price() -> None:
    prices = Prices(str(NONE))
    model = "claude-opus-4-5-20251101"
    each = {"input": 5, "cache_read": 0.5, "cache_write_5m": 6.25, "cache_write_1h": 10, "output": 25}
    for name, price in each.items():
        assert cost(prices, model, **{name: MILLION}) == Decimal(price), name
    assert cost(prices, model, **dict.fromkeys(each, 1000)) == sum(map(Decimal, each.values())) / 1000


def test_reasoning_costs_what_output_costs() -> None:
    assert cost(Prices(str(NONE)), "gpt-5", reasoning=MILLION) == cost(Prices(str(NONE)), "gpt-5", output=MILLION) == 10


def test_a_long_context_costs_more_for_all_tokens_of_the_message() -> None:
    """The context is all input, from the cache or not."""
    prices, model = Prices(str(NONE)), "claude-sonnet-4-5-20250929"
    assert cost(prices, model, input=100_000, cache_read=100_000, output=MILLION) == Decimal("15.33")
    assert cost(prices, model, input=100_001, cache_read=100_000, output=MILLION) == Decimal("23.160006")


def test_the_lengths_of_context_that_matter_are_known() -> None:
    assert Prices(str(NONE)).steps(["claude-opus-4-5", "fake-model"]) == []
    assert Prices(str(NONE)).steps(["claude-sonnet-4-5", "claude-haiku-5-5", "fake-model"]) == [100_000, 200_000]
    assert Prices(str(NONE)).steps(["claude-opus-4-6"]) == [200_000], "once; its price has no steps any more"


def test_a_price_is_that_of_the_time_of_the_message() -> None:
    def at(year: int, month: int, day: int) -> Decimal | None:
        return cost(Prices(str(NONE)), "o3", datetime(year, month, day, tzinfo=UTC).timestamp(), input=MILLION)

    assert at(2025, 5, 1) == 10
    assert at(2026, 5, 1) == 2


@given(
    model=st.sampled_from(
        ["claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-5", "claude-haiku-5-5", "claude-3-5-haiku-latest"]
    ),
    tokens=st.tuples(*[st.integers(0, 300_000)] * 5),
    time=st.integers(1_700_000_000, 1_800_000_000),
)
def test_it_is_what_the_library_itself_comes_to(model: str, tokens: tuple[int, ...], time: int) -> None:
    fresh, read, short, long, output = tokens
    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=fresh + read + short + long,
            cache_read_tokens=read,
            cache_write_tokens=short + long,
            cache_write_1h_tokens=long,
            output_tokens=output,
        ),
        model,
        genai_request_timestamp=datetime.fromtimestamp(time, UTC),
    )
    assert Prices(str(NONE)).cost(batch(model, time, (*tokens, 0))) == theirs.total_price


def test_an_unknown_model_has_no_price() -> None:
    assert cost(Prices(str(NONE)), "fake-model", input=1) is None
    assert cost(Prices(str(NONE)), "", input=1) is None
    assert cost(Prices(str(NONE)), "fake-model") is None, "not even a message without tokens"


def test_tokens_of_a_class_without_a_price_leave_the_message_without_one() -> None:
    """Where the table has one price for all cache writes, that of an hour is not known: it is no other one's."""
    prices, model = Prices(str(NONE)), "gpt-5.6-cyber"
    assert cost(prices, model, input=MILLION, cache_write_5m=MILLION) == Decimal("28.125")
    assert cost(prices, model, input=MILLION, cache_write_1h=1) is None
    assert cost(prices, model, input=MILLION) == Decimal("12.5")


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("it wanted to talk"))
    assert cost(Prices(str(NONE)), "claude-opus-4-5", input=MILLION) == 5


def test_without_the_library_only_own_prices_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    prices = own(tmp_path, '[models."mine"]\ninput = 1\n')
    assert cost(prices, "claude-opus-4-5", input=1) is None
    assert cost(prices, "mine", input=MILLION) == 1


# Prices of one's own.


def test_own_prices_win(tmp_path: Path) -> None:
    prices = own(tmp_path, '[models."claude-opus-4-5"]\ninput = 0.1\noutput = 2\n')
    assert cost(prices, "claude-opus-4-5", input=MILLION, output=MILLION) == Decimal("2.1")
    assert cost(prices, "claude-opus-4-1", input=MILLION) == 15


def test_they_are_whole_what_they_leave_out_is_not_known_but_reasoning_is_output(tmp_path: Path) -> None:
    prices = own(tmp_path, '[models."claude-opus-4-5"]\ninput = 1\noutput = 2\n')
    assert cost(prices, "claude-opus-4-5", cache_read=1) is None
    assert cost(prices, "claude-opus-4-5", reasoning=MILLION) == 2
    prices = own(tmp_path, '[models."x"]\noutput = 2\nreasoning = 3\n')
    assert cost(prices, "x", reasoning=MILLION) == 3


def test_a_glob_means_many_models_and_a_name_comes_before_it(tmp_path: Path) -> None:
    text = '[models."fake-*"]\ninput = 1\n[models."fake-*-large"]\ninput = 2\n[models."fake-x-large"]\ninput = 3\n'
    prices = own(tmp_path, text)
    assert cost(prices, "fake-small", input=MILLION) == 1
    assert cost(prices, "fake-y-large", input=MILLION) == 1, "the first that fits"
    assert cost(prices, "fake-x-large", input=MILLION) == 3


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[models\n", 1, "not valid TOML"),
        ('x = 1\n[models."a"]\ninput = 1\n', 1, "x is not known"),
        ("models = 5\n", 1, "models must be a table"),
        ("[models]\na = 5\n", 2, "a must be a table"),
        ('[models."a.b"]\ninput = 1\ncached = 2\n', 3, "cached is no class of tokens"),
        ('# mine\n\n[models."a.b"]\noutput = "2"\n', 4, "output must be a number: USD for a million tokens"),
        ('[models."a"]\ninput = true\n', 2, "input must be a number"),
        ('[models."a"]\ninput = -1\n', 2, "input must be a number"),
        ('[models."a"]\ninput = nan\n', 2, "input must be a number"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        own(tmp_path, text)
    assert caught.value.message.startswith(f"{tmp_path}/prices.toml:{line}: {problem}")
