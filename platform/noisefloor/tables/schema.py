"""What a table may hold, declared in public: the categories or the bins of each column.

A domain that was taken from the data would publish the data. So it is declared beforehand, and a
row outside of it is an error at the start, never a new category.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter, BadTable
from noisefloor.tables.declarations import DeclaredColumn, declaration_of, read_document

MOST_VALUES = 1 << 16
RANGE_BINS = 16
"""How many equal bins a range is cut into."""

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Categories:
    """A column that holds one of some values: all texts, or all whole numbers.

    Attributes:
        values: In the order of their codes, each once.
    """

    values: tuple[str | int, ...]

    def __post_init__(self) -> None:
        kinds = {type(value) for value in self.values}
        if kinds not in ({str}, {int}):
            raise BadParameter("categories", "<values>", "all texts, or all whole numbers")
        if not len(set(self.values)) == len(self.values) <= MOST_VALUES:
            rule = f"each once, at most {MOST_VALUES}"
            raise BadParameter("categories", "<values>", rule)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.values)

    @property
    def fields(self) -> dict[str, Any]:  # Any: JSON
        """The declaration, as a schema file has it."""
        return {"categories": list(self.values)}

    def codes(self, column: NDArray[Any], file: str, name: str) -> Codes:
        """Return the place of each value, or say in which row another one stands."""
        wants_text = isinstance(self.values[0], str)
        if wants_text != (column.dtype.kind not in "iu"):
            kind = "texts" if wants_text else "whole numbers"
            raise BadTable(file, f"Expected {kind}, as its categories are.", name)
        distinct, place = np.unique(column, return_inverse=True)
        known = {value: code for code, value in enumerate(self.values)}
        codes = np.array([known.get(value, -1) for value in distinct.tolist()], dtype=np.int64)
        return _checked(codes[place], f"one of its {self.size} categories", file, name)


@dataclass(frozen=True, slots=True)
class Bins:
    """A column of numbers, cut at public edges.

    Attributes:
        edges: Rising. A bin holds its lower edge; the last one holds its upper edge too.
    """

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MOST_VALUES:
            raise BadParameter("bins", "<edges>", f"two edges at least, {MOST_VALUES} at most")
        if not all(_is_number(edge) for edge in self.edges):
            raise BadParameter("bins", "<edges>", "finite numbers")
        if not all(low < high for low, high in pairwise(self.edges)):
            raise BadParameter("bins", "<edges>", "to rise")

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.edges) - 1

    @property
    def fields(self) -> dict[str, Any]:  # Any: JSON
        """The declaration, as a schema file has it."""
        return {"bins": list(self.edges)}

    def codes(self, column: NDArray[Any], file: str, name: str) -> Codes:
        """Return the bin of each value, or say in which row one lies outside."""
        if column.dtype.kind not in "iuf":
            raise BadTable(file, "Expected numbers, since it has bins.", name)
        codes = np.searchsorted(self.edges, column, side="right") - 1
        codes[column == self.edges[-1]] = self.size - 1
        codes[column > self.edges[-1]] = -1
        rule = f"a number in [{self.edges[0]:g}, {self.edges[-1]:g}]"
        return _checked(codes.astype(np.int64), rule, file, name)


ColumnDomain: TypeAlias = Categories | Bins


@dataclass(frozen=True, slots=True)
class Schema:
    """What a table may hold.

    Attributes:
        record: What one row is, in words: that is what is protected. ``one visit``.
        columns: The domain of each column by its name; a name holds no comma.
        label: The column that is predicted by default, or nothing.
    """

    record: str
    columns: Mapping[str, ColumnDomain]
    label: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.record, str) or not 0 < len(self.record) <= 200:
            raise BadParameter("record", "<text>", "a text of at most 200 signs")
        if not self.columns:
            raise BadParameter("columns", "<none>", "at least one")
        for name in self.columns:
            if not isinstance(name, str) or not 0 < len(name) <= 100 or "," in name:
                raise BadParameter("columns", "<name>", "names of at most 100 signs, no comma")
        if self.label and self.label not in self.columns:
            raise BadParameter("label", "<text>", "one of the columns")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    def column(self, name: str) -> ColumnDomain:
        """Return a column, or say which there are."""
        if name not in self.columns:
            raise BadParameter("columns", "<text>", f"some of {', '.join(self.columns)}")
        return self.columns[name]


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a schema file: JSON or YAML with ``record``, ``columns`` and perhaps ``label``.

    A column is ``{"categories": [...]}``, ``{"bins": [edge, edge, ...]}`` or ``{"range": [low,
    high]}``, which is cut into RANGE_BINS equal bins; see ``noisefloor.tables.declarations``.

    Raises:
        BadTable: Which file, which column and which rule.
    """
    name = os.fspath(path)
    return schema_of(read_document(name), name)


def schema_of(payload: object, where: str = "schema") -> Schema:
    """Make a schema of what ``schema_fields`` returned, or raise BadTable."""
    said = declaration_of(payload, where)
    columns = {name: _column(where, name, one) for name, one in said.columns.items()}
    try:
        return Schema(said.record, columns, said.label.name if said.label else "")
    except BadParameter as error:
        raise BadTable(where, f"Expected {error.name}: {error.rule}.") from None


def schema_fields(schema: Schema) -> dict[str, Any]:  # Any: JSON
    """Return what a schema file holds."""
    columns = {name: column.fields for name, column in schema.columns.items()}
    label = {"label": schema.label} if schema.label else {}
    return {"record": schema.record, "columns": columns, **label}


def _column(file: str, name: str, payload: DeclaredColumn) -> ColumnDomain:
    if payload.kind == "text":
        rule = "Expected categories, bins or a range; texts are for models of texts alone."
        raise BadTable(file, rule, name)
    try:
        if payload.kind == "categories":
            return Categories(payload.values)
        return Bins(payload.values if payload.kind == "bins" else _cut(*payload.values))
    except (BadParameter, TypeError) as error:
        why = error.rule if isinstance(error, BadParameter) else "texts or numbers"
        raise BadTable(file, f"Expected {payload.kind}: {why}.", name) from None


def _cut(low: float, high: float) -> tuple[float, ...]:
    """Cut a range into equal bins; the last edge is exactly its end."""
    return (*(low + (high - low) * part / RANGE_BINS for part in range(RANGE_BINS)), high)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def _checked(codes: Codes, rule: str, file: str, name: str) -> Codes:
    """Return codes of which none is -1; the error names the row and never the value."""
    outside = codes < 0
    if outside.any():
        row = int(np.argmax(outside)) + 1
        raise BadTable(file, f"Expected {rule} in every row, found another in row {row}.", name)
    return codes
