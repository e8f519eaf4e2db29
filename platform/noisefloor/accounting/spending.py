"""What a spend becomes before it is booked, in any ledger: whole units, or a refusal."""

import json
from dataclasses import dataclass, replace
from fractions import Fraction

from noisefloor.accounting.accountant import LaplaceNoise
from noisefloor.accounting.composition import check_compatible, float_up
from noisefloor.accounting.entries import (
    DELTA_UNITS,
    MICRO,
    Amount,
    LedgerEntry,
    proved_amount,
)
from noisefloor.accounting.privacy_filter import LossTotal, PrivacyFilter, filter_of
from noisefloor.accounting.release_loss import ReleaseLoss
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter, BadSnapshot, BudgetExceeded, Shortage
from noisefloor.privacy import Guarantee, Neighbours, TrustModel

LARGEST_BUDGET = 1e9
FORMAT = 2
"""Of terms, chained records and snapshots. Format 1 had no filter and no chain."""

MOST_TEXT_BYTES = 1024


@dataclass(frozen=True, slots=True)
class LedgerTerms:
    """Each subject's budget, and the relation and model of everything that is spent from it.

    Attributes:
        budget: In whole units.
        neighbours: The relation.
        model: The model.
    """

    budget: Amount
    neighbours: Neighbours
    model: TrustModel = TrustModel.LOCAL

    def __post_init__(self) -> None:
        for name, most in (
            ("micro_epsilon", LARGEST_BUDGET * MICRO),
            ("delta_units", DELTA_UNITS),
        ):
            if not 0 <= getattr(self.budget, name) <= most:
                raise BadParameter(name, getattr(self.budget, name), f"in [0, {most:g}]")

    @classmethod
    def of(
        cls,
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbours: Neighbours,
        model: TrustModel = TrustModel.LOCAL,
    ) -> "LedgerTerms":
        """Take a budget as it is written; it is rounded down to whole units."""
        if not 0 <= check_finite(epsilon, "epsilon") <= LARGEST_BUDGET:
            raise BadParameter("epsilon", epsilon, f"in [0, {LARGEST_BUDGET:g}]")
        if not 0 <= check_finite(delta, "delta") <= 1:
            raise BadParameter("delta", delta, "in [0, 1]")
        return cls(Amount.budget(epsilon, delta), neighbours, model)

    @classmethod
    def read(cls, content: str) -> "LedgerTerms":
        """Read what ``content`` wrote; ValueError, TypeError or BadParameter for anything else."""
        version, budget, neighbours, model = json.loads(content)
        if version != FORMAT:
            raise ValueError(f"terms of format {version}, not {FORMAT}")
        return cls(Amount(*budget), Neighbours(neighbours), TrustModel(model))

    @property
    def content(self) -> bytes:
        """The terms as bytes: the same bytes for the same terms."""
        return self.of_format(FORMAT)

    def of_format(self, version: int) -> bytes:
        """Write the terms as a format did."""
        budget = [self.budget.micro_epsilon, self.budget.delta_units]
        fields = [version, budget, self.neighbours.value, self.model.value]
        return json.dumps(fields).encode("ascii")

    def filter(self, total: LossTotal) -> PrivacyFilter:
        """Return the filter of one subject, of what was not carried over."""
        return filter_of(total.carried.left_of(self.budget))

    def spent(self, total: LossTotal) -> Amount:
        """Return the smallest (epsilon, delta) that is proved of a total."""
        return self.filter(total).spent(total)

    def guarantee(self, total: LossTotal) -> Guarantee:
        """Return the same as a guarantee, rounded upwards."""
        spent = self.spent(total)
        epsilon = float_up(Fraction(spent.micro_epsilon, MICRO))
        delta = min(1.0, float_up(Fraction(spent.delta_units, DELTA_UNITS)))
        return Guarantee(epsilon, self.neighbours, delta=delta, model=self.model)


