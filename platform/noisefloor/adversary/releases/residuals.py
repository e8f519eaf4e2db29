"""Whether the noise of a release follows its declared distribution: exact tests of residuals.

A residual is what was released less a noiseless recomputation. Over the declared scale it is a
draw of a known distribution, whatever the records are, so every test here has its stated level.
Integer noise is first made continuous by a random point within its step (the randomised
probability integral transform), which gives normal or Laplace numbers exactly.

Sees:      the numbers before and after the noise, which only a simulation hands out.
Knows:     the declared distribution.
Guesses:   nothing: it rejects, or it does not; ``quarter_less`` says what it would have rejected.
Reference: Rosenblatt 1952, doi 10.1214/aoms/1177729394 (the transform).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source

LEVEL = 1e-9
"""The probability of rejecting noise that is as declared, for all tests of one fit together."""

PLANTED = 0.75
"""The planted fault: noise of three quarters of the declared scale."""

_TAILS = (1 / 2, 1 / 8, 1 / 64)
"""Sizes of residuals are counted beyond these quantiles."""

Floats = NDArray[np.float64]


class NoiseShape(Enum):
    """The two distributions that residuals are compared with."""

    GAUSSIAN = "Gaussian"
    LAPLACE = "Laplace"


@dataclass(frozen=True, slots=True)
class DeclaredNoise:
    """A distribution of noise as a plan declares it.

    Attributes:
        shape: Gaussian or Laplace.
        scale: The standard deviation, or the scale of Laplace noise.
        slack: By how much the scale may be larger, relatively: margins for the rounding of floats.
        is_integer: Whether the noise is the discrete distribution of this scale on the integers.
    """

    shape: NoiseShape
    scale: float
    slack: float = 1e-6
    is_integer: bool = False

    def __post_init__(self) -> None:
        if check_finite(self.scale, "scale") <= 0:
            raise BadParameter("scale", self.scale, "> 0")
        if not 0 <= check_finite(self.slack, "slack") < 1:
            raise BadParameter("slack", self.slack, "in [0, 1)")

    def standard(self, noise: Floats, source: Source) -> Floats:
        """Return numbers that are standard normal or Laplace if the noise is as declared."""
        if not self.is_integer:
            return np.asarray(noise / self.scale)
        sizes = np.abs(np.rint(noise)).astype(np.int64)
        words = source.words(noise.size).reshape(noise.shape)
        within = _uniform(words)
        beyond, at = self._tails(sizes)
        tail = np.maximum(beyond + within * at, 1e-300)
        # Zero has no side of its own: the lowest bit, which ``within`` does not use, gives one.
        side = np.where((words & np.uint64(1)).astype(np.bool_), 1.0, -1.0)
        return np.asarray(np.where(noise == 0, side, np.sign(noise)) * self._size_at(tail))

    def planted(self, count: int, source: Source) -> Floats:
        """Draw integer noise of three quarters of the scale."""
        words = source.words(count)
        tail = _uniform(words)
        less = replace(self, scale=PLANTED * self.scale)
        if self.shape is NoiseShape.LAPLACE:
            step = -1 / less.scale
            sizes = np.floor(np.log(tail * (1 + math.exp(step)) / 2) / step)
        else:
            beyond = less._gaussian_tails()[0]
            sizes = np.searchsorted(-beyond, -tail, side="right").astype(np.float64)
        signs = np.where((words & np.uint64(1)).astype(np.bool_), 1.0, -1.0)
        return np.asarray(signs * np.maximum(sizes, 0.0))

    def _size_at(self, tail: Floats) -> Floats:
        """Return the size that a standard number passes with this probability."""
        from scipy.special import ndtri  # lazy: scipy is slow to import

        if self.shape is NoiseShape.LAPLACE:
            return np.asarray(-np.log(tail))
        return np.asarray(-ndtri(tail / 2))

    def _tails(self, sizes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the probabilities of a larger size, and of this one, of integer noise."""
        if self.shape is NoiseShape.LAPLACE:
            step = -1 / self.scale
            whole = 1 + math.exp(step)
            beyond = 2 * np.exp(step * (sizes + 1.0)) / whole
            at = 2 * np.exp(step * sizes) * -math.expm1(step) / whole
            return beyond, np.where(sizes == 0, at / 2, at)
        beyond, at = self._gaussian_tails()
        place = np.minimum(sizes, len(at) - 1)
        return beyond[place], at[place]

    def _gaussian_tails(self) -> tuple[Floats, Floats]:
        reach = math.ceil(12 * self.scale) + 2  # e**-72 is left out
        weights = np.exp(-((np.arange(reach) / self.scale) ** 2) / 2)
        weights[1:] *= 2
        weights /= weights.sum()
        above = np.append(weights[:0:-1].cumsum()[::-1], 0.0)
        return above, weights


