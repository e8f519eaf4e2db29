"""Gaussian noise on an integer grid: discrete Gaussian, as a table of 64-bit weights."""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_epsilon, check_finite, check_integers
from noisefloor.distributions import ONE, FiniteDistribution, exp, floor64, in_sixty_digits, ratio
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted, unsupported
from noisefloor.mechanisms.laplace import IntegerRange, add_noise, mean_estimate
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_LARGEST_SIGMA = 1 << 15
_MARGIN = 1e-12
"""Added to a delta computed in floating point: more than its rounding error."""


@dataclass(frozen=True)
class GaussianTable:
    """P(k) = weight / 2**64 with weights near e**(-k**2 / (2 sigma**2)), for |k| <= reach.

    The tail is cut where a weight would fall below one in 2**64. What the cut and the rounding
    cost is part of ``delta``: it is summed over the table that is drawn from.
    """

    sigma: float

    @cached_property
    def reach(self) -> int:
        """The largest noise: beyond it a weight would be less than one."""
        scale = math.log(ONE) - math.log(self.sigma * math.sqrt(2 * math.pi))
        return max(1, math.floor(self.sigma * math.sqrt(2 * scale)))

    @cached_property
    def variance(self) -> float:
        """The variance of the table; for a narrow one it is well below sigma squared.

        Cards state it: a sum of floats would differ in the last digit between processes.
        """
        weights = enumerate(self.distribution.weights, -self.reach)
        return sum(int(weight) * noise**2 for noise, weight in weights) / ONE

    @cached_property
    def distribution(self) -> FiniteDistribution:
        """The weights of -reach, ..., reach; rounding is taken up by zero."""
        half = _decays(Decimal(self.sigma), self.reach)
        whole = 2 * sum(half) - 1
        upper = [max(1, floor64(ratio(share, whole))) for share in half[1:]]
        # Even by construction, so that ``excess`` needs one direction of the shift only.
        return FiniteDistribution.of([*reversed(upper), ONE - 2 * sum(upper), *upper])

    @cached_property
    def chances(self) -> NDArray[np.float64]:
        """The probabilities, in floating point."""
        return np.array(self.distribution.weights, dtype=np.float64) / ONE

    @cached_property
    def variation(self) -> float:
        """A bound of the total variation between the table and the ideal distribution.

        Each weight is off by one at most; beyond the reach a weight would be below one, and they
        fall at least geometrically from there.
        """
        tail = 2 / -math.expm1(-self.reach / self.sigma**2)
        return 2 * (2 * self.reach + 1 + tail) / ONE

    def delta(self, epsilon: float, shift: int) -> float:
        """Return the least delta for which a shift is (epsilon, delta) indistinguishable."""
        return excess(self.chances, epsilon, shift)

    def epsilon(self, delta: float, shift: int) -> float:
        """Return the least epsilon (from above, to 1e-9) for which delta is enough."""
        low, high = 0.0, 1.0
        while self.delta(high, shift) > delta:
            low, high = high, 2 * high
            if high > 256:
                return math.inf
        if self.delta(0.0, shift) <= delta:
            return 0.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle, shift) > delta else (low, middle)
        return high


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Add discrete Gaussian noise to an integer.

    Guarantee:  (epsilon, delta) DP; delta is summed exactly over the table that is drawn from, so
                the cut tail and the rounding are in it. Per release.
    Neighbours: item = user over the whole range (local), or a stated relation and sensitivity.
    Domain:     integers in [low, high]; anything else is refused, reports are not clipped.
    Reference:  Canonne, Kamath, Steinke 2020, arXiv 2004.00010 (discrete Gaussian).
    """

    epsilon: float
    delta: float
    low: int
    high: int
    sensitivity: int = 0
    neighbours: Neighbours = Neighbours.USER
    noise: GaussianTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        epsilon = check_epsilon(self.epsilon)
        delta = check_finite(self.delta, "delta")
        if not 10 * _MARGIN <= delta < 1:
            raise BadParameter("delta", self.delta, f"in [{10 * _MARGIN:g}, 1)")
        span = self.range.sensitivity
        object.__setattr__(self, "sensitivity", span)
        object.__setattr__(self, "noise", calibrated(epsilon, delta, span))

    @property
    def range(self) -> IntegerRange:
        """The declared range."""
        return IntegerRange(self.low, self.high, self.sensitivity, self.neighbours)

    def randomise(self, values: object, source: Source) -> NDArray[np.int64]:
        """Return one noisy integer per user."""
        integers = check_integers(values, self.low, self.high)
        stream, reach, distribution = (
            source.stage("noise"),
            self.noise.reach,
            self.noise.distribution,
        )
        return add_noise(
            integers, lambda count: stream.draw(distribution, count).astype(np.int64) - reach
        )

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the guarantee of the table at the requested delta."""
        declared = self.range
        if not declared.covers(neighbours):
            return unsupported(self, neighbours)
        # Calibration saw that the request is met; the search below stops a hair above its root.
        epsilon = min(self.noise.epsilon(self.delta, self.sensitivity), self.epsilon)
        return Guarantee(epsilon, neighbours, delta=self.delta, model=declared.model)

    def log_likelihood(self, reports: Reports, value: int) -> Floats:
        """Return ln P(report | value); beyond the table's reach it is minus infinity."""
        place = np.asarray(reports, dtype=np.int64) - int(value) + self.noise.reach
        inside = (place >= 0) & (place < len(self.noise.distribution))
        table = np.log(self.noise.chances)
        return np.where(inside, table[np.clip(place, 0, len(table) - 1)], -math.inf)

    def tally(self, reports: Reports) -> Tally:
        """Return the sum of the reports."""
        return np.array([np.sum(reports, dtype=np.int64)])

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Return the mean of the users' integers."""
        return mean_estimate(tally, check_reports_counted(n), self.noise.variance)


