"""Reports of dropped clicks in the world, and what the server makes of them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import DroppedClicks, normal_quantile
from noisefloor.adversary.audit import PLANTED_FACTOR
from noisefloor.adversary.fit import row_sums
from noisefloor.checks import Floats
from noisefloor.distributions import ONE
from noisefloor.mechanisms import Estimate
from noisefloor.privacy import Claim, FlowEvidence, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.roles import Aggregation
from noisefloor_sim.inspection import (
    DeviceFrame,
    LedgerPrice,
    SymbolFlow,
    SymbolTruth,
    WitnessPairs,
    device_frames,
    draw_pairs,
    most_pairs,
    no_pairs,
    with_bits,
)
from noisefloor_sim.pipelines.api import Metric, NamedClaim, Price
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.scenario import Scenario

DROPPED_REPORT = "dropped-click report"
"""What the account calls a report of dropped clicks."""

UNEVEN = 2.0
"""An ad may lose this many times as many clicks per kept one as a mean ad does: intervals of the
click-through allow for it. Nothing that is reported tells ads apart here, so it is an assumption,
and a wide one: the widest that was seen in a shipped world is 1.1."""

_LEVEL = 0.9875
"""Of each of two intervals whose ratio is to be covered, with one more, at 95 %."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DroppedShare:
    """How many clicks are dropped for each that is kept, over all ads and days.

    Attributes:
        value: As estimated, 0 or more.
        low: Lower end of its interval.
        high: Upper end; infinite where the kept clicks cannot be distinguished from none.
        n: Reports behind it.
    """

    value: float
    low: float
    high: float
    n: int

    @property
    def factor(self) -> float:
        """All clicks over the kept ones."""
        return 1 + self.value

    @property
    def most_factor(self) -> float:
        """The same, at most, for any one ad."""
        return 1 + UNEVEN * self.high

    @classmethod
    def of(
        cls, counter: DroppedClicks, tally: NDArray[np.int64], n: int, kept: Estimate
    ) -> "DroppedShare":
        """Divide the dropped clicks of a mean user by the kept ones.

        Args:
            counter: What protects the reports of dropped clicks.
            tally: Of these reports.
            n: How many.
            kept: The kept clicks of a mean user.
        """
        mean = float(kept.value[0])
        reach = normal_quantile(_LEVEL) * float(kept.standard_error[0])
        low, high = (float(end[0]) / n for end in counter.interval(tally, n, level=_LEVEL))
        value = float(counter.estimate(tally, n).value[0])
        return cls(
            min(max(0.0, value / mean), float(counter.most)) if mean > 0 else 0.0,
            low / (mean + reach) if mean + reach > 0 else 0.0,
            high / (mean - reach) if mean > reach else math.inf,
            n,
        )


