"""What epsilon does not speak of: how many requests a device sends, and when.

The noise is on what is asked for. That something is asked for, and at what hour, is sent in the
clear: activity and daily rhythm show. The remedy is a constant number of requests, not noise.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary import audit
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter

Counts = NDArray[np.int64]

_MOST_CELLS = 1 << 22
_LOST = 1e-13
"""What the sum over counts may leave out."""


def guess_class(counts: Counts, rates: Floats, prior: audit.Prior = None) -> audit.Guess:
    """Name the most probable activity class of each device.

    Sees:      how many requests each device sent in each hour; nothing of what they ask for.
    Knows:     the mean number per hour of each class, and the prior of the classes.
    Guesses:   the class. Outside the guarantee: epsilon says nothing of it.
    Reference: Bayes, with independent Poisson counts.
    """
    expected, shares = _check_rates(rates), audit.check_prior(len(rates), prior)
    if counts.ndim != 2 or counts.shape[1] != expected.shape[1]:
        raise BadParameter("counts", counts.shape, f"to have {expected.shape[1]} hours")
    # The factorials are the same for every class.
    with np.errstate(divide="ignore"):
        logs = counts @ np.log(expected).T - expected.sum(axis=1) + np.log(shares)
    logs -= logs.max(axis=1, keepdims=True)
    chances = np.exp(logs)
    return audit.most_probable(chances / chances.sum(axis=1, keepdims=True))


def class_success(rates: Floats, prior: audit.Prior = None) -> float | None:
    """Return how often the class is named right, or nothing if there is too much to sum.

    Hours whose rates have the same ratios between classes say the same and are added up: classes
    that differ in activity alone are distinguished by the total.
    """
    from scipy.special import gammaln, pdtrik  # lazy: scipy is slow to import

    merged = _merged_hours(_check_rates(rates))
    shares = audit.check_prior(len(merged), prior)
    reach = [math.ceil(float(pdtrik(1 - _LOST, hour.max()))) + 1 for hour in merged.T]
    if math.prod(most + 1 for most in reach) * len(merged) > _MOST_CELLS:
        return None
    joint = shares[:, None]
    for hour, most in zip(merged.T, reach, strict=True):
        count = np.arange(most + 1)
        poisson = np.exp(np.outer(np.log(hour), count) - hour[:, None] - gammaln(count + 1))
        joint = (joint[:, :, None] * poisson[:, None, :]).reshape(len(merged), -1)
    return float(joint.max(axis=0).sum())


def attack_activity(
    counts: Counts,
    truth: NDArray[np.integer],
    rates: Floats,
    prior: audit.Prior = None,
    *,
    quota: int | Sequence[int] | None = None,
) -> audit.AttackOutcome:
    """Guess the class of every device and score it: there is no bound but 1.

    With a quota, devices pad to it. What is then seen is as likely under one class as under any
    other, and the best guess is the one from the prior.
    """
    shares = audit.check_prior(len(rates), prior)
    best = float(shares.max())
    if quota is None:
        guessed, expected = (
            guess_class(counts, rates, prior).candidate,
            class_success(rates, prior),
        )
    else:
        seen = padded(counts, quota)[0]
        guessed, expected = np.full(len(seen), shares.argmax(), dtype=np.intp), best
    return audit.score(
        guessed, truth, baseline=best, bound=1.0, closed_form=expected, is_covered=False
    )


def padded(counts: Counts, quota: int | Sequence[int]) -> tuple[Counts, int, int]:
    """Send exactly ``quota`` requests an hour: the counter-measure.

    Returns:
        The counts that are seen, the same for every device; how many of them are dummies; and
        how many real requests were not sent.
    """
    each = np.asarray(quota, dtype=np.int64)
    if each.min() < 0:
        raise BadParameter("quota", quota, ">= 0")
    seen = np.broadcast_to(each, counts.shape)
    dummies = int(np.maximum(seen - counts, 0).sum())
    return seen, dummies, int(np.maximum(counts - seen, 0).sum())


def _check_rates(rates: Floats) -> Floats:
    expected = np.asarray(rates, dtype=np.float64)
    if expected.ndim != 2 or not (np.isfinite(expected).all() and (expected > 0).all()):
        raise BadParameter("rates", "<array>", "> 0, one row per class and one column per hour")
    return expected


def _merged_hours(rates: Floats) -> Floats:
    """Add up the hours that have the same ratios between classes."""
    ratios = np.round(rates / rates.sum(axis=0), 12)
    kinds, codes = np.unique(ratios, axis=1, return_inverse=True)
    result = np.zeros(kinds.shape)
    np.add.at(result.T, codes.reshape(-1), rates.T)
    return result
