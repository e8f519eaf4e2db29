"""Noisy gradients of all ads, the ads paper's first version: a bit and Laplace noise for each.

A device answers, for every ad, whether it rated it, and adds Laplace noise to its gradient there.
As printed, the noise is scaled to the range of ratings, which does not bound a gradient: a
taste multiplies it, and may change its sign. The corrected forms clip first.

How far apart two users' gradients can lie, if tastes and factors stay in unit balls.

The gradient of an ad is -2 u (r - u.v), r being the rating less the centre, |r| <= h. For two
users with tastes u and -w, and a sign vector sqrt(d) e, the L1 distance is at most the largest
2 sqrt(d) [(r - u.v)(e.u) + (r' + w.v)(e.w)]. It is linear in v, and v best lies along
(e.w) w - (e.u) u, which leaves 2 sqrt(d) [h (e.u + e.w) + |(e.w) w - (e.u) u|]. That grows with
the lengths of u and w; with both at angle a from e, on opposite sides, it is
2 sqrt(d) (2 h cos a + sin 2a), largest where sin a = (sqrt(h h + 8) - h) / 4. For h = 1 it is
3 sqrt(3 d). All ads can have the same v, so that for all of them it is as many times as much.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from noisefloor import mechanisms
from noisefloor.accounting import product_up, sum_up
from noisefloor.ads.training.columns import LIMIT, Rows, gradient_sums
from noisefloor.ads.training.rounds import epsilon_share
from noisefloor.checks import Array, Floats, blocks, check_count, check_finite
from noisefloor.distributions import ONE, in_sixty_digits, log_ratio, ratio, round_up
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source


def gradient_sensitivity(dimension: int, spread: float = 1.0) -> float:
    """Return the largest L1 distance of two users' gradients of one ad.

    Args:
        dimension: Latent factors.
        spread: The largest distance h of a rating from the centre, in [0.5, 1].
    """
    first, second = farthest_gradients(dimension, spread)
    return float(np.abs(first - second).sum())


def farthest_gradients(dimension: int, spread: float = 1.0) -> tuple[Floats, Floats]:
    """Return the two gradients of one ad that lie farthest apart."""
    if dimension == 1:
        # No room for an angle: u = 1 and v = -1, and the other taste is -h / 2.
        return np.array([-2 * (spread + 1)]), np.array([spread**2 / 2])
    sine = (math.sqrt(spread**2 + 8) - spread) / 4
    along = np.full(dimension, 1 / math.sqrt(dimension))
    across = np.zeros(dimension)
    across[:2] = math.sqrt(0.5), -math.sqrt(0.5)
    one = math.sqrt(1 - sine**2) * along + sine * across
    other = math.sqrt(1 - sine**2) * along - sine * across
    # v = -across: both users' predictions are -sine.
    return -2 * (spread + sine) * one, 2 * (spread + sine) * other


_WIDEST = 1 << 25
"""The scale of the noise in grid steps is at most this: a report is clamped once in e**64."""

_ROUNDING = 1e-4
"""Tastes and factors are projected in single precision: they may pass the ball by less."""


class GradientBound(Enum):
    """What bounds a gradient before noise is added."""

    PRINTED = "printed"  # nothing but the unit balls of tastes and factors, if even those
    COORDINATE = "coordinate"  # each number is clipped
    BLOCK = "block"  # the sum of all absolute numbers is clipped


_STEPS = {
    GradientBound.PRINTED: 1 << 12,
    GradientBound.COORDINATE: 1 << 12,
    GradientBound.BLOCK: 1 << 16,
}
"""Grid steps per unit, or per clip; a block's clip is shared among all of its numbers."""


