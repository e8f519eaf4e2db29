"""The auction in the world: the same impressions sold with tracking, protected, and by context.

Users with an even number have their impressions sold; the others are a panel from which bidders
know how often people click who released this ad on a page of this topic, or look at such a page.
So no table is made from the people whose impressions are sold.

Bid requests as they would leave for bidders: built from what devices released, and checked.
"""

import json
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads import auction
from noisefloor.ads.delivery import AdDelivery
from noisefloor.ads.training import Single
from noisefloor.checks import LARGEST_EPSILON, SMALLEST_EPSILON
from noisefloor.errors import OutOfDomain
from noisefloor.randomness import Generator, SeededSource, new_run
from noisefloor.wire import Kind, sealed_frames
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import delivery_of
from noisefloor_sim.pipelines.ads.sales import BLIND, DaySales, overspent, sales_metrics
from noisefloor_sim.pipelines.api import Metric, SentBidRequests
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import AdWorld, Cohort, Visits, click_chances

EACH_DAY = 4
"""Requests that are written out and read back on each day."""


def market_source(scenario: Scenario) -> SeededSource:
    """Return where the market's random numbers come from."""
    return SeededSource(scenario.seed, "pipeline", "ads", "market")


def carries_symbol(delivery: AdDelivery) -> bool:
    """Tell whether bid requests carry what devices released.

    What is drawn blindly or sent in the open has no place in a bid request: it goes without.
    """
    return SMALLEST_EPSILON <= delivery.guarantee().epsilon <= LARGEST_EPSILON


def request_text(
    scenario: Scenario, delivery: AdDelivery, symbol: int, topic: int, source: SeededSource
) -> str:
    """Return one impression's request as JSON, after it was read back as a bidder would.

    Args:
        scenario: The point.
        delivery: By which the device released an ad.
        symbol: The ad; one past the last where none was released.
        topic: Of the page.
        source: Of the request's id.
    """
    released = None
    if symbol < delivery.ads and carries_symbol(delivery):
        released = auction.ReleasedSymbol(symbol, delivery.ads, delivery.guarantee().epsilon)
    floor = block_of(scenario).auction.floor_micros
    slot = auction.Slot(floor_micros=floor, category=f"IAB{topic + 1}")
    text = auction.write_request(auction.bid_request(released, slot, source))
    if auction.released_of(auction.read_request(text)) != released:
        raise OutOfDomain("Bid request: does not read back as it was written.")
    return text


def request_source(source: SeededSource, day: int, place: int) -> SeededSource:
    """Return where the id of one request comes from."""
    return source.child("bid-request", day, place)


def example_lines(scenario: Scenario, day: int, symbol: int, topic: int) -> list[str]:
    """Return the first request of a day again, as lines of indented JSON, for the report."""
    with new_run():
        source = request_source(market_source(scenario), day, 0)
        text = request_text(scenario, delivery_of(scenario), symbol, topic, source)
    return json.dumps(json.loads(text), indent=2).splitlines()


@dataclass(frozen=True, slots=True)
class ImpressionLot:
    """Impressions: what is offered, and what is true of it; one row each.

    Attributes:
        hour: Of the day.
        user: Whose it is; no bidder gets it.
        released: The ad that the device asked for; one past the last where it did not.
        topic: Of the page.
        chance: Of a click, for each campaign's ad.
        liking: How much the user likes each campaign's ad.
    """

    hour: NDArray[np.uint8]
    user: NDArray[np.int64]
    released: NDArray[np.int64]
    topic: NDArray[np.int64]
    chance: Single
    liking: Single

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> "ImpressionLot":
        return ImpressionLot(*(getattr(self, name)[rows] for name in _COLUMNS))


_COLUMNS = ("hour", "user", "released", "topic", "chance", "liking")


