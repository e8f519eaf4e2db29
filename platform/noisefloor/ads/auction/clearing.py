"""Clearing: who wins each auction, and at what price, in exact integers.

Ties fall to a random order of the bidders that every auction has from the start: it depends on
the auction's draw and on no bid, every order is as likely as another, and it stays when a bidder
drops out. (A priority that rotates would not do: of two tied among three, the one behind the gap
would win two times in three.)
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, blocks, check_integers
from noisefloor.errors import OutOfDomain
from noisefloor.randomness import Words

Micros = NDArray[np.int64]
Winners = NDArray[np.int16]

UNFILLED = -1
"""The winner of an auction that nobody won."""

LARGEST_BID = 1 << 32
"""In micros: some 4,000 units for one impression. Sums of 2**20 prices are exact in doubles."""

MOST_BIDDERS = 1 << 12

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class AuctionType(Enum):
    """What the winner pays; the values are those of OpenRTB's ``at``."""

    FIRST_PRICE = 1  # the bid
    SECOND_PRICE = 2  # the second bid, or the floor if that is more


@dataclass(frozen=True, slots=True, eq=False)
class ClearedAuctions:
    """The results of some auctions, one row each.

    Attributes:
        winner: The bidder's column, or UNFILLED.
        price: What the winner pays; 0 where nobody won.
        bid: The highest bid, whether it reached the floor or not.
        second: The second highest bid; 0 if there was none.
    """

    winner: Winners
    price: Micros
    bid: Micros
    second: Micros

    def replace_from(self, row: int, tail: "ClearedAuctions") -> None:
        """Write other results over those from a row on."""
        self.winner[row:], self.price[row:] = tail.winner, tail.price
        self.bid[row:], self.second[row:] = tail.bid, tail.second


def clear(bids: object, floors: object, rule: AuctionType, draws: Words) -> ClearedAuctions:
    """Clear auctions: one row each, one column for each bidder.

    Args:
        bids: Integers in micros, at most LARGEST_BID; 0 is no bid.
        floors: What an impression costs at least, one for all or one for each auction.
        rule: What the winner pays.
        draws: One word for each auction, drawn before any bid is known.
    """
    rows = np.asarray(bids)
    if rows.ndim != 2 or not 1 <= rows.shape[1] <= MOST_BIDDERS:
        raise OutOfDomain(f"Expected bids of 1 to {MOST_BIDDERS} bidders; got {rows.shape}.")
    offered = check_integers(rows, 0, LARGEST_BID, width=rows.shape[1]).astype(np.int64)
    limits = check_floors(floors, len(offered))
    if draws.shape != (len(offered),):
        raise OutOfDomain(f"Expected one draw for each auction; got shape {draws.shape}.")
    columns = [np.empty(len(offered), dtype=np.int64) for _ in range(3)]
    cleared = ClearedAuctions(np.empty(len(offered), dtype=np.int16), *columns)
    for some in blocks(len(offered), offered.shape[1]):
        part = clear_block(np.asfortranarray(offered[some]), limits[some], rule, draws[some])
        cleared.winner[some], cleared.price[some] = part.winner, part.price
        cleared.bid[some], cleared.second[some] = part.bid, part.second
    return cleared


def check_floors(floors: object, count: int) -> Micros:
    """Return one floor for each auction, in micros; a single one holds for all."""
    limits = np.asarray(floors)
    if limits.ndim == 0:
        limits = np.broadcast_to(limits, (count,))
    if limits.shape != (count,):
        raise OutOfDomain(f"Expected a floor for each of {count}; got shape {limits.shape}.")
    return check_integers(limits, 0, 1 << 62).astype(np.int64, copy=False)


def clear_block(bids: Micros, floors: Micros, rule: AuctionType, draws: Words) -> ClearedAuctions:
    """Clear auctions that are known to be well formed and few enough to fit the caches.

    Columns that are contiguous (Fortran order) are walked fastest.
    """
    winner, best, second = best_two(bids, draws)
    price = best.copy() if rule is AuctionType.FIRST_PRICE else np.maximum(second, floors)
    unfilled = best < np.maximum(floors, 1)
    winner[unfilled] = UNFILLED
    price[unfilled] = 0
    return ClearedAuctions(winner, price, best, second)


def best_two(bids: Micros, draws: Words) -> tuple[Winners, Micros, Micros]:
    """Return the column of the highest bid, that bid, and the second highest."""
    count, bidders = bids.shape
    best, second = bids[:, 0].copy(), np.zeros(count, dtype=np.int64)
    winner = np.zeros(count, dtype=np.int16)
    ahead, lesser = np.empty(count, dtype=np.bool_), np.empty(count, dtype=np.int64)
    for place in range(1, bidders):
        bid = bids[:, place]
        np.greater(bid, best, out=ahead)
        np.putmask(winner, ahead, place)
        np.minimum(best, bid, out=lesser)
        np.maximum(second, lesser, out=second)
        np.maximum(best, bid, out=best)
    tied = np.flatnonzero((best == second) & (best > 0))
    if tied.size:
        at_top = bids[tied] == best[tied, None]
        winner[tied] = first_in_order(at_top, draws[tied])
    return winner, best, second


def first_in_order(candidates: NDArray[np.bool_], draws: Words) -> NDArray[np.intp]:
    """Return for each row the candidate that comes first in the random order of its draw.

    Each column's key is the output of splitmix64 (Steele, Lea, Flood 2014) started at the draw:
    the draw is uniform, so columns are alike but for their place in the sequence.
    """
    steps = np.arange(1, candidates.shape[1] + 1, dtype=np.uint64) * _GOLDEN
    keys = draws[:, None] + steps
    keys = (keys ^ (keys >> np.uint64(30))) * _MIX_1
    keys = (keys ^ (keys >> np.uint64(27))) * _MIX_2
    keys ^= keys >> np.uint64(31)
    keys |= np.uint64(1)  # above what is no candidate
    keys[~candidates] = 0
    return np.asarray(keys.argmax(axis=1))


def zero_bids(rows: int, columns: int) -> Micros:
    """Return an array for bids whose columns are contiguous."""
    made: Array = np.zeros((columns, rows), dtype=np.int64)
    return made.T
