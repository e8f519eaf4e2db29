"""A sliding window on an integer grid: what piecewise and square wave have in common.

The output line has ``steps + width`` cells. A value at position L in [0, steps] makes the
``width`` cells from L on likely and all others unlikely; the window fits for every L.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats
from noisefloor.errors import OutOfDomain
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import Reports, log_of
from noisefloor.mechanisms.thresholds import epsilon_of, exp, floor64, in_sixty_digits, ratio
from noisefloor.randomness import Source

STEPS = 1 << 16
"""Positions are 0, ..., STEPS: a power of two, so that a far cell is sixteen plain bits."""


@dataclass(frozen=True, slots=True)
class Window:
    """The law: a near cell has probability inside / width, a far one (1 - inside) / STEPS."""

    width: int
    inside: int

    @classmethod
    @in_sixty_digits
    def of(cls, epsilon: float, share: Decimal) -> "Window":
        """Make the window about ``share * STEPS`` cells wide whose ratio is at most e**epsilon."""
        width = max(1, round(share * STEPS))
        near = exp(epsilon) * width
        return cls(width, floor64(ratio(near, near + STEPS)))

    @property
    def cells(self) -> int:
        """The number of output cells."""
        return STEPS + self.width

    @property
    def epsilon(self) -> float:
        """The exact log-ratio of a near to a far cell, rounded up."""
        return epsilon_of(self.inside * STEPS, (ONE - self.inside) * self.width)

    def sampler(self, source: Source) -> "WindowSampler":
        """Return the step that answers for one block of users after the other."""
        return WindowSampler(self, source.stage("near"), source.stage("cell"), source.stage("far"))

    def log_likelihood(self, cells: Reports, position: int) -> Floats:
        """Return ln P(cell | position)."""
        near = log_of(self.inside, ONE * self.width)
        far = log_of(ONE - self.inside, ONE * STEPS)
        offset = np.asarray(cells, dtype=np.int64) - position
        return np.where((offset >= 0) & (offset < self.width), near, far)

    @property
    def slope(self) -> float:
        """How much the mean cell grows per position."""
        inside = self.inside / ONE
        return inside - (1 - inside) * self.width / STEPS

    @property
    def intercept(self) -> float:
        """The mean cell at position 0."""
        inside, width, cells = self.inside / ONE, self.width, self.cells
        far = (cells * (cells - 1) - width * (width - 1)) / (2 * STEPS)
        return inside * (width - 1) / 2 + (1 - inside) * far


@dataclass(frozen=True, slots=True)
class WindowSampler:
    """Draws of the cells for one block of positions after the other."""

    window: Window
    near: Source
    cell: Source
    far: Source

    def __call__(self, positions: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return one cell per position."""
        count, width = len(positions), self.window.width
        chosen = self.cell.below(width, count)
        chosen += positions
        others = np.flatnonzero(~self.near.bernoulli(self.window.inside, count))
        # Far cells are counted without the window: from its start on, they lie behind it.
        far = self.far.below(STEPS, others.size)
        far += np.uint32(width) * (far >= positions[others])
        chosen[others] = far
        return chosen


def positions_of(values: NDArray[np.floating], low: float, high: float) -> NDArray[np.uint32]:
    """Return the grid position nearest to each value of [low, high]."""
    # In double precision whatever came in: single would round before the grid does.
    scaled = np.subtract(values, low, dtype=np.float64)
    scaled *= STEPS / (high - low)
    return np.asarray(np.rint(scaled, out=scaled).astype(np.uint32))


def position_of(value: float, low: float, high: float) -> int:
    """Return the grid position of one value."""
    if not low <= value <= high or math.isnan(value):
        raise OutOfDomain(f"Expected reals in [{low:g}, {high:g}]; the value lies outside.")
    return int(positions_of(np.array([value], dtype=np.float64), low, high)[0])
