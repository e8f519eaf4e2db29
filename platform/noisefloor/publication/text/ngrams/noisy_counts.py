"""Noisy counts of very many cells, of which a document touches a few, each with its own scale.

Every cell has a squared scale that is a power of two. A document's weight is the norm of its
counts, each divided by the scale of its cell: a cell with a large scale weighs little, and gets
that much more noise. A document of a larger norm than allowed counts with a smaller multiplier,
the same for all its cells. All of it is integers, so that the bound holds exactly.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import GaussianNoise, ReleaseLoss
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import GaussianTable
from noisefloor.randomness import Source

Counts = NDArray[np.int64]

MOST_EXPONENT = 24
MOST_NORM_SQUARED = 1 << 20
MOST_GRID = 64
MOST_SIGMA = 1 << 15
"""Of noise in units of the grid: the widest table of ``GaussianTable``."""

_HAIR = 1 - 1e-12
"""A hair less noise than there is, for the rounding of floats."""


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """How often each document has each cell, in rows (document, cell, count) without repeats.

    Attributes:
        owners: The document of each row, from 0 on.
        cells: The cell of each row.
        counts: Whole numbers other than 0; of either sign.
        documents: How many documents there are.
    """

    owners: Counts
    cells: Counts
    counts: Counts
    documents: int

    @classmethod
    def of(cls, owners: Counts, cells: Counts, documents: int, size: int) -> "CellCounts":
        """Count pairs of document and cell that may repeat; cells are below ``size``."""
        keys, counts = np.unique(owners * size + cells, return_counts=True)
        return cls(keys // size, keys % size, counts.astype(np.int64), documents)


@dataclass(frozen=True, slots=True)
class CountingBound:
    """How far a document can move a table.

    Attributes:
        norm_squared: The largest squared norm of a document, in counts.
        grid: In how many steps the multiplier of a document falls from 1 to 0.
        top: The largest exponent of two of a cell's squared scale.
    """

    norm_squared: int
    grid: int
    top: int

    def __post_init__(self) -> None:
        check_count(self.norm_squared, "norm_squared", most=MOST_NORM_SQUARED)
        check_count(self.grid, "grid", most=MOST_GRID)
        check_count(self.top, "top", least=0, most=MOST_EXPONENT)

    def sigma(self, multiplier: float, level: int) -> float:
        """Return the noise of a cell of squared scale 2**level, in units of the grid."""
        return multiplier * self.grid * math.sqrt(self.norm_squared * 2.0**level)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounting:
    """Counts cells with discrete Gaussian noise; what a document changes is bounded.

    Guarantee:  that of Gaussian noise of ``multiplier`` over a change of norm 1, by Renyi
                divergences of the integer noise as it is drawn (``counting_loss``). Per release.
    Neighbours: one document added or removed; one substituted changes twice the norm.
    Domain:     counts of cells below ``size``, which is public, as the scales are.
    Reference:  Canonne, Kamath, Steinke 2020, arXiv 2004.00010 (noise of several scales).

    Attributes:
        exponents: Of two, for the squared scale of each cell.
        multiplier: Noise over the largest norm.
        bound: Of what a document changes.
    """

    exponents: NDArray[np.int8]
    multiplier: float
    bound: CountingBound
    _tables: dict[int, GaussianTable] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        levels = {int(level) for level in np.unique(self.exponents)}
        if levels and not 0 <= min(levels) <= max(levels) <= self.bound.top:
            raise BadParameter("exponents", "<exponents>", f"in [0, {self.bound.top}]")
        if check_finite(self.multiplier, "multiplier") <= 0:
            raise BadParameter("multiplier", self.multiplier, "> 0")
        if self.bound.sigma(self.multiplier, max(levels, default=0)) > MOST_SIGMA:
            rule = f"small enough for sigma <= {MOST_SIGMA}"
            raise BadParameter("multiplier", self.multiplier, rule)
        made = {level: _table(self.bound.sigma(self.multiplier, level)) for level in levels}
        object.__setattr__(self, "_tables", made)

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.exponents)

    @property
    def deviations(self) -> NDArray[np.float64]:
        """The standard deviation of each cell's noise, in counts."""
        by_level = np.zeros(MOST_EXPONENT + 1)
        for level, table in self._tables.items():
            by_level[level] = math.sqrt(table.variance) / self.bound.grid
        return np.asarray(by_level[self.exponents])

    @property
    def units(self) -> NDArray[np.float64]:
        """By how much a document moves each cell at most, in units of the grid.

        From the bound that is proved, and not from the noise that is drawn.
        """
        scales = 2.0 ** self.exponents.astype(np.float64)
        return np.asarray(self.bound.grid * np.sqrt(self.bound.norm_squared * scales))

    def multipliers(self, found: CellCounts) -> Counts:
        """Return by what each document's counts are multiplied: whole numbers up to ``grid``."""
        top = int(self.exponents.max(initial=0))
        weights = found.counts**2 << (top - self.exponents[found.cells].astype(np.int64))
        norms = np.zeros(found.documents, dtype=np.int64)
        np.add.at(norms, found.owners, weights)
        allowed = (self.bound.grid**2 * self.bound.norm_squared) << top
        squares = allowed // np.maximum(norms, 1)
        chosen = np.minimum(np.sqrt(squares).astype(np.int64), self.bound.grid)
        # The root of a float may be one too many or too few.
        chosen -= chosen**2 > squares
        chosen += (chosen < self.bound.grid) & ((chosen + 1) ** 2 <= squares)
        return np.asarray(chosen)

    def sums(self, found: CellCounts) -> Counts:
        """Return the exact sums that noise is added to, in units of the grid."""
        check_cells(found, self.size)
        total = np.zeros(self.size, dtype=np.int64)
        np.add.at(total, found.cells, found.counts * self.multipliers(found)[found.owners])
        return total

    def noise(self, source: Source) -> Counts:
        """Draw the noise of every cell, in units of the grid."""
        drawn = np.empty(self.size, dtype=np.int64)
        for level, table in self._tables.items():
            rows = np.flatnonzero(self.exponents == level)
            stream = source.stage("noise", level)
            drawn[rows] = stream.draw(table.distribution, rows.size) - np.int64(table.reach)
        return drawn

    def release(self, found: CellCounts, source: Source) -> Counts:
        """Return noisy counts in units of the grid; each call is a release of its own."""
        return self.sums(found) + self.noise(source)


@lru_cache(maxsize=64)
def _table(sigma: float) -> GaussianTable:
    """Return noise of a width; a wide table takes some tenths of a second to make."""
    return GaussianTable(sigma)


def counting_loss(multiplier: float, bound: CountingBound, most_cells: int) -> ReleaseLoss:
    """Return what is known of the loss of a table, whatever its cells and scales turn out to be.

    Args:
        multiplier: Noise over the largest norm.
        bound: Of what a document changes.
        most_cells: The most cells that a document touches.
    """
    # The wider a table, the more weights are rounded; twice the cells, since one document may take
    # the place of another.
    variation = GaussianTable(bound.sigma(multiplier, bound.top)).variation
    events = (GaussianNoise(multiplier * _HAIR),)
    return ReleaseLoss(events, variation=2 * most_cells * variation)


def check_cells(found: CellCounts, size: int) -> None:
    """Refuse counts of cells that are not there."""
    if found.cells.size and not (0 <= found.cells.min() and found.cells.max() < size):
        raise BadParameter("cells", "<cells>", f"in [0, {size})")
