"""The market: impressions in, signals to bids, bids to winners, everything logged in columns.

The same impressions can be sold under each regime, with the same draws: what differs is then what
bidders received, and nothing else. Who looked at an impression is not among the data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.ads.auction import clearing
from noisefloor.ads.auction.bidders import Bidders
from noisefloor.ads.auction.pacing import Pacing, PacingState, SettledSlice, settle
from noisefloor.ads.auction.signals import Signal
from noisefloor.checks import Array, check_reals
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source, Words

Single = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Inventory:
    """What is for sale, and what is true of it: one row per impression.

    Attributes:
        chance: The true chance of a click on each campaign's ad; bidders see it when tracking.
        floors: What each costs at least, in micros.
        draws: One word each, for ties.
        taste: How much the person cares for each campaign's ad; the chance if nothing else.
    """

    chance: Array
    floors: clearing.Micros
    draws: Words
    taste: Array

    @classmethod
    def of(
        cls,
        chance: object,
        bidders: Bidders,
        source: Source,
        *,
        floors: object = 0,
        taste: object | None = None,
    ) -> "Inventory":
        """Check what is known, and draw the words that all regimes share."""
        known = np.ascontiguousarray(check_reals(chance, 0.0, 1.0, width=len(bidders)))
        cares = known
        if taste is not None:
            cares = np.ascontiguousarray(check_reals(taste, -1e6, 1e6, width=len(bidders)))
        if cares.shape != known.shape:
            raise BadParameter("taste", cares.shape, f"of shape {known.shape}")
        draws = source.stage("ties").words(len(known))
        return cls(known, clearing.check_floors(floors, len(known)), draws, cares)

    def __len__(self) -> int:
        return len(self.chance)


@dataclass(frozen=True, slots=True, eq=False)
class AuctionLog:
    """Everything that happened, one row per auction, in order.

    Attributes:
        winner: The campaign, or UNFILLED.
        price: What it paid, in micros; 0 where nobody won.
        bid: The highest bid.
        second: The second highest bid.
        value: What the impression was worth to the winner, in micros: the true chance of a click
            times its worth, not a drawn click, so that comparisons are not blurred by chance.
        taste: How much the person cares for the ad that was shown; 0 where none was.
    """

    winner: clearing.Winners
    price: clearing.Micros
    bid: clearing.Micros
    second: clearing.Micros
    value: clearing.Micros
    taste: Single

    @classmethod
    def empty(cls, rows: int) -> "AuctionLog":
        """Return a log to be written."""
        price, bid, second, value = (np.empty(rows, dtype=np.int64) for _ in range(4))
        winner, taste = np.empty(rows, dtype=np.int16), np.empty(rows, dtype=np.float32)
        return cls(winner, price, bid, second, value, taste)

    def __len__(self) -> int:
        return len(self.winner)

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Whether somebody won."""
        return np.asarray(self.winner != clearing.UNFILLED)

    def table(self) -> pa.Table:
        """Return the log as an Arrow table; the columns are not copied."""
        names = ("winner", "price", "bid", "second", "value", "taste")
        columns = {name: pa.array(getattr(self, name)) for name in names}
        return pa.table(columns | {"filled": pa.array(self.filled)})


@dataclass(frozen=True, slots=True, eq=False)
class AuctionResult:
    """What came of one batch under one regime: the log, and the purses to go on with."""

    log: AuctionLog
    pacing_state: PacingState


def run_auctions(
    impressions: Inventory,
    signal: Signal,
    bidders: Bidders,
    pacing: Pacing,
    *,
    rule: clearing.AuctionType = clearing.AuctionType.SECOND_PRICE,
    pacing_state: PacingState | None = None,
) -> AuctionResult:
    """Sell impressions one after the other, under one regime.

    Args:
        impressions: What is for sale.
        signal: What bidders receive about it.
        bidders: Who bids.
        pacing: How budgets are spread over the day.
        rule: What the winner pays.
        pacing_state: What earlier batches of the day left; full ones if there were none.
    """
    if len(signal) != len(impressions):
        raise BadParameter("signal", f"<{len(signal)} rows>", f"of {len(impressions)} rows")
    now = PacingState.full(bidders) if pacing_state is None else pacing_state
    log = AuctionLog.empty(len(impressions))
    space = clearing.zero_bids(pacing.every, len(bidders))
    for rows in _slices(len(impressions), pacing.every):
        count = rows.stop - rows.start
        bids = space[:count]
        signal.bid(rows, bidders, rule, now.pace, bids)
        floors, draws = impressions.floors[rows], impressions.draws[rows]
        settled = settle(bids, floors, draws, now.left, bidders=bidders, rule=rule)
        _write(log, rows, settled, impressions, bidders)
        now = now.after(settled.spent, settled.stopped, count, pacing)
    return AuctionResult(log, now)


def run_regimes(
    impressions: Inventory,
    signals: Iterable[Signal],
    bidders: Bidders,
    pacing: Pacing,
    *,
    rule: clearing.AuctionType = clearing.AuctionType.SECOND_PRICE,
) -> list[AuctionResult]:
    """Sell the same impressions under each signal, with the same draws and full purses."""
    return [run_auctions(impressions, one, bidders, pacing, rule=rule) for one in signals]


def _slices(count: int, step: int) -> Iterator[slice]:
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _write(
    log: AuctionLog, rows: slice, settled: SettledSlice, impressions: Inventory, bidders: Bidders
) -> None:
    """Write a slice of the log, with what is true of the winners."""
    cleared = settled.cleared
    log.winner[rows], log.price[rows] = cleared.winner, cleared.price
    log.bid[rows], log.second[rows] = cleared.bid, cleared.second
    filled = cleared.winner != clearing.UNFILLED
    winner = np.where(filled, cleared.winner, 0)
    place = np.arange(len(winner)) * len(bidders) + winner
    chance = impressions.chance[rows].reshape(-1).take(place)
    worth = bidders.view.take(winner) + bidders.click.take(winner) * chance.astype(np.float64)
    worth *= filled
    np.copyto(log.value[rows], worth, casting="unsafe")
    taste = impressions.taste[rows].reshape(-1).take(place)
    np.multiply(taste, filled, out=log.taste[rows], casting="unsafe")
