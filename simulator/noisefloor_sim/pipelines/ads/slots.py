"""Filling slots with ads: asked for once a day, or for every impression, as the budget goes.

Impressions that slates hide: each user reports one shown ad of the day, protected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import Amount
from noisefloor.ads.clicks import ImpressionReport
from noisefloor.ads.delivery import AdDelivery
from noisefloor.ads.training import Single
from noisefloor.mechanisms import Reports
from noisefloor.randomness import SeededSource
from noisefloor.roles import Aggregation
from noisefloor.wire import Kind
from noisefloor_sim.inspection import DeviceFrame, device_frames
from noisefloor_sim.pipelines.ads.flows import SHOWN, ShownFlow, ShownTruth
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.world import BudgetAccount, Cohort, Visits

Ads = NDArray[np.uint16]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FilledSlots:
    """The ad in each slot, and the requests that were made for them.

    Attributes:
        ad: In each slot.
        personal: Which slots were filled by a request.
        requests: Fresh requests, as they were drawn.
        users: Whose each of them is, in increasing order.
    """

    ad: Ads
    personal: Flags
    requests: Reports
    users: Counts


@dataclass(frozen=True, slots=True)
class LastRequests:
    """What a cohort's devices were given last: a request of the day, or the ad shown last.

    Attributes:
        requests: One per user.
        has: Who was given anything.
    """

    requests: Reports
    has: Flags

    @classmethod
    def none(cls, users: int, delivery: AdDelivery, *, is_daily: bool) -> Self:
        """Return the memory of users who have asked for nothing yet."""
        is_wide = delivery.is_slate and is_daily
        shape = (users, delivery.slate) if is_wide else (users,)
        dtype = np.min_scalar_type(delivery.ads - 1)
        return cls(np.zeros(shape, dtype=dtype), np.zeros(users, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of a cohort's day, as devices fill them.

    Attributes:
        visits: The slots.
        is_open: Which are on a device in contact: others show popular ads.
        scores: Of each user for each ad.
        granted: How many fresh requests each user has paid for.
        per_view: Slots on a page.
        lender: By whose scores each user makes requests: the own, or those of the other witness
            of a pair, who makes as many. What comes is shown to whom the scores belong.
    """

    visits: Visits
    is_open: Flags
    scores: Single
    granted: Counts
    per_view: int
    lender: Counts


def fill_daily(
    delivery: AdDelivery,
    slots: Slots,
    memory: LastRequests,
    randomness: SeededSource,
    *,
    repeat: bool,
) -> FilledSlots:
    """Ask once a day, and show what came in every slot: using it again costs nothing.

    Args:
        delivery: How devices ask.
        slots: What is to be filled.
        memory: What was given last; it is changed.
        randomness: Of this day's requests.
        repeat: Whether a device without budget shows the last request's ads again, or popular
            ones.
    """
    asked, user = np.flatnonzero(slots.granted), slots.visits.user
    if not repeat:
        memory.has[:] = False
    lender = slots.lender[asked]
    requests = delivery.request(slots.scores[lender], randomness)
    memory.requests[lender] = requests
    memory.has[asked] = True
    personal = slots.is_open & memory.has[user]
    ad = slots.visits.popular.copy()
    if delivery.is_slate:
        width = min(slots.per_view, delivery.slate)
        ranked = delivery.ranked(memory.requests, slots.scores, width)
        place = np.flatnonzero(personal) % slots.per_view
        ad[personal] = ranked[user[personal], place % width]
    else:
        ad[personal] = memory.requests[user[personal]]
    return FilledSlots(ad, personal, requests, asked)