@dataclass(slots=True)
class MarketPhase:
    """Auctions of one world.

    Attributes:
        scenario: The point.
        source: Of all random numbers of the market.
        delivery: By which devices release an ad.
        lots: Impressions of the days that are not over, by day and cohort.
        days: What was sold, by day.
        sizes: Of the bid requests that were written out and read back, in bytes.
        example: Day, symbol and topic of the first of them.
    """

    scenario: Scenario
    source: SeededSource
    delivery: AdDelivery
    lots: dict[tuple[int, int], ImpressionLot] = field(default_factory=dict)
    days: dict[int, DaySales] = field(default_factory=dict)
    sizes: dict[int, list[int]] = field(default_factory=dict)
    example: tuple[int, int, int] | None = None

    def offer(
        self,
        world: AdWorld,
        cohort: Cohort,
        day: int,
        visits: Visits,
        released: NDArray[np.int64],
    ) -> SentBidRequests | None:
        """Take in the impressions of a cohort's day, and sell the day once all have come.

        Returns:
            The bid requests of the day, if it is sold now.
        """
        people, most = self.scenario.population, block_of(self.scenario).auction.users
        if cohort.first >= most:
            return None
        lot = self._lot(world, cohort, day, visits, released)
        self.lots[day, cohort.number] = lot[lot.user < most]
        cohorts_expected = -(-min(most, people.users) // people.cohort)
        has_all = sum(key[0] == day for key in self.lots) == cohorts_expected
        return self._close(day) if has_all else None

    def _lot(
        self,
        world: AdWorld,
        cohort: Cohort,
        day: int,
        visits: Visits,
        released: NDArray[np.int64],
    ) -> ImpressionLot:
        # People look at pages of what they care for: a page's topic is drawn from interests.
        ads, per_view = self._ads(), self.scenario.ad_behaviour.slots_per_view
        draw = self.source.child("page", cohort.number, day).generator()
        viewer = visits.user[::per_view]
        ends = np.cumsum(cohort.interests, axis=1)[viewer]
        page = (draw.random((len(viewer), 1)) * ends[:, -1:] >= ends).sum(axis=1)
        page = np.minimum(page, ends.shape[1] - 1)
        return ImpressionLot(
            visits.hour,
            cohort.first + visits.user,
            released[visits.user],
            np.repeat(page, per_view),
            click_chances(world, cohort)[:, ads][visits.user],
            world.tastes.liking(cohort)[:, ads][visits.user],
        )

    def _ads(self) -> NDArray[np.intp]:
        """Return the ads that campaigns are for: spread evenly over the catalogue."""
        bidders = block_of(self.scenario).auction.bidders
        return np.arange(bidders) * self.scenario.ad_behaviour.ads // bidders

    def bidders(self, budget: int = auction.UNLIMITED) -> auction.Bidders:
        """Return the advertisers: one campaign each, clicks worth more to some than to others."""
        block = block_of(self.scenario).auction
        draw = self.source.child("values").generator()
        worth = block.value_micros * draw.lognormal(0.0, 0.4, block.bidders)
        shade = auction.equilibrium_shade(block.bidders)
        return auction.Bidders.of(
            [
                # The column of a campaign's ad in the tables is the campaign's own place.
                auction.Campaign(place, place, int(value), budget_micros=budget, shade=shade)
                for place, value in enumerate(worth)
            ]
        )

    @property
    def kind(self) -> Kind:
        """The kind of frame that carries the day's bid requests."""
        return auction.bid_requests_kind(self.delivery.ads, self.scenario.population.topics)

    @property
    def rule(self) -> auction.AuctionType:
        """What winners pay."""
        is_first = block_of(self.scenario).auction.price == "first"
        return auction.AuctionType.FIRST_PRICE if is_first else auction.AuctionType.SECOND_PRICE

    def finish(self) -> list[Metric]:
        """Tell what was sold, and of the requests that were written out."""
        sales = sales_metrics([self.days[day] for day in sorted(self.days)])
        sizes = [size for day in sorted(self.sizes) for size in self.sizes[day]]
        if self.example is None:
            return sales
        named = zip(("day", "symbol", "topic"), self.example, strict=True)
        return [
            *sales,
            Metric("auction.request.bytes", float(np.mean(sizes)), n=len(sizes)),
            *(Metric(f"auction.request.{name}", float(value)) for name, value in named),
        ]

    def _close(self, day: int) -> SentBidRequests | None:
        """Sell a day's impressions, and forget them."""
        lot = self._day(day)
        is_panel = lot.user % 2 == 1
        if is_panel.all() or not is_panel.any():
            return None
        sold = lot[~is_panel]
        self.days[day] = self._sell(day, sold, lot[is_panel])
        self._write_requests(day, sold)
        return self._bid_requests(day, sold)

    def _bid_requests(self, day: int, lot: ImpressionLot) -> SentBidRequests:
        """Write what the day's bid requests tell bidders as frames."""
        none = np.full(len(lot.user), self.delivery.ads, dtype=np.int64)
        symbol = lot.released if carries_symbol(self.delivery) else none
        columns = {"symbol": symbol, "topic": lot.topic.astype(np.int64)}
        randomness = self.source.child("bid-request-frame", day)
        frames = tuple(sealed_frames(self.kind, day, columns, randomness))
        return SentBidRequests(self.kind, day, frames, columns, lot.user)

    def _sell(self, day: int, lot: ImpressionLot, panel: ImpressionLot) -> DaySales:
        """Sell one day's impressions in order of the hour."""
        block, free = block_of(self.scenario).auction, self.bidders()
        randomness = self.source.child("ties", day)
        goods = auction.Inventory.of(
            lot.chance, free, randomness, floors=block.floor_micros, taste=lot.liking
        )
        signals = self._signals(day, lot, panel, free)
        pacing = auction.Pacing(len(goods))
        # What the market would spend without budgets sets what budgets are.
        open_ = auction.run_auctions(
            goods, signals["contextual"], free, pacing, rule=self.rule
        ).log
        budget = int(block.budget_share * open_.price.sum() / block.bidders)
        bidders = self.bidders(min(budget, auction.UNLIMITED))
        sales = auction.run_regimes(goods, signals.values(), bidders, pacing, rule=self.rule)
        logs = {name: sale.log for name, sale in zip(signals, sales, strict=True)}
        return DaySales(lot.user, logs, sum(overspent(log, bidders) for log in logs.values()))

    def _signals(
        self, day: int, lot: ImpressionLot, panel: ImpressionLot, bidders: auction.Bidders
    ) -> dict[str, auction.Signal]:
        """Return what bidders get of the impressions under each regime."""
        by_topic = auction.mean_chance(panel.topic, panel.chance, self.scenario.population.topics)
        draw = self.source.child("blind", day).generator()
        sold, known = (replace(it, released=_shuffled(it, draw)) for it in (lot, panel))
        return {
            "tracking": auction.tracking(lot.chance, bidders),
            "protected": self._protected(lot, panel, bidders),
            "contextual": auction.contextual(lot.topic, by_topic, bidders),
            BLIND: self._protected(sold, known, bidders),
        }

    def _protected(
        self, lot: ImpressionLot, panel: ImpressionLot, bidders: auction.Bidders
    ) -> auction.Signal:
        """Tell what devices released, and the page: pairs of the two are numbered."""
        symbols, topics = self.scenario.ad_behaviour.ads + 1, self.scenario.population.topics
        pairs, known = (it.topic * symbols + it.released for it in (lot, panel))
        return auction.protected(
            pairs, auction.mean_chance(known, panel.chance, topics * symbols), bidders
        )

    def _write_requests(self, day: int, lot: ImpressionLot) -> None:
        """Write out a few of the day's requests, and read them back as bidders would."""
        has = lot.released < self.delivery.ads
        # Most of them with a released ad, one of a device that has none: both forms are sent.
        rows = [*_spread(np.flatnonzero(has), EACH_DAY - 1), *_spread(np.flatnonzero(~has), 1)]
        self.sizes[day] = []
        for place, row in enumerate(rows):
            symbol, topic = int(lot.released[row]), int(lot.topic[row])
            source = request_source(self.source, day, place)
            text = request_text(self.scenario, self.delivery, symbol, topic, source)
            self.sizes[day].append(len(text.encode()))
            if place == 0 and (self.example is None or day < self.example[0]):
                self.example = day, symbol, topic

    def _day(self, day: int) -> ImpressionLot:
        """Return all impressions of a day by the hour; cohorts may have come in any order."""
        keys = sorted(key for key in self.lots if key[0] == day)
        lots = [self.lots.pop(key) for key in keys]
        whole = ImpressionLot(
            *(np.concatenate([getattr(lot, it) for lot in lots]) for it in _COLUMNS)
        )
        return whole[np.argsort(whole.hour, kind="stable")]


def _shuffled(lot: ImpressionLot, draw: Generator) -> NDArray[np.int64]:
    """Return what was released, handed out among users at random."""
    _, first, whose = np.unique(lot.user, return_index=True, return_inverse=True)
    return np.asarray(draw.permutation(lot.released[first])[whose])


def _spread(rows: NDArray[np.intp], most: int) -> list[int]:
    """Return some of the rows, evenly spread."""
    if not len(rows):
        return []
    places = np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.intp)
    return [int(row) for row in rows[places]]
