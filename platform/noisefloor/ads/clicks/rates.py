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
