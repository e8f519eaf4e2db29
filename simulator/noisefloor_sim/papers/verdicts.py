"""Verdicts: is a printed figure what its readings give, over seeds?

A printed number is one run. So it is set against the interval in which one more run of ours would
fall 95 times in 100, not against that of our mean. A printed order is set against the interval of
the mean of paired differences. A printed mean over folds is one as ours is: the two may differ by
the interval of ours and by what was rounded away. A printed crossing is set against the crossing
of our mean curves, with an interval over seeds drawn again: as many as were run, or as few as the
paper may have had.

Where an interval contains both answers, nothing is decided: a gap that may be above or below what
is printed, a number that may be anything.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.randomness import SeededSource

Setting: TypeAlias = Any  # each paper has settings of its own: frozen values with an epsilon
Runs: TypeAlias = Mapping[Setting, Sequence[float]]
"""What was reached under each setting, run by run in the same order."""

REPRODUCED, NOT, DEPENDS = "reproduced", "not reproduced", "depends on reading"
UNDECIDED = "undecided"


class Fit(StrEnum):
    """Whether a printed figure is compatible with what one of its readings gave."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class AccuracyReading:
    """A reading of a printed accuracy: the runs that it means."""

    name: str
    setting: Setting


@dataclass(frozen=True, slots=True)
class MeanReading:
    """A reading of a printed mean over folds: the folds that it means.

    Attributes:
        name: Of the reading.
        setting: What was run.
        rounded: Half a unit of the last digit that is printed.
    """

    name: str
    setting: Setting
    rounded: float


@dataclass(frozen=True, slots=True)
class GapReading:
    """A reading of a printed order: the first is better than the second by so many points."""

    name: str
    better: Setting
    worse: Setting


@dataclass(frozen=True, slots=True)
class CrossingReading:
    """A reading of a printed crossing: from there on the later curve is above the earlier.

    Attributes:
        name: Of the reading.
        earlier: The curve that is above at first, by rising epsilon.
        later: The other one, at the same epsilons.
        averaged: How many runs the paper may have drawn the mean of; as many as ours if 0.
    """

    name: str
    earlier: tuple[Setting, ...]
    later: tuple[Setting, ...]
    averaged: int = 0


@dataclass(frozen=True, slots=True)
class PrintedFigure:
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
    readings: tuple[AccuracyReading | MeanReading | GapReading | CrossingReading, ...]
    at_most: bool = False
    or_equal: bool = False

    def settings(self) -> list[Setting]:
        """Return all that has to be run."""
        needed: list[Setting] = []
        for reading in self.readings:
            if isinstance(reading, AccuracyReading | MeanReading):
                needed.append(reading.setting)
            elif isinstance(reading, GapReading):
                needed += [reading.better, reading.worse]
            else:
                needed += [*reading.earlier, *reading.later]
        return needed

    @property
    def is_crossing(self) -> bool:
        """Whether it is about where curves cross: that takes more seeds than a number does."""
        return any(isinstance(reading, CrossingReading) for reading in self.readings)


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """What one reading gave.

    Attributes:
        reading: Its name.
        value: The mean over seeds, or the crossing.
        low: Lower end of the 95 % interval of that.
        high: Upper end.
        one_low: Lower end of what one more run would give; NaN where no run is compared.
        one_high: Upper end.
        fits: Whether the printed figure is compatible.
        seeds: How many runs it is from.
    """

    reading: str
    value: float
    low: float
    high: float
    one_low: float
    one_high: float
    fits: Fit
    seeds: int


@dataclass(frozen=True, slots=True)
class JudgedFigure:
    """An item with what its readings gave."""

    item: PrintedFigure
    found: tuple[ReadingResult, ...]

    @property
    def verdict(self) -> str:
        """Reproduced by all readings, by none, by some and not by others, or undecided."""
        fits = {one.fits for one in self.found}
        if {Fit.YES, Fit.NO} <= fits:
            return DEPENDS
        if Fit.UNDECIDED in fits:
            return UNDECIDED
        return REPRODUCED if Fit.YES in fits else NOT

    @property
    def reading(self) -> str:
        """The readings under which the printed figure comes out."""
        return "; ".join(one.reading for one in self.found if one.fits is Fit.YES)


def judge(item: PrintedFigure, runs: Runs) -> JudgedFigure:
    """Judge a printed figure from the runs."""
    found = []
    for reading in item.readings:
        if isinstance(reading, AccuracyReading):
            found.append(_number(item, reading, runs))
        elif isinstance(reading, MeanReading):
            found.append(_mean(item, reading, runs))
        elif isinstance(reading, GapReading):
            found.append(_gap(item, reading, runs))
        else:
            found.append(_crossing(item, reading, runs))
    return JudgedFigure(item, tuple(found))


