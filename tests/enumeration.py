"""The exact distribution of a mechanism, by running its real ``randomise`` down every path of
chance.

``EnumeratingSource`` answers each exact draw (a draw, a draw of a finite distribution, a choice
below a bound) with one of its outcomes and keeps the probability as a fraction. ``enumerate_law``
runs the mechanism once for each path. Draws of plain words cannot be listed: such a draw is an
error, but for the seed of local hashing, which is given.

What is enumerated here is how a mechanism puts exact draws together. That a source makes the draws
exactly, is tested where sources are.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.distributions import ONE, FiniteDistribution
from noisefloor.mechanisms import Mechanism
from noisefloor.randomness import Bits, Source, Words

Distribution = dict[Hashable, Fraction]
Randomise = Callable[[Source], NDArray[Any]]

_CONTEXT = Context(prec=80)


class Cut(Exception):
    """A path took more choices than were allowed."""


class Script:
    """The choices of one path, and how to come to the next one, depth first."""

    def __init__(self, deepest: int) -> None:
        self.deepest = deepest
        self.taken: list[int] = []
        self.offered: list[int] = []
        self.restart()

    def restart(self) -> None:
        self.place = 0
        self._chance = (1, 1)

    @property
    def chance(self) -> Fraction:
        """The probability of the path; it is reduced once, at its end."""
        return Fraction(*self._chance)

    def _times(self, weight: int, whole: int) -> None:
        self._chance = (self._chance[0] * weight, self._chance[1] * whole)

    def choose(self, weights: Sequence[int], whole: int) -> int:
        """Return an index of the weights; those of weight zero are never taken."""
        options = [index for index, weight in enumerate(weights) if weight]
        if len(options) == 1:
            return options[0]
        index = options[self._turn(len(options))]
        self._times(int(weights[index]), int(whole))
        return index

    def choose_evenly(self, bound: int) -> int:
        """Return an integer below the bound."""
        index = self._turn(bound) if bound > 1 else 0
        self._times(1, int(bound))
        return index

    def _turn(self, options: int) -> int:
        if self.place == self.deepest:
            raise Cut
        if self.place == len(self.taken):
            self.taken.append(0)
            self.offered.append(options)
        self.place += 1
        return self.taken[self.place - 1]

    def advance(self) -> bool:
        """Go to the next path; false after the last one."""
        while self.taken and self.taken[-1] + 1 == self.offered[-1]:
            self.taken.pop()
            self.offered.pop()
        if self.taken:
            self.taken[-1] += 1
        self.restart()
        return bool(self.taken)


class EnumeratingSource(Source):
    """A source that follows a script; ``seed`` is what local hashing draws for its hash."""

    def __init__(self, script: Script, seed: int = 0) -> None:
        self.script = script
        self.seed = seed

    def words(self, count: int) -> Words:
        raise AssertionError("A mechanism drew plain words: they cannot be enumerated.")

    def stage(self, *name: str | int) -> Source:
        return self

    def _spare(self, *name: str | int) -> Source:
        raise AssertionError("An exact draw has no ties and no rejections.")

    def halves_of(self, count: int) -> NDArray[np.uint32]:
        return np.full(count, self.seed, dtype=np.uint32)

    def bernoulli(self, threshold: int, count: int, out: Bits | None = None) -> Bits:
        hits = np.empty(count, dtype=np.bool_) if out is None else out
        hits[:] = [self.script.choose([ONE - threshold, threshold], ONE) for _ in range(count)]
        return hits

    def bernoulli_each(self, thresholds: Words) -> Bits:
        bits = [self.bernoulli(int(one), 1)[0] for one in thresholds.reshape(-1)]
        return np.array(bits, dtype=np.bool_).reshape(thresholds.shape)

    def draw(self, distribution: FiniteDistribution, count: int) -> NDArray[np.signedinteger]:
        drawn = [self.script.choose(distribution.weights, ONE) for _ in range(count)]
        return np.array(drawn, dtype=distribution.guide.dtype)

    def below(self, bound: int | NDArray[np.unsignedinteger], count: int) -> NDArray[np.uint32]:
        bounds = np.broadcast_to(np.asarray(bound), (count,)).tolist()
        chosen = [self.script.choose_evenly(one) for one in bounds]
        return np.array(chosen, dtype=np.uint32)

    def below_wide(self, bounds: Words) -> Words:
        raise AssertionError("Too many to list: use law_by_bisection.")


def enumerate_distribution(randomise: Randomise, *, seed: int = 0) -> Distribution:
    """Return the exact probability of each report of the first user."""
    distribution, cut = enumerate_with_cut(randomise, 1 << 20, seed=seed)
    if cut:
        raise ValueError("A path did not end.")
    return distribution


def enumerate_with_cut(
    randomise: Randomise, deepest: int, *, seed: int = 0
) -> tuple[Distribution, Fraction]:
    """Return the distribution of the paths of at most ``deepest`` choices, and the mass of the
    others."""
    script, distribution, cut, goes_on = Script(deepest), Distribution(), Fraction(0), True
    while goes_on:
        try:
            report = key_of(randomise(EnumeratingSource(script, seed))[0])
            distribution[report] = distribution.get(report, Fraction(0)) + script.chance
        except Cut:
            cut += script.chance
        goes_on = script.advance()
    if sum(distribution.values()) + cut != 1:
        raise AssertionError("Paths were missed: the probabilities do not sum to 1.")
    return distribution, cut


class _OneNumber(EnumeratingSource):
    """Answers the one wide draw with a given number, and remembers the bound."""

    def __init__(self, number: int) -> None:
        super().__init__(Script(0))
        self.number = number
        self.bound = 0

    def below_wide(self, bounds: Words) -> Words:
        self.bound = int(bounds[0])
        return np.array([self.number], dtype=np.uint64)


def distribution_by_bisection(randomise: Randomise) -> Distribution:
    """Return the distribution of a mechanism whose report never falls as its one wide draw
    grows."""

    def report(number: int) -> tuple[int, int]:
        source = _OneNumber(number)
        return int(randomise(source)[0]), source.bound

    bound = report(0)[1]
    distribution, start = Distribution(), 0
    while start < bound:
        current, low, high = report(start)[0], start, bound
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if report(middle)[0] == current else (low, middle)
        distribution[current] = Fraction(high - start, bound)
        start = high
    return distribution


def key_of(report: Any) -> Hashable:  # Any: a report is what the mechanism makes it
    """Return a report as something that a dictionary can hold."""
    plain = report.tolist()
    return tuple(plain) if isinstance(plain, list) else plain


def likelihoods(mechanism: Mechanism, outputs: NDArray[Any], value: Any) -> dict[Hashable, float]:
    """Return the mechanism's own log-likelihoods, by report."""
    logs = mechanism.log_likelihood(outputs, value)
    return {key_of(output): float(log) for output, log in zip(outputs, logs, strict=True)}


def log_ratio(one: Fraction, other: Fraction) -> Decimal:
    """Return ln(one / other) to 80 digits; infinity if only one of them is possible."""
    if not one or not other:
        return Decimal(0) if one == other else Decimal("Infinity")
    ratio = one / other
    return _CONTEXT.ln(_CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def exact_worst(pairs: Iterable[tuple[Distribution, Distribution]]) -> Decimal:
    """Return the largest log-ratio over all pairs of distributions and all reports, both ways."""
    # Ratios are pairs of integers, compared crosswise: exact, and none has to be reduced.
    high, low = 1, 1
    for first, second in pairs:
        if first.keys() != second.keys():
            return Decimal("Infinity")
        for report, one in first.items():
            other = second[report]
            left = one.numerator * other.denominator
            right = other.numerator * one.denominator
            if not left or not right:
                return Decimal("Infinity")
            if left < right:
                left, right = right, left
            if left * low > high * right:
                high, low = left, right
    return log_ratio(Fraction(high, low), Fraction(1))
