"""Records as a learner sees them: numbers that follow from the public schema alone, and a label.

Every column but the label is written one-hot: a row has a one for the category or bin it lies in.
So features lie in [0, 1], all rows have the same length, and nothing is taken from the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BadTable
from noisefloor.randomness import Source
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Examples to learn from.

    Attributes:
        features: A row for each example, in [0, 1].
        labels: The class of each, from 0.
        classes: How many there are.
    """

    features: NDArray[np.float32]
    labels: NDArray[np.int64]
    classes: int

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or len(self.features) != len(self.labels):
            raise BadParameter("features", np.shape(self.features), "a row for each label")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Examples":
        return Examples(self.features[rows], self.labels[rows], self.classes)


@dataclass(frozen=True, slots=True)
class OneHot:
    """How records become examples; public, so that readers of a model can do the same.

    Attributes:
        schema: What the table may hold.
        label: The column to be predicted, one of the schema's.
    """

    schema: Schema
    label: str

    def __post_init__(self) -> None:
        self.schema.column(self.label)
        if len(self.schema.columns) < 2:
            raise BadParameter("label", self.label, "to leave at least one other column")

    @property
    def columns(self) -> tuple[str, ...]:
        """The feature columns, in the order of their features."""
        return tuple(name for name in self.schema.columns if name != self.label)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many features each of them has."""
        return tuple(self.schema.column(name).size for name in self.columns)

    @property
    def width(self) -> int:
        """How many features a row has."""
        return sum(self.sizes)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.schema.column(self.label).size

    def codes(self, records: Records) -> NDArray[np.int64]:
        """Return the place of each value in its column, a column of places for each column."""
        return np.column_stack([records.codes[name] for name in self.columns])

    def features(self, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the features of rows of places."""
        starts = np.cumsum([0, *self.sizes[:-1]])
        features = np.zeros((len(codes), self.width), dtype=np.float32)
        np.put_along_axis(features, codes + starts, np.float32(1), axis=1)
        return features

    def features_of(self, table: Mapping[str, Sequence[Any]]) -> NDArray[np.float32]:
        """Return the features of rows of values, a list or an array for each column.

        The label may be left out, and so may every column that is no feature.

        Raises:
            BadTable: A column is missing, has another length, or a value outside of the schema;
                the text names column, row and rule.
        """
        for name in self.columns:
            if name not in table:
                raise BadTable("table", "Expected this column.", name)
        values = {name: np.asarray(table[name]) for name in self.columns}
        if len({column.shape for column in values.values()}) > 1:
            raise BadTable("table", "Expected columns of one length, a value for each row.")
        codes = [
            self.schema.column(name).codes(column, "table", name)
            for name, column in values.items()
        ]
        return self.features(np.column_stack(codes))

    def examples(self, records: Records) -> Examples:
        """Return the examples of a table."""
        return Examples(
            self.features(self.codes(records)), records.codes[self.label], self.classes
        )


def folds(count: int, parts: int, source: Source) -> NDArray[np.int64]:
    """Return which of n parts each example is in; parts differ by one in size at most."""
    check_count(parts, "parts", most=check_count(count, "count"))
    return np.asarray(source.permutation(count) % parts)
