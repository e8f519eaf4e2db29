"""Fake devices in click statistics: what they send to push one ad, and what it gains them.

Fakes send beside the honest, in the same frames, within the form that every report has; they
spend nobody's budget. Each sends once a day with coins of its own.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import ClickReport
from noisefloor.ads.delivered_click import DeliveredClick
from noisefloor.ads.memoised_clicks import MemoisedClicks
from noisefloor.adversary.ads.poisoning import (
    Support,
    craft,
    crafted_bias,
    input_bias,
    mimic,
    mimic_bias,
    support_of,
)
from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import Reports
from noisefloor.mechanisms.unary import UnaryEncoding
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.clicks.books import DayBook
from noisefloor_sim.pipelines.clicks.sending import Sent
from noisefloor_sim.scenario.model import Scenario

Clicks = ClickReport | MemoisedClicks | DeliveredClick
"""What guards clicks, in any of its forms."""

Forgery = Literal["maximal", "evasive", "input"]


def day_encoding(mechanism: Clicks) -> UnaryEncoding | None:
    """Return the unary encoding that one day's reports follow, if they are rows of bits.

    Permanent answers and fresh coins together flip each bit of one day's report with one chance.
    """
    if isinstance(mechanism, ClickReport):
        return mechanism.encoding
    if isinstance(mechanism, DeliveredClick):
        return None
    once, again = mechanism.response.permanent, mechanism.response.instant
    lie = (once * (ONE - again) + (ONE - once) * again) // ONE
    return UnaryEncoding(mechanism.ads, ONE - lie, lie, mechanism.ads)


@dataclass(frozen=True, slots=True)
class Forger:
    """Whoever runs the fake devices.

    Attributes:
        mechanism: Whose reports are forged.
        pushed: The ad that is to look clicked.
        share: Of fakes among all devices that report.
        forgery: Write the report that gains most; or one with as many ones as an honest report
            has; or lie about the clicks and report as everybody does.
    """

    mechanism: Clicks
    pushed: int
    share: float
    forgery: Forgery

    @classmethod
    def of(cls, scenario: Scenario, mechanism: Clicks) -> "Forger | None":
        """Return the forger of a scenario, if there is one."""
        threat, ads = scenario.threat, scenario.behaviour.ads
        if not threat.fakes:
            return None
        if threat.pushed_ad >= ads:
            raise BadParameter("threat.pushed_ad", threat.pushed_ad, f"< {ads}, the ads there are")
        return cls(mechanism, threat.pushed_ad, threat.fakes, threat.forgery)

    def join(self, sent: Sent, book: DayBook, source: SeededSource) -> Reports:
        """Return honest reports with forged ones behind them, and write down how many."""
        fakes = round(len(sent.reports) * self.share / (1 - self.share))
        book.held += self.mechanism.tally(sent.inputs)
        book.fakes += fakes
        if not fakes:
            return sent.reports
        return np.concatenate([sent.reports, self.reports(fakes, source)])

    def reports(self, fakes: int, source: SeededSource) -> Reports:
        """Return so many forged reports."""
        encoding = day_encoding(self.mechanism)
        if self.forgery == "maximal":
            return craft(encoding or self.mechanism, self.pushed, fakes)
        if self.forgery == "evasive" and encoding is not None:
            # From reports of somebody who holds the ad: fewer of them are empty than of somebody
            # who holds nothing, and only an empty report has no one to move to the ad.
            own = encoding.randomise(self._holding(fakes, encoding.size), source.child("own"))
            return mimic(own, self.pushed, source.child("moved"))
        return self._honest_lies(fakes, source)

    def _honest_lies(self, fakes: int, source: SeededSource) -> Reports:
        """Report as everybody does, for somebody who clicked the ad and no other.

        One bit has nothing to hide a forgery in: of the reports on a delivered ad that look like
        honest ones, these gain most.
        """
        if isinstance(self.mechanism, DeliveredClick):
            symbols = np.full(fakes, 2 * self.pushed + 1)
            return self.mechanism.randomise(symbols, source)
        vectors = self._holding(fakes, self.mechanism.ads)
        if isinstance(self.mechanism, MemoisedClicks):
            # A fake of one day and one of many have the same law on any one day.
            return self.mechanism.report(
                vectors, self.mechanism.memorise(fakes, source.child("memory")), source
            )
        return self.mechanism.randomise(vectors, source)

    def _holding(self, rows: int, width: int) -> NDArray[np.bool_]:
        """Return rows with a one for the pushed ad, and no other."""
        held = np.zeros((rows, width), dtype=np.bool_)
        held[:, self.pushed] = True
        return held

    def honest_share(self, held: NDArray[np.int64], honest: int) -> float:
        """Return the share of honest reports that hold the pushed ad, as the estimator sees it.

        Args:
            held: The tally of the honest reports without their noise.
            honest: How many there are.
        """
        is_symbol = isinstance(self.mechanism, DeliveredClick)
        place = 2 * self.pushed + 1 if is_symbol else self.pushed
        return self._support.scale * float(held[place]) / honest

    def bias(self, fakes: float, honest: float) -> float:
        """Return by how much the estimated share is expected to rise.

        Args:
            fakes: Their share of all reports.
            honest: The share of honest reports that hold the ad.
        """
        encoding, support = day_encoding(self.mechanism), self._support
        if self.forgery == "maximal":
            return crafted_bias(support, fakes=fakes, honest=honest)
        if self.forgery == "evasive" and encoding is not None:
            # Sampling scales the whole estimate, the honest share in it too.
            part = honest / support.scale
            return support.scale * mimic_bias(encoding, fakes=fakes, honest=part)
        return input_bias(fakes=fakes, honest=honest)

    @property
    def _support(self) -> Support:
        if isinstance(self.mechanism, MemoisedClicks):
            return support_of(day_encoding(self.mechanism))
        return support_of(self.mechanism)
