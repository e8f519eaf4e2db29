"""Exact success of Bayes' guess from several independent observations of one distribution.

A distribution is a table: one row per candidate, one column per output. Outputs with the same
ratios between candidates say the same and are merged; then how often each came is all that counts.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.audit.bayes import Prior, ReportDistribution, check_prior
from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import FiniteMechanism, Reports

_MOST_CELLS, _MOST_SUMMED = 1 << 22, 1 << 26
"""Outcomes times what is kept of each, at most: of a table, and of a sum that keeps none."""

_SAME = 12
"""Digits to which ratios agree that are the same but for rounding."""


def likelihood_table(
    distribution: ReportDistribution, candidates: Sequence[Any] | Reports
) -> Floats:
    """Return P(output | candidate) for every output; refused if they cannot be listed."""
    if not isinstance(distribution, FiniteMechanism):
        raise BadParameter("law", type(distribution).__name__, "to list its outputs")
    outputs = distribution.outputs()
    return np.exp([distribution.log_likelihood(outputs, value) for value in candidates])


def merged(table: Floats) -> Floats:
    """Return the table with outputs merged that say the same of the candidates."""
    possible = table[:, table.sum(axis=0) > 0]
    ratios = np.round(possible / possible.sum(axis=0), _SAME)
    kinds, codes = np.unique(ratios, axis=1, return_inverse=True)
    result = np.zeros(kinds.shape)
    np.add.at(result.T, codes.reshape(-1), possible.T)
    return result


def compositions(observations: int, kinds: int) -> NDArray[np.int64]:
    """Return all vectors of counts of ``total`` observations, one per row."""
    columns: list[NDArray[np.int64]] = []
    left = np.array([observations])
    for _ in range(kinds - 1):
        copies = left + 1
        owner = np.repeat(np.arange(left.size), copies)
        count = np.arange(owner.size) - np.repeat(np.cumsum(copies) - copies, copies)
        columns = [*(column[owner] for column in columns), count]
        left = left[owner] - count
    return np.stack([*columns, left], axis=1)


def counts_distribution(table: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return P(counts | candidate) for rows of counts of equal total: multinomial."""
    from scipy.special import gammaln, xlogy  # lazy: scipy is slow to import

    logs = np.zeros((len(table), len(counts)))
    logs += gammaln(counts[:1].sum() + 1)
    for count, column in zip(counts.T, table.T, strict=True):
        logs += xlogy(count, column[:, None]) - gammaln(count + 1)
    return np.asarray(np.exp(logs))


def is_listable(observations: int, kinds: int, candidates: int, most: int = _MOST_CELLS) -> bool:
    """Whether the compositions are few enough to sum over."""
    return math.comb(observations + kinds - 1, kinds - 1) * (candidates + kinds) <= most


def counts_table(table: Floats, observations: int) -> Floats | None:
    """Return P(counts | candidate) over all counts of n observations, if they are few."""
    check_count(observations, "observations")
    table = merged(table)
    candidates, kinds = table.shape
    if observations == 1:
        return table
    if not is_listable(observations, kinds, candidates):
        return None
    return counts_distribution(table, compositions(observations, kinds))


def success_of(
    table: Floats, prior: Prior = None, groups: Sequence[int] | Reports | None = None
) -> float:
    """Return how often the most probable candidate, or group of them, is the true one.

    Formula: the sum over outputs a of max_j pi_j P(a | j).
    """
    joint = check_prior(len(table), prior)[:, None] * table
    if groups is not None:
        members = np.asarray(groups)
        joint = (members == np.arange(int(members.max()) + 1)[:, None]) @ joint
    return float(joint.max(axis=0).sum())


def exact_success(
    table: Floats,
    observations: int,
    prior: Prior = None,
    groups: Sequence[int] | Reports | None = None,
) -> float | None:
    """Return the success from n observations, or nothing if there is too much to sum.

    Outputs are split in two halves: counts of all outputs are pairs of counts of either half, and
    their chance is a product, so that no table of all of them is made.
    """
    check_count(observations, "observations")
    table = merged(table)
    candidates, kinds = table.shape
    if observations == 1 or kinds == 1:
        return success_of(table, prior, groups)
    if not is_listable(observations, kinds, candidates, _MOST_SUMMED):
        return None
    halves = [
        [
            counts_distribution(half, compositions(n, half.shape[1]))
            for n in range(observations + 1)
        ]
        for half in (table[:, : kinds // 2], table[:, kinds // 2 :])
    ]
    shares = check_prior(candidates, prior)[:, None]
    members = np.arange(candidates) if groups is None else np.asarray(groups)
    total = 0.0
    for n, first in enumerate(halves[0]):
        second, best = shares * halves[1][observations - n], np.zeros(())
        for group in range(int(members.max()) + 1):
            own = members == group
            best = np.maximum(best, first[own].T @ second[own])
        total += math.comb(observations, n) * float(best.sum())
    return total


def success_from(
    distribution: ReportDistribution,
    candidates: Sequence[Any] | Reports,
    observations: int,
    prior: Prior = None,
    groups: Sequence[int] | Reports | None = None,
) -> float | None:
    """Return the success from n reports, or nothing if they cannot be summed over."""
    try:
        table = likelihood_table(distribution, candidates)
    except BadParameter:
        return None
    return exact_success(table, observations, prior, groups)
