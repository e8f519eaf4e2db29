"""Dimension reduction: which attributes are worth collecting.

Four ways, each a frozen value that selects from records and says what that costs an owner. They
run on the owners' side and on the server's in one call; what passes between the two is what the
guarantee speaks of. Which attributes an owner is asked for never depends on the record. An
attribute that nobody was asked for scores 0; equal scores keep the order of the schema.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.composition import sequential
from noisefloor.checks import blocks, check_count
from noisefloor.collection.classes import Classes
from noisefloor.collection.schema import Records
from noisefloor.collection.scoring import Form, Told, check_form
from noisefloor.collection.unified import share_of
from noisefloor.errors import BadParameter
from noisefloor.laws import ONE
from noisefloor.mechanisms import BinaryResponse, KaryResponse, Piecewise
from noisefloor.mechanisms.base import Floats
from noisefloor.mechanisms.randomised_response import Responder
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_USER = Neighbours.USER


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What was chosen.

    Attributes:
        columns: The attributes, the best first.
        scores: Of every attribute of the schema, none of them negative.
    """

    columns: tuple[int, ...]
    scores: Floats


@runtime_checkable
class Selector(Protocol):
    """A way to choose attributes, and what it costs each owner who takes part."""

    @property
    def name(self) -> str:
        """As in tables."""
        ...

    @property
    def uses_data(self) -> bool:
        """Whether owners send anything."""
        ...

    def select(self, records: Records, source: Source) -> Selection:
        """Return the attributes to collect."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what an owner's part in the selection is proved to cost."""
        ...


@dataclass(frozen=True, slots=True)
class EveryAttribute:
    """All attributes in the schema's order: no selection, no cost."""

    name: str = "all"
    uses_data: bool = False

    def select(self, records: Records, source: Source) -> Selection:
        """Return all attributes."""
        attributes = records.values.shape[1]
        return Selection(tuple(range(attributes)), np.zeros(attributes))

    def guarantee(self) -> Guarantee:
        """Return that it costs nothing: nobody sends anything."""
        return Guarantee(0.0, _USER)


@dataclass(frozen=True, slots=True)
class RandomSelection:
    """DR.Rand: so many attributes at random; no owner sends anything, so it costs 0."""

    count: int
    name: str = "DR.Rand"
    uses_data: bool = False

    def __post_init__(self) -> None:
        check_count(self.count, "count")

    def select(self, records: Records, source: Source) -> Selection:
        """Return attributes drawn without looking at any record."""
        attributes = _check_width(records, self.count)
        order = np.argsort(source.stage("attributes").words(attributes))
        return Selection(tuple(order[: self.count].tolist()), np.zeros(attributes))

    def guarantee(self) -> Guarantee:
        """Return that it costs nothing."""
        return Guarantee(0.0, _USER)


