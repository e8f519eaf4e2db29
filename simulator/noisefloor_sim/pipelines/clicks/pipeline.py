"""The click pipeline: devices report their day's clicks as one protected vector."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount, sequential
from noisefloor.ads.clicks import ClickReport, MemoisedClicks, clicks_kind
from noisefloor.adversary.fit import row_sums
from noisefloor.privacy import Claim, FlowEvidence, Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.wire import Kind
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import (
    DeviceFrame,
    SymbolFlow,
    WitnessPairs,
    draw_pairs,
    most_pairs,
    no_pairs,
    with_bits,
)
from noisefloor_sim.pipelines.api import (
    Findings,
    Metric,
    NamedClaim,
    Pipeline,
    PlannedClaim,
    Price,
)
from noisefloor_sim.pipelines.clicks import attacks
from noisefloor_sim.pipelines.clicks.block import (
    block_of,
    dropped_of,
    fresh_days,
    memoised_of,
    mounts,
    vector_report_of,
)
from noisefloor_sim.pipelines.clicks.click_flow import ClickFlow
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.pipelines.clicks.dropped import DROPPED_REPORT, DroppedReporting
from noisefloor_sim.pipelines.clicks.reporting import (
    CLICK_REPORT,
    PERMANENT,
    ClickReporting,
    FreshClicks,
    planned_reports,
)
from noisefloor_sim.pipelines.clicks.sending import SentReports
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, DayActivity

Flags = NDArray[np.bool_]


@dataclass(slots=True)
class ClickPipeline(Pipeline):
    """Click statistics at one point of a sweep.

    Attributes:
        scenario: The point.
        mechanism: What guards the vectors.
        flow: The way of the reports.
        counting: Of users who tell how many clicks are dropped, if any do.
        joined: Who of each cohort has paid for permanent answers.
        flips: The permanent answers of each cohort.
    """

    scenario: Scenario
    mechanism: ClickReport | MemoisedClicks = field(init=False)
    flow: ClickReporting = field(init=False)
    counting: DroppedReporting | None = field(init=False)
    joined: dict[int, Flags] = field(default_factory=dict)
    flips: dict[int, Flags] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mechanism = memoised_of(self.scenario) or vector_report_of(self.scenario)
        self.flow = ClickReporting(
            self.scenario, self.mechanism, clicks_kind(self.mechanism.width)
        )
        counter, share = dropped_of(self.scenario), block_of(self.scenario).counting_share
        self.counting = None
        if counter is not None:
            self.counting = DroppedReporting(self.scenario, counter, share, self.flow.source)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Rows of protected bits, and single bits about dropped clicks where users tell them."""
        return tuple(flow.kind for flow in self.flows)

    @property
    def days(self) -> list[ClickDayStatistics]:
        """What happened on each day."""
        return self.flow.days

    def wake_with_ads(
        self, cohort: Cohort, day: int, activity: DayActivity, account: BudgetAccount
    ) -> Iterator[DeviceFrame]:
        """Send the day's reports of a cohort."""
        ads, stats = self.scenario.ad_behaviour.ads, self.days[day]
        contact = self.flow.open_day(cohort, day, activity, account)
        known = activity.clicked & contact[activity.user, activity.device]
        if self.counting is not None:
            clicked = activity.matrix(known, ads)
            contact, counted = self._count(self.counting, cohort.number, day, contact, account)
            yield from self.counting.frames(cohort.number, day, clicked[counted], stats)
        paid, new = self._pay(cohort.number, account, day, contact)
        shown = activity.matrix(np.ones(len(activity.ad), dtype=np.bool_), ads)[paid]
        own = activity.matrix(known, ads)[paid]
        pairs = self._witnesses(cohort.number, day, own, shown)
        bits = pairs.exchange(own)
        fresh = self._answer(bits, paid, cohort.number, day)
        stats.see_reported(bits)
        stats.delivered += _contingency(bits[shown], fresh.reports[:, :ads][shown])
        stats.spent += int(np.count_nonzero(new)) * self.flow.cost
        other = np.where(pairs.swapped[:, None], own[pairs.first], own[pairs.second])
        clicks = FreshClicks(bits, pairs, other)
        asked: Flags = np.asarray(contact.any(axis=1))
        yield from self.flow.frames(
            cohort.number, day, asked=asked, paid=paid, fresh=fresh, clicks=clicks
        )

    def _count(
        self,
        counting: DroppedReporting,
        number: int,
        day: int,
        contact: Flags,
        account: BudgetAccount,
    ) -> tuple[Flags, Flags]:
        """Return the contact of those who report clicks, and who pays to tell of dropped ones."""
        chosen = counting.chosen(len(contact), number, day)
        open_ = contact & chosen[:, None]
        counted = account.spend(day, DROPPED_REPORT, open_, counting.cost) > 0
        self.days[day].refused += int(np.count_nonzero(open_.any(axis=1) & ~counted))
        return contact & ~chosen[:, None], counted

    def _witnesses(self, number: int, day: int, own: Flags, shown: Flags) -> WitnessPairs:
        """Draw pairs who may hold each other's clicks: every sum stays as it is.

        Both were shown what the other clicked, so that no click is on an ad that was not shown;
        and neither holds more than the form keeps, so that the likelihood is that of the bits.
        """
        most = most_pairs(self.scenario, number)
        if not most:
            return no_pairs()
        chance = self.flow.source.child("witness", number, day).generator()
        clicks, declared = row_sums(own), self.flow.inspected.tests.declared
        limit = 1 if declared.sampled else declared.keeps_all
        eligible = np.flatnonzero((clicks > 0) & (clicks <= limit))
        first, second = draw_pairs(eligible, most, chance)
        one, other = own[first], own[second]
        strange = (one & ~shown[second]) | (other & ~shown[first])
        suits = (one != other).any(axis=1) & ~strange.any(axis=1)
        return with_bits(first[suits][:most], second[suits][:most], chance)

    def _pay(
        self, number: int, account: BudgetAccount, day: int, contact: Flags
    ) -> tuple[Flags, Flags]:
        """Return who may report afresh, and who was debited for it.

        A daily report costs each time; permanent answers are paid for once.
        """
        cost = self.flow.cost
        if isinstance(self.mechanism, ClickReport):
            paid = account.spend(day, CLICK_REPORT, contact, cost) > 0
            return paid, paid
        joined = self.joined.setdefault(number, np.zeros(len(contact), dtype=np.bool_))
        open_ = contact & ~joined[:, None]
        new = account.spend(day, PERMANENT, open_, cost) > 0
        joined |= new
        return joined & contact.any(axis=1), new

    def _answer(self, bits: Flags, paid: Flags, number: int, day: int) -> SentReports:
        """Return the protected reports of those who paid, and what they were made of."""
        randomness = self.flow.source.child(number, day)
        if isinstance(self.mechanism, ClickReport):
            # What ``randomise`` does, in its two steps: scoring asks for what was kept.
            kept = self.mechanism.keep(bits, randomness)
            return SentReports(self.mechanism.encoding.randomise(kept, randomness), kept)
        if number not in self.flips:
            memory = self.flow.source.child("memory", number)
            self.flips[number] = self.mechanism.memorise(len(paid), memory)
        return SentReports(self.mechanism.report(bits, self.flips[number][paid], randomness), bits)

    @property
    def flows(self) -> tuple[ClickFlow | SymbolFlow, ...]:
        """The click reports, and those of dropped clicks."""
        clicks = self.flow.inspected
        return (clicks,) if self.counting is None else (clicks, self.counting.flow)

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> Findings:
        """Score the estimates against the truth, and the adversary against its canaries."""
        source = self.flow.source.child("canary")
        scores = self.flow.metrics(servers, self.joined, self.counting)
        metrics = [*scores, *self._attacks(source)]
        claims = self.flow.audited(self._claims(), evidence)
        if self.counting is not None:
            is_audited = mounts(self.scenario, "audit")
            claims = (*claims, self.counting.audited(evidence, is_audited=is_audited))
        return Findings(tuple(metrics), claims)

    def prices(self) -> Mapping[str, Price]:
        """Return the guarantees of a daily report, or of all days' permanent answers."""
        counted = {} if self.counting is None else {DROPPED_REPORT: self.counting.price()}
        return {**self.flow.prices(), **counted}

    def paper_claim(self) -> Guarantee:
        """Return the sum over days of what the paper claims of one report."""
        return sequential([self.mechanism.claimed] * self.scenario.days)

    def planned_claims(self) -> tuple[PlannedClaim, ...]:
        """Return the claims of a daily report and of all days, which permanent answers cover."""
        named = self._claims()
        if isinstance(self.mechanism, ClickReport):
            return planned_reports(named[0], self.scenario.days)
        debited = Amount.cost(self.mechanism.claimed).epsilon
        return tuple(PlannedClaim(one.mechanism, "run", one.claim, debited) for one in named)

    def _claims(self) -> tuple[NamedClaim, ...]:
        claim = Claim(self.mechanism.claimed, self.mechanism.guarantee(Neighbours.USER))
        if isinstance(self.mechanism, ClickReport):
            return (NamedClaim(f"clicks-{self.mechanism.form.value}", claim),)
        changing = Claim(self.mechanism.claimed, self.mechanism.guarantee_changing())
        return (
            NamedClaim("clicks-memoised-steady", claim),
            NamedClaim("clicks-memoised-changing", changing),
        )

    def _attacks(self, source: SeededSource) -> list[Metric]:
        """Mount the selected attacks that the threat model allows."""
        block, days = block_of(self.scenario), fresh_days(self.scenario)
        is_linked, selected = self.scenario.threat.linked, partial(mounts, self.scenario)
        if not isinstance(self.mechanism, ClickReport):
            is_played = is_linked and selected("all_days")
            return (
                attacks.play_memoised(self.mechanism, block.canaries, source) if is_played else []
            )
        games = attacks.games_of(self.mechanism, days, is_linked=is_linked)
        chosen = [game for game in games if selected(game.name)]
        metrics = [
            m
            for game in chosen
            for m in attacks.play(self.mechanism, game, block.canaries, source)
        ]
        if selected("vector"):
            metrics += attacks.play_vector(self.mechanism, block.canaries, source)
        if selected("row_order") and not is_linked and days > 1:
            metrics += attacks.play_row_order(
                self.mechanism, days, block.canaries, source, is_kept=block.canaries_keep_order
            )
        if selected("delivered") and is_linked:
            counts = np.sum([stats.delivered for stats in self.days], axis=0)
            metrics += attacks.delivered_metrics(counts, self.mechanism)
        return metrics


def _contingency(bits: Flags, reports: Flags) -> NDArray[np.int64]:
    """Count delivered bits by their value and by what was reported of them."""
    codes = 2 * bits.astype(np.int64) + reports
    return np.bincount(codes, minlength=4).reshape(2, 2)
