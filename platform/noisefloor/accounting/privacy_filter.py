"""A privacy filter: whether one more release, chosen in view of all before it, may be granted.

A release is granted if, with it, at least one of these totals stays within (epsilon, delta):

* *plain*: the sum of epsilons is at most epsilon, and that of deltas at most delta / 100;
* *Renyi*: the sum of Renyi divergences of one order, fixed by the budget beforehand, is at most
  what the order and 98 hundredths of delta allow for epsilon, and what releases may lose beside
  their divergence (deltas of their own, cut tails) is at most delta / 100;
* *alone*: it is the only release, and its own (epsilon, delta) fits.

**Why this is (epsilon, delta) differentially private**, although costs and their number depend on
what was released before. Fix two neighbours and let L be the privacy loss of the whole transcript,
a sum over its releases. The claim is E[(1 - exp(epsilon - L))+] <= delta. Every transcript ends in
one of the three states. Those that end *alone* and in neither other state have one release, since
totals only grow; a ledger with such a first release never grants another, so delta is its own.
Otherwise those that end in *plain* contribute at most delta / 100: up to there the sums are those
of basic composition, which may be stopped at any time (Rogers et al. 2016, arXiv 1605.08294).
Those that end in *Renyi* are also transcripts of the process that stops before the Renyi total
passes its cap. In it exp((a - 1) L - sum of divergences (a - 1)) is a supermartingale under a
fixed order a, so that its divergence of order a is at most the cap (Feldman and Zrnic 2021, arXiv
2008.11193; Lecuyer 2021, arXiv 2103.01379), which converts to (epsilon, 0.98 delta) by Canonne,
Kamath, Steinke 2020 (arXiv 2004.00010, proposition 12). A release that is private but for a delta
of its own is, but for that probability, one that has the divergence (as for approximate zCDP in
Whitehouse et al. 2023, arXiv 2203.05481); one whose noise is off by a total variation v moves the
final delta by at most (1 + e**epsilon) v. Both are charged to the last hundredth. Where a budget
has no filter, the plain sum has all of delta.

**What it needs.** The order is chosen from the budget alone. Choosing the best of many orders at
the end, or adding the plain sum without its share of delta, would need a larger delta: the state
in which a transcript ends depends on the data.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache

from noisefloor.accounting.entries import DELTA_UNITS, MICRO, Amount, quotient
from noisefloor.accounting.release_loss import MOST_ORDER, NANO, ReleaseLoss
from noisefloor.distributions import in_sixty_digits
from noisefloor.errors import Shortage
from noisefloor.privacy import Neighbours

_LARGEST_EXPONENT = 700
"""From here on e**epsilon is no float, and times any variation more than any delta."""


_NOTHING = Amount(0)


@dataclass(frozen=True, slots=True)
class LossTotal:
    """What a number of releases cost together, by every count that the filter keeps.

    Attributes:
        entries: How many spends, carried ones not included.
        plain: Sums of epsilon and delta.
        renyi: Sum of the divergences of the filter's order, in units of 1e-9.
        failure: What is lost beside the divergence, in units of delta.
        carried: What a ledger of an older format had spent: taken off the budget beforehand.
    """

    entries: int = 0
    plain: Amount = _NOTHING
    renyi: int = 0
    failure: int = 0
    carried: Amount = _NOTHING

    @property
    def numbers(self) -> tuple[int, ...]:
        """All counts, as they are written down."""
        plain, carried = self.plain, self.carried
        return (
            *(self.entries, plain.micro_epsilon, plain.delta_units, self.renyi, self.failure),
            *(carried.micro_epsilon, carried.delta_units),
        )

    @classmethod
    def of(cls, numbers: tuple[int, ...]) -> "LossTotal":
        """Read what ``numbers`` wrote."""
        entries, epsilon, delta, renyi, failure, *carried = numbers
        return cls(entries, Amount(epsilon, delta), renyi, failure, Amount(*carried))

    @property
    def spent(self) -> Amount:
        """The plain sums, with what was carried over."""
        return self.plain + self.carried

    def plus(self, debited: Amount, renyi: int = 0, failure: int = 0) -> "LossTotal":
        """Return the total with one more spend."""
        return LossTotal(
            self.entries + 1,
            self.plain + debited,
            self.renyi + renyi,
            self.failure + failure,
            self.carried,
        )

    def carrying(self, debited: Amount) -> "LossTotal":
        """Return the total with one more spend of an older format."""
        return LossTotal(
            self.entries, self.plain, self.renyi, self.failure, self.carried + debited
        )


@dataclass(frozen=True, slots=True)
class PrivacyFilter:
    """What a budget grants; made by ``filter_of``.

    Attributes:
        budget: Epsilon and delta, less what was carried over.
        order: Of the Renyi divergence; 0 where the budget allows no filter.
        cap: Of the divergences.
        reserve: For deltas of the plain sum, and for failures: a hundredth of delta each. All of
            delta where there is no filter, since then no transcript ends in *Renyi*.
    """

    budget: Amount
    order: int
    cap: int
    reserve: int

    def cost(self, loss: ReleaseLoss, neighbours: Neighbours) -> tuple[int, int]:
        """Return what a release adds to ``renyi`` and to ``failure``."""
        if not self.order:
            return 0, 0
        return loss.renyi(self.order, neighbours), self._failure(loss)

    def admits(self, total: LossTotal) -> bool:
        """Tell whether a total stays within the budget."""
        return (
            (total.entries == 1 and total.plain.fits(self.budget))
            or self._plain_fits(total)
            or self._renyi_fits(total)
        )

    def shortages(self, total: LossTotal, before: LossTotal) -> tuple[Shortage, ...]:
        """Say which counts a refused total passes, beside what was left of each before."""
        left = before.plain.left_of(self.budget)
        taken = Amount(
            total.plain.micro_epsilon - before.plain.micro_epsilon,
            total.plain.delta_units - before.plain.delta_units,
        )
        found = [*taken.short_of(left)]
        if not found and total.plain.delta_units > self.reserve:
            spare = max(0, self.reserve - before.plain.delta_units)
            found.append(Shortage("delta of the plain sum", taken.delta, Amount(0, spare).delta))
        if self.order:
            renyi, failure = total.renyi - before.renyi, total.failure - before.failure
            room = max(0, self.cap - before.renyi)
            if renyi > room:
                found.append(
                    Shortage(
                        f"Renyi divergence of order {self.order}",
                        quotient(renyi, NANO),
                        quotient(room, NANO),
                    )
                )
            spare = max(0, self.reserve - before.failure)
            if failure > spare:
                found.append(
                    Shortage(
                        "delta beside the Renyi divergence",
                        Amount(0, failure).delta,
                        Amount(0, spare).delta,
                    )
                )
        return tuple(found)

    def spent(self, total: LossTotal) -> Amount:
        """Return the smallest (epsilon, delta) that is proved of a total.

        It is within the budget if and only if the filter admits the total; a total that it does
        not admit (after a merge) may have no proof but the plain sum. It is a statement of the
        spends so far: of all that may still be chosen in view of them, the budget is proved.
        """
        if not total.entries:
            return total.carried
        found = [total.plain] if total.entries == 1 or self._plain_deltas_fit(total) else []
        if self.order and total.failure <= self.reserve:
            epsilon = -((-total.renyi - self._overhead) // (NANO // MICRO))
            found.append(Amount(epsilon, self.budget.delta_units))
        within = [one for one in found if one.fits(self.budget)]
        return min(within or found, default=total.plain) + total.carried

    @property
    def _overhead(self) -> int:
        """The epsilon that the conversion adds to the divergence, in units of 1e-9."""
        return self.budget.micro_epsilon * (NANO // MICRO) - self.cap

    def _failure(self, loss: ReleaseLoss) -> int:
        moved = Fraction(0)
        if loss.variation:
            power = math.exp(min(self.budget.epsilon, _LARGEST_EXPONENT)) * (1 + 2.0**-40)
            moved = min(Fraction(1), Fraction(loss.variation) * (1 + Fraction(power)))
        return math.ceil((Fraction(repr(loss.delta)) + moved) * DELTA_UNITS)

    def _plain_deltas_fit(self, total: LossTotal) -> bool:
        return total.plain.delta_units <= self.reserve

    def _plain_fits(self, total: LossTotal) -> bool:
        is_within = total.plain.micro_epsilon <= self.budget.micro_epsilon
        return is_within and self._plain_deltas_fit(total)

    def _renyi_fits(self, total: LossTotal) -> bool:
        return bool(self.order) and total.renyi <= self.cap and total.failure <= self.reserve


@lru_cache(maxsize=1024)
def filter_of(budget: Amount) -> PrivacyFilter:
    """Return the filter of a budget: the order at which most Gaussian releases fit.

    Without a delta there is none, and for a budget so small that no order has a cap above 0.
    """
    reserve, shown = budget.delta_units // 100, Fraction(98 * budget.delta_units, 100)
    none = PrivacyFilter(budget, 0, 0, budget.delta_units)
    if not reserve or not budget.micro_epsilon:
        return none
    epsilon, delta = budget.epsilon, float(shown) / DELTA_UNITS
    order = max(range(2, MOST_ORDER + 1), key=lambda one: (epsilon - overhead(one, delta)) / one)
    cap = _cap(budget, order, shown)
    return PrivacyFilter(budget, order, cap, reserve) if cap > 0 else none


def overhead(order: float, delta: float) -> float:
    """Return what epsilon is above the Renyi divergence of an order, at delta.

    Reference: Canonne, Kamath, Steinke 2020, arXiv 2004.00010, proposition 12.
    """
    return math.log1p(-1 / order) - math.log(delta * order) / (order - 1)


@in_sixty_digits
def _cap(budget: Amount, order: int, shown: Fraction) -> int:
    """Return the largest divergence that converts to epsilon, rounded down."""
    delta = Decimal(shown.numerator) / (Decimal(shown.denominator) * DELTA_UNITS)
    above = (1 - 1 / Decimal(order)).ln() - (delta * order).ln() / (order - 1)
    room = (Decimal(budget.micro_epsilon) / MICRO - above) * NANO - Decimal("1e-20")
    return int(room.to_integral_value(ROUND_FLOOR))