@dataclass(frozen=True, slots=True)
class Spend:
    """A request to a ledger.

    Attributes:
        subject: Whose budget.
        spend_id: Names this spend in the whole ledger; a retry comes with the same one.
        cost: What one release is claimed to cost.
        release: What the budget goes into.
        proved: What was proved of one release, which may be infinite; the cost if not given.
        count: How many times, at least 1.
        loss: What is known of the loss of one release; its cost if nothing more is.
    """

    subject: str
    spend_id: str
    cost: Guarantee
    release: str
    proved: Guarantee | None = None
    count: int = 1
    loss: ReleaseLoss | None = None

    def __post_init__(self) -> None:
        for name in ("subject", "spend_id", "release"):
            check_text(getattr(self, name), name)
        check_count(self.count, "count")
        if self.loss is not None and self.cost.epsilon and not self.loss.is_lossy:
            raise BadParameter("loss", "<loss>", "with noise or an epsilon: the cost is above 0")
        if self.loss is not None and not self.cost.delta and _needs_delta(self.loss):
            raise BadParameter("delta", 0.0, "> 0: Gaussian noise guarantees nothing without one")

    def entry(self, terms: LedgerTerms, before: LossTotal) -> LedgerEntry:
        """Return what would be written down; an infinite cost is refused."""
        unit = Guarantee(0.0, terms.neighbours, model=terms.model)
        check_compatible(unit, self.cost)
        check_compatible(unit, self.proved or self.cost)
        if not self.cost.is_finite:
            left = terms.spent(before).left_of(terms.budget).epsilon
            short = [Shortage("epsilon", self.cost.epsilon, left)]
            raise BudgetExceeded(self.subject, short, self.cost.reason)
        amount, reason = proved_amount(self.proved or self.cost, self.count)
        granting = terms.filter(before)
        renyi, failure = granting.cost(self.loss or ReleaseLoss.of(self.cost), terms.neighbours)
        return LedgerEntry(
            self.spend_id,
            self.subject,
            self.release,
            self.count,
            Amount.cost(self.cost, self.count),
            amount,
            reason,
            order=granting.order,
            renyi=renyi * self.count,
            failure=failure * self.count,
        )


@dataclass(frozen=True, slots=True)
class SpendReceipt:
    """What a ledger wrote down of a spend; it never changes.

    Attributes:
        position: Of the entry among those of its subject, from 1.
        head: Hash of the chained record, in hex; empty where a ledger has no chain.
        at: When it was spent, as ``2026-11-18T11:40:00Z``; empty where a ledger has no clock.
        debited: What it cost.
        total: What is proved of all spends of the subject up to and including this one.
    """

    position: int
    head: str
    at: str
    debited: Amount
    total: Guarantee


def added(before: LossTotal, entry: LedgerEntry) -> LossTotal:
    """Return a total with one more entry."""
    if entry.is_carried:
        return before.carrying(entry.debited)
    return before.plus(entry.debited, entry.renyi, entry.failure)


def granted(terms: LedgerTerms, before: LossTotal, entry: LedgerEntry) -> LossTotal:
    """Return the total with an entry, or raise BudgetExceeded that names what ran out."""
    total = added(before, entry)
    granting = terms.filter(before)
    if not granting.admits(total):
        raise BudgetExceeded(entry.subject, granting.shortages(total, before))
    return total


def carried(entry: LedgerEntry) -> LedgerEntry:
    """Return an entry of format 1 as this format carries it over."""
    return replace(entry, order=0, renyi=0, failure=0, is_carried=True)


def is_retry(entry: LedgerEntry, known: LedgerEntry) -> bool:
    """Return whether a request repeats a spend that is booked.

    Format 1 wrote nothing down for a filter: of a spend that was carried over, a retry repeats
    what format 1 wrote.
    """
    return known == (carried(entry) if known.is_carried else entry)


def misplaced(terms: LedgerTerms, before: LossTotal, entry: LedgerEntry) -> str:
    """Say why an entry cannot follow a total; empty if it can.

    The filter is made of what is left by everything that was carried over, and adds up
    divergences of one order: what is carried comes before all else.
    """
    if entry.is_carried:
        return "is carried over from format 1 and comes after others" if before.entries else ""
    order = terms.filter(before).order
    return "" if entry.order == order else f"is not of Renyi order {order}"


def followed(terms: LedgerTerms, before: LossTotal, entry: LedgerEntry) -> LossTotal:
    """Return a total with an entry that was spent elsewhere; BadSnapshot if it cannot follow."""
    rule = misplaced(terms, before, entry)
    if rule:
        raise BadSnapshot(f"Ledger snapshot: entry {entry.spend_id} of {entry.subject} {rule}.")
    return added(before, entry)


def check_text(value: str, name: str) -> str:
    """Return a text of at least one sign that a server can store; it is never shown."""
    if not isinstance(value, str) or not value:
        raise BadParameter(name, type(value).__name__, "to be a text of at least one sign")
    try:
        is_short = len(value.encode()) <= MOST_TEXT_BYTES
    except UnicodeEncodeError:
        is_short = False
    if not is_short:
        raise BadParameter(name, "<text>", f"to be at most {MOST_TEXT_BYTES} bytes of UTF-8")
    return value


def _needs_delta(loss: ReleaseLoss) -> bool:
    return not all(isinstance(event, LaplaceNoise) for event in loss.events)