def sentence(judged: Sequence[JudgedFigure]) -> str:
    """Say in one line how many figures came out."""
    counts = Counter(one.verdict for one in judged)
    return (
        f"Of {len(judged)} printed figures {counts[REPRODUCED]} are reproduced, "
        f"{counts[DEPENDS]} depend on the reading, {counts[NOT]} are not reproduced, "
        f"{counts[UNDECIDED]} are undecided."
    )


def all_come_out(judged: Sequence[JudgedFigure]) -> bool | None:
    """Whether every figure is reproduced; None if none fails and some are undecided."""
    found = {one.verdict for one in judged}
    if found & {NOT, DEPENDS}:
        return False
    return None if UNDECIDED in found else True


def number(value: float, digits: int = 2) -> str:
    """Write a number with some digits, or say that there is none."""
    return f"{value:.{digits}f}" if math.isfinite(value) else "never"


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean, and half widths of the intervals of the mean and of one more value."""
    from scipy.stats import t  # lazy: scipy is slow to import

    n = len(values)
    mean = float(np.mean(values))
    if n < 2:
        return mean, math.inf, math.inf
    spread = float(np.std(values, ddof=1)) * float(t.ppf(0.975, n - 1))
    return mean, spread / math.sqrt(n), spread * math.sqrt(1 + 1 / n)


def paired_gap(better: Setting, worse: Setting, runs: Runs) -> tuple[float, float, float]:
    """Return by how much the first is above the second, with the 95 % interval of that."""
    common = min(len(runs[better]), len(runs[worse]))  # the first seeds of both
    pairs = np.array(runs[better][:common]) - np.array(runs[worse][:common])
    mean, half, _ = interval(pairs.tolist())
    return mean, mean - half, mean + half


def _number(item: PrintedFigure, reading: AccuracyReading, runs: Runs) -> ReadingResult:
    mean, of_mean, of_one = interval(runs[reading.setting])
    low, high = max(mean - of_one, 0.0), min(mean + of_one, 100.0)  # a share has no more room
    ends = (mean - of_mean, mean + of_mean, low, high)
    fits = _contained(item.value, low, high, says_nothing=(low, high) == (0.0, 100.0))
    return ReadingResult(reading.name, mean, *ends, fits, len(runs[reading.setting]))


def _mean(item: PrintedFigure, reading: MeanReading, runs: Runs) -> ReadingResult:
    values = runs[reading.setting]
    mean, half, _ = interval(values)
    low, high = mean - half, mean + half
    fits = _contained(
        item.value, low - reading.rounded, high + reading.rounded, says_nothing=math.isinf(half)
    )
    return ReadingResult(reading.name, mean, low, high, math.nan, math.nan, fits, len(values))


def _gap(item: PrintedFigure, reading: GapReading, runs: Runs) -> ReadingResult:
    mean, low, high = paired_gap(reading.better, reading.worse, runs)
    if item.at_most:
        is_met, is_failed = high <= item.value, low > item.value
    elif item.or_equal:
        is_met, is_failed = low >= item.value, high < item.value
    else:
        is_met, is_failed = low > item.value, high <= item.value
    fits = Fit.YES if is_met else Fit.NO if is_failed else Fit.UNDECIDED
    seeds = min(len(runs[reading.better]), len(runs[reading.worse]))
    return ReadingResult(reading.name, mean, low, high, math.nan, math.nan, fits, seeds)


def _crossing(item: PrintedFigure, reading: CrossingReading, runs: Runs) -> ReadingResult:
    epsilons = np.array([setting.epsilon for setting in reading.later])
    gaps = np.array([runs[one] for one in reading.later]) - np.array(
        [runs[one] for one in reading.earlier]
    )
    value = crossing(epsilons, gaps.mean(axis=1))
    draws = SeededSource(1, "crossing", item.key, reading.name).generator()
    drawn = reading.averaged or gaps.shape[1]
    places = draws.integers(gaps.shape[1], size=(_RESAMPLES, drawn))
    again = [crossing(epsilons, gaps[:, some].mean(axis=1)) for some in places]
    low, high = (float(np.quantile(again, q, method="nearest")) for q in (0.025, 0.975))
    # Of one run nothing can be drawn again; and curves that may cross anywhere, or nowhere.
    says_nothing = gaps.shape[1] < 2 or (low == 0 and math.isinf(high))
    fits = _contained(item.value, low, high, says_nothing=says_nothing)
    return ReadingResult(reading.name, value, low, high, math.nan, math.nan, fits, gaps.shape[1])


def _contained(value: float, low: float, high: float, *, says_nothing: bool) -> Fit:
    """Set a printed value against an interval, unless that excludes nothing."""
    if says_nothing:
        return Fit.UNDECIDED
    return Fit.YES if low <= value <= high else Fit.NO


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
