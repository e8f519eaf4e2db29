"""Report-noisy-max: add noise to every score, name the largest."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_epsilon
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import unsupported
from noisefloor.mechanisms.laplace import Geometric, TwoSidedGeometric
from noisefloor.mechanisms.scores import ScoreGrid, SelectionMechanism, add_margin, aim_below
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_MOST_POINTS = 1 << 23
"""The distribution of the noise is summed over no more points than this."""

LogPmf = Callable[[NDArray[np.int64]], Floats]


@dataclass(frozen=True, slots=True)
class NoisyMax(SelectionMechanism):
    """Add noise to every score on the grid and name the largest; ties go to the first.

    Guarantee:  pure DP, epsilon = the exact worst log-ratio over all rows, summed over the
                distribution of the noise as used; the noise is calibrated to it. Per request:
                requests add up.
    Neighbours: user: any row of scores to any other (local model).
    Domain:     rows of ``size`` reals in [low, high], taken to the grid; others are refused.
    Reference:  Dwork and Roth 2014 (Laplace); Ding et al. 2021, arXiv 2105.07260
                (exponential noise). The local worst pair is our own derivation, see Scores.

    ``NoisyMax.laplace`` and ``NoisyMax.exponential`` calibrate the noise; the constructor takes
    the noise as it is, and the guarantee says what that is worth.
    """

    scores: ScoreGrid
    noise: Geometric | TwoSidedGeometric
    worst: float = field(init=False)

    def __post_init__(self) -> None:
        rate, steps = float(self.noise.rate), self.scores.steps
        distribution = _NoiseDistribution.of(
            self._log_pmf, rate, steps, two_sided=self._is_two_sided
        )
        places = range(self.scores.size)
        object.__setattr__(
            self, "worst", add_margin(distribution.epsilon(self.scores.size, places))
        )

    @classmethod
    def laplace(
        cls, size: int, epsilon: float, *, low: float = 0.0, high: float = 1.0, steps: int = 64
    ) -> "NoisyMax":
        """Add Laplace noise of the least scale that keeps epsilon."""
        return _calibrated(
            ScoreGrid(size, low, high, steps), check_epsilon(epsilon), TwoSidedGeometric
        )

    @classmethod
    def exponential(
        cls, size: int, epsilon: float, *, low: float = 0.0, high: float = 1.0, steps: int = 64
    ) -> "NoisyMax":
        """Add exponential noise of the least scale that keeps epsilon."""
        return _calibrated(ScoreGrid(size, low, high, steps), check_epsilon(epsilon), Geometric)

    @property
    def _is_two_sided(self) -> bool:
        return isinstance(self.noise, TwoSidedGeometric)

    def _log_pmf(self, noise: NDArray[np.int64]) -> Floats:
        if self._is_two_sided:
            return self.noise.log_pmf(noise)
        return np.where(noise >= 0, self.noise.log_pmf(np.maximum(noise, 0)), -math.inf)

    def randomise(self, values: object, source: Source) -> NDArray[np.unsignedinteger]:
        """Return the index of the candidate each user asks for."""
        rows = self.scores.check(values)
        sample = self.noise.sampler(source)
        reports = np.empty(len(rows), dtype=np.min_scalar_type(self.scores.size - 1))
        for some in blocks(len(rows), self.scores.size):
            noisy = self.scores.grid(rows[some])
            noisy += sample(noisy.size).reshape(noisy.shape)
            reports[some] = noisy.argmax(axis=1)
        return reports

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return the exact worst case over all pairs of rows."""
        if neighbours is not Neighbours.USER:
            return unsupported(self, neighbours)
        return Guarantee(self.worst, neighbours)

    def chances(self, value: object) -> Floats:
        """Return the chance of each candidate, summed over the largest noisy score."""
        row = self.scores.row(value)
        distribution = _NoiseDistribution.of(
            self._log_pmf, float(self.noise.rate), self.scores.steps, two_sided=self._is_two_sided
        )
        return distribution.chances(row)


