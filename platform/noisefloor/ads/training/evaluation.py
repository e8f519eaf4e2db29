"""What protected training is measured against: means, and the factorisation of bare ratings.

How good a model of the ads is: the error of predicted ratings, and how often it picks best.

Tastes and true ratings are needed, so this is for code that has both: a simulation, or a device
about itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import factorisation
from noisefloor.checks import check_count
from noisefloor.errors import OutOfDomain


def rmse(
    model: factorisation.AdModel, tastes: factorisation.Single, held_out: factorisation.Ratings
) -> float:
    """Return the root mean square error over held-out ratings.

    Predictions are clipped to the rating scale [0, 1], as a display would.
    """
    model.check(tastes, held_out)
    total, count = 0.0, int(np.count_nonzero(held_out.rated))
    for rows in factorisation.user_blocks(len(held_out)):
        some = held_out[rows]
        error = np.clip(model.predict(tastes[rows]), 0.0, 1.0)
        np.subtract(some.rating, error, out=error)
        factorisation.zero_unrated(error, some.rated)
        total += float(np.einsum("ij,ij->", error, error, dtype=np.float64))
    if not count:
        raise OutOfDomain("Expected at least one held-out rating.")
    return math.sqrt(total / count)


def hit_rate(
    model: factorisation.AdModel, tastes: factorisation.Single, truth: factorisation.Ratings
) -> float:
    """Return how often the ad predicted to be the best is the best, among those in ``truth``.

    Users for whom ``truth`` holds no ad do not count. Of ads that are equally good, any will do.
    """
    model.check(tastes, truth)
    hits = 0
    for rows in factorisation.user_blocks(len(truth)):
        some = truth[rows]
        predicted = np.where(some.rated, model.predict(tastes[rows]), -np.inf)
        rating = np.where(some.rated, some.rating, -np.inf)
        picked = predicted.argmax(axis=1)
        good = rating[np.arange(len(some)), picked] == rating.max(axis=1)
        hits += int(np.count_nonzero(good & some.rated.any(axis=1)))
    users = int(np.count_nonzero(truth.rated.any(axis=1)))
    if not users:
        raise OutOfDomain("Expected at least one user with a true rating.")
    return hits / users


Floats = NDArray[np.float64]

_FILLINGS = 20
_LEAST_NOISE = 1e-4
"""Ratings that fit exactly would leave no scale to the tastes."""


def global_mean(ratings: factorisation.Ratings) -> float:
    """Return the mean of all ratings; the middle of the scale if there are none."""
    total, count = _sums(ratings)
    return float(total.sum() / count.sum()) if count.sum() else 0.5


def item_means(ratings: factorisation.Ratings) -> factorisation.Single:
    """Return each ad's mean rating; the mean of all for an ad that nobody rated."""
    total, count = _sums(ratings)
    mean = np.full(len(total), global_mean(ratings))
    np.divide(total, count, out=mean, where=count > 0)
    return mean.astype(np.float32)


def mean_model(
    means: float | factorisation.Single, ads: int, dimension: int, centre: float = 0.5
) -> factorisation.AdModel:
    """Return the model that predicts means and knows no tastes."""
    offsets = np.full(ads, means, dtype=np.float32) - np.float32(centre)
    return factorisation.AdModel(centre, offsets, np.zeros((ads, dimension), dtype=np.float32))


def nonprivate(
    ratings: factorisation.Ratings,
    dimension: int,
    *,
    ridge: float = 0.1,
    sweeps: int = 10,
    centre: float = 0.5,
) -> factorisation.AdModel:
    """Train on the bare ratings by alternating ridge regressions: the best that can be hoped for.

    It starts from the covariances of pairs of ads. Each sweep then fits the tastes, and after
    them the ads. A user with few ratings has a taste that is known badly; its variance is added
    where the ads are fitted, or the ads would be fitted to noise (expectation maximisation;
    Tipping and Bishop 1999, doi 10.1111/1467-9868.00196). Nothing protects anybody here.

    Args:
        ratings: Everybody's.
        dimension: Latent factors.
        ridge: As for ``fit_tastes``, on the device as in training; it fixes the factors' scale.
        sweeps: How often tastes and ads are fitted.
        centre: Of the rating scale.
    """
    check_count(sweeps, "sweeps")
    check_count(dimension, "dimension", most=ratings.rated.shape[1])
    model, noise = _first_guess(ratings, dimension, ridge, centre)
    for _ in range(sweeps):
        sweep = _Sweep(model, ridge, noise)
        for rows in factorisation.user_blocks(len(ratings)):
            sweep.add(ratings[rows])
        model, noise = sweep.result()
    return model


