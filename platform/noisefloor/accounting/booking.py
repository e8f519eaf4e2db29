"""What a spend becomes before it is booked, in any ledger: whole units, or a refusal."""

from collections.abc import Callable

from noisefloor.accounting.composition import check_alike
from noisefloor.accounting.entry import Amount, Entry, proved_amount
from noisefloor.checks import check_count
from noisefloor.errors import BudgetExceeded, Shortage
from noisefloor.privacy import Guarantee

Left = Callable[[str], Amount]
"""Says what is left to a subject."""


def debit_of(unit: Guarantee, subject: str, cost: Guarantee, count: int, left: Left) -> Amount:
    """Return what a cost takes in whole units; an infinite one is refused.

    Args:
        unit: Nothing, under the relation and model of the ledger.
        subject: Whose budget.
        cost: Of one release.
        count: How many times.
        left: Asked for the text of a refusal only.
    """
    check_count(count, "count")
    check_alike(unit, cost)
    if not cost.is_finite:
        short = Shortage("epsilon", cost.epsilon, left(subject).epsilon)
        raise BudgetExceeded(subject, [short], cost.reason)
    return Amount.cost(cost, count)


def entry_of(
    unit: Guarantee,
    spend_id: str,
    subject: str,
    release: str,
    cost: Guarantee,
    proved: Guarantee | None,
    count: int,
    left: Left,
) -> Entry:
    """Return the entry of a spend; whether the budget covers it is the ledger's to say."""
    debited = debit_of(unit, subject, cost, count, left)
    check_alike(unit, proved or cost)
    amount, reason = proved_amount(proved or cost, count)
    return Entry(spend_id, subject, release, count, debited, amount, reason)
