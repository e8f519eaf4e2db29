"""The market: what is logged adds up, and more information is worth more."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from core.ads.auction.sequential import Exchange
from noisefloor.ads.auction import (
    UNFILLED,
    AuctionLog,
    AuctionType,
    Bidders,
    Campaign,
    Inventory,
    Pacing,
    Signal,
    contextual,
    equilibrium_shade,
    expected_chance,
    protected,
    run_auctions,
    run_regimes,
    summarise,
    tracking,
)
from noisefloor.ads.auction.summary import MeanWithError
from noisefloor.checks import Array
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import KaryResponse
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM

Z = 4.9
"""A normal exceeds it with probability 5e-7 on each side: FALSE_ALARM for two sides."""

PROFILES = 6
CLICK = 1_000_000


def paired_gain(first: AuctionLog, second: AuctionLog, column: str = "value") -> MeanWithError:
    """Return by how much the first regime exceeds the second, per auction.

    Args:
        first: A log.
        second: A log of the same impressions.
        column: One of price, bid, second, value, taste, or surplus (value less price).
    """
    if len(first) != len(second):
        raise BadParameter("second", f"<{len(second)} rows>", f"of {len(first)} rows")
    return MeanWithError.of(_column(first, column) - _column(second, column))


def _column(log: AuctionLog, name: str) -> Array:
    if name == "surplus":
        return np.asarray(log.value - log.price)
    if name not in ("price", "bid", "second", "value", "taste"):
        raise BadParameter("column", name, "to be a column of numbers, or surplus")
    return np.asarray(getattr(log, name))


def clicks_of_profiles() -> NDArray[np.float64]:
    """Return chances of a click: each profile has a favourite ad, some ads are liked by all."""
    liked = 0.02 + 0.01 * np.arange(PROFILES) / PROFILES
    return np.asarray(np.tile(liked, (PROFILES, 1)) + 0.05 * np.eye(PROFILES))


def six_bidders(budget: int | None = None) -> Bidders:
    limit = {} if budget is None else {"budget_micros": budget}
    return Bidders.of([Campaign(i, i, click_micros=CLICK, **limit) for i in range(PROFILES)])


class World:
    """People of six profiles, who look at one impression each."""

    def __init__(self, seed: int, count: int) -> None:
        self.seed = seed
        self.profile = SeededSource(seed, "profile").below(PROFILES, count).astype(np.int64)
        self.prior = np.full(PROFILES, 1 / PROFILES)
        self.chance = clicks_of_profiles()
        self.bidders = six_bidders()
        truth = self.chance[self.profile].astype(np.float32)
        self.impressions = Inventory.of(truth, self.bidders, SeededSource(seed, "market"))

    def tracking(self) -> Signal:
        return tracking(self.impressions.chance, self.bidders)

    def table(self, epsilon: float) -> NDArray[np.float64]:
        mechanism, symbols = KaryResponse(PROFILES, epsilon), np.arange(PROFILES)
        distribution = np.exp([mechanism.log_likelihood(symbols, one) for one in range(PROFILES)])
        return expected_chance(self.prior, distribution, self.chance)

    def protected(self, epsilon: float) -> Signal:
        source = SeededSource(self.seed, "release", f"{epsilon:g}")
        released = KaryResponse(PROFILES, epsilon).randomise(self.profile, source)
        return protected(released, self.table(epsilon), self.bidders)

    def contextual(self) -> Signal:
        nothing = np.zeros(len(self.profile), dtype=np.int64)
        return contextual(nothing, [self.prior @ self.chance], self.bidders)


def test_more_information_is_worth_more_to_advertisers(seed: int) -> None:
    world = World(seed, 60_000)
    signals = [
        world.tracking(),
        world.protected(4.0),
        world.protected(2.0),
        world.protected(0.5),
        world.contextual(),
    ]
    sales = run_regimes(world.impressions, signals, world.bidders, Pacing(60_000))
    # What is shown is worth more to those who pay for it, and to those who look at it.
    for column in ("value", "taste"):
        gains = [paired_gain(a.log, b.log, column) for a, b in pairwise(sales)]
        # At epsilon 0.5 a symbol hardly moves a bid: the first three steps are surely uphill.
        for gain in gains[:3]:
            assert gain.value > Z * gain.standard_error
        assert gains[3].value > -Z * gains[3].standard_error


def test_the_value_of_a_release_is_the_exact_one_and_grows_with_epsilon(seed: int) -> None:
    # The best ad given the symbol is shown; by symmetry every symbol is as likely as another.
    world = World(seed, 60_000)
    exact = [
        CLICK * world.table(epsilon).max(axis=1).mean() for epsilon in (1e-6, 0.5, 1, 2, 4, 30)
    ]
    assert all(less <= more + 1e-6 for less, more in pairwise(exact))
    assert exact[0] == pytest.approx(CLICK * (world.prior @ world.chance).max(), rel=1e-6)
    assert exact[-1] == pytest.approx(CLICK * world.chance.max(axis=1).mean(), rel=1e-6)
    signals = [world.protected(epsilon) for epsilon in (2, 4)]
    for sales, value in zip(
        run_regimes(world.impressions, signals, world.bidders, Pacing(60_000)),
        exact[3:5],
        strict=True,
    ):
        mean = summarise(sales.log, world.bidders).value
        assert abs(mean.value - value) < Z * mean.standard_error + 1


def test_a_release_at_a_vanishing_epsilon_is_worth_no_more_than_the_page(seed: int) -> None:
    world = World(seed, 40_000)
    signals = [world.protected(1e-6), world.contextual()]
    tiny, page = run_regimes(world.impressions, signals, world.bidders, Pacing(40_000))
    gain = paired_gain(tiny.log, page.log)
    assert abs(gain.value) <= Z * gain.standard_error or gain.value == 0
    assert abs(paired_gain(tiny.log, page.log, "price").value) < 2  # micros


def test_a_release_at_a_huge_epsilon_is_tracking() -> None:
    world = World(1, 5_000)
    signals = [world.protected(39.0), world.tracking()]
    clear_text, tracked = run_regimes(world.impressions, signals, world.bidders, Pacing(5_000))
    assert (clear_text.log.winner == tracked.log.winner).all()
    assert abs(clear_text.log.price - tracked.log.price).max() <= 1  # float32 against float64


@pytest.mark.statistical
@pytest.mark.parametrize("bidders", [2, 3, 6])
def test_first_and_second_price_bring_the_same_revenue_in_equilibrium(
    bidders: int, seed: int
) -> None:
    # Values uniform on [0, 1], n = 200,000: both bring (n - 1) / (n + 1) in expectation. The twin
    # shades as if there were one bidder more, and has to be distinguished.
    count = 200_000
    chance = SeededSource(seed, "values", bidders).generator().random((count, bidders))
    expected = CLICK * (bidders - 1) / (bidders + 1)

    def mean_price(rule: AuctionType, shade: float) -> tuple[float, float]:
        crowd = Bidders.of(
            [Campaign(i, i, click_micros=CLICK, shade=shade) for i in range(bidders)]
        )
        source = SeededSource(seed, "equivalence", bidders, rule.value, int(1e6 * shade))
        impressions = Inventory.of(chance, crowd, source)
        signal = tracking(chance, crowd)
        sales = run_auctions(impressions, signal, crowd, Pacing(count), rule=rule)
        return summarise(sales.log, crowd).revenue

    right = equilibrium_shade(bidders)
    for rule in AuctionType:
        value, error = mean_price(rule, right)
        assert abs(value - expected) < Z * error + 1, FALSE_ALARM
    value, error = mean_price(AuctionType.FIRST_PRICE, equilibrium_shade(bidders + 1))
    assert abs(value - expected) > Z * error + 1


@pytest.mark.parametrize("rule", list(AuctionType))
def test_a_whole_day_is_that_of_one_auction_after_the_other(rule: AuctionType) -> None:
    # Without pacing, so that bids do not depend on slices; floors and budgets both bite.
    campaigns = [
        Campaign(0, 0, click_micros=900, budget_micros=20_000, shade=0.9),
        Campaign(0, 1, click_micros=1000, budget_micros=50_000),
        Campaign(1, 2, click_micros=800, view_micros=20, budget_micros=9_000, shade=0.7),
        Campaign(2, 3, click_micros=700),
    ]
    bidders, count = Bidders.of(campaigns), 1500
    generator = SeededSource(1, "day").generator()
    chance = generator.integers(0, 17, (count, 4)) / 16  # few levels: many ties
    floors = generator.integers(0, 500, count)
    impressions = Inventory.of(chance, bidders, SeededSource(1, "coins"), floors=floors)
    signal = tracking(chance, bidders)
    pacing = Pacing(count, every=128, gain=0.0)
    sales = run_auctions(impressions, signal, bidders, pacing, rule=rule)

    is_first = rule is AuctionType.FIRST_PRICE
    exchange = Exchange(campaigns, bidders.budget.tolist(), is_first)
    expected = []
    for row in range(count):
        bids = []
        for one, some in zip(campaigns, chance[row], strict=True):
            scale = one.shade if is_first else 1.0
            bids.append(int(some * (one.click_micros * scale) + one.view_micros * scale))
        draw = int(impressions.draws[row])
        expected.append(exchange.sell(bids, int(floors[row]), draw))
    assert list(zip(sales.log.winner.tolist(), sales.log.price.tolist(), strict=True)) == expected
    assert sales.pacing_state.left.tolist() == exchange.left
    assert exchange.stopped == {0, 1, 2}


def small_sales(budget: int | None = None) -> tuple[Bidders, Inventory, AuctionLog]:
    bidders = six_bidders(budget)
    chance = SeededSource(2, "chance").generator().random((3_000, PROFILES), dtype=np.float32)
    floors = np.where(np.arange(3_000) % 2, 980_000, 0)
    source = SeededSource(2, "coins")
    impressions = Inventory.of(chance, bidders, source, floors=floors, taste=2 * chance - 1)
    signal = tracking(chance, bidders)
    return bidders, impressions, run_auctions(impressions, signal, bidders, Pacing(3_000)).log


def test_the_log_agrees_with_the_truth() -> None:
    bidders, impressions, log = small_sales()
    filled = np.flatnonzero(log.filled)
    assert 0 < len(filled) < len(log)
    winner = log.winner[filled]
    chance = impressions.chance[filled, winner].astype(np.float64)
    assert (log.value[filled] == (CLICK * chance).astype(np.int64)).all()
    assert log.taste[filled] == pytest.approx(2 * chance - 1, abs=1e-6)
    assert (log.bid[filled] == log.value[filled]).all()  # the truth is told
    assert (log.price[filled] >= impressions.floors[filled]).all()
    assert (log.price <= log.bid).all()
    for column in (log.price, log.value, log.taste):
        assert not column[~log.filled].any()
    assert (log.bid[~log.filled] < impressions.floors[~log.filled]).all()
    assert len(bidders) == PROFILES


def test_the_summary_adds_up() -> None:
    bidders, _, log = small_sales(budget=20_000_000)
    summary = summarise(log, bidders)
    assert summary.auctions == 3_000
    assert summary.filled == int((log.winner != UNFILLED).sum())
    assert summary.fill_rate.value == summary.filled / 3_000
    assert summary.revenue_micros == int(summary.spent.sum()) == int(log.price.sum())
    surplus = summary.value_micros - summary.revenue_micros
    assert summary.surplus.value * 3_000 == pytest.approx(surplus)
    assert surplus >= 0
    assert (summary.spent <= summary.budget).all()
    assert summary.spent_by_bidder.tolist() == summary.spent.tolist()
    error = log.price.std(ddof=1) / math.sqrt(3_000)
    assert summary.revenue.standard_error == pytest.approx(error)


def test_an_empty_batch_has_a_summary() -> None:
    bidders = six_bidders()
    impressions = Inventory.of(np.zeros((0, PROFILES)), bidders, SeededSource(1, "none"))
    signal = tracking(np.zeros((0, PROFILES)), bidders)
    sales = run_auctions(impressions, signal, bidders, Pacing(1))
    summary = summarise(sales.log, bidders)
    assert (summary.auctions, summary.revenue_micros, summary.relevance.value) == (0, 0, 0.0)
    assert sales.log.table().num_rows == 0


def test_the_log_is_an_arrow_table_of_the_same_numbers() -> None:
    _, _, log = small_sales()
    table = log.table()
    assert table.column_names == ["winner", "price", "bid", "second", "value", "taste", "filled"]
    assert (table["price"].to_numpy() == log.price).all()
    assert (table["filled"].to_numpy() == log.filled).all()


def test_nothing_in_the_market_names_anybody() -> None:
    names = {
        field.name for one in (Inventory, AuctionLog, Signal) for field in dataclasses.fields(one)
    }
    allowed = {"chance", "floors", "draws", "taste", "regime", "seen"}
    allowed |= {"winner", "price", "bid", "second", "value"}
    assert names == allowed


def test_what_is_not_tracked_does_not_reach_the_bids() -> None:
    # The same releases with other people behind them: bids and prices are the same.
    bidders, table = six_bidders(), np.full((2, PROFILES), 0.5) * [[1.0], [0.5]]
    logs = []
    for place, truth in enumerate((0.1, 0.9)):
        chance = np.full((100, PROFILES), truth)
        drawn = Inventory.of(chance, bidders, SeededSource(1, "people", place))
        draws = np.arange(100, dtype=np.uint64)
        impressions = dataclasses.replace(drawn, draws=draws)
        signal = protected(np.arange(100) % 2, table, bidders)
        logs.append(run_auctions(impressions, signal, bidders, Pacing(100)).log)
    assert (logs[0].winner == logs[1].winner).all()
    assert (logs[0].price == logs[1].price).all()
    assert (logs[0].value < logs[1].value).all()


def test_the_order_of_bidders_does_not_matter() -> None:
    order = np.array([3, 1, 5, 0, 2, 4])
    generator = SeededSource(5, "order").generator()
    chance = generator.random((2_000, PROFILES))
    budgets = generator.integers(20_000_000, 90_000_000, PROFILES)
    logs = []
    for places in (np.arange(PROFILES), order):
        crowd = Bidders.of(
            [
                Campaign(place, place, click_micros=CLICK, budget_micros=int(budgets[one]))
                for place, one in enumerate(places)
            ]
        )
        rows = chance[:, places]
        source = SeededSource(5, "coins", int(places[0]))
        impressions = Inventory.of(rows, crowd, source)
        pacing = Pacing(2_000, every=100)
        logs.append(run_auctions(impressions, tracking(rows, crowd), crowd, pacing).log)
    assert (logs[0].bid > logs[0].second).all()  # no ties
    assert (logs[0].price == logs[1].price).all()
    assert (order[logs[1].winner] == logs[0].winner).all()


def test_the_same_seed_gives_the_same_log() -> None:
    _, impressions, log = small_sales(budget=20_000_000)
    bidders = six_bidders(20_000_000)
    again = run_auctions(
        impressions, tracking(impressions.chance, bidders), bidders, Pacing(3_000)
    )
    assert again.log.table().equals(log.table())


def test_wrong_shapes_are_refused() -> None:
    bidders, impressions, log = small_sales()
    with pytest.raises(BadParameter, match="signal"):
        run_auctions(impressions, tracking([[0.5] * 6], bidders), bidders, Pacing(1))
    with pytest.raises(OutOfDomain):
        Inventory.of([[0.5] * 5], bidders, SeededSource(1, "a"))
    with pytest.raises(BadParameter, match="taste"):
        Inventory.of([[0.5] * 6], bidders, SeededSource(1, "b"), taste=[[0.5] * 6] * 2)
    with pytest.raises(OutOfDomain):
        Inventory.of([[0.5] * 6], bidders, SeededSource(1, "c"), floors=[1, 2])
    with pytest.raises(BadParameter, match="column"):
        paired_gain(log, log, "winner")
    with pytest.raises(BadParameter, match="rows"):
        paired_gain(log, AuctionLog.empty(3))
    assert paired_gain(log, log, "surplus").value == 0
