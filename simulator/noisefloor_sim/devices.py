"""A user's devices share one budget, and nobody may spend it twice.

Each device holds a share of the user's budget. Devices in contact on a day pool what they hold;
a device without contact knows of nobody and is known to nobody. So whatever the spells of silence,
the shares never add up to more than the budget, and no device needs to be asked for permission.

On a day with contact one device reports: the first of those in contact. It reports what they have
seen; clicks on silent devices stay there and are not reported.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count

Micro = NDArray[np.int64]


class Exhausted(Enum):
    """What a device does when the budget does not cover a fresh report."""

    REFUSE = "refuse"
    MEMORY = "memory"  # send the last report again: post-processing, free


@dataclass(frozen=True, slots=True)
class Wallets:
    """What is left to each user's devices, in integer micro-epsilon.

    Attributes:
        left: One row per user, one column per device.
    """

    left: Micro

    @classmethod
    def open(cls, owns: NDArray[np.bool_], budget: int) -> "Wallets":
        """Share each user's budget evenly among the devices they own; the first takes the rest."""
        check_count(budget, "budget", least=0, most=1 << 60)
        count = owns.sum(axis=1)
        left = np.where(owns, (budget // count)[:, None], 0).astype(np.int64)
        first = owns.argmax(axis=1)
        left[np.arange(len(left)), first] += budget - left.sum(axis=1)
        return cls(left)

    def spend(self, contact: NDArray[np.bool_], cost: int) -> NDArray[np.bool_]:
        """Debit the cost where the devices in contact hold enough; return who paid.

        The first device in contact pays as far as it can, then the next; nothing is spent where
        the pool is too small.
        """
        pool = np.where(contact, self.left, 0)
        paid: NDArray[np.bool_] = np.asarray(contact.any(axis=1) & (pool.sum(axis=1) >= cost))
        due = np.where(paid, cost, 0)
        for device in range(self.left.shape[1]):
            part = np.minimum(pool[:, device], due)
            self.left[:, device] -= part
            due -= part
        return paid


def in_contact(
    owns: NDArray[np.bool_], silent: NDArray[np.bool_], present: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which devices are in contact: owned, not silent, of a user who is still here."""
    return owns & ~silent & present[:, None]
