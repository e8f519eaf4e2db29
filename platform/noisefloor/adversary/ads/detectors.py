"""Detectors of fake devices: p-values that are valid for every honest population stated.

Each says what it Sees: an aggregator keeps sums only, so all of them work from tallies. A p-value
below alpha is a false alarm with probability alpha at most (for those that use a limit
distribution: in the limit of many reports). Tallies may have leading axes: one p-value each.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import true_positive_rate
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import SampledBit, UnaryEncoding

Counts = NDArray[np.int64]


def total_test(
    encoding: UnaryEncoding, tally: Counts, n: int, total: float | None = None
) -> Floats:
    """Test the sum of all estimates: how many ones a device holds on average.

    Sees:      the tally: one sum per place.
    Knows:     the encoding; that nobody holds less than none or more than ``most_ones``; if
               ``total`` is given, how many an honest device holds on average.
    Guesses:   whether fakes are among the reports.
    Reference: the sum of independent bits, by its normal limit.
    """
    from scipy.special import ndtr  # lazy: scipy is slow to import

    seen = np.asarray(tally, dtype=np.float64).sum(axis=-1)
    low, high = (0.0, float(encoding.most_ones)) if total is None else (total, total)
    tails = []
    for sign, ones in ((1, low), (-1, high)):
        mean, deviation = _total_moments(encoding, n, ones)
        tails.append(ndtr(sign * (seen - mean) / deviation))
    return np.asarray(np.minimum(1.0, 2 * np.minimum(*tails)))


def _total_moments(encoding: UnaryEncoding, n: int, ones: float) -> tuple[float, float]:
    """Return mean and standard deviation of all ones, by the mean number of ones of a device."""
    stay, rise = encoding.stay / ONE, encoding.rise / ONE
    zeros = encoding.size - ones
    variance = ones * stay * (1 - stay) + zeros * rise * (1 - rise)
    return n * (ones * stay + zeros * rise), math.sqrt(n * variance)


def uniformity_test(mechanism: SampledBit, tally: Counts) -> Floats:
    """Test whether coordinates come equally often: honest ones do, whatever the data.

    Sees:      the tally: how often each (coordinate, bit) came.
    Knows:     that coordinates are drawn without looking at the data.
    Guesses:   whether fakes chose theirs.
    Reference: Pearson's chi-square by its limit distribution; wants five reports a coordinate.
    """
    from scipy.special import chdtrc  # lazy: scipy is slow to import

    counts = _by_coordinate(mechanism, tally).sum(axis=-1)
    expected = counts.sum(axis=-1, keepdims=True) / mechanism.dimension
    statistic = ((counts - expected) ** 2 / expected).sum(axis=-1)
    return np.asarray(chdtrc(mechanism.dimension - 1, statistic))


def bit_bias_test(mechanism: SampledBit, tally: Counts, *, largest: float = 1.0) -> Floats:
    """Test whether the bits of any coordinate lean further than honest data can make them.

    Sees:      the tally: how often each (coordinate, bit) came.
    Knows:     that honest means lie in [-largest, largest] (1: any data at all), so that the
               share of ones is at most 1/2 + largest / 2 * tanh(epsilon / 2).
    Guesses:   whether fakes lie about bits, even if they draw their coordinates honestly.
    Reference: exact binomial tails, both sides, the worst coordinate after Bonferroni.
    """
    if not 0 <= largest <= 1:
        raise BadParameter("largest", largest, "in [0, 1]")
    pairs = _by_coordinate(mechanism, tally)
    share = (1 + largest / mechanism.one_bit.size) / 2
    tails = _at_least(pairs, pairs.sum(axis=-1, keepdims=True), share)
    return _worst_of(tails.reshape(*pairs.shape[:-2], -1))


def _by_coordinate(mechanism: SampledBit, tally: Counts) -> Counts:
    counts = np.asarray(tally)
    if counts.shape[-1] != 2 * mechanism.dimension:
        raise BadParameter("tally", counts.shape, f"to have {2 * mechanism.dimension} cells")
    return counts.reshape(*counts.shape[:-1], mechanism.dimension, 2)


def _at_least(counts: Counts, n: Counts, chance: float) -> Floats:
    """Return the exact chance of at least ``counts`` hits in n trials."""
    from scipy.special import betainc  # lazy: scipy is slow to import

    # No hits at all, or more, is certain; the beta function has no value for it.
    tail = betainc(np.maximum(counts, 1), n - counts + 1, chance)
    return np.where(counts > 0, tail, 1.0)


def _worst_of(p_values: Floats) -> Floats:
    """Return the least p-value along the last axis, times their number."""
    return np.asarray(np.minimum(1.0, p_values.shape[-1] * p_values.min(axis=-1)))


@dataclass(frozen=True, slots=True)
class DetectionRates:
    """How well scores tell attacked runs from honest ones.

    Attributes:
        auc: The chance that an attacked run looks worse than an honest one, ties counted half.
        rate: The true positive rate at the false positive rate asked for.
        rate_error: Its standard error.
        false_positive_rate: As requested.
    """

    auc: float
    rate: float
    rate_error: float
    false_positive_rate: float


def detection_rates(
    honest: Floats, attacked: Floats, *, false_positive_rate: float = 0.01
) -> DetectionRates:
    """Compare p-values of honest runs with those of attacked ones.

    Raises:
        UnresolvedRate: There are too few honest runs for the false positive rate.
    """
    rate, error = true_positive_rate(-attacked, -honest, false_positive_rate)
    ordered = np.sort(honest)
    above = honest.size - np.searchsorted(ordered, attacked, side="right")
    equal = honest.size - above - np.searchsorted(ordered, attacked, side="left")
    auc = float((above + equal / 2).mean() / honest.size)
    return DetectionRates(auc, rate, error, false_positive_rate)
