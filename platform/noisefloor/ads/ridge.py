"""Ridge regression of many users at once: small systems, one per column, solved side by side.

A library call per user would cost more than the arithmetic. Here the users lie along the last
axis, so that each step of the elimination is one vector operation over a block of them.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

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
