"""What several reports of one user say together, for any mechanism with an exact distribution.

Bayes-optimal guessing from exact likelihoods, for any mechanism, with its closed forms.

An attack states what it Sees, Knows and Guesses. These see reports (of one user, linked over
periods where the threat model grants it), know the mechanism and a prior, and guess an input.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks
from noisefloor.distributions import ONE
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms import Mechanism, Reports, UnaryEncoding


@dataclass(frozen=True, slots=True)
class Guess:
    """What was guessed for each user, and how sure the attacker is.

    Attributes:
        candidate: The index of the guessed candidate, for each user.
        posterior: Its posterior probability.
    """

    candidate: NDArray[np.intp]
    posterior: Floats


def bayes_guess(
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
    """Return how often a majority of n fresh responses names the bit; ties are tossed.

    ``keep`` is the chance that one response is the truth. Two vectors at Hamming distance h are
    distinguished as one bit is from h responses.
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
    """Return how often two vectors are distinguished by n fresh unary reports, exactly.

    Only bits that differ tell anything, and of those only how many reports are one: among the
    bits that the first vector has alone, and among those that the second has alone.
    """
    ours = reports * int(np.count_nonzero(first & ~second))
    theirs = reports * int(np.count_nonzero(second & ~first))
    stay, rise = encoding.stay / ONE, encoding.rise / ONE
    as_first = np.outer(binomial_distribution(ours, stay), binomial_distribution(theirs, rise))
    as_second = np.outer(binomial_distribution(ours, rise), binomial_distribution(theirs, stay))
    return float(np.maximum(as_first, as_second).sum() / 2)


def binomial_distribution(size: int, chance: float) -> Floats:
    """Return the binomial distribution over 0, ..., size."""
    from scipy.special import gammaln  # lazy: scipy is slow to import

    count = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(count + 1) - gammaln(size - count + 1)
    logs = ways + count * math.log(chance) + (size - count) * math.log1p(-chance)
    return np.asarray(np.exp(logs))


def vector_success(size: int, keep: float) -> float:
    """Return how often a whole vector of independent responses is guessed right."""
    return keep**size


Prior = Sequence[float] | Floats | None
"""Shares of the candidates; without them all are alike."""

_FEW = 1 << 16
"""Symbols below this are looked up as they are."""


class ReportDistribution(Protocol):
    """Reports with a known distribution: all that an attack needs of a mechanism."""

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return the exact log-probability of each report, given the value."""
        ...


def log_likelihoods(
    distribution: ReportDistribution,
    reports: Reports,
    candidates: Sequence[Any] | Reports,
    *,
    is_changing: bool = False,
) -> Floats:
    """Return ln P(all reports of a user | candidate), one row per user.

    Args:
        distribution: What the reports follow.
        reports: One row per user, one column per period; a report may have axes of its own.
        candidates: The values that a user may hold.
        is_changing: Whether each candidate is a sequence, with one value for each period.
    """
    if reports.ndim < 2:
        raise BadParameter("reports", reports.shape, "to have a row per user and a period each")
    logs = np.zeros((len(reports), len(candidates)))
    if reports.ndim == 2 and not is_changing:
        return _from_table(distribution, reports, candidates, logs)
    for place, value in enumerate(candidates):
        for period in range(reports.shape[1]):
            candidate = value[period] if is_changing else value
            logs[:, place] += distribution.log_likelihood(reports[:, period], candidate)
    return logs


def _from_table(
    distribution: ReportDistribution,
    reports: Reports,
    candidates: Sequence[Any] | Reports,
    logs: Floats,
) -> Floats:
    """Ask for the likelihood of each kind of report once, and look all others up."""
    symbols, codes = _kinds_of(reports)
    table = np.stack([distribution.log_likelihood(symbols, value) for value in candidates], axis=1)
    for rows in blocks(len(reports), len(candidates)):
        for period in range(reports.shape[1]):
            logs[rows] += table[codes[rows, period]]
    return logs


def _kinds_of(reports: Reports) -> tuple[Reports, Reports]:
    """Return every kind of report, and for each report which kind it is."""
    whole = reports.view(np.uint8) if reports.dtype == np.bool_ else reports
    if whole.dtype.kind == "u" and whole.size and whole.max() < _FEW:
        # Small symbols are codes already: nothing as large as the reports is copied.
        return np.arange(int(whole.max()) + 1).astype(reports.dtype), whole
    kinds, codes = np.unique(reports, return_inverse=True)
    return kinds, codes.reshape(reports.shape)


def posterior(
    distribution: ReportDistribution,
    reports: Reports,
    candidates: Sequence[Any] | Reports,
    prior: Prior = None,
    *,
    is_changing: bool = False,
) -> Floats:
    """Return the posterior of each candidate, one row per user.

    Sees:      all reports of a user, in a row: one per period.
    Knows:     the distribution, the candidates and their prior.
    Guesses:   nothing yet.
    Reference: Bayes.
    """
    shares = check_prior(len(candidates), prior)
    logs = log_likelihoods(distribution, reports, candidates, is_changing=is_changing)
    with np.errstate(divide="ignore"):
        logs += np.log(shares)
    top = logs.max(axis=1, keepdims=True)
    if np.isneginf(top).any():
        raise OutOfDomain("Expected reports that some candidate can give.")
    logs -= top
    np.exp(logs, out=logs)
    logs /= logs.sum(axis=1, keepdims=True)
    return logs


def most_probable(chances: Floats) -> Guess:
    """Return the most probable candidate of each row; ties go to the first."""
    best = chances.argmax(axis=1)
    return Guess(best, np.take_along_axis(chances, best[:, None], axis=1)[:, 0])


def grouped(chances: Floats, groups: Sequence[int] | Reports) -> Floats:
    """Return the posterior of each group of candidates: the sum over its members."""
    members = np.asarray(groups)
    if members.shape != (chances.shape[1],):
        raise BadParameter("groups", members.shape, f"one for each of {chances.shape[1]}")
    membership = members[:, None] == np.arange(int(members.max()) + 1)
    return np.asarray(chances @ membership)
