"""What honest devices send: fresh reports and, from memory, the last one again.

A report comes with what it was made of, which no frame carries: scoring wants to know what the
reports would say without their noise.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.mechanisms import Reports
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.world import Exhausted

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SentReports:
    """Reports, and what each was made of once clicks beyond a cap were dropped."""

    reports: Reports
    inputs: Reports


@dataclass(frozen=True, slots=True)
class LastReports:
    """The last report of each user of a cohort, and who has sent one."""

    sent: SentReports
    has: Flags

    @classmethod
    def none(cls, users: int, like: SentReports) -> "LastReports":
        """Return the memory of users who have sent nothing yet."""
        rows = [
            np.zeros((users, *some.shape[1:]), dtype=some.dtype)
            for some in (like.reports, like.inputs)
        ]
        return cls(SentReports(*rows), np.zeros(users, dtype=np.bool_))

    def keep(self, who: Flags, fresh: SentReports) -> None:
        """Remember the reports of some users."""
        self.sent.reports[who] = fresh.reports
        self.sent.inputs[who] = fresh.inputs
        self.has[who] = True


@dataclass(slots=True)
class ReportCache:
    """What devices do without budget: stay silent, or send their last report again."""

    policy: Exhausted
    last: dict[int, LastReports] = field(default_factory=dict)

    def complete(
        self, cohort: int, asked: Flags, paid: Flags, fresh: SentReports, stats: ClickDayStatistics
    ) -> tuple[SentReports, Flags]:
        """Return fresh reports with those that exhausted devices send again, and who does.

        Args:
            cohort: Its number.
            asked: Users who have something to report.
            paid: Users who paid for a fresh report.
            fresh: The reports of those.
            stats: Where repeated and refused reports are counted.
        """
        without = asked & ~paid
        if self.policy is Exhausted.REFUSE:
            stats.refused += int(np.count_nonzero(without))
            return fresh, np.zeros_like(paid)
        if cohort not in self.last:
            self.last[cohort] = LastReports.none(len(paid), fresh)
        last = self.last[cohort]
        last.keep(paid, fresh)
        again = without & last.has
        stats.repeated += int(np.count_nonzero(again))
        stats.refused += int(np.count_nonzero(without & ~last.has))
        sent = SentReports(
            np.concatenate([fresh.reports, last.sent.reports[again]]),
            np.concatenate([fresh.inputs, last.sent.inputs[again]]),
        )
        return sent, again
