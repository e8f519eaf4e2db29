"""A table of records, read once and strictly: every row lies in the public domain."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadParameter, BadTable
from noisefloor.tables.declarations import SUFFIXES
from noisefloor.tables.schema import Codes, Schema, read_schema

MOST_ROWS = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The rows of a data set, with what is public of it.

    Attributes:
        schema: What is public.
        values: The columns of the schema as they were read.
        codes: The same as places in the domain of each column.
    """

    schema: Schema
    values: Mapping[str, NDArray[Any]]
    codes: Mapping[str, Codes]

    @classmethod
    def of(cls, table: Mapping[str, NDArray[Any]], schema: Schema, file: str) -> "Records":
        """Take the columns of a table, or raise BadTable with file, column and rule."""
        values = {name: table[name] for name in schema.columns}
        codes = {name: one.codes(values[name], file, name) for name, one in schema.columns.items()}
        for column in (*values.values(), *codes.values()):
            column.flags.writeable = False
        check_count(len(next(iter(codes.values()))), "rows", most=MOST_ROWS)
        return cls(schema, values, codes)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Records":
        return Records(
            self.schema,
            {name: column[rows] for name, column in self.values.items()},
            {name: column[rows] for name, column in self.codes.items()},
        )

    @property
    def count(self) -> int:
        """How many rows there are; private, where a record may be added or removed."""
        return len(next(iter(self.codes.values())))

    def counts(self, columns: tuple[str, ...]) -> NDArray[np.int64]:
        """Return how many rows lie in each cell of some columns, in a grid of their sizes."""
        shape = tuple(self.schema.column(name).size for name in columns)
        cells = np.ravel_multi_index(tuple(self.codes[name] for name in columns), shape)
        counted = np.bincount(cells, minlength=int(np.prod(shape)))
        return counted.reshape(shape).astype(np.int64)


def load_records(source: str | os.PathLike[str]) -> Records:
    """Load a data set by its name, or a file of one's own with its schema beside it.

    Args:
        source: A name of the registry, or a path that ends in .csv, .tsv or .parquet.

    Raises:
        UnknownDataSet: It is neither.
        MissingData: It was not fetched; the text says how.
        BadTable: A file breaks a rule; the text names file, column and rule.
    """
    # Lazy: a published model is evaluated without tables, and needs no reader of them.
    from noisefloor.tables.data_sets import find_data_set
    from noisefloor.tables.public_schemas import PUBLIC_SCHEMAS
    from noisefloor.tables.reading import is_table_file, load_table

    name = os.fspath(source)
    if is_table_file(name):
        schema = read_schema(schema_path(name))
        # Checked first: a reader of tables would only say that it is missing.
        if not Path(name).is_file():
            raise BadTable(name, "Expected a file, there is none of that name.")
    else:
        data_set = find_data_set(name)
        if data_set.name not in PUBLIC_SCHEMAS:
            known = ", ".join(PUBLIC_SCHEMAS)
            raise BadParameter("source", name, f"a file of one's own, or one of {known}")
        schema = PUBLIC_SCHEMAS[data_set.name]
    return Records.of(load_table(name, schema.columns), schema, name)


def schema_path(table: str | os.PathLike[str]) -> Path:
    """Return where the schema of a table lies: ``visits.schema.json`` beside ``visits.csv``.

    ``visits.schema.yaml`` is as good, where there is no other.
    """
    beside = [Path(table).with_suffix(f".schema{ending}") for ending in SUFFIXES]
    return next((one for one in beside if one.is_file()), beside[0])
