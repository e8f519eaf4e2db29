"""Budgets and pacing: nobody spends more than he has, and a day's money lasts for the day.

A budget is a hard stop. A campaign that wins at a price it can no longer pay loses that auction
and bids no more that day; the next best bid wins as if it had never bid. This is what an exchange
that asks one auction after the other would do, and it is computed exactly for a whole slice: the
results up to the first such auction stand, and only what follows is cleared again.

Pacing scales all bids of a campaign by a multiplier that moves after each slice, up when it spent
less than its even share and down when it spent more: bidding a constant part of the value is the
best reply to a budget at a second price (Balseiro, Gur 2019). The steps are plain arithmetic, so
that they are the same on every machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction import clearing
from noisefloor.ads.auction.bidders import Bidders, Reals
from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor.randomness import Words

MOST_ROWS = 1 << 15
"""Auctions in one slice: their bids stay in the processor's caches."""

LEAST_MULTIPLIER = 2.0**-20


@dataclass(frozen=True, slots=True)
class Pacing:
    """How budgets are spread over a day.

    Attributes:
        auctions: How many auctions the day is expected to have.
        every: After how many of them the multipliers move.
        gain: How far they move at most, as a part of themselves; 0 for no pacing at all.
    """

    auctions: int
    every: int = 1 << 13
    gain: float = 0.25

    def __post_init__(self) -> None:
        check_count(self.auctions, "auctions")
        check_count(self.every, "every", most=MOST_ROWS)
        if not 0 <= check_finite(self.gain, "gain") < 1:
            raise BadParameter("gain", self.gain, "at least 0 and below 1")


@dataclass(frozen=True, slots=True, eq=False)
class PacingState:
    """What campaigns have left, and how fast they spend it; a value, not changed in place.

    Attributes:
        left: Micros of the day's budget.
        multiplier: By which part of its worth an impression is bid for.
        stopped: Whether the campaign is out for the day.
        auctions: How many there have been today.
    """

    left: clearing.Micros
    multiplier: Reals
    stopped: NDArray[np.bool_]
    auctions: int = 0

    @classmethod
    def full(cls, bidders: Bidders) -> "PacingState":
        """Return the purses of a new day."""
        count = len(bidders)
        return cls(bidders.budget.copy(), np.ones(count), np.zeros(count, dtype=np.bool_))

    @property
    def pace(self) -> Reals:
        """The multipliers of those who still bid, 0 for the others."""
        return np.where(self.stopped, 0.0, self.multiplier)

    def after(
        self, spent: clearing.Micros, stopped: NDArray[np.bool_], rows: int, pacing: Pacing
    ) -> "PacingState":
        """Return the purses after a slice of n auctions."""
        to_come = max(pacing.auctions - self.auctions, rows)
        share = self.left * (rows / to_come)
        over = np.divide(spent, share, out=np.ones(len(share)), where=share > 0)
        step = 1.0 + pacing.gain * np.clip(1.0 - over, -1.0, 1.0)
        moved = np.clip(self.multiplier * step, LEAST_MULTIPLIER, 1.0)
        return PacingState(self.left - spent, moved, self.stopped | stopped, self.auctions + rows)


@dataclass(frozen=True, slots=True, eq=False)
class SettledSlice:
    """A slice whose winners can all pay.

    Attributes:
        cleared: The results; winners are campaigns.
        spent: By each campaign, in micros.
        stopped: Who ran out in this slice.
    """

    cleared: clearing.ClearedAuctions
    spent: clearing.Micros
    stopped: NDArray[np.bool_]


def settle(
    bids: clearing.Micros,
    floors: clearing.Micros,
    draws: Words,
    left: clearing.Micros,
    *,
    bidders: Bidders,
    rule: clearing.AuctionType,
) -> SettledSlice:
    """Clear a slice of auctions in order, within what campaigns have left.

    Args:
        bids: One column per campaign; those of a campaign that runs out are set to 0.
        floors: Of each auction.
        draws: Of each auction.
        left: What each campaign may still spend.
        bidders: Whose campaigns they are.
        rule: What the winner pays.
    """
    cleared = _clear_campaigns(bids, floors, draws, bidders, rule)
    stopped = np.zeros(len(left), dtype=np.bool_)
    # Each turn stops one campaign for good, so that there are no more turns than campaigns.
    for _ in range(len(left) + 1):
        spent = _spent(cleared, len(left))
        if not (spent > left).any():
            break
        row, campaign = _first_unpaid(cleared, spent, left)
        bids[row:, campaign] = 0
        stopped[campaign] = True
        tail = _clear_campaigns(bids[row:], floors[row:], draws[row:], bidders, rule)
        cleared.replace_from(row, tail)
    return SettledSlice(cleared, spent, stopped)


def _clear_campaigns(
    bids: clearing.Micros,
    floors: clearing.Micros,
    draws: Words,
    bidders: Bidders,
    rule: clearing.AuctionType,
) -> clearing.ClearedAuctions:
    """Let each bidder enter its best campaign, clear, and name the campaign that won."""
    entries, chosen = bidders.enter(bids, draws)
    cleared = clearing.clear_block(entries, floors, rule, draws)
    if chosen is not None:
        filled = np.flatnonzero(cleared.winner != clearing.UNFILLED)
        cleared.winner[filled] = chosen[filled, cleared.winner[filled]]
    return cleared


def _spent(cleared: clearing.ClearedAuctions, campaigns: int) -> clearing.Micros:
    """Return what each campaign spends; 2**15 prices of at most 2**32 are exact in doubles."""
    sums = np.bincount(cleared.winner + 1, weights=cleared.price, minlength=campaigns + 1)
    return np.asarray(sums[1:]).astype(np.int64)


def _first_unpaid(
    cleared: clearing.ClearedAuctions, spent: clearing.Micros, left: clearing.Micros
) -> tuple[int, int]:
    """Return the first auction that its winner cannot pay, and the winner."""
    found = []
    for campaign in np.flatnonzero(spent > left):
        rows = np.flatnonzero(cleared.winner == campaign)
        paid = np.cumsum(cleared.price[rows])
        place = np.searchsorted(paid, left[campaign], side="right")
        found.append((int(rows[place]), int(campaign)))
    return min(found)
