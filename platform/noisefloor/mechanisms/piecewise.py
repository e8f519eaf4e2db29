"""The piecewise mechanism for a mean, on an integer grid, and its hybrid with one bit.

A sliding window on an integer grid: what piecewise and square wave have in common.

The output line has ``steps + width`` cells. A value at position L in [0, steps] makes the
``width`` cells from L on likely and all others unlikely; the window fits for every L.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_epsilon, check_reals
from noisefloor.distributions import ONE, epsilon_of, exp, floor64, in_sixty_digits, ratio
from noisefloor.errors import OutOfDomain
from noisefloor.mechanisms import base
from noisefloor.mechanisms.one_bit import OneBitMean
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

STEPS = 1 << 16
"""Positions are 0, ..., STEPS: a power of two, so that a far cell is sixteen plain bits."""


@dataclass(frozen=True, slots=True)
class Window:
    """A near cell has probability inside / width, a far one (1 - inside) / STEPS."""

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

    def log_likelihood(self, cells: base.Reports, position: int) -> Floats:
        """Return ln P(cell | position)."""
        near = base.log_of(self.inside, ONE * self.width)
        far = base.log_of(ONE - self.inside, ONE * STEPS)
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


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Report a cell of a line, mostly from a window around the value.

    Guarantee:  pure DP, epsilon = the exact log-ratio of a near to a far cell, per release.
    Neighbours: item = user: any value to any other; one user holds one value (local model).
    Domain:     reals in [-1, 1], taken to the nearest of 2**16 + 1 grid points; others refused.
    Reference:  Wang et al. 2019, arXiv 1907.00782 (piecewise mechanism).
    """

    epsilon: float
    window: Window = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        epsilon = check_epsilon(self.epsilon)
        # The paper's window is (H - 1) of a line of 2 H, that is one part in e**(eps/2) + 1.
        object.__setattr__(self, "window", Window.of(epsilon, exp(-Decimal(epsilon) / 2)))

    def randomise(self, values: object, source: Source) -> NDArray[np.uint32]:
        """Return one cell per user."""
        reals = check_reals(values, -1.0, 1.0)
        draw = self.window.sampler(source)
        reports = np.empty(len(reals), dtype=np.uint32)
        for rows in blocks(len(reals)):
            reports[rows] = draw(positions_of(reals[rows], -1.0, 1.0))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the window as rounded."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return base.unsupported(self, neighbours)
        return Guarantee(self.window.epsilon, neighbours)

    def log_likelihood(self, reports: base.Reports, value: float) -> Floats:
        """Return ln P(cell | value)."""
        return self.window.log_likelihood(reports, position_of(value, -1.0, 1.0))

    def debias(self, reports: base.Reports) -> Floats:
        """Return one unbiased number per report: its mean is the value on the grid."""
        position = np.asarray(reports, dtype=np.float64) - self.window.intercept
        return position / self.window.slope * (2 / STEPS) - 1

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return the sum of the cells and of their squares."""
        return sums(reports)

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the mean of the users' values."""
        count = base.check_reports_counted(n)
        cells = int(tally[0]) / count
        spread = math.sqrt(max(int(tally[1]) / count - cells**2, 0.0) / count)
        unit = 2 / STEPS / self.window.slope
        value = (cells - self.window.intercept) * unit - 1
        return base.Estimate(np.array([value]), np.array([spread * abs(unit)]))

    def outputs(self) -> base.Reports:
        """Return every cell."""
        return np.arange(self.window.cells)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the two ends of the range."""
        return [(-1.0, 1.0)]


def sums(reports: base.Reports) -> base.Tally:
    """Return the sum and the sum of squares, exactly, in blocks."""
    total = np.zeros(2, dtype=np.int64)
    for rows in blocks(len(reports)):
        some = np.asarray(reports[rows], dtype=np.int64)
        total += (some.sum(), some @ some)
    return total


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Toss a public coin: piecewise or one bit, each with the whole epsilon.

    Guarantee:  pure DP, the larger of the two: the draw does not depend on the value.
    Neighbours: item = user: any value to any other; one user holds one value (local model).
    Domain:     reals in [-1, 1], taken to the grids of the two; others are refused.
    Reference:  Wang et al. 2019, arXiv 1907.00782 (hybrid mechanism).

    Reports are the cells of the piecewise mechanism, then two more for the bits 0 and 1.
    """

    epsilon: float
    piecewise: Piecewise = field(init=False)
    one_bit: OneBitMean = field(init=False)
    share: int = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        epsilon = check_epsilon(self.epsilon)
        object.__setattr__(self, "piecewise", Piecewise(epsilon))
        object.__setattr__(self, "one_bit", OneBitMean(epsilon))
        # Below about 0.61 the piecewise mechanism is never the better one.
        exact = 1 - exp(-Decimal(epsilon) / 2) if epsilon > 0.61 else Decimal(0)
        object.__setattr__(self, "share", floor64(exact))

    def randomise(self, values: object, source: Source) -> NDArray[np.uint32]:
        """Return one cell or bit per user."""
        reals = check_reals(values, -1.0, 1.0)
        draws, cells = source.stage("which"), self.piecewise.window.sampler(source)
        bits = source.stage("bit")
        reports = np.empty(len(reals), dtype=np.uint32)
        for rows in blocks(len(reals)):
            some, out = reals[rows], reports[rows]
            first = draws.bernoulli(self.share, len(some))
            out[first] = cells(positions_of(some[first], -1.0, 1.0))
            bit = bits.bernoulli_each(self.one_bit.thresholds(some[~first]))
            out[~first] = np.uint32(self.piecewise.window.cells) + bit
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the larger of the two guarantees."""
        parts = [self.one_bit.guarantee(neighbours)]
        if self.share:
            parts.append(self.piecewise.guarantee(neighbours))
        return max(parts, key=lambda part: part.epsilon)

    def log_likelihood(self, reports: base.Reports, value: float) -> Floats:
        """Return ln P(cell or bit | value)."""
        first = self.share / ONE
        cells = np.asarray(reports, dtype=np.int64)
        is_bit = cells >= self.piecewise.window.cells
        bit = self.one_bit.log_likelihood(cells - self.piecewise.window.cells == 1, value)
        cell = self.piecewise.log_likelihood(cells, value)
        log_first = math.log(first) if first else -math.inf
        return np.where(is_bit, math.log1p(-first) + bit, log_first + cell)

    def tally(self, reports: base.Reports) -> base.Tally:
        """Return sums and squares of the cells, and the counts: cells, bits 0, bits 1."""
        total = np.zeros(5, dtype=np.int64)
        for rows in blocks(len(reports)):
            some = np.asarray(reports[rows], dtype=np.int64)
            bits = some - self.piecewise.window.cells
            cells = some[bits < 0]
            total[:2] += sums(cells)
            zeros, ones = np.count_nonzero(bits == 0), np.count_nonzero(bits == 1)
            total[2:] += (len(cells), int(zeros), int(ones))
        return total

    def estimate(self, tally: base.Tally, n: int) -> base.Estimate:
        """Return the mean of the users' values, over cells and bits together."""
        count = base.check_reports_counted(n)
        squares, total = 0.0, 0.0
        if tally[2]:
            part = self.piecewise.estimate(tally[:2], int(tally[2]))
            mean = float(part.value[0])
            total += mean * int(tally[2])
            squares += (float(part.standard_error[0]) ** 2 * int(tally[2]) + mean**2) * int(
                tally[2]
            )
        total += self.one_bit.size * int(tally[4] - tally[3])
        squares += self.one_bit.size**2 * int(tally[4] + tally[3])
        value = total / count
        spread = math.sqrt(max(squares / count - value**2, 0.0) / count)
        return base.Estimate(np.array([value]), np.array([spread]))

    def outputs(self) -> base.Reports:
        """Return every cell and both bits."""
        return np.arange(0 if self.share else self.piecewise.window.cells, self._reports)

    @property
    def _reports(self) -> int:
        return self.piecewise.window.cells + 2

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the two ends of the range."""
        return [(-1.0, 1.0)]
