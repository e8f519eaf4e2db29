"""From noisy moments to a model: what the server of spectral training computes.

Devices send directions, not lengths, so that a mean of reports is a mean of unit vectors. What a
unit vector tells of one ad depends on how many ads its user rated; that is undone here with the
distribution of this number, as it follows from the ads' rates. Everything takes the noise as
known: it is that of public draws.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Single = NDArray[np.float32]

_SWEEPS = 60
_CORRECTIONS = 3
_PEOPLE = 1 << 14
_LEAST_RATE = 0.1
"""No ad's rate is taken to be below this share of the mean rate: nothing is divided by noise."""

_LARGEST_SPREAD = 0.2
"""Of the rates and of the offsets over ads: more would fill the scale from end to end."""

_MOST_EXPLAINED = 0.85
"""Factors never explain more than this share of the ratings' variance: rounding and whims stay."""


def shrunk(values: Floats, errors: Floats, towards: float = 0.0) -> Floats:
    """Draw noisy values towards a number, by as much as the noise has a share in their spread.

    The spread is read off the values, up to what shares and offsets may have: with few reports,
    what is read off is noise itself.
    """
    distance = values - towards
    spread = float(np.clip(np.mean(distance**2 - errors**2), 0.0, _LARGEST_SPREAD**2))
    total = spread + errors**2
    return np.asarray(towards + distance * np.divide(spread, total, where=total > 0, out=total))


def shrunk_to_mean(values: Floats, errors: Floats) -> Floats:
    """Draw noisy values towards their mean, and that towards 0 by the noise that is in it.

    Values that are all noise become one mean; if that is noise as well, 0.
    """
    weights = 1 / errors**2
    mean, variance = float(np.average(values, weights=weights)), 1 / float(weights.sum())
    return shrunk(values, errors, mean * max(0.0, 1 - variance / mean**2) if mean else 0.0)


def plausible_rates(rates: Floats, errors: Floats) -> Floats:
    """Return rates drawn towards their mean, and kept away from 0."""
    mean = min(max(float(rates.mean()), 1e-3), 1.0)
    return np.clip(shrunk(rates, errors, mean), _LEAST_RATE * mean, 1.0)


def rated_counts(rates: Floats) -> Floats:
    """Return the distribution of how many ads a user rated, if ads are rated independently."""
    distribution = np.ones(1)
    for rate in rates:
        distribution = np.convolve(distribution, (1 - rate, rate))
    return distribution


def mean_share(rates: Floats) -> float:
    """Return which part of a unit vector's change an ad's rating keeps: 1 - 1/k on average.

    Moving one of k numbers moves the length they are divided by as well. The mean is over users
    who rated the ad.
    """
    distribution = rated_counts(rates)
    count = np.arange(len(distribution))
    weight = distribution * count
    return _mean(weight, 1 - 1 / np.maximum(count, 1), least=0.5)


def pair_share(rates: Floats, *, spread: bool) -> float:
    """Return how much of a report on pairs falls on one pair that a user rated, on average.

    For k normal numbers the mean of w_i w_j moves by 1 / (k + 2) of their correlation. Where the
    diagonal takes no part (``spread`` false), all of the report is for the pairs, of which the
    share of squared length is 1 - 3 / (k + 2): hence the root.
    """
    distribution = rated_counts(rates)
    count = np.arange(len(distribution))
    weight = distribution * count * (count - 1)
    whole = (count + 2.0) if spread else np.sqrt((count + 2.0) * np.maximum(count - 1, 1))
    return _mean(weight, 1 / whole, least=1 / (len(distribution) + 1))


def _mean(weight: Floats, values: Floats, least: float) -> float:
    total = float(weight.sum())
    return max(float(weight @ values) / total, least) if total > 0 else least


def low_rank(moments: Floats, rank: int, noise: float) -> tuple[Floats, Floats]:
    """Return shrunk eigenvalues and the eigenvectors behind a matrix with an unknown diagonal.

    The diagonal is filled in from the low-rank part until both agree (Zhang, Cai, Wu 2022, arXiv
    1810.08316). Noise of one entry spreads eigenvalues over 2 sqrt(size) times it; one that
    stands out by w is worth sqrt(w**2 - edge**2), one that does not is worth nothing (Gavish and
    Donoho 2017, arXiv 1405.7511). The worth, not w, goes into the diagonal: or noise would
    feed itself.

    Args:
        moments: Symmetric; its diagonal is not looked at.
        rank: The most eigenvalues to keep.
        noise: Standard deviation of one entry.
    """
    square = moments.copy()
    np.fill_diagonal(square, 0.0)
    edge = 2 * noise * math.sqrt(len(square))
    for _ in range(_SWEEPS):
        values, vectors = np.linalg.eigh(square)
        kept = np.maximum(values[::-1][:rank], 0.0)
        worth = np.sqrt(np.maximum(kept**2 - edge**2, 0.0))
        ahead = vectors[:, ::-1][:, :rank]
        np.fill_diagonal(square, ahead**2 @ worth)
    return worth, ahead


