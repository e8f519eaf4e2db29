"""Delivery in the world: devices ask for ads within their budget, and show what they get.

The book of a day's delivery, and what it tells: how well ads are liked, and what was asked.

Every way to ask for an ad, at the epsilon of this point, for score rows of this world.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import ImpressionReport
from noisefloor.ads.delivery import AdDelivery, AdSelection
from noisefloor.ads.training import Ratings, Single
from noisefloor.randomness import SeededSource
from noisefloor.roles import Aggregation
from noisefloor.wire import Kind, sealed_frames
from noisefloor_sim.inspection import DeviceFrame, Flow
from noisefloor_sim.pipelines.ads.block import block_of, scenario_key_errors
from noisefloor_sim.pipelines.ads.flows import REQUEST, RequestFlow, ShownFlow
from noisefloor_sim.pipelines.ads.ratings import kept_ratings
from noisefloor_sim.pipelines.ads.slots import (
    FilledSlots,
    ImpressionReporting,
    LastRequests,
    Slots,
    fill_daily,
    fill_each,
)
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.api import Metric, SentRequests, ServedAds
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import AdWorld, BudgetAccount, Cohort, Visits, in_contact

Counts = NDArray[np.uint32]


@dataclass(slots=True)
class DeliveryDayStatistics:
    """What was shown on one day, in whole numbers over all cohorts; only scoring reads it.

    Attributes:
        slots: Slots for ads.
        users: Users who had any on a device in contact.
        requests: Fresh requests.
        askers: Users who made any.
        most: Of one user, the most.
        refused: Requests that the budget did not cover.
        personal: Slots filled by a request, of this day or an earlier one.
        pushed: Slots with the ad that fakes push.
        hits: Slots with the ad that the user likes best.
        liking: How much the shown ads are liked, in millionths.
        popular: The same of popular ads.
        best: The same of the best ads by the model.
    """

    slots: int = 0
    users: int = 0
    requests: int = 0
    askers: int = 0
    most: int = 0
    refused: int = 0
    personal: int = 0
    pushed: int = 0
    hits: int = 0
    liking: int = 0
    popular: int = 0
    best: int = 0

    def ask(self, requested: NDArray[np.int64], granted: NDArray[np.int64]) -> None:
        """Write down a cohort's requests."""
        self.users += int(np.count_nonzero(requested))
        self.requests += int(granted.sum())
        self.askers += int(np.count_nonzero(granted))
        self.most = max(self.most, int(granted.max(initial=0)))
        self.refused += int((requested - granted).sum())


def millionths(values: Single) -> int:
    """Return a sum that does not depend on the order of cohorts."""
    return int(np.rint(1e6 * values.astype(np.float64)).astype(np.int64).sum())


def requests_a_day(statistics: Sequence[DeliveryDayStatistics]) -> int:
    """Return how many fresh requests a user makes who makes any, on the busiest day.

    The mean, rounded up; at least one.
    """
    busiest = max((stats.requests / max(1, stats.askers) for stats in statistics), default=0.0)
    return max(1, math.ceil(busiest))


def busiest_requests(statistics: Sequence[DeliveryDayStatistics]) -> int:
    """Return the most fresh requests that any user made on one day."""
    return max((stats.most for stats in statistics), default=0)


def requests_per_requesting_user(asked: Mapping[int, Counts]) -> int:
    """Return how many fresh requests a user makes in the whole run who makes any.

    The mean, rounded up; at least one. A budget that is spent shows here.

    Args:
        asked: Requests of each user, by cohort.
    """
    total = sum(int(counts.sum()) for counts in asked.values())
    askers = sum(int(np.count_nonzero(counts)) for counts in asked.values())
    return max(1, math.ceil(total / max(1, askers)))


def delivery_metrics(
    statistics: Sequence[DeliveryDayStatistics], asked: Mapping[int, Counts]
) -> list[Metric]:
    """Tell how well the shown ads were liked, and what asking for them took."""
    slots, users = (
        sum(stats.slots for stats in statistics),
        sum(stats.users for stats in statistics),
    )
    if not slots:
        return []

    def share(name: str) -> float:
        return float(sum(getattr(stats, name) for stats in statistics) / slots)

    requests = sum(stats.requests for stats in statistics)
    return [
        Metric("relevance", share("liking") / 1e6, n=slots),
        Metric("relevance.popular", share("popular") / 1e6, n=slots),
        Metric("relevance.open", share("best") / 1e6, n=slots),
        Metric("top_one", share("hits"), n=slots),
        Metric("pushed_share", share("pushed"), n=slots),
        Metric("personal_share", share("personal"), n=slots),
        Metric("requests", float(requests), n=users),
        Metric("requests_per_day", requests / max(1, users), n=users),
        Metric("requests_refused", float(sum(stats.refused for stats in statistics)), n=users),
        Metric("requests_per_user", float(requests_per_requesting_user(asked)), n=users),
        Metric("requests_busiest_day", float(requests_a_day(statistics)), n=users),
        Metric("requests_busiest_user", float(busiest_requests(statistics)), n=users),
    ]


