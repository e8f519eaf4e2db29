"""Laplace noise on an integer grid: discrete Laplace, with no floating-point leak.

Geometric noise with an exact distribution: the noise under discrete Laplace and noisy max.

A geometric variable with ratio r = e**-rate has independent digits: the low b bits follow the
truncated distribution r**d, the rest is geometric again with ratio r**(2**b). So it is drawn digit
by digit from small integer tables, with no logarithm of a float anywhere, and its tail is a loop
of draws. Its distribution is a product of known rationals, and so is every ratio of neighbouring
values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_count, check_epsilon, check_integers
from noisefloor.distributions import (
    ONE,
    FiniteDistribution,
    ceil64,
    exp,
    in_sixty_digits,
    log_ratio,
    ratio,
    round_up,
    weights64,
)
from noisefloor.errors import BadParameter, NoisefloorError
from noisefloor.mechanisms.base import Estimate, Reports, Tally, check_reports_counted, unsupported
from noisefloor.privacy import Guarantee, Neighbours, TrustModel
from noisefloor.randomness import Source

_DIGIT_BITS = 8
_MOST_ROUNDS = 4096
"""The tail continues with probability below e**-2: 4096 times in a row do not happen."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Geometric:
    """P(k) proportional to e**(-rate k) for k = 0, 1, 2, ..., up to 64-bit rounding.

    Attributes:
        bits: Bits that the digits cover; beyond, the tail counts in steps of 2**bits.
        digits: The distribution of each digit, lowest first.
        tail: Weight, out of 2**64, with which the tail goes on for one more step.
    """

    rate: Decimal
    bits: int = field(init=False)
    digits: tuple[FiniteDistribution, ...] = field(init=False, repr=False, compare=False)
    tail: int = field(init=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        # Digits cover e**-2 to e**-4 of decay: no weight gets so small that rounding is felt.
        bits = max(0, math.ceil(math.log2(2 / float(self.rate))))
        distributions = []
        for low in range(0, bits, _DIGIT_BITS):
            wide = min(_DIGIT_BITS, bits - low)
            distributions.append(_digit_distribution(self.rate * (1 << low), 1 << wide))
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "digits", tuple(distributions))
        # Rounded up: a smaller weight would raise the ratio at the step into the tail.
        object.__setattr__(self, "tail", ceil64(exp(-self.rate * (1 << bits))))

    def sampler(self, source: Source) -> "GeometricSampler":
        """Return the step that draws one block of users after the other."""
        return GeometricSampler(
            self, source, tuple(source.stage("digit", i) for i in range(len(self.digits)))
        )

    @property
    def first(self) -> Fraction:
        """The exact probability of zero."""
        chance = Fraction(ONE - self.tail, ONE)
        for distribution in self.digits:
            chance *= Fraction(distribution.weights[0], ONE)
        return chance

    @property
    def worst_step(self) -> Fraction:
        """The largest ratio P(k) / P(k + 1), exactly."""
        carry, worst = Fraction(1), Fraction(0)
        for distribution in self.digits:
            steps = zip(distribution.weights[:-1], distribution.weights[1:], strict=True)
            worst = max(worst, carry * max(Fraction(one, two) for one, two in steps))
            carry *= Fraction(distribution.weights[-1], distribution.weights[0])
        return max(worst, carry * Fraction(ONE, self.tail))

    def log_pmf(self, counts: Counts) -> NDArray[np.float64]:
        """Return ln P(k), from the weights as they are used."""
        total = np.full(counts.shape, math.log1p(-self.tail / ONE))
        for place, distribution in enumerate(self.digits):
            table = np.log(np.array(distribution.weights, dtype=np.float64)) - math.log(ONE)
            total += table[(counts >> (place * _DIGIT_BITS)) & (len(distribution) - 1)]
        total += (counts >> self.bits) * (math.log(self.tail) - math.log(ONE))
        return total

    def log_survival(self, counts: Counts) -> NDArray[np.float64]:
        """Return ln P(draw >= k), from the weights as they are used."""
        # A number is at least k if a digit is larger, or equal and the digits below suffice.
        enough = np.ones(counts.shape)
        for place, distribution in enumerate(self.digits):
            chances = np.array(distribution.weights, dtype=np.float64) / ONE
            above = np.append(np.cumsum(chances[:0:-1])[::-1], 0.0)
            digit = (counts >> (place * _DIGIT_BITS)) & (len(distribution) - 1)
            enough = above[digit] + chances[digit] * enough
        on = self.tail / ONE
        total = np.log(on + (1 - on) * enough)
        total += (counts >> self.bits) * math.log(on)
        return total


