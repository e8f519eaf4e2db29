"""Tight accounting of many noisy releases, through Google's dp-accounting.

Two methods: privacy loss distributions (``"pld"``, tight) and Renyi divergences (``"rdp"``, loose
by ten per cent or so, but it never fails). Both give upper bounds. What was run is data
(``LaplaceNoise``, ``GaussianNoise``, ``SampledGaussian``); what it cost is computed here.

Every multiplier is noise over the sensitivity to ADDING OR REMOVING one record. The library is
not of one mind about substitution: its PLD doubles the sensitivity, its RDP does not. Here
substitution always doubles it.
"""

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from noisefloor.accounting.composition import float_up
from noisefloor.checks import check_count, check_epsilon, check_finite, check_probability
from noisefloor.errors import BadParameter, IncompatibleGuarantees
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

AccountingMethod: TypeAlias = Literal["pld", "rdp"]

TOLERANCE = 1e-4
"""A calibrated multiplier is at most this much (relatively) above the smallest that is enough."""

_LEAST_MULTIPLIER = 0.05
_MOST_MULTIPLIER = 1e12
_FINEST_GRID = 1e-7
_MOST_RATIO = 1e6
"""Of noise to what it hides, for Renyi divergences: those of more noise are lost in the rounding
of floats, and the library then answers 0. Less noise than there was gives an upper bound."""

_LARGEST_ROUGH = 1e4  # an epsilon above this is empty; its grid need not be any coarser
SLACK_PER_STEP = 1e-15
"""The Fourier transforms of the library's PLD err by some 6e-18 in delta a step (measured against
the analytic Gaussian, where it did understate). This much delta is held back for them."""


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise of ``scale`` over the L1 sensitivity, drawn ``count`` times."""

    scale: float
    count: int = 1

    def __post_init__(self) -> None:
        _check_positive(self.scale, "scale")
        check_count(self.count, "count")


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise of ``noise_multiplier`` over the L2 sensitivity, drawn ``count`` times."""

    noise_multiplier: float
    count: int = 1

    def __post_init__(self) -> None:
        _check_positive(self.noise_multiplier, "noise_multiplier")
        check_count(self.count, "count")


@dataclass(frozen=True, slots=True)
class SampledGaussian:
    """Gaussian noise on a Poisson sample: each record is in with ``sampling_rate``, by itself.

    Shuffled batches of fixed size are not Poisson samples; this account does not cover them.
    """

    noise_multiplier: float
    sampling_rate: float
    count: int = 1

    def __post_init__(self) -> None:
        _check_positive(self.noise_multiplier, "noise_multiplier")
        if not 0 < check_finite(self.sampling_rate, "sampling_rate") <= 1:
            raise BadParameter("sampling_rate", self.sampling_rate, "in (0, 1]")
        check_count(self.count, "count")


PrivacyEvent: TypeAlias = LaplaceNoise | GaussianNoise | SampledGaussian


def epsilon_at(
    events: Iterable[PrivacyEvent],
    delta: float,
    method: AccountingMethod = "pld",
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
) -> Guarantee:
    """Return what the events cost together, at a given delta, in the central model.

    Args:
        events: What was run on the same records, at least one.
        delta: In [0, 1). At 0 only Laplace noise guarantees anything.
        method: ``"pld"`` or ``"rdp"``. Where PLD fails or is looser, RDP answers instead.
        neighbours: RECORD_ADD_REMOVE or RECORD_SUBSTITUTE; any other relation is refused.

    Returns:
        An upper bound. Its reason says when another road than the requested one was taken.
    """
    run = _check_events(events)
    if method not in ("pld", "rdp"):
        raise BadParameter("method", method, "to be 'pld' or 'rdp'")
    check_record_relation(neighbours)
    if delta == 0:
        return _pure(run, neighbours)
    check_probability(delta, "delta")
    epsilon, reason = _rdp(run, delta, neighbours)
    if method == "pld":
        epsilon, reason = _pld_or(epsilon, reason, run, delta=delta, neighbours=neighbours)
    plain = _pure(run, neighbours)
    if plain.epsilon < epsilon:
        epsilon, reason = plain.epsilon, "the plain sum of the Laplace epsilons is smaller"
    if math.isinf(epsilon):
        reason = "the accountant found no finite epsilon for so little noise"
    return Guarantee(epsilon, neighbours, delta=delta, model=TrustModel.CENTRAL, reason=reason)


