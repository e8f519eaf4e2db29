"""Ratings of items by users, dense: MovieLens 100K, or a table of one's own.

An own table has the columns ``user``, ``item`` and ``rating``. Ratings are rescaled from a public
scale to [0, 1]; the scale is never taken from the data, since its ends would be two users' values.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter, BadTable
from noisefloor.tables.data_sets import MOVIELENS_100K
from noisefloor.tables.reading import load_table

MOST_CELLS = 1 << 28
"""Users times items of a dense matrix: five bytes each."""

_OWN_COLUMNS = ("user", "item", "rating")
_MOVIELENS_COLUMNS = ("user_id", "movie_id", "rating")


@dataclass(frozen=True, slots=True, eq=False)
class RatingMatrix:
    """Who rated what, and how: one row per user, one column per item.

    Attributes:
        rated: Whether there is a rating.
        rating: In [0, 1]; 0, and without meaning, where there is none.
        users: The id of each row, ascending.
        items: The id of each column, the most rated first; of equals, the lower id.
    """

    rated: NDArray[np.bool_]
    rating: NDArray[np.float32]
    users: NDArray[Any]
    items: NDArray[Any]


def load_ratings(
    most_ads: int | None = None,
    *,
    source: str | os.PathLike[str] = MOVIELENS_100K.name,
    scale: tuple[float, float] = (1.0, 5.0),
) -> RatingMatrix:
    """Load the ratings of the most rated items by all users.

    Which items are the most rated is taken as public: a catalogue is chosen by its publisher
    it, from what is known to be popular. The choice is no private release, no budget is spent on
    it, and a report that starts from it has to say so. Users who rated none of these items stay,
    as rows without a rating.

    Args:
        most_ads: How many items to keep at most; all if left out.
        source: A data set's name, or a path of a table with user, item and rating.
        scale: Lowest and highest rating there is, known in public.

    Raises:
        MissingData: The data set was not fetched; the text says how.
        BadTable: A rating lies outside the scale, or a user rated an item twice.
    """
    low, high = _check_scale(scale)
    if most_ads is not None:
        check_count(most_ads, "most_ads")
    is_movielens = os.fspath(source) == MOVIELENS_100K.name
    names = _MOVIELENS_COLUMNS if is_movielens else _OWN_COLUMNS
    table = load_table(source, names, numbers=names[2:])
    user, item, rating = (table[name] for name in names)
    file = os.fspath(source)
    if rating.min() < low or rating.max() > high:
        raise BadTable(file, f"Expected ratings in [{low:g}, {high:g}].", names[2])
    return _dense(user, item, (rating - low) / (high - low), most_ads=most_ads, file=file)


def _check_scale(scale: tuple[float, float]) -> tuple[float, float]:
    low, high = (check_finite(end, "scale") for end in scale)
    if low >= high:
        raise BadParameter("scale", scale, "to rise")
    return low, high


def _dense(
    user: NDArray[Any],
    item: NDArray[Any],
    unit_rating: NDArray[Any],
    *,
    most_ads: int | None,
    file: str,
) -> RatingMatrix:
    """Put ratings into a matrix of all users and the most rated items."""
    users, row = np.unique(user, return_inverse=True)
    items, found, count = np.unique(item, return_inverse=True, return_counts=True)
    order = np.argsort(-count, kind="stable")[:most_ads]
    if len(users) * len(order) > MOST_CELLS:
        most = MOST_CELLS // len(users)
        raise BadParameter("most_ads", len(order), f"<= {most} with {len(users)} users")
    column = np.full(len(items), -1)
    column[order] = np.arange(len(order))
    place = column[found]
    cell = (row * len(order) + place)[place >= 0]
    if len(np.unique(cell)) < len(cell):
        raise BadTable(file, "Expected at most one rating of an item by a user, found two.")
    rated = np.zeros(len(users) * len(order), np.bool_)
    rating = np.zeros(len(rated), np.float32)
    rated[cell] = True
    rating[cell] = unit_rating[place >= 0]
    shape = len(users), len(order)
    return RatingMatrix(rated.reshape(shape), rating.reshape(shape), users, items[order])
