"""What the server learned, scored against what it could have counted: clicks and their rates.

A form with a limit counts *kept clicks*: of k ads that a user clicked on a day each counts for
min(1, limit / k). Their intervals cover them whatever people do. The click-through is about all
clicks; its interval is printed where nothing is dropped, or where reports tell how much is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.clicks import counts_of
from noisefloor.checks import Floats
from noisefloor.mechanisms import Estimate
from noisefloor.roles import Aggregation
from noisefloor_sim.pipelines.api import Metric
from noisefloor_sim.pipelines.clicks.click_flow import ClickMechanism
from noisefloor_sim.pipelines.clicks.day_statistics import ClickDayStatistics
from noisefloor_sim.pipelines.clicks.dropped import DroppedShare

MOST_ESTIMATES = 2_000
"""The most estimates (ads times days), and the most rates (ads), that are listed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class ClickCounts:
    """Estimated kept clicks of each ad, on one day or on all.

    Attributes:
        n: Reports behind them.
        clicks: The counts, with their standard errors.
        low: Lower ends of their 95 % intervals; NaN where there are none.
        high: Upper ends.
        higher: Upper ends that fail half as often.
    """

    n: int
    clicks: Estimate
    low: Floats
    high: Floats
    higher: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedDay:
    """What was released of one day.

    Attributes:
        day: Which day.
        tally: Of click reports.
        n: Click reports.
        users: All users who reported, those among them who told of dropped clicks.
        is_plain: Whether all reports are honest and of that day: then intervals are of the noise.
    """

    day: int
    tally: NDArray[np.int64]
    n: int
    users: int
    is_plain: bool = True


def released_days(
    aggregator: Aggregation,
    kind: str,
    statistics: Sequence[ClickDayStatistics],
    counted: Sequence[int],
) -> list[ReleasedDay]:
    """Return the days that anything was released of.

    Args:
        aggregator: That releases.
        kind: Of click reports.
        statistics: One for each day: fakes and repeated reports, which intervals do not allow for.
        counted: By day, released reports of dropped clicks.
    """
    found = []
    for day, stats in enumerate(statistics):
        tally, n = aggregator.release(kind, day)
        if n:
            is_plain = not (stats.fakes or stats.repeated)
            found.append(ReleasedDay(day, np.asarray(tally), n, n + counted[day], is_plain))
    return found


def counts_on(mechanism: ClickMechanism, days: Sequence[ReleasedDay]) -> ClickCounts:
    """Return the kept clicks of days whose reports have random numbers of their own."""
    tally = np.sum([one.tally for one in days], axis=0)
    n, users = sum(one.n for one in days), sum(one.users for one in days)
    clicks = counts_of(mechanism.estimate(tally, n), users)
    if not all(one.is_plain for one in days):
        none = np.full(len(clicks.value), np.nan)
        return ClickCounts(n, clicks, none, none, none)
    low, high = mechanism.interval(tally, n)
    _, higher = mechanism.interval(tally, n, level=0.975)
    scale = users / n
    return ClickCounts(n, clicks, scale * low, scale * high, scale * higher)


def sum_of_days(
    mechanism: ClickMechanism, days: Sequence[ReleasedDay], *, share_randomness: bool
) -> ClickCounts:
    """Return the kept clicks of all days.

    Permanent answers and reports that are sent again rest on the same random numbers every day:
    then the ends of the days' intervals are added up, which is the most that they can be.
    """
    if not share_randomness:
        return counts_on(mechanism, days)
    parts = [counts_on(mechanism, [one]) for one in days]
    clicks = Estimate(
        np.sum([part.clicks.value for part in parts], axis=0),
        np.sum([part.clicks.standard_error for part in parts], axis=0),
    )
    ends = (np.sum([getattr(one, end) for one in parts], axis=0) for end in _ENDS)
    return ClickCounts(sum(one.n for one in days), clicks, *ends)


_ENDS = ("low", "high", "higher")


