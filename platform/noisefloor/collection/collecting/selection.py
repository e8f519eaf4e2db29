"""Dimension reduction: which attributes are worth collecting.

Ways, each a frozen value that selects from records and says what that costs an owner;
``class_selection`` has those that send classes. Those that use data have two halves: ``tell`` runs
on the owners' devices, ``choose`` on the server, and what passes between the two is what the
guarantee speaks of. Which attributes an owner is asked for never depends on the record. An
attribute that nobody was asked for scores 0; equal scores keep the order of the schema.

How well an attribute goes with the label, from what was sent of both.

Requests to each owner for some attributes, and the answers as rows.

What an owner sends in a selection are the attributes that were requested, an integer for each of
them and, mostly, one for the label; what the integers mean is the selection's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting import sequential
from noisefloor.checks import Array, Floats, blocks, check_count
from noisefloor.collection.encoding import share_of
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Piecewise
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import ScaledRecords
from noisefloor.wire import Column, Integers, Kind, Symbols, record_kind

SELECTION_VALUES = "asked-values"
"""The kind's name."""


@dataclass(frozen=True, slots=True, eq=False)
class SelectionReports:
    """What owners sent, a row for each.

    Attributes:
        requested: The attributes that each was asked for.
        reported: An integer for each of these.
        labels: One for the label, or nothing where it is not sent by itself.
    """

    requested: NDArray[np.intp]
    reported: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None

    def columns(self) -> dict[str, Array]:
        """Return the answers as the columns of their kind."""
        parts = {f"attribute_{place}": one for place, one in _numbered(self.requested)}
        parts |= {f"value_{place}": one for place, one in _numbered(self.reported)}
        return parts if self.labels is None else {**parts, "label": self.labels}

    @classmethod
    def of(cls, columns: Mapping[str, Array]) -> "SelectionReports":
        """Return what ``columns`` was called on."""
        count, labels = len(columns) // 2, columns.get("label")
        requested, reported = (
            np.column_stack([columns[f"{name}_{place + 1}"] for place in range(count)])
            for name in ("attribute", "value")
        )
        numbers = None if labels is None else labels.astype(np.int64)
        return cls(requested.astype(np.intp), reported.astype(np.int64), numbers)

    def where(self, kept: NDArray[np.bool_]) -> "SelectionReports":
        """Return some of the owners' answers."""
        labels = None if self.labels is None else self.labels[kept]
        return SelectionReports(self.requested[kept], self.reported[kept], labels)


def selection_values_kind(attributes: int, chosen: int, values: int, labels: int) -> Kind:
    """Make the kind of answers to a selection.

    Args:
        attributes: How many there are to be asked for.
        chosen: How many an owner is asked for.
        values: How many integers an answer is one of.
        labels: How many the label is one of; 0 where it is not sent by itself.
    """
    check_count(chosen, "chosen", most=attributes)
    places = range(1, chosen + 1)
    columns: dict[str, Column] = {f"attribute_{one}": Symbols(attributes) for one in places}
    columns |= {f"value_{one}": Integers(0, values - 1) for one in places}
    return record_kind(
        SELECTION_VALUES, columns | ({"label": Integers(0, labels - 1)} if labels else {})
    )


def draw_attributes(records: ScaledRecords, per_owner: int, source: Source) -> NDArray[np.intp]:
    """Return the attributes that each owner is asked for, drawn without replacement."""
    attributes = check_width(records, per_owner)
    words = source.stage("asked")
    requested = np.empty((len(records), per_owner), dtype=np.intp)
    for rows in blocks(len(records), attributes):
        drawn = words.words((rows.stop - rows.start) * attributes).reshape(-1, attributes)
        if per_owner == attributes:
            requested[rows] = np.arange(attributes)
        else:
            requested[rows] = np.argpartition(drawn, per_owner - 1, axis=1)[:, :per_owner]
    return requested


def check_width(records: ScaledRecords, count: int) -> int:
    """Return how many attributes records have, if these are enough."""
    attributes = int(records.values.shape[1])
    if count > attributes:
        raise BadParameter("count", count, f"at most the number of attributes, {attributes}")
    return attributes


def _numbered(rows: Array) -> list[tuple[int, Array]]:
    return [(place + 1, rows[:, place]) for place in range(rows.shape[1])]


ScoreForm = Literal["prod", "cosine", "corr"]
"""How attribute and label go together: the mean of their product, that over its root mean square,
or Pearson's correlation, which needs both apart."""

