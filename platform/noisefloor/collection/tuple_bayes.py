"""Naive Bayes by the likelihood of whole tuples, which knows the noise.

Under the model, a joint response about attributes j with classes c_j and label y has probability

    lam P(y) prod_j P(c_j | y) + (1 - lam) / M,

lam being the share of truth beyond chance and M the number of symbols: both are known. Expectation
maximisation gives each report the probability that it was kept, so that a tuple which nobody is
likely to hold counts for little, and no share can become negative. What few reports leave open is
settled by ``Shrinkage``.

A function of the reports: it costs nothing beyond them (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks
from noisefloor.collection.bayes_model import NaiveBayes, check_sizes
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.naive_bayes import model_of
from noisefloor.collection.shrinkage import Shrinkage
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Reports

_HOPELESS = -700.0
"""Log-odds below which a report is a lie; the exponential would overflow."""

_MOST_ROUNDS = 60
_CLOSE = 1e-4


def fit_tuples(response: JointResponse, reports: Reports, shrinkage: Shrinkage) -> NaiveBayes:
    """Fit a classifier to labelled joint responses.

    Args:
        response: What the reports were made by.
        reports: Rows of it.
        shrinkage: How counts of the classes become shares.
    """
    check_sizes(shrinkage.classes, response.sizes)
    if not response.labelled:
        raise BadParameter("response", "<response>", "to have a label")
    fit = _Fit.of(response, response.check_reports(reports))
    shares, labels = shrinkage.even(), np.array([0.5, 0.5])
    for _ in range(_MOST_ROUNDS):
        seen, held = fit.expected(shares, labels)
        labels = (held + 1) / (held.sum() + 2)
        after = shrinkage.shares(seen, labels)
        moved, shares = float(np.abs(after - shares).max()), after
        if moved < _CLOSE:
            break
    return model_of(shrinkage.classes, shares, labels)


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """What stays the same over the rounds.

    Attributes:
        cells: Of each report, its (attribute, class, label), k of them.
        labels: Of each report.
        truth: ln(lam / ((1 - lam) / M)) of each report.
    """

    cells: NDArray[np.int64]
    labels: NDArray[np.int64]
    truth: Floats

    @classmethod
    def of(cls, response: JointResponse, reports: Reports) -> "_Fit":
        """Read what is needed from reports that were checked."""
        kept, spaces = response.kept_shares, np.array(response.spaces, dtype=np.float64)
        with np.errstate(divide="ignore"):
            truth = np.log(kept) - np.log((1 - kept) / spaces)
        labels = np.asarray(reports[:, -1], dtype=np.int64)
        return cls(response.cells_of(reports), labels, truth[response.groups_of(reports)])

    def expected(self, shares: Floats, labels: Floats) -> tuple[Floats, Floats]:
        """Return how many kept reports each (class, label) and each label is expected to have."""
        logs, prior = np.log(shares).reshape(-1), np.log(labels)
        seen, held = np.zeros(logs.size), np.zeros(2)
        width = self.cells.shape[1]
        for rows in blocks(len(self.labels), width):
            cells, told = self.cells[rows], self.labels[rows]
            odds = logs[cells].sum(axis=1) + prior[told] + self.truth[rows]
            kept = 1 / (1 + np.exp(-np.maximum(odds, _HOPELESS)))
            seen += np.bincount(cells.reshape(-1), np.repeat(kept, width), logs.size)
            held += np.bincount(told, kept, 2)
        return seen.reshape(-1, 2), held
