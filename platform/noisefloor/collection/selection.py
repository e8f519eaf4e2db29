"""Dimension reduction: which attributes are worth collecting.

Ways, each a frozen value that selects from records and says what that costs an owner;
``class_selection`` has those that send classes. Those that use data have two halves: ``tell`` runs
on the owners' devices, ``choose`` on the server, and what passes between the two is what the
guarantee speaks of. Which attributes an owner is asked for never depends on the record. An
attribute that nobody was asked for scores 0; equal scores keep the order of the schema.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from noisefloor.accounting.composition import sequential
from noisefloor.checks import Floats, check_count
from noisefloor.collection.asking import Answers, asked_values_kind, check_width, draw_asked
from noisefloor.collection.schema import Records
from noisefloor.collection.scoring import Told
from noisefloor.collection.unified import share_of
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Piecewise
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.wire.kinds import Kind

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


@runtime_checkable
class Asking(Selector, Protocol):
    """A way to choose attributes by asking owners."""

    def kind(self, attributes: int) -> Kind:
        """Return the kind of frame that carries what owners send."""
        ...

    def tell(self, records: Records, source: Source) -> Answers:
        """Return what owners send: the devices' half."""
        ...

    def choose(self, answers: Answers, attributes: int) -> Selection:
        """Return the attributes to collect: the server's half."""
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
        attributes = check_width(records, self.count)
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

    def kind(self, attributes: int) -> Kind:
        """Return the kind of cells, those of the label included."""
        cells = self.response.window.cells
        return asked_values_kind(attributes, self.count, cells, cells)

    def select(self, records: Records, source: Source) -> Selection:
        """Return the attributes that correlate best with the label, as reported."""
        return self.choose(self.tell(records, source), records.values.shape[1])

    def tell(self, records: Records, source: Source) -> Answers:
        """Return cells of the values that were asked for and of the label."""
        response, asked = self.response, draw_asked(records, self.count, source)
        values = np.take_along_axis(records.values, asked, axis=1)
        sent = response.randomise(values.reshape(-1), source.child("values"))
        labels = response.randomise(2.0 * records.labels - 1, source.child("label"))
        return Answers(asked, sent.reshape(asked.shape).astype(np.int64), labels.astype(np.int64))

    def choose(self, answers: Answers, attributes: int) -> Selection:
        """Correlate what was sent, debiased."""
        sent = self.response.debias(answers.told.reshape(-1))
        labels = self.response.debias(labels_of(answers))
        told = Told(answers.asked.reshape(-1), sent, sent**2, np.repeat(labels, self.count))
        return best_of(told.scores(attributes, "corr"), self.count)

    def guarantee(self) -> Guarantee:
        """Return the sum over what an owner sends."""
        return sequential([self.response.guarantee()] * (self.count + 1))


def best_of(scores: Floats, count: int) -> Selection:
    """Return so many attributes of the highest scores; equal ones in the order of the schema."""
    order = np.argsort(-scores, kind="stable")
    return Selection(tuple(order[:count].tolist()), scores)


def labels_of(answers: Answers) -> NDArray[np.int64]:
    """Return what was sent of the labels, which has to be there."""
    if answers.labels is None:
        raise BadParameter("answers", "<answers>", "to have labels")
    return answers.labels
