"""Dimension reduction by classes: their products with the label as they are, or protected."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import sequential
from noisefloor.checks import Floats, blocks, check_count
from noisefloor.collection.collecting import selection
from noisefloor.collection.encoding import (
    Discretiser,
    PrintedDiscretiser,
    response_over,
    share_of,
)
from noisefloor.distributions import ONE
from noisefloor.mechanisms import BinaryResponse, KaryResponse, KarySampler
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import ScaledRecords
from noisefloor.wire import Kind

_USER = Neighbours.USER


@dataclass(frozen=True, slots=True)
class WeakSelection:
    """DR.WA: owners send the products of class and label, without noise.

    In [-1, 1] a product leaves two candidates, and the products of one owner share one label:
    with the marginals known, label and classes follow. The forms ``prod`` and ``cosine`` need the
    products alone; ``corr`` needs class and label apart, and bounds what could be had. Classes as
    printed are for reproductions.
    """

    count: int
    classes: Discretiser | PrintedDiscretiser
    form: selection.ScoreForm = "corr"
    name: str = "DR.WA"
    uses_data: bool = True

    def __post_init__(self) -> None:
        check_count(self.count, "count", most=len(self.classes.schema))
        selection.check_score_form(self.form)

    def kind(self, attributes: int) -> Kind:
        """Return the kind of products, or of classes and labels for ``corr``."""
        if self.form == "corr":
            return selection.selection_values_kind(
                attributes, self.count, max(self.classes.sizes), 2
            )
        most = max(len(self._products(column)) for column in range(len(self.classes.sizes)))
        return selection.selection_values_kind(attributes, self.count, most, 0)

    def select(self, records: ScaledRecords, source: Source) -> selection.AttributeSelection:
        """Return the attributes that go best with the label."""
        return self.choose(self.report(records, source), records.values.shape[1])

    def report(self, records: ScaledRecords, source: Source) -> selection.SelectionReports:
        """Return what was requested, as it is: products by their place among all of them."""
        requested = selection.draw_attributes(records, self.count, source)
        codes = self.classes.codes(records.values)
        if self.form == "corr":
            reported = np.take_along_axis(codes, requested, axis=1).astype(np.int64)
            return selection.SelectionReports(requested, reported, records.labels.astype(np.int64))
        places = np.empty(codes.shape, dtype=np.int64)
        for column, own_codes in enumerate(codes.T):
            sent = self._centres(column)[own_codes] * np.where(records.labels, 1.0, -1.0)
            places[:, column] = np.searchsorted(self._products(column), sent)
        return selection.SelectionReports(requested, np.take_along_axis(places, requested, axis=1))

    def choose(
        self, answers: selection.SelectionReports, attributes: int
    ) -> selection.AttributeSelection:
        """Score what was sent."""
        apart = self.form == "corr"
        make = self.classes.centres if apart else self._products
        means = [make(column) for column in range(attributes)]
        kept = _possible(answers, [len(some) for some in means])
        requested, reported = kept.requested.reshape(-1), kept.reported.reshape(-1)
        sent = np.empty(reported.shape)
        for column in range(attributes):
            sent[requested == column] = means[column][reported[requested == column]]
        # The product is all there is: it stands for the value, beside a label of 1.
        labels = 2.0 * selection.labels_of(kept) - 1 if apart else np.ones(len(kept.requested))
        scored = selection.ScoredValues(requested, sent, sent**2, np.repeat(labels, self.count))
        return selection.best_of(scored.scores(attributes, self.form), self.count)

    def _centres(self, column: int) -> Floats:
        # Rounded, so that a centre and the opposite of its mirror image are one number.
        return np.asarray(np.round(self.classes.centres(column), 12) + 0.0)

    def _products(self, column: int) -> Floats:
        """Return every product of a class and a label, in rising order."""
        centres = self._centres(column)
        return np.unique(np.concatenate([centres, 0.0 - centres]))

    def guarantee(self) -> Guarantee:
        """Return no guarantee, and why."""
        return Guarantee.none("products of class and label are sent without noise", _USER)


@dataclass(frozen=True, slots=True)
class ResponseSelection:
    """DR.WALDP, corrected: class and label by randomised response, their product debiased.

    Each owner is asked for ``per_owner`` attributes, drawn independently of the record, and
    answers each class and the label by k-ary response with epsilon / (per_owner + 1). Given the
    record and the attributes the answers are independent, so the ratio for any two records is at
    most the product of theirs: epsilon. With p the chance of the truth and q of each lie, the
    centre c of a reported class has mean (p - q) c + q (sum of centres): what is computed from it
    is unbiased, and so is its product with the debiased label, whose draws are others.
    """

    count: int
    classes: Discretiser
    epsilon: float
    form: selection.ScoreForm = "prod"
    per_owner: int = 1
    name: str = "DR.WALDP"
    uses_data: bool = True

    def __post_init__(self) -> None:
        check_count(self.count, "count", most=len(self.classes.schema))
        check_count(self.per_owner, "per_owner", most=len(self.classes.schema))
        share_of(self.epsilon, self.per_owner + 1)
        selection.check_score_form(self.form)

    @property
    def share(self) -> float:
        """The epsilon of each answer."""
        return share_of(self.epsilon, self.per_owner + 1)

    def kind(self, attributes: int) -> Kind:
        """Return the kind of classes and labels."""
        return selection.selection_values_kind(
            attributes, self.per_owner, max(self.classes.sizes), 2
        )

    def select(self, records: ScaledRecords, source: Source) -> selection.AttributeSelection:
        """Return the attributes that go best with the label, as far as reports tell."""
        return self.choose(self.report(records, source), records.values.shape[1])

    def report(self, records: ScaledRecords, source: Source) -> selection.SelectionReports:
        """Return responses about the classes that were requested and about the label."""
        selection.check_width(records, self.count)
        requested = selection.draw_attributes(records, self.per_owner, source)
        codes = np.take_along_axis(self.classes.codes(records.values), requested, axis=1)
        reported = self._responses(requested.reshape(-1), codes.reshape(-1), source)
        label = BinaryResponse(self.share).randomise(records.labels, source.child("label"))
        return selection.SelectionReports(
            requested, reported.reshape(requested.shape), label.astype(np.int64)
        )

    def choose(
        self, answers: selection.SelectionReports, attributes: int
    ) -> selection.AttributeSelection:
        """Score the debiased answers."""
        kept = _possible(answers, self.classes.sizes)
        requested = kept.requested.reshape(-1)
        sent, squares = self._debiased(requested, kept.reported.reshape(-1))
        flip = BinaryResponse(self.share).flip / ONE
        labels = (2.0 * selection.labels_of(kept) - 1) / (1 - 2 * flip)
        reported = selection.ScoredValues(
            requested, sent, squares, np.repeat(labels, self.per_owner), square_label=1.0
        )
        return selection.best_of(reported.scores(attributes, self.form), self.count)

    def _responses(
        self, requested: NDArray[np.intp], own_codes: NDArray[np.uint16], source: Source
    ) -> NDArray[np.int64]:
        """Answer for each class by the response of its attribute's size."""
        sizes, reported = np.array(self.classes.sizes), np.empty(len(requested), dtype=np.int64)
        for size in sorted(set(self.classes.sizes)):
            stages = (source.stage("keep", size), source.stage("lie", size))
            respond = KarySampler(KaryResponse(size, self.share), *stages)
            mine = np.flatnonzero(sizes[requested] == size)
            for rows in blocks(len(mine)):
                reported[mine[rows]] = respond(own_codes[mine[rows]])
        return reported

    def _debiased(
        self, requested: NDArray[np.intp], reported: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """Return debiased centres of the reported classes, and debiased squares of centres."""
        sent, squares = np.zeros(len(requested)), np.zeros(len(requested))
        for column, size in enumerate(self.classes.sizes):
            response, mine = response_over(size, self.share), requested == column
            lie, centres = float(response.lie) / ONE, self.classes.centres(column)
            gap = response.keep / ONE - lie
            for out, means in ((sent, centres), (squares, centres**2)):
                out[mine] = ((means - lie * means.sum()) / gap)[reported[mine]]
        return sent, squares

    def guarantee(self) -> Guarantee:
        """Return the sum over what an owner sends, at its largest."""
        sizes = set(self.classes.sizes)
        each = max(KaryResponse(size, self.share).guarantee().epsilon for size in sizes)
        label = BinaryResponse(self.share).guarantee()
        return sequential([Guarantee(each, _USER)] * self.per_owner + [label])


def _possible(
    answers: selection.SelectionReports, sizes: Sequence[int]
) -> selection.SelectionReports:
    """Return the answers that a device could have given: integers that the attributes have."""
    return answers.where(
        np.asarray((answers.reported < np.array(sizes)[answers.requested]).all(axis=1))
    )
