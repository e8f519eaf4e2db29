"""Small populations of coded rows, and ways of making synthetic rows from them."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.privacy import Neighbours
from noisefloor.publication.cell_noise import LaplaceCells
from noisefloor.randomness import SeededSource, Source

Rows = NDArray[np.int64]
SIZES = (4, 5, 3, 4, 5, 3, 4, 3)


def population(count: int, seed: int, *path: str) -> Rows:
    """Return rows of eight columns; each column leans on the one before it."""
    draw = SeededSource(seed, "population", *path).generator()
    columns = [draw.integers(0, SIZES[0], count)]
    for size in SIZES[1:]:
        follows = draw.random(count) < 0.5
        columns.append(np.where(follows, columns[-1] % size, draw.integers(0, size, count)))
    return np.column_stack(columns).astype(np.int64)


class Synthesiser:
    """Independent columns from noisy histograms: private for records added or removed."""

    def __init__(self, epsilon: float, count: int) -> None:
        self.noise = LaplaceCells(epsilon / len(SIZES), Neighbours.RECORD_ADD_REMOVE)
        self.count = count

    def __call__(self, rows: NDArray[np.integer], source: Source) -> Rows:
        """Return synthetic rows."""
        columns = []
        for place, size in enumerate(SIZES):
            counts = np.bincount(rows[:, place], minlength=size)
            noisy = self.noise.add(counts, source.child("noise", place))
            ends = np.cumsum(np.maximum(noisy, 0) + 1e-9)
            words = source.child("rows", place).stage("value").words(self.count)
            columns.append(np.searchsorted(ends, words * 2.0**-64 * ends[-1], side="right"))
        return np.column_stack(columns).astype(np.int64)


def copied_rows(rows: NDArray[np.integer], source: Source) -> Rows:
    """Return rows of the data as they are: the planted leak."""
    return rows[source.stage("copies").below(len(rows), len(rows))].astype(np.int64)
