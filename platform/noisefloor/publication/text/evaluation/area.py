"""The area under a ROC curve, by ranks, and its interval."""

import math

import numpy as np

from noisefloor.checks import Floats, check_probability
from noisefloor.errors import BadParameter


def rank_area(positive: Floats, negative: Floats) -> float:
    """Return how often a positive scores above a negative; a tie counts half."""
    return float(_placements(positive, negative)[0].mean())


def area_interval(positive: Floats, negative: Floats, alpha: float = 0.05) -> tuple[float, float]:
    """Return limits that miss the area with probability alpha, about.

    The variance is DeLong's; the limits are Wilson's, for a binomial sample of this variance. So
    they never leave 0 and 1. Where all positives score above all negatives the variance is 0, and
    the smaller of the two kinds counts as the sample: the interval is no point.

    Reference: DeLong, DeLong and Clarke-Pearson 1988 (variance), doi 10.2307/2531595.
    """
    from scipy.special import ndtri  # lazy: scipy is slow to import

    check_probability(alpha, "alpha")
    above, below = _placements(positive, negative)
    area = float(above.mean())
    variance = sum(float(some.var(ddof=1)) / len(some) for some in (above, below) if len(some) > 1)
    n = float(min(len(above), len(below)))
    if 0 < variance < area * (1 - area):
        n = min(max(n, 1.0) * 4, area * (1 - area) / variance)
    z = -float(ndtri(alpha / 2))
    centre = (area + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(area * (1 - area) / n + z**2 / (4 * n**2))
    return max(0.0, min(area, centre - half)), min(1.0, max(area, centre + half))


def _placements(positive: Floats, negative: Floats) -> tuple[Floats, Floats]:
    """Return for each positive the share of negatives below it, and the reverse; ties are half."""
    if not len(positive) or not len(negative):
        raise BadParameter("scores", (len(positive), len(negative)), "at least one of each kind")
    above = _share_below(positive, np.sort(negative))
    below = 1 - _share_below(negative, np.sort(positive))
    return above, below


def _share_below(scores: Floats, ranked: Floats) -> Floats:
    less = np.searchsorted(ranked, scores, side="left")
    up_to = np.searchsorted(ranked, scores, side="right")
    return np.asarray((less + up_to) / (2 * len(ranked)))
