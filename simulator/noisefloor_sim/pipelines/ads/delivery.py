"""Delivery in the world: devices ask for ads within their budget, and show what they get."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.entry import Amount
from noisefloor.ads.delivery import Choice, Delivery
from noisefloor.ads.factors import Single
from noisefloor.ads.impressions import ImpressionReport
from noisefloor.randomness import SeededSource
from noisefloor.roles.protocols import Aggregation
from noisefloor.wire.kinds import Kind
from noisefloor_sim.behaviour import AdWorld, Visits
from noisefloor_sim.devices import Account, in_contact
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery_books import (
    Counts,
    DeliveryBook,
    delivery_metrics,
    millionths,
)
from noisefloor_sim.pipelines.ads.filling import Filled, Memory, Slots, fill_daily, fill_each
from noisefloor_sim.pipelines.ads.naming import named
from noisefloor_sim.pipelines.ads.ratings import kept_ratings
from noisefloor_sim.pipelines.ads.shown import ShownReports
from noisefloor_sim.pipelines.ads.training import TrainingPhase
from noisefloor_sim.pipelines.base import Metric, Served
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

REQUEST = "ad request"
SECTION = "pipelines.ads.delivery"


def delivery_of(scenario: Scenario, choice: Choice | None = None) -> Delivery:
    """Return how devices ask for ads at this point, or would by another choice.

    Raises:
        BadParameter: The settings do not go together with the number of ads; names the key.
    """
    settings, ads = block_of(scenario), scenario.behaviour.ads
    block = settings.delivery
    own = Choice.PRINTED if scenario.variant == "paper" else Choice(block.choice)
    with named(SECTION, {}):
        return Delivery(
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
        source: Of all coins of delivery.
        training: Whose model devices score the ads with.
        delivery: How devices ask.
        reports: Of shown ads, where requests do not tell them.
        cost: Of a request, in micro-epsilon.
        books: One for each day.
        memories: What the devices of each cohort were given last.
        asked: Fresh requests of each user, by cohort.
    """

    scenario: Scenario
    source: SeededSource
    training: TrainingPhase
    delivery: Delivery = field(init=False)
    reports: ShownReports | None = None
    cost: int = field(init=False)
    books: list[DeliveryBook] = field(init=False)
    memories: dict[int, Memory] = field(default_factory=dict)
    asked: dict[int, Counts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.delivery = delivery_of(self.scenario)
        if self.delivery.is_slate:
            ads, epsilon = self.scenario.behaviour.ads, block_of(self.scenario).shown_epsilon
            with named(SECTION, {"epsilon": "shown_epsilon"}):
                self.reports = ShownReports(ImpressionReport(ads, epsilon), self.source)
        # The paper's variant debits what the paper claims; tracking promises and debits nothing.
        claimed = self.delivery.claimed
        self.cost = Amount.cost(claimed).micro_epsilon if claimed.is_finite else 0
        self.books = [DeliveryBook() for _ in range(self.scenario.days)]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Protected impressions, where requests do not tell them."""
        return () if self.reports is None else (self.reports.kind,)

    @property
    def is_daily(self) -> bool:
        """Whether devices ask once a day."""
        return block_of(self.scenario).delivery.fresh == "day"

    def scores(self, world: AdWorld, cohort: Cohort) -> Single:
        """Return the scores that devices give the ads, from their own ratings and the model."""
        ratings = kept_ratings(self.scenario, world.tastes, cohort)
        predicted = self.training.model.predict(self.training.tastes_of(ratings))
        span = np.float32(block_of(self.scenario).delivery.score_range)
        return np.asarray(span * np.clip(predicted, 0, 1))

    def serve(
        self, world: AdWorld, cohort: Cohort, day: int, visits: Visits, account: Account
    ) -> Served:
        """Fill the slots of a cohort's day; devices out of contact show popular ads.

        A fresh request is paid for before it is drawn.
        """
        contact = _contact(cohort, day)
        is_open = contact[visits.user, visits.device]
        count = np.bincount(visits.user[is_open], minlength=len(cohort))
        wanted = np.minimum(count, 1) if self.is_daily else count
        granted = account.spend(day, REQUEST, contact, self.cost, wanted)
        self.books[day].ask(wanted, granted)
        asked = self.asked.setdefault(cohort.number, np.zeros(len(cohort), dtype=np.uint32))
        asked += granted.astype(np.uint32)
        per_view = self.scenario.behaviour.slots_per_view
        slots = Slots(visits, is_open, self.scores(world, cohort), granted, per_view)
        filled = self._fill(cohort, day, slots)
        self._write(world, cohort, day, slots, filled)
        if self.reports is not None:
            self.reports.draw(cohort, day, visits, filled.ad, is_open)
        return Served(filled.ad, is_public=not self.delivery.is_slate)

    def _fill(self, cohort: Cohort, day: int, slots: Slots) -> Filled:
        fill = fill_daily if self.is_daily else fill_each
        repeat = block_of(self.scenario).delivery.exhausted == "repeat"
        coins = self.source.child("request", cohort.number, day)
        return fill(self.delivery, slots, self._memory(cohort), coins, repeat=repeat)

    def released(self, cohort: Cohort) -> NDArray[np.int64]:
        """Return the ad that each user asked for last; one past the last ad where none was."""
        memory = self._memory(cohort)
        return np.where(memory.has, memory.requests, self.scenario.behaviour.ads).astype(np.int64)

    def _memory(self, cohort: Cohort) -> Memory:
        """Return what the devices of a cohort were given last."""
        if cohort.number not in self.memories:
            made = Memory.none(len(cohort), self.delivery, is_daily=self.is_daily)
            self.memories[cohort.number] = made
        return self.memories[cohort.number]

    def _write(
        self, world: AdWorld, cohort: Cohort, day: int, slots: Slots, filled: Filled
    ) -> None:
        """Write down how well the shown ads are liked, beside popular ones and the best."""
        book, liking = self.books[day], world.tastes.liking(cohort)
        user, ad = slots.visits.user, filled.ad
        book.slots += len(ad)
        book.personal += int(np.count_nonzero(filled.personal))
        book.pushed += int(np.count_nonzero(ad == self.scenario.threat.pushed_ad))
        # Of ads that are liked equally, any is the best.
        book.hits += int(np.count_nonzero(liking[user, ad] == liking.max(axis=1)[user]))
        book.liking += millionths(liking[user, ad])
        book.popular += millionths(liking[user, slots.visits.popular])
        book.best += millionths(liking[user, slots.scores.argmax(axis=1)[user]])

    def wake(self, cohort: Cohort, day: int, account: Account) -> Iterator[bytes]:
        """Report which ad of the slates was shown, one of the day's, protected."""
        if self.reports is not None:
            yield from self.reports.frames(cohort, day, _contact(cohort, day), account)

    def finish(self, aggregator: Aggregation) -> list[Metric]:
        """Tell what was shown, how well it was liked, and what asking for it cost."""
        protected = [] if self.reports is None else self.reports.metrics(aggregator)
        return delivery_metrics(self.books, self.asked) + protected


def _contact(cohort: Cohort, day: int) -> NDArray[np.bool_]:
    return in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)
