"""Naive Bayes from debiased counts of joint responses (jNB): integer sums are all it needs.

A report is the truth with the known share ``lam`` and even noise with the rest, so counts are
debiased by a line. What is left is noise of a known size: each attribute has ``n_eff`` plain
records' worth of reports, and its shares are drawn towards even ones by as much as that demands.
The model is a function of the tally: it costs nothing beyond the reports (post-processing).

A naive Bayes classifier as it is published: log-odds of each class of each attribute.

It is a function of reports alone, so publishing it costs nothing beyond them (post-processing).
A device applies it to its own record, which then never leaves it.

Naive Bayes by the likelihood of whole tuples, which knows the noise.

Under the model, a joint response about attributes j with classes c_j and label y has probability

    lam P(y) prod_j P(c_j | y) + (1 - lam) / M,

lam being the share of truth beyond chance and M the number of symbols: both are known. Expectation
maximisation gives each report the probability that it was kept, so that a tuple which nobody is
likely to hold counts for little, and no share can become negative. What few reports leave open is
settled by ``Shrinkage``.

A function of the reports: it costs nothing beyond them (post-processing).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, blocks, check_finite, check_reals
from noisefloor.collection.encoding import Discretiser, JointResponse
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports, Tally
from noisefloor.tables import Categorical, Labels

STRENGTH = 8.0
"""Records of everybody that each label starts from. Set, with ``SHARED``, on synthetic data and
small public tables that are used in no comparison here; 4 to 16 did equally well there."""

SHARED = 0.2
"""Part of a class's count that goes to its neighbours, half to each."""

SPREADS = (0.2, 0.6, 1.5)
"""Variances of the places to which counts are spread, in classes, that reports may choose from."""

ENOUGH = 20.0
"""Plain records' worth of an attribute from which on reports can choose how far to spread."""

_MOST_STEP, _MOST_SPREAD = 0.5, 100.0
"""Of a step to the neighbours, and of all steps together."""

_EVEN = 0.5
"""Records, even over the classes, that everybody's shares start from."""


