"""Noisy counts made consistent: not negative, and of equal margins. All of it post-processing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SWEEPS = 30
_FLOOR = 1e-9
"""Given to every cell, in records, so that margins can be met where all cells are empty."""


def pooled(estimates: Sequence[tuple[Floats, float]]) -> tuple[Floats, float]:
    """Return the mean of independent estimates by their variances, and its own variance."""
    weights = np.array([1 / variance for _, variance in estimates])
    whole = sum(weight * one for weight, (one, _) in zip(weights, estimates, strict=True))
    return np.asarray(whole / weights.sum()), float(1 / weights.sum())


def projected(counts: Floats, total: float) -> Floats:
    """Return the nearest counts (last axis) that are not negative and add up to a total.

    Reference: Held, Wolfe and Crowder 1974 (projection on the simplex).
    """
    size = counts.shape[-1]
    falling = -np.sort(-counts, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - total) / np.arange(1, size + 1)
    kept = np.count_nonzero(falling > excess, axis=-1)
    level = np.take_along_axis(excess, np.maximum(kept - 1, 0)[..., None], axis=-1)
    return np.asarray(np.maximum(counts - level, 0.0))


def fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return a table scaled in turns to the margins of its rows and its columns.

    Reference: Deming and Stephan 1940 (iterative proportional fitting).
    """
    fit = table + _FLOOR
    for _ in range(SWEEPS):
        fit *= _ratio(columns, fit.sum(axis=0))
        fit *= _ratio(rows, fit.sum(axis=1))[:, None]
    return fit


def _ratio(wanted: Floats, sums: Floats) -> Floats:
    """Return by what to multiply; what is empty stays so."""
    return np.divide(wanted, sums, out=np.zeros_like(sums), where=sums > 0)
