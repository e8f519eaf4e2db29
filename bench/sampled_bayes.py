"""Naive Bayes from answers about attribute and label, in the four ways to spend epsilon.

An owner answers for every attribute (split) or for one that it draws (sampled); the answer is one
symbol for class and label (joint) or two answers (separate). With d attributes and C labels:

    split, separate     d + 1 answers, epsilon / (d + 1) each
    split, joint        d answers over L C symbols, epsilon / d each
    sampled, separate   2 answers, epsilon / 2 each
    sampled, joint      1 answer over L C symbols, epsilon

The joint symbol is that of Yilmaz, Al-Rubaie, Chang 2019, "Locally differentially private naive
Bayes classification", arXiv 1905.01039; splitting against sampling: Wang et al. 2019, arXiv
1907.00782. Answers are k-ary randomised responses, or optimised unary encodings of the symbol.
Counts are debiased and smoothed as those of ``fit_counts``, and models read a value between two
classes' centres as ours do: what differs is how epsilon is spent, and nothing else.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import sequential
from noisefloor.checks import Floats
from noisefloor.collection.encoding import Discretiser, kept_share, response_over
from noisefloor.collection.encoding.discretisation import Codes
from noisefloor.collection.encoding.joint_response import Responders
from noisefloor.collection.learners.naive_bayes import NaiveBayes, model_from_counts
from noisefloor.distributions import ONE
from noisefloor.mechanisms import UnaryEncoding
from noisefloor.privacy import Guarantee
from noisefloor.randomness import SeededSource

Answer = Literal["joint", "separate", "unary"]

_STRENGTH = 1.0
"""Plain records that each attribute starts from, even over its classes; as in ``fit_counts``."""

_LEAST_SHARE = 0.05

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AttributeSurvey:
    """How owners answer about attributes and label.

    Guarantee:  pure DP, the sum over the answers of one owner; which attribute is drawn does not
                depend on the record.
    Neighbours: item = user: any record to any other; one owner holds one record (local model).
    Domain:     classes below the sizes of their attributes, labels below ``labels``.
    Reference:  Yilmaz et al. 2019, arXiv 1905.01039; Wang et al. 2017, arXiv 1705.04421 (OUE).

    Attributes:
        sizes: Classes of each attribute.
        labels: How many labels there are.
        epsilon: Of all answers of one owner.
        answer: One symbol for class and label, two answers, or the symbol by unary encoding.
        sampled: Whether an owner draws one attribute; otherwise it answers for all.
    """

    sizes: tuple[int, ...]
    labels: int
    epsilon: float
    answer: Answer = "joint"
    sampled: bool = True

    @property
    def answers(self) -> int:
        """How many answers one owner gives."""
        return (1 if self.sampled else len(self.sizes)) + (self.answer == "separate")

    @property
    def each(self) -> float:
        """Epsilon of one answer."""
        return self.epsilon / self.answers

    def guarantee(self) -> Guarantee:
        """Return the sum over an owner's answers, at the sizes that cost most."""
        spaces = set(self.sizes)
        if self.answer == "separate":
            values = max((response_over(one, self.each).guarantee() for one in spaces), key=_cost)
            label = response_over(self.labels, self.each).guarantee()
            return sequential([*([values] * (self.answers - 1)), label])
        mechanisms = [
            UnaryEncoding.optimised(one * self.labels, self.each)
            if self.answer == "unary"
            else response_over(one * self.labels, self.each)
            for one in spaces
        ]
        return sequential([max((one.guarantee() for one in mechanisms), key=_cost)] * self.answers)

    def shares(self, codes: Codes, labels: Integers, source: SeededSource) -> "JointShares":
        """Collect everybody's answers, and return the debiased shares of class and label."""
        n, d = codes.shape
        columns = np.tile(np.arange(d), n)
        rows = np.repeat(np.arange(n), d)
        if self.sampled:
            columns = source.stage("attribute").below(d, n).astype(np.int64)
            rows = np.arange(n)
        values = codes[rows, columns].astype(np.int64)
        if self.answer == "separate":
            return self._separate(columns, rows, values, labels, source)
        symbols = values * self.labels + labels[rows]
        if self.answer == "unary":
            return self._unary(columns, symbols, source)
        spaces = np.array(self.sizes)[columns] * self.labels
        said = Responders(self.each, source)(symbols, spaces)
        counts, drawn = self._counts(columns, said)
        kept = self._kept(self.labels)
        even = 1 / np.repeat(self._spaces, self.sizes)[:, None]
        reported = np.repeat(kept, self.sizes)[:, None]
        shares = (_over(counts, drawn) - (1 - reported) * even) / reported
        return JointShares(self, shares, self._totals(drawn) * kept**2)

    def _separate(
        self,
        columns: Integers,
        rows: Integers,
        values: Integers,
        labels: Integers,
        source: SeededSource,
    ) -> "JointShares":
        """Two answers: the table of both is taken back through both responses."""
        spaces = np.array(self.sizes)[columns]
        said = Responders(self.each, source.child("values"))(values, spaces)
        label = response_over(self.labels, self.each)
        reported = label.randomise(labels, source.child("label")).astype(np.int64)
        counts, drawn = self._counts(columns, said * self.labels + reported[rows])
        kept, right = self._kept(1), kept_share(label)
        shares = _over(counts, drawn)
        shares = (shares - (1 - right) / self.labels * shares.sum(axis=1, keepdims=True)) / right
        each = np.repeat(kept, self.sizes)[:, None]
        totals = np.add.reduceat(shares, self._starts, axis=0)
        even = np.repeat(totals / np.array(self.sizes)[:, None], self.sizes, axis=0)
        shares = (shares - (1 - each) * even) / each
        return JointShares(self, shares, self._totals(drawn) * (kept * right) ** 2)

    def _unary(self, columns: Integers, symbols: Integers, source: SeededSource) -> "JointShares":
        """Unary encodings of the joint symbol, attribute by attribute."""
        shares, effective = [], []
        for column, size in enumerate(self.sizes):
            space = size * self.labels
            encoding = UnaryEncoding.optimised(space, self.each)
            some = symbols[columns == column]
            reports = encoding.randomise_values(some, source.child("unary", column))
            stay, rise = encoding.stay / ONE, encoding.rise / ONE
            said = reports.sum(axis=0) / max(1, len(some))
            shares.append(((said - rise) / (stay - rise)).reshape(size, self.labels))
            # Records whose own spread, at even shares, is that of the debiased answers.
            spread = (1 - 1 / space) / space * (stay - rise) ** 2 / (rise * (1 - rise))
            effective.append(len(some) * spread)
        return JointShares(self, np.concatenate(shares), np.array(effective))

    def _counts(self, columns: Integers, symbols: Integers) -> tuple[Floats, Floats]:
        """Return how often each (class, label) was said, and how many spoke of each class."""
        cells = self._starts[columns] * self.labels + symbols
        counts = np.bincount(cells, minlength=sum(self.sizes) * self.labels)
        drawn = np.repeat(np.bincount(columns, minlength=len(self.sizes)), self.sizes)
        return counts.reshape(-1, self.labels).astype(np.float64), drawn.astype(np.float64)

    def _kept(self, labels: int) -> Floats:
        return np.array([kept_share(response_over(one * labels, self.each)) for one in self.sizes])

    def _totals(self, drawn: Floats) -> Floats:
        return drawn[self._starts]

    @property
    def _spaces(self) -> Integers:
        return np.array(self.sizes) * self.labels

    @property
    def _starts(self) -> Integers:
        return np.cumsum([0, *self.sizes[:-1]])


