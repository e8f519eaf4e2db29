"""Bidders: what their campaigns want, what it is worth to them, and what they bid for it.

A bidder runs one or more campaigns, each for one ad. A campaign bids what it expects an
impression to be worth: a part for being seen, and a part for a click times the chance of one,
given its signal. All money is in integer micros; a bid is rounded down, so that nobody bids
above what an impression is worth to him.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction import clearing
from noisefloor.checks import Array, check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.randomness import Words

UNLIMITED = 1 << 60
"""A budget that no day exhausts."""

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign.

    Attributes:
        bidder: Who runs it, as an index.
        ad: Which ad it shows, as a place in the catalogue.
        click_micros: What a click is worth.
        view_micros: What being seen is worth, clicked or not.
        budget_micros: What it may spend in a day.
        shade: Which part of the worth it bids where the winner pays the bid; at a second price
            it bids all of it, which is a dominant strategy.
    """

    bidder: int
    ad: int
    click_micros: int = 0
    view_micros: int = 0
    budget_micros: int = UNLIMITED
    shade: float = 1.0

    def __post_init__(self) -> None:
        check_count(self.bidder, "bidder", least=0, most=clearing.MOST_BIDDERS - 1)
        check_count(self.ad, "ad", least=0, most=(1 << 20) - 1)
        check_count(self.click_micros, "click_micros", least=0, most=clearing.LARGEST_BID)
        check_count(
            self.view_micros, "view_micros", least=0, most=clearing.LARGEST_BID - self.click_micros
        )
        check_count(self.budget_micros, "budget_micros", least=0, most=UNLIMITED)
        if not 0 < check_finite(self.shade, "shade") <= 1:
            raise BadParameter("shade", self.shade, "above 0 and at most 1")


@dataclass(frozen=True, slots=True, eq=False)
class Bidders:
    """Campaigns in columns, in a fixed order: a campaign's place is what logs carry.

    Attributes:
        owner: The bidder of each campaign; every index below the number of bidders occurs.
        ad: The ad of each campaign.
        click: What a click is worth, in micros.
        view: What being seen is worth, in micros.
        budget: For a day, in micros.
        shade: Which part of the worth is bid at a first price.
        campaigns_of: The campaigns of each bidder.
    """

    owner: NDArray[np.int64]
    ad: NDArray[np.int64]
    click: clearing.Micros
    view: clearing.Micros
    budget: clearing.Micros
    shade: Reals
    campaigns_of: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, campaigns: Sequence[Campaign]) -> "Bidders":
        """Put campaigns into columns."""
        if not 1 <= len(campaigns) <= clearing.MOST_BIDDERS:
            raise BadParameter(
                "campaigns", f"<{len(campaigns)}>", f"1 to {clearing.MOST_BIDDERS} of them"
            )
        owner = np.array([one.bidder for one in campaigns])
        if len(np.unique(owner)) <= owner.max():
            raise BadParameter("bidder", int(owner.max()), "with every smaller index in use")
        return cls(
            owner=owner,
            ad=np.array([one.ad for one in campaigns]),
            click=np.array([one.click_micros for one in campaigns]),
            view=np.array([one.view_micros for one in campaigns]),
            budget=np.array([one.budget_micros for one in campaigns]),
            shade=np.array([one.shade for one in campaigns], dtype=np.float64),
            campaigns_of=tuple(np.flatnonzero(owner == b) for b in range(owner.max() + 1)),
        )

    def __len__(self) -> int:
        return len(self.owner)

    def per_campaign(self, by_ad: Array) -> Array:
        """Return the column of each campaign's ad, from a table with a column for each ad."""
        if by_ad.ndim != 2 or by_ad.shape[1] <= int(self.ad.max()):
            raise BadParameter("table", by_ad.shape, "of two dimensions, a column for each ad")
        return by_ad[:, self.ad]

    def factors(self, rule: clearing.AuctionType, pace: Reals) -> tuple[Reals, Reals]:
        """Return what a campaign bids for being seen, and for a click, at these paces."""
        scale = pace * self.shade if rule is clearing.AuctionType.FIRST_PRICE else pace
        return self.view * scale, self.click * scale

    def enter(self, bids: clearing.Micros, draws: Words) -> tuple[clearing.Micros, Array | None]:
        """Return each bidder's entry, and which campaign it is for; none if that is the bidder.

        A bidder enters its best campaign only: its own others do not set its price.
        """
        if len(self.campaigns_of) == len(self) and (self.owner[1:] > self.owner[:-1]).all():
            return bids, None
        entries = clearing.zero_bids(len(bids), len(self.campaigns_of))
        chosen: clearing.Winners = np.zeros(entries.shape, dtype=np.int16, order="F")
        for bidder, own in enumerate(self.campaigns_of):
            # Other draws than between bidders, so that the two choices are not related.
            place, entries[:, bidder], _ = clearing.best_two(
                np.asfortranarray(bids[:, own]), ~draws
            )
            chosen[:, bidder] = own.astype(np.int16)[place]
        return entries, chosen


def equilibrium_shade(bidders: int) -> float:
    """Return the shade for a first price when values are uniform and independent.

    With n alike bidders, bidding (n - 1) / n of the value is the symmetric equilibrium (Vickrey
    1961).
    """
    check_count(bidders, "bidders", least=2, most=clearing.MOST_BIDDERS)
    return (bidders - 1) / bidders