@dataclass(frozen=True, slots=True)
class GeometricSampler:
    """Draws of a geometric distribution for one block after the other."""

    distribution: Geometric
    source: Source
    digits: tuple[Source, ...]
    tails: list[Source] = field(default_factory=list)

    def __call__(self, count: int) -> Counts:
        """Return ``count`` draws."""
        total = self._tail(count) << self.distribution.bits
        for place, (distribution, digit) in enumerate(
            zip(self.distribution.digits, self.digits, strict=True)
        ):
            drawn = digit.draw(distribution, count).astype(np.int64)
            drawn <<= place * _DIGIT_BITS
            total += drawn
        return total

    def _tail(self, count: int) -> Counts:
        """Return how often the tail continued, from one stream per round of draws."""
        steps = np.zeros(count, dtype=np.int64)
        left = np.flatnonzero(self._round(0).bernoulli(self.distribution.tail, count))
        for number in range(1, _MOST_ROUNDS):
            if not left.size:
                return steps
            steps[left] += 1
            left = left[self._round(number).bernoulli(self.distribution.tail, left.size)]
        raise NoisefloorError("The tail of a geometric draw does not end: the source is broken.")

    def _round(self, number: int) -> Source:
        while number >= len(self.tails):
            self.tails.append(self.source.stage("tail", len(self.tails)))
        return self.tails[number]


@in_sixty_digits
def _digit_distribution(rate: Decimal, size: int) -> FiniteDistribution:
    """Return the truncated geometric distribution over range(size)."""
    step = exp(-rate)
    shares = [Decimal(1)]
    for _ in range(size - 1):
        shares.append(shares[-1] * step)
    whole = sum(shares)
    return FiniteDistribution.of(weights64([ratio(share, whole) for share in shares]))


@dataclass(frozen=True, slots=True)
class TwoSidedGeometric:
    """P(k) proportional to e**(-rate |k|) for all integers k: discrete Laplace noise.

    Zero or a sign is drawn first, then the magnitude less one from a geometric distribution.
    """

    rate: Decimal
    magnitude: Geometric = field(init=False)
    side: FiniteDistribution = field(init=False, repr=False, compare=False)

    @in_sixty_digits
    def __post_init__(self) -> None:
        step = exp(-self.rate)
        # Rounded up: zero gets no more than its share, and the step away from it costs no more.
        half = min(ceil64(ratio(step, 1 + step)), ONE // 2 - 1)
        object.__setattr__(self, "magnitude", Geometric(self.rate))
        object.__setattr__(self, "side", FiniteDistribution.of([half, ONE - 2 * half, half]))

    def sampler(self, source: Source) -> "TwoSidedSampler":
        """Return the step that draws one block of users after the other."""
        return TwoSidedSampler(self, source.stage("side"), self.magnitude.sampler(source))

    @in_sixty_digits
    def epsilon(self, shift: int) -> Decimal:
        """Return the largest log-ratio of the distribution and itself moved by ``shift``.

        All steps on one side of zero, or the step from zero and all but one of them.
        """
        half, zero, _ = self.side.weights
        centre = Fraction(zero, half) / self.magnitude.first
        step = self.magnitude.worst_step
        first = log_ratio(centre.numerator, centre.denominator)
        other = log_ratio(step.numerator, step.denominator)
        return max(shift * other, first + (shift - 1) * other)

    def log_pmf(self, noise: Counts) -> NDArray[np.float64]:
        """Return ln P(noise), from the weights as they are used."""
        half, zero, _ = self.side.weights
        size = np.abs(noise)
        far = math.log(half) - math.log(ONE) + self.magnitude.log_pmf(np.maximum(size - 1, 0))
        return np.where(noise == 0, math.log(zero) - math.log(ONE), far)

    def log_survival(self, noise: Counts) -> NDArray[np.float64]:
        """Return ln P(draw >= noise), from the weights as they are used."""
        # Below 1 the distribution is even: the draw is at least k unless its negative is at least
        # 1 - k.
        size = np.where(noise > 0, noise, 1 - noise)
        far = self.magnitude.log_survival(size - 1)
        far += math.log(self.side.weights[0]) - math.log(ONE)
        with np.errstate(divide="ignore"):
            return np.where(noise > 0, far, np.log1p(-np.exp(far)))

    @property
    def variance(self) -> float:
        """The variance, by the closed form of the distribution before rounding."""
        rate = float(self.rate)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


@dataclass(frozen=True, slots=True)
class TwoSidedSampler:
    """Draws of two-sided geometric noise for one block after the other."""

    distribution: TwoSidedGeometric
    side: Source
    magnitude: GeometricSampler

    def __call__(self, count: int) -> Counts:
        """Return ``count`` draws."""
        sign = self.side.draw(self.distribution.side, count).astype(np.int64)
        sign -= 1
        noise = self.magnitude(count)
        noise += 1
        noise *= sign
        return noise


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
    def model(self) -> TrustModel:
        """Whether the noise is for a curator's result or for a device's value."""
        return TrustModel.CENTRAL if self.neighbours in CENTRAL else TrustModel.LOCAL


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
