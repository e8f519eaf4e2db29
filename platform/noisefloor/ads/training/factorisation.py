"""Matrix factorisation as devices and server share it: ads have factors, people have tastes.

A rating is predicted as centre + offset of the ad + taste . factors. The model of the ads is
public; a taste stays on its device, which finds it by ridge regression or by gradient steps.

Ridge regression of many users at once: small systems, one per column, solved side by side.

A library call per user would cost more than the arithmetic. Here the users lie along the last
axis, so that each step of the elimination is one vector operation over a block of them.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter, OutOfDomain

Single = NDArray[np.float32]

USERS = 8192
"""Users solved at once: enough to hide the cost of a call, few enough for the caches."""


def triangle(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the lower triangle, one column after the other."""
    columns, rows = np.triu_indices(dimension)
    return rows, columns


def products(factors: Single) -> Single:
    """Return, for each ad, the products of its factors in the order of the triangle.

    Summed over the ads that a user rated, they are the user's Gram matrix.
    """
    rows, columns = triangle(factors.shape[1])
    return np.asarray(factors[:, rows] * factors[:, columns])


def solve_each(gram: Single, right: Single) -> Single:
    """Solve one symmetric positive definite system per column; both arguments are overwritten.

    Args:
        gram: The lower triangles, shape (d (d + 1) / 2, users).
        right: The right sides, shape (d, users).

    Returns:
        ``right``, which now holds the solutions.
    """
    columns = _columns(gram, len(right))
    spare = np.empty_like(right)
    for place, column in enumerate(columns):
        _eliminate(columns, place, right, spare)
        right[place] *= column[0]
    for place in range(len(right) - 2, -1, -1):
        part = spare[place + 1 :]
        np.multiply(columns[place][1:], right[place + 1 :], out=part)
        right[place] -= part.sum(axis=0)
    return right


def _columns(gram: Single, dimension: int) -> list[Single]:
    """Return views of the triangle's columns: the diagonal first, then what is below."""
    starts = np.cumsum([0, *range(dimension, 0, -1)])
    return [gram[start:end] for start, end in pairwise(starts)]


def _eliminate(columns: list[Single], place: int, right: Single, spare: Single) -> None:
    """Take one unknown out of the equations below it (LDL', no square roots).

    The column is left with the pivot's inverse on top and the multipliers below.
    """
    column = columns[place]
    np.reciprocal(column[0], out=column[0])
    below = spare[: len(column) - 1]
    np.multiply(column[1:], column[0], out=below)
    for step, other in enumerate(columns[place + 1 :], start=1):
        other -= column[step:] * below[step - 1]
    column[1:] = below
    right[place + 1 :] -= np.multiply(below, right[place], out=below)


_HALVES = 12
"""This many 16-bit words make an approximate Gaussian: their sum has variance 1 by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """What some users' devices hold about ads: one row per user, one column per ad.

    Attributes:
        rated: Whether the device holds a rating.
        rating: In [0, 1]; meaningless where nothing is held.
    """

    rated: NDArray[np.bool_]
    rating: Single

    def __post_init__(self) -> None:
        if self.rated.dtype != np.bool_ or self.rating.dtype != np.float32:
            raise OutOfDomain("Expected ratings as float32, and booleans that say which are held.")
        if self.rated.ndim != 2 or self.rated.shape != self.rating.shape:
            raise OutOfDomain("Expected one row of ratings per user, one column per ad.")

    def __len__(self) -> int:
        return len(self.rated)

    def __getitem__(self, rows: slice | NDArray[np.bool_] | NDArray[np.intp]) -> "Ratings":
        return Ratings(self.rated[rows], self.rating[rows])

    def above(self, base: Single) -> Single:
        """Return by how much ratings lie above a base, and 0 where nothing is held."""
        return zero_unrated(np.subtract(self.rating, base, dtype=np.float32), self.rated)


@dataclass(frozen=True, slots=True, eq=False)
class AdModel:
    """The public half of a factorisation: what the ad server broadcasts.

    Attributes:
        centre: The middle of the rating scale.
        offsets: By how much each ad is rated above the centre.
        factors: One row of latent factors per ad.
    """

    centre: float
    offsets: Single
    factors: Single

    @property
    def ads(self) -> int:
        """How many ads there are."""
        return len(self.offsets)

    @property
    def dimension(self) -> int:
        """How many latent factors there are."""
        return int(self.factors.shape[1])

    @property
    def base(self) -> Single:
        """What is predicted of each ad for a user without a taste."""
        return np.asarray(self.offsets + np.float32(self.centre))

    def predict(self, tastes: Single) -> Single:
        """Return the predicted rating of every ad by every user; not clipped to the scale."""
        return np.asarray(tastes @ self.factors.T + self.base)

    def check(self, tastes: Single, ratings: Ratings) -> None:
        """Refuse tastes or ratings that are not of this model's size."""
        if ratings.rated.shape[1] != self.ads:
            raise OutOfDomain(f"Expected ratings of {self.ads} ads.")
        if tastes.shape != (len(ratings), self.dimension) or tastes.dtype != np.float32:
            raise OutOfDomain(f"Expected one float32 taste of {self.dimension} numbers per user.")