@dataclass(frozen=True, slots=True, eq=False)
class Shrinkage:
    """How counts of classes become shares.

    Attributes:
        classes: Of each attribute; those of the first attribute come first.
        strength: Records of everybody that each label starts from, above 0.
        shared: How far counts spread over neighbouring classes, as a variance in classes: below
            0.5 the part that goes to the two neighbours, above it in several steps. None: as far
            as the reports say where they can, and ``SHARED`` where not.
    """

    classes: Discretiser
    strength: float = STRENGTH
    shared: float | None = None

    def __post_init__(self) -> None:
        if check_finite(self.strength, "strength") <= 0:
            raise BadParameter("strength", self.strength, "> 0")
        if not 0 <= check_finite(self.spread, "shared") < _MOST_SPREAD:
            raise BadParameter("shared", self.shared, f"in [0, {_MOST_SPREAD})")

    @property
    def spread(self) -> float:
        """How far counts spread, where reports do not choose it."""
        return SHARED if self.shared is None else self.shared

    def even(self, labels: int = 2) -> Floats:
        """Return even shares, a row for each class and a column for each label."""
        sizes = np.repeat(self.classes.sizes, self.classes.sizes)
        return np.repeat(1 / sizes[:, None], labels, axis=1)

    def shares(self, counts: Floats, labels: Floats) -> Floats:
        """Return each label's shares of the classes of each attribute.

        Args:
            counts: A row for each class and a column for each label, not negative.
            labels: The labels' shares.
        """
        below, above = self._neighbours()
        steps = max(1, math.ceil(self.spread / _MOST_STEP))
        part, smooth = self.spread / steps, counts
        for _ in range(steps):
            smooth = (1 - part) * smooth + part / 2 * (smooth[below] + smooth[above])
        everybody = smooth.sum(axis=1, keepdims=True) + _EVEN * self.even(1)
        drawn = smooth + self.strength * labels * everybody / self._totals(everybody)
        return np.asarray(drawn / self._totals(drawn))

    @property
    def _starts(self) -> NDArray[np.int64]:
        sizes = np.array(self.classes.sizes)
        return np.asarray(np.cumsum(sizes) - sizes)

    def _totals(self, counts: Floats) -> Floats:
        """Return each attribute's total, repeated for each of its classes."""
        totals = np.add.reduceat(counts, self._starts, axis=0)
        return np.repeat(totals, self.classes.sizes, axis=0)

    def _neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the classes below and above each, which for categories are the class itself."""
        sizes, starts = np.array(self.classes.sizes), self._starts
        attributes = self.classes.schema.attributes
        steps = np.repeat([not isinstance(one, Categorical) for one in attributes], sizes)
        places = np.arange(sizes.sum())
        first, last = np.repeat(starts, sizes), np.repeat(starts + sizes - 1, sizes)
        return np.maximum(places - steps, first), np.minimum(places + steps, last)


@dataclass(frozen=True, slots=True, eq=False)
class NaiveBayes:
    """What each attribute says for a label, added up.

    Attributes:
        classes: Of each attribute.
        odds: ln P(class | label) - ln P(class | first label), those of the first attribute first:
            a number for each class, or, where there are more than two labels, a row with a
            column for each label but the first.
        prior: ln P(label) - ln P(first label), a number or one for each label but the first.
    """

    classes: Discretiser
    odds: Floats
    prior: float | Floats

    def __post_init__(self) -> None:
        shape = (sum(self.classes.sizes), *np.shape(self.prior))
        if self.odds.shape != shape or not np.isfinite(self.odds).all():
            raise BadParameter("odds", "<odds>", "one finite number for each class and label")
        if not np.isfinite(self.prior).all():
            raise BadParameter("prior", "<prior>", "to be finite")

    def scores(self, values: Floats) -> Floats:
        """Return the log-odds of each label but the first for records in [-1, 1].

        Between the centres of two classes of a range the odds run straight; categories have
        those of their class. With two labels there is a number a record, else a row.
        """
        numbers = check_reals(values, -1.0, 1.0, width=len(self.classes.schema))
        scores = np.tile(np.asarray(self.prior, dtype=np.float64), (len(numbers), 1))
        start, every = 0, self.odds.reshape(len(self.odds), -1)
        for column, size in enumerate(self.classes.sizes):
            odds = every[start : start + size]
            if isinstance(self.classes.schema.attributes[column], Categorical):
                codes = self.classes.codes(numbers[:, column : column + 1], [column])
                scores += odds[codes[:, 0]]
            else:
                centres = self.classes.centres(column)
                for label, own in enumerate(odds.T):
                    scores[:, label] += np.interp(numbers[:, column], centres, own)
            start += size
        return scores if np.ndim(self.prior) else scores[:, 0]

    def predict(self, values: Floats) -> Labels:
        """Return the likeliest label of each record; of two, whether it is the positive one."""
        scores = self.scores(values)
        if not np.ndim(self.prior):
            return np.asarray(scores > 0)
        first = np.zeros((len(scores), 1))
        return np.asarray(np.hstack([first, scores]).argmax(axis=1), dtype=np.uint8)


def check_class_sizes(classes: Discretiser, sizes: tuple[int, ...]) -> None:
    """Refuse a response that is not one about these classes."""
    if classes.sizes != sizes:
        raise BadParameter("classes", "<classes>", "of the sizes that the response has")


EVEN_RECORDS = 1.0
"""Plain records that each attribute is taken to have had before, even over its classes."""

_LEAST_SHARE = 0.05
"""Of a label: noise may put it outside [0, 1], and a prior of certainty helps nobody."""


def fit_counts(
    response: JointResponse, tally: Tally, classes: Discretiser, strength: float = EVEN_RECORDS
) -> NaiveBayes:
    """Fit a classifier to the tally of labelled joint responses.

    Args:
        response: What the reports were made by.
        tally: Theirs.
        classes: Of the attributes.
        strength: Plain records' worth of even shares that each attribute starts from.
    """
    check_class_sizes(classes, response.sizes)
    if not response.labelled:
        raise BadParameter("response", "<response>", "to have a label")
    n = max(1, int(np.sum(tally)) // response.chosen)
    shares = np.maximum(response.estimate(tally, n).value, 0).reshape(-1, response.labels)
    sizes = np.array(response.sizes)
    effective = np.repeat(effective_counts(response, tally), sizes)[:, None]
    labels = label_shares(response, tally)
    counts = shares * effective + strength * labels / np.repeat(sizes, sizes)[:, None]
    return model_from_counts(classes, counts, labels)


def effective_counts(response: JointResponse, tally: Tally) -> Floats:
    """Return the plain records' worth of reports about each attribute: their sum of lam^2."""
    counts = np.asarray(tally, dtype=np.float64).reshape(len(response.spaces), response.cells)
    drawn = np.add.reduceat(counts, np.array(response.starts), axis=1)
    return np.asarray(response.kept_shares**2 @ drawn)


