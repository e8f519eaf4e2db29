"""Collectors: what an owner sends of a record, and what the server reads out of it.

The paper's two levels (WA: classes without noise; WALDP: classes by randomised response) and the
record as it is; ``piecewise_collectors`` has its baseline PM. A collector that sends integers has
two halves, ``tell`` on the device and ``read`` on the server. It says what one participation is
proved to cost. Training and testing use the same collectors: a test
record has a label only where the paper sends one, and nothing reads it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from noisefloor.checks import Floats, check_finite
from noisefloor.collection.classes import Classes, PrintedClasses, check_columns
from noisefloor.collection.printed import Lies, PrintedUnified
from noisefloor.collection.schema import Labels, Records
from noisefloor.collection.told import Told
from noisefloor.collection.unified import UnifiedResponse
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Reports
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source

_USER = Neighbours.USER


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


@runtime_checkable
class Telling(Collector, Protocol):
    """A collector whose owners send integers."""

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return how many integers a value and the label are one of, 0 where no label is sent."""
        ...

    def tell(self, records: Records, columns: Sequence[int], source: Source) -> Told:
        """Return what owners send: the devices' half."""
        ...

    def possible(self, told: Told, columns: Sequence[int]) -> Labels:
        """Return which rows a device could have sent."""
        ...

    def read(self, told: Told, columns: Sequence[int]) -> Collected:
        """Return what the server reads of the possible rows."""
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


class OfClasses(ABC):
    """What collectors of classes share: the server's half."""

    __slots__ = ()
    classes: Classes

    @abstractmethod
    def tell(self, records: Records, columns: Sequence[int], source: Source) -> Told:
        """Return the classes that are sent, and the label if one is."""

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return what the reported classes stand for, and the reported labels."""
        return self.read(self.tell(records, columns, source), columns)

    def possible(self, told: Told, columns: Sequence[int]) -> Labels:
        """Return which rows have classes of their attributes."""
        sizes = np.array([self.classes.sizes[column] for column in columns])
        return np.asarray((told.values < sizes).all(axis=1))

    def read(self, told: Told, columns: Sequence[int]) -> Collected:
        """Return what classes stand for; a class that its attribute does not have is left out."""
        kept = told.where(self.possible(told, columns))
        features = self.classes.values(kept.values.astype(np.uint16), columns)
        if kept.labels is None:
            return Collected(features, np.zeros(len(features), np.bool_))
        return Collected(features, kept.labels == 1)


@dataclass(frozen=True, slots=True)
class WeakCollector(OfClasses):
    """WA: the class of each value and the label, without noise."""

    classes: Classes
    name: str = "WA"

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that an attribute has, and two."""
        return max(self.classes.sizes), 2

    def tell(self, records: Records, columns: Sequence[int], source: Source) -> Told:
        """Return the classes and the labels as they are."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        return Told(codes.astype(np.int64), records.labels.astype(np.int64))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return no guarantee, and why."""
        return Guarantee.none("classes are sent without noise", _USER)


@dataclass(frozen=True, slots=True)
class UnifiedCollector(OfClasses):
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
        check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> UnifiedResponse:
        """Return the mechanism for some attributes."""
        chosen = check_columns(self.classes.schema, columns)
        sizes = tuple(self.classes.sizes[column] for column in chosen)
        return _unified((*sizes, 2) if self.with_label else sizes, self.epsilon)

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that an attribute has, and two or none."""
        return max(self.classes.sizes), 2 * self.with_label

    def tell(self, records: Records, columns: Sequence[int], source: Source) -> Told:
        """Return responses about the classes, and about the labels if these are sent."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        if self.with_label:
            codes = np.column_stack([codes, records.labels.astype(np.uint16)])
        return told_of(self.response(columns).randomise(codes, source), len(columns))

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
        check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> PrintedUnified:
        """Return the mechanism for some attributes."""
        sizes = tuple(self.classes.size(column) for column in columns)
        return PrintedUnified((*sizes, self.classes.most), self.epsilon, self.lies)

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that a value and the label are told to have, and class 0."""
        sizes = (self.classes.size(one) for one in range(len(self.classes.schema)))
        return max(sizes) + 1, self.classes.most + 1

    def collect(self, records: Records, columns: Sequence[int], source: Source) -> Collected:
        """Return what the reported classes stand for; a label is negative below the middle."""
        return self.read(self.tell(records, columns, source), columns)

    def tell(self, records: Records, columns: Sequence[int], source: Source) -> Told:
        """Return responses about the printed classes of values and label."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        codes = np.column_stack([codes, self.classes.label_codes(records.labels)])
        return told_of(self.response(columns).randomise(codes, source), len(columns))

    def possible(self, told: Told, columns: Sequence[int]) -> Labels:
        """Return which rows have printed classes of their attributes, or class 0."""
        sizes = np.array([self.classes.size(column) for column in columns])
        return np.asarray((told.values <= sizes).all(axis=1))

    def read(self, told: Told, columns: Sequence[int]) -> Collected:
        """Return what the reported classes stand for; a label is negative below the middle."""
        kept = told.where(self.possible(told, columns))
        features = self.classes.values(kept.values.astype(np.uint16), columns)
        if kept.labels is None:
            return Collected(features, np.zeros(len(features), np.bool_))
        return Collected(features, np.asarray(2 * kept.labels > self.classes.most))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what the printed record costs."""
        return self.response(columns).guarantee()


def told_of(reports: Reports, attributes: int) -> Told:
    """Return rows of classes, the label last where there is one, as what was told."""
    rows = np.asarray(reports, dtype=np.int64)
    return Told(rows[:, :attributes], rows[:, -1] if rows.shape[1] > attributes else None)


@lru_cache(maxsize=64)
def _unified(sizes: tuple[int, ...], epsilon: float) -> UnifiedResponse:
    """Return the response on a record, once: its tables take longer to make than to use."""
    return UnifiedResponse(sizes, epsilon)


def check_positive(epsilon: float) -> None:
    """Refuse what no number of values can share; how many there are is known when they come."""
    if check_finite(epsilon, "epsilon") <= 0:
        raise BadParameter("epsilon", epsilon, "> 0")
