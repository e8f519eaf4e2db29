"""Whether the noise of the tables costs no more than is proved, claimed and charged.

Everything is computed anew from the noise multipliers of a plan, and not by the accountant that
planned it: Gaussian noise of several tables is like that of one whose ``mu`` squared is the sum of
all ``1 / multiplier`` squared, and the delta of that is a closed form (Balle and Wang 2018). A
document that takes the place of another moves twice as much; since a world has one relation, the
planner is tried by the other one as well.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from noisefloor.accounting import NANO, LedgerEntry, gaussian_delta
from noisefloor.errors import BadParameter
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.publication.text.ngrams import NgramPlan

_ROUNDING = 1e-6
"""Relatively: noise is found by a search that stops this near, and whole units are charged."""

_SWAP, _REMOVAL = Neighbours.RECORD_SUBSTITUTE, Neighbours.RECORD_ADD_REMOVE


def gaussian_mean(plan: NgramPlan, neighbours: Neighbours) -> float:
    """Return the ``mu`` of Gaussian differential privacy of all tables together."""
    moved = 2.0 if neighbours is _SWAP else 1.0
    return moved * math.sqrt(math.fsum(1 / one**2 for one in plan.multipliers.values()))


def plan_faults(plan: TextNgramsPlan) -> Iterator[str]:
    """Say where less is proved or claimed of a plan than its noise costs.

    Args:
        plan: Of a release of which something is proved.
    """
    cost = plan.spec.cost
    yield from _faults("proved", plan.counting, plan.proved)
    yield from _faults("claimed", plan.counting, cost)
    other = replace(cost, neighbours=_REMOVAL if cost.neighbours is _SWAP else _SWAP)
    shape = plan.counting
    try:
        by_other = NgramPlan.of(other, shape.classes, shape.longest, shape.vocabulary)
    except BadParameter:
        return  # a cost that cannot be met by that relation is refused, and nothing is planned
    yield from _faults("planned", by_other, other)


def _faults(said: str, plan: NgramPlan, guarantee: Guarantee) -> Iterator[str]:
    mean = gaussian_mean(plan, guarantee.neighbours)
    delta = float(gaussian_delta(guarantee.epsilon, mean))
    if delta > guarantee.delta * (1 + _ROUNDING):
        yield (
            f"epsilon {guarantee.epsilon:.4g} is {said} for {guarantee.neighbours.value} at delta "
            f"{guarantee.delta:.3g}, and its noise has delta {delta:.3g}"
        )


def charge_faults(plan: TextNgramsPlan, entry: LedgerEntry) -> Iterator[str]:
    """Say where the ledger's filter was charged less than the noise costs.

    Of order ``a``, Gaussian noise has a Renyi divergence of ``a mu**2 / 2``.
    """
    if not entry.order:
        return
    mean = gaussian_mean(plan.counting, plan.spec.cost.neighbours)
    least = entry.order * mean**2 / 2
    if entry.renyi / NANO < least * (1 - _ROUNDING):
        yield (
            f"a Renyi divergence of {entry.renyi / NANO:.6f} was charged, and the noise of "
            f"all tables costs {least:.6f}"
        )