def noise_multiplier_for(
    epsilon: float,
    delta: float,
    sampling_rate: float = 1.0,
    count: int = 1,
    method: AccountingMethod = "pld",
    neighbours: Neighbours = Neighbours.RECORD_ADD_REMOVE,
) -> float:
    """Return the smallest Gaussian noise multiplier that keeps to (epsilon, delta).

    The answer is on the safe side: its own ``epsilon_at`` is at most ``epsilon``; and a multiplier
    smaller by more than TOLERANCE (relatively) is not enough. Never below 0.05.
    """
    target = check_epsilon(epsilon)
    check_probability(delta, "delta")

    def spent_by(how: AccountingMethod) -> Callable[[float], float]:
        def spent(multiplier: float) -> float:
            event = SampledGaussian(multiplier, sampling_rate, count)
            return epsilon_at([event], delta, how, neighbours).epsilon

        return spent

    # RDP is quick and its answer is enough for PLD also, which then has little left to search.
    try:
        multiplier = _smallest(spent_by("rdp"), target, start=1.0, step=2.0)
    except BadParameter:  # orders are few: some epsilons are too small for any noise
        if method == "rdp":
            raise
        return _smallest(spent_by(method), target, start=1.0, step=4.0)
    if method == "rdp":
        return multiplier
    return _smallest(spent_by(method), target, start=multiplier, step=1.2)


def _smallest(
    spent: Callable[[float], float], target: float, *, start: float, step: float
) -> float:
    """Search the smallest multiplier; the one returned has always been seen to be enough."""
    high = (start, spent(start))
    while high[1] > target:
        if high[0] > _MOST_MULTIPLIER:
            raise BadParameter("epsilon", target, "within reach of some noise multiplier")
        high = (high[0] * step, spent(high[0] * step))
    low = (high[0] / step, spent(high[0] / step))
    while low[1] <= target:
        if low[0] <= _LEAST_MULTIPLIER:
            return low[0]
        step *= step
        below = max(low[0] / step, _LEAST_MULTIPLIER)
        high, low = low, (below, spent(below))
    turn = 0
    while high[0] > low[0] * (1 + TOLERANCE):
        middle = _between(low, high, target, turn)
        found = (middle, spent(middle))
        low, high = (low, found) if found[1] <= target else (found, high)
        turn += 1
    return high[0]


def _between(
    low: tuple[float, float], high: tuple[float, float], target: float, turn: int
) -> float:
    """Guess by a straight line in logarithms, now a hair above it, now a hair below.

    The two hairs close the bracket once the line is good; each fourth turn halves it, so that a
    bad line cannot stall the search.
    """
    halfway = math.sqrt(low[0] * high[0])
    if turn % 4 == 3 or math.isinf(low[1]) or not 0 < high[1] < low[1]:
        return halfway
    weight = math.log(target / high[1]) / math.log(low[1] / high[1])
    guess = high[0] * (low[0] / high[0]) ** weight
    guess *= 1 + (TOLERANCE / 3 if turn % 2 == 0 else -TOLERANCE / 3)
    return guess if low[0] < guess < high[0] else halfway


def _pure(run: tuple[PrivacyEvent, ...], neighbours: Neighbours) -> Guarantee:
    """Add the epsilons up at delta 0: exact for Laplace noise, infinite for any other."""
    if not all(isinstance(event, LaplaceNoise) for event in run):
        reason = "Gaussian noise guarantees nothing at delta = 0"
        return Guarantee.none(reason, neighbours, TrustModel.CENTRAL)
    steps = _doubling(neighbours)
    exact = sum(
        (
            Fraction(steps * event.count) / Fraction(event.scale)
            for event in run
            if isinstance(event, LaplaceNoise)
        ),
        Fraction(0),
    )
    return Guarantee(float_up(exact), neighbours, model=TrustModel.CENTRAL)


def _pld_or(
    fallback: float,
    reason: str,
    run: tuple[PrivacyEvent, ...],
    *,
    delta: float,
    neighbours: Neighbours,
) -> tuple[float, str]:
    """Return the PLD epsilon, or the RDP one and why; both are upper bounds."""
    trouble = "PLD is no tighter here"
    try:
        epsilon = _pld(run, delta, neighbours, rough=fallback)
    except Exception as crash:  # whatever breaks inside the library, RDP is still a bound
        epsilon, trouble = math.inf, f"PLD failed ({type(crash).__name__})"
    if epsilon < fallback:
        native = neighbours is Neighbours.RECORD_SUBSTITUTE and _is_sampled(run)
        return epsilon, "substitution rests on dp-accounting's REPLACE_ONE pair" if native else ""
    return fallback, "; ".join(filter(None, [f"{trouble}; RDP instead", reason]))


