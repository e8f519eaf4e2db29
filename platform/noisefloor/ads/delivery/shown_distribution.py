"""The exact distribution of the ad that is shown, for many rows of scores at once.

The same distributions as the mechanisms' own ``chances``, which take one row after the other; here
each is written for arrays, so that some hundreds of rows take no longer than they should.
"""

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from noisefloor.ads.delivery.slates import FavouriteSlate, RandomSlate
from noisefloor.checks import Array, Floats
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import ExponentialMechanism, NoisyMax, PermuteAndFlip, TwoSidedGeometric

_DECAY = 36.0
"""The noise is summed to where it has fallen by e**-36, below the rounding of a float."""

_AT_ONCE = 1 << 16
"""Numbers per temporary while the noise is summed over: they stay in the caches."""


def shown_chances(mechanism: Any, rows: Array) -> Floats:
    """Return the chance of each ad to be shown, for each row of scores within the range.

    Args:
        mechanism: That of an ``AdDelivery``.
        rows: Scores, one row per user.
    """
    if isinstance(mechanism, NoisyMax):
        return _by_noise(mechanism, mechanism.scores.grid(rows))
    if isinstance(mechanism, ExponentialMechanism):
        return _by_weight(mechanism, mechanism.scores.grid(rows))
    if isinstance(mechanism, PermuteAndFlip):
        return _by_flip(mechanism, mechanism.scores.grid(rows))
    return _by_order(_rank_chances(mechanism), rows)


def _rank_chances(mechanism: Any) -> Floats:
    """Return the chance of the best ad, the second best and so on, where only order counts."""
    if isinstance(mechanism, FavouriteSlate | RandomSlate):
        return mechanism.rank_chances()
    scores = mechanism.scores
    falling = np.linspace(scores.high, scores.low, scores.size)
    return np.asarray(np.exp(mechanism.log_likelihood(np.arange(scores.size), falling)))


def _by_order(rank_chances: Floats, rows: Array) -> Floats:
    """Hand the chances of the ranks to the ads; ties are ranked by index."""
    order = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")
    chances = np.empty(rows.shape)
    np.put_along_axis(chances, order, np.broadcast_to(rank_chances, rows.shape), axis=1)
    return chances


def _by_weight(mechanism: ExponentialMechanism, grid: NDArray[np.int64]) -> Floats:
    weights = np.array(mechanism.weights, dtype=np.float64)[grid]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _by_flip(mechanism: PermuteAndFlip, grid: NDArray[np.int64]) -> Floats:
    """Integrate over the place in the order; the integrand is a polynomial, so this is exact."""
    accept = np.array(mechanism.accept, dtype=np.float64) / ONE
    accepted = accept[grid.max(axis=1, keepdims=True) - grid]
    nodes, weights = np.polynomial.legendre.leggauss(mechanism.size // 2 + 1)
    total = np.zeros(grid.shape)
    for place, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        refused = 1 - accepted * place  # never 0: places lie strictly within (0, 1)
        total += weight * refused.prod(axis=1, keepdims=True) / refused
    return np.asarray(accepted * total)


def _by_noise(mechanism: NoisyMax, grid: NDArray[np.int64]) -> Floats:
    """Sum over the largest noisy score; those before it have to stay one behind."""
    if not isinstance(mechanism.noise, TwoSidedGeometric):
        raise BadParameter("noise", type(mechanism.noise).__name__, "two-sided")
    steps = mechanism.scores.steps
    reach = math.ceil(_DECAY / float(mechanism.noise.rate)) + steps
    log_pmf, log_cdf = _tables(mechanism, reach)
    # Row g of a window: the distribution of the noise at x - g, for all largest noisy scores x.
    wide = 2 * reach - steps
    at, below = (sliding_window_view(table, wide)[::-1] for table in (log_pmf, log_cdf))
    chances = np.empty(grid.shape)
    each = max(1, _AT_ONCE // wide)
    for start in range(0, len(grid), each):
        some = slice(start, start + each)
        chances[some] = _summed(grid[some], at, below)
    return chances


def _tables(mechanism: NoisyMax, reach: int) -> tuple[Floats, Floats]:
    """Return ln P(noise = k) and ln P(noise <= k) for k from -reach to reach."""
    log_pmf = mechanism.noise.log_pmf(np.arange(-reach, reach + 1))
    chance = np.exp(log_pmf)
    # Near one the cdf is computed from the mass above it.
    above = np.append(np.cumsum(chance[::-1])[::-1][1:], 0.0)
    below = np.cumsum(chance)
    return log_pmf, np.where(below < 0.5, np.log(below), np.log1p(-np.minimum(above, 0.75)))


def _summed(grid: NDArray[np.int64], at: Floats, below: Floats) -> Floats:
    """Return the chances of some rows, candidate after candidate."""
    # Windows have one row more than there are scores: row g + 1 is the cdf one step lower.
    others = np.zeros((len(grid), at.shape[1]))
    for scores in grid.T:
        others += below[scores]
    chances = np.empty(grid.shape)
    for place, scores in enumerate(grid.T):
        others -= below[scores]
        chances[:, place] = np.exp(at[scores] + others).sum(axis=1)
        others += below[scores + 1]
    return chances