@dataclass(frozen=True, slots=True)
class _NoiseDistribution:
    """The noise distribution as arrays, wide enough that what lies beyond does not count.

    Attributes:
        steps: The largest score on the grid.
        log_pmf: ln P(noise = k) for k = -reach - steps, ..., reach + steps.
        log_cdf: ln P(noise <= k) for the same k.
    """

    steps: int
    log_pmf: Floats
    log_cdf: Floats

    @classmethod
    def of(
        cls, log_pmf: LogPmf, rate: float, steps: int, *, two_sided: bool
    ) -> "_NoiseDistribution":
        """Tabulate the distribution out to where it has decayed by e**-(30 + 4 * steps * rate)."""
        if (30 + 4 * steps * rate) / rate > _MOST_POINTS:
            least = 30 * 2 * steps / _MOST_POINTS
            raise BadParameter("epsilon", f"(rate {rate:.2g})", f">= {least:.2g}, or fewer steps")
        reach = math.ceil((30 + 4 * steps * rate) / rate)
        # One more below the least noise: those before a tie have to stay one behind.
        noise = np.arange(-(reach if two_sided else 1) - steps, reach + steps + 1)
        table = log_pmf(noise)
        chance = np.exp(table)
        below, above = np.cumsum(chance), np.cumsum(chance[::-1])[::-1]
        # Near one the cdf is computed from the mass above it, near zero from the mass below.
        rest = np.append(above[1:], 0.0)
        with np.errstate(divide="ignore"):
            log_cdf = np.where(below < 0.5, np.log(below), np.log1p(-np.minimum(rest, 0.75)))
        return cls(steps, table, log_cdf)

    def epsilon(self, size: int, places: Sequence[int]) -> float:
        """Return the worst log-ratio of the corner rows over the given places."""
        return max(
            self._corner(size, place, self.steps) - self._corner(size, place, -self.steps)
            for place in places
        )

    def _corner(self, size: int, place: int, lead: int) -> float:
        """Return ln P(place is picked) when its score leads all others by ``lead``."""
        # Own noise k has to pass the others' noise: k + lead, and one less for those before.
        own = slice(self.steps + 1, len(self.log_pmf) - self.steps)
        others = self.log_cdf[self.steps + 1 + lead : len(self.log_cdf) - self.steps + lead]
        before = self.log_cdf[self.steps + lead : len(self.log_cdf) - self.steps - 1 + lead]
        total = self.log_pmf[own].copy()
        if size - 1 - place:
            total += (size - 1 - place) * others
        if place:
            total += place * before
        return _log_sum(total)

    def chances(self, row: NDArray[np.int64]) -> Floats:
        """Return the chance of each candidate for any row of grid scores."""
        places = np.arange(self.steps + 1, len(self.log_pmf) - self.steps)
        result = np.empty(len(row))
        for place, score in enumerate(row):
            total = self.log_pmf[places].copy()
            for other, rival in enumerate(row):
                if other != place:
                    total += self.log_cdf[places + (score - rival) - (other < place)]
            result[place] = math.exp(_log_sum(total))
        return result


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _calibrated(
    scores: ScoreGrid, epsilon: float, distribution: type[Geometric] | type[TwoSidedGeometric]
) -> NoisyMax:
    """Return the mechanism whose exact worst case is the requested epsilon, from below."""
    from scipy.optimize import brentq  # lazy: scipy is slow to import

    steps, two_sided = scores.steps, distribution is TwoSidedGeometric
    target = aim_below(epsilon)
    places = (0, scores.size - 1)

    def surplus(rate: float) -> float:
        ideal = _NoiseDistribution.of(
            _ideal(rate, two_sided=two_sided), rate, steps, two_sided=two_sided
        )
        return ideal.epsilon(scores.size, places) - target

    # At this rate the worst case cannot pass epsilon; at thrice it does, even for two candidates.
    least = epsilon / (2 * steps)
    rate = brentq(surplus, 0.99 * least, 3 * least, xtol=1e-13 * least, rtol=1e-12)
    mechanism = NoisyMax(scores, distribution(Decimal(rate)))
    while mechanism.worst > epsilon:
        rate *= 1 - 1e-7
        mechanism = NoisyMax(scores, distribution(Decimal(rate)))
    return mechanism


def _ideal(rate: float, *, two_sided: bool) -> LogPmf:
    """Return the distribution before rounding, for the search."""
    decay = -math.expm1(-rate)
    constant = math.log(decay / (1 + math.exp(-rate)) if two_sided else decay)

    def log_pmf(noise: NDArray[np.int64]) -> Floats:
        logs = constant - rate * np.abs(noise)
        return logs if two_sided else np.where(noise >= 0, logs, -math.inf)

    return log_pmf
