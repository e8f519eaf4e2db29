"""What bidders are told decides what they bid: tables are Bayes' rule, bids are whole micros."""

from itertools import product

import numpy as np
import pytest

from noisefloor.ads.auction.bidders import Bidders, Campaign
from noisefloor.ads.auction.clearing import AuctionType, zero_bids
from noisefloor.ads.auction.signals import (
    Regime,
    Signal,
    contextual,
    expected_chance,
    protected,
    tracking,
)
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import KaryResponse

BIDDERS = Bidders.of(
    [
        Campaign(0, 2, click_micros=1000, shade=0.5),
        Campaign(1, 0, click_micros=100, view_micros=7),
        Campaign(2, 2, view_micros=3),
    ]
)


def bids(
    signal: Signal, rule: AuctionType = AuctionType.SECOND_PRICE, pace: float = 1.0
) -> list[list[int]]:
    out = zero_bids(len(signal), len(BIDDERS))
    signal.bid(slice(0, len(signal)), BIDDERS, rule, np.full(len(BIDDERS), pace), out)
    return [[int(bid) for bid in row] for row in out]


def test_a_bid_is_what_an_impression_is_expected_to_be_worth_rounded_down() -> None:
    signal = tracking([[0.5, 0.25, 0.5], [0.0019, 1.0, 0.0]], BIDDERS)
    assert signal.regime is Regime.TRACKING
    assert bids(signal) == [[500, 32, 3], [1, 107, 3]]


def test_a_bid_is_shaded_at_a_first_price_only() -> None:
    signal = tracking([[0.5, 0.25, 0.5]], BIDDERS)
    assert bids(signal, AuctionType.FIRST_PRICE) == [[250, 32, 3]]
    assert bids(signal, AuctionType.SECOND_PRICE, pace=0.5) == [[250, 16, 1]]
    assert bids(signal, AuctionType.FIRST_PRICE, pace=0.0) == [[0, 0, 0]]


def test_a_table_has_a_column_for_each_ad_and_a_row_for_each_symbol() -> None:
    table = [[0.1, 0.9, 0.2], [0.3, 0.9, 0.4]]
    released = protected([1, 0, 1], table, BIDDERS)
    assert released.regime is Regime.PROTECTED
    assert bids(released) == [[400, 37, 3], [200, 17, 3], [400, 37, 3]]
    page = contextual([0, 0], table[:1], BIDDERS)
    assert page.regime is Regime.CONTEXTUAL
    assert bids(page) == [[200, 17, 3], [200, 17, 3]]


def test_expected_chances_are_those_of_the_enumerated_world() -> None:
    size, ads = 4, 3
    mechanism = KaryResponse(size, 1.0)
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    chance = np.array([[(p + 2 * ad) % 7 / 10 for ad in range(ads)] for p in range(size)])
    distribution = np.exp(
        [mechanism.log_likelihood(np.arange(size), profile) for profile in range(size)]
    )
    table = expected_chance(prior, distribution, chance)
    for symbol, ad in product(range(size), range(ads)):
        weight = [prior[profile] * distribution[profile, symbol] for profile in range(size)]
        clicks = sum(weight[profile] * chance[profile, ad] for profile in range(size))
        assert table[symbol, ad] == pytest.approx(clicks / sum(weight))
    # The mean over symbols is the mean over people: a table invents no clicks.
    assert (prior @ distribution) @ table == pytest.approx(prior @ chance)


def test_a_symbol_that_never_occurs_gets_the_mean_of_all() -> None:
    table = expected_chance([0.5, 0.5], [[1.0, 0.0], [1.0, 0.0]], [[0.2], [0.4]])
    assert table[:, 0].tolist() == pytest.approx([0.3, 0.3])


def test_bad_signals_are_refused_without_showing_a_value() -> None:
    for wrong in ([[0.5, 0.5]], [[0.5, 0.5, 1.5]], [[0.5, 0.5, float("nan")]], [["a", "b", "c"]]):
        with pytest.raises(OutOfDomain):
            tracking(wrong, BIDDERS)
    with pytest.raises(BadParameter, match="a column for each ad"):
        protected([0], [[0.5, 0.5]], BIDDERS)
    with pytest.raises(OutOfDomain) as caught:
        protected([77], [[0.5, 0.5, 0.5]], BIDDERS)
    assert "77" not in str(caught.value)
    with pytest.raises(BadParameter):
        expected_chance([1.0], [[0.5, 0.5]] * 2, [[0.5]] * 2)
