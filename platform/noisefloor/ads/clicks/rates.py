"""Click-through rates per ad, from estimated clicks and exact or estimated impressions.

The errors are those of the draws that protect users, given what users did: an interval is for
the rate that a server which saw everything would have counted.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_probability
from noisefloor.mechanisms import Estimate

Counts = NDArray[np.integer]

CONFIDENCE_LEVEL = 0.95
"""How often an interval covers the truth."""


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Clicks per impression of each ad; NaN where nothing was shown.

    Attributes:
        value: The rate, not clipped: noise may take it below 0 or above 1.
        standard_error: Of the rate.
        low: Lower end of its interval, within [0, 1].
        high: Upper end, within [0, 1].
    """

    value: Floats
    standard_error: Floats
    low: Floats
    high: Floats


def click_through(
    clicks: Estimate, impressions: Counts | Estimate, *, level: float = CONFIDENCE_LEVEL
) -> Rates:
    """Return the click-through rate of each ad with an interval of the given level.

    A ratio of two estimates has its error by the delta method. Where the impressions cannot be
    distinguished from none at that level, the interval is all of [0, 1].

    Args:
        clicks: Estimated clicks per ad, as counts.
        impressions: Impressions per ad, exact or estimated with draws of their own.
        level: How often the interval is to cover the rate.
    """
    width = normal_quantile(level)
    shown = impressions if isinstance(impressions, Estimate) else _exact(impressions)
    count = np.where(shown.value > 0, shown.value, np.nan)
    value = np.asarray(clicks.value / count)
    error = np.hypot(clicks.standard_error, value * shown.standard_error) / count
    unknown = count <= width * shown.standard_error  # false for NaN, which stays
    low = np.where(unknown, 0.0, np.clip(value - width * error, 0.0, 1.0))
    high = np.where(unknown, 1.0, np.clip(value + width * error, 0.0, 1.0))
    return Rates(value, np.asarray(error), low, high)


def response_interval(
    supports: Counts,
    n: Counts | int,
    *,
    hold: float,
    lack: float,
    is_sampled: bool,
    level: float = CONFIDENCE_LEVEL,
) -> tuple[Floats, Floats]:
    """Return the ends of the interval of how many of n senders hold a value, within [0, n].

    These are the counts that a score test with continuity correction does not reject: its
    variance is that at the count it tests, so that few reports, or none, have a right interval.
    The ends solve a quadratic equation.

    Given who holds the value, the variance is that of the response. If a random choice decides
    what a sender reports about (``is_sampled``), senders support the value with different
    probabilities: a sum of such draws spreads at most as a binomial of their mean does (Hoeffding
    1956, doi 10.1214/aoms/1177728178), and that variance is taken.

    Args:
        supports: Reports that support each value.
        n: All reports, or those that could support each.
        hold: The probability that a sender's report supports the value that it holds.
        lack: That it supports another.
        is_sampled: Whether a random choice precedes the response.
        level: How often the interval is to cover the count.
    """
    reach, count = normal_quantile(level), np.asarray(n, dtype=np.float64)
    gap, each = hold - lack, lack * (1 - lack)
    # The variance as a polynomial of the count c of those who hold the value.
    linear = gap * (1 - 2 * lack) if is_sampled else hold * (1 - hold) - each
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.where(count > 0, -(gap**2) / count, 0.0) if is_sampled else 0.0
    ends = []
    for sign, limit in ((-1, 0.0), (1, count)):
        over = np.asarray(supports) + 0.5 * sign - count * lack
        first = gap**2 - reach**2 * square
        second = 2 * gap * over + reach**2 * linear
        third = over**2 - reach**2 * count * each
        root = np.sqrt(np.maximum(second**2 - 4 * first * third, 0.0))
        # Where the test does not reject none (or all), there is no root on that side.
        spread = count * each + limit * linear + limit * limit * square
        is_open = sign * (gap * limit - over) <= reach * np.sqrt(np.maximum(spread, 0.0))
        end = np.where(is_open, limit, (second + sign * root) / (2 * first))
        ends.append(np.clip(end, 0.0, count))
    return np.asarray(ends[0]), np.asarray(ends[1])


def interval(estimate: Estimate, *, level: float = CONFIDENCE_LEVEL) -> tuple[Floats, Floats]:
    """Return the ends of the normal interval of each figure."""
    reach = normal_quantile(level) * estimate.standard_error
    return np.asarray(estimate.value - reach), np.asarray(estimate.value + reach)


def counts_of(share: Estimate, n: int) -> Estimate:
    """Return an estimated share of n reports as a count."""
    return Estimate(n * share.value, n * share.standard_error)


def normal_quantile(level: float) -> float:
    """Return how many standard errors a two-sided normal interval reaches."""
    return NormalDist().inv_cdf((1 + check_probability(level, "level")) / 2)


def _exact(counts: Counts) -> Estimate:
    """Return counts that are known, as an estimate without error."""
    value = np.asarray(counts, dtype=np.float64)
    return Estimate(value, np.zeros_like(value))
