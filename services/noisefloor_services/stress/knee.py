"""The search for the knee: the highest rate at which the objective holds, as an interval.

The rate doubles until a step breaks the objective; bisection then narrows the interval down to a
stated ratio. The rates that decide, those within a factor of two of the interval, are run again in
changed orders, until each was run as often as `repeats` says; a rate holds if it held in more than
half of its runs. The search is a function of what a step at a rate comes to, and of nothing else.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource

RATIO = 1.1
"""Between the ends of the interval, at most."""

_NEAR = 2.0
_MOST_HALVINGS = 3
"""How far below the first rate is looked for one that holds."""

StepAtRate = Callable[[float, int], bool]
"""Runs a step at a rate, for the n-th time; returns whether it met the objective."""


@dataclass(frozen=True, slots=True)
class KneeSearch:
    """How the knee is looked for.

    Attributes:
        start: The first rate, in requests a second.
        most: The highest rate that is tried.
        repeats: How often each rate that decides is run; odd, so that there is a majority.
        ratio: Between the ends of the interval.
    """

    start: float
    most: float
    repeats: int = 3
    ratio: float = RATIO

    def __post_init__(self) -> None:
        if not 0 < self.start <= self.most:
            raise BadParameter("start", self.start, f"above 0, and at most {self.most:g}")
        if self.repeats < 1 or self.repeats % 2 == 0:
            raise BadParameter("repeats", self.repeats, "an odd number, so that most runs decide")
        if not self.ratio > 1:
            raise BadParameter("ratio", self.ratio, "> 1")


@dataclass(frozen=True, slots=True)
class Knee:
    """Where the objective stops to hold.

    Attributes:
        low: The highest rate that held, with all those below it; 0 if none did.
        high: The lowest rate above it that did not hold; infinite if every rate held.
        runs: How often each rate held, and how often it was run, by rate.
    """

    low: float
    high: float
    runs: tuple[tuple[float, int, int], ...]

    @property
    def is_found(self) -> bool:
        """Whether there is a rate that holds and one that does not."""
        return self.low > 0 and math.isfinite(self.high)


class _Runs:
    """What was run so far."""

    def __init__(self, step: StepAtRate) -> None:
        self._step = step
        self.outcomes: dict[float, list[bool]] = {}

    def run(self, rate: float) -> bool:
        """Run a rate once more; return whether it held this time."""
        before = self.outcomes.setdefault(rate, [])
        before.append(self._step(rate, len(before)))
        return before[-1]

    def holds(self, rate: float) -> bool:
        """Whether a rate held in more than half of its runs."""
        return 2 * sum(self.outcomes[rate]) > len(self.outcomes[rate])

    def interval(self) -> tuple[float, float]:
        """Return the highest rate below which all hold, and the lowest that does not."""
        low = 0.0
        for rate in sorted(self.outcomes):
            if not self.holds(rate):
                return low, rate
            low = rate
        return low, math.inf


def find_knee(search: KneeSearch, step: StepAtRate, source: SeededSource) -> Knee:
    """Find the knee.

    Args:
        search: How.
        step: Runs one step at a rate.
        source: Of the order in which rates are run again.
    """
    runs = _Runs(step)
    _double(search, runs)
    _bisect(search, runs)
    while again := _to_repeat(search, runs):
        shuffled = source.child("order", len(runs.outcomes), sum(map(len, runs.outcomes.values())))
        order = shuffled.generator().permutation(len(again))
        for place in order.tolist():
            runs.run(again[place])
        _bisect(search, runs)
    low, high = runs.interval()
    table = tuple((rate, sum(met), len(met)) for rate, met in sorted(runs.outcomes.items()))
    return Knee(low, high, table)


def _double(search: KneeSearch, runs: _Runs) -> None:
    """Double the rate until it breaks; halve it if the first one breaks already."""
    rate = search.start
    while runs.run(rate) and rate < search.most:
        rate = min(2 * rate, search.most)
    for halving in range(1, _MOST_HALVINGS + 1):
        if runs.interval()[0] > 0:
            return
        runs.run(search.start / 2**halving)


def _bisect(search: KneeSearch, runs: _Runs) -> None:
    """Halve the interval, by ratio, until it is narrow enough."""
    while True:
        low, high = runs.interval()
        if not low or math.isinf(high) or high / low <= search.ratio * (1 + 1e-9):
            return
        middle = float(f"{math.sqrt(low * high):.4g}")
        if middle in runs.outcomes:
            return  # closer together than rates are written
        runs.run(middle)


def _to_repeat(search: KneeSearch, runs: _Runs) -> Sequence[float]:
    """Return the rates that decide and were not run often enough."""
    low, high = runs.interval()
    least, most = low / _NEAR, (high if math.isfinite(high) else low) * _NEAR
    near = [rate for rate in sorted(runs.outcomes) if least < rate < most]
    return [rate for rate in near if len(runs.outcomes[rate]) < search.repeats]