@dataclass(frozen=True, slots=True, eq=False)
class ResidualGroup:
    """Residuals of one kind: of one part of a release, a row for each time that noise was drawn.

    Attributes:
        name: Of the part, for people.
        declared: The distribution.
        rows: Standard numbers, if the noise is as declared.
        planted: The same for noise that is a quarter too small.
    """

    name: str
    declared: DeclaredNoise
    rows: Sequence[Floats]
    planted: Sequence[Floats]

    @classmethod
    def of(
        cls, name: str, declared: DeclaredNoise, noise: Sequence[Floats], source: Source
    ) -> "ResidualGroup":
        """Bring what was added to numbers onto the standard scale.

        Args:
            name: Of the part.
            declared: The distribution.
            noise: What was released less its noiseless recomputation, a vector for each draw.
            source: Of the random points within the steps of integers.
        """
        points, other = source.stage("points"), source.stage("planted")
        rows = [declared.standard(np.asarray(one, dtype=np.float64), points) for one in noise]
        if not declared.is_integer:
            return cls(name, declared, rows, [PLANTED * one for one in rows])
        less = [declared.standard(declared.planted(len(one), other), other) for one in noise]
        return cls(name, declared, rows, less)

    @property
    def draws(self) -> int:
        """How many numbers there are."""
        return sum(len(row) for row in self.rows)

    def quarter_less(self) -> "ResidualGroup":
        """Return the planted fault as a group of its own."""
        return replace(self, rows=self.planted)

    @classmethod
    def pooled(cls, name: str, releases: Sequence[Sequence["ResidualGroup"]]) -> "ResidualGroup":
        """Join groups of one shape over their scales: a row for each release, of all its groups.

        A release that has its noise from another one, or all of whose parts have too little, shows
        only here.
        """
        every = [group for release in releases for group in release]
        slack = max(group.declared.slack for group in every)
        return cls(
            name,
            DeclaredNoise(every[0].declared.shape, 1.0, slack),
            [np.concatenate([row for group in some for row in group.rows]) for some in releases],
            [
                np.concatenate([row for group in some for row in group.planted])
                for some in releases
            ],
        )


@dataclass(frozen=True, slots=True)
class ResidualTest:
    """One test of a group.

    Attributes:
        name: What was compared.
        p_value: The probability of so much or more, two-sided.
        declared: The figure that is expected.
        found: The figure that was found.
    """

    name: str
    p_value: float
    declared: float
    found: float

    @property
    def text(self) -> str:
        """The figures in words."""
        return f"{self.name} is {self.found:.4g}, declared {self.declared:.4g}"


@dataclass(frozen=True, slots=True)
class ResidualFit:
    """What the tests of some groups found.

    Attributes:
        draws: Residuals that were tested.
        tests: How many tests.
        p_value: The smallest of them, times their number.
        worst: The test it comes from; None if nothing was tested.
    """

    draws: int
    tests: int
    p_value: float
    worst: ResidualTest | None

    @property
    def rejects(self) -> bool:
        """Whether the noise is not as declared, but for a probability of ``LEVEL``."""
        return self.p_value <= LEVEL

    @property
    def text(self) -> str:
        """The worst test in words."""
        if self.worst is None:
            return "nothing was tested"
        return (
            f"{self.worst.text} over {self.draws:,} draws (p = {self.p_value:.2g} of {self.tests} "
            "tests)"
        )


def fit_residuals(
    groups: Sequence[ResidualGroup],
    more: Sequence[ResidualTest] = (),
    pooled: Sequence[ResidualGroup] = (),
) -> ResidualFit:
    """Test all groups together; the p-value is for all tests at once.

    Args:
        groups: The residuals.
        more: Tests of something else, counted in.
        pooled: The same residuals in other groups, tested too.
    """
    tests = [*more, *(test for group in (*groups, *pooled) for test in group_tests(group))]
    worst = min(tests, key=lambda test: test.p_value, default=None)
    smallest = 1.0 if worst is None else min(1.0, len(tests) * worst.p_value)
    return ResidualFit(sum(group.draws for group in groups), len(tests), smallest, worst)


def finds_quarter_less(groups: Sequence[ResidualGroup]) -> bool:
    """Tell whether the same tests, on as many draws, reject noise that is a quarter too small."""
    return fit_residuals([group.quarter_less() for group in groups]).rejects


def rate_test(name: str, hits: int, trials: int, rate: float) -> ResidualTest:
    """Test a count of independent events of one probability, such as of sampled records."""
    return ResidualTest(name, _binomial(hits, trials, rate, rate), rate, hits / max(1, trials))


def group_tests(group: ResidualGroup) -> list[ResidualTest]:
    """Return all tests of a group; a group without numbers has none."""
    rows = [row for row in group.rows if len(row)]
    if not rows:
        return []
    every = np.concatenate(rows)
    if not np.isfinite(every).all():
        broken = int(np.count_nonzero(~np.isfinite(every)))
        return [ResidualTest(f"{group.name}: residuals that are no numbers", 0.0, 0, broken)]
    tests = [_spread(group, every), _centre(group, every)]
    tests += [_beyond(group, every, tail) for tail in _TAILS]
    for name, first, second in _pairs(rows):
        tests.append(_product(group, name, first, second))
    return tests


