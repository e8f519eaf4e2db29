"""What users have spent, over all cohorts: the heaviest user, the mean user, and all together.

Every figure is an integer sum or the largest of values of single users, and of users who are equal
the one with the lowest number counts. So nothing depends on the order of cohorts.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor_sim.world.budgets import BudgetAccount

Epsilons = Mapping[str, float]
"""The epsilon that is proved of one release, by flow; infinite where nothing is proved."""


@dataclass(frozen=True, slots=True)
class UserSpending:
    """What one user has spent.

    Attributes:
        user: The number in the population.
        debited: Over all flows, in micro-epsilon.
        releases: How many were paid for, by flow; flows without any are left out.
    """

    user: int
    debited: int
    releases: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SpendingSummary:
    """What all users have spent.

    Attributes:
        users: How many there are.
        debited: Of all users together, in micro-epsilon.
        releases: Of all users together, by flow.
        heaviest: The user of whose releases the largest epsilon is proved.
        most_debited: The user who was debited most.
    """

    users: int
    debited: int
    releases: Mapping[str, int]
    heaviest: UserSpending
    most_debited: UserSpending


def summarise(accounts: Iterable[BudgetAccount], proved: Epsilons) -> SpendingSummary:
    """Return what the users of some cohorts have spent.

    Args:
        accounts: At least one, in any order.
        proved: Of one release; a flow that is missing has no guarantee.
    """
    listed = sorted(accounts, key=lambda account: account.first)
    flows = sorted({flow for account in listed for flow in account.releases})
    return SpendingSummary(
        sum(len(account.owned) for account in listed),
        sum(int(account.debited.sum()) for account in listed),
        {flow: sum(_total(account, flow) for account in listed) for flow in flows},
        _most([(account, _proved(account, proved)) for account in listed]),
        _most([(account, account.debited.astype(np.float64)) for account in listed]),
    )


def _total(account: BudgetAccount, flow: str) -> int:
    counts = account.releases.get(flow)
    return 0 if counts is None else int(counts.sum(dtype=np.int64))


def _proved(account: BudgetAccount, proved: Epsilons) -> NDArray[np.float64]:
    """Return the epsilon of each user: it orders users, and is not rounded upwards."""
    total = np.zeros(len(account.owned))
    for flow, counts in sorted(account.releases.items()):
        epsilon = proved.get(flow, math.inf)
        total += np.where(counts > 0, epsilon, 0.0) if math.isinf(epsilon) else counts * epsilon
    return total


def _most(scored: list[tuple[BudgetAccount, NDArray[np.float64]]]) -> UserSpending:
    """Return the user with the largest value; of several the first, in order of their numbers."""
    account, values = max(scored, key=lambda one: one[1].max())
    row = int(values.argmax())
    counts = {flow: int(found[row]) for flow, found in sorted(account.releases.items())}
    releases = {flow: count for flow, count in counts.items() if count}
    return UserSpending(account.first + row, int(account.debited[row]), releases)
