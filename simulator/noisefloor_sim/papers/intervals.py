"""Intervals of what runs estimate: means, paired gaps, and the distance of a printed number."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Setting: TypeAlias = Any  # each paper has settings of its own: frozen values
Runs: TypeAlias = Mapping[Setting, Sequence[float]]
"""What was reached under each setting, run by run in the same order."""

IntervalEnds: TypeAlias = tuple[float, float, float]
"""An estimate, and the lower and upper end of its interval."""


def gaps(first: Setting, second: Setting, runs: Runs) -> list[float]:
    """Return by how much the first is above the second, run by run that both have."""
    return [a - b for a, b in zip(runs[first], runs[second], strict=False)]


def paired_gap(first: Setting, second: Setting, runs: Runs, error: float = 0.05) -> IntervalEnds:
    """Return by how much the first is above the second on average, with its interval."""
    return interval(gaps(first, second, runs), error)


def interval(
    values: Sequence[float], error: float = 0.05, step: float = 0.0, overlap: float = 0.0
) -> IntervalEnds:
    """Return the mean with Student's interval; of one value the interval is all numbers.

    Args:
        values: Of independent runs.
        error: The probability that the interval does not contain the true mean.
        step: The least standard deviation that is believed.
        overlap: Of folds that share training records: test records over training records, which
            widens the interval (Nadeau and Bengio 2003, section 5). 0 for independent runs.
    """
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return mean, -math.inf, math.inf
    half = deviation_of(values, step) * _student(error, count - 1) * math.sqrt(1 / count + overlap)
    return mean, mean - half, mean + half


def distance(
    printed: float, values: Sequence[float], error: float, step: float = 0.0
) -> IntervalEnds:
    """Return how far a printed number is above the mean, in standard deviations of one run.

    With t the statistic of Student's test of the printed number, the interval holds every
    distance d for which t is not in a tail of error / 2 of the noncentral t distribution with
    noncentrality sqrt(n) d (Johnson and Welch 1940).
    """
    count = len(values)
    deviation = deviation_of(values, step)
    if count < 2 or not deviation:
        return math.nan, -math.inf, math.inf
    root = math.sqrt(count)
    found = (printed - float(np.mean(values))) / deviation
    low, high = _noncentralities(root * found, count - 1, error / 2)
    return found, low / root, high / root


def deviation_of(values: Sequence[float], step: float) -> float:
    """Return the standard deviation of one value, at least a step; of one value it is NaN."""
    return max(float(np.std(values, ddof=1)), step) if len(values) > 1 else math.nan


@cache
def _student(error: float, degrees: int) -> float:
    from scipy.stats import t  # lazy: scipy is slow to import

    return float(t.isf(error / 2, degrees))


def _noncentralities(statistic: float, degrees: int, tail: float) -> tuple[float, float]:
    """Return the noncentralities under which a statistic lies in the upper and the lower tail.

    A noncentral t is (z + noncentrality) / u, z normal and u^2 a chi-square over its degrees, so
    that a tail is an expectation over u. (scipy's own tails are NaN where they are very small.)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    u, weights = _scales(degrees)

    def solve(side: int) -> float:
        def excess(noncentrality: float) -> float:
            chance = float(weights @ ndtr(side * (statistic * u - noncentrality)))
            return math.log(max(chance, 1e-300)) - math.log(tail)

        reach = 40 + float(u[-1]) * abs(statistic)
        return float(brentq(excess, -reach, reach))

    return solve(-1), solve(1)


@cache
def _scales(degrees: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values of the root of chi-square over its degrees, each with its probability."""
    from scipy.stats import chi2

    tail = np.geomspace(1e-12, 1e-2, 400)  # finer there: extreme values decide small tails
    edges = np.concatenate(
        [[0.0], tail, np.linspace(1e-2, 0.99, 800)[1:], 1 - tail[-2::-1], [1.0]]
    )
    middles = (edges[1:] + edges[:-1]) / 2
    return np.sqrt(chi2.ppf(middles, degrees) / degrees), np.diff(edges)