def _first_guess(
    ratings: factorisation.Ratings, dimension: int, ridge: float, centre: float
) -> tuple[factorisation.AdModel, float]:
    """Return the model of the covariances of ads that were rated together, and the noise.

    The diagonal has the noise in it: it is filled in from the model itself, a few times.
    """
    means = item_means(ratings)
    ads = len(means)
    total, count = np.zeros((ads, ads)), np.zeros((ads, ads))
    for rows in factorisation.user_blocks(len(ratings)):
        some = ratings[rows]
        above, rated = some.above(means), some.rated.astype(np.float32)
        total += above.T @ above
        count += rated.T @ rated
    spread = total / (count + 1)
    diagonal = np.diag(spread).copy()
    for _ in range(_FILLINGS):
        values, vectors = np.linalg.eigh(spread)
        factors = vectors[:, -dimension:] * np.sqrt(np.maximum(values[-dimension:], 1e-6))
        np.fill_diagonal(spread, (factors**2).sum(axis=1))
    noise = max(float(np.mean(diagonal - (factors**2).sum(axis=1))), _LEAST_NOISE)
    # Tastes have variance noise / ridge by what ridge means; the factors make up for it.
    scaled = (factors * np.sqrt(ridge / noise)).astype(np.float32)
    return factorisation.AdModel(centre, means - np.float32(centre), scaled), noise


class _Sweep:
    """The sums of one sweep over all users: each ad's own regression on tastes and a constant."""

    def __init__(self, model: factorisation.AdModel, ridge: float, noise: float) -> None:
        wide = model.dimension + 1
        self.model, self.noise, self.grams = model, noise, factorisation.Grams(model, ridge)
        self.triangle = factorisation.triangle(wide)
        self.gram: Floats = np.zeros((model.ads, len(self.triangle[0])))
        self.right: Floats = np.zeros((model.ads, wide))
        self.squares = 0.0

    def add(self, ratings: factorisation.Ratings) -> None:
        """Add some users, with tastes that fit the last model."""
        above = ratings.above(np.full(self.model.ads, self.model.centre, dtype=np.float32))
        rated = ratings.rated.astype(np.float32)
        known = np.ones((self.model.dimension + 1, len(ratings)), dtype=np.float32)
        gram = self.grams.of(ratings)
        offset = rated * self.model.offsets
        known[:-1] = factorisation.solve_each(
            gram.copy(), self.model.factors.T @ (above - offset).T
        )
        rows, columns = self.triangle
        pairs = known[rows] * known[columns]
        self._add_variances(gram, pairs)
        self.gram += (pairs @ rated).T
        self.right += (known @ above).T
        self.squares += float(np.einsum("ij,ij->", above, above, dtype=np.float64))

    def _add_variances(self, gram: factorisation.Single, pairs: factorisation.Single) -> None:
        """Add the variance of each taste, column by column of its inverse matrix."""
        dimension, start = self.model.dimension, 0
        for place in range(dimension):
            unit = np.zeros((dimension, gram.shape[1]), dtype=np.float32)
            unit[place] = self.noise
            below = factorisation.solve_each(gram.copy(), unit)[place:]
            pairs[start : start + len(below)] += below
            start += dimension + 1 - place

    def result(self) -> tuple[factorisation.AdModel, float]:
        """Return the model that fits best, and the variance of the ratings around it."""
        wide = self.right.shape[1]
        squares = np.zeros((len(self.gram), wide, wide))
        rows, columns = self.triangle
        squares[:, rows, columns] = squares[:, columns, rows] = self.gram
        counts = squares[:, -1, -1].sum()
        squares += 1e-3 * np.eye(wide)  # an ad that nobody rated stays at the centre
        found = np.linalg.solve(squares, self.right[:, :, None])[:, :, 0]
        noise = (self.squares - float(np.sum(found * self.right))) / max(counts, 1.0)
        factors, offsets = found[:, :-1].astype(np.float32), found[:, -1].astype(np.float32)
        return factorisation.AdModel(self.model.centre, offsets, factors), max(noise, _LEAST_NOISE)


def _sums(ratings: factorisation.Ratings) -> tuple[Floats, NDArray[np.int64]]:
    """Return the sum and the number of each ad's ratings."""
    ads = ratings.rated.shape[1]
    total, nothing = np.zeros(ads), np.zeros(ads, dtype=np.float32)
    for rows in factorisation.user_blocks(len(ratings)):
        total += ratings[rows].above(nothing).sum(axis=0, dtype=np.float64)
    return total, ratings.rated.sum(axis=0)
