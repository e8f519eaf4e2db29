"""One bit for a mean, and one bit about one sampled coordinate of a vector."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor import checks
from noisefloor.distributions import ONE, epsilon_of, exp, in_sixty_digits, ratio
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted, unsupported
from noisefloor.mechanisms.randomised_response import count_symbols
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source, Words

GRID = 1 << 15
"""Values are taken to the nearest of -GRID, ..., GRID, in units of 1 / GRID."""


@dataclass(frozen=True, slots=True)
class OneBitMean:
    """Report one bit whose chance of being one grows linearly with the value.

    Guarantee:  pure DP, epsilon = ln((2**63 + rise) / (2**63 - rise)), rise = GRID * slope.
    Neighbours: item = user: any value to any other; one user holds one value (local model).
    Domain:     reals in [-1, 1], taken to the nearest of 2**16 + 1 grid points; others refused.
    Reference:  Duchi, Jordan, Wainwright 2018, arXiv 1604.02390; message T of the ads paper's V2.

    The chance is linear in the grid point, so the estimate is unbiased on the grid, exactly.

    Attributes:
        epsilon: As requested.
        slope: By how much the 64-bit threshold grows per grid step.
    """

    epsilon: float
    slope: int = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        power = exp(checks.check_epsilon(self.epsilon))
        rise = ratio((power - 1) * (ONE // 2), power + 1)
        object.__setattr__(self, "slope", int(ratio(rise, GRID)))

    @property
    def size(self) -> float:
        """What a report stands for: plus or minus this number is unbiased for the value."""
        return float(ratio(Decimal(ONE // 2), GRID * self.slope))

    def thresholds(self, values: NDArray[np.floating]) -> Words:
        """Return the threshold of each value's bit."""
        point = np.rint(np.multiply(values, GRID, dtype=np.float64)).astype(np.int64)
        # Two's complement: adding 2**63 to a signed product flips its highest bit.
        product: Words = (point * np.int64(self.slope)).view(np.uint64)
        product ^= np.uint64(1 << 63)
        return product

    def randomise(self, values: object, source: Source) -> NDArray[np.bool_]:
        """Return one bit per user."""
        reals = checks.check_reals(values, -1.0, 1.0)
        draws = source.stage("bit")
        reports = np.empty(len(reals), dtype=np.bool_)
        for rows in checks.blocks(len(reals)):
            reports[rows] = draws.bernoulli_each(self.thresholds(reals[rows]))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the thresholds at the ends of the range."""
        if neighbours not in (Neighbours.ITEM, Neighbours.USER):
            return unsupported(self, neighbours)
        rise = GRID * self.slope
        return Guarantee(epsilon_of(ONE // 2 + rise, ONE // 2 - rise), neighbours)

    def log_likelihood(self, reports: Reports, value: float) -> checks.Floats:
        """Return ln P(bit | value)."""
        checked = checks.check_reals(np.array([value], dtype=np.float64), -1.0, 1.0)
        weight = int(self.thresholds(checked)[0])
        one, zero = math.log(weight / ONE), math.log((ONE - weight) / ONE)
        return np.where(np.asarray(reports, dtype=np.bool_), one, zero)

    def tally(self, reports: Reports) -> Tally:
        """Return the number of ones."""
        return np.array([np.count_nonzero(reports)])

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the mean of the users' values."""
        count = check_reports_counted(n)
        value = self.size * (2 * np.asarray(tally) / count - 1)
        return Estimate(value, np.sqrt(np.maximum(self.size**2 - value**2, 0.0) / count))

    def outputs(self) -> Reports:
        """Return both bits."""
        return np.array([False, True])

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return the two ends of the range."""
        return [(-1.0, 1.0)]


@dataclass(frozen=True, slots=True)
class SampledBit:
    """Report one bit about one coordinate, drawn without looking at the data.

    Guarantee:  pure DP, that of one bit: the coordinate does not depend on the vector.
    Neighbours: item = user: any vector to any other; one user holds one vector (local model).
    Domain:     rows of ``dimension`` reals in [-1, 1], taken to the grid; others are refused.
    Reference:  Wang et al. 2019, arXiv 1907.00782; message (j, l, T) of the ads
                paper's V2.

    A report is 2 * coordinate + bit.
    """

    dimension: int
    epsilon: float
    one_bit: OneBitMean = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        checks.check_count(self.dimension, "dimension", most=1 << 30)
        object.__setattr__(self, "one_bit", OneBitMean(self.epsilon))

    def choose(self, count: int, source: Source) -> NDArray[np.uint32]:
        """Return the coordinate each of ``count`` users is to report about."""
        picks, chosen = source.stage("coordinate"), np.empty(count, dtype=np.uint32)
        for rows in checks.blocks(count):
            chosen[rows] = picks.below(self.dimension, rows.stop - rows.start)
        return chosen

    def answer(self, coordinates: object, values: object, source: Source) -> NDArray[np.uint32]:
        """Return the reports of users who look up only the chosen coordinate's value."""
        chosen = checks.check_integers(coordinates, 0, self.dimension - 1)
        reports = chosen.astype(np.uint32) * np.uint32(2)
        reports += self.one_bit.randomise(values, source)
        return reports

    def randomise(self, values: object, source: Source) -> NDArray[np.uint32]:
        """Return one report per user from whole vectors."""
        vectors = checks.check_reals(values, -1.0, 1.0, width=self.dimension)
        reports = self.choose(len(vectors), source)
        draws = source.stage("bit")
        for rows in checks.blocks(len(vectors), self.dimension):
            chosen = reports[rows]
            picked = vectors[rows][np.arange(len(chosen)), chosen]
            chosen *= np.uint32(2)
            chosen += draws.bernoulli_each(self.one_bit.thresholds(picked))
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the bit."""
        return self.one_bit.guarantee(neighbours)

    def log_likelihood(self, reports: Reports, value: Any) -> checks.Floats:
        """Return ln P(coordinate, bit | vector)."""
        vector = np.asarray(value, dtype=np.float64)
        checked = checks.check_reals(vector[None], -1.0, 1.0, width=self.dimension)[0]
        weight = self.one_bit.thresholds(checked).astype(np.float64) / ONE
        codes = np.asarray(reports, dtype=np.int64)
        one = weight[codes >> 1]
        return np.asarray(np.log(np.where(codes & 1, one, 1 - one)) - math.log(self.dimension))

    def tally(self, reports: Reports) -> Tally:
        """Return how often each (coordinate, bit) came."""
        return count_symbols(reports, 2 * self.dimension)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the mean vector of the users."""
        count = check_reports_counted(n)
        pairs = np.asarray(tally).reshape(self.dimension, 2)
        size = self.dimension * self.one_bit.size
        value = size * (pairs[:, 1] - pairs[:, 0]) / count
        variance = size**2 * pairs.sum(axis=1) / count - value**2
        return Estimate(value, np.sqrt(np.maximum(variance, 0.0) / count))

    def outputs(self) -> Reports:
        """Return every (coordinate, bit)."""
        return np.arange(2 * self.dimension)

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return opposite corners."""
        return [(-np.ones(self.dimension), np.ones(self.dimension))]
