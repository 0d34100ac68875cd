"""A figure: what one verb of mngr takes, beside its floor, the same work done bare. Both are medians of samples that
were taken in turns (ours, floor, ours, floor), so that a noisy minute hits both and the ratio stays honest."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

SECONDS, KIB, COUNT = "s", "KiB", ""


@dataclass
class Figure:
    name: str
    target: float | None = None  # the ratio that is wanted at most
    unit: str = SECONDS
    ours: list[float] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)  # empty: there is none to compare with
    over: float | None = None  # in place of a ratio: how much more than the floor is wanted at most
    most: float | None = None  # or: how much at all

    def take_turns(self, runs: int, ours: Callable[[int], float], floor: Callable[[int], float]) -> Figure:
        """Both get the number of the run, and give what they measured."""
        for run in range(runs):
            self.ours.append(ours(run))
            self.floors.append(floor(run))
        return self

    @property
    def value(self) -> float:
        return statistics.median(self.ours)

    @property
    def floor(self) -> float | None:
        return statistics.median(self.floors) if self.floors else None

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    @property
    def met(self) -> bool | None:
        if self.most is not None:
            return self.value <= self.most
        if self.over is not None and self.floor is not None:
            return self.value - self.floor <= self.over
        return None if self.target is None or self.ratio is None else self.ratio <= self.target


@dataclass
class Sizes:
    """How much of everything: the same figures, large for the record and small for a look in between."""

    runs: int
    few_runs: int  # of what takes seconds
    lists: tuple[int, ...]
    group: int
    files: int


FULL = Sizes(runs=20, few_runs=3, lists=(1, 10, 100, 500), group=100, files=20_000)
QUICK = Sizes(runs=5, few_runs=2, lists=(1, 10), group=10, files=1_000)


def agents(count: int) -> str:
    return f"{count} agent" if count == 1 else f"{count} agents"
