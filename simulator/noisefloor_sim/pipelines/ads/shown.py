"""Impressions that slates hide: each user reports one shown ad of the day, protected."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.entry import Amount
from noisefloor.ads.impressions import ImpressionReport
from noisefloor.randomness import SeededSource
from noisefloor.roles.protocols import Aggregation
from noisefloor.wire.frames import split_frames
from noisefloor.wire.kinds import Kind
from noisefloor_sim.behaviour import Visits
from noisefloor_sim.devices import Account
from noisefloor_sim.pipelines.ads.filling import Ads, Flags
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.population import Cohort

SHOWN = "shown-ad report"


@dataclass(frozen=True, slots=True)
class Sample:
    """One shown ad of each user's day, and who has one."""

    ad: Ads
    has: Flags


@dataclass(slots=True)
class ShownReports:
    """Daily reports of shown ads, in one world.

    Attributes:
        report: What protects them.
        source: Of their coins.
        truth: What was reported, by day and ad; only scoring reads it.
        samples: Of the cohorts whose day is not over.
    """

    report: ImpressionReport
    source: SeededSource
    truth: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    samples: dict[int, Sample] = field(default_factory=dict)

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
        self.samples[cohort.number] = Sample(shown, has)

    def frames(
        self, cohort: Cohort, day: int, contact: Flags, account: Account
    ) -> Iterator[bytes]:
        """Report which ad was drawn, as far as the budget goes."""
        sample = self.samples.pop(cohort.number)
        cost = Amount.cost(self.report.guarantee()).micro_epsilon
        paid = account.spend(day, SHOWN, contact & sample.has[:, None], cost) > 0
        held = sample.ad[paid]
        if not len(held):
            return
        counts = np.bincount(held, minlength=self.report.ads)
        self.truth[day] = self.truth.get(day, np.zeros_like(counts)) + counts
        reports = self.report.randomise(held, self.source.child("shown", cohort.number, day))
        coins = self.source.child("shown-frame", cohort.number, day)
        yield from split_frames(self.kind, day, reports, coins)

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