@dataclass(frozen=True, slots=True)
class PiecewiseSelection:
    """DR.PM: owners send some values and the label, each by the piecewise mechanism.

    Each owner is asked for ``count`` attributes, drawn independently of the record; every answer
    and the label have epsilon / (count + 1). The server correlates what was sent. The answers are
    independent given the record, so that an owner's part costs epsilon; who trains as well pays
    for training on top.
    """

    count: int
    epsilon: float
    name: str = "DR.PM"
    uses_data: bool = True

    def __post_init__(self) -> None:
        check_count(self.count, "count")
        share_of(self.epsilon, self.count + 1)

    @property
    def response(self) -> Piecewise:
        """What each value goes through."""
        return Piecewise(share_of(self.epsilon, self.count + 1))

    def select(self, records: Records, source: Source) -> Selection:
        """Return the attributes that correlate best with the label, as reported."""
        response, asked = self.response, _asked(records, self.count, self.count, source)
        values = np.take_along_axis(records.values, asked, axis=1).reshape(-1)
        sent = response.debias(response.randomise(values, source.child("values")))
        signs = 2.0 * records.labels - 1
        labels = response.debias(response.randomise(signs, source.child("label")))
        told = Told(asked.reshape(-1), sent, sent**2, np.repeat(labels, self.count))
        return _chosen(told.scores(records.values.shape[1], "corr"), self.count)

    def guarantee(self) -> Guarantee:
        """Return the sum over what an owner sends."""
        return sequential([self.response.guarantee()] * (self.count + 1))


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

    def select(self, records: Records, source: Source) -> Selection:
        """Return the attributes that go best with the label."""
        asked = _asked(records, self.count, self.count, source)
        values = self.classes.values(self.classes.codes(records.values))
        sent = np.take_along_axis(values, asked, axis=1).reshape(-1)
        labels = np.repeat(2.0 * records.labels - 1, self.count)
        told = Told(asked.reshape(-1), sent, sent**2, labels)
        return _chosen(told.scores(records.values.shape[1], self.form), self.count)

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

    def select(self, records: Records, source: Source) -> Selection:
        """Return the attributes that go best with the label, as far as reports tell."""
        asked = _asked(records, self.count, self.per_owner, source).reshape(-1)
        codes = self.classes.codes(records.values)
        held = codes[np.repeat(np.arange(len(codes)), self.per_owner), asked]
        sent, squares = self._sent(asked, held, source)
        flip = BinaryResponse(self.share)
        reported = flip.randomise(records.labels, source.child("label"))
        labels = (2.0 * reported - 1) / (1 - 2 * flip.flip / ONE)
        told = Told(asked, sent, squares, np.repeat(labels, self.per_owner), square_label=1.0)
        return _chosen(told.scores(codes.shape[1], self.form), self.count)

    def _sent(
        self, asked: NDArray[np.intp], held: NDArray[np.uint16], source: Source
    ) -> tuple[Floats, Floats]:
        """Return debiased centres of the reported classes, and debiased squares of centres."""
        sizes = np.array(self.classes.sizes)
        sent, squares = np.zeros(len(asked)), np.zeros(len(asked))
        for size in sorted(set(self.classes.sizes)):
            response = KaryResponse(size, self.share)
            stages = (source.stage("keep", size), source.stage("lie", size))
            mine = np.flatnonzero(sizes[asked] == size)
            reports, respond = np.empty(len(mine), dtype=np.int64), Responder(response, *stages)
            for rows in blocks(len(mine)):
                reports[rows] = respond(held[mine[rows]])
            lie, columns = float(response.lie) / ONE, asked[mine]
            table = np.zeros((len(sizes), size))
            for column in np.flatnonzero(sizes == size).tolist():
                table[column] = self.classes.centres(column)
            gap = response.keep / ONE - lie
            for out, centres in ((sent, table), (squares, table**2)):
                debiased = (centres - lie * centres.sum(axis=1, keepdims=True)) / gap
                out[mine] = debiased[columns, reports]
        return sent, squares

    def guarantee(self) -> Guarantee:
        """Return the sum over what an owner sends, at its largest."""
        sizes = set(self.classes.sizes)
        each = max(KaryResponse(size, self.share).guarantee().epsilon for size in sizes)
        label = BinaryResponse(self.share).guarantee()
        return sequential([Guarantee(each, _USER)] * self.per_owner + [label])


def _chosen(scores: Floats, count: int) -> Selection:
    order = np.argsort(-scores, kind="stable")
    return Selection(tuple(order[:count].tolist()), scores)


def _asked(records: Records, count: int, per_owner: int, source: Source) -> NDArray[np.intp]:
    """Return the attributes that each owner is asked for, drawn without replacement."""
    attributes = _check_width(records, max(count, per_owner))
    words = source.stage("asked")
    asked = np.empty((len(records), per_owner), dtype=np.intp)
    for rows in blocks(len(records), attributes):
        drawn = words.words((rows.stop - rows.start) * attributes).reshape(-1, attributes)
        if per_owner == attributes:
            asked[rows] = np.arange(attributes)
        else:
            asked[rows] = np.argpartition(drawn, per_owner - 1, axis=1)[:, :per_owner]
    return asked


def _check_width(records: Records, count: int) -> int:
    attributes = int(records.values.shape[1])
    if count > attributes:
        raise BadParameter("count", count, f"at most the number of attributes, {attributes}")
    return attributes
