"""What a log comes to: revenue, value, surplus, fill, relevance and spending, with errors.

Sums are exact. Standard errors are over auctions, as if those were independent draws; budgets and
pacing tie auctions of one run together, which they do not see. Two regimes on the same impressions
are compared auction by auction: most of the noise cancels.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from noisefloor.ads.auction.bidders import Bidders
from noisefloor.ads.auction.clearing import Micros
from noisefloor.ads.auction.market import AuctionLog
from noisefloor.checks import Array


class MeanWithError(NamedTuple):
    """A mean and its standard error; the error of fewer than two is not a number."""

    value: float
    standard_error: float

    @classmethod
    def of(cls, sample: Array) -> "MeanWithError":
        """Return the mean of a sample; that of nothing is 0."""
        if len(sample) < 2:
            return cls(float(sample.sum()), math.nan)
        return cls(float(sample.mean()), float(sample.std(ddof=1) / math.sqrt(len(sample))))


@dataclass(frozen=True, slots=True, eq=False)
class AuctionSummary:
    """The figures of one log; money is in micros.

    Attributes:
        auctions: How many there were.
        filled: How many were won.
        revenue_micros: What winners paid, which is what the publisher got.
        value_micros: What the impressions were worth to those who won them.
        fill_rate: The share that was won.
        revenue: Per auction.
        value: Per auction.
        surplus: Value less price, per auction.
        relevance: How much people cared for the ads that they were shown.
        spent: By each campaign.
        budget: Of each campaign.
        spent_by_bidder: By each bidder, over its campaigns.
        budget_by_bidder: Of each bidder, over its campaigns.
    """

    auctions: int
    filled: int
    revenue_micros: int
    value_micros: int
    fill_rate: MeanWithError
    revenue: MeanWithError
    value: MeanWithError
    surplus: MeanWithError
    relevance: MeanWithError
    spent: Micros
    budget: Micros
    spent_by_bidder: Micros
    budget_by_bidder: Micros


def summarise(log: AuctionLog, bidders: Bidders) -> AuctionSummary:
    """Add up a log."""
    filled = log.filled
    spent = np.zeros(len(bidders), dtype=np.int64)
    for campaign in range(len(bidders)):
        spent[campaign] = log.price.sum(where=log.winner == campaign)
    return AuctionSummary(
        auctions=len(log),
        filled=int(filled.sum()),
        revenue_micros=int(log.price.sum()),
        value_micros=int(log.value.sum()),
        fill_rate=MeanWithError.of(filled),
        revenue=MeanWithError.of(log.price),
        value=MeanWithError.of(log.value),
        surplus=MeanWithError.of(log.value - log.price),
        relevance=MeanWithError.of(log.taste[filled].astype(np.float64)),
        spent=spent,
        budget=bidders.budget,
        spent_by_bidder=_by_bidder(spent, bidders),
        budget_by_bidder=_by_bidder(bidders.budget, bidders),
    )


def _by_bidder(amounts: Micros, bidders: Bidders) -> Micros:
    return np.array([int(amounts[own].sum()) for own in bidders.campaigns_of])
