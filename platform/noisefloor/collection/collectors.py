"""Collectors: what an owner sends of a record, and what the server reads out of it.

The paper's two levels (WA: classes without noise; WALDP: classes by randomised response), its
baseline PM in the readings that its text leaves open, and the record as it is. A collector says
what one participation is proved to cost. Training and testing use the same collectors: a test
record has a label only where the paper sends one, and nothing reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np

from noisefloor.accounting.composition import sequential
from noisefloor.checks import blocks, check_finite
from noisefloor.collection.classes import Classes, PrintedClasses, check_columns
from noisefloor.collection.printed import Lies, PrintedUnified
from noisefloor.collection.schema import Labels, Records
from noisefloor.collection.unified import UnifiedResponse, share_of
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import BinaryResponse, Piecewise
from noisefloor.mechanisms.base import Floats
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

LabelBy = Literal["piecewise", "response", "plain"]
"""How PM sends the label: as a number, as a class, or as it is."""

EPSILON_A_SAMPLE = 2.5
"""Where coordinates are sampled, each has about this much (Wang et al. 2019, section 4)."""

_USER = Neighbours.USER
_AS_IT_IS = "the label is sent as it is"


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """What the server reads: features, a row for each record, and labels."""

    features: Floats
    labels: Labels


@runtime_checkable
class Collector(Protocol):
    """What owners send, and what it costs."""

    @property
    def name(self) -> str:
        """As in tables."""
        ...

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return what the server reads of some attributes of records."""
        ...

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what one participation is proved to cost."""
        ...


@dataclass(frozen=True, slots=True)
class RawCollector:
    """The record as it is: the ceiling of what can be learnt, and no privacy."""

    name: str = "raw"

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return values and labels."""
        return Collected(np.asarray(records.values[:, list(columns)]), records.labels)

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return no guarantee."""
        return Guarantee.none("values are sent as they are", _USER)


@dataclass(frozen=True, slots=True)
class WeakCollector:
    """WA: the class of each value and the label, without noise."""

    classes: Classes
    name: str = "WA"

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return what the classes stand for, and the labels."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        return Collected(self.classes.values(codes, columns), records.labels)

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return no guarantee, and why."""
        return Guarantee.none("classes are sent without noise", _USER)


@dataclass(frozen=True, slots=True)
class UnifiedCollector:
    """WALDP, corrected: the unified response on the classes and the label.

    Attributes:
        classes: Of the attributes.
        epsilon: Of the record.
        with_label: Whether a label shares the budget. Nothing needs it at test time; without it
            each attribute has epsilon / K instead of epsilon / (K + 1).
    """

    classes: Classes
    epsilon: float
    with_label: bool = True
    name: str = "WALDP"

    def __post_init__(self) -> None:
        _check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> UnifiedResponse:
        """Return the mechanism for some attributes."""
        chosen = check_columns(self.classes.schema, columns)
        sizes = tuple(self.classes.sizes[column] for column in chosen)
        return _unified((*sizes, 2) if self.with_label else sizes, self.epsilon)

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return what the reported classes stand for, and the reported labels."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        if self.with_label:
            codes = np.column_stack([codes, records.labels.astype(np.uint16)])
        reports = self.response(columns).randomise(codes, source)
        features = self.classes.values(reports[:, : len(columns)], columns)
        labels = reports[:, -1] == 1 if self.with_label else np.zeros(len(reports), np.bool_)
        return Collected(features, np.asarray(labels))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what the record costs."""
        return self.response(columns).guarantee()


@dataclass(frozen=True, slots=True)
class PrintedCollector:
    """WALDP to the letter of the paper, class 0 included; for audits and comparisons only."""

    classes: PrintedClasses
    epsilon: float
    lies: Lies = "classes"
    name: str = "WALDP as printed"

    def __post_init__(self) -> None:
        _check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> PrintedUnified:
        """Return the mechanism for some attributes."""
        sizes = tuple(self.classes.size(column) for column in columns)
        return PrintedUnified((*sizes, self.classes.most), self.epsilon, self.lies)

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return what the reported classes stand for; a label is negative below the middle."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        codes = np.column_stack([codes, self.classes.label_codes(records.labels)])
        reports = self.response(columns).randomise(codes, source)
        features = self.classes.values(reports[:, :-1], columns)
        return Collected(features, np.asarray(2 * reports[:, -1].astype(int) > self.classes.most))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what the printed record costs."""
        return self.response(columns).guarantee()


