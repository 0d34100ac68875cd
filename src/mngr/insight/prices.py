"""What tokens cost. The user's own `prices.toml` comes first, then the price tables of the library genai-prices, which
are installed with it; nothing is ever fetched. What neither knows has no price: a guess would look like a fact.

A price belongs to a class of tokens of a model at a time, and for some models it is higher for a long context."""

from __future__ import annotations

import os
from decimal import Decimal
from fnmatch import fnmatchcase

from mngr.config import file_and_line, read_toml
from mngr.errors import UsageError
from mngr.fleet.ledger import CLASSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mngr.fleet.ledger import Batch

    Rates = tuple[Decimal | None, ...]  # USD for a million tokens of each class; None: not known
    Steps = list[tuple[int, Rates]]  # rates for a context that is longer than so many tokens, the longest last

FILE = "prices.toml"
_IN_LIBRARY = {  # where its tables have the price of a class; the first that is there
    "input": ("input_mtok",),
    "cache_read": ("cache_read_mtok",),
    "cache_write_5m": ("cache_write_5m_mtok", "cache_write_mtok"),
    "cache_write_1h": ("cache_write_1h_mtok",),
    "output": ("output_mtok",),
    "reasoning": ("output_reasoning_mtok", "output_mtok"),
}


class Prices:
    def __init__(self, home: str) -> None:
        """Raises UsageError, with the line, when prices.toml is wrong."""
        self._own = _read(os.path.join(home, FILE))
        self._infos: dict[str, Any] = {}  # what the library knows of a model, or None
        self._steps: dict[int, Steps] = {}  # of its tables, by their identity

    def steps(self, models: Iterable[str]) -> list[int]:
        """The lengths of context beyond which a token of one of these models has another price."""
        infos = [self._info(model) for model in models if self._own_rates(model) is None]
        tables = [table for info in infos if info is not None for table in _tables(info)]
        return sorted({longer_than for table in tables for longer_than, _ in self._steps_of(table)} - {-1})

    def cost(self, batch: Batch) -> Decimal | None:
        """In USD. None when the model is not known, or the price of a class that it has tokens of."""
        rates = self._rates(batch)
        if rates is None:
            return None
        total = Decimal(0)
        for count, rate in zip(batch.tokens, rates, strict=True):
            if count:
                if rate is None:
                    return None
                total += count * rate
        return total / 1_000_000

    def _rates(self, batch: Batch) -> Rates | None:
        own = self._own_rates(batch.model)
        info = None if own else self._info(batch.model)
        if info is None:
            return own
        from datetime import UTC, datetime

        table = info.get_prices(datetime.fromtimestamp(batch.time, UTC))
        return next(rates for longer_than, rates in reversed(self._steps_of(table)) if batch.context > longer_than)

    def _own_rates(self, model: str) -> Rates | None:
        if model in self._own:
            return self._own[model]
        return next((rates for name, rates in self._own.items() if fnmatchcase(model, name)), None)

    def _info(self, model: str) -> Any:
        if model not in self._infos:
            self._infos[model] = _look_up(model)
        return self._infos[model]

    def _steps_of(self, table: Any) -> Steps:
        if id(table) not in self._steps:
            self._steps[id(table)] = _read_table(table)
        return self._steps[id(table)]


def is_library_there() -> bool:
    from importlib.util import find_spec

    return find_spec("genai_prices") is not None


def _look_up(model: str) -> Any:
    try:
        from genai_prices import Usage, calc_price

        return calc_price(Usage(), model).model
    except (ImportError, LookupError):
        return None


def _tables(info: Any) -> list[Any]:
    """Of all times."""
    return [each.prices for each in info.prices] if isinstance(info.prices, list) else [info.prices]


def _read_table(table: Any) -> Steps:
    entries = [_entry(table, name) for name in CLASSES]
    starts = sorted({tier.start for entry in entries for tier in getattr(entry, "tiers", ())})
    return [(start, tuple(_at(entry, start) for entry in entries)) for start in (-1, *starts)]


def _entry(table: Any, name: str) -> Any:
    return next((price for key in _IN_LIBRARY[name] if (price := getattr(table, key)) is not None), None)


def _at(entry: Any, longer_than: int) -> Decimal | None:
    """A price, or one with steps, for such a context."""
    steps = [tier.price for tier in getattr(entry, "tiers", ()) if tier.start <= longer_than]
    return steps[-1] if steps else getattr(entry, "base", entry)  # type: ignore[no-any-return]


def _read(path: str) -> dict[str, Rates]:
    """prices.toml: rates by the name of a model, or a glob."""
    tree = read_toml(path)[1]
    models = tree.get("models", {})
    for key in tree:
        if key != "models":
            raise _wrong(path, [key], "is not known", 'prices stand in tables such as [models."claude-*"]')
    if not isinstance(models, dict):
        raise _wrong(path, ["models"], "must be a table", '[models."claude-*"]')
    return {name: _rates(path, name, table) for name, table in models.items()}


def _rates(path: str, model: str, table: object) -> Rates:
    if not isinstance(table, dict):
        raise _wrong(path, ["models", model], "must be a table")
    for key, value in table.items():
        if key not in CLASSES:
            raise _wrong(path, ["models", model, key], "is no class of tokens", f"one of {', '.join(CLASSES)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise _wrong(path, ["models", model, key], "must be a number: USD for a million tokens")
    rates = {key: Decimal(str(value)) for key, value in table.items()}
    return tuple(rates.get(name, rates.get("output") if name == "reasoning" else None) for name in CLASSES)


def _wrong(path: str, parts: list[str], problem: str, hint: str | None = None) -> UsageError:
    return UsageError(f"{file_and_line(path, parts)}: {parts[-1]} {problem}", hint)