def random_model(
    ads: int, dimension: int, seed: int, *, scale: float = 0.1, centre: float = 0.5
) -> AdModel:
    """Return an untrained model: approximately Gaussian factors, rows within the unit ball.

    It is a public constant and no draw: the same seed always gives the same model. So it is
    computed from a hash, and takes no source.
    """
    check_count(ads, "ads")
    check_count(dimension, "dimension")
    check_count(seed, "seed", least=0, most=1 << 62)
    name = f"noisefloor ad model {ads} {dimension} {seed}".encode()
    drawn = hashlib.shake_256(name).digest(2 * _HALVES * ads * dimension)
    halves = np.frombuffer(drawn, dtype="<u2").reshape(ads, dimension, _HALVES)
    normal = halves.sum(axis=2, dtype=np.float64) / 65536 - _HALVES / 2
    factors = (check_finite(scale, "scale") * normal).astype(np.float32)
    return AdModel(centre, np.zeros(ads, dtype=np.float32), project(factors))


def project(rows: Single, radius: float = 1.0) -> Single:
    """Shrink rows to the ball of a radius, in place; rows within it stay as they are."""
    if math.isinf(radius):
        return rows
    norm = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    # Dividing by the larger of norm and radius needs no look at which rows lie outside.
    rows *= (np.float32(radius) / np.maximum(norm, np.float32(radius)))[:, None]
    return rows


def drift(before: AdModel, after: AdModel) -> float:
    """Return how far the factors moved: the Euclidean norm of the change of all of them."""
    return float(np.linalg.norm(after.factors - before.factors))


def fit_tastes(model: AdModel, ratings: Ratings, ridge: float, *, radius: float = 1.0) -> Single:
    """Return the tastes that fit each user's ratings best, by ridge regression on the device.

    Args:
        model: The ads' model.
        ratings: Users' ratings; a user without any gets the taste 0.
        ridge: Weight of a taste's squared length against the squared errors; > 0.
        radius: Tastes are projected to the ball of this radius; infinity leaves them.
    """
    tastes = np.empty((len(ratings), model.dimension), dtype=np.float32)
    model.check(tastes, ratings)
    grams = Grams(model, ridge)
    for rows in user_blocks(len(ratings)):
        some = ratings[rows]
        right = model.factors.T @ some.above(model.base).T
        tastes[rows] = solve_each(grams.of(some), right).T
        project(tastes[rows], radius)
    return tastes


class Grams:
    """The matrices of many users' ridge regressions on one model."""

    __slots__ = ("_diagonal", "_products", "_ridge")

    def __init__(self, model: AdModel, ridge: float) -> None:
        if check_finite(ridge, "ridge") <= 0:
            raise BadParameter("ridge", ridge, "> 0")
        self._ridge = np.float32(ridge)
        self._products = np.ascontiguousarray(products(model.factors).T)
        self._diagonal = np.cumsum([0, *range(model.dimension, 1, -1)])

    def of(self, ratings: Ratings) -> Single:
        """Return the lower triangles, one user per column, as ``solve_each`` takes them."""
        gram = self._products @ ratings.rated.astype(np.float32).T
        gram[self._diagonal] += self._ridge
        return np.asarray(gram)


def step_tastes(
    model: AdModel,
    tastes: Single,
    ratings: Ratings,
    rate: float,
    weight: float,
    *,
    radius: float = 1.0,
) -> None:
    """Move each taste one gradient step towards its user's ratings, in place.

    The loss is the sum of squared errors over the user's own ratings plus ``weight`` times the
    taste's squared length; the paper's normaliser is left to the rate.
    """
    model.check(tastes, ratings)
    shrink, step, base = np.float32(1 - 2 * rate * weight), np.float32(2 * rate), model.base
    for rows in user_blocks(len(ratings)):
        some, near = ratings[rows], tastes[rows]
        error = near @ model.factors.T
        error += base
        np.subtract(some.rating, error, out=error)
        zero_unrated(error, some.rated)
        near *= shrink
        near += step * (error @ model.factors)
        project(near, radius)


def zero_unrated(values: Single, rated: NDArray[np.bool_]) -> Single:
    """Set values to 0 where nothing is held, in place, whatever stands there: NaN included."""
    mask = rated.view(np.int8).astype(np.int32)
    np.negative(mask, out=mask)  # all bits set, or none
    bits = values.view(np.int32)
    bits &= mask
    return values


def user_blocks(count: int) -> Iterator[slice]:
    """Cut users into blocks whose matrices stay in the caches; no draws depend on the size."""
    for start in range(0, count, USERS):
        yield slice(start, min(start + USERS, count))