@lru_cache(maxsize=4096)  # weekly releases and plans of one cost ask the same again and again
def _pld(
    run: tuple[PrivacyEvent, ...], delta: float, neighbours: Neighbours, *, rough: float
) -> float:
    """Ask the library's PLD accountant; the grid is coarser (and safe) where losses are huge."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    steps = sum(event.count for event in run)
    slack = SLACK_PER_STEP * max(1000, steps)
    # The slack is taken off delta below: it has to be a small part of it. Else RDP answers.
    if delta < 100 * slack:
        raise ArithmeticError("delta lies within the rounding of Fourier transforms")
    substitute = neighbours is Neighbours.RECORD_SUBSTITUTE
    native = substitute and _is_sampled(run)
    relations = dp_accounting.NeighboringRelation
    # A grid step errs upwards, by something that grows with the root of the number of releases.
    grid = min(rough, _LARGEST_ROUGH) / (1e3 * max(10.0, math.sqrt(steps)))
    accountant = PLDAccountant(
        relations.REPLACE_ONE if native else relations.ADD_OR_REMOVE_ONE,
        value_discretization_interval=max(_FINEST_GRID, grid),
    )
    with quiet_library():
        _compose(accountant, run, shrink=2 if substitute and not native else 1)
        epsilon = float(accountant.get_epsilon(delta - slack))
    if not epsilon >= 0:
        raise ArithmeticError("PLD answered with something that is no epsilon")
    return epsilon


def _rdp(run: tuple[PrivacyEvent, ...], delta: float, neighbours: Neighbours) -> tuple[float, str]:
    """Ask the library's RDP accountant; a sampled substitution counts as two steps."""
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant()
    two_steps = neighbours is Neighbours.RECORD_SUBSTITUTE and _is_sampled(run)
    with quiet_library():
        _compose(accountant, _visible(run), shrink=1 if two_steps else _doubling(neighbours))
        if two_steps:
            return _two_steps(accountant, delta), "substitution as a group of two steps"
        return float(accountant.get_epsilon(delta)), ""


def _visible(run: tuple[PrivacyEvent, ...]) -> tuple[PrivacyEvent, ...]:
    """Return the events with no more noise than floats can tell from infinite noise."""
    return tuple(_with_less(event) for event in run)


def _with_less(event: PrivacyEvent) -> PrivacyEvent:
    if isinstance(event, LaplaceNoise):
        return replace(event, scale=min(event.scale, _MOST_RATIO))
    rate = event.sampling_rate if isinstance(event, SampledGaussian) else 1.0
    return replace(event, noise_multiplier=min(event.noise_multiplier, _MOST_RATIO * rate))


def _two_steps(accountant: Any, delta: float) -> float:  # Any: the library has no types
    """Find the least 2 * epsilon whose group delta, (1 + e^epsilon) delta(epsilon), is allowed."""

    def is_allowed(epsilon: float) -> bool:
        one_step = accountant.get_delta(epsilon)
        return bool(one_step <= delta * math.exp(-epsilon) / (1 + math.exp(-epsilon)))

    high = 1.0
    while not is_allowed(high):
        high *= 2
        if high > 512:  # e^-high would vanish; as a guarantee it is long empty
            return math.inf
    low = 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if is_allowed(middle) else (middle, high)
    return 2 * high


def _compose(accountant: Any, run: tuple[PrivacyEvent, ...], *, shrink: int) -> None:
    """Feed the events to an accountant of the library (Any: it has no types)."""
    import dp_accounting as library

    for event in run:
        if isinstance(event, LaplaceNoise):
            accountant.compose(library.LaplaceDpEvent(event.scale / shrink), event.count)
            continue
        noise = library.GaussianDpEvent(event.noise_multiplier / shrink)
        if isinstance(event, SampledGaussian) and event.sampling_rate < 1:
            noise = library.PoissonSampledDpEvent(event.sampling_rate, noise)
        accountant.compose(noise, event.count)


@contextmanager
def quiet_library() -> Iterator[None]:
    """Silence what the library says about orders and floats that it leaves out, safely so."""

    def drop(_: logging.LogRecord) -> bool:
        return False

    logger = logging.getLogger("absl")
    logger.addFilter(drop)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        logger.removeFilter(drop)


def _doubling(neighbours: Neighbours) -> int:
    """Return by how much the relation multiplies the add-or-remove sensitivity."""
    return 2 if neighbours is Neighbours.RECORD_SUBSTITUTE else 1


def _is_sampled(run: tuple[PrivacyEvent, ...]) -> bool:
    return any(isinstance(event, SampledGaussian) and event.sampling_rate < 1 for event in run)


def _check_events(events: Iterable[PrivacyEvent]) -> tuple[PrivacyEvent, ...]:
    run = tuple(events)
    if not run:
        raise BadParameter("events", "<none>", "to hold at least one")
    for event in run:
        if not isinstance(event, PrivacyEvent):
            raise BadParameter("events", type(event).__name__, "to be events of this module")
    return run


def check_record_relation(neighbours: Neighbours) -> None:
    """Refuse a relation that is not one of records."""
    if neighbours not in (Neighbours.RECORD_ADD_REMOVE, Neighbours.RECORD_SUBSTITUTE):
        raise IncompatibleGuarantees(
            f"The accountant knows record neighbours, not {neighbours.value} neighbours. Account "
            "for records and convert the result with group(guarantee, size, neighbours)."
        )


def _check_positive(value: float, name: str) -> None:
    if check_finite(value, name) <= 0:
        raise BadParameter(name, value, "> 0")
    if not 1e-100 <= value <= 1e100:
        raise BadParameter(name, value, "in [1e-100, 1e+100] (its square has to be a float)")
