"""What owners tell when they train or ask: an integer for each attribute, and for the label.

What the integers mean is the collector's business: classes, or cells of a line.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Array, check_count
from noisefloor.wire.columns import Column, Integers
from noisefloor.wire.kinds import Kind, record_kind

TOLD_VALUES = "told-values"
"""The kind of what is told in training."""

QUERY_VALUES = "query-values"
"""The kind of what is told of a record that is asked about."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
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
    def of(cls, columns: Mapping[str, Array]) -> "Told":
        """Return what ``columns`` was called on."""
        labels = columns.get("label")
        count = len(columns) - (labels is not None)
        values = np.column_stack([columns[f"value_{place + 1}"] for place in range(count)])
        return cls(values.astype(np.int64), None if labels is None else labels.astype(np.int64))

    def where(self, kept: NDArray[np.bool_]) -> "Told":
        """Return some of the rows."""
        return Told(self.values[kept], None if self.labels is None else self.labels[kept])


def told_values_kind(chosen: int, values: int, labels: int) -> Kind:
    """Make the kind of what is told in training.

    Args:
        chosen: Attributes that are told of.
        values: How many integers a value is one of.
        labels: How many the label is one of; 0 where none is sent.
    """
    return _kind(TOLD_VALUES, chosen, values, labels)


def query_values_kind(chosen: int, values: int, labels: int) -> Kind:
    """Make the kind of what is told of a record that is asked about; see ``told_values_kind``."""
    return _kind(QUERY_VALUES, chosen, values, labels)


def _kind(name: str, chosen: int, values: int, labels: int) -> Kind:
    check_count(chosen, "chosen")
    columns: dict[str, Column] = {
        f"value_{place + 1}": Integers(0, values - 1) for place in range(chosen)
    }
    return record_kind(name, columns | ({"label": Integers(0, labels - 1)} if labels else {}))