def _spread(group: ResidualGroup, every: Floats) -> ResidualTest:
    """Sum of squares: chi-square; sum of sizes: Gamma."""
    from scipy.special import gammainc, gammaincc  # lazy: scipy is slow to import

    most, count = 1 + group.declared.slack, len(every)
    if group.declared.shape is NoiseShape.LAPLACE:
        total = float(np.abs(every).sum())
        tails = gammainc(count, total), gammaincc(count, total / most)
        found = total / count
    else:
        total = float(every @ every)
        tails = gammainc(count / 2, total / 2), gammaincc(count / 2, total / 2 / most**2)
        found = math.sqrt(total / count)
    scale = group.declared.scale
    name = f"{group.name}: the scale of the noise"
    return ResidualTest(name, min(1.0, 2 * float(min(tails))), scale, scale * found)


def _centre(group: ResidualGroup, every: Floats) -> ResidualTest:
    count = len(every)
    if group.declared.shape is NoiseShape.LAPLACE:
        above = int(np.count_nonzero(every > 0))
        name = f"{group.name}: the share of noise above 0"
        return ResidualTest(name, _binomial(above, count, 0.5, 0.5), 0.5, above / count)
    total = float(every.sum())
    name = f"{group.name}: the mean of the noise over its scale"
    spread = math.sqrt(count) * (1 + group.declared.slack)
    return ResidualTest(name, _normal(total, spread), 0.0, total / count)


def _beyond(group: ResidualGroup, every: Floats, tail: float) -> ResidualTest:
    """Count sizes beyond a quantile of the declared distribution."""
    from scipy.special import ndtr, ndtri  # lazy: scipy is slow to import

    most, count = 1 + group.declared.slack, len(every)
    if group.declared.shape is NoiseShape.LAPLACE:
        size = -math.log(tail)
        largest = math.exp(-size / most)
    else:
        size = -float(ndtri(tail / 2))
        largest = 2 * float(ndtr(-size / most))
    hits = int(np.count_nonzero(np.abs(every) > size))
    name = f"{group.name}: the share of noise beyond {size:.3g} scales"
    return ResidualTest(name, _binomial(hits, count, tail, largest), tail, hits / count)


def _pairs(rows: Sequence[Floats]) -> list[tuple[str, Floats, Floats]]:
    """Return pairs that are independent if noise is drawn anew each time; never one number twice.

    Neighbours within a vector; a draw and the next one; the first draw and all others.
    """
    found = [
        (
            "of neighbouring coordinates",
            np.concatenate([row[: len(row) // 2 * 2 : 2] for row in rows]),
            np.concatenate([row[1 : len(row) // 2 * 2 : 2] for row in rows]),
        )
    ]
    for start in range(min(2, len(rows) - 1)):
        both = [_even(*pair) for pair in zip(rows[start::2], rows[start + 1 :: 2], strict=False)]
        firsts, seconds = (np.concatenate(some) for some in zip(*both, strict=True))
        found.append(("of a draw and the next one", firsts, seconds))
    if len(rows) > 2:
        both = [_even(rows[0], row) for row in rows[1:]]
        firsts, seconds = (np.concatenate(some) for some in zip(*both, strict=True))
        found.append(("of the first draw and all others", firsts, seconds))
    return [pair for pair in found if len(pair[1])]


def _even(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    shared = min(len(first), len(second))
    return first[:shared], second[:shared]


def _product(group: ResidualGroup, name: str, first: Floats, second: Floats) -> ResidualTest:
    """Test whether second numbers follow from first ones, which are taken as given."""
    count = len(first)
    if group.declared.shape is NoiseShape.LAPLACE:
        alike = int(np.count_nonzero((first > 0) == (second > 0)))
        name = f"{group.name}: the share of equal signs {name}"
        return ResidualTest(name, _binomial(alike, count, 0.5, 0.5), 0.5, alike / count)
    product = float(first @ second)
    size = float(first @ first)
    spread = math.sqrt(size) * (1 + group.declared.slack)
    name = f"{group.name}: the correlation {name}"
    return ResidualTest(name, _normal(product, spread), 0.0, product / max(size, 1e-300))


def _normal(value: float, spread: float) -> float:
    """Return the two-sided p-value of a normal number."""
    if not spread:
        return 1.0
    return math.erfc(abs(value) / spread / math.sqrt(2))


def _binomial(hits: int, trials: int, least: float, most: float) -> float:
    """Return the exact two-sided p-value of a count whose probability lies in a range."""
    from scipy.special import betainc  # lazy: scipy is slow to import

    high = float(betainc(hits, trials - hits + 1, most)) if hits else 1.0
    low = float(betainc(trials - hits, hits + 1, 1 - least)) if hits < trials else 1.0
    return min(1.0, 2 * min(high, low))


def _uniform(words: NDArray[np.uint64]) -> Floats:
    """Return numbers in (0, 1), from all but the lowest bits."""
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
