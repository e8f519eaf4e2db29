"""Kinds of frame: which columns a report has, and how reports of that kind are reduced.

There are two reductions: ``sum`` (integer cells that add up) and ``collect`` (rows that are kept).
A pipeline declares its kind beside its mathematics with one of the builders below; code that
aggregates knows kinds only, and no pipeline.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from noisefloor.checks import Array
from noisefloor.errors import BadFrame, BadParameter, OutOfDomain
from noisefloor.wire.columns import MOST_CELLS, Bits, Column, Integers, Symbols, Tally

_KIND_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)

LINKING_WORDS = frozenset(
    "user device address ip agent cookie session client account time timestamp date".split()
)
"""A column whose name has one of these words could tie a report to a person: it is refused."""


class Reduction(Enum):
    """What becomes of reports: integer sums, or rows that are kept."""

    SUM = "sum"
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of frame holds, exactly.

    Attributes:
        name: Lower-case letters, digits and hyphens, at most 32.
        columns: Their names and domains, in order.
        reduction: What the aggregator does with the rows.
        schema: The exact Arrow schema; no column may hold nulls.
    """

    name: str
    columns: tuple[tuple[str, Column], ...]
    reduction: Reduction = Reduction.SUM
    schema: pa.Schema = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not _KIND_NAME.fullmatch(self.name):
            raise BadParameter("name", self.name, f"to match {_KIND_NAME.pattern}")
        names = [name for name, _ in self.columns]
        if not names or len(set(names)) < len(names):
            raise BadParameter("columns", names, "to be at least one, each named once")
        for name in names:
            _check_column_name(name)
        if self.reduction is Reduction.SUM:
            _check_summable(self.columns)
        fields = [pa.field(name, column.type, nullable=False) for name, column in self.columns]
        object.__setattr__(self, "schema", pa.schema(fields))

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def cells(self) -> int:
        """How many integers a tally of this kind has; 0 if it is collected."""
        if self.reduction is Reduction.COLLECT:
            return 0
        return sum(column.cells for _, column in self.columns)

    @property
    def row_bytes(self) -> int:
        """The most bytes that one row takes."""
        return sum(column.row_bytes for _, column in self.columns)

    @property
    def sensitivity(self) -> int:
        """The most that one report changes what is released: the sum of changes over all cells.

        Of a kind that is collected, 1: a report is one row of the answer.
        """
        if self.reduction is Reduction.COLLECT:
            return 1
        return sum(column.sensitivity for _, column in self.columns)

    def encode(self, reports: object) -> pa.RecordBatch:
        """Return reports as a batch: a mapping of columns, or the values of the only column."""
        given = reports if isinstance(reports, Mapping) else self._only_column(reports)
        if set(given) != {name for name, _ in self.columns}:
            raise OutOfDomain(f"Expected the columns of {self.name}, each of them and no other.")
        arrays = [column.encode(given[name]) for name, column in self.columns]
        if len({len(array) for array in arrays}) > 1:
            raise OutOfDomain(f"Expected columns of {self.name} of one length.")
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise BadFrame unless the batch has exactly the schema and obeys every rule."""
        if not batch.schema.equals(self.schema):
            raise BadFrame("schema", f"is not that of {self.name}")
        for array, (name, column) in zip(batch.columns, self.columns, strict=True):
            rule = "has nulls" if array.null_count else column.broken_rule(array)
            if rule:
                raise BadFrame(name, rule)

    def tally(self, batch: pa.RecordBatch) -> Tally:
        """Return the integer sums of a checked batch, the columns' one after the other."""
        if self.reduction is not Reduction.SUM:
            raise BadParameter("kind", self.name, "to be one that is summed")
        pairs = zip(batch.columns, self.columns, strict=True)
        return np.concatenate([column.tally(array) for array, (_, column) in pairs])

    def decode(self, batch: pa.RecordBatch) -> dict[str, Array]:
        """Return the values of every column of a checked batch."""
        pairs = zip(batch.columns, self.columns, strict=True)
        return {name: column.decode(array) for array, (name, column) in pairs}

    def rows(self, batch: pa.RecordBatch) -> Array:
        """Return the reports of a kind of one column, as they were given to ``encode``."""
        if len(self.columns) != 1:
            raise BadParameter("kind", self.name, "to have one column; use decode")
        return self.columns[0][1].decode(batch.column(0))

    def _only_column(self, values: object) -> dict[str, object]:
        if len(self.columns) != 1:
            raise OutOfDomain(f"Expected a mapping of the columns of {self.name}.")
        return {self.columns[0][0]: values}


def bit_vector_kind(name: str, size: int) -> Kind:
    """Make the kind whose reports are rows of ``size`` bits; the tally is the ones per place."""
    return Kind(name, (("bits", Bits(size)),))


def symbol_kind(name: str, size: int) -> Kind:
    """Make the kind whose reports are integers in range(size); the tally counts each."""
    return Kind(name, (("symbol", Symbols(size)),))


def grid_kind(name: str, low: int, high: int) -> Kind:
    """Make the kind whose reports are integers in [low, high]; the tally is their sum."""
    return Kind(name, (("value", Integers(low, high)),))


def record_kind(name: str, columns: Mapping[str, Column]) -> Kind:
    """Make the kind whose reports are records that are collected, not summed."""
    return Kind(name, tuple(columns.items()), Reduction.COLLECT)


def joined(kind: Kind, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return checked batches of a kind as one, which has no rows if there are none."""
    return pa.concat_batches([_empty(kind), *batches])


@lru_cache(maxsize=256)
def _empty(kind: Kind) -> pa.RecordBatch:
    none = [pa.array([], type=field.type) for field in kind.schema]
    return pa.RecordBatch.from_arrays(none, schema=kind.schema)


def row_order(batch: pa.RecordBatch, *keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order that sorts rows by the keys and then by content.

    Rows in this order are a multiset: the order of arrival is lost.
    """
    arrays = [*(pa.array(key) for key in keys), *batch.columns]
    names = [str(place) for place in range(len(arrays))]
    table = pa.RecordBatch.from_arrays(arrays, names=names)
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
    return np.asarray(order.to_numpy(), dtype=np.int64)


def sorted_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in the order of their content."""
    return batch.take(pa.array(row_order(batch)))


def _check_column_name(name: str) -> None:
    if not _COLUMN_NAME.fullmatch(name):
        raise BadParameter("column", name, f"to match {_COLUMN_NAME.pattern}")
    if LINKING_WORDS & set(name.split("_")):
        raise BadParameter("column", name, "to name nothing that ties a report to a person")


def _check_summable(columns: tuple[tuple[str, Column], ...]) -> None:
    for name, column in columns:
        if not 1 <= column.cells <= MOST_CELLS:
            raise BadParameter("column", name, f"to have 1 to {MOST_CELLS} cells to be summed")
