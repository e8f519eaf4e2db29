"""What owners tell when they train or ask: an integer for each attribute, and for the label.

What the integers mean is the collector's business: classes, or cells of a line.

The kind of frame that carries joint responses, and records as the response takes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, check_count
from noisefloor.collection.encoding.discretisation import Codes
from noisefloor.mechanisms import Reports
from noisefloor.tables import Labels
from noisefloor.wire import Column, Integers, Kind, Symbols, record_kind

JOINT_ROWS = "joint-rows"
"""The kind's name."""


def joint_rows(codes: Codes, labels: Labels | None = None) -> NDArray[np.uint16]:
    """Return classes and labels side by side, as ``JointResponse.randomise`` takes them."""
    if labels is None:
        return codes
    return np.column_stack([codes, labels.astype(np.uint16)])


def joint_rows_kind(attributes: int, classes: int, chosen: int, labels: int = 2) -> Kind:
    """Make the kind of joint responses: attributes drawn, a class for each, and the label.

    Args:
        attributes: How many there are to draw from.
        classes: The most that one of them has.
        chosen: How many an owner draws.
        labels: How many classes the label has.
    """
    check_count(chosen, "chosen", most=attributes)
    domains = [*[Symbols(attributes)] * chosen, *[Symbols(classes)] * chosen, Symbols(labels)]
    return record_kind(JOINT_ROWS, dict(zip(_names(chosen), domains, strict=True)))


def columns_of(reports: Reports) -> dict[str, Array]:
    """Return labelled reports as the columns of their kind."""
    return dict(zip(_names(reports.shape[1] // 2), np.asarray(reports).T, strict=True))


def reports_of(columns: Mapping[str, Array]) -> NDArray[np.uint16]:
    """Return what ``columns_of`` was given; ``check_reports`` says whether it is in the domain."""
    rows = [columns[name] for name in _names(len(columns) // 2)]
    return np.column_stack(rows).astype(np.uint16)


def _names(chosen: int) -> list[str]:
    places = range(1, chosen + 1)
    return [*(f"attribute_{one}" for one in places), *(f"class_{one}" for one in places), "label"]


TRAINING_VALUES = "told-values"
"""The kind of training reports."""

QUERY_VALUES = "query-values"
"""The kind of reports of a query."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportColumns:
    """What owners sent, a row for each.

    Attributes:
        values: An integer for each attribute.
        labels: One for the label, or nothing where none is sent.
    """

    values: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def columns(self) -> dict[str, Array]:
        """Return the columns of their kind."""
        parts = {f"value_{place + 1}": column for place, column in enumerate(self.values.T)}
        return parts if self.labels is None else {**parts, "label": self.labels}

    @classmethod
    def of(cls, columns: Mapping[str, Array]) -> "ReportColumns":
        """Return what ``columns`` was called on."""
        labels = columns.get("label")
        count = len(columns) - (labels is not None)
        values = np.column_stack([columns[f"value_{place + 1}"] for place in range(count)])
        return cls(values.astype(np.int64), None if labels is None else labels.astype(np.int64))

    def where(self, kept: NDArray[np.bool_]) -> "ReportColumns":
        """Return some of the rows."""
        return ReportColumns(self.values[kept], None if self.labels is None else self.labels[kept])


def training_values_kind(chosen: int, values: int, labels: int) -> Kind:
    """Make the kind of training reports.

    Args:
        chosen: Attributes that are reported.
        values: How many integers a value is one of.
        labels: How many the label is one of; 0 where none is sent.
    """
    return _kind(TRAINING_VALUES, chosen, values, labels)


def query_values_kind(chosen: int, values: int, labels: int) -> Kind:
    """Make the kind of query reports; see ``training_values_kind``."""
    return _kind(QUERY_VALUES, chosen, values, labels)


def _kind(name: str, chosen: int, values: int, labels: int) -> Kind:
    check_count(chosen, "chosen")
    columns: dict[str, Column] = {
        f"value_{place + 1}": Integers(0, values - 1) for place in range(chosen)
    }
    return record_kind(name, columns | ({"label": Integers(0, labels - 1)} if labels else {}))