def fill_each(
    delivery: AdDelivery,
    slots: Slots,
    memory: LastRequests,
    randomness: SeededSource,
    *,
    repeat: bool,
) -> FilledSlots:
    """Ask for every slot, as far as the budget goes; then show the last ad again, or popular ones.

    Args:
        delivery: How devices ask.
        slots: What is to be filled.
        memory: What was shown last; it is changed.
        randomness: Of this day's requests.
        repeat: Whether a device that cannot pay shows the last ad again, or popular ones.
    """
    places, granted = np.flatnonzero(slots.is_open), slots.granted
    users = slots.visits.user[places]
    first = np.searchsorted(users, np.arange(len(granted)))
    is_fresh = np.arange(len(users)) - first[users] < granted[users]
    rows = users[is_fresh]
    given = np.zeros(len(users), dtype=np.uint16)
    lender, starts = slots.lender[rows], np.searchsorted(rows, np.arange(len(granted)))
    requests = delivery.request(slots.scores[lender], randomness)
    # A lender's request of the same number is the one that was made by the own scores.
    own = starts[lender] + np.arange(len(rows)) - starts[rows]
    given[is_fresh] = delivery.shown(requests[own], slots.scores[rows])
    asked = np.flatnonzero(granted)
    memory.requests[asked] = given[first[asked] + granted[asked] - 1]
    memory.has[asked] = True
    has = is_fresh
    if repeat:
        has = is_fresh | memory.has[users]
        again = has & ~is_fresh
        given[again] = memory.requests[users[again]]
    ad, personal = slots.visits.popular.copy(), np.zeros(len(slots.is_open), dtype=np.bool_)
    ad[places[has]] = given[has]
    personal[places[has]] = True
    return FilledSlots(ad, personal, requests, rows)


@dataclass(frozen=True, slots=True)
class SampledImpressions:
    """One shown ad of each user's day, and who has one."""

    ad: Ads
    has: Flags


@dataclass(slots=True)
class ImpressionReporting:
    """Daily reports of shown ads, in one world.

    Attributes:
        report: What protects them.
        source: Of their random numbers.
        flow: What is declared of them.
        truth: What was reported, by day and ad; only scoring reads it.
        samples: Of the cohorts whose day is not over.
    """

    report: ImpressionReport
    source: SeededSource
    flow: ShownFlow
    truth: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    samples: dict[int, SampledImpressions] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries them."""
        return self.report.kind

    def draw(self, cohort: Cohort, day: int, visits: Visits, ad: Ads, is_open: Flags) -> None:
        """Draw one of the day's slots for each user, without a look at what is shown there."""
        users = visits.user[is_open]
        count = np.bincount(users, minlength=len(cohort))
        first = np.searchsorted(users, np.arange(len(cohort)))
        draw = self.source.child("sampled-slot", cohort.number, day).generator()
        place = first + np.floor(draw.random(len(cohort)) * count).astype(np.int64)
        has = np.asarray(count > 0)
        shown = np.zeros(len(cohort), dtype=np.uint16)
        shown[has] = ad[is_open][place[has]]
        self.samples[cohort.number] = SampledImpressions(shown, has)

    def frames(
        self, cohort: Cohort, day: int, contact: Flags, account: BudgetAccount
    ) -> Iterator[DeviceFrame]:
        """Report which ad was drawn, as far as the budget goes."""
        sample = self.samples.pop(cohort.number)
        cost = Amount.cost(self.report.guarantee()).micro_epsilon
        paid = account.spend(day, SHOWN, contact & sample.has[:, None], cost) > 0
        own_ads = sample.ad[paid]
        if not len(own_ads):
            return
        pairs = self.flow.pairs(cohort.number, day, own_ads)
        reported_ads = pairs.exchange(own_ads)
        counts = np.bincount(reported_ads, minlength=self.report.ads)
        self.truth[day] = self.truth.get(day, np.zeros_like(counts)) + counts
        reports = self.report.randomise(
            reported_ads, self.source.child("shown", cohort.number, day)
        )
        randomness = self.source.child("shown-frame", cohort.number, day)
        truth = ShownTruth(day, len(cohort), np.flatnonzero(paid), reported_ads, pairs)
        yield from device_frames(
            self.kind.name, cohort.number, self.kind, day, reports, randomness, truth=truth
        )

    def metrics(self, aggregator: Aggregation) -> list[Metric]:
        """Compare estimated with true impressions per ad, and the error with its formula."""
        misses, errors = [], []
        for day, truth in sorted(self.truth.items()):
            tally, n = aggregator.release(self.kind.name, day)
            if n:
                found = self.report.impressions(tally, n)
                misses.append(found.value - truth)
                errors.append(found.standard_error)
        if not misses:
            return []
        mean = max(float(np.mean(list(self.truth.values()))), 1e-9)
        error, formula = (float(np.sqrt(np.mean(np.square(some)))) for some in (misses, errors))
        return [
            Metric("impressions_error", error / mean, n=np.size(misses)),
            Metric("impressions_error.formula", formula / mean, n=np.size(misses)),
        ]
