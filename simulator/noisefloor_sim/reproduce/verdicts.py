"""Verdicts: is a printed figure what its readings give, over seeds?

A printed number is one run. So it is set against the interval in which one more run of ours would
fall 95 times in 100, not against that of our mean. A printed order is set against the interval of
the mean of paired differences. A printed crossing is set against the crossing of our mean curves,
with an interval over seeds drawn again, and against the crossings of single runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource
from noisefloor_sim.reproduce.running import Accuracies
from noisefloor_sim.reproduce.settings import Setting

REPRODUCED, NOT, DEPENDS = "reproduced", "not reproduced", "depends on reading"

_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Number:
    """A reading of a printed accuracy: the runs that it means."""

    name: str
    setting: Setting


@dataclass(frozen=True, slots=True)
class Gap:
    """A reading of a printed order: the first is better than the second by so many points."""

    name: str
    better: Setting
    worse: Setting


@dataclass(frozen=True, slots=True)
class Crossing:
    """A reading of a printed crossing: from there on the later curve is above the earlier.

    Attributes:
        name: Of the reading.
        earlier: The curve that is above at first, by rising epsilon.
        later: The other one, at the same epsilons.
        single: Whether the paper drew one run; otherwise means over many.
    """

    name: str
    earlier: tuple[Setting, ...]
    later: tuple[Setting, ...]
    single: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One printed figure.

    Attributes:
        key: Short name.
        data: Which data set.
        what: In words.
        printed: As in the paper.
        value: Of the printed number; 0 for an order, the most for a gap that is bounded.
        readings: At least one.
        at_most: The printed number is a bound on a gap from above, not from below.
        or_equal: A printed order that lets the two be equal.
    """

    key: str
    data: str
    what: str
    printed: str
    value: float
    readings: tuple[Number | Gap | Crossing, ...]
    at_most: bool = False
    or_equal: bool = False

    def settings(self) -> list[Setting]:
        """Return all that has to be run."""
        needed: list[Setting] = []
        for reading in self.readings:
            if isinstance(reading, Number):
                needed.append(reading.setting)
            elif isinstance(reading, Gap):
                needed += [reading.better, reading.worse]
            else:
                needed += [*reading.earlier, *reading.later]
        return needed

    @property
    def is_crossing(self) -> bool:
        """Whether it is about where curves cross: that takes more seeds than a number does."""
        return any(isinstance(reading, Crossing) for reading in self.readings)


@dataclass(frozen=True, slots=True)
class Found:
    """What one reading gave.

    Attributes:
        reading: Its name.
        value: The mean over seeds, or the crossing.
        low: Lower end of the 95 % interval of that.
        high: Upper end.
        one_low: Lower end of what one more run would give; NaN where no run is compared.
        one_high: Upper end.
        agrees: Whether the printed figure is compatible.
        seeds: How many runs it is from.
    """

    reading: str
    value: float
    low: float
    high: float
    one_low: float
    one_high: float
    agrees: bool
    seeds: int


@dataclass(frozen=True, slots=True)
class Judged:
    """An item with what its readings gave."""

    item: Item
    found: tuple[Found, ...]

    @property
    def verdict(self) -> str:
        """Reproduced by all readings, by none, or by some."""
        agreeing = sum(one.agrees for one in self.found)
        if agreeing in (0, len(self.found)):
            return REPRODUCED if agreeing else NOT
        return DEPENDS

    @property
    def reading(self) -> str:
        """The readings under which the printed figure comes out."""
        return "; ".join(one.reading for one in self.found if one.agrees)


def judge(item: Item, runs: Accuracies) -> Judged:
    """Judge a printed figure from the runs."""
    found = []
    for reading in item.readings:
        if isinstance(reading, Number):
            found.append(_number(item, reading, runs))
        elif isinstance(reading, Gap):
            found.append(_gap(item, reading, runs))
        else:
            found.append(_crossing(item, reading, runs))
    return Judged(item, tuple(found))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean, and half widths of the intervals of the mean and of one more value."""
    from scipy.stats import t  # lazy: scipy is slow to import

    n = len(values)
    mean = float(np.mean(values))
    if n < 2:
        return mean, math.inf, math.inf
    spread = float(np.std(values, ddof=1)) * float(t.ppf(0.975, n - 1))
    return mean, spread / math.sqrt(n), spread * math.sqrt(1 + 1 / n)


def _number(item: Item, reading: Number, runs: Accuracies) -> Found:
    mean, of_mean, of_one = interval(runs[reading.setting])
    low, high = max(mean - of_one, 0.0), min(mean + of_one, 100.0)  # a share has no more room
    agrees = low <= item.value <= high
    ends = (mean - of_mean, mean + of_mean, low, high)
    return Found(reading.name, mean, *ends, agrees, len(runs[reading.setting]))


def _gap(item: Item, reading: Gap, runs: Accuracies) -> Found:
    common = min(len(runs[reading.better]), len(runs[reading.worse]))  # the first seeds of both
    pairs = np.array(runs[reading.better][:common]) - np.array(runs[reading.worse][:common])
    mean, half, _ = interval(pairs.tolist())
    if item.at_most:
        agrees = mean - half <= item.value
    else:
        agrees = (mean + half >= item.value) if item.or_equal else (mean - half > item.value)
    ends = (mean - half, mean + half, math.nan, math.nan)
    return Found(reading.name, mean, *ends, agrees, common)


def _crossing(item: Item, reading: Crossing, runs: Accuracies) -> Found:
    epsilons = np.array([setting.epsilon for setting in reading.later])
    gaps = np.array([runs[one] for one in reading.later]) - np.array(
        [runs[one] for one in reading.earlier]
    )
    if reading.single:
        value = crossing(epsilons, np.median(gaps, axis=1))
        again = [crossing(epsilons, one) for one in gaps.T]
    else:
        value = crossing(epsilons, gaps.mean(axis=1))
        draws = SeededSource(1, "crossing", item.key, reading.name).generator()
        places = draws.integers(gaps.shape[1], size=(_RESAMPLES, gaps.shape[1]))
        again = [crossing(epsilons, gaps[:, some].mean(axis=1)) for some in places]
    low, high = (float(np.quantile(again, q, method="nearest")) for q in (0.025, 0.975))
    agrees = low <= item.value <= high
    ends = (low, high, math.nan, math.nan)
    return Found(reading.name, value, *ends, agrees, gaps.shape[1])


def crossing(epsilons: NDArray[np.float64], gaps: NDArray[np.float64]) -> float:
    """Return from where on the gap stays positive: infinity if it ends below, 0 if it never is.

    Between two measured points the gap is taken to be straight.
    """
    below = np.flatnonzero(gaps <= 0)
    if not below.size:
        return 0.0
    last = int(below[-1])
    if last == len(gaps) - 1:
        return math.inf
    share = -gaps[last] / (gaps[last + 1] - gaps[last])
    return float(epsilons[last] + share * (epsilons[last + 1] - epsilons[last]))
