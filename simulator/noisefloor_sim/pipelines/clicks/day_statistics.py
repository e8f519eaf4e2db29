"""The book of a day: what happened, in whole numbers over all cohorts, and what it cost.

Only scoring reads it. Sums of integers do not depend on the order in which cohorts wake.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import DroppedClicks
from noisefloor.adversary.fit import row_sums
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.world import DEVICES, BudgetAccount

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class ClickDayStatistics:
    """What happened on one day.

    Attributes:
        clicked: Users who clicked each ad.
        reported: Users among those who paid for a report whose clicks on each ad it could tell.
        by_clicks: Of those the ones with several clicks: by how many, users who clicked each ad.
        delivered: Bits of delivered ads, by their value and by what was reported of them.
        true_tally: The tally that the honest reports would have had without noise; kept only where
            there are fakes to be distinguished from them.
        fresh: Click reports that were paid for.
        repeated: Reports sent again from memory.
        counted: Reports that were paid for and tell how many clicks are dropped.
        refused: Users whose budget did not cover a report.
        out_of_contact: Users without a device that could report.
        spent: What was debited, in micro-epsilon.
        fakes: Forged reports.
    """

    clicked: NDArray[np.int64]
    reported: NDArray[np.int64]
    delivered: NDArray[np.int64]
    true_tally: NDArray[np.int64]
    fresh: int = 0
    repeated: int = 0
    counted: int = 0
    refused: int = 0
    out_of_contact: int = 0
    spent: int = 0
    fakes: int = 0
    by_clicks: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def empty(cls, ads: int, cells: int) -> "ClickDayStatistics":
        """Return the book of a day on which nothing has happened yet.

        Args:
            ads: In the catalogue.
            cells: In a tally.
        """
        clicked, reported = np.zeros((2, ads), dtype=np.int64)
        delivered, true_tally = np.zeros((2, 2), dtype=np.int64), np.zeros(cells, dtype=np.int64)
        return cls(clicked, reported, delivered, true_tally)

    def see_reported(self, bits: Flags) -> None:
        """Count what users who paid have clicked; one row of ads per user."""
        self.reported += bits.sum(axis=0)
        clicks = row_sums(bits)
        for count in np.unique(clicks[clicks > 1]).tolist():
            some = bits[clicks == count].sum(axis=0)
            self.by_clicks[count] = self.by_clicks.get(count, 0) + some

    def kept(self, limit: int | None) -> NDArray[np.float64]:
        """Return the kept clicks on each ad: of k clicks of a user each counts min(1, limit / k).

        This is what reports with this limit count in the mean over their own random choices.
        """
        kept = self.reported.astype(np.float64)
        for count, users in sorted(self.by_clicks.items()):
            if limit is not None and count > limit:
                kept -= (1 - limit / count) * users
        return kept

    def dropped(self, mechanism: DroppedClicks) -> float:
        """Return how many clicks are dropped, as far as reports of that count them."""
        return math.fsum(
            int(mechanism.excess(count)) * int(users.sum()) / count
            for count, users in sorted(self.by_clicks.items())
        )

    @property
    def honest(self) -> int:
        """Reports that honest devices sent."""
        return self.fresh + self.repeated


def budget_metrics(
    statistics: Sequence[ClickDayStatistics], users: int, proved: float
) -> list[Metric]:
    """Tell how much was spent by each day, and how many were refused.

    Args:
        statistics: One for each day.
        users: In the population.
        proved: What is proved of a report, over what is claimed and debited.
    """
    spent = np.cumsum([stats.spent for stats in statistics]) / 1e6 / users
    per_day = [
        metric
        for day, stats in enumerate(statistics)
        for metric in (
            Metric(f"spent.day_{day}", float(spent[day]), n=users),
            Metric(f"spent_proved.day_{day}", float(spent[day] * proved), n=users),
            Metric(f"fresh.day_{day}", float(stats.fresh + stats.counted), n=users),
            Metric(f"repeated.day_{day}", float(stats.repeated), n=users),
            Metric(f"refused.day_{day}", float(stats.refused), n=users),
        )
    ]
    totals = {
        "reports_fresh": sum(stats.fresh + stats.counted for stats in statistics),
        "reports_counted": sum(stats.counted for stats in statistics),
        "reports_repeated": sum(stats.repeated for stats in statistics),
        "reports_refused": sum(stats.refused for stats in statistics),
        "users_out_of_contact": sum(stats.out_of_contact for stats in statistics),
    }
    return per_day + [Metric(name, float(count), n=users) for name, count in totals.items()]


def exhausted_metrics(
    accounts: Mapping[int, BudgetAccount], cost: int, joined: Mapping[int, Flags]
) -> list[Metric]:
    """Tell, by the number of devices, how many users can pay no further report.

    Args:
        accounts: Of each cohort.
        cost: Of a report, in micro-epsilon.
        joined: Who of each cohort has paid for all reports at once; a cohort may be missing.
    """
    owners, broke = np.zeros((2, len(DEVICES) + 1), dtype=np.int64)
    for number, account in accounts.items():
        short = account.device_budgets.left.sum(axis=1) < cost
        if number in joined:
            short &= ~joined[number]
        owners += np.bincount(account.owned, minlength=len(owners))
        broke += np.bincount(account.owned[short], minlength=len(owners))
    return [
        Metric(f"exhausted.devices_{count}", float(broke[count]), n=int(owners[count]))
        for count in range(1, len(owners))
    ]
