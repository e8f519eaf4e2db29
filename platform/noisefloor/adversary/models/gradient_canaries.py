"""Gradient canaries: an example whose gradient is a chosen direction, seen in every noised step.

The strongest example a clipped and noised sum allows: always of full length, always the same way.
Who sees every step projects it on the direction; what is left is a Gaussian with a shift or
without, and the log-likelihood ratio over steps is the best test. ``CanaryRun`` goes into a real
training, with one canary or with many at once; ``CanaryGame`` plays the projections alone, which
is the same game, for as many games as the bound needs.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.accountant import SampledGaussian, epsilon_at
from noisefloor.accounting.bounds import gaussian_delta
from noisefloor.adversary.held_out import held_out_bound, held_out_gaussian
from noisefloor.adversary.intervals import Floats
from noisefloor.adversary.models.canary_directions import Directions
from noisefloor.adversary.one_run import one_run_bound
from noisefloor.checks import check_count, check_finite, check_probability
from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.privacy import Guarantee, LowerBound
from noisefloor.randomness import Source


def canary_log_ratios(
    projections: Floats, noise_multiplier: float, sampling_rate: float = 1.0
) -> Floats:
    """Return ln P(steps | canary is in) / P(steps | it is not).

    Sees:      every noised sum, projected on the canary's direction, in units of the clip.
    Knows:     the noise and the sampling rate; the sum without the canary, or takes it for zero.
    Guesses:   that the canary was in where the ratio is high.
    Reference: Neyman and Pearson 1933; Nasr et al. 2023, arXiv 2302.07956 (canaries).

    Args:
        projections: Steps along the first axis.
        noise_multiplier: Deviation of the noise over the clip.
        sampling_rate: Chance of the canary to be in a step.
    """
    ratios = projections / noise_multiplier**2 - 0.5 / noise_multiplier**2
    if sampling_rate < 1:
        ratios = np.logaddexp(math.log1p(-sampling_rate), math.log(sampling_rate) + ratios)
    return np.asarray(ratios.sum(axis=0))


@dataclass(slots=True, eq=False)
class CanaryRun:
    """Canaries inside one training run.

    Before the noise of a step add ``insert(step)`` to the sum of clipped gradients; after it hand
    the noised sum to ``see``. Either is in units of the gradient.

    Attributes:
        directions: One for each canary.
        members: Whether each canary is in, by a fair coin each.
        clip: The norm that gradients are clipped to.
        noise_multiplier: Deviation of the noise over the clip.
        sampling_rate: Chance of each canary to be in a step.
        source: Of the canaries' sampling; one child a step.
    """

    directions: Directions
    members: NDArray[np.bool_]
    clip: float
    noise_multiplier: float
    sampling_rate: float
    source: Source
    _seen: list[Floats] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if np.shape(self.members) != (self.directions.count,):
            raise BadParameter("members", np.shape(self.members), "a coin for each direction")
        _check(self.noise_multiplier, self.sampling_rate)
        if check_finite(self.clip, "clip") <= 0:
            raise BadParameter("clip", self.clip, "> 0")

    def insert(self, step: int) -> Floats:
        """Return what the canaries add to the sum of one step."""
        coins = self.source.child("canaries", step)
        drawn = coins.bernoulli(int(self.sampling_rate * ONE), self.directions.count)
        return self.directions.combine(np.where(drawn & self.members, self.clip, 0.0))

    def see(self, released: Floats, rest: Floats | None = None) -> None:
        """Keep the projections of a noised sum, without the ordinary gradients if known."""
        clean = released if rest is None else released - rest
        self._seen.append(self.directions.project(np.asarray(clean)) / self.clip)

    def scores(self) -> Floats:
        """Return the log-likelihood ratio of each canary over the steps seen."""
        check_count(len(self._seen), "steps")
        return canary_log_ratios(np.stack(self._seen), self.noise_multiplier, self.sampling_rate)

    def audit(self, *, alpha: float, delta: float = 0.0) -> LowerBound:
        """Return the epsilon that this one run proves."""
        return one_run_bound(self.scores(), self.members, alpha=alpha, delta=delta)


@dataclass(frozen=True, slots=True)
class CanaryGame:
    """One canary in one training, over and over: in or not, all steps seen.

    Attributes:
        noise_multiplier: Deviation of the noise over the clip.
        steps: How many.
        sampling_rate: Chance of the canary to be in a step.
    """

    noise_multiplier: float
    steps: int
    sampling_rate: float = 1.0

    def __post_init__(self) -> None:
        _check(self.noise_multiplier, self.sampling_rate)
        check_count(self.steps, "steps", most=1 << 20)

    @property
    def mu(self) -> float:
        """The shift in deviations: the training is mu-Gaussian.

        Formula: sqrt(T) / sigma, exact where the canary is in every step; otherwise the limit for
        many steps, q sqrt(T (e^(1 / sigma^2) - 1)).
        Reference: Bu, Dong, Long and Su 2020, arXiv 1911.11607.
        """
        if self.sampling_rate == 1:
            return math.sqrt(self.steps) / self.noise_multiplier
        spread = math.expm1(self.noise_multiplier**-2)
        return self.sampling_rate * math.sqrt(self.steps * spread)

    def proved(self, delta: float) -> Guarantee:
        """Return what the account of all steps guarantees, one record being there or not."""
        event = SampledGaussian(self.noise_multiplier, self.sampling_rate, self.steps)
        return epsilon_at([event], delta)

    def scores(self, games: int, source: Source, *, is_in: bool) -> Floats:
        """Return the log-likelihood ratio of each of so many trainings."""
        total = np.zeros(check_count(games, "games"))
        for step in range(self.steps):
            coins = source.child("step", step)
            seen = self.noise_multiplier * coins.child("noise").normals(games).astype(np.float64)
            if is_in:
                chance = int(self.sampling_rate * ONE)
                seen += coins.child("sample").bernoulli(chance, games)
            total += canary_log_ratios(seen[None], self.noise_multiplier, self.sampling_rate)
        return total

    def audit(self, games: int, source: Source, *, alpha: float, delta: float) -> LowerBound:
        """Return the epsilon that so many trainings of each kind prove, whatever the noise."""
        inside, outside = self._both(games, source)
        return held_out_bound(inside, outside, alpha=alpha, delta=delta)

    def audit_gaussian(
        self, games: int, source: Source, *, alpha: float, delta: float
    ) -> LowerBound:
        """Return the epsilon at delta of the mu that is proved, if the noise is Gaussian.

        It needs the claim that the whole training is mu-Gaussian, which sampling breaks a little:
        so it is refused there.
        """
        if self.sampling_rate != 1:
            raise BadParameter("sampling_rate", self.sampling_rate, "1 for a Gaussian audit")
        found = held_out_gaussian(*self._both(games, source), alpha=alpha)
        epsilon, most = (gaussian_epsilon(mu, delta) for mu in (found.epsilon, found.ceiling))
        return LowerBound(epsilon, found.confidence, found.trials, most)

    def _both(self, games: int, source: Source) -> tuple[Floats, Floats]:
        inside = self.scores(games, source.child("in"), is_in=True)
        return inside, self.scores(games, source.child("out"), is_in=False)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-Gaussian privacy at delta, from below to 1e-9."""
    check_probability(delta, "delta")
    low, high = 0.0, 1.0
    if mu <= 0 or float(gaussian_delta(0.0, mu)) <= delta:
        return 0.0
    while float(gaussian_delta(high, mu)) > delta:
        low, high = high, 2 * high
    while high - low > 1e-9 * max(1.0, high):
        middle = (low + high) / 2
        is_below = float(gaussian_delta(middle, mu)) > delta
        low, high = (middle, high) if is_below else (low, middle)
    return low


def laplace_projection(steps: int, parameters: int, size: float, scale: float) -> float:
    """Return the shift, in deviations, of increments with Laplace noise projected on a sign.

    Of a record that moves every parameter by ``size`` in every one of its visits; the best test
    is ``WhiteBox`` over all of them, this is the closed form of the plain projection.

    Formula: sqrt(T P) size / (sqrt(2) scale).
    """
    return math.sqrt(steps * parameters) * abs(size) / (math.sqrt(2) * scale)


def _check(noise_multiplier: float, sampling_rate: float) -> None:
    if check_finite(noise_multiplier, "noise_multiplier") <= 0:
        raise BadParameter("noise_multiplier", noise_multiplier, "> 0")
    if not 0 < check_finite(sampling_rate, "sampling_rate") <= 1:
        raise BadParameter("sampling_rate", sampling_rate, "in (0, 1]")
