"""What bidders receive of an impression, and the chance of a click that follows from it.

Three regimes. TRACKING: everything, so that each impression has its true chances. PROTECTED: one
symbol that the device released, and the page; the chances are those of the table of its row.
CONTEXTUAL: the page at most. The tables are public: they follow from the mechanism's known
distribution and from what is known of the population, or are learnt from protected reports
(``learning``).
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction.bidders import Bidders, Reals
from noisefloor.ads.auction.clearing import AuctionType, Micros
from noisefloor.checks import Array, check_integers, check_reals
from noisefloor.errors import BadParameter


class Regime(Enum):
    """How much a bid request tells."""

    TRACKING = "tracking"
    PROTECTED = "protected"
    CONTEXTUAL = "contextual"


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """The signal about some impressions; make one with the function of its regime.

    Attributes:
        regime: How much is released.
        chance: Rows of the chance of a click, one column per campaign.
        seen: The row of each impression; none where each impression has its own.
    """

    regime: Regime
    chance: Array
    seen: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.chance) if self.seen is None else len(self.seen)

    def bid(
        self, rows: slice, bidders: Bidders, rule: AuctionType, pace: Reals, out: Micros
    ) -> None:
        """Write the bids for some impressions, rounded down to whole micros."""
        view, click = bidders.factors(rule, pace)
        if self.seen is None:
            for place in range(len(bidders)):
                # In doubles: a float32 holds no more than seven digits of a bid.
                worth = np.multiply(self.chance[rows, place], click[place], dtype=np.float64)
                worth += view[place]
                np.copyto(out[:, place], worth, casting="unsafe")
            return
        table = (self.chance * click + view).astype(np.int64)
        seen = self.seen[rows]
        for place, column in enumerate(np.ascontiguousarray(table.T)):
            # Clipping never happens; it lets numpy write to ``out`` without a copy.
            column.take(seen, out=out[:, place], mode="clip")


def tracking(chance: object, bidders: Bidders) -> Signal:
    """Tell the true chance of a click on each campaign's ad: one row per impression."""
    return Signal(Regime.TRACKING, check_reals(chance, 0.0, 1.0, width=len(bidders)))


def protected(released: object, by_symbol: object, bidders: Bidders) -> Signal:
    """Tell what devices released.

    Args:
        released: One symbol per impression. Where the page is released as well, number the pairs:
            ``topic * symbols + symbol``.
        by_symbol: The chance of a click given the symbol: one row per symbol, a column per ad.
        bidders: Whose campaigns they are.
    """
    return _from_table(Regime.PROTECTED, released, by_symbol, bidders)


def contextual(topic: object, by_topic: object, bidders: Bidders) -> Signal:
    """Tell the topic of the page only; with a table of one row and zeros, nothing at all."""
    return _from_table(Regime.CONTEXTUAL, topic, by_topic, bidders)


def _from_table(regime: Regime, seen: object, table: object, bidders: Bidders) -> Signal:
    chance = bidders.per_campaign(_chances(table))
    return Signal(regime, chance, check_integers(seen, 0, len(chance) - 1))


def expected_chance(prior: object, distribution: object, chance: object) -> Reals:
    """Return the chance of a click given each symbol, by Bayes' rule.

    A symbol that never occurs gets the chance of the whole population.

    Args:
        prior: The share of each profile in the population.
        distribution: Of the mechanism: the probability of each symbol (column) for each
            profile (row).
        chance: The chance of a click of each profile (row) on each ad (column).
    """
    share = np.asarray(prior, dtype=np.float64)
    symbols, clicks = _chances(distribution), _chances(chance)
    if share.ndim != 1 or not len(share) == len(symbols) == len(clicks):
        raise BadParameter("prior", share.shape, "to have one entry for each profile")
    joint = symbols * share[:, None]
    return _row_means(joint.T @ clicks, joint.sum(axis=0))


def _chances(table: object) -> Reals:
    array = np.asarray(table)
    if array.ndim != 2:
        raise BadParameter("table", array.shape, "of two dimensions")
    return check_reals(array, 0.0, 1.0, width=array.shape[1]).astype(np.float64)


def _row_means(sums: Array, weights: Array) -> Reals:
    """Divide each row by its weight; rows of no weight get the mean of all."""
    overall = sums.sum(axis=0) / weights.sum()
    some = (weights > 0)[:, None]
    means = np.divide(sums, weights[:, None], out=np.zeros(sums.shape), where=some)
    return np.clip(np.where(some, means, overall), 0.0, 1.0)