_LEAST_VARIANCE = 0.01
"""Of a debiased estimate: below it a correlation is a quotient of noises."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoredValues:
    """Numbers that were sent, one after the other, each with its attribute and its label."""

    attribute: NDArray[np.intp]
    value: Floats
    square: Floats
    label: Floats
    square_label: float | None = None
    """What the square of a label is known to be; from the reports where it is not known."""

    def scores(self, attributes: int, form: ScoreForm) -> Floats:
        """Return how well each attribute goes with the label."""
        counts = np.maximum(np.bincount(self.attribute, minlength=attributes), 1)

        def mean(numbers: Floats) -> Floats:
            return np.asarray(np.bincount(self.attribute, numbers, minlength=attributes) / counts)

        product, square = mean(self.value * self.label), mean(self.square)
        if form == "prod":
            return np.abs(product)
        least = 0.0 if self.square_label is None else _LEAST_VARIANCE
        if form == "cosine":
            return _quotient(np.abs(product), np.maximum(square, least))
        first, label = mean(self.value), mean(self.label)
        squares = mean(self.label**2) if self.square_label is None else self.square_label
        spread = np.maximum(square - first**2, least) * np.maximum(squares - label**2, least)
        return _quotient(np.abs(product - first * label), spread)


def _quotient(number: Floats, square: Floats) -> Floats:
    """Divide by a root; what does not vary goes with nothing, and scores 0."""
    # Float dust: the variance of a constant is not always exactly 0.
    root = np.sqrt(np.maximum(square, 0.0))
    return np.divide(number, root, out=np.zeros_like(number), where=root > 1e-6)


def check_score_form(form: str) -> None:
    """Refuse a form that nobody knows."""
    if form not in get_args(ScoreForm):
        raise BadParameter("form", form, f"to be one of {', '.join(get_args(ScoreForm))}")


_USER = Neighbours.USER


@dataclass(frozen=True, slots=True, eq=False)
class AttributeSelection:
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

    def select(self, records: ScaledRecords, source: Source) -> AttributeSelection:
        """Return the attributes to collect."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what an owner's part in the selection is proved to cost."""
        ...


@runtime_checkable
class ReportingSelector(Selector, Protocol):
    """A way to choose attributes by owners' reports."""

    def kind(self, attributes: int) -> Kind:
        """Return the kind of frame that carries what owners send."""
        ...

    def report(self, records: ScaledRecords, source: Source) -> SelectionReports:
        """Return what owners send: the devices' half."""
        ...

    def choose(self, answers: SelectionReports, attributes: int) -> AttributeSelection:
        """Return the attributes to collect: the server's half."""
        ...


@dataclass(frozen=True, slots=True)
class EveryAttribute:
    """All attributes in the schema's order: no selection, no cost."""

    name: str = "all"
    uses_data: bool = False

    def select(self, records: ScaledRecords, source: Source) -> AttributeSelection:
        """Return all attributes."""
        attributes = records.values.shape[1]
        return AttributeSelection(tuple(range(attributes)), np.zeros(attributes))

    def guarantee(self) -> Guarantee:
        """Return that it costs nothing: nobody sends anything."""
        return Guarantee(0.0, _USER)


@dataclass(frozen=True, slots=True)
class RandomSelection:
    """DR.Rand: n attributes at random; no owner sends anything, so it costs 0."""

    count: int
    name: str = "DR.Rand"
    uses_data: bool = False

    def __post_init__(self) -> None:
        check_count(self.count, "count")

    def select(self, records: ScaledRecords, source: Source) -> AttributeSelection:
        """Return attributes drawn without looking at any record."""
        attributes = check_width(records, self.count)
        order = np.argsort(source.stage("attributes").words(attributes))
        return AttributeSelection(tuple(order[: self.count].tolist()), np.zeros(attributes))

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

    def kind(self, attributes: int) -> Kind:
        """Return the kind of cells, those of the label included."""
        cells = self.response.window.cells
        return selection_values_kind(attributes, self.count, cells, cells)

    def select(self, records: ScaledRecords, source: Source) -> AttributeSelection:
        """Return the attributes that correlate best with the label, as reported."""
        return self.choose(self.report(records, source), records.values.shape[1])

    def report(self, records: ScaledRecords, source: Source) -> SelectionReports:
        """Return cells of the values that were requested and of the label."""
        response, requested = self.response, draw_attributes(records, self.count, source)
        values = np.take_along_axis(records.values, requested, axis=1)
        sent = response.randomise(values.reshape(-1), source.child("values"))
        labels = response.randomise(2.0 * records.labels - 1, source.child("label"))
        return SelectionReports(
            requested, sent.reshape(requested.shape).astype(np.int64), labels.astype(np.int64)
        )

    def choose(self, answers: SelectionReports, attributes: int) -> AttributeSelection:
        """Correlate what was sent, debiased."""
        sent = self.response.debias(answers.reported.reshape(-1))
        labels = self.response.debias(labels_of(answers))
        reported = ScoredValues(
            answers.requested.reshape(-1), sent, sent**2, np.repeat(labels, self.count)
        )
        return best_of(reported.scores(attributes, "corr"), self.count)

    def guarantee(self) -> Guarantee:
        """Return the sum over what an owner sends."""
        return sequential([self.response.guarantee()] * (self.count + 1))


def best_of(scores: Floats, count: int) -> AttributeSelection:
    """Return n attributes of the highest scores; equal ones in the order of the schema."""
    order = np.argsort(-scores, kind="stable")
    return AttributeSelection(tuple(order[:count].tolist()), scores)


def labels_of(answers: SelectionReports) -> NDArray[np.int64]:
    """Return what was sent of the labels, which has to be there."""
    if answers.labels is None:
        raise BadParameter("answers", "<answers>", "to have labels")
    return answers.labels
