"""Shrinking noisy counts towards what is expected of them, by as much as the noise demands.

Only noisy counts and public figures go in, so it costs nothing: it is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_WIDTHS = np.array([1e-6, 0.3, 2.0, 15.0])
"""Variances of the mixture over that of a bucket: nearly nothing, little, much, very much."""

_ROUNDS = 20
_LEAST = 1e-9


def posterior_means(noisy: Floats, noise: Floats, expected: Floats, buckets: Places) -> Floats:
    """Return the mean of each true count given its noisy one.

    In a bucket, true counts lie around what is expected by a mixture of normal distributions, most
    of them close to it and a few far away. The shares of the mixture are fitted to the bucket.

    Args:
        noisy: Counts as they were released.
        noise: Variance of the noise of each.
        expected: What each count is expected to be.
        buckets: The bucket of each count, from 0 on.

    Reference: Stephens 2017, doi 10.1093/biostatistics/kxw041 (adaptive shrinkage).
    """
    if not noisy.size:
        return noisy.copy()
    count = int(buckets.max()) + 1
    gaps = noisy - expected
    sizes = np.maximum(np.bincount(buckets, minlength=count), 1)
    spread = np.maximum(np.bincount(buckets, gaps**2 - noise, count) / sizes, _LEAST)
    widths = spread[buckets][:, None] * _WIDTHS
    total = widths + noise[:, None]
    with np.errstate(divide="ignore"):
        fit = -0.5 * (np.log(total) + gaps[:, None] ** 2 / total)
    chances = np.exp(fit - fit.max(axis=1, keepdims=True))
    shares = np.full((count, len(_WIDTHS)), 1 / len(_WIDTHS))
    for _ in range(_ROUNDS):
        weights = chances * shares[buckets]
        weights /= weights.sum(axis=1, keepdims=True)
        shares = _shares(weights, buckets, count)
    weights = chances * shares[buckets]
    weights /= weights.sum(axis=1, keepdims=True)
    gains = (weights * widths / total).sum(axis=1)
    return np.asarray(expected + gaps * gains)


def _shares(weights: Floats, buckets: Places, count: int) -> Floats:
    """Return the shares of each bucket; one is added to each so that none is ever 0."""
    columns = [np.bincount(buckets, column, count) + 1 for column in weights.T]
    found = np.stack(columns, axis=1)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def magnitude_buckets(expected: Floats, kinds: Places | None = None) -> Places:
    """Return buckets of counts of similar size, half a power of two wide.

    Args:
        expected: Of each count.
        kinds: A further division, from 0 to 3.
    """
    powers = np.round(2 * np.log2(np.maximum(expected, 2.0**-10))).astype(np.int64)
    buckets = 4 * np.clip(powers + 20, 0, 80)
    return buckets if kinds is None else buckets + kinds


def calibrated(noisy: Floats, expected: Floats, buckets: Places) -> Floats:
    """Return what is expected, multiplied in each bucket so that its sum is that of the counts."""
    count = int(buckets.max(initial=0)) + 1
    sums = np.bincount(buckets, expected, count)
    found = np.bincount(buckets, noisy, count)
    factors = np.clip(found / np.maximum(sums, _LEAST), 0.02, 5.0)
    return np.asarray(expected * factors[buckets])
