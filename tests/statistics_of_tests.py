"""P-values for statistical tests: chi-square, Kolmogorov-Smirnov and binomial, as pure functions.

A statistical test asserts that its p-value is above ``FALSE_ALARM``, and has a twin, wrong by a
stated amount, whose p-value is below. What is tested here is the sample against a stated
distribution; the helpers know nothing of mechanisms.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

FALSE_ALARM = 1e-6
"""Per test: two hundred tests of a correct program alarm once in 5 000 runs."""

LEAST_EXPECTATION = 5.0
"""Cells that expect less are pooled: below it, chi-square is not the statistic's distribution."""

Floats = NDArray[np.float64]


def chi_square_p(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """Return the chi-square p-value of counts under a discrete distribution.

    Cells that expect fewer than five are pooled into one. A count in a cell of probability zero
    refutes the distribution outright: the p-value is 0.
    """
    observed = np.asarray(counts, dtype=np.float64)
    distribution = np.asarray(probabilities, dtype=np.float64)
    if observed.ndim != 1 or observed.shape != distribution.shape:
        raise ValueError(
            f"Expected one count per cell; got {observed.shape} and {distribution.shape}."
        )
    if (observed < 0).any() or (distribution < 0).any() or abs(distribution.sum() - 1) > 1e-9:
        raise ValueError("Expected counts >= 0 and probabilities >= 0 that sum to 1.")
    if observed[distribution == 0].any():
        return 0.0
    observed, expected = _pooled(
        observed[distribution > 0], observed.sum() * distribution[distribution > 0]
    )
    if expected.size < 2:
        raise ValueError("Expected draws enough for two cells; a single cell tests nothing.")
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, expected.size - 1))


def ks_p(sample: ArrayLike, cdf: Callable[[Floats], Floats]) -> float:
    """Return the two-sided Kolmogorov-Smirnov p-value of a sample under a continuous
    distribution."""
    return float(stats.kstest(np.asarray(sample, dtype=np.float64), cdf).pvalue)


def binomial_p(hits: int, trials: int, probability: float) -> float:
    """Return the exact two-sided p-value of n hits in n trials."""
    return float(stats.binomtest(int(hits), int(trials), float(probability)).pvalue)


def tilted(probabilities: Sequence[float] | Floats, factor: float) -> Floats:
    """Return the distribution with its first half of cells times ``factor``, the rest making up
    for it.

    The twin of a chi-square test: a distribution wrong by a stated amount.
    """
    distribution = np.asarray(probabilities, dtype=np.float64)
    half = distribution.size // 2
    head = distribution[:half] * factor
    tail = distribution[half:] * (1 - head.sum()) / distribution[half:].sum()
    return np.concatenate([head, tail])


def _pooled(observed: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Pool the cells that expect too little, and one more if even the pool does."""
    order = np.argsort(expected, kind="stable")
    observed, expected = observed[order], expected[order]
    pool = int(np.count_nonzero(expected < LEAST_EXPECTATION))
    if 0 < pool < expected.size and expected[:pool].sum() < LEAST_EXPECTATION:
        pool += 1
    if pool < 2:
        return observed, expected
    return (
        np.concatenate([[observed[:pool].sum()], observed[pool:]]),
        np.concatenate([[expected[:pool].sum()], expected[pool:]]),
    )
