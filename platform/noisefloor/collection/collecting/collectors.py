"""Collectors: what an owner sends of a record, and what the server reads out of it.

The paper's two levels (WA: classes without noise; WALDP: classes by randomised response) and the
record as it is; ``piecewise_collectors`` has its baseline PM. A collector that sends integers has
two halves, ``tell`` on the device and ``read`` on the server. It says what one participation is
proved to cost. Training and testing use the same collectors: a test
record has a label only where the paper sends one, and nothing reads it.

The joint response as a collector: everybody tells of the same attributes, all in one symbol.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from noisefloor.checks import Floats, check_finite
from noisefloor.collection import encoding
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import Source
from noisefloor.tables import Labels, ScaledRecords

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

    def collect(self, records: ScaledRecords, columns: Sequence[int], source: Source) -> Collected:
        """Return what the server reads of some attributes of records."""
        ...

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what one participation is proved to cost."""
        ...


@runtime_checkable
class ReportingCollector(Collector, Protocol):
    """A collector whose owners send integers."""

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return how many integers a value and the label are one of, 0 where no label is sent."""
        ...

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> encoding.ReportColumns:
        """Return what owners send: the devices' half."""
        ...

    def possible(self, reported: encoding.ReportColumns, columns: Sequence[int]) -> Labels:
        """Return which rows a device could have sent."""
        ...

    def read(self, reported: encoding.ReportColumns, columns: Sequence[int]) -> Collected:
        """Return what the server reads of the possible rows."""
        ...


@dataclass(frozen=True, slots=True)
class RawCollector:
    """The record as it is: an upper bound on accuracy, and no privacy."""

    name: str = "raw"

    def collect(self, records: ScaledRecords, columns: Sequence[int], source: Source) -> Collected:
        """Return values and labels."""
        return Collected(np.asarray(records.values[:, list(columns)]), records.labels)

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return no guarantee."""
        return Guarantee.none("values are sent as they are", _USER)


class DiscreteCollector(ABC):
    """What collectors of classes share: the server's half."""

    __slots__ = ()
    classes: encoding.Discretiser | encoding.PrintedDiscretiser

    @abstractmethod
    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> encoding.ReportColumns:
        """Return the classes that are sent, and the label if one is."""

    def collect(self, records: ScaledRecords, columns: Sequence[int], source: Source) -> Collected:
        """Return what the reported classes stand for, and the reported labels."""
        return self.read(self.report(records, columns, source), columns)

    def possible(self, reported: encoding.ReportColumns, columns: Sequence[int]) -> Labels:
        """Return which rows have classes of their attributes."""
        sizes = np.array([self.classes.sizes[column] for column in columns])
        return np.asarray((reported.values < sizes).all(axis=1))

    def read(self, reported: encoding.ReportColumns, columns: Sequence[int]) -> Collected:
        """Return what classes stand for; a class that its attribute does not have is left out."""
        kept = reported.where(self.possible(reported, columns))
        features = self.classes.values(kept.values.astype(np.uint16), columns)
        if kept.labels is None:
            return Collected(features, np.zeros(len(features), np.bool_))
        return Collected(features, kept.labels == 1)


@dataclass(frozen=True, slots=True)
class WeakCollector(DiscreteCollector):
    """WA: the class of each value and the label, without noise; as printed in reproductions."""

    classes: encoding.Discretiser | encoding.PrintedDiscretiser
    name: str = "WA"

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that an attribute has, and two."""
        return max(self.classes.sizes), 2

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> encoding.ReportColumns:
        """Return the classes and the labels as they are."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        return encoding.ReportColumns(codes.astype(np.int64), records.labels.astype(np.int64))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return no guarantee, and why."""
        return Guarantee.none("classes are sent without noise", _USER)