def estimate_metrics(
    mechanism: ClickMechanism,
    days: Sequence[ReleasedDay],
    statistics: Sequence[ClickDayStatistics],
    dropped: DroppedShare | None,
) -> list[Metric]:
    """Compare the estimated clicks per ad and day with the true ones, in users.

    Args:
        mechanism: Of click reports.
        days: What was released.
        statistics: One for each day.
        dropped: What reports told of dropped clicks, for which estimates are corrected.
    """
    if not days:
        return [Metric("estimates", 0.0)]
    found = [counts_on(mechanism, [one]) for one in days]
    limit, times = mechanism.limit, 1.0 if dropped is None else dropped.factor
    truths = np.array([statistics[one.day].reported for one in days])
    misses = times * np.array([one.clicks.value for one in found]) - truths
    # Where the server knows that an ad was shown to nobody, there is nothing to cover.
    known = np.array([one.clicks.standard_error for one in found]) > 0
    kept = np.array([statistics[one.day].kept(limit) for one in days])
    ends = [np.array([getattr(one, end) for one in found]) for end in ("low", "high")]
    rms, mean = math.sqrt(float(np.mean(misses**2))), float(np.mean(truths))
    name = "estimate" if limit is None else "kept"
    listed = [
        Metric(f"{name}.day_{one.day}.ad_{ad}", float(at), float(low), float(high), counts.n)
        for one, counts in zip(days, found, strict=True)
        for ad, (at, low, high) in enumerate(
            zip(counts.clicks.value, counts.low, counts.high, strict=True)
        )
    ]
    return [
        Metric("error_rms", rms, n=misses.size),
        Metric("error_relative", rms / mean if mean else math.inf, n=misses.size),
        *coverage_metric("coverage", kept[known], ends[0][known], ends[1][known]),
        Metric("clicks_mean", mean, n=truths.size),
        *_share_metrics(statistics, limit),
        *(listed if misses.size <= MOST_ESTIMATES else []),
    ]


def coverage_metric(name: str, truths: Floats, low: Floats, high: Floats) -> list[Metric]:
    """Return the share of intervals that cover their truth; nothing where there are none."""
    printed = ~np.isnan(low)
    if not printed.any():
        return []
    covered = ((low <= truths) & (truths <= high))[printed]
    return [Metric(name, float(np.mean(covered)), n=covered.size)]


def _share_metrics(statistics: Sequence[ClickDayStatistics], limit: int | None) -> list[Metric]:
    """Tell how much of what users clicked a device that reported saw, and a report kept."""
    clicked = sum(int(stats.clicked.sum()) for stats in statistics)
    reported = sum(int(stats.reported.sum()) for stats in statistics)
    kept = math.fsum(float(stats.kept(limit).sum()) for stats in statistics)
    return [
        Metric("reported_share", reported / max(1, clicked), n=clicked),
        Metric("kept_share", kept / max(1, reported), n=reported),
    ]


def rate_metrics(
    mechanism: ClickMechanism,
    total: ClickCounts,
    statistics: Sequence[ClickDayStatistics],
    impressions: NDArray[np.int64],
    dropped: DroppedShare | None,
) -> list[Metric]:
    """Return the rates of each ad over all days, scored.

    Clicks are users who clicked on a day; the true click-through is what a server that saw
    everything would have counted: clicked user-days of users who reported, over the impressions.
    Both are those of this population, so that people are no source of error, only draws are.

    Args:
        mechanism: Of click reports.
        total: The kept clicks of all days.
        statistics: One for each day.
        impressions: As they were counted, over all days; none at all if they are hidden.
        dropped: What reports told of dropped clicks.
    """
    shown = np.flatnonzero(impressions > 0)
    if not shown.size:
        return []
    count, limit = impressions[shown], mechanism.limit
    value = total.clicks.value[shown] / count
    low, high, higher = (np.clip(getattr(total, end)[shown] / count, 0.0, 1.0) for end in _ENDS)
    kept, all_clicks = (
        np.sum(counts, axis=0)[shown] / count
        for counts in (
            [stats.kept(limit) for stats in statistics],
            [stats.reported for stats in statistics],
        )
    )
    times = 1.0 if dropped is None else dropped.factor
    error = math.sqrt(float(np.mean((times * value - all_clicks) ** 2)))
    metrics = [Metric("ctr_error", error, n=shown.size)]
    if limit is not None:
        metrics += _rates("kept_rate", shown, count, (value, low, high), kept)
    if limit is None:
        metrics += _rates("ctr", shown, count, (value, low, high), all_clicks)
    elif dropped is not None:
        # No fewer clicks than were kept; no more than the reports on dropped ones allow for.
        most = dropped.most_factor
        end = np.ones_like(high) if math.isinf(most) else np.minimum(most * higher, 1.0)
        metrics += _rates("ctr", shown, count, (times * value, low, end), all_clicks)
    return metrics


def _rates(
    name: str,
    ads: NDArray[np.int64],
    impressions: NDArray[np.int64],
    found: tuple[Floats, Floats, Floats],
    truth: Floats,
) -> list[Metric]:
    """List rates with their intervals, and say how many cover."""
    value, low, high = found
    rows = zip(ads, value, low, high, impressions, strict=True)
    listed = [
        Metric(f"{name}.ad_{ad}", float(at), float(start), float(end), int(n))
        for ad, at, start, end, n in rows
    ]
    covered = coverage_metric(f"{name}_coverage", truth, low, high)
    return [*covered, *(listed if len(listed) <= MOST_ESTIMATES else [])]