def label_shares(response: JointResponse, tally: Tally) -> Floats:
    """Return the shares of the labels, debiased and within bounds."""
    labels = response.labels
    counts = np.asarray(tally, dtype=np.float64).reshape(len(response.spaces), -1, labels)
    counts = counts.sum(axis=1)
    reported, kept = counts.sum(axis=1), response.kept_shares
    weight = float(reported @ kept**2)
    if weight == 0:
        return np.full(labels, 1 / labels)
    shares = kept @ (counts - (reported * (1 - kept))[:, None] / labels) / weight
    least = min(_LEAST_SHARE, 1 / (2 * labels))
    bounded = np.clip(shares, least, 1 - least)
    return np.asarray(bounded / bounded.sum())


def model_from_counts(classes: Discretiser, counts: Floats, labels: Floats) -> NaiveBayes:
    """Make the model of positive weights, a row for each class and a column for each label."""
    starts = np.cumsum([0, *classes.sizes[:-1]])
    totals = np.repeat(np.add.reduceat(counts, starts, axis=0), classes.sizes, axis=0)
    logs = np.log(counts / totals)
    if len(labels) == 2:
        return NaiveBayes(classes, logs[:, 1] - logs[:, 0], math.log(labels[1] / labels[0]))
    return NaiveBayes(classes, logs[:, 1:] - logs[:, :1], np.log(labels[1:] / labels[0]))


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
    check_class_sizes(shrinkage.classes, response.sizes)
    if not response.labelled:
        raise BadParameter("response", "<response>", "to have a label")
    checked = response.check_reports(reports)
    # Sorted, so that a third of the reports is the same however they arrived.
    fit = _Fit.of(response, np.asarray(checked)[np.lexsort(np.asarray(checked).T)])
    known = len(checked) * response.chosen * float(np.min(response.kept_shares)) ** 2
    if shrinkage.shared is None and known >= ENOUGH * len(response.sizes):
        shrinkage = _chosen_spread(fit, shrinkage, response.labels)
    return model_from_counts(shrinkage.classes, *_maximised(fit, shrinkage, response.labels))


def _chosen_spread(fit: "_Fit", shrinkage: Shrinkage, count: int) -> Shrinkage:
    """Return the spread under which models of two thirds of the reports say most of the rest."""
    part = np.arange(len(fit.labels)) % _THIRDS
    tried = [replace(shrinkage, shared=spread) for spread in SPREADS]

    def likelihood(one: Shrinkage) -> float:
        return math.fsum(
            fit.some(part == left).likelihood(*_maximised(fit.some(part != left), one, count))
            for left in range(_THIRDS)
        )

    return max(tried, key=likelihood)


_THIRDS = 3


def _maximised(fit: "_Fit", shrinkage: Shrinkage, count: int) -> tuple[Floats, Floats]:
    """Return each label's shares of the classes, and the labels' shares."""
    shares, labels = shrinkage.even(count), np.full(count, 1 / count)
    for _ in range(_MOST_ROUNDS):
        seen, label_weights = fit.expected(shares, labels)
        labels = (label_weights + 1) / (label_weights.sum() + count)
        after = shrinkage.shares(seen, labels)
        moved, shares = float(np.abs(after - shares).max()), after
        if moved < _CLOSE:
            break
    return shares, labels


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

    def some(self, rows: NDArray[np.bool_]) -> "_Fit":
        """Return some of the reports."""
        return _Fit(self.cells[rows], self.labels[rows], self.truth[rows])

    def likelihood(self, shares: Floats, labels: Floats) -> float:
        """Return the logarithm of how likely the reports are, less that of even noise alone."""
        logs, prior = np.log(shares).reshape(-1), np.log(labels)
        odds = logs[self.cells].sum(axis=1) + prior[self.labels] + self.truth
        return math.fsum(np.logaddexp(0.0, odds).tolist())

    def expected(self, shares: Floats, labels: Floats) -> tuple[Floats, Floats]:
        """Return how many kept reports each (class, label) and each label is expected to have."""
        logs, prior = np.log(shares).reshape(-1), np.log(labels)
        seen, label_weights = np.zeros(logs.size), np.zeros(len(labels))
        width = self.cells.shape[1]
        for rows in blocks(len(self.labels), width):
            cells, reported = self.cells[rows], self.labels[rows]
            odds = logs[cells].sum(axis=1) + prior[reported] + self.truth[rows]
            kept = 1 / (1 + np.exp(-np.maximum(odds, _HOPELESS)))
            seen += np.bincount(cells.reshape(-1), np.repeat(kept, width), logs.size)
            label_weights += np.bincount(reported, kept, len(labels))
        return seen.reshape(-1, len(labels)), label_weights
