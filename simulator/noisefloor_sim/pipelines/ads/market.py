"""The auction in the world: the same impressions sold with tracking, protected, and by context.

Users with an even number have their impressions sold; the others are a panel from which bidders
know how often people click who released this ad on a page of this topic, or look at such a page.
So no table is made from the people whose impressions are sold.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction.bidders import UNLIMITED, Bidders, Campaign, equilibrium_shade
from noisefloor.ads.auction.clearing import Rule
from noisefloor.ads.auction.market import Impressions, Log, run_auctions, run_regimes
from noisefloor.ads.auction.pacing import Pacing
from noisefloor.ads.auction.signals import Signal, contextual, mean_chance, protected, tracking
from noisefloor.ads.auction.summary import Mean, summarise
from noisefloor.ads.factors import Single
from noisefloor.randomness import SeededSource
from noisefloor_sim.behaviour import AdWorld, Visits, click_chances
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.base import Metric
from noisefloor_sim.population import Cohort
from noisefloor_sim.scenario.model import Scenario

REGIMES = ("tracking", "protected", "contextual")

_Z = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""


@dataclass(frozen=True, slots=True)
class Lot:
    """The impressions of one cohort and day: what is offered, and what is true of it."""

    hour: NDArray[np.uint8]
    user: NDArray[np.int64]
    released: NDArray[np.int64]
    topic: NDArray[np.int64]
    chance: Single
    liking: Single


@dataclass(slots=True)
class MarketPhase:
    """Auctions of one world."""

    scenario: Scenario
    source: SeededSource
    lots: dict[tuple[int, int], Lot] = field(default_factory=dict)

    def offer(
        self,
        world: AdWorld,
        cohort: Cohort,
        day: int,
        visits: Visits,
        released: NDArray[np.int64],
    ) -> None:
        """Take in the impressions of a cohort's day, if the cohort is among those sold."""
        if cohort.first >= block_of(self.scenario).auction.users:
            return
        ads = self._ads()
        # People look at pages of what they care for: a page's topic is drawn from interests.
        draw = self.source.child("page", cohort.number, day).generator()
        views = len(visits.user) // self.scenario.behaviour.slots_per_view
        viewer = visits.user[:: self.scenario.behaviour.slots_per_view]
        ends = np.cumsum(cohort.interests, axis=1)[viewer]
        page = (draw.random((views, 1)) * ends[:, -1:] >= ends).sum(axis=1)
        page = np.minimum(page, ends.shape[1] - 1)
        self.lots[day, cohort.number] = Lot(
            visits.hour,
            cohort.first + visits.user,
            released[visits.user],
            np.repeat(page, self.scenario.behaviour.slots_per_view),
            click_chances(world, cohort)[:, ads][visits.user],
            world.tastes.liking(cohort)[:, ads][visits.user],
        )

    def _ads(self) -> NDArray[np.intp]:
        """Return the ads that campaigns are for: spread evenly over the catalogue."""
        bidders = block_of(self.scenario).auction.bidders
        return np.arange(bidders) * self.scenario.behaviour.ads // bidders

    def bidders(self, budget: int = UNLIMITED) -> Bidders:
        """Return the advertisers: one campaign each, clicks worth more to some than to others."""
        block = block_of(self.scenario).auction
        draw = self.source.child("values").generator()
        worth = block.value_micros * draw.lognormal(0.0, 0.4, block.bidders)
        shade = equilibrium_shade(block.bidders)
        return Bidders.of(
            [
                # The column of a campaign's ad in the tables is the campaign's own place.
                Campaign(place, place, int(value), budget_micros=budget, shade=shade)
                for place, value in enumerate(worth)
            ]
        )

    @property
    def rule(self) -> Rule:
        """What winners pay."""
        is_first = block_of(self.scenario).auction.price == "first"
        return Rule.FIRST_PRICE if is_first else Rule.SECOND_PRICE

    def finish(self) -> list[Metric]:
        """Sell every day's impressions under each regime, and add up."""
        days = sorted({day for day, _ in self.lots})
        logs: dict[str, list[Log]] = {name: [] for name in REGIMES}
        for day in days:
            for name, log in self._sell(day).items():
                logs[name].append(log)
        if not any(len(log) for log in logs["tracking"]):
            return []
        return [
            metric
            for name, parts in logs.items()
            for metric in _metrics(name, _joined(parts), self.bidders())
        ]

    def _sell(self, day: int) -> dict[str, Log]:
        """Sell one day's impressions in order of the hour."""
        lot = self._day(day)
        is_panel = lot.user % 2 == 1
        block, sold = block_of(self.scenario).auction, ~is_panel
        if not sold.any() or not is_panel.any():
            return {}
        coins = self.source.child("ties", day)
        free = self.bidders()
        goods = Impressions.of(
            lot.chance[sold], free, coins, floors=block.floor_micros, taste=lot.liking[sold]
        )
        signals = self._signals(lot, sold, is_panel, free)
        pacing = Pacing(len(goods))
        # What the market would spend without budgets sets what budgets are.
        open_ = run_auctions(goods, signals[-1], free, pacing, rule=self.rule).log
        budget = int(block.budget_share * open_.price.sum() / block.bidders)
        sales = run_regimes(goods, signals, self.bidders(budget), pacing, rule=self.rule)
        return {name: sale.log for name, sale in zip(REGIMES, sales, strict=True)}

    def _signals(
        self, lot: Lot, sold: NDArray[np.bool_], panel: NDArray[np.bool_], bidders: Bidders
    ) -> list[Signal]:
        """Return what bidders are told of the impressions under each regime."""
        symbols, topics = self.scenario.behaviour.ads + 1, self.scenario.population.topics
        # Whoever sees what was released sees the page as well: pairs of the two are numbered.
        pairs = lot.topic * symbols + lot.released
        by_pair = mean_chance(pairs[panel], lot.chance[panel], topics * symbols)
        by_topic = mean_chance(lot.topic[panel], lot.chance[panel], topics)
        return [
            tracking(lot.chance[sold], bidders),
            protected(pairs[sold], by_pair, bidders),
            contextual(lot.topic[sold], by_topic, bidders),
        ]

    def _day(self, day: int) -> Lot:
        """Return all impressions of a day by the hour; cohorts may have come in any order."""
        lots = [self.lots[key] for key in sorted(self.lots) if key[0] == day]
        hours = np.concatenate([lot.hour for lot in lots])
        order = np.argsort(hours, kind="stable")
        return Lot(
            hours[order],
            np.concatenate([lot.user for lot in lots])[order],
            np.concatenate([lot.released for lot in lots])[order],
            np.concatenate([lot.topic for lot in lots])[order],
            np.concatenate([lot.chance for lot in lots])[order],
            np.concatenate([lot.liking for lot in lots])[order],
        )


def _joined(logs: list[Log]) -> Log:
    columns = ("winner", "price", "bid", "second", "value", "taste")
    return Log(*(np.concatenate([getattr(log, name) for log in logs]) for name in columns))


def _metrics(regime: str, log: Log, bidders: Bidders) -> list[Metric]:
    """Return a regime's figures: money per thousand impressions, in whole units."""
    found = summarise(log, bidders)
    figures = {
        "revenue": (found.revenue, 1e-3),
        "value": (found.value, 1e-3),
        "surplus": (found.surplus, 1e-3),
        "fill": (found.fill_rate, 1.0),
        "relevance": (found.relevance, 1.0),
    }
    return [
        _metric(f"auction.{regime}.{name}", mean, scale, found.auctions)
        for name, (mean, scale) in figures.items()
    ]


def _metric(name: str, mean: Mean, scale: float, n: int) -> Metric:
    half = _Z * mean.standard_error * scale
    value = mean.value * scale
    return Metric(name, value, value - half, value + half, n)
