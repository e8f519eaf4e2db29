"""What is known of the privacy loss of one release, and its Renyi divergence of a whole order.

Divergences are computed in sixty digits and rounded upwards once, to whole units of 1e-9: so the
sum of any number of releases is exact, and never below what they cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from noisefloor.accounting.accountant import (
    GaussianNoise,
    LaplaceNoise,
    PrivacyEvent,
    SampledGaussian,
)
from noisefloor.checks import check_count, check_finite
from noisefloor.distributions import in_sixty_digits
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours

NANO = 10**9
"""Units of one Renyi divergence."""

MOST_ORDER = 4096
"""A sum over all powers up to twice the order takes some hundredths of a second."""

_LARGEST_LOG = 10**6
"""Above it, powers of e leave the range of decimals."""

_MOST_UNITS = 10**30
"""Far above every cap, so that a total with it is refused; no longer number is written down."""

_LARGE = Decimal(500)
"""From this epsilon on, the divergence of a pure release is taken for its bound, epsilon."""

_ROUNDING = Decimal("1e-20")
"""Above what sixty digits lose in a sum of a few thousand terms; far below one unit."""


@dataclass(frozen=True, slots=True)
class ReleaseLoss:
    """The loss of a release: noise whose distribution is known, and a rest that is not.

    Attributes:
        events: The noise that was drawn, over what ADDING OR REMOVING one record moves.
        epsilon: Of all other parts together, whatever their distribution.
        delta: Likewise.
        variation: Total variation between what is drawn and the events, in all: the cut tails
            and the rounded weights of integer noise.
    """

    events: tuple[PrivacyEvent, ...] = ()
    epsilon: float = 0.0
    delta: float = 0.0
    variation: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "variation"):
            if not 0 <= check_finite(getattr(self, name), name):
                raise BadParameter(name, getattr(self, name), ">= 0")

    @classmethod
    def of(cls, guarantee: Guarantee) -> "ReleaseLoss":
        """Return the loss of a release of which nothing but its guarantee is known."""
        return cls(epsilon=guarantee.epsilon, delta=guarantee.delta)

    def renyi(self, order: int, neighbours: Neighbours) -> int:
        """Return the Renyi divergence of an order, in units of 1e-9, rounded upwards.

        The rest of (epsilon, delta) counts with the divergence of a randomised response of
        epsilon, which is the largest that epsilon allows; its delta is no part of this number.

        Args:
            order: A whole number from 2 on.
            neighbours: A substituted record is moved twice as far as one that comes or goes.
        """
        check_count(order, "order", least=2, most=MOST_ORDER)
        is_substitution = neighbours is Neighbours.RECORD_SUBSTITUTE
        if not self.is_lossy:
            return 0
        return _in_units(
            [
                _pure(Decimal(repr(self.epsilon)), order),
                *(_of_event(event, order, is_substitution) for event in self.events),
            ]
        )

    @property
    def is_lossy(self) -> bool:
        """Whether there is anything with a divergence."""
        return bool(self.events) or self.epsilon > 0


@in_sixty_digits
def _in_units(parts: Sequence[Decimal]) -> int:
    units = sum(parts, Decimal(0)) * NANO + _ROUNDING
    return min(_MOST_UNITS, int(units.to_integral_value(ROUND_CEILING)))


@in_sixty_digits
def _of_event(event: PrivacyEvent, order: int, is_substitution: bool) -> Decimal:
    if isinstance(event, LaplaceNoise):
        one = _pure((2 if is_substitution else 1) / Decimal(event.scale), order)
    elif isinstance(event, GaussianNoise) or event.sampling_rate == 1:
        one = _gaussian(event, order) * (4 if is_substitution else 1)
    elif is_substitution:
        one = _two_steps(event, order)
    else:
        one = _sampled(event, order)
    return one * event.count


def _gaussian(event: GaussianNoise | SampledGaussian, order: int) -> Decimal:
    return Decimal(order) / (2 * Decimal(event.noise_multiplier) ** 2)


@in_sixty_digits
def _pure(epsilon: Decimal, order: int) -> Decimal:
    """Return the largest divergence that epsilon allows: that of a randomised response.

    Reference: Mironov 2017, arXiv 1702.07476, section on randomised response.
    """
    if epsilon > _LARGE:
        return epsilon
    odds = epsilon.exp()
    power = (order * epsilon).exp() + ((1 - order) * epsilon).exp()
    return max(Decimal(0), min(epsilon, (power / (1 + odds)).ln() / (order - 1)))


def _sampled(event: SampledGaussian, order: int) -> Decimal:
    """Return the divergence of Gaussian noise on a Poisson sample, for either direction.

    Reference: Mironov, Talwar, Zhang 2019, arXiv 1908.10530, section 3.3 (whole orders). Each
    term is made of the one before it: no power leaves the range of decimals by itself. Where the
    last term would, the divergence is bounded by that without sampling, which is never less.
    """
    rate, variance = Decimal(event.sampling_rate), Decimal(event.noise_multiplier) ** 2
    if order * (order - 1) > 2 * variance * _LARGEST_LOG:
        return _gaussian(event, order)
    term, growth, step = (1 - rate) ** order, Decimal(1), (1 / variance).exp()
    total, odds = term, rate / (1 - rate)
    for k in range(order):
        term *= odds * growth * (order - k) / (k + 1)
        growth *= step
        total += term
    return total.ln() / (order - 1)


def _two_steps(event: SampledGaussian, order: int) -> Decimal:
    """Return the divergence of a substitution: one record goes, another comes.

    Reference: Mironov 2017, arXiv 1702.07476, the weak triangle inequality, with both exponents 2.
    """
    first, second = _sampled(event, 2 * order), _sampled(event, 2 * order - 1)
    return first * (Decimal(order) - Decimal("0.5")) / (order - 1) + second
