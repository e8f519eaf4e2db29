"""Tables of click chances, learnt from protected reports: what bidders may know of people.

A report says which symbol was released, on a page of which topic, which campaign's ad was shown,
and, protected, whether it was clicked. Most cells have few reports and much noise, so a table is
not a table of means. The chance is the sum of a mean, an effect of the campaign, one of campaign
and page, and one of campaign and symbol. Each effect is shrunk towards 0 by empirical Bayes: its
variance is what the spread of the means exceeds their known noise by. Where the reports say no
more of a symbol than noise does, its effect is 0, and the table is that of the page alone.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction.bidders import Reals
from noisefloor.checks import Array, check_count, check_finite, check_integers
from noisefloor.errors import BadParameter

MOST_CELLS = 1 << 16

SWEEPS = 8
"""How often each effect is fitted to what the others leave over; the last ones move little."""


@dataclass(frozen=True, slots=True)
class ReportCells:
    """The cells that reports are counted by: symbol, topic and campaign.

    Attributes:
        symbols: That can be released, and one more that says that none was.
        topics: Of pages.
        campaigns: Whose ads are shown.
    """

    symbols: int
    topics: int
    campaigns: int

    def __post_init__(self) -> None:
        for name in ("symbols", "topics", "campaigns"):
            check_count(getattr(self, name), name)
        check_count(len(self), "cells", most=MOST_CELLS)

    def __len__(self) -> int:
        return self.symbols * self.topics * self.campaigns

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a table: symbols, topics, campaigns."""
        return self.symbols, self.topics, self.campaigns

    def number(self, symbol: object, topic: object, campaign: object) -> NDArray[np.int64]:
        """Return the cell of each report."""
        parts = (
            check_integers(values, 0, size - 1).astype(np.int64)
            for values, size in zip((symbol, topic, campaign), self.shape, strict=True)
        )
        first, second, third = parts
        return (first * self.topics + second) * self.campaigns + third


def learn_chances(
    shown: Array, clicks: Array, noise: float, *, by_page: bool, by_symbol: bool
) -> Reals:
    """Return the chance of a click by symbol, topic and campaign, shrunk where noise is large.

    An additive model with random effects, fitted by turns (backfitting); the variance of each
    effect by the method of moments.

    Args:
        shown: Reports of each cell: symbols, topics, campaigns.
        clicks: Estimated clicks of each cell, without bias; noise may take them below 0.
        noise: The variance that protection adds to one report's click.
        by_page: Whether the chance may depend on the page.
        by_symbol: Whether it may depend on the symbol.
    """
    count, found = (np.asarray(one, dtype=np.float64) for one in (shown, clicks))
    if count.ndim != 3 or count.shape != found.shape:
        raise BadParameter("clicks", found.shape, f"of three dimensions, as shown: {count.shape}")
    check_finite(noise, "noise")
    # What an effect does not depend on is summed over.
    groups = [(0, 1), *([(0,)] if by_page else []), *([(1,)] if by_symbol else [])]
    mean = np.clip(found.sum() / max(1.0, count.sum()), 0.0, 1.0)
    effects = [np.zeros(count.shape) for _ in groups]
    for _ in range(SWEEPS):
        for place, axes in enumerate(groups):
            others = mean + sum(effects) - effects[place]
            chance = np.clip(others + effects[place], 0.0, 1.0)
            spread = count * (noise + chance * (1 - chance))
            effects[place] = _shrunk(count, found - count * others, spread, axes)
    return np.asarray(np.clip(mean + sum(effects), 0.0, 1.0))


def _shrunk(count: Reals, excess: Reals, spread: Reals, axes: tuple[int, ...]) -> Reals:
    """Return the effect of each group of cells, shrunk by what its noise is known to be.

    Args:
        count: Reports of each cell.
        excess: Clicks of each cell beyond those that the other effects explain.
        spread: The variance of that.
        axes: Of cells that share an effect.
    """
    n, total, variance = (one.sum(axis=axes, keepdims=True) for one in (count, excess, spread))
    some = n > 0
    means = np.divide(total, n, out=np.zeros(n.shape), where=some)
    errors = np.divide(variance, n**2, out=np.zeros(n.shape), where=some)
    signal = float((n * (np.square(means) - errors)).sum() / max(1.0, n.sum()))
    if signal <= 0:
        return np.zeros(count.shape)
    weight = np.where(some, signal / (signal + errors), 0.0)
    return np.asarray(np.broadcast_to(weight * means, count.shape))