@dataclass(slots=True)
class DroppedReporting:
    """Reports of dropped clicks in one world.

    Attributes:
        scenario: At one point of a sweep.
        mechanism: What protects them.
        share: Of users who tell of dropped clicks on a day, instead of their clicks.
        source: Of the pipeline's random numbers.
        flow: What is declared of the reports.
        cost: Of a report, in micro-epsilon.
    """

    scenario: Scenario
    mechanism: DroppedClicks
    share: float
    source: SeededSource
    flow: SymbolFlow = field(init=False)
    cost: int = field(init=False)

    def __post_init__(self) -> None:
        self.cost = Amount.cost(self.mechanism.claimed).micro_epsilon
        price = LedgerPrice(DROPPED_REPORT, self.cost)
        larger = replace(self.mechanism, epsilon=PLANTED_FACTOR * self.mechanism.epsilon)
        clicks = range(self.scenario.ad_behaviour.ads + 1)
        declared, planted = (_table(one, clicks) for one in (self.mechanism, larger))
        days = range(self.scenario.days)
        self.flow = SymbolFlow(self.mechanism.kind, days, declared, planted, price)

    def chosen(self, users: int, cohort: int, day: int) -> Flags:
        """Return who of a cohort tells of dropped clicks on a day, whatever they clicked."""
        draws = self.source.child("who-counts", cohort, day).generator()
        return np.asarray(draws.random(users) < self.share)

    def frames(
        self, cohort: int, day: int, bits: Flags, stats: ClickDayStatistics
    ) -> Iterator[DeviceFrame]:
        """Send the reports of those who paid.

        Args:
            cohort: Its number.
            day: Of the reports.
            bits: What they clicked, one row of ads per user.
            stats: Where they are counted.
        """
        stats.counted += len(bits)
        stats.spent += len(bits) * self.cost
        stats.see_reported(bits)
        if not len(bits):
            return
        clicks = row_sums(bits)
        truth = SymbolTruth.of(clicks, self._witnesses(cohort, day, clicks))
        reports = self.mechanism.randomise(truth.values, self.source.child("dropped", cohort, day))
        yield from device_frames(
            self.flow.name,
            cohort,
            self.flow.kind,
            day,
            reports,
            self.source.child("dropped-frame", cohort, day),
            truth=truth,
            paid=np.ones(len(reports), dtype=np.bool_),
        )

    def _witnesses(self, cohort: int, day: int, clicks: NDArray[np.int64]) -> WitnessPairs:
        """Draw pairs of whom a different number of clicks is dropped."""
        most = most_pairs(self.scenario, cohort)
        if not most:
            return no_pairs()
        chance = self.source.child("dropped-witness", cohort, day).generator()
        first, second = draw_pairs(np.arange(len(clicks)), most, chance)
        excess = self.mechanism.excess(clicks)
        suits = excess[first] != excess[second]
        return with_bits(first[suits][:most], second[suits][:most], chance)

    def released(self, aggregator: Aggregation) -> tuple[NDArray[np.int64], list[int]]:
        """Return the tally of all days, and the reports of each day."""
        days = [aggregator.release(self.flow.name, day) for day in self.flow.epochs]
        return np.sum([tally for tally, _ in days], axis=0), [n for _, n in days]

    def price(self) -> Price:
        """Return the guarantees of one report."""
        return Price(self.mechanism.claimed, self.mechanism.guarantee(Neighbours.USER))

    def claim(self) -> NamedClaim:
        """Return what is claimed of a report; nothing is audited yet."""
        price = self.price()
        return NamedClaim("clicks-dropped", Claim(price.claimed, price.proved))

    def audited(self, evidence: Mapping[str, FlowEvidence], *, is_audited: bool) -> NamedClaim:
        """Return the claim with what was seen of the reports and what witnesses prove."""
        named = self.claim()
        claim = replace(named.claim, evidence=(evidence[self.flow.name],))
        if is_audited:
            bounds = self.flow.bounds(self.source.child("dropped-planted").generator())
            claim = replace(
                claim,
                audited=bounds["audited"],
                null=bounds["null"],
                planted=bounds["planted"],
            )
        return replace(named, claim=claim)


def dropped_metrics(
    share: DroppedShare, counter: DroppedClicks, statistics: Sequence[ClickDayStatistics]
) -> list[Metric]:
    """Tell how many clicks are dropped for each kept one, and whether its interval covers it."""
    kept = math.fsum(float(stats.kept(counter.limit).sum()) for stats in statistics)
    truth = math.fsum(stats.dropped(counter) for stats in statistics) / kept if kept else 0.0
    covers = share.low <= truth <= share.high
    return [
        Metric("dropped_per_kept", share.value, share.low, share.high, share.n),
        Metric("dropped_per_kept_coverage", float(covers), n=1),
    ]


def _table(mechanism: DroppedClicks, clicks: range) -> Floats:
    """Return P(report | clicks), one row for each number of clicks."""
    excess = np.array([min(max(count - mechanism.limit, 0), mechanism.most) for count in clicks])
    lie = mechanism.response.flip / ONE
    ones = lie + (1 - 2 * lie) * excess / mechanism.most
    return np.stack([1 - ones, ones], axis=1)
