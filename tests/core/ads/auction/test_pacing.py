"""Budgets are never exceeded, slices are settled as one auction after the other would be."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.ads.auction.sequential import Exchange
from noisefloor.ads.auction.bidders import UNLIMITED, Bidders, Campaign, equilibrium_shade
from noisefloor.ads.auction.clearing import UNFILLED, AuctionType
from noisefloor.ads.auction.market import Inventory, run_auctions
from noisefloor.ads.auction.pacing import LEAST_MULTIPLIER, Pacing, PacingState, settle
from noisefloor.ads.auction.signals import tracking
from noisefloor.errors import BadParameter
from noisefloor.randomness import SeededSource

OWNERS = [[0], [0, 1], [0, 1, 2], [0, 0, 1], [1, 0, 1, 0], [0, 1, 2, 2, 2]]


@st.composite
def slices(
    draw: st.DrawFn,
) -> tuple[list[Campaign], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Draw campaigns with small budgets, and bids with many ties."""
    owners = draw(st.sampled_from(OWNERS))
    budgets = draw(st.lists(st.integers(0, 40), min_size=len(owners), max_size=len(owners)))
    campaigns = [
        Campaign(owner, 0, view_micros=1, budget_micros=budget)
        for owner, budget in zip(owners, budgets, strict=True)
    ]
    rows = draw(st.integers(1, 30))
    seed = draw(st.integers(0, 10**6))
    generator = SeededSource(seed, "slices").generator()
    bids = generator.integers(0, 8, (rows, len(owners)))
    floors = generator.integers(0, 4, rows)
    return campaigns, bids, floors, generator.integers(0, 1 << 63, rows).astype(np.uint64)


@pytest.mark.parametrize("rule", list(AuctionType))
@given(drawn=slices())
def test_a_slice_is_settled_as_one_auction_after_the_other(
    drawn: tuple[list[Campaign], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]],
    rule: AuctionType,
) -> None:
    campaigns, bids, floors, draws = drawn
    bidders = Bidders.of(campaigns)
    exchange = Exchange(campaigns, bidders.budget.tolist(), rule is AuctionType.FIRST_PRICE)
    expected = [
        exchange.sell(row, floor, draw)
        for row, floor, draw in zip(bids.tolist(), floors.tolist(), draws.tolist(), strict=True)
    ]
    settled = settle(
        np.asfortranarray(bids), floors, draws, bidders.budget, bidders=bidders, rule=rule
    )
    got = zip(settled.cleared.winner.tolist(), settled.cleared.price.tolist(), strict=True)
    assert list(got) == expected
    assert (bidders.budget - settled.spent).tolist() == exchange.left
    assert set(np.flatnonzero(settled.stopped).tolist()) == exchange.stopped


def market(
    seed: int, auctions: int, budget: int, *, gain: float = 0.25
) -> tuple[Bidders, Inventory, Pacing]:
    bidders = Bidders.of(
        [Campaign(place, place, click_micros=1000, budget_micros=budget) for place in range(4)]
    )
    chance = SeededSource(seed, "chance").generator().random((auctions, 4), dtype=np.float32)
    impressions = Inventory.of(chance, bidders, SeededSource(seed, "coins", int(100 * gain)))
    return bidders, impressions, Pacing(auctions, every=250, gain=gain)


@pytest.mark.parametrize("rule", list(AuctionType))
@pytest.mark.parametrize("gain", [0.0, 0.25, 0.9])
@pytest.mark.parametrize("budget", [0, 1, 999, 300_000, UNLIMITED])
def test_no_campaign_spends_more_than_its_budget(
    budget: int, gain: float, rule: AuctionType
) -> None:
    bidders, impressions, pacing = market(1, 5_000, budget, gain=gain)
    signal = tracking(impressions.chance, bidders)
    sales = run_auctions(impressions, signal, bidders, pacing, rule=rule)
    spent = bidders.budget - sales.pacing_state.left
    assert (spent >= 0).all()
    assert (spent <= budget).all()
    assert spent.sum() == sales.log.price.sum()
    for campaign in range(len(bidders)):
        assert sales.log.price[sales.log.winner == campaign].sum() == spent[campaign]
    assert (sales.log.price <= sales.log.bid).all()
    if budget == 0:
        assert (sales.log.price == 0).all()


