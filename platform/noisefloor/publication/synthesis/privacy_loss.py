"""The exact privacy loss of discrete Gaussian noise on several groups of integers together.

Where every one of K integers moves by s, the log-ratio of the two distributions is (2 s S + K
s**2) / (2 sigma**2), S being the sum of the K noises: one distribution on a lattice for a whole
group. Groups are added on a grid of losses, each rounded upwards once, so that delta errs on the
safe side. The integer weights that are drawn from differ from the ideal distribution by a total
variation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter
from noisefloor.mechanisms import GaussianTable, continuous_sigma

LARGEST_SIGMA = 1 << 14
"""A wider table takes longer to sum up than somebody waits for an answer."""

_FINENESS = 5e-5  # of a grid step, over epsilon
_REACH = 12.0  # standard deviations: beyond lies e**-72
_MOST_TRIALS = 200
_MARGIN = 1e-12
"""More than Fourier transforms of a distribution and sums over it are off by."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RecordChange:
    """What one record can do to a group of integers.

    Attributes:
        entries: How many of them it can move.
        step: By how much at most.
    """

    entries: int
    step: int

    @property
    def length(self) -> float:
        """The L2 sensitivity of the group."""
        return math.sqrt(self.entries) * self.step


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """The distribution of the loss of some groups together.

    Attributes:
        start: The first loss of the grid, in grid steps.
        grid: The step.
        chances: Of the losses from there on.
        variation: How far the distributions that are drawn from lie from the ideal ones, in all.
    """

    start: int
    grid: float
    chances: Floats
    variation: float

    def delta(self, epsilon: float) -> float:
        """Return the least delta at epsilon, rounded up."""
        losses = (self.start + np.arange(len(self.chances))) * self.grid
        over = losses > epsilon
        ideal = float(-np.expm1(epsilon - losses[over]) @ self.chances[over])
        # Both distributions may be off by the variation, the second one times e**epsilon.
        return min(1.0, ideal + _MARGIN + (1 + math.exp(epsilon)) * self.variation)

    def epsilon(self, delta: float, met: float) -> float:
        """Return the least epsilon at which delta is enough, given one at which it is."""
        low, high = 0.0, met
        while high - low > 1e-7 * met:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def loss_distribution(
    groups: Sequence[tuple[float, RecordChange]], grid: float
) -> LossDistribution:
    """Return the distribution of the loss of groups, each of a sigma and a change."""
    start, chances, variation = 0, np.ones(1), 0.0
    for sigma, change in groups:
        first, one = _group(sigma, change, grid)
        start, chances = start + first, _convolved(chances, one)
        variation += change.entries * gaussian_table(sigma).variation
    return LossDistribution(start, grid, chances, variation)


def calibrated(
    epsilon: float, delta: float, changes: Sequence[RecordChange], shares: Sequence[float]
) -> tuple[list[float], float]:
    """Return a sigma for each group, and the least epsilon of all together at delta.

    Args:
        epsilon: What all may cost.
        delta: Likewise.
        changes: What one record does to each group.
        shares: Of the squared signal-to-noise ratio, for each group; they add up to 1.
    """
    sigmas, least = _calibrated(epsilon, delta, tuple(changes), tuple(shares))
    return list(sigmas), least


@lru_cache(maxsize=256)
def _calibrated(
    epsilon: float, delta: float, changes: tuple[RecordChange, ...], shares: tuple[float, ...]
) -> tuple[tuple[float, ...], float]:
    """Calibrate once: a plan is made for a price, for each of its releases and for its audit."""
    apart = continuous_sigma(epsilon, delta, 1.0)
    for _ in range(_MOST_TRIALS):
        ratio = [change.length / math.sqrt(share) for change, share in _pairs(changes, shares)]
        sigmas = [_bounded(apart * one, epsilon) for one in ratio]
        distribution = loss_distribution(
            list(zip(sigmas, changes, strict=True)), _FINENESS * epsilon
        )
        if distribution.delta(epsilon) <= delta:
            return tuple(sigmas), distribution.epsilon(delta, epsilon)
        apart *= 1 + 1e-4 if distribution.delta(epsilon) < 1.5 * delta else 1.02
    raise BadParameter("epsilon", epsilon, "smaller: integer weights cannot tell so much apart")


@lru_cache(maxsize=64)
def gaussian_table(sigma: float) -> GaussianTable:
    """Return the weights of a sigma, made once."""
    return GaussianTable(sigma)


def _pairs(
    changes: Sequence[RecordChange], shares: Sequence[float]
) -> Sequence[tuple[RecordChange, float]]:
    return list(zip(changes, shares, strict=True))


def _bounded(sigma: float, epsilon: float) -> float:
    if sigma > LARGEST_SIGMA:
        raise BadParameter("epsilon", epsilon, f"large enough for sigma <= {LARGEST_SIGMA}")
    return sigma


def _group(sigma: float, change: RecordChange, grid: float) -> tuple[int, Floats]:
    """Return the first loss in grid steps and the chances of the losses of one group."""
    sums, chances = _sum_distribution(sigma, change.entries)
    step, count = change.step, change.entries
    losses = (2 * step * sums + count * step**2) / (2 * sigma**2)
    # Rounded up: a larger loss can only overstate delta.
    place = np.ceil(losses / grid).astype(np.int64)
    return int(place[0]), np.asarray(np.bincount(place - place[0], chances), dtype=np.float64)


def _sum_distribution(sigma: float, count: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the distribution of the sum of n ideal discrete Gaussian integers."""
    one = math.ceil(_REACH * sigma) + 1
    noise = np.arange(-one, one + 1)
    single = np.exp(-((noise / sigma) ** 2) / 2)
    single /= single.sum()
    if count == 1:
        return noise, single
    reach = math.ceil(_REACH * sigma * math.sqrt(count)) + one
    length = 1 << (2 * reach + 1).bit_length()
    ring = np.zeros(length)
    ring[noise] = single  # negative places wrap round to the end
    distribution = np.fft.irfft(np.fft.rfft(ring) ** count, length)
    sums = np.arange(-reach, reach + 1)
    return sums, np.maximum(distribution[sums], 0.0)


def _convolved(one: Floats, two: Floats) -> Floats:
    if len(one) == 1:
        return np.asarray(one[0] * two)
    length = len(one) + len(two) - 1
    size = 1 << length.bit_length()
    distribution = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(two, size), size)[:length]
    return np.maximum(distribution, 0.0)
