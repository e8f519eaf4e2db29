"""The click pipeline for delivered ads: the ad is sent as it is, only its click is protected.

A user reports on one ad a day, that of the first slot on a device in contact, and not at all on a
day without such a slot. That a user reports says that there was one: no epsilon speaks of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import DeliveredClick
from noisefloor.errors import BadParameter
from noisefloor.privacy import Claim, FlowEvidence, Neighbours
from noisefloor.wire import Kind
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import DeviceFrame, most_pairs, pairs_alike
from noisefloor_sim.pipelines.api import Findings, NamedClaim, Pipeline, PlannedClaim, Price
from noisefloor_sim.pipelines.clicks.attacks import delivered_games_of, play
from noisefloor_sim.pipelines.clicks.block import block_of, delivered_of, fresh_days, mounts
from noisefloor_sim.pipelines.clicks.click_flow import ClickFlow
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.pipelines.clicks.pipeline import ClickPipeline
from noisefloor_sim.pipelines.clicks.reporting import (
    CLICK_REPORT,
    ClickReporting,
    FreshClicks,
    planned_reports,
)
from noisefloor_sim.pipelines.clicks.sending import SentReports
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, DayActivity

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DayAds:
    """The ad that each user reports on.

    Attributes:
        has: Who has one.
        ad: Which; 0 for users without.
        clicked: Whether it was clicked, on any device in contact.
    """

    has: Flags
    ad: NDArray[np.uint16]
    clicked: Flags


def day_ads(events: DayActivity, contact: Flags) -> DayAds:
    """Return the ad of each user's first slot on a device in contact, and whether it was clicked.

    Args:
        events: One day of a cohort.
        contact: Which devices are in contact, one row per user.
    """
    open_ = contact[events.user, events.device]
    rows = np.flatnonzero(open_)
    users, first = np.unique(events.user[rows], return_index=True)
    has, clicked = np.zeros((2, events.users), dtype=np.bool_)
    ad = np.zeros(events.users, dtype=np.uint16)
    has[users], ad[users] = True, events.ad[rows[first]]
    clicks = events.clicked & open_ & (events.ad == ad[events.user])
    clicked[events.user[clicks]] = True
    return DayAds(has, ad, clicked)


@dataclass(slots=True)
class DeliveredPipeline(Pipeline):
    """Clicks on delivered ads at one point of a sweep.

    Attributes:
        scenario: The point.
        mechanism: What guards the click.
        flow: The way of the reports.
    """

    scenario: Scenario
    mechanism: DeliveredClick = field(init=False)
    flow: ClickReporting = field(init=False)

    def __post_init__(self) -> None:
        mechanism = delivered_of(self.scenario)
        if mechanism is None:
            form = block_of(self.scenario).form
            raise BadParameter(
                "pipelines.clicks.form", form, "'delivered', and no paper's variant"
            )
        self.mechanism = mechanism
        self.flow = ClickReporting(self.scenario, mechanism, mechanism.kind)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """One kind: an ad and a protected bit."""
        return (self.flow.kind,)

    @property
    def days(self) -> list[ClickDayStatistics]:
        """What happened on each day."""
        return self.flow.days

    def wake_with_ads(
        self, cohort: Cohort, day: int, activity: DayActivity, account: BudgetAccount
    ) -> Iterator[DeviceFrame]:
        """Send the day's reports of a cohort."""
        stats, number, cost = self.days[day], cohort.number, self.flow.cost
        contact = self.flow.open_day(cohort, day, activity, account)
        shown = day_ads(activity, contact)
        paid = account.spend(day, CLICK_REPORT, contact & shown.has[:, None], cost) > 0
        ads, own = shown.ad[paid], shown.clicked[paid]
        chance = self.flow.source.child("witness", number, day).generator()
        pairs = pairs_alike(ads, own, most_pairs(self.scenario, number), chance)
        inputs = self.mechanism.symbols(ads, pairs.exchange(own))
        randomness = self.flow.source.child(number, day)
        fresh = SentReports(self.mechanism.randomise(inputs, randomness), inputs)
        stats.reported += self.mechanism.tally(inputs)[1::2]
        stats.spent += int(np.count_nonzero(paid)) * cost
        clicks = FreshClicks(inputs, pairs, inputs[pairs.first] ^ 1)
        yield from self.flow.frames(
            number, day, asked=shown.has, paid=paid, fresh=fresh, clicks=clicks
        )

    @property
    def flows(self) -> tuple[ClickFlow, ...]:
        """The click reports."""
        return (self.flow.inspected,)

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> Findings:
        """Score the estimates against the truth, and the adversary against its canaries."""
        source, canaries = self.flow.source.child("canary"), block_of(self.scenario).canaries
        games = delivered_games_of(
            fresh_days(self.scenario), is_linked=self.scenario.threat.linked
        )
        chosen = [game for game in games if mounts(self.scenario, game.name)]
        attacks = [m for game in chosen for m in play(self.mechanism, game, canaries, source)]
        metrics = (*self.flow.metrics(servers, {}), *attacks)
        return Findings(metrics, self.flow.audited([self._claim()], evidence))

    def prices(self) -> Mapping[str, Price]:
        """Return the guarantees of a daily report."""
        return self.flow.prices()

    def planned_claims(self) -> tuple[PlannedClaim, ...]:
        """Return the claims of a daily report and of all days."""
        return planned_reports(self._claim(), self.scenario.days)

    def _claim(self) -> NamedClaim:
        proved = self.mechanism.guarantee(Neighbours.USER)
        return NamedClaim("clicks-delivered", Claim(self.mechanism.claimed, proved))


def build(scenario: Scenario) -> Pipeline:
    """Make the pipeline for the form of report that a scenario has."""
    if delivered_of(scenario) is not None:
        return DeliveredPipeline(scenario)
    return ClickPipeline(scenario)
