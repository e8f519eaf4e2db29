"""Dimension reduction by classes: their products with the label as they are, or protected."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.composition import sequential
from noisefloor.checks import Floats, blocks, check_count
from noisefloor.collection.asking import Answers, asked_values_kind, check_width, draw_asked
from noisefloor.collection.classes import Classes
from noisefloor.collection.schema import Records
from noisefloor.collection.scoring import Form, Told, check_form
from noisefloor.collection.selection import Selection, best_of, labels_of
from noisefloor.collection.tuples import response_over
from noisefloor.collection.unified import share_of
from noisefloor.laws import ONE
from noisefloor.mechanisms import BinaryResponse, KaryResponse
from noisefloor.mechanisms.randomised_response import Responder
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire.kinds import Kind

_USER = Neighbours.USER


@dataclass(frozen=True, slots=True)
class WeakSelection:
    """DR.WA: owners send the products of class and label, without noise.

    In [-1, 1] a product leaves two candidates, and the products of one owner share one label:
    with the marginals known, label and classes follow. The forms ``prod`` and ``cosine`` need the
    products alone; ``corr`` needs class and label apart, and bounds what could be had.
    """

    count: int
    classes: Classes
    form: Form = "corr"
    name: str = "DR.WA"
    uses_data: bool = True

    def __post_init__(self) -> None:
        check_count(self.count, "count", most=len(self.classes.schema))
        check_form(self.form)

    def kind(self, attributes: int) -> Kind:
        """Return the kind of products, or of classes and labels for ``corr``."""
        if self.form == "corr":
            return asked_values_kind(attributes, self.count, max(self.classes.sizes), 2)
        most = max(len(self._products(column)) for column in range(len(self.classes.sizes)))
        return asked_values_kind(attributes, self.count, most, 0)

    def select(self, records: Records, source: Source) -> Selection:
        """Return the attributes that go best with the label."""
        return self.choose(self.tell(records, source), records.values.shape[1])

    def tell(self, records: Records, source: Source) -> Answers:
        """Return what was asked for, as it is: products by their place among all of them."""
        asked = draw_asked(records, self.count, source)
        codes = self.classes.codes(records.values)
        if self.form == "corr":
            told = np.take_along_axis(codes, asked, axis=1).astype(np.int64)
            return Answers(asked, told, records.labels.astype(np.int64))
        places = np.empty(codes.shape, dtype=np.int64)
        for column, held in enumerate(codes.T):
            sent = self._centres(column)[held] * np.where(records.labels, 1.0, -1.0)
            places[:, column] = np.searchsorted(self._products(column), sent)
        return Answers(asked, np.take_along_axis(places, asked, axis=1))

    def choose(self, answers: Answers, attributes: int) -> Selection:
        """Score what was sent."""
        apart = self.form == "corr"
        make = self.classes.centres if apart else self._products
        means = [make(column) for column in range(attributes)]
        kept = _possible(answers, [len(some) for some in means])
        asked, told = kept.asked.reshape(-1), kept.told.reshape(-1)
        sent = np.empty(told.shape)
        for column in range(attributes):
            sent[asked == column] = means[column][told[asked == column]]
        # The product is all there is: it stands for the value, beside a label of 1.
        labels = 2.0 * labels_of(kept) - 1 if apart else np.ones(len(kept.asked))
        scored = Told(asked, sent, sent**2, np.repeat(labels, self.count))
        return best_of(scored.scores(attributes, self.form), self.count)

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
    is unbiased, and so is its product with the debiased label, whose coins are others.
    """

    count: int
    classes: Classes
    epsilon: float
    form: Form = "prod"
    per_owner: int = 1
    name: str = "DR.WALDP"
    uses_data: bool = True

    def __post_init__(self) -> None:
        check_count(self.count, "count", most=len(self.classes.schema))
        check_count(self.per_owner, "per_owner", most=len(self.classes.schema))
        share_of(self.epsilon, self.per_owner + 1)
        check_form(self.form)

    @property
    def share(self) -> float:
        """The epsilon of each answer."""
        return share_of(self.epsilon, self.per_owner + 1)

    def kind(self, attributes: int) -> Kind:
        """Return the kind of classes and labels."""
        return asked_values_kind(attributes, self.per_owner, max(self.classes.sizes), 2)

    def select(self, records: Records, source: Source) -> Selection:
        """Return the attributes that go best with the label, as far as reports tell."""
        return self.choose(self.tell(records, source), records.values.shape[1])

    def tell(self, records: Records, source: Source) -> Answers:
        """Return responses about the classes that were asked for and about the label."""
        check_width(records, self.count)
        asked = draw_asked(records, self.per_owner, source)
        codes = np.take_along_axis(self.classes.codes(records.values), asked, axis=1)
        told = self._responses(asked.reshape(-1), codes.reshape(-1), source)
        label = BinaryResponse(self.share).randomise(records.labels, source.child("label"))
        return Answers(asked, told.reshape(asked.shape), label.astype(np.int64))

    def choose(self, answers: Answers, attributes: int) -> Selection:
        """Score the debiased answers."""
        kept = _possible(answers, self.classes.sizes)
        asked = kept.asked.reshape(-1)
        sent, squares = self._debiased(asked, kept.told.reshape(-1))
        flip = BinaryResponse(self.share).flip / ONE
        labels = (2.0 * labels_of(kept) - 1) / (1 - 2 * flip)
        told = Told(asked, sent, squares, np.repeat(labels, self.per_owner), square_label=1.0)
        return best_of(told.scores(attributes, self.form), self.count)

    def _responses(
        self, asked: NDArray[np.intp], held: NDArray[np.uint16], source: Source
    ) -> NDArray[np.int64]:
        """Answer for each class by the response of its attribute's size."""
        sizes, told = np.array(self.classes.sizes), np.empty(len(asked), dtype=np.int64)
        for size in sorted(set(self.classes.sizes)):
            stages = (source.stage("keep", size), source.stage("lie", size))
            respond = Responder(KaryResponse(size, self.share), *stages)
            mine = np.flatnonzero(sizes[asked] == size)
            for rows in blocks(len(mine)):
                told[mine[rows]] = respond(held[mine[rows]])
        return told

    def _debiased(self, asked: NDArray[np.intp], told: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return debiased centres of the reported classes, and debiased squares of centres."""
        sent, squares = np.zeros(len(asked)), np.zeros(len(asked))
        for column, size in enumerate(self.classes.sizes):
            response, mine = response_over(size, self.share), asked == column
            lie, centres = float(response.lie) / ONE, self.classes.centres(column)
            gap = response.keep / ONE - lie
            for out, means in ((sent, centres), (squares, centres**2)):
                out[mine] = ((means - lie * means.sum()) / gap)[told[mine]]
        return sent, squares

    def guarantee(self) -> Guarantee:
        """Return the sum over what an owner sends, at its largest."""
        sizes = set(self.classes.sizes)
        each = max(KaryResponse(size, self.share).guarantee().epsilon for size in sizes)
        label = BinaryResponse(self.share).guarantee()
        return sequential([Guarantee(each, _USER)] * self.per_owner + [label])


def _possible(answers: Answers, sizes: Sequence[int]) -> Answers:
    """Return the answers that a device could have given: integers that the attributes have."""
    return answers.where(np.asarray((answers.told < np.array(sizes)[answers.asked]).all(axis=1)))
