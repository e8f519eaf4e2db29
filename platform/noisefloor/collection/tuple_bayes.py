"""Naive Bayes by the likelihood of whole tuples, which knows the noise.

Under the model, a joint response about attributes j with classes c_j and label y has probability

    lam P(y) prod_j P(c_j | y) + (1 - lam) / M,

lam being the share of truth beyond chance and M the number of symbols: both are known. Expectation
maximisation gives each report the probability that it was kept, so that a tuple which nobody is
likely to hold counts for little, and no share can become negative. What few reports leave open is
settled by a prior: each label's classes are drawn towards those of everybody by ``strength``
records, and neighbouring classes of a range share a part of their counts, since a density does not
jump. Both figures were set once, on other data (see ``STRENGTH``).

A function of the reports: it costs nothing beyond them (post-processing).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import blocks
from noisefloor.collection.bayes_model import NaiveBayes, check_sizes
from noisefloor.collection.classes import Classes
from noisefloor.collection.joint import JointResponse
from noisefloor.collection.naive_bayes import model_of
from noisefloor.collection.schema import Categorical
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Floats, Reports

STRENGTH = 8.0
"""Records of everybody that each label starts from. Set, with ``SHARED``, on synthetic data and
small public tables that are used in no comparison here; 4 to 16 did equally well there."""

SHARED = 0.2
"""Part of a class's count that goes to its neighbours, half to each."""

_EVEN = 0.5
"""Records, even over the classes, that everybody's shares start from."""

_HOPELESS = -700.0
"""Log-odds below which a report is a lie; the exponential would overflow."""

_MOST_ROUNDS = 60
_CLOSE = 1e-4


def fit_tuples(
    response: JointResponse,
    reports: Reports,
    classes: Classes,
    strength: float = STRENGTH,
    shared: float = SHARED,
) -> NaiveBayes:
    """Fit a classifier to labelled joint responses.

    Args:
        response: What the reports were made by.
        reports: Rows of it.
        classes: Of the attributes.
        strength: Records of everybody that each label starts from, above 0.
        shared: Part of a class's count that goes to its neighbours, in [0, 1).
    """
    check_sizes(classes, response.sizes)
    if not response.labelled:
        raise BadParameter("response", "<response>", "to have a label")
    if not strength > 0 or not 0 <= shared < 1:
        raise BadParameter("strength", (strength, shared), "above 0, and shared in [0, 1)")
    fit = _Fit.of(response, response.check_reports(reports), classes)
    counts = np.repeat(1 / np.repeat(classes.sizes, classes.sizes)[:, None], 2, axis=1)
    labels = np.array([0.5, 0.5])
    for _ in range(_MOST_ROUNDS):
        seen, held = fit.expected(counts, labels)
        labels = (held + 1) / (held.sum() + 2)
        after = fit.shares(seen, labels, strength, shared)
        moved, counts = float(np.abs(after - counts).max()), after
        if moved < _CLOSE:
            break
    return model_of(classes, counts, labels)


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """What stays the same over the rounds.

    Attributes:
        cells: Of each report, its (attribute, class, label), k of them.
        labels: Of each report.
        truth: ln(lam / ((1 - lam) / M)) of each report.
        below: For each class the one below it in the same range, or itself.
        above: The one above.
        starts: The first class of each attribute.
        sizes: Classes of each attribute.
    """

    cells: NDArray[np.int64]
    labels: NDArray[np.int64]
    truth: Floats
    below: NDArray[np.int64]
    above: NDArray[np.int64]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, response: JointResponse, reports: Reports, classes: Classes) -> "_Fit":
        """Read what is needed from reports that were checked."""
        kept, spaces = response.kept_shares, np.array(response.spaces, dtype=np.float64)
        with np.errstate(divide="ignore"):
            truth = np.log(kept) - np.log((1 - kept) / spaces)
        sizes = np.array(classes.sizes)
        starts = np.cumsum(sizes) - sizes
        below, above = _neighbours(classes, starts)
        labels = np.asarray(reports[:, -1], dtype=np.int64)
        told = truth[response.groups_of(reports)]
        return cls(response.cells_of(reports), labels, told, below, above, starts, sizes)

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

    def shares(self, seen: Floats, labels: Floats, strength: float, shared: float) -> Floats:
        """Return each label's shares of the classes, smoothed and drawn towards everybody's."""
        smooth = (1 - shared) * seen + shared / 2 * (seen[self.below] + seen[self.above])
        everybody = smooth.sum(axis=1, keepdims=True) + _EVEN / self._spread(self.sizes)
        counts = smooth + strength * labels * everybody / self._total(everybody)
        return np.asarray(counts / self._total(counts))

    def _total(self, counts: Floats) -> Floats:
        return self._spread(np.add.reduceat(counts, self.starts, axis=0))

    def _spread(self, figures: NDArray[np.generic]) -> Floats:
        """Repeat each attribute's figures for each of its classes, as rows."""
        return np.repeat(figures.reshape(len(self.sizes), -1), self.sizes, axis=0)


def _neighbours(
    classes: Classes, starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes below and above each, which for categories are the class itself."""
    places = np.arange(sum(classes.sizes))
    first = np.repeat(starts, classes.sizes)
    last = np.repeat(starts + np.array(classes.sizes) - 1, classes.sizes)
    fixed = [isinstance(one, Categorical) for one in classes.schema.attributes]
    step = np.where(np.repeat(fixed, classes.sizes), 0, 1)
    return np.maximum(places - step, first), np.minimum(places + step, last)