@dataclass(frozen=True, slots=True)
class GradientReport:
    """Answer for every ad whether it is rated, and add Laplace noise to every gradient.

    Guarantee:  pure DP, per round: ``ads`` bits, plus the noise's worst log-ratio over the largest
                L1 distance of two users' gradients on the grid. COORDINATE and BLOCK: within
                (epsilon_bits + epsilon_values) / rounds. PRINTED: the distance is up to
                3 sqrt(3 d) for each ad if tastes and factors lie in unit balls (see
                ``gradient_sensitivity``), where the noise is made for d; not bounded, no
                guarantee.
    Neighbours: user: bits and gradients of all ads become anything else (local model).
    Domain:     rows of ``ads`` times (bit, ``dimension`` reals). COORDINATE and BLOCK clip.
                PRINTED expects gradients -2 u (r - u v) of bounded tastes, refuses larger ones.
    Reference:  ads paper, version 1 of private matrix factorisation (PRINTED); Ghosh,
                Roughgarden, Sundararajan 2009, arXiv 0811.2841 (noise on a grid).

    Attributes:
        ads: Ads in the catalogue.
        dimension: Latent factors.
        rounds: Reports of a user, among which both epsilons are split.
        epsilon_bits: For the bits of all rounds.
        epsilon_values: For the gradients of all rounds.
        form: What bounds a gradient.
        clip: Of COORDINATE and BLOCK.
        bounded: Whether tastes and factors are kept in unit balls; for PRINTED.
        spread: The largest distance of a rating from the centre of the scale; for PRINTED.
        steps: Grid steps per clip, or per 1 for PRINTED.
        response: What answers a bit.
        distribution: The noise, in grid steps.
    """

    ads: int
    dimension: int
    rounds: int
    epsilon_bits: float
    epsilon_values: float
    form: GradientBound
    clip: float = 1.0
    bounded: bool = True
    spread: float = 1.0
    steps: int = field(init=False)
    response: mechanisms.BinaryResponse = field(init=False)
    distribution: mechanisms.TwoSidedGeometric = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(self.ads, "ads", most=1 << 16)
        check_count(self.dimension, "dimension", most=1 << 10)
        check_count(self.rounds, "rounds", most=1 << 16)
        if check_finite(self.clip, "clip") <= 0:
            raise BadParameter("clip", self.clip, "> 0")
        if not 0.5 <= check_finite(self.spread, "spread") <= 1:
            raise BadParameter("spread", self.spread, "in [0.5, 1]")
        share = epsilon_share(self.epsilon_bits, self.rounds * self.ads, "epsilon_bits")
        object.__setattr__(self, "response", mechanisms.BinaryResponse(share))
        object.__setattr__(self, "steps", self._finest())
        object.__setattr__(self, "distribution", mechanisms.TwoSidedGeometric(self._rate()))
        if self.form is not GradientBound.PRINTED and self._value_epsilon() > self._value_share:
            raise BadParameter("rounds", self.rounds, "fewer: 64 bits cannot hold this law")

    @property
    def _value_share(self) -> float:
        return epsilon_share(self.epsilon_values, self.rounds, "epsilon_values")

    def _finest(self) -> int:
        """Return the finest grid, a power of two, on which the noise fits in 32 bits."""
        finest = _STEPS[self.form]
        size = self.dimension * self.ads
        unit = {
            GradientBound.PRINTED: size,
            GradientBound.COORDINATE: 2 * size,
            GradientBound.BLOCK: 2,
        }[self.form]
        room = _WIDEST * self._value_share / unit
        if room < 1:
            raise BadParameter("epsilon_values", self.epsilon_values, "so large that noise fits")
        return int(min(finest, 1 << int(math.log2(room))))

    @in_sixty_digits
    def _rate(self) -> Decimal:
        """Return by how much the distribution's logarithm falls per grid step."""
        if self.form is GradientBound.PRINTED:
            # Printed: Laplace of scale Delta d k m / epsilon, Delta = 1 being the rating scale.
            size = self.dimension * self.rounds * self.ads * self.steps
            return ratio(Decimal(self.epsilon_values), size)
        return ratio(Decimal(mechanisms.aim_below(self._value_share)), self.distance)

    @property
    def distance(self) -> int:
        """The largest L1 distance of two users' gradients, in grid steps."""
        numbers = self.ads * self.dimension
        if self.form is GradientBound.BLOCK:
            return 2 * self.steps
        if self.form is GradientBound.COORDINATE:
            return 2 * self.steps * numbers
        reach = gradient_sensitivity(self.dimension, self.spread) * (1 + _ROUNDING)
        # Rounding to the grid may move each of two numbers by half a step.
        return math.ceil(self.ads * self.steps * reach) + numbers

    @in_sixty_digits
    def _value_epsilon(self) -> float:
        """Return the worst log-ratio of the noisy gradients, from the weights as rounded.

        All steps at the worst ratio; the step from zero may cost more, once for each number.
        """
        step = self.distribution.magnitude.worst_step
        other = log_ratio(step.numerator, step.denominator)
        excess = max(self.distribution.epsilon(1) - other, Decimal(0))
        return round_up(self.distance * other + self.ads * self.dimension * excess)

    @property
    def claimed(self) -> Guarantee:
        """What is said of one round's report."""
        total = sum_up([self.epsilon_bits, self.epsilon_values])
        return Guarantee(total / self.rounds, Neighbours.USER)

    def guarantee(self, neighbours: Neighbours = Neighbours.USER) -> Guarantee:
        """Return what is proved of one round's report."""
        if neighbours is not Neighbours.USER:
            return mechanisms.unsupported(self, neighbours)
        if self.form is GradientBound.PRINTED and not self.bounded:
            reason = "nothing bounds the tastes, so nothing bounds the gradients"
            return Guarantee.none(reason, neighbours)
        bits = product_up(self.response.guarantee(neighbours).epsilon, self.ads)
        return Guarantee(sum_up([bits, self._value_epsilon()]), neighbours)

    def randomise(self, values: object, source: Source) -> Rows:
        """Return, for each user and ad, a bit and the noisy gradient in grid steps."""
        rows = self.check(values)
        respond = self.sampler(source)
        reports = np.empty(rows.shape, dtype=np.int32)
        for some in blocks(len(rows), self.ads * self.dimension):
            reports[some] = respond(rows[some])
        return reports

    def sampler(self, source: Source) -> "GradientSampler":
        """Return the step that answers for one block of users after the other."""
        return GradientSampler(self, source.stage("rated"), self.distribution.sampler(source))

    def check(self, values: object) -> Array:
        """Return rows of bits and gradients of the right size, or refuse them."""
        rows = np.asarray(values)
        shape = (self.ads, 1 + self.dimension)
        if rows.ndim != 3 or rows.shape[1:] != shape or rows.dtype.kind not in "iuf":
            raise OutOfDomain(f"Expected rows of {shape[0]} ads times a bit and {shape[1] - 1}.")
        if not np.isin(rows[:, :, 0], (0, 1)).all() or not np.isfinite(rows).all():
            raise OutOfDomain("Expected a bit and finite numbers for each ad.")
        return rows

    def grid(self, gradients: Array) -> NDArray[np.int64]:
        """Return gradients in grid steps, bounded as the form says; shape (n, ads, dimension)."""
        if self.form is GradientBound.PRINTED:
            return self._printed_grid(np.asarray(gradients, dtype=np.float64))
        scaled = np.divide(gradients, self.clip, dtype=np.float64)
        if self.form is GradientBound.COORDINATE:
            np.clip(scaled, -1.0, 1.0, out=scaled)
            scaled *= self.steps
            return np.rint(scaled, out=scaled).astype(np.int64)
        norm = np.abs(scaled).sum(axis=(1, 2), keepdims=True)
        scaled *= self.steps / np.maximum(norm, 1.0)
        # Towards zero: rounding must not lengthen a block.
        return np.trunc(scaled, out=scaled).astype(np.int64)

    def _printed_grid(self, gradients: NDArray[np.float64]) -> NDArray[np.int64]:
        most = 2 * (self.spread + 1) * math.sqrt(self.dimension) * (1 + _ROUNDING)
        if self.bounded and np.abs(gradients).sum(axis=2).max(initial=0.0) > most:
            raise OutOfDomain("Expected gradients of a taste and of factors in unit balls.")
        # Without bounds a gradient may be as large as it likes; the report is clamped anyway.
        return np.rint(np.clip(gradients * self.steps, -LIMIT, LIMIT)).astype(np.int64)

    def log_likelihood(self, reports: mechanisms.Reports, value: object) -> Floats:
        """Return ln P(report | one user's bits and gradients).

        A report at either end of the range counts as that one value; it was clamped with a
        probability below e**-60.
        """
        row = self.check(np.asarray(value, dtype=np.float64)[None])
        rows = np.asarray(reports, dtype=np.int64)
        logs = np.zeros(len(rows))
        for ad, rated in enumerate(row[0, :, 0]):
            logs += self.response.log_likelihood(rows[:, ad, 0], bool(rated))
        noise = rows[:, :, 1:] - self.grid(row[:, :, 1:])
        return np.asarray(logs + self.distribution.log_pmf(noise).sum(axis=(1, 2)))

    def tally(self, reports: mechanisms.Reports) -> mechanisms.Tally:
        """Return the sums of all integers, then of those whose bit is one."""
        rows = np.asarray(reports, dtype=np.int32)
        sums = np.zeros((2, self.ads, self.dimension), dtype=np.int64)
        for some in blocks(len(rows), self.ads * self.dimension):
            part = rows[some]
            sums += gradient_sums(part[:, :, 0].astype(np.bool_), part[:, :, 1:])
        return sums.reshape(-1)

    @property
    def resolution(self) -> float:
        """What one grid step stands for."""
        return (1.0 if self.form is GradientBound.PRINTED else self.clip) / self.steps

    def estimate(self, tally: mechanisms.Tally, n: int) -> mechanisms.Estimate:
        """Return the mean gradient of users, which is 0 for those who did not rate the ad."""
        count = mechanisms.check_reports_counted(n)
        plain, kept = np.asarray(tally, dtype=np.float64).reshape(2, -1)
        lie = self.response.flip / ONE
        value = self.resolution * (kept - lie * plain) / ((1 - 2 * lie) * count)
        return mechanisms.Estimate(value, np.full(value.shape, self.deviation(count)))

    def deviation(self, n: int) -> float:
        """Return the standard deviation of one number of the mean gradient of n users.

        The closed form for gradients far smaller than the noise and an ad that everybody rated:
        sqrt(q (1 - q) / (1 - 2 q)**2 + 1) times that of the noise, q being the chance of a wrong
        bit. At a small epsilon the bits' part, rounds * ads / epsilon_bits, is all that counts.
        """
        lie = self.response.flip / ONE
        bit = lie * (1 - lie) / (1 - 2 * lie) ** 2
        return math.sqrt((bit + 1) * self.distribution.variance / n) * self.resolution

    def worst_pairs(
        self, neighbours: Neighbours = Neighbours.USER
    ) -> Sequence[tuple[object, object]]:
        """Return two users whose bits all differ and whose gradients lie farthest apart."""
        first, second = (np.zeros((self.ads, 1 + self.dimension)) for _ in range(2))
        first[:, 0] = 1
        if self.form is GradientBound.PRINTED:
            first[:, 1:], second[:, 1:] = farthest_gradients(self.dimension, self.spread)
        elif self.form is GradientBound.COORDINATE:
            first[:, 1:], second[:, 1:] = -self.clip, self.clip
        else:
            first[0, 1], second[0, 1] = -self.clip, self.clip
        return [(first, second)]


@dataclass(frozen=True, slots=True)
class GradientSampler:
    """Noisy bits and gradients for one block of users after the other."""

    report: GradientReport
    flips: Source
    noise: mechanisms.TwoSidedSampler

    def __call__(self, rows: Array) -> Rows:
        """Return the reports of some users, from checked rows of bits and gradients."""
        reports = np.empty(rows.shape, dtype=np.int32)
        flips = self.flips.bernoulli(self.report.response.flip, rows.shape[0] * rows.shape[1])
        reports[:, :, 0] = rows[:, :, 0].astype(np.bool_) ^ flips.reshape(rows.shape[:2])
        noisy = self.report.grid(rows[:, :, 1:])
        noisy += self.noise(noisy.size).reshape(noisy.shape)
        reports[:, :, 1:] = np.clip(noisy, -LIMIT, LIMIT, out=noisy)
        return reports
