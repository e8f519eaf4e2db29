"""The way of a day's reports from devices to the server, whatever they hold, and its scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import ClickReport, DeliveredClick, MemoisedClicks
from noisefloor.mechanisms import Reports
from noisefloor.privacy import FlowEvidence, Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.wire import Kind
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import DeviceFrame, WitnessPairs, device_frames
from noisefloor_sim.pipelines.api import (
    Metric,
    NamedClaim,
    PlannedClaim,
    Price,
    repeated_claim,
)
from noisefloor_sim.pipelines.clicks import day_statistics, estimates
from noisefloor_sim.pipelines.clicks.block import mounts, policy_of
from noisefloor_sim.pipelines.clicks.click_flow import ClickFlow, ClickMechanism, ClickTruth
from noisefloor_sim.pipelines.clicks.dropped import (
    DroppedReporting,
    DroppedShare,
    dropped_metrics,
)
from noisefloor_sim.pipelines.clicks.fraud import Forger, fraud_metrics
from noisefloor_sim.pipelines.clicks.sample_size import sample_size_metrics
from noisefloor_sim.pipelines.clicks.sending import ReportCache, SentReports
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, DayActivity, Exhausted, in_contact

CLICK_REPORT, PERMANENT = "click report", "permanent click answers"
"""What the account calls a daily report, and the answers that stand for all days."""

Flags = NDArray[np.bool_]


def planned_reports(named: NamedClaim, days: int) -> tuple[PlannedClaim, ...]:
    """Return the claims of one report, which a user makes once a day, and of all days."""
    debited = Amount.cost(named.claim.claimed, days).epsilon
    return (
        PlannedClaim(named.mechanism, "day", named.claim),
        PlannedClaim("whole-run", "run", repeated_claim(named.claim, days), debited),
    )


@dataclass(frozen=True, slots=True, eq=False)
class FreshClicks:
    """What the fresh reports of a cohort's day are about.

    Attributes:
        clicks: Of those who report afresh: rows of bits, or symbols of delivered ads.
        pairs: Witnesses among them.
        other: What the first of each pair would hold with the other bit.
    """

    clicks: Reports
    pairs: WitnessPairs
    other: Reports


@dataclass(slots=True)
class ClickReporting:
    """Reports of clicks in one world.

    Attributes:
        scenario: At one point of a sweep.
        mechanism: What guards the clicks.
        kind: Of the frames.
        source: Of the pipeline's random numbers.
        cost: Of a report, in micro-epsilon.
        days: What happened on each day.
        accounts: Of the cohorts that have woken.
        memory: What devices do without budget.
        forger: Of the fakes among them, if there are any.
        inspected: What is declared of the reports.
        senders: Who of each cohort has sent a report from permanent answers.
    """

    scenario: Scenario
    mechanism: ClickMechanism
    kind: Kind
    source: SeededSource = field(init=False)
    cost: int = field(init=False)
    days: list[day_statistics.ClickDayStatistics] = field(init=False)
    accounts: dict[int, BudgetAccount] = field(default_factory=dict)
    memory: ReportCache = field(init=False)
    forger: Forger | None = field(init=False)
    inspected: ClickFlow = field(init=False)
    senders: dict[int, Flags] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = SeededSource(self.scenario.seed, "pipeline", "clicks")
        # The paper's variant debits what the paper claims; what is proved is shown beside it.
        self.cost = Amount.cost(self.mechanism.claimed).micro_epsilon
        ads, cells = self.scenario.ad_behaviour.ads, self.kind.cells
        self.days = [
            day_statistics.ClickDayStatistics.empty(ads, cells) for _ in range(self.scenario.days)
        ]
        self.memory = ReportCache(policy_of(self.scenario))
        self.forger = Forger.of(self.scenario, self.mechanism)
        is_permanent = isinstance(self.mechanism, MemoisedClicks)
        ledger = PERMANENT if is_permanent else CLICK_REPORT
        days = range(self.scenario.days)
        repeats = self.memory.policy is Exhausted.MEMORY
        self.inspected = ClickFlow(self.mechanism, self.kind, days, ledger, repeats)

    @property
    def proved(self) -> Guarantee:
        """What is proved of what a user pays for at once.

        Permanent answers are paid for once and cover all days; people's clicks change, so it is
        the guarantee for clicks that do.
        """
        if isinstance(self.mechanism, MemoisedClicks):
            return self.mechanism.guarantee_changing()
        return self.mechanism.guarantee(Neighbours.USER)

    def prices(self) -> dict[str, Price]:
        """Return the guarantees of a daily report, or of the permanent answers of all days."""
        flow = PERMANENT if isinstance(self.mechanism, MemoisedClicks) else CLICK_REPORT
        return {flow: Price(self.mechanism.claimed, self.proved)}

    def open_day(
        self, cohort: Cohort, day: int, events: DayActivity, account: BudgetAccount
    ) -> Flags:
        """Write down what a cohort clicked, and return which of its devices are in contact."""
        contact = in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
        self.accounts[cohort.number] = account
        stats, here = self.days[day], cohort.leaves > day
        stats.clicked += events.matrix(events.clicked, self.scenario.ad_behaviour.ads).sum(axis=0)
        stats.out_of_contact += int(np.count_nonzero(here & ~contact.any(axis=1)))
        return contact

    def frames(
        self,
        cohort: int,
        day: int,
        *,
        asked: Flags,
        paid: Flags,
        fresh: SentReports,
        clicks: FreshClicks,
    ) -> Iterator[DeviceFrame]:
        """Send a cohort's reports: fresh ones, old ones again, and forged ones among them.

        Args:
            cohort: Its number.
            day: Of the reports.
            asked: Users who have something to report.
            paid: Users who paid for a fresh report.
            fresh: The reports of those.
            clicks: What those are about.
        """
        stats = self.days[day]
        stats.fresh += len(fresh.reports)
        sent, again = self.memory.complete(cohort, asked, paid, fresh, stats)
        reports = sent.reports
        if self.forger is not None:
            reports = self.forger.join(sent, stats, self.source.child("fakes", cohort, day))
        if len(reports):
            users, repeated = np.flatnonzero(paid), np.flatnonzero(again)
            truth = ClickTruth(
                day, len(paid), users, repeated, clicks.clicks, clicks.pairs, clicks.other
            )
            due = np.zeros(len(reports), dtype=np.bool_)
            due[: len(users)] = self._due(cohort, paid)[users]
            randomness = self.source.child("frame", cohort, day)
            yield from device_frames(
                self.inspected.name,
                cohort,
                self.kind,
                day,
                reports,
                randomness,
                truth=truth,
                paid=due,
            )

    def _due(self, cohort: int, fresh: Flags) -> Flags:
        """Return whose fresh report has to be paid for: each, and permanent answers once."""
        if not isinstance(self.mechanism, MemoisedClicks):
            return fresh
        senders = self.senders.setdefault(cohort, np.zeros_like(fresh))
        due = fresh & ~senders
        senders |= fresh
        return due

    def metrics(
        self,
        servers: Servers,
        joined: Mapping[int, Flags],
        counting: DroppedReporting | None = None,
    ) -> list[Metric]:
        """Score what was released, and tell what was spent.

        Args:
            servers: What was released and counted.
            joined: Who of each cohort has paid for all reports at once.
            counting: Of users who tell how many clicks are dropped, if any do.
        """
        name, aggregator = self.kind.name, servers.aggregator
        proved = self.proved.epsilon / self.mechanism.epsilon
        share_randomness = self._days_share_randomness
        return [
            *self._estimates(servers, counting),
            *day_statistics.budget_metrics(self.days, self.scenario.population.users, proved),
            *day_statistics.exhausted_metrics(self.accounts, self.cost, joined),
            *fraud_metrics(
                self.forger,
                self.days,
                aggregator,
                name,
                self.source,
                share_randomness=share_randomness,
            ),
        ]

    def _estimates(self, servers: Servers, counting: DroppedReporting | None) -> list[Metric]:
        """Score the estimated clicks and their rates."""
        dropped, counted = None, [0] * len(self.days)
        if counting is not None:
            dropped, counted = counting.released(servers.aggregator)
        days = estimates.released_days(servers.aggregator, self.kind.name, self.days, counted)
        share = self._dropped_share(days, counting, dropped, sum(counted))
        metrics = estimates.estimate_metrics(self.mechanism, days, self.days, share)
        if not days:
            return metrics
        total = estimates.sum_of_days(
            self.mechanism, days, share_randomness=self._days_share_randomness
        )
        if not self._days_share_randomness:
            found = [estimates.counts_on(self.mechanism, [one]) for one in days]
            kept = [self.days[one.day].kept(self.mechanism.limit) for one in days]
            metrics += sample_size_metrics(found, np.array(kept), len(self.days))
        shown = self._impressions(servers, days)
        metrics += estimates.rate_metrics(self.mechanism, total, self.days, shown, share)
        if counting is not None and share is not None:
            metrics += dropped_metrics(share, counting.mechanism, self.days)
        return metrics

    def _dropped_share(
        self,
        days: Sequence[estimates.ReleasedDay],
        counting: DroppedReporting | None,
        dropped: NDArray[np.int64] | None,
        n: int,
    ) -> DroppedShare | None:
        """Return what reports told of dropped clicks, if any did and all reports are plain."""
        if counting is None or dropped is None or not n or not days:
            return None
        if not isinstance(self.mechanism, ClickReport) or not all(one.is_plain for one in days):
            return None
        tally, reports = np.sum([one.tally for one in days], axis=0), sum(one.n for one in days)
        kept = self.mechanism.kept_by_user(tally, reports)
        return DroppedShare.of(counting.mechanism, dropped, n, kept)

    def _impressions(
        self, servers: Servers, days: Sequence[estimates.ReleasedDay]
    ) -> NDArray[np.int64]:
        """Return what rates are over: counted impressions, or the delivered ads in reports."""
        if isinstance(self.mechanism, DeliveredClick):
            return self.mechanism.shown(np.sum([one.tally for one in days], axis=0))
        return np.asarray(
            np.sum([servers.impressions(day) for day in range(len(self.days))], axis=0)
        )

    def audited(
        self, claims: Sequence[NamedClaim], evidence: Mapping[str, FlowEvidence]
    ) -> tuple[NamedClaim, ...]:
        """Return claims with what was seen of the reports; the first with what witnesses prove.

        Args:
            claims: The first is about one report, or about permanent answers that stay the same.
            evidence: By flow.
        """
        seen = (evidence[self.inspected.name],)
        found = [replace(one, claim=replace(one.claim, evidence=seen)) for one in claims]
        if mounts(self.scenario, "audit"):
            bounds = self.inspected.bounds(self.source.child("planted"))
            claim = replace(
                found[0].claim,
                audited=bounds["audited"],
                null=bounds["null"],
                planted=bounds["planted"],
            )
            found[0] = replace(found[0], claim=claim)
        return tuple(found)

    @property
    def _days_share_randomness(self) -> bool:
        """Whether a user's reports on two days may rest on the same random numbers."""
        is_permanent = isinstance(self.mechanism, MemoisedClicks)
        return is_permanent or self.memory.policy is Exhausted.MEMORY