def spent_by_half(gain: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return which part of its budget each campaign spent in half of the day, and in all of it."""
    bidders, impressions, pacing = market(2, 40_000, 2_500_000, gain=gain)
    signal = tracking(impressions.chance, bidders)
    log = run_auctions(impressions, signal, bidders, pacing).log
    parts = []
    for rows in (slice(0, 20_000), slice(None)):
        winner, price = log.winner[rows], log.price[rows]
        spent = [price[winner == campaign].sum() for campaign in range(len(bidders))]
        parts.append(np.array(spent) / bidders.budget)
    return parts[0], parts[1]


def test_pacing_makes_the_money_last_and_without_it_the_money_is_gone() -> None:
    half, whole = spent_by_half(0.25)
    assert (abs(half - 0.5) < 0.1).all()
    assert (whole > 0.95).all()
    hasty, _ = spent_by_half(0.0)
    assert (hasty > 0.6).all()


def test_multipliers_of_those_with_money_enough_stay_at_one() -> None:
    bidders, impressions, pacing = market(3, 5_000, UNLIMITED)
    signal = tracking(impressions.chance, bidders)
    purses = run_auctions(impressions, signal, bidders, pacing).pacing_state
    assert (purses.multiplier == 1.0).all()
    assert purses.auctions == 5_000
    assert not purses.stopped.any()


def test_a_day_in_two_batches_is_the_day_in_one() -> None:
    bidders, impressions, pacing = market(4, 4_000, 200_000)
    whole = run_auctions(impressions, tracking(impressions.chance, bidders), bidders, pacing)
    purses = None
    for rows in (slice(0, 1_000), slice(1_000, None)):
        part = Inventory(
            impressions.chance[rows],
            impressions.floors[rows],
            impressions.draws[rows],
            impressions.taste[rows],
        )
        signal = tracking(part.chance, bidders)
        sales = run_auctions(part, signal, bidders, pacing, pacing_state=purses)
        purses = sales.pacing_state
        assert (sales.log.winner == whole.log.winner[rows]).all()
        assert (sales.log.price == whole.log.price[rows]).all()
    assert purses is not None
    assert (purses.left == whole.pacing_state.left).all()


def test_more_auctions_than_expected_spend_what_is_left_and_no_more() -> None:
    bidders, impressions, pacing = market(5, 4_000, 200_000)
    signal = tracking(impressions.chance, bidders)
    short = replace(pacing, auctions=1_000)
    sales = run_auctions(impressions, signal, bidders, short)
    assert (sales.pacing_state.left >= 0).all()
    assert (sales.pacing_state.multiplier >= LEAST_MULTIPLIER).all()


def test_a_stopped_campaign_neither_wins_nor_sets_a_price() -> None:
    campaigns = [Campaign(0, 0, budget_micros=10), Campaign(1, 0), Campaign(2, 0)]
    bidders = Bidders.of(campaigns)
    bids = np.asfortranarray(np.tile([9, 8, 3], (4, 1)))
    draws = np.zeros(4, dtype=np.uint64)
    floors = np.zeros(4, dtype=np.int64)
    settled = settle(
        bids, floors, draws, bidders.budget, bidders=bidders, rule=AuctionType.SECOND_PRICE
    )
    assert settled.cleared.winner.tolist() == [0, 1, 1, 1]
    assert settled.cleared.price.tolist() == [8, 3, 3, 3]
    assert settled.stopped.tolist() == [True, False, False]


def test_a_slot_goes_unfilled_when_all_have_run_out() -> None:
    bidders = Bidders.of([Campaign(0, 0, budget_micros=5), Campaign(1, 0, budget_micros=5)])
    bids = np.asfortranarray(np.full((4, 2), 4))
    draws = np.arange(4, dtype=np.uint64)
    floors = np.full(4, 2)
    settled = settle(
        bids, floors, draws, bidders.budget, bidders=bidders, rule=AuctionType.FIRST_PRICE
    )
    assert sorted(settled.cleared.winner.tolist()[:2]) == [0, 1]
    assert settled.cleared.winner.tolist()[2:] == [UNFILLED, UNFILLED]


def test_a_bidders_own_campaigns_do_not_set_its_price() -> None:
    bidders = Bidders.of([Campaign(0, 0), Campaign(0, 1), Campaign(1, 2)])
    bids = np.asfortranarray([[9, 8, 3]])
    settled = settle(
        bids,
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.uint64),
        bidders.budget,
        bidders=bidders,
        rule=AuctionType.SECOND_PRICE,
    )
    assert settled.cleared.winner.tolist() == [0]
    assert settled.cleared.price.tolist() == [3]


def test_purses_are_values() -> None:
    purses = PacingState.full(Bidders.of([Campaign(0, 0, budget_micros=100)]))
    spent, stopped = np.array([60]), np.array([True])
    later = purses.after(spent, stopped, 10, Pacing(100))
    assert purses.left.tolist() == [100]
    assert later.left.tolist() == [40]
    assert later.pace.tolist() == [0.0]
    assert later.multiplier[0] == 0.75  # it spent six times its share: the largest step down


@pytest.mark.parametrize(
    "changes",
    [{"auctions": 0}, {"every": 0}, {"every": 1 << 16}, {"gain": 1.0}, {"gain": -0.1}],
)
def test_bad_pacing_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadParameter):
        replace(Pacing(100), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"bidder": -1},
        {"ad": -1},
        {"click_micros": -1},
        {"click_micros": 1 << 32, "view_micros": 1},
        {"budget_micros": -1},
        {"budget_micros": 1.5},
        {"shade": 0.0},
        {"shade": 1.1},
    ],
)
def test_bad_campaigns_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadParameter):
        replace(Campaign(0, 0), **changes)


def test_bidders_are_numbered_without_gaps() -> None:
    with pytest.raises(BadParameter, match="smaller index"):
        Bidders.of([Campaign(0, 0), Campaign(2, 0)])
    with pytest.raises(BadParameter):
        Bidders.of([])


def test_the_equilibrium_shade_of_two_is_a_half() -> None:
    assert equilibrium_shade(2) == 0.5
    with pytest.raises(BadParameter):
        equilibrium_shade(1)