SECTION = "pipelines.ads.delivery"


def delivery_of(scenario: Scenario, choice: AdSelection | None = None) -> AdDelivery:
    """Return how devices ask for ads at this point, or would by another choice.

    Raises:
        BadParameter: The settings do not go together with the number of ads; names the key.
    """
    settings, ads = block_of(scenario), scenario.ad_behaviour.ads
    block = settings.delivery
    own = AdSelection.PRINTED if scenario.variant == "paper" else AdSelection(block.choice)
    with scenario_key_errors(SECTION, {}):
        return AdDelivery(
            ads,
            settings.request_epsilon,
            choice or own,
            top=min(block.top, ads - 1),
            slate=min(block.slate, ads - 1),
            high=block.score_range,
        )


@dataclass(slots=True)
class DeliveryPhase:
    """Ads that are asked for, in one world.

    Attributes:
        scenario: The point.
        source: Of all random numbers of delivery.
        training: Whose model devices score the ads with.
        delivery: How devices ask.
        flow: What is declared of requests.
        reports: Of shown ads, where requests do not tell them.
        cost: Of a request, in micro-epsilon.
        statistics: One for each day.
        memories: What the devices of each cohort were given last.
        asked: Fresh requests of each user, by cohort.
    """

    scenario: Scenario
    source: SeededSource
    training: TrainingPhase
    delivery: AdDelivery = field(init=False)
    flow: RequestFlow = field(init=False)
    reports: ImpressionReporting | None = None
    cost: int = field(init=False)
    statistics: list[DeliveryDayStatistics] = field(init=False)
    memories: dict[int, LastRequests] = field(default_factory=dict)
    asked: dict[int, Counts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.delivery = delivery_of(self.scenario)
        ridge = block_of(self.scenario).training.ridge
        self.flow = RequestFlow(self.delivery, self.scenario, ridge, self.source)
        if self.delivery.is_slate:
            ads, epsilon = self.scenario.ad_behaviour.ads, block_of(self.scenario).shown_epsilon
            with scenario_key_errors(SECTION, {"epsilon": "shown_epsilon"}):
                report = ImpressionReport(ads, epsilon)
            flow = ShownFlow(report, self.scenario, self.source)
            self.reports = ImpressionReporting(report, self.source, flow)
        # The paper's variant debits what the paper claims; tracking promises and debits nothing.
        claimed = self.delivery.claimed
        self.cost = Amount.cost(claimed).micro_epsilon if claimed.is_finite else 0
        self.statistics = [DeliveryDayStatistics() for _ in range(self.scenario.days)]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Protected impressions, where requests do not tell them."""
        return () if self.reports is None else (self.reports.kind,)

    @property
    def request_kind(self) -> Kind:
        """The kind of frame that carries requests to the ad server."""
        return self.delivery.kind

    @property
    def is_daily(self) -> bool:
        """Whether devices ask once a day."""
        return block_of(self.scenario).delivery.fresh == "day"

    def scores(self, world: AdWorld, cohort: Cohort) -> Single:
        """Return the scores that devices give the ads, from their own ratings and the model."""
        return self.scored(kept_ratings(self.scenario, world.tastes, cohort))

    def scored(self, ratings: Ratings) -> Single:
        """Return the scores that devices with these ratings give the ads."""
        predicted = self.training.model.predict(self.training.tastes_of(ratings))
        span = np.float32(block_of(self.scenario).delivery.score_range)
        return np.asarray(span * np.clip(predicted, 0, 1))

    def serve(
        self, world: AdWorld, cohort: Cohort, day: int, visits: Visits, account: BudgetAccount
    ) -> ServedAds:
        """Fill the slots of a cohort's day; devices out of contact show popular ads.

        A fresh request is paid for before it is drawn, and sent to the ad server. A device shows
        what it requested from its own copy of the catalogue, so a lost request changes no slot.
        """
        contact = _contact(cohort, day)
        is_open = contact[visits.user, visits.device]
        count = np.bincount(visits.user[is_open], minlength=len(cohort))
        requested = np.minimum(count, 1) if self.is_daily else count
        granted = account.spend(day, REQUEST, contact, self.cost, requested)
        self.statistics[day].ask(requested, granted)
        asked = self.asked.setdefault(cohort.number, np.zeros(len(cohort), dtype=np.uint32))
        asked += granted.astype(np.uint32)
        per_view = self.scenario.ad_behaviour.slots_per_view
        ratings = kept_ratings(self.scenario, world.tastes, cohort)
        pairs = self.flow.pairs(cohort.number, day, granted)
        lender = pairs.exchange(np.arange(len(cohort)))
        slots = Slots(visits, is_open, self.scored(ratings), granted, per_view, lender)
        filled = self._fill(cohort, day, slots)
        self._write(world, cohort, day, slots, filled)
        if self.reports is not None:
            self.reports.draw(cohort, day, visits, filled.ad, is_open)
        sent = self._sent(cohort, day, slots, filled)
        if sent is not None:
            model, users = self.training.model, filled.users
            truth = self.flow.truth(cohort.number, day, users, pairs, ratings, model)
            sent = replace(sent, truth=truth)
        return ServedAds(filled.ad, is_public=not self.delivery.is_slate, requests=sent)

    def _sent(
        self, cohort: Cohort, day: int, slots: Slots, filled: FilledSlots
    ) -> SentRequests | None:
        """Write the fresh requests as frames."""
        if not len(filled.requests):
            return None
        randomness = self.source.child("request-frame", cohort.number, day)
        frames = tuple(sealed_frames(self.request_kind, day, filled.requests, randomness))
        return SentRequests(
            self.request_kind, day, frames, filled.requests, filled.users, slots.scores
        )

    def _fill(self, cohort: Cohort, day: int, slots: Slots) -> FilledSlots:
        fill = fill_daily if self.is_daily else fill_each
        repeat = block_of(self.scenario).delivery.exhausted == "repeat"
        randomness = self.source.child("request", cohort.number, day)
        return fill(self.delivery, slots, self._memory(cohort), randomness, repeat=repeat)

    def released(self, cohort: Cohort) -> NDArray[np.int64]:
        """Return the ad that each user asked for last; one past the last ad where none was."""
        memory = self._memory(cohort)
        return np.where(memory.has, memory.requests, self.scenario.ad_behaviour.ads).astype(
            np.int64
        )

    def _memory(self, cohort: Cohort) -> LastRequests:
        """Return what the devices of a cohort were given last."""
        if cohort.number not in self.memories:
            made = LastRequests.none(len(cohort), self.delivery, is_daily=self.is_daily)
            self.memories[cohort.number] = made
        return self.memories[cohort.number]

    def _write(
        self, world: AdWorld, cohort: Cohort, day: int, slots: Slots, filled: FilledSlots
    ) -> None:
        """Write down how well the shown ads are liked, beside popular ones and the best."""
        stats, liking = self.statistics[day], world.tastes.liking(cohort)
        user, ad = slots.visits.user, filled.ad
        stats.slots += len(ad)
        stats.personal += int(np.count_nonzero(filled.personal))
        stats.pushed += int(np.count_nonzero(ad == self.scenario.threat.pushed_ad))
        # Of ads that are liked equally, any is the best.
        stats.hits += int(np.count_nonzero(liking[user, ad] == liking.max(axis=1)[user]))
        stats.liking += millionths(liking[user, ad])
        stats.popular += millionths(liking[user, slots.visits.popular])
        stats.best += millionths(liking[user, slots.scores.argmax(axis=1)[user]])

    @property
    def flows(self) -> tuple[Flow, ...]:
        """What is declared of reports of shown ads."""
        return () if self.reports is None else (self.reports.flow,)

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Report which ad of the slates was shown, one of the day's, protected."""
        if self.reports is not None:
            yield from self.reports.frames(cohort, day, _contact(cohort, day), account)

    def finish(self, aggregator: Aggregation) -> list[Metric]:
        """Tell what was shown, how well it was liked, and what asking for it cost."""
        protected = [] if self.reports is None else self.reports.metrics(aggregator)
        return delivery_metrics(self.statistics, self.asked) + protected


def _contact(cohort: Cohort, day: int) -> NDArray[np.bool_]:
    return in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
