"""Bayes-optimal guessing from exact likelihoods, for any mechanism, with its closed forms.

An attack states what it Sees, Knows and Guesses. These see reports (of one user, linked over
periods where the threat model grants it), know the mechanism and a prior, and guess an input.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.mechanisms.base import Mechanism, Reports
from noisefloor.mechanisms.unary import UnaryEncoding


@dataclass(frozen=True, slots=True)
class Guess:
    """What was guessed for each user, and how sure the attacker is.

    Attributes:
        candidate: The index of the guessed candidate, for each user.
        posterior: Its posterior probability.
    """

    candidate: NDArray[np.intp]
    posterior: Floats


def guess(
    mechanism: Mechanism,
    periods: Sequence[Reports],
    candidates: Sequence[Any],
    prior: Sequence[float] | None = None,
) -> Guess:
    """Name the most probable candidate for each user.

    Sees:      one report per user and period, rows of the same user in the same place.
    Knows:     the mechanism, the candidates and their prior; the truth is the same in each period.
    Guesses:   which candidate the user holds.
    Reference: Bayes; no rule is right more often.
    """
    shares = check_prior(len(candidates), prior)
    logs = np.empty((len(candidates), len(periods[0])))
    for place, value in enumerate(candidates):
        with np.errstate(divide="ignore"):
            logs[place] = np.log(shares[place])
        for reports in periods:
            logs[place] += mechanism.log_likelihood(reports, value)
    # Ties go to the first candidate: no rule for them is right more often.
    best = logs.argmax(axis=0)
    top = logs[best, np.arange(logs.shape[1])]
    weight = np.exp(logs - top).sum(axis=0)
    return Guess(best, 1 / weight)


def check_prior(size: int, prior: Sequence[float] | Floats | None) -> Floats:
    """Return the prior as shares that sum to 1; without one, all candidates are alike."""
    if prior is None:
        return np.full(size, 1 / size)
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != (size,) or shares.min() < 0 or not math.isclose(shares.sum(), 1.0):
        raise BadParameter("prior", "<array>", f"to be {size} shares that sum to 1")
    return shares


def majority_success(reports: int, keep: float) -> float:
    """Return how often a majority of so many fresh responses names the bit; ties are tossed.

    ``keep`` is the chance that one response is the truth. Two vectors at Hamming distance h are
    told apart as one bit is from h responses.
    """
    if reports < 1:
        raise BadParameter("reports", reports, ">= 1")
    right = 0.0
    for truths in range(reports // 2, reports + 1):
        chance = math.comb(reports, truths) * keep**truths * (1 - keep) ** (reports - truths)
        right += chance * (0.5 if 2 * truths == reports else float(2 * truths > reports))
    return right


def pair_success(
    encoding: UnaryEncoding, first: NDArray[np.bool_], second: NDArray[np.bool_], reports: int
) -> float:
    """Return how often two vectors are told apart by so many fresh unary reports, exactly.

    Only bits that differ tell anything, and of those only how many reports are one: among the
    bits that the first vector has alone, and among those that the second has alone.
    """
    ours = reports * int(np.count_nonzero(first & ~second))
    theirs = reports * int(np.count_nonzero(second & ~first))
    stay, rise = encoding.stay / ONE, encoding.rise / ONE
    as_first = np.outer(binomial_law(ours, stay), binomial_law(theirs, rise))
    as_second = np.outer(binomial_law(ours, rise), binomial_law(theirs, stay))
    return float(np.maximum(as_first, as_second).sum() / 2)


def binomial_law(size: int, chance: float) -> Floats:
    """Return the binomial law over 0, ..., size."""
    from scipy.special import gammaln  # lazy: scipy is slow to import

    count = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(count + 1) - gammaln(size - count + 1)
    logs = ways + count * math.log(chance) + (size - count) * math.log1p(-chance)
    return np.asarray(np.exp(logs))


def vector_success(size: int, keep: float) -> float:
    """Return how often a whole vector of independent responses is guessed right."""
    return keep**size