@dataclass(frozen=True, slots=True)
class UnifiedCollector(DiscreteCollector):
    """WALDP, corrected: the unified response on the classes and the label.

    Attributes:
        classes: Of the attributes.
        epsilon: Of the record.
        with_label: Whether a label shares the budget. Nothing needs it at test time; without it
            each attribute has epsilon / K instead of epsilon / (K + 1).
    """

    classes: encoding.Discretiser
    epsilon: float
    with_label: bool = True
    name: str = "WALDP"

    def __post_init__(self) -> None:
        check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> encoding.UnifiedResponse:
        """Return the mechanism for some attributes."""
        chosen = encoding.check_columns(self.classes.schema, columns)
        sizes = tuple(self.classes.sizes[column] for column in chosen)
        return _unified((*sizes, 2) if self.with_label else sizes, self.epsilon)

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that an attribute has, and two or none."""
        return max(self.classes.sizes), 2 * self.with_label

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> encoding.ReportColumns:
        """Return responses about the classes, and about the labels if these are sent."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        if self.with_label:
            codes = np.column_stack([codes, records.labels.astype(np.uint16)])
        return to_report_columns(self.response(columns).randomise(codes, source), len(columns))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what the record costs."""
        return self.response(columns).guarantee()


@dataclass(frozen=True, slots=True)
class PrintedCollector:
    """WALDP to the letter of the paper, class 0 included; for audits and comparisons only."""

    classes: encoding.PrintedDiscretiser
    epsilon: float
    lies: encoding.Lies = "classes"
    name: str = "WALDP as printed"

    def __post_init__(self) -> None:
        check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> encoding.PrintedUnified:
        """Return the mechanism for some attributes."""
        sizes = tuple(self.classes.size(column) for column in columns)
        return encoding.PrintedUnified((*sizes, self.classes.most), self.epsilon, self.lies)

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that a value and the label have in reports, and class 0."""
        sizes = (self.classes.size(one) for one in range(len(self.classes.schema)))
        return max(sizes) + 1, self.classes.most + 1

    def collect(self, records: ScaledRecords, columns: Sequence[int], source: Source) -> Collected:
        """Return what the reported classes stand for; a label is negative below the middle."""
        return self.read(self.report(records, columns, source), columns)

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> encoding.ReportColumns:
        """Return responses about the printed classes of values and label."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        codes = np.column_stack([codes, self.classes.label_codes(records.labels)])
        return to_report_columns(self.response(columns).randomise(codes, source), len(columns))

    def possible(self, reported: encoding.ReportColumns, columns: Sequence[int]) -> Labels:
        """Return which rows have printed classes of their attributes, or class 0."""
        sizes = np.array([self.classes.size(column) for column in columns])
        return np.asarray((reported.values <= sizes).all(axis=1))

    def read(self, reported: encoding.ReportColumns, columns: Sequence[int]) -> Collected:
        """Return what the reported classes stand for; a label is negative below the middle."""
        kept = reported.where(self.possible(reported, columns))
        features = self.classes.values(kept.values.astype(np.uint16), columns)
        if kept.labels is None:
            return Collected(features, np.zeros(len(features), np.bool_))
        return Collected(features, np.asarray(2 * kept.labels > self.classes.most))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what the printed record costs."""
        return self.response(columns).guarantee()


def to_report_columns(reports: Reports, attributes: int) -> encoding.ReportColumns:
    """Return rows of classes, the label last where there is one, as reported."""
    rows = np.asarray(reports, dtype=np.int64)
    return encoding.ReportColumns(
        rows[:, :attributes], rows[:, -1] if rows.shape[1] > attributes else None
    )


@lru_cache(maxsize=64)
def _unified(sizes: tuple[int, ...], epsilon: float) -> encoding.UnifiedResponse:
    """Return the response on a record, once: its tables take longer to make than to use."""
    return encoding.UnifiedResponse(sizes, epsilon)


def check_positive(epsilon: float) -> None:
    """Refuse what no number of values can share; how many there are is known when they come."""
    if check_finite(epsilon, "epsilon") <= 0:
        raise BadParameter("epsilon", epsilon, "> 0")


@dataclass(frozen=True, slots=True)
class JointCollector(DiscreteCollector):
    """One response over the classes of some attributes and the label, with the whole epsilon.

    Attributes:
        classes: Of the attributes.
        epsilon: Of the record.
        with_label: Whether a label is part of the symbol; not so for a question.
    """

    classes: encoding.Discretiser
    epsilon: float
    with_label: bool = True
    name: str = "joint"

    def __post_init__(self) -> None:
        check_positive(self.epsilon)

    def response(self, columns: Sequence[int]) -> encoding.JointResponse:
        """Return the mechanism for some attributes, all of which are drawn."""
        chosen = encoding.check_columns(self.classes.schema, columns)
        sizes = tuple(self.classes.sizes[column] for column in chosen)
        return _joint(sizes, self.epsilon, self.with_label)

    def symbols(self, attributes: int) -> tuple[int, int]:
        """Return the most classes that an attribute has, and two or none."""
        return max(self.classes.sizes), 2 * self.with_label

    def report(
        self, records: ScaledRecords, columns: Sequence[int], source: Source
    ) -> encoding.ReportColumns:
        """Return the classes and the label that the answer stands for."""
        codes = self.classes.codes(records.values[:, list(columns)], columns)
        rows = encoding.joint_rows(codes, records.labels if self.with_label else None)
        reports = self.response(columns).randomise(rows, source)
        return to_report_columns(reports[:, len(columns) :], len(columns))

    def guarantee(self, columns: Sequence[int]) -> Guarantee:
        """Return what the record costs."""
        return self.response(columns).guarantee()


@lru_cache(maxsize=64)
def _joint(sizes: tuple[int, ...], epsilon: float, labelled: bool) -> encoding.JointResponse:
    return encoding.JointResponse(sizes, len(sizes), epsilon, labelled)
