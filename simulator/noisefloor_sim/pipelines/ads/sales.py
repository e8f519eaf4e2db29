"""What auctions came to, in numbers: means with errors that know whose impressions they are.

What a regime is worth is measured over random ad choice: each ad as often as the regime shows it,
to people drawn at random. The difference is the covariance of what is shown with what it is worth
there. How many impressions are sold, at which prices, and which campaign's budget is used up first
move the two alike: a regime that knows nothing gains nothing.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.auction import AuctionLog, Bidders, MeanWithError
from noisefloor.randomness import SeededSource
from noisefloor_sim.pipelines.api import Metric, Z

REGIMES = ("tracking", "protected", "symbol", "contextual", "random")
"""By what bidders get: all, released ad and page, released ad, page, or nothing."""

MILLE = 1e-3
"""From micros for one impression to whole units for a thousand."""

HALVES = 1_000
"""Random halves of the users by which the coverage of intervals is measured."""

_AT_ONCE = 50

Array = NDArray[Any]  # numbers of any kind
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sale:
    """Impressions, sold under each regime.

    Attributes:
        user: Whose each impression is; only errors look at it.
        logs: By regime.
        worth: What each impression is worth to each campaign, in micros.
        overspent: Campaigns that paid more than their budget, over all regimes.
    """

    user: NDArray[np.int64]
    logs: Mapping[str, AuctionLog]
    worth: Floats
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


def gains_of(log: AuctionLog, worth: Floats) -> Floats:
    """Return by how much each impression's value exceeds that of random ad choice.

    The mean is sum over ads of Cov(ad is shown, its worth). The terms are its influence function,
    so that their error is that of the mean: shares and mean worths are estimated as well.

    Args:
        log: Of one regime.
        worth: Of each impression to each campaign.
    """
    campaigns = worth.shape[1]
    # The last column stands for impressions that nobody won.
    winner = np.where(log.filled, log.winner, campaigns).astype(np.intp)
    shares = np.bincount(winner, minlength=campaigns + 1) / max(1, len(winner))
    means = np.append(worth.mean(axis=0), 0.0)
    value = np.where(log.filled, log.value, 0)
    return np.asarray(value - worth @ shares[:-1] - means[winner] + shares @ means)


def ratio_of(part: Floats, whole: Floats, user: NDArray[np.int64]) -> MeanWithError:
    """Return the ratio of two means over the same impressions, with its error over users."""
    over = float(whole.mean()) if len(whole) else 0.0
    if over <= 0:
        return MeanWithError(0.0, math.nan)
    share = float(part.mean()) / over
    return MeanWithError(share, mean_of(part - share * whole, user).standard_error / over)


def explained_share(group: NDArray[np.int64], values: Array, size: int) -> float:
    """Return which share of the variance of columns their means by group explain, on average."""
    count = np.bincount(group, minlength=size)
    shares = []
    for column in values.T.astype(np.float64):
        sums = np.bincount(group, weights=column, minlength=size)
        means = np.divide(sums, count, out=np.zeros(size), where=count > 0)
        between = float(count @ np.square(means - column.mean())) / len(column)
        shares.append(between / max(float(column.var()), 1e-30))
    return float(np.mean(shares))


def coverage_of(
    columns: Mapping[str, Floats], user: NDArray[np.int64], source: SeededSource
) -> list[Metric]:
    """Return how often the interval from a random half of the users covers the mean over all.

    A half is drawn without replacement: its error is smaller by the square root of 1/2 than that
    of a sample of as many from a population without end. The intervals are narrowed alike.

    Args:
        columns: A number for each impression, by the name of the figure.
        user: Whose each impression is.
        source: Of the halves.
    """
    people, whose = np.unique(user, return_inverse=True)
    count = np.bincount(whose).astype(np.float64)
    if len(people) < 4:
        return []
    moments = [np.stack([count, count**2], axis=1)]
    for values in columns.values():
        sums = np.bincount(whose, weights=values)
        moments.append(np.stack([sums, sums * count, sums**2], axis=1))
    halves = _sums_of_halves(np.concatenate(moments, axis=1), source)
    n, squares = halves[:, :2].T
    covered = []
    for place, values in enumerate(columns.values()):
        total, products, own_squares = halves[:, 2 + 3 * place : 5 + 3 * place].T
        mean = total / n
        spread = own_squares - 2 * mean * products + mean**2 * squares
        error = np.sqrt(np.maximum(spread, 0.0) / 2) / n
        covered.append(np.abs(mean - values.mean()) <= Z * error)
    return [Metric("auction.coverage", float(np.mean(covered)), n=HALVES)]


def _sums_of_halves(rows: Floats, source: SeededSource) -> Floats:
    """Return the column sums of random halves of the rows."""
    draw, half = source.generator(), len(rows) // 2
    found = []
    for _ in range(0, HALVES, _AT_ONCE):  # halves at once: their draws fit the caches
        keys = draw.random((_AT_ONCE, len(rows)))
        last = np.partition(keys, half - 1, axis=1)[:, half - 1 : half]
        found.append((keys <= last).astype(np.float64) @ rows)
    return np.concatenate(found)


def sales_metrics(sale: Sale, source: SeededSource) -> list[Metric]:
    """Tell each regime's figures, and what it gains over random ad choice.

    Args:
        sale: Under all regimes.
        source: Of the halves that coverage is measured by.
    """
    user, n = sale.user, len(sale.user)
    gains = {name: gains_of(sale.logs[name], sale.worth) for name in REGIMES}
    shares = {name: ratio_of(gains[name], gains["tracking"], user) for name in REGIMES[1:]}
    lead = mean_of(gains["protected"] - gains["contextual"], user)
    values = {f"{name} value": log.value.astype(np.float64) for name, log in sale.logs.items()}
    return [
        *(metric for name in REGIMES for metric in _figures(name, sale.logs[name], user)),
        *(
            _metric(f"auction.gain.{name}", mean_of(it, user), MILLE, n)
            for name, it in gains.items()
        ),
        *(_metric(f"auction.share.{name}", it, 1.0, n) for name, it in shares.items()),
        _metric("auction.lead", lead, MILLE, n),
        _sigmas("auction.random_sigmas", mean_of(gains["random"], user), n),
        *coverage_of({**gains, **values}, user, source),
        Metric("auction.budget_overspent", float(sale.overspent)),
    ]


def _sigmas(name: str, mean: MeanWithError, n: int) -> Metric:
    """Return how many standard errors a mean is away from 0; 0 if there is no error."""
    error = mean.standard_error
    return Metric(name, abs(mean.value) / error if error > 0 else 0.0, n=n)


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
