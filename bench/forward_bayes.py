"""Naive Bayes that knows the noise of each value: forward correction of per-attribute reports.

Where every value and the label were answered each on its own (the unified response), a report
(c', y') has probability

    sum_y P(y) P(y' | y) prod_j [lam_j P_j(c'_j | y) + (1 - lam_j) / L_j],

lam_j being the share of truth beyond chance of value j. That is the known response matrix put
behind the model; expectation maximisation fits the model through it. A protected query is read
through the same matrix: what it says is worth no more than its noise leaves. A function of the
reports (post-processing).
"""

import math
from dataclasses import dataclass

import numpy as np

from noisefloor.checks import Floats, check_epsilon, check_integers
from noisefloor.collection.encoding import Codes, Discretiser, kept_share, response_over
from noisefloor.collection.learners.naive_bayes import NaiveBayes, Shrinkage, model_from_counts
from noisefloor.errors import OutOfDomain
from noisefloor.tables import Labels

_MOST_ROUNDS = 60
_CLOSE = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class ForwardBayes:
    """The fitted shares, to be published and to read protected queries with.

    Attributes:
        classes: Of the attributes that were told of.
        shares: P(class | label), a row for each class and a column for each label.
        labels: P(label), negative and positive.
    """

    classes: Discretiser
    shares: Floats
    labels: Floats

    def published(self) -> NaiveBayes:
        """Return the classifier for records that stay on their device."""
        return model_from_counts(self.classes, self.shares, self.labels)

    def predict_codes(self, codes: Codes, epsilon: float) -> Labels:
        """Return the labels of protected queries.

        Args:
            codes: Answers, a column for each attribute.
            epsilon: Of each single answer.
        """
        cells = _cells(self.classes, codes)
        seen = _through(self.classes, self.shares, epsilon)
        logs = np.log(seen)[cells].sum(axis=1) + np.log(self.labels)
        return np.asarray(logs[:, 1] > logs[:, 0])


def fit_forward(
    codes: Codes, labels: Labels, epsilon: float, shrinkage: Shrinkage
) -> ForwardBayes:
    """Fit the model to answers that were given one by one.

    Args:
        codes: Answers, a column for each attribute.
        labels: Answers about the label.
        epsilon: Of each single answer, that about the label included.
        shrinkage: How counts of the classes become shares.
    """
    classes, cells = shrinkage.classes, _cells(shrinkage.classes, codes)
    kept = np.repeat(_kept_shares(classes, epsilon), classes.sizes)[:, None]
    right = 1 / (1 + math.exp(-check_epsilon(epsilon)))
    said = np.where(np.asarray(labels)[:, None] == [False, True], right, 1 - right)
    shares, prior = shrinkage.even(), np.array([0.5, 0.5])
    for _ in range(_MOST_ROUNDS):
        seen = _through(classes, shares, epsilon)
        logs = np.log(seen)[cells].sum(axis=1) + np.log(said * prior)
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        truth = (kept * shares / seen)[cells] * posterior[:, None, :]
        prior = (posterior.sum(axis=0) + 1) / (len(posterior) + 2)
        after = shrinkage.shares(_counts(cells, truth, len(shares)), prior)
        moved, shares = float(np.abs(after - shares).max()), after
        if moved < _CLOSE:
            break
    return ForwardBayes(classes, shares, prior)


def _through(classes: Discretiser, shares: Floats, epsilon: float) -> Floats:
    """Return P(answer | label): the shares behind the response."""
    kept = np.repeat(_kept_shares(classes, epsilon), classes.sizes)[:, None]
    even = 1 / np.repeat(classes.sizes, classes.sizes)[:, None]
    return np.asarray(kept * shares + (1 - kept) * even)


def _kept_shares(classes: Discretiser, epsilon: float) -> Floats:
    return np.array([kept_share(response_over(size, epsilon)) for size in classes.sizes])


def _cells(classes: Discretiser, codes: Codes) -> Codes:
    """Return each answer's place among all classes."""
    sizes = np.array(classes.sizes)
    reported = check_integers(codes, 0, int(sizes.max()) - 1, width=len(sizes))
    if len(reported) and (reported.max(axis=0) >= sizes).any():
        raise OutOfDomain("Expected classes below the sizes of their attributes.")
    return np.asarray(reported + (np.cumsum(sizes) - sizes))


def _counts(cells: Codes, weights: Floats, count: int) -> Floats:
    """Return the sums of both labels' weights in each cell."""
    flat = cells.reshape(-1)
    sums = [np.bincount(flat, weights[..., label].reshape(-1), count) for label in (0, 1)]
    return np.stack(sums, axis=1)
