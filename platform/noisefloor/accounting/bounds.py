"""Ceilings: how well any attack can do against a given epsilon and delta.

They need no knowledge of the mechanism. An attack that passes its ceiling refutes the guarantee;
an attack below it proves nothing. Every function takes numbers or numpy arrays, which broadcast;
numbers in, one number out. An infinite epsilon promises nothing, so its ceiling is 1.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisefloor.checks import Array
from noisefloor.errors import BadParameter

Reals: TypeAlias = NDArray[np.float64]


def binary_success(epsilon: ArrayLike, delta: ArrayLike = 0.0) -> Array:
    """Bound the success at telling two equally likely neighbours apart.

    Formula: ``(e^epsilon + delta) / (1 + e^epsilon)``.
    Reference: Kairouz, Oh and Viswanath 2015 (the testing region), arXiv 1311.0776.
    """
    return success(epsilon, 2, delta)


def success(epsilon: ArrayLike, size: ArrayLike, delta: ArrayLike = 0.0) -> Array:
    """Bound the success at guessing which of ``size`` equally likely inputs it was.

    Any two of the inputs have to be neighbours.

    Formula: ``(e^epsilon + (size - 1) delta) / (e^epsilon + size - 1)``.
    """
    others = _within(size, "size", 1.0, np.inf) - 1.0
    if not np.all(np.isfinite(others)):
        raise BadParameter("size", _shown(size), "to be finite")
    # Divided by e^epsilon throughout: e^-epsilon cannot overflow.
    shrink = np.exp(-_epsilon(epsilon))
    return _plain((1.0 + others * _delta(delta) * shrink) / (1.0 + others * shrink))


def true_positive_rate(
    false_positive_rate: ArrayLike, epsilon: ArrayLike, delta: ArrayLike = 0.0
) -> Array:
    """Bound the true positive rate of any test at a given false positive rate.

    Formula: the least of ``e^epsilon FPR + delta``, ``1 - e^-epsilon (1 - delta - FPR)`` and 1.
    Reference: Kairouz, Oh and Viswanath 2015 (the testing region), arXiv 1311.0776.
    """
    rate, loss, slack = _rate(false_positive_rate), _epsilon(epsilon), _delta(delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        # In logarithms, since e^epsilon overflows where the product still is small.
        steep = np.exp(np.minimum(np.log(rate) + loss, 0.0)) + slack
    # At rate 0 an infinite epsilon makes 0 * inf: nothing is promised, so nothing is excluded.
    steep = np.where(np.isinf(loss), 1.0, steep)
    flat = 1.0 - np.exp(-loss) * (1.0 - slack - rate)
    return _plain(np.minimum(np.minimum(steep, flat), 1.0))


def advantage(epsilon: ArrayLike, delta: ArrayLike = 0.0) -> Array:
    """Bound true positive rate minus false positive rate (the total variation distance).

    Formula: ``(e^epsilon - 1 + 2 delta) / (e^epsilon + 1)``.
    """
    loss = _epsilon(epsilon)
    shrink = np.exp(-loss)
    return _plain((-np.expm1(-loss) + 2.0 * _delta(delta) * shrink) / (1.0 + shrink))


def gaussian_true_positive_rate(false_positive_rate: ArrayLike, mu: ArrayLike) -> Array:
    """Bound the true positive rate under mu-Gaussian differential privacy.

    Formula: ``Phi(Phi^-1(FPR) + mu)``.
    Reference: Dong, Roth and Su 2022 (Gaussian DP), doi 10.1111/rssb.12454.
    """
    from scipy.special import ndtr, ndtri  # lazy: scipy is slow to import

    rate, shift = _rate(false_positive_rate), _within(mu, "mu", 0.0, np.inf)
    with np.errstate(invalid="ignore"):
        reached = ndtr(ndtri(rate) + shift)
    return _plain(np.where(np.isinf(shift), 1.0, reached))


def gaussian_delta(epsilon: ArrayLike, mu: ArrayLike) -> Array:
    """Return the smallest delta of mu-Gaussian differential privacy at a given epsilon.

    One Gaussian release has mu = sensitivity / standard deviation. The value is a difference of
    two tails, good to about 1e-16 absolutely; do not read anything into a delta below 1e-13.

    Formula: ``Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)``.
    Reference: Balle and Wang 2018 (analytic Gaussian mechanism), arXiv 1805.06530.
    """
    from scipy.special import log_ndtr, ndtr  # lazy: scipy is slow to import

    loss, shift = np.broadcast_arrays(_epsilon(epsilon), _within(mu, "mu", 0.0, np.inf))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        centre = loss / shift
        left = np.exp(loss + log_ndtr(-shift / 2.0 - centre))
        delta = np.clip(ndtr(shift / 2.0 - centre) - left, 0.0, 1.0)
    delta = np.where(np.isinf(shift), 1.0, delta)
    return _plain(np.where(np.isinf(loss) | (shift == 0.0), 0.0, delta))


def _epsilon(value: ArrayLike) -> Reals:
    return _within(value, "epsilon", 0.0, np.inf)


def _delta(value: ArrayLike) -> Reals:
    return _within(value, "delta", 0.0, 1.0)


def _rate(value: ArrayLike) -> Reals:
    return _within(value, "false_positive_rate", 0.0, 1.0)


def _within(value: ArrayLike, name: str, low: float, high: float) -> Reals:
    """Return the value as floats that all lie in [low, high]; NaN is refused as well."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf":
        raise BadParameter(name, _shown(value), "to be numbers")
    reals = numbers.astype(np.float64)
    if not np.all((reals >= low) & (reals <= high)):
        raise BadParameter(name, _shown(value), f"in [{low:g}, {high:g}]")
    return reals


def _shown(value: ArrayLike) -> object:
    """Show a number as it is and an array by its shape: an error is one line."""
    return value if np.ndim(value) == 0 else f"<array of shape {np.shape(value)}>"


def _plain(values: Reals) -> Array:
    """Return a numpy float instead of an array without dimensions."""
    plain: Array = values[()]
    return plain
