"""Exact binomial intervals, and what a sample is too small to say."""

import math

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count, check_probability
from noisefloor.errors import UnresolvedRate

Counts = NDArray[np.integer]
Floats = NDArray[np.float64]

_FEWEST = 10
"""A rate is reported only if the sample is expected to hold at least this many cases of it."""


def lower_limit(successes: Counts | int, trials: int, alpha: float) -> Floats:
    """Return the rate that is below the true one with probability 1 - alpha (Clopper-Pearson)."""
    from scipy.special import betaincinv  # lazy: scipy is slow to import

    count = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        limit = betaincinv(count, trials - count + 1, alpha)
    return np.where(count > 0, limit, 0.0)


def upper_limit(successes: Counts | int, trials: int, alpha: float) -> Floats:
    """Return the rate that is above the true one with probability 1 - alpha (Clopper-Pearson)."""
    return 1 - lower_limit(trials - np.asarray(successes), trials, alpha)


def epsilon_bound(
    hits: Counts | int, false_hits: Counts | int, trials: int, *, alpha: float, delta: float = 0.0
) -> Floats:
    """Return the epsilon that the two counts prove, each limit failing with alpha / 2."""
    low = lower_limit(hits, trials, alpha / 2) - delta
    high = upper_limit(false_hits, trials, alpha / 2)
    with np.errstate(divide="ignore"):
        return np.where(low > 0, np.log(np.maximum(low, 1e-300)) - np.log(high), -math.inf)


def ceiling(trials: int, *, alpha: float, delta: float = 0.0) -> float:
    """Return the largest epsilon that n trials can prove: all hits, no false hit."""
    check_count(trials, "trials")
    check_probability(alpha, "alpha")
    return max(0.0, float(epsilon_bound(trials, 0, trials, alpha=alpha, delta=delta)))


def true_positive_rate(
    member: Floats, other: Floats, false_positive_rate: float
) -> tuple[float, float]:
    """Return the true positive rate at a false positive rate, and its standard error.

    Raises:
        UnresolvedRate: The sample is expected to hold fewer than ten false positives at that rate.
    """
    rate = check_probability(false_positive_rate, "false_positive_rate")
    if rate * len(other) < _FEWEST:
        least = _FEWEST / max(1, len(other))
        raise UnresolvedRate(
            f"{len(other)} trials cannot resolve a false positive rate of {rate:g}; "
            f"ask for {least:g} or more, or for {math.ceil(_FEWEST / rate)} trials."
        )
    threshold = np.quantile(other, 1 - rate, method="higher")
    hit = float(np.mean(member > threshold))
    return hit, math.sqrt(hit * (1 - hit) / len(member))
