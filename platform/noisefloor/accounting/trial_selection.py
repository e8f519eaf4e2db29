"""What it costs to release the best of a random number of private trials.

Trying several settings on private records and keeping the best is a release of its own: which one
is best depends on the records. If the number of trials is random, of the right distribution and
never shown, the cost does not grow with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import lru_cache

from noisefloor.accounting.composition import float_up
from noisefloor.accounting.privacy_filter import overhead
from noisefloor.accounting.release_loss import NANO, ReleaseLoss
from noisefloor.checks import check_finite, check_probability
from noisefloor.distributions import ONE, FiniteDistribution, in_sixty_digits
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

MOST_TRIALS = 10_000
"""A distribution with more than next to nothing above this is refused."""

ORDERS = (*range(2, 33), 40, 48, 56, 64, 80, 96, 128, 192, 256, 512)
"""Renyi orders that are tried, for the selection and for the trials."""

_LARGEST_TAIL = Decimal(2) ** -52
_KEPT_DELTA = 0.001
"""The share of delta that pays for the rounded and cut distribution of the number of trials."""


@dataclass(frozen=True, slots=True)
class TrialCount:
    """How many trials there are: a negative binomial number that is not 0.

    Attributes:
        eta: Its shape, above -1. 0 is the logarithmic distribution, 1 the geometric one; smaller
            ones cost less and spread more.
        gamma: In (0, 1); the smaller, the more trials.

    Reference: Papernot and Steinke 2022, arXiv 2110.03620, definition 1.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        if not check_finite(self.eta, "eta") > -1:
            raise BadParameter("eta", self.eta, "> -1")
        check_probability(self.gamma, "gamma")
        _weights(self.eta, self.gamma)

    @property
    def mean(self) -> float:
        """The expected number of trials."""
        return float_up(Fraction(_mean(self.eta, self.gamma)))

    @property
    def distribution(self) -> FiniteDistribution:
        """Of the number of trials less one, as it is drawn."""
        return FiniteDistribution.of(_weights(self.eta, self.gamma)[0])

    @property
    def variation(self) -> float:
        """Total variation between what is drawn and the distribution of the proof, at the most."""
        return _weights(self.eta, self.gamma)[1]


@dataclass(frozen=True, slots=True)
class TrialSelection:
    """The release of the best of a random number of trials, by a score that each trial releases.

    A trial takes one of some candidates at random, with probabilities that are public.

    Guarantee:  Renyi divergence of order a at most e(a) + (1 + eta)(1 - 1/b) e(b) +
                (1 + eta) ln(1/gamma) / b + ln(mean) / (a - 1) for any order b, where e is the
                largest divergence of one trial, score included. It holds if the number of trials
                and all trials but the best stay secret, the time that they took included.
    Neighbours: those of the trials.
    Domain:     trials that are private by a Renyi divergence, with no delta of their own.
    Reference:  Papernot and Steinke 2022, arXiv 2110.03620, theorem 2.

    Attributes:
        losses: Of a trial, for each candidate; where a record is in one of several parts (trained
            on, or scored on), that of each part.
        trials: How many there are.
        neighbours: Of records.
    """

    losses: tuple[ReleaseLoss, ...]
    trials: TrialCount
    neighbours: Neighbours

    def __post_init__(self) -> None:
        if not self.losses or any(one.delta or one.variation for one in self.losses):
            rule = "at least one, each with a Renyi divergence and no delta of its own"
            raise BadParameter("losses", f"<{len(self.losses)}>", rule)

    def renyi(self, order: int) -> int:
        """Return the divergence of an order, in units of 1e-9, rounded upwards."""
        curve = _curve(self.losses, self.neighbours, order)
        return _selected(curve, order, self.trials)

    def guarantee(self, delta: float) -> Guarantee:
        """Return the least epsilon that some order proves at a delta.

        Raises:
            BadParameter: The delta is too small for the rounded distribution of trials.
        """
        shown = delta * (1 - _KEPT_DELTA)
        found = [
            float_up(Fraction(self.renyi(order), NANO) + Fraction(overhead(order, shown)))
            for order in ORDERS
        ]
        # The conversion is in floats: a few units in the last place, far below this.
        epsilon = max(0.0, min(found)) * (1 + 1e-12) + 1e-12
        if (1 + math.exp(min(epsilon, 700))) * self.trials.variation > delta * _KEPT_DELTA:
            raise BadParameter("delta", delta, "larger: the number of trials is drawn to 64 bits")
        return Guarantee(epsilon, self.neighbours, delta=delta, model=TrustModel.CENTRAL)


def _curve(
    losses: Sequence[ReleaseLoss], neighbours: Neighbours, order: int
) -> dict[int, Decimal]:
    """Return the largest divergence of a trial, at the order and at all that are tried."""
    return {
        one: Decimal(max(_renyi(loss, one, neighbours) for loss in losses)) / NANO
        for one in {order, *ORDERS}
    }


@lru_cache(maxsize=4096)
def _renyi(loss: ReleaseLoss, order: int, neighbours: Neighbours) -> int:
    return loss.renyi(order, neighbours)


@in_sixty_digits
def _selected(curve: dict[int, Decimal], order: int, trials: TrialCount) -> int:
    shape, gamma = 1 + Decimal(trials.eta), Decimal(trials.gamma)
    choice = min(
        shape * ((1 - Decimal(1) / other) * divergence - gamma.ln() / other)
        for other, divergence in curve.items()
    )
    mean = max(Decimal(0), _mean(trials.eta, trials.gamma).ln()) / (order - 1)
    return int(((curve[order] + choice + mean) * NANO).to_integral_value(ROUND_CEILING))


@in_sixty_digits
def _mean(eta: float, gamma: float) -> Decimal:
    shape, rate = Decimal(eta), Decimal(gamma)
    if eta == 0:
        return (1 / rate - 1) / -rate.ln()
    return shape * (1 - rate) / (rate * (1 - rate**shape))


@lru_cache(maxsize=64)
@in_sixty_digits
def _weights(eta: float, gamma: float) -> tuple[tuple[int, ...], float]:
    """Return 64-bit weights of 1, 2, ... trials, and how far they are from the distribution."""
    shape, rate = Decimal(eta), Decimal(gamma)
    scale = -1 / rate.ln() if eta == 0 else shape / (rate**-shape - 1)
    one, left = scale * (1 - rate), Decimal(1)
    weights: list[int] = []
    while left > _LARGEST_TAIL:
        if len(weights) == MOST_TRIALS:
            raise BadParameter("gamma", gamma, f"larger: at most {MOST_TRIALS} trials")
        weights.append(max(1, int(one * ONE)))
        left -= one
        one *= (1 - rate) * (len(weights) + shape) / (len(weights) + 1)
    weights[0] += ONE - sum(weights)
    # Each weight is within one unit but for the first, which takes the rest of them and the tail.
    moved = Decimal(2 * len(weights)) / ONE + 2 * _LARGEST_TAIL
    return tuple(weights), float(moved)
