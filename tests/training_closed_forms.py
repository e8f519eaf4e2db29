"""Closed forms of what training messages give away: oracles for the attacks."""

import math

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit import binomial_distribution
from noisefloor.checks import check_count
from noisefloor.distributions import ONE
from noisefloor.mechanisms import OneBitMean, TwoSidedGeometric

_DECAY = 40.0
"""Noise beyond e**-40 of its peak does not count in a moment."""


def bit_total_variation(epsilon: float, first: float, second: float) -> float:
    """Return how far one bit tells two values in [-1, 1] apart.

    Formula: ``|x - x'| / 2 * tanh(epsilon / 2)``, epsilon being that of one round.
    """
    return abs(first - second) / 2 * math.tanh(epsilon / 2)


def coordinate_success(
    bit: OneBitMean, first: float, second: float, *, coordinates: int, rounds: int
) -> float:
    """Return how often two profiles that differ in one coordinate are distinguished, exactly.

    The number of rounds that report about the coordinate is binomial.
    """
    check_count(coordinates, "coordinates")
    check_count(rounds, "rounds")
    ends = bit.thresholds(np.array([first, second])).astype(np.float64) / ONE
    hits = (
        binomial_distribution(rounds, 1 / coordinates)
        if coordinates > 1
        else np.eye(rounds + 1)[-1]
    )
    rates = [_bits_success(number, *ends) for number in range(rounds + 1)]
    return float(hits @ rates)


def _bits_success(bits: int, first: float, second: float) -> float:
    """Return the success rate of telling two Bernoulli rates apart from n draws."""
    largest = np.maximum(binomial_distribution(bits, first), binomial_distribution(bits, second))
    return float(largest.sum() / 2)


def shift_total_variation(rate: float, shift: int) -> float:
    """Return how far two-sided geometric noise on one coordinate tells a shift.

    Formula: ``1 - e^(-rate shift / 2)``, as for continuous noise;
    for an odd shift ``1 - 2 r^((shift + 1) / 2) / (1 + r)`` with r = e^-rate.
    """
    steps = abs(shift)
    if steps % 2 == 0:
        return -math.expm1(-rate * steps / 2)
    return 1 - 2 * math.exp(-rate * (steps + 1) / 2) / (1 + math.exp(-rate))


def shifts_success(noise: TwoSidedGeometric, shifts: NDArray[np.integer]) -> float:
    """Approximate how often many noisy coordinates, each shifted by so much, are distinguished.

    Gaussian approximation from the exact mean and variance of the log-likelihood ratio; good when
    many coordinates say little each. For small shifts d' is the root of the sum of
    (rate * shift)**2, and the success is Phi(d' / 2).
    """
    from scipy.special import ndtr  # lazy: scipy is slow to import

    sizes, times = np.unique(np.abs(shifts[shifts != 0]), return_counts=True)
    if not sizes.size:
        return 0.5
    moments = np.array([_ratio_moments(noise, int(size)) for size in sizes])
    mean, variance = times @ moments
    return float(ndtr(mean / math.sqrt(variance)))


def _ratio_moments(noise: TwoSidedGeometric, shift: int) -> tuple[float, float]:
    """Return mean and variance of ln P(k) / P(k - shift) when the noise is k."""
    reach = math.ceil(_DECAY / float(noise.rate)) + shift
    points = np.arange(-reach, reach + 1)
    logs = noise.log_pmf(points)
    ratio, chance = logs - noise.log_pmf(points - shift), np.exp(logs)
    mean = float(chance @ ratio)
    return mean, float(chance @ (ratio - mean) ** 2)