@dataclass(frozen=True, slots=True, eq=False)
class JointShares:
    """Debiased shares, and what they are worth.

    Attributes:
        survey: That they come from.
        shares: Of (class, label) within each attribute; a row for each class.
        effective: Plain records' worth of answers about each attribute.
    """

    survey: AttributeSurvey
    shares: Floats
    effective: Floats

    def fit(self, classes: Discretiser) -> NaiveBayes:
        """Fit a classifier: negative shares become 0, and few answers are drawn to even ones."""
        sizes = np.array(self.survey.sizes)
        weight = np.repeat(self.effective, sizes)[:, None]
        labels = (self.shares * weight).sum(axis=0)
        labels = np.clip(labels / max(float(labels.sum()), 1e-300), _LEAST_SHARE, 1 - _LEAST_SHARE)
        labels = labels / labels.sum()
        even = np.repeat(sizes, sizes)[:, None]
        counts = np.maximum(self.shares, 0) * weight + _STRENGTH * labels / even
        return model_from_counts(classes, counts, labels)


def _cost(one: Guarantee) -> float:
    return one.epsilon


def _over(counts: Floats, drawn: Floats) -> Floats:
    """Return shares; where nobody answered they are 0, and weigh nothing."""
    return np.asarray(counts / np.maximum(drawn, 1)[:, None])
