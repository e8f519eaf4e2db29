"""What several reports of one user say together, for any mechanism that tells its exact law."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from noisefloor.adversary.likelihood import Guess, check_prior
from noisefloor.checks import Floats, blocks
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.mechanisms.base import Reports

Prior = Sequence[float] | Floats | None
"""Shares of the candidates; without them all are alike."""

_FEW = 1 << 16
"""Symbols below this are looked up as they are."""


class Law(Protocol):
    """Anything whose reports have a known law: all that an attack needs of a mechanism."""

    def log_likelihood(self, reports: Reports, value: Any) -> Floats:
        """Return the exact log-probability of each report, given the value."""
        ...


def log_likelihoods(
    law: Law, reports: Reports, candidates: Sequence[Any] | Reports, *, is_changing: bool = False
) -> Floats:
    """Return ln P(all reports of a user | candidate), one row per user.

    Args:
        law: What the reports follow.
        reports: One row per user, one column per period; a report may have axes of its own.
        candidates: The values that a user may hold.
        is_changing: Whether each candidate is a sequence, with one value for each period.
    """
    if reports.ndim < 2:
        raise BadParameter("reports", reports.shape, "to have a row per user and a period each")
    logs = np.zeros((len(reports), len(candidates)))
    if reports.ndim == 2 and not is_changing:
        return _from_table(law, reports, candidates, logs)
    for place, value in enumerate(candidates):
        for period in range(reports.shape[1]):
            held = value[period] if is_changing else value
            logs[:, place] += law.log_likelihood(reports[:, period], held)
    return logs


def _from_table(
    law: Law, reports: Reports, candidates: Sequence[Any] | Reports, logs: Floats
) -> Floats:
    """Ask for the likelihood of each kind of report once, and look all others up."""
    symbols, codes = _kinds_of(reports)
    table = np.stack([law.log_likelihood(symbols, value) for value in candidates], axis=1)
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
    law: Law,
    reports: Reports,
    candidates: Sequence[Any] | Reports,
    prior: Prior = None,
    *,
    is_changing: bool = False,
) -> Floats:
    """Return the posterior of each candidate, one row per user.

    Sees:      all reports of a user, in a row: one per period.
    Knows:     the law, the candidates and their prior.
    Guesses:   nothing yet.
    Reference: Bayes.
    """
    shares = check_prior(len(candidates), prior)
    logs = log_likelihoods(law, reports, candidates, is_changing=is_changing)
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
