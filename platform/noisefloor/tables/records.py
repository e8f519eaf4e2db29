"""A table of records, read once and strictly: every row lies in the public domain."""

import json
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
    from noisefloor.tables.reading import load_table

    name, schema = os.fspath(source), load_schema(source)
    return Records.of(load_table(name, schema.columns), schema, name)


def load_schema(source: str | os.PathLike[str]) -> Schema:
    """Return what is public of a data set by its name, or of a file by the schema beside it.

    Where a file has none, BadTable says what to write. It is never made from the rows: what a
    column may hold would publish what it holds.
    """
    from noisefloor.tables.data_sets import find_data_set
    from noisefloor.tables.public_schemas import PUBLIC_SCHEMAS
    from noisefloor.tables.reading import is_table_file

    if is_table_file(source):
        return _schema_beside(source)
    name = find_data_set(os.fspath(source)).name
    if name not in PUBLIC_SCHEMAS:
        known = ", ".join(PUBLIC_SCHEMAS)
        raise BadParameter("source", name, f"a file of one's own, or one of {known}")
    return PUBLIC_SCHEMAS[name]


def _schema_beside(table: str | os.PathLike[str]) -> Schema:
    name, path = os.fspath(table), schema_path(table)
    # Checked first: a reader of schemas would only say that the schema is missing.
    if not Path(name).is_file():
        raise BadTable(name, "Expected a file, there is none of that name.")
    if not path.is_file():
        raise BadTable(name, f"Expected a schema beside it, {path.name}. {_example(name)}")
    return read_schema(path)


def _example(name: str) -> str:
    """Return what to write into a schema: the columns of a file, their values left open."""
    from noisefloor.tables.reading import column_names

    names = column_names(name)
    if not names or any(_is_number(one) for one in names):
        return "The table's first row has to hold the names of its columns."
    columns: dict[str, Any] = {one: {"categories": ["..."]} for one in names}
    shown = json.dumps({"record": "one ...", "columns": columns, "label": names[-1]})
    return (
        "Write it by what is public, not by the rows: every value that a column may hold, or "
        f'{{"bins": [low, ..., high]}} or {{"range": [low, high]}} for numbers: {shown}'
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def schema_path(table: str | os.PathLike[str]) -> Path:
    """Return where the schema of a table lies: ``visits.schema.json`` beside ``visits.csv``.

    ``visits.schema.yaml`` is as good, where there is no other.
    """
    beside = [Path(table).with_suffix(f".schema{ending}") for ending in SUFFIXES]
    return next((one for one in beside if one.is_file()), beside[0])