@dataclass(frozen=True, slots=True)
class PiecewiseCollector:
    """PM: every value by the piecewise mechanism; values and label share the budget equally.

    Attributes:
        epsilon: Of the record.
        label: How the label is sent; ``plain`` takes no budget, and leaves no guarantee.
    """

    epsilon: float
    label: LabelBy = "piecewise"
    name: str = "PM"

    def __post_init__(self) -> None:
        _check_label(self.label)
        _check_positive(self.epsilon)

    def _share(self, values: int) -> float:
        return share_of(self.epsilon, values + (self.label != "plain"))

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return debiased values and the reported labels."""
        values = records.values[:, list(columns)]
        response = Piecewise(self._share(values.shape[1]))
        cells = response.randomise(values.reshape(-1), source.child("values"))
        features = response.debias(cells).reshape(values.shape)
        return Collected(features, _labels(records.labels, self.label, response.epsilon, source))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return the sum over the values and the label."""
        if self.label == "plain":
            return Guarantee.none(_AS_IT_IS, _USER)
        share = self._share(len(columns))
        last = Piecewise(share) if self.label == "piecewise" else BinaryResponse(share)
        return sequential([Piecewise(share).guarantee()] * len(columns) + [last.guarantee()])


@dataclass(frozen=True, slots=True)
class SampledPiecewiseCollector:
    """PM on a few coordinates of each record, drawn anew for each owner; the others are 0.

    Of m coordinates, the label among them unless it is ``plain``, each owner draws k = epsilon /
    2.5 (at least 1, at most m) independently of the record, and sends each by the piecewise
    mechanism with epsilon / k, scaled by m / k. A label that was not drawn is tossed: so the cost
    is that of the k answers.
    """

    epsilon: float
    label: LabelBy = "piecewise"
    name: str = "PM, sampled"

    def __post_init__(self) -> None:
        _check_label(self.label)
        _check_positive(self.epsilon)
        if self.label == "response":
            raise BadParameter("label", self.label, "to be piecewise or plain: it is a coordinate")

    def drawn(self, coordinates: int) -> int:
        """Return how many coordinates each owner sends."""
        return max(1, min(coordinates, int(self.epsilon // EPSILON_A_SAMPLE)))

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return scaled values with 0 where nothing was sent, and labels."""
        values = records.values[:, list(columns)]
        if self.label != "plain":
            values = np.column_stack([values, 2.0 * records.labels - 1])
        n, width = values.shape
        count = self.drawn(width)
        chosen = _draws(n, width, count, source)
        response = Piecewise(share_of(self.epsilon, count))
        held = np.take_along_axis(values, chosen, axis=1).reshape(-1)
        sent = response.debias(response.randomise(held, source.child("values")))
        features = np.zeros((n, width))
        np.put_along_axis(features, chosen, sent.reshape(n, count) * (width / count), axis=1)
        if self.label == "plain":
            return Collected(features, records.labels)
        coins = source.stage("coins").bernoulli(1 << 63, n)
        told = features[:, -1]
        return Collected(features[:, :-1], np.where(told == 0, coins, told > 0))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return the sum over the coordinates that are sent."""
        if self.label == "plain":
            return Guarantee.none(_AS_IT_IS, _USER)
        count = self.drawn(len(columns) + 1)
        response = Piecewise(share_of(self.epsilon, count))
        return sequential([response.guarantee()] * count)


@lru_cache(maxsize=64)
def _unified(sizes: tuple[int, ...], epsilon: float) -> UnifiedResponse:
    """Return the response on a record, once: its tables take longer to make than to use."""
    return UnifiedResponse(sizes, epsilon)


def _labels(labels: Labels, by: LabelBy, epsilon: float, source: Source) -> Labels:
    """Return the labels as the server reads them."""
    if by == "plain":
        return labels
    if by == "response":
        return BinaryResponse(epsilon).randomise(labels, source.child("label"))
    response = Piecewise(epsilon)
    sent = response.randomise(2.0 * labels - 1, source.child("label"))
    return np.asarray(response.debias(sent) > 0)


def _draws(
    n: int, width: int, count: int, source: Source
) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return so many different coordinates for each owner."""
    words, chosen = source.stage("which"), np.empty((n, count), dtype=np.intp)
    for rows in blocks(n, width):
        keys = words.words((rows.stop - rows.start) * width).reshape(-1, width)
        chosen[rows] = np.argsort(keys, axis=1)[:, :count]
    return chosen


def _check_positive(epsilon: float) -> None:
    """Refuse what no number of values can share; how many there are is known when they come."""
    if check_finite(epsilon, "epsilon") <= 0:
        raise BadParameter("epsilon", epsilon, "> 0")


def _check_label(label: str) -> None:
    if label not in get_args(LabelBy):
        raise BadParameter("label", label, f"to be one of {', '.join(get_args(LabelBy))}")
