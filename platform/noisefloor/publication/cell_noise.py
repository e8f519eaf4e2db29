"""Integer noise for the cells of a histogram, with the exact cost of what one record changes.

A record that comes or goes changes one cell by one. A record that becomes another changes two
cells by one each. The cost is computed from the weights that are drawn from, in both cases.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import GaussianNoise, ReleaseLoss, sequential
from noisefloor.checks import check_epsilon, check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import DiscreteLaplace, GaussianTable, continuous_sigma, excess
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import Source

CHANGED_CELLS = {Neighbours.RECORD_ADD_REMOVE: 1, Neighbours.RECORD_SUBSTITUTE: 2}
"""How many cells of a histogram two neighbours differ in, by one each."""

_MOST_COUNT = 1 << 40
_MARGIN = 1e-12
LEAST_DELTA = 1e-9
"""Far above what is added for rounding."""

LARGEST_SIGMA = 1 << 11
"""A wider table takes longer to sum up than somebody waits for an answer."""

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


class CellNoise(Protocol):
    """Noise that is drawn for each cell on its own."""

    @property
    def guarantee(self) -> Guarantee:
        """What is proved of all cells together, from the weights as they are used."""

    @property
    def loss(self) -> ReleaseLoss:
        """What is known of the loss: more than the guarantee where the noise is Gaussian."""

    @property
    def facts(self) -> dict[str, str | float]:
        """The distribution in words and numbers."""

    def add(self, counts: Counts, source: Source) -> Counts:
        """Return the counts with fresh noise, one draw a cell; nothing is clipped."""

    def log_likelihood(self, released: Counts, counts: Counts) -> float:
        """Return ln P(released | counts) of all cells together."""


@dataclass(frozen=True, slots=True)
class LaplaceCells:
    """Discrete Laplace noise in each cell: pure differential privacy.

    Attributes:
        epsilon: What all cells together may cost.
        neighbours: Record added or removed, or record substituted.
    """

    epsilon: float
    neighbours: Neighbours
    mechanism: DiscreteLaplace = field(init=False, repr=False, compare=False)
    guarantee: Guarantee = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cells = changed_cells(self.neighbours)
        mechanism, one = _laplace(self.epsilon / cells, self.neighbours)
        object.__setattr__(self, "mechanism", mechanism)
        # One cell's cost for each cell that changes: their draws are independent.
        object.__setattr__(self, "guarantee", sequential([one] * cells))

    @property
    def loss(self) -> ReleaseLoss:
        """Nothing more is known than the guarantee."""
        return ReleaseLoss.of(self.guarantee)

    @property
    def facts(self) -> dict[str, str | float]:
        """The distribution in words and numbers."""
        noise = self.mechanism.noise
        return {
            "law": "discrete Laplace: P(k) proportional to exp(-rate |k|)",
            "rate": float(noise.rate),
            "standard_deviation": math.sqrt(noise.variance),
        }

    def add(self, counts: Counts, source: Source) -> Counts:
        """Return the counts with fresh noise, one draw a cell; nothing is clipped."""
        return self.mechanism.randomise(counts.reshape(-1), source).reshape(counts.shape)

    def log_likelihood(self, released: Counts, counts: Counts) -> float:
        """Return ln P(released | counts) of all cells together."""
        return float(self.mechanism.noise.log_pmf(released - counts).sum())


@dataclass(frozen=True, slots=True)
class GaussianCells:
    """Discrete Gaussian noise in each cell: (epsilon, delta) differential privacy.

    Attributes:
        epsilon: What all cells together may cost.
        delta: Likewise.
        neighbours: Record added or removed, or record substituted.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    table: GaussianTable = field(init=False, repr=False, compare=False)
    least_epsilon: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not LEAST_DELTA <= check_finite(self.delta, "delta") < 1:
            raise BadParameter("delta", self.delta, f"in [{LEAST_DELTA:g}, 1)")
        cells = changed_cells(self.neighbours)
        table, least = _calibrated(self.epsilon, self.delta, cells)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "least_epsilon", least)

    @property
    def guarantee(self) -> Guarantee:
        """The least epsilon at the given delta, summed over the table that is drawn from."""
        return Guarantee(
            self.least_epsilon, self.neighbours, delta=self.delta, model=TrustModel.CENTRAL
        )

    @property
    def loss(self) -> ReleaseLoss:
        """The noise of the cells that a record changes."""
        cells = changed_cells(self.neighbours)
        event = integer_gaussian(self.table.sigma, math.sqrt(cells), self.neighbours)
        return ReleaseLoss((event,), variation=cells * self.table.variation)

    @property
    def facts(self) -> dict[str, str | float]:
        """The distribution in words and numbers."""
        return {
            "law": "discrete Gaussian: P(k) proportional to exp(-k**2 / (2 sigma**2))",
            "sigma": self.table.sigma,
            "standard_deviation": math.sqrt(self.table.variance),
        }

    def add(self, counts: Counts, source: Source) -> Counts:
        """Return the counts with fresh noise, one draw a cell; nothing is clipped."""
        drawn = source.stage("noise").draw(self.table.distribution, counts.size).astype(np.int64)
        return counts + (drawn - self.table.reach).reshape(counts.shape)

    def log_likelihood(self, released: Counts, counts: Counts) -> float:
        """Return ln P(released | counts) of all cells; beyond the table it is minus infinity."""
        place = (released - counts).reshape(-1) + self.table.reach
        if ((place < 0) | (place >= len(self.table.distribution))).any():
            return -math.inf
        return float(np.log(self.table.chances)[place].sum())


