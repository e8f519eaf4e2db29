"""Laplace noise on an integer grid: discrete Laplace, with no floating-point leak."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_integers
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted, unsupported
from noisefloor.mechanisms.geometric import TwoSidedGeometric
from noisefloor.mechanisms.thresholds import in_sixty_digits, ratio, round_up
from noisefloor.privacy import Guarantee, Model, Neighbours
from noisefloor.randomness import Source

GRID_LIMIT = 1 << 40
"""Grid integers stay below this, so that sums of many million reports fit in 64 bits."""

CENTRAL = (Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE, Neighbours.DOCUMENT)

_SLACK = 2e-7
"""The noise is calibrated to so much less than the request, so that rounding stays within it."""


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """The public range of grid integers, and how far neighbours may lie apart in it.

    Attributes:
        low: The least value.
        high: The greatest value.
        sensitivity: The largest difference between neighbours; 0 stands for the whole range.
        neighbours: The relation that the sensitivity is stated for.
    """

    low: int
    high: int
    sensitivity: int = 0
    neighbours: Neighbours = Neighbours.USER

    @in_sixty_digits
    def __post_init__(self) -> None:
        check_count(self.low, "low", least=-GRID_LIMIT, most=GRID_LIMIT)
        check_count(self.high, "high", least=self.low + 1, most=GRID_LIMIT)
        span = self.high - self.low
        object.__setattr__(self, "sensitivity", self.sensitivity or span)
        check_count(self.sensitivity, "sensitivity", least=1, most=span)
        if self.neighbours is Neighbours.USER and self.sensitivity != span:
            raise BadParameter(
                "sensitivity", self.sensitivity, "to be the whole range for user neighbours"
            )

    def covers(self, neighbours: Neighbours) -> bool:
        """Whether the sensitivity speaks of the relation; one value is a user's only item."""
        if self.neighbours is Neighbours.USER:
            return neighbours in (Neighbours.USER, Neighbours.ITEM)
        return neighbours is self.neighbours

    @property
    def model(self) -> Model:
        """Whether the noise is for a curator's result or for a device's value."""
        return Model.CENTRAL if self.neighbours in CENTRAL else Model.LOCAL


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Add two-sided geometric noise to an integer.

    Guarantee:  pure DP, epsilon = the exact worst log-ratio under a shift by the sensitivity, per
                release. Every integer is possible under every input: nothing leaks through floats.
    Neighbours: item = user over the whole range (local), or a stated relation and sensitivity.
    Domain:     integers in [low, high]; anything else is refused, reports are not clipped.
    Reference:  Ghosh, Roughgarden, Sundararajan 2009, arXiv 0811.2841 (geometric mechanism).
    """

    epsilon: float
    low: int
    high: int
    sensitivity: int = 0
    neighbours: Neighbours = Neighbours.USER
    noise: TwoSidedGeometric = field(init=False, repr=False, compare=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        epsilon = check_epsilon(self.epsilon)
        span = self.range.sensitivity
        object.__setattr__(self, "sensitivity", span)
        rate = ratio(Decimal(epsilon - min(_SLACK, 1e-5 * epsilon)), span)
        object.__setattr__(self, "noise", TwoSidedGeometric(rate))
        if self.noise.epsilon(span) > Decimal(epsilon):
            raise BadParameter("high", self.high, "closer to low: 64 bits cannot hold this law")

    @property
    def range(self) -> IntegerRange:
        """The declared range."""
        return IntegerRange(self.low, self.high, self.sensitivity, self.neighbours)

    def randomise(self, values: object, source: Source) -> NDArray[np.int64]:
        """Return one noisy integer per user."""
        return add_noise(check_integers(values, self.low, self.high), self.noise.sampler(source))

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the weights as rounded."""
        declared = self.range
        if not declared.covers(neighbours):
            return unsupported(self, neighbours)
        epsilon = round_up(self.noise.epsilon(self.sensitivity))
        return Guarantee(epsilon, neighbours, model=declared.model)

    def log_likelihood(self, reports: Reports, value: int) -> Floats:
        """Return ln P(report | value)."""
        return self.noise.log_pmf(np.asarray(reports, dtype=np.int64) - int(value))

    def tally(self, reports: Reports) -> Tally:
        """Return the sum of the reports."""
        return np.array([np.sum(reports, dtype=np.int64)])

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the mean of the users' integers."""
        return mean_estimate(tally, check_reports_counted(n), self.noise.variance)


def add_noise(
    values: NDArray[np.integer], sample: Callable[[int], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return the values with noise added, block by block."""
    reports = np.empty(values.shape, dtype=np.int64)
    for rows in blocks(len(values)):
        some = values[rows].astype(np.int64)
        np.add(some, sample(len(some)), out=reports[rows])
    return reports


def mean_estimate(tally: Tally, n: int, variance: float) -> Estimate:
    """Return the mean from a sum, with the standard error of the noise."""
    return Estimate(np.asarray(tally) / n, np.full(1, np.sqrt(variance / n)))
