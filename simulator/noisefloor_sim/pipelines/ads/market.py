"""The auction in the world: the same impressions sold by all, some or nothing of what is known.

Users with an even number have their impressions of the last day sold; the others are the panel
from whose protected reports of the days before bidders learn their tables. Only with tracking do
bidders have the true chances.

Bid requests as they would leave for bidders: built from what devices released, and checked.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads import auction
from noisefloor.ads.delivery import AdDelivery
from noisefloor.ads.training import Single
from noisefloor.checks import LARGEST_EPSILON, SMALLEST_EPSILON
from noisefloor.errors import OutOfDomain
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import Aggregation
from noisefloor.wire import Kind, sealed_frames
from noisefloor_sim.inspection import DeviceFrame
from noisefloor_sim.pipelines.ads.block import block_of
from noisefloor_sim.pipelines.ads.delivery import delivery_of
from noisefloor_sim.pipelines.ads.panel import ChanceTables, Panel, campaign_ads
from noisefloor_sim.pipelines.ads.sales import Sale, explained_share, overspent, sales_metrics
from noisefloor_sim.pipelines.api import Metric, SentBidRequests, ServedAds
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import (
    AdWorld,
    BudgetAccount,
    Cohort,
    DayActivity,
    Visits,
    click_chances,
    draw_pages,
    in_contact,
)

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
        panel: Whose reports bidders learn from.
        lots: Impressions of the days that are not over, by day and cohort.
        last: The impressions of the last day, which are sold once all reports are in.
        sizes: Of the bid requests that were written out and read back, in bytes.
        example: Day, symbol and topic of the first of them.
    """

    scenario: Scenario
    source: SeededSource
    delivery: AdDelivery
    panel: Panel = field(init=False)
    lots: dict[tuple[int, int], ImpressionLot] = field(default_factory=dict)
    last: ImpressionLot | None = None
    sizes: dict[int, list[int]] = field(default_factory=dict)
    example: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        self.panel = Panel(self.scenario, self.source)

    def serve(
        self,
        world: AdWorld,
        cohort: Cohort,
        day: int,
        visits: Visits,
        released: NDArray[np.int64],
        served: ServedAds,
    ) -> ServedAds:
        """Offer the impressions of a cohort's day, and show the panel what is drawn at random.

        Returns:
            What is shown, and the bid requests of the day once all cohorts have come.
        """
        if cohort.first >= block_of(self.scenario).auction.users:
            return served
        randomness = self.source.child("page", cohort.number, day)
        topic = draw_pages(world, cohort, visits, randomness)
        is_open = _contact(cohort, day)[visits.user, visits.device]
        shown = self.panel.explore(cohort, day, visits, is_open, topic, released, served.ad)
        bids = self._offer(world, cohort, day, visits, topic, released)
        return replace(served, ad=shown, bid_requests=bids)

    def wake(
        self, cohort: Cohort, day: int, activity: DayActivity, account: BudgetAccount
    ) -> Iterator[DeviceFrame]:
        """Let the panel report."""
        if cohort.number in self.panel.explored:
            yield from self.panel.frames(cohort, day, activity, account, _contact(cohort, day))

    def _offer(
        self,
        world: AdWorld,
        cohort: Cohort,
        day: int,
        visits: Visits,
        topic: NDArray[np.int64],
        released: NDArray[np.int64],
    ) -> SentBidRequests | None:
        """Take in the impressions of a cohort's day; return its bid requests if all have come."""
        people, most = self.scenario.population, block_of(self.scenario).auction.users
        number = cohort.first + visits.user
        rows = np.flatnonzero((number % 2 == 0) & (number < most))
        user = visits.user[rows]
        chance = liking = np.zeros((len(rows), 0), dtype=np.float32)
        if day == self.scenario.days - 1:
            ads = campaign_ads(self.scenario)
            chance = click_chances(world, cohort)[:, ads][user]
            liking = world.tastes.liking(cohort)[:, ads][user]
        self.lots[day, cohort.number] = ImpressionLot(
            visits.hour[rows], number[rows], released[user], topic[rows], chance, liking
        )
        cohorts_expected = -(-min(most, people.users) // people.cohort)
        has_all = sum(key[0] == day for key in self.lots) == cohorts_expected
        return self._close(day) if has_all else None

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

    def finish(self, aggregator: Aggregation) -> list[Metric]:
        """Sell the last day by what bidders learnt, and tell of the requests that were written."""
        sizes = [size for day in sorted(self.sizes) for size in self.sizes[day]]
        if self.last is None or self.example is None:
            return []
        tables = self.panel.tables(aggregator, self.scenario.days - 1)
        named = zip(("day", "symbol", "topic"), self.example, strict=True)
        topics, symbols = self.scenario.population.topics, self.delivery.ads + 1
        lot, randomness = self.last, self.source.child("halves")
        return [
            *sales_metrics(self.sell(lot, tables), randomness),
            Metric("auction.panel.reports", float(tables.reports), n=tables.reports),
            Metric("auction.context_r2", explained_share(lot.topic, lot.liking, topics)),
            Metric("auction.symbol_r2", explained_share(lot.released, lot.liking, symbols)),
            Metric("auction.request.bytes", float(np.mean(sizes)), n=len(sizes)),
            *(Metric(f"auction.request.{name}", float(value)) for name, value in named),
        ]

    def _close(self, day: int) -> SentBidRequests | None:
        """Write the bid requests of a day, and forget its impressions unless they are sold."""
        lot = self._day(day)
        if not len(lot.user):
            return None
        if day == self.scenario.days - 1:
            self.last = lot
        self._write_requests(day, lot)
        return self._bid_requests(day, lot)

    def _bid_requests(self, day: int, lot: ImpressionLot) -> SentBidRequests:
        """Write what the day's bid requests tell bidders as frames."""
        none = np.full(len(lot.user), self.delivery.ads, dtype=np.int64)
        symbol = lot.released if carries_symbol(self.delivery) else none
        columns = {"symbol": symbol, "topic": lot.topic.astype(np.int64)}
        randomness = self.source.child("bid-request-frame", day)
        frames = tuple(sealed_frames(self.kind, day, columns, randomness))
        return SentBidRequests(self.kind, day, frames, columns, lot.user)

    def sell(self, lot: ImpressionLot, tables: ChanceTables) -> Sale:
        """Sell impressions in order of the hour, under each regime."""
        block, free = block_of(self.scenario).auction, self.bidders()
        randomness = self.source.child("ties")
        goods = auction.Inventory.of(
            lot.chance, free, randomness, floors=block.floor_micros, taste=lot.liking
        )
        signals = self._signals(lot, tables, free)
        pacing = auction.Pacing(len(goods))
        # What the market would spend without budgets sets what budgets are.
        open_ = auction.run_auctions(
            goods, signals["contextual"], free, pacing, rule=self.rule
        ).log
        budget = int(block.budget_share * open_.price.sum() / block.bidders)
        bidders = self.bidders(min(budget, auction.UNLIMITED))
        sales = auction.run_regimes(goods, signals.values(), bidders, pacing, rule=self.rule)
        logs = {name: sale.log for name, sale in zip(signals, sales, strict=True)}
        worth = np.multiply(lot.chance, bidders.click, dtype=np.float64)
        return Sale(lot.user, logs, worth, sum(overspent(log, bidders) for log in logs.values()))

    def _signals(
        self, lot: ImpressionLot, tables: ChanceTables, bidders: auction.Bidders
    ) -> dict[str, auction.Signal]:
        """Return what bidders get of the impressions under each regime.

        The random regime gets what devices released and the page of an impression that is drawn at
        random: bids are as in the protected regime, and say nothing of who sees the ad.
        """
        by_both = tables.by_both.reshape(-1, len(bidders))
        pairs = lot.released * self.scenario.population.topics + lot.topic
        shuffled = self.source.child("random").generator().permutation(pairs)
        return {
            "tracking": auction.tracking(lot.chance, bidders),
            "protected": auction.protected(pairs, by_both, bidders),
            "symbol": auction.protected(lot.released, tables.by_symbol, bidders),
            "contextual": auction.contextual(lot.topic, tables.by_topic, bidders),
            "random": auction.protected(shuffled, by_both, bidders),
        }

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


def _contact(cohort: Cohort, day: int) -> NDArray[np.bool_]:
    return in_contact(cohort.owns, cohort.silent[:, :, day], cohort.leaves > day)


def _spread(rows: NDArray[np.intp], most: int) -> list[int]:
    """Return some of the rows, evenly spread."""
    if not len(rows):
        return []
    places = np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.intp)
    return [int(row) for row in rows[places]]