def changed_cells(neighbours: Neighbours) -> int:
    """Return in how many cells neighbours differ, or refuse a relation without a proof."""
    if neighbours not in CHANGED_CELLS:
        rule = f"one of {', '.join(one.value for one in CHANGED_CELLS)}"
        raise BadParameter("neighbours", neighbours.value, rule)
    return CHANGED_CELLS[neighbours]


def integer_gaussian(sigma: float, length: float, neighbours: Neighbours) -> GaussianNoise:
    """Return discrete Gaussian noise as an event, whose Renyi divergences bound its own.

    Args:
        sigma: Of the noise.
        length: By how much a record moves the integers under the relation, in L2.
        neighbours: The relation. Events are over what a record moves that comes or goes, and
            count twice that for one that is substituted.

    Reference: Canonne, Kamath, Steinke 2020, arXiv 2004.00010 (concentrated privacy of integers).
    """
    twice = 2 if neighbours is Neighbours.RECORD_SUBSTITUTE else 1
    # A hair less noise than there is, for the rounding of this line.
    return GaussianNoise(twice * sigma / length * (1 - 1e-12))


def pair_excess(chances: Floats, epsilon: float) -> float:
    """Return the delta at epsilon when two cells change by one each, rounded up.

    It is the sum of max(P(j) P(k) - e**epsilon P(j - 1) P(k + 1), 0) over all pairs (j, k). For
    each j the k that count are those of the largest ratios P(k) / P(k + 1): sums over them are
    made once. Both cells have the same even distribution, so the directions do not matter.
    """
    here, moved = np.append(chances, 0.0), np.append(0.0, chances)
    with np.errstate(divide="ignore"):
        ratio = np.where(here > 0, here / moved, 0.0)
    order = np.argsort(-ratio, kind="stable")
    falling = ratio[order]
    sums = [np.append(0.0, np.cumsum(column[order])) for column in (here, moved)]
    weight = math.exp(epsilon) * moved
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(here > 0, weight / here, math.inf)
    count = np.searchsorted(-falling, -least, side="left")
    parts = here * sums[0][count] - weight * sums[1][count]
    # Running sums of n floats are off by at most n units in the last place.
    margin = _MARGIN + len(here) * 2.0**-50
    return min(1.0, float(np.maximum(parts, 0.0).sum()) + margin)


@lru_cache(maxsize=256)
def _laplace(epsilon: float, neighbours: Neighbours) -> tuple[DiscreteLaplace, Guarantee]:
    """Return the noise of one cell and its cost."""
    made = DiscreteLaplace(epsilon, 0, _MOST_COUNT, sensitivity=1, neighbours=neighbours)
    return made, made.guarantee(neighbours)


def _excess(chances: Floats, epsilon: float, cells: int) -> float:
    return excess(chances, epsilon, 1) if cells == 1 else pair_excess(chances, epsilon)


@lru_cache(maxsize=256)
def _calibrated(epsilon: float, delta: float, cells: int) -> tuple[GaussianTable, float]:
    """Return the table of least sigma (to one part in 10**6) that meets the request.

    With it comes the least epsilon (from above, to 1e-9) at which this very table keeps to delta.
    """

    def meets(sigma: float) -> bool:
        reach = GaussianTable(_bounded(sigma, epsilon)).reach
        chances = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
        return _excess(chances / chances.sum(), epsilon, cells) <= delta

    # Changes of one in each of some cells lie the square root of their number apart.
    high = continuous_sigma(epsilon, delta, math.sqrt(cells))
    while not meets(high):
        high *= 1.1
    low = 0.5 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    table = GaussianTable(high)
    # The table that is drawn from has the last word.
    while _excess(table.chances, epsilon, cells) > delta:
        table = GaussianTable(_bounded(table.sigma * (1 + 1e-6), epsilon))
    return table, _least_epsilon(table, epsilon, delta, cells)


def _bounded(sigma: float, epsilon: float) -> float:
    if sigma > LARGEST_SIGMA:
        raise BadParameter("epsilon", epsilon, f"large enough for sigma <= {LARGEST_SIGMA}")
    return sigma


def _least_epsilon(table: GaussianTable, met: float, delta: float, cells: int) -> float:
    """Return the least epsilon at which the table keeps to delta, given one at which it does."""
    low, high = 0.0, met
    while high - low > 1e-9:
        middle = (low + high) / 2
        is_met = _excess(table.chances, middle, cells) <= delta
        low, high = (low, middle) if is_met else (middle, high)
    return high