def factors_of(
    moments: Floats, rank: int, noise: float, *, gain: float, rates: Floats, spread: bool
) -> Floats:
    """Return what ads have in common, in units of the ratings' own spread.

    The mean of w w' over unit vectors is not that of ratings: who has a strong taste has a
    long vector, which is shortened most. What that takes away is computed for people of whom only
    the model is known, and added back.

    Args:
        moments: Mean of z z', off the diagonal.
        rank: Latent factors.
        noise: Standard deviation of one entry.
        gain: By how much a report leans towards w w'.
        rates: Share of users who rated each ad.
        spread: Whether vectors were spread before they were reported.
    """
    share = pair_share(rates, spread=spread)
    people = _People.drawn(rates, rank)
    lost = np.zeros_like(moments)
    for _ in range(_CORRECTIONS):
        worth, vectors = low_rank(moments + lost, rank, noise)
        rows = vectors * np.sqrt(worth) * _row_weights(worth, vectors, rates, noise)
        factors = rows / math.sqrt(gain * share) / rates[:, None]
        if not factors.any():
            break
        lost = gain * people.lost(factors, rates, share, spread=spread)
    return factors


def for_ridge(factors: Floats, rates: Floats, ridge: float) -> Floats:
    """Scale factors so that the device's ridge regression is the best prediction.

    It is if the ridge stands to the factors' squares as the unexplained variance to the rest.
    """
    return np.asarray(factors * math.sqrt(ridge / (1 - _explained(factors, rates))))


def _row_weights(worth: Floats, vectors: Floats, rates: Floats, noise: float) -> Floats:
    """Return by how much to trust each ad's part of an eigenvector, 1 on average.

    An ad that few rate has a small part there and as much noise as any other; dividing by its
    rate would make the noise large.
    """
    weights = rates[:, None] ** 2
    signal = worth * weights / weights.sum()
    trust = np.divide(signal, signal + noise**2 / np.maximum(worth, 1e-30))
    mean = np.average(trust, axis=0, weights=weights[:, 0])
    return np.asarray(np.where(worth > 0, trust / np.maximum(mean, 1e-30), 1.0))


def _explained(factors: Floats, rates: Floats) -> float:
    """Return which share of the ratings' variance factors explain, within what is believed."""
    squares = np.einsum("ij,ij->i", factors, factors)
    return min(float(np.average(squares, weights=rates)), _MOST_EXPLAINED)


@dataclass(frozen=True, slots=True, eq=False)
class _People:
    """Made-up people: normal tastes and whims, ads rated at the ads' rates."""

    tastes: Single
    whims: Single

    @classmethod
    def drawn(cls, rates: Floats, rank: int) -> "_People":
        words = _public_words(_PEOPLE * (rank + 2 * len(rates))).reshape(_PEOPLE, -1)
        chance = words[:, rank + len(rates) :] < np.rint(rates * (1 << 16))
        normal = _normal_table()[words[:, : rank + len(rates)]]
        whims = np.where(chance, normal[:, rank:], np.float32(np.nan))
        return cls(normal[:, :rank], whims)

    def lost(self, factors: Floats, rates: Floats, share: float, *, spread: bool) -> Floats:
        """Return by how much the mean of w w' falls short of ``share`` times the covariance."""
        explained = _explained(factors, rates)
        whole = float(np.average(np.einsum("ij,ij->i", factors, factors), weights=rates))
        loud = factors * math.sqrt(explained / whole)
        rows = self.tastes @ loud.T.astype(np.float32)
        rows += np.float32(math.sqrt(1 - explained)) * self.whims
        np.nan_to_num(rows, copy=False, nan=0.0)
        square = np.einsum("ij,ij->i", rows, rows)
        if not spread:
            fourth = np.einsum("ij,ij,ij,ij->i", rows, rows, rows, rows)
            square = np.sqrt(np.maximum(square**2 - fourth, 0.0))
        weight = np.zeros_like(square)
        np.divide(1, square, out=weight, where=square > 1e-6)
        short = (np.float32(share) - weight)[:, None] * rows
        return np.asarray(short.T @ rows, dtype=np.float64) / len(rows)


@cache
def _public_words(count: int) -> NDArray[np.uint16]:
    """Return 16-bit words that everybody can compute: a constant, no draws of anybody's."""
    drawn = hashlib.shake_256(b"noisefloor spectrum people").digest(2 * count)
    return np.frombuffer(drawn, dtype="<u2")


@cache
def _normal_table() -> Single:
    """Return the normal quantiles in the middle of 2**16 cells."""
    from scipy.special import ndtri  # lazy: scipy is slow to import

    return np.asarray(ndtri((np.arange(1 << 16) + 0.5) / (1 << 16)), dtype=np.float32)