def excess(chances: NDArray[np.float64], epsilon: float, shift: int) -> float:
    """Return the sum of max(P(k) - e**epsilon P(k - shift), 0), rounded up."""
    padded = np.concatenate([chances, np.zeros(shift)])
    moved = np.concatenate([np.zeros(shift), chances])
    return min(1.0, float(np.maximum(padded - math.exp(epsilon) * moved, 0.0).sum()) + _MARGIN)


def calibrated(epsilon: float, delta: float, shift: int) -> GaussianTable:
    """Return the table of least sigma (to one part in 10**7) that meets the request."""

    def meets(sigma: float) -> bool:
        reach = np.arange(-GaussianTable(sigma).reach, GaussianTable(sigma).reach + 1)
        chances = np.exp(-((reach / sigma) ** 2) / 2)
        return excess(chances / chances.sum(), epsilon, shift) <= delta

    # The closed form for the continuous distribution is a first guess.
    high = _bounded(continuous_sigma(epsilon, delta, shift))
    while not meets(high):
        high = _bounded(1.1 * high)
    low = 0.5 * high
    while high - low > 1e-8 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    # The table that is drawn from has the last word.
    while GaussianTable(high).delta(epsilon, shift) > delta:
        high *= 1 + 1e-8
    return GaussianTable(high)


@in_sixty_digits
def _decays(sigma: Decimal, reach: int) -> list[Decimal]:
    """Return e**(-k**2 / (2 sigma**2)) for k = 0, ..., reach, by two products each."""
    step = exp(-1 / (2 * sigma**2))
    factor, values = step, [Decimal(1)]
    for _ in range(reach):
        values.append(values[-1] * factor)
        factor = factor * step * step
    return values


def _bounded(sigma: float) -> float:
    if sigma > _LARGEST_SIGMA:
        rule = f"large enough for sigma <= {_LARGEST_SIGMA} grid steps; coarsen the grid"
        raise BadParameter("epsilon", f"(sigma {sigma:.0f})", rule)
    return sigma


def continuous_sigma(epsilon: float, delta: float, shift: float) -> float:
    """Return the sigma of the analytic Gaussian mechanism (Balle, Wang 2018, arXiv 1805.06530)."""
    from scipy.optimize import brentq  # lazy: scipy is slow to import
    from scipy.special import log_ndtr, ndtr

    def surplus(log_sigma: float) -> float:
        mu = math.exp(-log_sigma)
        tail = math.exp(min(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0))
        return float(ndtr(mu / 2 - epsilon / mu)) - tail - delta

    return shift * math.exp(brentq(surplus, math.log(1e-3), math.log(1e13), xtol=1e-10))
