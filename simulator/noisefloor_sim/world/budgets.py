"""A user's devices share one budget, and nobody may spend it twice.

Each device holds a share of the user's budget. Devices in contact on a day pool what they hold;
a device without contact knows of nobody and is known to nobody. So whatever the spells of silence,
the shares never add up to more than the budget, and no device needs to be asked for permission.

On a day with contact one device reports: the first of those in contact. It reports what they have
seen; clicks on silent devices stay there and are not reported.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count

Micro = NDArray[np.int64]
Counts = NDArray[np.int64]


class Exhausted(Enum):
    """What a device does when the budget does not cover a fresh report."""

    REFUSE = "refuse"
    MEMORY = "memory"  # send the last report again: post-processing, free


@dataclass(frozen=True, slots=True)
class DeviceBudgets:
    """What is left to each user's devices, in integer micro-epsilon.

    Attributes:
        left: One row per user, one column per device.
    """

    left: Micro

    @classmethod
    def open(cls, owns: NDArray[np.bool_], budget: int) -> "DeviceBudgets":
        """Share each user's budget evenly among the devices they own; the first takes the rest."""
        check_count(budget, "budget", least=0, most=1 << 60)
        count = owns.sum(axis=1)
        left = np.where(owns, (budget // count)[:, None], 0).astype(np.int64)
        first = owns.argmax(axis=1)
        left[np.arange(len(left)), first] += budget - left.sum(axis=1)
        return cls(left)

    def spend(self, contact: NDArray[np.bool_], cost: int, requested: int | Counts = 1) -> Counts:
        """Debit the cost as often as it is wanted and covered; return how often, for each user.

        The first device in contact pays as far as it can, then the next; what the pool does not
        cover is not spent at all.
        """
        check_count(cost, "cost", least=0, most=1 << 60)
        pool = np.where(contact, self.left, 0)
        covered = pool.sum(axis=1) // cost if cost else np.iinfo(np.int64).max
        granted = np.where(contact.any(axis=1), np.minimum(requested, covered), 0)
        due = granted * cost
        for device in range(self.left.shape[1]):
            part = np.minimum(pool[:, device], due)
            self.left[:, device] -= part
            due -= part
        return granted


@dataclass(frozen=True, slots=True)
class SpendRecord:
    """What one flow asked of one user's budget on one day."""

    day: int
    what: str
    granted: int
    refused: int
    micro: int


@dataclass(slots=True)
class BudgetAccount:
    """The budgets of a cohort's users: every flow of every pipeline spends here.

    Attributes:
        device_budgets: What is left.
        owned: How many devices each user has.
        budget: What each user had, in micro-epsilon.
        first: The number of the first user in the population.
        spent: What each flow has taken from all users together, in micro-epsilon.
        releases: How many releases each user has paid for, by flow.
        watched: The user whose spends are written down, if any.
        lines: What was written down.
    """

    device_budgets: DeviceBudgets
    owned: NDArray[np.int64]
    budget: int = 0
    first: int = 0
    spent: dict[str, int] = field(default_factory=dict)
    releases: dict[str, NDArray[np.uint32]] = field(default_factory=dict)
    watched: int | None = None
    lines: list[SpendRecord] = field(default_factory=list)

    @classmethod
    def open(
        cls, owns: NDArray[np.bool_], budget: int, watched: int | None = None, *, first: int = 0
    ) -> "BudgetAccount":
        """Open the account of a cohort, whose first user has a number in the population."""
        opened = DeviceBudgets.open(owns, budget)
        return cls(opened, owns.sum(axis=1), budget, first, watched=watched)

    @property
    def debited(self) -> Micro:
        """What each user has been debited, over all flows and devices, in micro-epsilon."""
        return np.asarray(self.budget - self.device_budgets.left.sum(axis=1))

    def spend(
        self,
        day: int,
        what: str,
        contact: NDArray[np.bool_],
        cost: int,
        requested: int | Counts = 1,
    ) -> Counts:
        """Debit a flow's cost as often as it is wanted and covered; return how often."""
        granted = self.device_budgets.spend(contact, cost, requested)
        self.spent[what] = self.spent.get(what, 0) + int(granted.sum()) * cost
        if what not in self.releases:
            self.releases[what] = np.zeros(len(granted), dtype=np.uint32)
        self.releases[what] += granted.astype(np.uint32)
        if self.watched is not None and contact[self.watched].any():
            got = int(granted[self.watched])
            asked = int(np.broadcast_to(requested, granted.shape)[self.watched])
            if asked:
                self.lines.append(SpendRecord(day, what, got, asked - got, got * cost))
        return granted


def in_contact(
    owns: NDArray[np.bool_], silent: NDArray[np.bool_], present: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which devices are in contact: owned, not silent, of a user who is still here."""
    return owns & ~silent & present[:, None]
