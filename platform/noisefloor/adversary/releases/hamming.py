"""Hamming distances between the rows of two tables of codes, a block at a time."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import blocks
from noisefloor.errors import BadParameter

Codes = NDArray[np.integer]
Distances = NDArray[np.uint16]

_TABLE_ROWS = 1 << 10
_MOST_COLUMNS = 1 << 15


def distances(rows: Codes, table: Codes) -> Iterator[tuple[slice, slice, Distances]]:
    """Yield blocks of distances: which rows, which rows of the table, how many columns differ.

    Blocks come row by row of the first table; none is larger than a constant.
    """
    first, second = _compared(rows, table)
    for some in blocks(len(rows), _TABLE_ROWS):
        for start in range(0, len(table), _TABLE_ROWS):
            others = slice(start, min(start + _TABLE_ROWS, len(table)))
            apart = np.zeros((some.stop - some.start, others.stop - others.start), np.uint16)
            for mine, theirs in zip(first[:, some], second[:, others], strict=True):
                apart += mine[:, None] != theirs
            yield some, others, apart


def closest(rows: Codes, table: Codes) -> Distances:
    """Return the distance from each row to the nearest row of a table."""
    if not len(table):
        raise BadParameter("table", "<0 rows>", "at least one row")
    least = np.full(len(rows), _MOST_COLUMNS, dtype=np.uint16)
    for some, _, apart in distances(rows, np.unique(table, axis=0)):
        np.minimum(least[some], apart.min(axis=1), out=least[some])
    return least


def votes(rows: Codes, table: Codes, values: Codes, size: int) -> NDArray[np.int64]:
    """Count the values that stand beside the nearest rows of a table.

    Args:
        rows: What is looked for.
        table: Where it is looked for.
        values: One for each row of the table, below ``size``.
        size: How many values there are.
    """
    least = closest(rows, table)
    counted = np.zeros((len(rows), size), dtype=np.int64)
    is_value = (np.asarray(values)[:, None] == np.arange(size)).astype(np.float32)
    for some, others, apart in distances(rows, table):
        is_near = (apart == least[some, None]).astype(np.float32)
        counted[some] += (is_near @ is_value[others]).astype(np.int64)
    return counted


def _compared(rows: Codes, table: Codes) -> tuple[Codes, Codes]:
    """Return both tables by columns, in the smallest integers that hold them."""
    if rows.ndim != 2 or table.ndim != 2 or rows.shape[1] != table.shape[1]:
        raise BadParameter("table", table.shape, f"of as many columns as the rows, {rows.shape}")
    if rows.shape[1] > _MOST_COLUMNS:
        raise BadParameter("rows", rows.shape, f"of at most {_MOST_COLUMNS} columns")
    most = max((int(one.max()) for one in (rows, table) if one.size), default=0)
    least = min((int(one.min()) for one in (rows, table) if one.size), default=0)
    kind = np.uint8 if least >= 0 and most < 256 else np.int64
    return np.ascontiguousarray(rows.T.astype(kind)), np.ascontiguousarray(table.T.astype(kind))
