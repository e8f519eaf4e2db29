"""Clearing: exact prices, fair ties, and the truth as a dominant strategy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from noisefloor.ads.auction.clearing import (
    LARGEST_BID,
    UNFILLED,
    AuctionType,
    ClearedAuctions,
    clear,
)
from noisefloor.errors import OutOfDomain
from noisefloor.randomness import SeededSource
from statistics_of_tests import FALSE_ALARM, chi_square_p

Rows = list[list[int]]

AUCTIONS = st.integers(1, 5).flatmap(
    lambda bidders: st.lists(
        st.lists(st.integers(0, 6), min_size=bidders, max_size=bidders), min_size=1, max_size=20
    )
)


def draws_of(count: int, *name: str | int) -> NDArray[np.uint64]:
    return SeededSource(1, "coins", *name).words(count)


def cleared(bids: Rows, floors: object, rule: AuctionType) -> ClearedAuctions:
    return clear(np.array(bids), floors, rule, np.arange(len(bids), dtype=np.uint64))


def test_a_second_price_is_the_second_bid_or_the_floor() -> None:
    result = cleared(
        [[5, 9, 7], [5, 9, 7], [5, 9, 7], [0, 0, 0], [3, 0, 0]],
        [0, 8, 10, 0, 0],
        AuctionType.SECOND_PRICE,
    )
    assert result.winner.tolist() == [1, 1, UNFILLED, UNFILLED, 0]
    assert result.price.tolist() == [7, 8, 0, 0, 0]
    assert result.bid.tolist() == [9, 9, 9, 0, 3]
    assert result.second.tolist() == [7, 7, 7, 0, 0]


def test_a_first_price_is_the_bid() -> None:
    result = cleared([[5, 9, 7], [5, 9, 7]], [9, 10], AuctionType.FIRST_PRICE)
    assert result.winner.tolist() == [1, UNFILLED]
    assert result.price.tolist() == [9, 0]


@pytest.mark.parametrize("rule", list(AuctionType))
@given(bids=AUCTIONS, floor=st.integers(0, 5))
def test_results_are_those_of_sorting_the_bids(bids: Rows, floor: int, rule: AuctionType) -> None:
    result = cleared(bids, floor, rule)
    for row, offers in enumerate(bids):
        first, second = ([*sorted(offers, reverse=True), 0])[:2]
        assert (result.bid[row], result.second[row]) == (first, second)
        if first < max(floor, 1):
            assert (result.winner[row], result.price[row]) == (UNFILLED, 0)
            continue
        assert offers[result.winner[row]] == first
        assert result.price[row] == (
            first if rule is AuctionType.FIRST_PRICE else max(second, floor)
        )
        assert floor <= result.price[row] <= first


@given(bids=AUCTIONS, data=st.data())
def test_permuting_bidders_permutes_the_results(bids: Rows, data: st.DataObject) -> None:
    offers = np.array(bids)
    order = np.array(data.draw(st.permutations(range(offers.shape[1]))))
    one, other = (
        cleared(rows.tolist(), 1, AuctionType.SECOND_PRICE) for rows in (offers, offers[:, order])
    )
    assert (one.price == other.price).all()
    assert (one.second == other.second).all()
    clear_cut = (one.bid > one.second) & (one.winner != UNFILLED)
    assert (order[other.winner[clear_cut]] == one.winner[clear_cut]).all()


def test_the_truth_is_a_dominant_strategy_at_a_second_price_and_not_at_a_first() -> None:
    # Every value, every bid, every pair of bids of others, every floor; three draws for ties.
    levels, floors, words = range(5), range(4), [0, 3, 10**18]
    cases = list(itertools.product(levels, levels, levels, levels, floors, words))
    value, own, left, right, floor, draw = np.array(cases).T
    gain = {}
    for rule in AuctionType:
        for name, bid in (("truth", value), ("other", own)):
            result = clear(
                np.stack([bid, left, right], axis=1), floor, rule, draw.astype(np.uint64)
            )
            gain[rule, name] = np.where(result.winner == 0, value - result.price, 0)
    assert (
        gain[AuctionType.SECOND_PRICE, "truth"] >= gain[AuctionType.SECOND_PRICE, "other"]
    ).all()
    assert (gain[AuctionType.FIRST_PRICE, "truth"] < gain[AuctionType.FIRST_PRICE, "other"]).any()


def tied_rows(tied: tuple[int, ...], bidders: int, count: int) -> NDArray[np.int64]:
    return np.tile(np.isin(np.arange(bidders), tied) + 1, (count, 1))


@pytest.mark.statistical
@pytest.mark.parametrize("tied", [(0, 1), (0, 2), (1, 2), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3)])
def test_ties_are_fair_and_a_rotating_priority_would_not_be(
    tied: tuple[int, ...], seed: int
) -> None:
    # n = 100,000; false alarm FALSE_ALARM for each set.
    count, bidders = 100_000, 4
    words = SeededSource(seed, "ties").words(count)
    result = clear(tied_rows(tied, bidders, count), 0, AuctionType.SECOND_PRICE, words)
    wins = np.bincount(result.winner, minlength=bidders)[list(tied)]
    fair = np.full(len(tied), 1 / len(tied))
    assert wins.sum() == count
    assert chi_square_p(wins, fair) > FALSE_ALARM
    if len(tied) in (2, 3) and tied != (0, 2):
        turn = (words % np.uint64(bidders)).astype(np.int64)
        rank = (np.array(tied)[:, None] + turn) % bidders
        rotated = np.bincount(rank.argmax(axis=0), minlength=len(tied))
        assert chi_square_p(rotated, fair) < FALSE_ALARM


@pytest.mark.statistical
def test_ties_stay_fair_among_those_who_are_left(seed: int) -> None:
    # Of three tied, the one who won drops out: the others share. n is about 100,000 / 3.
    bids, words = tied_rows((0, 1, 2), 3, 100_000), SeededSource(seed, "left").words(100_000)
    lost = clear(bids, 0, AuctionType.SECOND_PRICE, words).winner == 0
    again = clear(np.where(np.arange(3) == 0, 0, bids), 0, AuctionType.SECOND_PRICE, words)
    wins = np.bincount(again.winner[lost], minlength=3)
    assert chi_square_p(wins[1:], [0.5, 0.5]) > FALSE_ALARM
    assert (again.winner == clear(bids, 0, AuctionType.SECOND_PRICE, words).winner)[~lost].all()


def test_a_draw_is_used_by_ties_only() -> None:
    bids = np.array([[1, 2, 3], [3, 2, 1]])
    results = [
        clear(bids, 0, AuctionType.SECOND_PRICE, draws_of(2, n)).winner.tolist() for n in range(9)
    ]
    assert results == [[2, 0]] * 9


def test_blocks_do_not_change_results() -> None:
    bids = SeededSource(3, "bids").below(4, 600_000).reshape(-1, 3).astype(np.int64)
    words = draws_of(len(bids))
    whole = clear(bids, 1, AuctionType.SECOND_PRICE, words)
    part = clear(bids[150_000:], 1, AuctionType.SECOND_PRICE, words[150_000:])
    assert (whole.winner[150_000:] == part.winner).all()
    assert (whole.price[150_000:] == part.price).all()


@pytest.mark.parametrize(
    ("bids", "floors"),
    [
        ([[-1, 2]], 0),
        ([[1.5, 2.0]], 0),
        ([[LARGEST_BID + 1, 2]], 0),
        ([1, 2], 0),
        ([[1, 2]], [1, 2]),
        ([[1, 2]], -1),
        ([[1, 2]], 0.5),
        (np.zeros((2, 0), dtype=np.int64), 0),
    ],
)
def test_bad_bids_and_floors_are_refused(bids: object, floors: object) -> None:
    with pytest.raises(OutOfDomain):
        clear(bids, floors, AuctionType.SECOND_PRICE, draws_of(1))


def test_one_draw_for_each_auction_is_needed() -> None:
    with pytest.raises(OutOfDomain, match="one draw"):
        clear([[1, 2]], 0, AuctionType.SECOND_PRICE, draws_of(2))
