"""What a ledger writes down: amounts in whole numbers, entries, and lines of a statement.

A float is taken for the shortest decimal that reads as it: 0.1 is one tenth, so that ten of them
fit in 1.0. That differs from the float by less than 1e-16 of it. Costs are then rounded up and
budgets down.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from noisefloor.accounting.composition import sequential
from noisefloor.errors import Shortage
from noisefloor.privacy import Guarantee

MICRO = 10**6
"""Units of one epsilon."""

DELTA_UNITS = 10**18
"""Units of one delta."""

VACUOUS = 10**12 * MICRO
"""A proved epsilon from here on is written as infinite: no use is left in the difference."""


@dataclass(frozen=True, slots=True, order=True)
class Amount:
    """An epsilon and a delta in whole units: millionths, and 1e-18.

    Attributes:
        micro_epsilon: Epsilon in millionths.
        delta_units: Delta in units of 1e-18.
    """

    micro_epsilon: int
    delta_units: int = 0

    @classmethod
    def cost(cls, guarantee: Guarantee, count: int = 1) -> "Amount":
        """Round one finite guarantee up, then take it ``count`` times."""
        return cls(
            math.ceil(as_written(guarantee.epsilon) * MICRO) * count,
            math.ceil(as_written(guarantee.delta) * DELTA_UNITS) * count,
        )

    @classmethod
    def budget(cls, epsilon: float, delta: float) -> "Amount":
        """Round a budget down."""
        return cls(
            math.floor(as_written(epsilon) * MICRO), math.floor(as_written(delta) * DELTA_UNITS)
        )

    @property
    def epsilon(self) -> float:
        """Epsilon as the nearest float, for showing."""
        return quotient(self.micro_epsilon, MICRO)

    @property
    def delta(self) -> float:
        """Delta as the nearest float, for showing."""
        return quotient(self.delta_units, DELTA_UNITS)

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            self.micro_epsilon + other.micro_epsilon, self.delta_units + other.delta_units
        )

    def fits(self, budget: "Amount") -> bool:
        """Tell whether both parts lie within the budget."""
        return (
            self.micro_epsilon <= budget.micro_epsilon and self.delta_units <= budget.delta_units
        )

    def short_of(self, left: "Amount") -> tuple[Shortage, ...]:
        """Return the parts of which more is requested than is left."""
        return tuple(
            Shortage(quantity, getattr(self, quantity), getattr(left, quantity))
            for quantity, units in (("epsilon", "micro_epsilon"), ("delta", "delta_units"))
            if getattr(self, units) > getattr(left, units)
        )

    def left_of(self, budget: "Amount") -> "Amount":
        """Return what this leaves of a budget, never below zero."""
        return Amount(
            max(0, budget.micro_epsilon - self.micro_epsilon),
            max(0, budget.delta_units - self.delta_units),
        )

    def __str__(self) -> str:
        whole, rest = divmod(self.micro_epsilon, MICRO)
        delta = f", delta {self.delta:.3g}" if self.delta_units else ""
        return f"epsilon {whole}.{rest:06d}{delta}"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One spend.

    Attributes:
        spend_id: What makes a retry the same spend.
        subject: Whose budget was debited.
        release: What the budget went into.
        count: How many times the cost was taken.
        debited: What was taken from the budget, all counted.
        proved: What was proved of it, all counted; None when nothing was.
        reason: Why nothing, or less, was proved.
        order: Of the Renyi divergence that the ledger's filter adds up; 0 if it has no filter.
        renyi: Its divergence of that order, all counted, in units of 1e-9.
        failure: What it may lose beside that divergence, in units of delta.
        is_carried: Whether it was spent under an older format, which had no filter: its plain
            cost is taken off the budget before the filter is made.
    """

    spend_id: str
    subject: str
    release: str
    count: int
    debited: Amount
    proved: Amount | None
    reason: str = ""
    order: int = 0
    renyi: int = 0
    failure: int = 0
    is_carried: bool = False


@dataclass(frozen=True, slots=True)
class StatementLine:
    """One line of a statement: what a release took from one subject.

    Attributes:
        release: The release.
        count: How many times it took its cost.
        micro_epsilon: What it took, in millionths.
        delta_units: The delta that it took, in units of 1e-18.
        share: Its part of the epsilon that the subject has spent, in [0, 1].
    """

    release: str
    count: int
    micro_epsilon: int
    delta_units: int
    share: float


def quotient(units: int, whole: int) -> float:
    """Return units as the nearest float of the whole, for showing."""
    try:
        return units / whole
    except OverflowError:  # costs have no bound, floats have
        return math.inf


def as_written(number: float) -> Fraction:
    """Return the rational that a person would have written for the float."""
    return Fraction(repr(float(number)))


def total_as_written(amounts: Iterable[tuple[float, int]]) -> float:
    """Add numbers, each times its count, as a ledger reads them: three times 0.1 is 0.3.

    The floats themselves may add up to more, and a budget of 0.3 would seem to be passed. The
    result, as written, is never below the sum of what was written.
    """
    exact = sum((as_written(value) * count for value, count in amounts), Fraction(0))
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if as_written(nearest) >= exact else math.nextafter(nearest, math.inf)


def sequential_as_written(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Add guarantees as ``sequential`` does, their epsilons and deltas as a ledger reads them."""
    parts = list(guarantees)
    whole = sequential(parts)
    if not whole.is_finite:
        return whole
    return replace(
        whole,
        epsilon=total_as_written((part.epsilon, 1) for part in parts),
        delta=min(1.0, total_as_written((part.delta, 1) for part in parts)),
    )


def proved_amount(proved: Guarantee, count: int) -> tuple[Amount | None, str]:
    """Write a proof down: its amount, or None where it is infinite, and its reason."""
    if not proved.is_finite:
        return None, proved.reason
    amount = Amount.cost(proved, count)
    if amount.micro_epsilon >= VACUOUS:
        return None, proved.reason or "the proved epsilon is too large to mean anything"
    return amount, proved.reason
