"""The book of a day: what happened, in whole numbers over all cohorts, and what it cost.

Only scoring reads it. Sums of integers do not depend on the order in which cohorts wake.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor_sim.devices import Account
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.population import DEVICES

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class DayBook:
    """What happened on one day.

    Attributes:
        clicked: Users who clicked each ad.
        reported: Users among those who paid for a report whose clicks on each ad it could tell.
        delivered: Bits of delivered ads, by their value and by what was reported of them.
        held: The tally that the honest reports would have had without noise; kept only where
            there are fakes to be told from them.
        fresh: Reports that were paid for.
        repeated: Reports sent again from memory.
        refused: Users whose budget did not cover a report.
        out_of_contact: Users without a device that could report.
        spent: What was debited, in micro-epsilon.
        fakes: Forged reports.
    """

    clicked: NDArray[np.int64]
    reported: NDArray[np.int64]
    delivered: NDArray[np.int64]
    held: NDArray[np.int64]
    fresh: int = 0
    repeated: int = 0
    refused: int = 0
    out_of_contact: int = 0
    spent: int = 0
    fakes: int = 0

    @classmethod
    def empty(cls, ads: int, cells: int) -> "DayBook":
        """Return the book of a day on which nothing has happened yet.

        Args:
            ads: In the catalogue.
            cells: In a tally.
        """
        clicked, reported = np.zeros((2, ads), dtype=np.int64)
        delivered, held = np.zeros((2, 2), dtype=np.int64), np.zeros(cells, dtype=np.int64)
        return cls(clicked, reported, delivered, held)

    @property
    def honest(self) -> int:
        """Reports that honest devices sent."""
        return self.fresh + self.repeated


def budget_metrics(books: Sequence[DayBook], users: int, proved: float) -> list[Metric]:
    """Tell how much was spent by each day, and how many were refused.

    Args:
        books: One for each day.
        users: In the population.
        proved: What is proved of a report, over what is claimed and debited.
    """
    spent = np.cumsum([book.spent for book in books]) / 1e6 / users
    per_day = [
        metric
        for day, book in enumerate(books)
        for metric in (
            Metric(f"spent.day_{day}", float(spent[day]), n=users),
            Metric(f"spent_proved.day_{day}", float(spent[day] * proved), n=users),
            Metric(f"fresh.day_{day}", float(book.fresh), n=users),
            Metric(f"repeated.day_{day}", float(book.repeated), n=users),
            Metric(f"refused.day_{day}", float(book.refused), n=users),
        )
    ]
    totals = {
        "reports_fresh": sum(book.fresh for book in books),
        "reports_repeated": sum(book.repeated for book in books),
        "reports_refused": sum(book.refused for book in books),
        "users_out_of_contact": sum(book.out_of_contact for book in books),
    }
    return per_day + [Metric(name, float(count), n=users) for name, count in totals.items()]


def exhausted_metrics(
    accounts: Mapping[int, Account], cost: int, joined: Mapping[int, Flags]
) -> list[Metric]:
    """Tell, by the number of devices, how many users can pay no further report.

    Args:
        accounts: Of each cohort.
        cost: Of a report, in micro-epsilon.
        joined: Who of each cohort has paid for all reports at once; a cohort may be missing.
    """
    owners, broke = np.zeros((2, len(DEVICES) + 1), dtype=np.int64)
    for number, account in accounts.items():
        short = account.wallets.left.sum(axis=1) < cost
        if number in joined:
            short &= ~joined[number]
        owners += np.bincount(account.owned, minlength=len(owners))
        broke += np.bincount(account.owned[short], minlength=len(owners))
    return [
        Metric(f"exhausted.devices_{count}", float(broke[count]), n=int(owners[count]))
        for count in range(1, len(owners))
    ]
