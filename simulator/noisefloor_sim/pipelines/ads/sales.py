"""What auctions came to, in numbers: means with errors that know whose impressions they are."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction import AuctionLog, Bidders, MeanWithError
from noisefloor_sim.pipelines.api import Metric

REGIMES = ("tracking", "protected", "contextual")

BLIND = "blind"
"""The protected regime with symbols handed out at random: the null that it is measured against.

Tables made from a panel are noisy, and noisy bids meet budgets in other ways than even ones do:
that alone moves value a little, and is not worth anything.
"""

MILLE = 1e-3
"""From micros for one impression to whole units for a thousand."""

Array = NDArray[Any]  # numbers of any kind


@dataclass(frozen=True, slots=True)
class DaySales:
    """One day's impressions, sold under each regime.

    Attributes:
        user: Whose each impression is; only errors look at it.
        logs: By regime.
        overspent: Campaigns that paid more than their budget, over all regimes.
    """

    user: NDArray[np.int64]
    logs: dict[str, AuctionLog]
    overspent: int


def overspent(log: AuctionLog, bidders: Bidders) -> int:
    """Count the campaigns that paid more than their budget."""
    won = log.filled
    paid = np.bincount(log.winner[won], weights=log.price[won], minlength=len(bidders))
    return int(np.count_nonzero(paid > bidders.budget))


def mean_of(values: Array, user: NDArray[np.int64]) -> MeanWithError:
    """Return a mean over impressions, with an error that takes users for independent.

    Impressions of one user are alike: taking each for a draw of its own would make the error too
    small.
    """
    if not len(values):
        return MeanWithError(0.0, math.nan)
    mean = float(values.mean())
    sums = np.bincount(user, weights=values - mean)
    if np.count_nonzero(np.bincount(user)) < 2:
        return MeanWithError(mean, math.nan)
    return MeanWithError(mean, float(np.sqrt(np.square(sums).sum())) / len(values))


def sales_metrics(days: Sequence[DaySales]) -> list[Metric]:
    """Tell each regime's figures, and what the protected one and its null gain over context."""
    if not days:
        return []
    user = np.concatenate([day.user for day in days])
    logs = {name: _joined([day.logs[name] for day in days]) for name in (*REGIMES, BLIND)}
    values = {name: log.value for name, log in logs.items()}
    gains = {
        name: mean_of(values[regime] - values["contextual"], user)
        for name, regime in (("value", "protected"), (BLIND, BLIND))
    }
    gap = float((values["tracking"] - values["contextual"]).mean())
    share = gains["value"].value / gap if gap > 0 else 0.0
    return [
        *(metric for name in REGIMES for metric in _figures(name, logs[name], user)),
        *(_metric(f"auction.gain.{name}", it, MILLE, len(user)) for name, it in gains.items()),
        Metric("auction.gap_closed", share, n=len(user)),
        Metric("auction.budget_overspent", float(sum(day.overspent for day in days))),
    ]


def _joined(logs: Sequence[AuctionLog]) -> AuctionLog:
    columns = ("winner", "price", "bid", "second", "value", "taste")
    return AuctionLog(*(np.concatenate([getattr(log, name) for log in logs]) for name in columns))


def _figures(regime: str, log: AuctionLog, user: NDArray[np.int64]) -> Iterator[Metric]:
    """Yield a regime's figures: money per thousand impressions, in whole units."""
    won = log.filled
    figures = {
        "revenue": (mean_of(log.price, user), MILLE),
        "value": (mean_of(log.value, user), MILLE),
        "surplus": (mean_of(log.value - log.price, user), MILLE),
        "fill": (mean_of(won.astype(np.float64), user), 1.0),
        "relevance": (mean_of(log.taste[won].astype(np.float64), user[won]), 1.0),
    }
    for name, (mean, scale) in figures.items():
        yield _metric(f"auction.{regime}.{name}", mean, scale, len(log))


def _metric(name: str, mean: MeanWithError, scale: float, n: int) -> Metric:
    return Metric.normal(name, mean.value * scale, mean.standard_error * scale, n)
