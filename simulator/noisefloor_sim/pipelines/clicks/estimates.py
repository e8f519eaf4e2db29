"""What the server learned, scored against what it could have counted: clicks and their rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import click_through, counts_of
from noisefloor.mechanisms import Estimate, Mechanism
from noisefloor.roles import Aggregation
from noisefloor_sim.pipelines.api import Metric, Z
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics

MOST_ESTIMATES = 2_000
"""Estimates are listed one by one up to so many ads times days, rates up to so many ads."""


@dataclass(frozen=True, slots=True, eq=False)
class DayEstimate:
    """The released clicks of one day.

    Attributes:
        day: Which day.
        n: Reports behind them.
        clicks: Estimated users who clicked each ad, with their standard errors.
    """

    day: int
    n: int
    clicks: Estimate


def released_estimates(
    mechanism: Mechanism, aggregator: Aggregation, kind: str, days: int
) -> list[DayEstimate]:
    """Return the estimates of the days that anything was released of."""
    found = []
    for day in range(days):
        tally, n = aggregator.release(kind, day)
        if n:
            found.append(DayEstimate(day, n, counts_of(mechanism.estimate(tally, n), n)))
    return found


def estimate_metrics(
    found: Sequence[DayEstimate], statistics: Sequence[ClickDayStatistics]
) -> list[Metric]:
    """Compare the estimated clicks per ad and day with the true ones, in users."""
    if not found:
        return [Metric("estimates", 0.0)]
    truths = np.array([statistics[one.day].reported for one in found])
    misses = np.array([one.clicks.value for one in found]) - truths
    errors = np.array([one.clicks.standard_error for one in found])
    # Where the server knows that an ad was shown to nobody, there is nothing to cover.
    covered = (np.abs(misses) <= Z * errors)[errors > 0]
    rms, mean = math.sqrt(float(np.mean(misses**2))), float(np.mean(truths))
    summary = [
        Metric("error_rms", rms, n=misses.size),
        Metric("error_relative", rms / mean if mean else math.inf, n=misses.size),
        Metric("coverage", float(np.mean(covered)), n=covered.size),
        Metric("clicks_mean", mean, n=truths.size),
        _reported_share(statistics),
    ]
    return summary + (_listed(found) if misses.size <= MOST_ESTIMATES else [])


def _listed(found: Sequence[DayEstimate]) -> list[Metric]:
    """Return every estimate with its interval."""
    return [
        Metric.normal(f"estimate.day_{one.day}.ad_{ad}", float(at), float(error), one.n)
        for one in found
        for ad, (at, error) in enumerate(
            zip(one.clicks.value, one.clicks.standard_error, strict=True)
        )
    ]


def _reported_share(statistics: Sequence[ClickDayStatistics]) -> Metric:
    """Tell how much of what users clicked was known to a device that reported."""
    clicked = sum(int(stats.clicked.sum()) for stats in statistics)
    reported = sum(int(stats.reported.sum()) for stats in statistics)
    return Metric("reported_share", reported / max(1, clicked), n=clicked)


def rate_metrics(
    found: Sequence[DayEstimate],
    statistics: Sequence[ClickDayStatistics],
    impressions: NDArray[np.int64],
    *,
    share_randomness: bool,
) -> list[Metric]:
    """Return the click-through rate of each ad over all days, scored.

    Clicks are users who clicked on a day; the true rate is what a server that saw everything
    would have counted: clicked user-days of users who reported, over the same impressions.

    Args:
        found: The released clicks.
        statistics: One for each day.
        impressions: As the ad server counted them, over all days; none at all if they are hidden.
        share_randomness: Whether the days' estimates may rest on the same random numbers.
    """
    shown = impressions > 0
    if not found or not shown.any():
        return []
    clicks = sum_of([one.clicks for one in found], share_randomness=share_randomness)
    rates = click_through(clicks, impressions)
    truth = np.sum([stats.reported for stats in statistics], axis=0)[shown] / impressions[shown]
    covered = (rates.low[shown] <= truth) & (truth <= rates.high[shown])
    error = math.sqrt(float(np.mean((rates.value[shown] - truth) ** 2)))
    listed = [
        Metric(
            f"ctr.ad_{ad}",
            float(rates.value[ad]),
            float(rates.low[ad]),
            float(rates.high[ad]),
            int(impressions[ad]),
        )
        for ad in np.flatnonzero(shown)
    ]
    return [
        Metric("ctr_error", error, n=truth.size),
        Metric("ctr_coverage", float(np.mean(covered)), n=truth.size),
        *(listed if len(listed) <= MOST_ESTIMATES else []),
    ]


def sum_of(parts: Sequence[Estimate], *, share_randomness: bool) -> Estimate:
    """Return the sum of estimates with its standard error.

    Independent errors add up in squares. Permanent answers and reports that are sent again rest on
    the same random numbers every day: then the plain sum is the most that the error can be.
    """
    value = np.sum([part.value for part in parts], axis=0)
    errors = [part.standard_error for part in parts]
    if share_randomness:
        return Estimate(value, np.sum(errors, axis=0))
    return Estimate(value, np.sqrt(np.sum(np.square(errors), axis=0)))
