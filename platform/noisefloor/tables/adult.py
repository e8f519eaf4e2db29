"""UCI Adult as a table to learn from: complete rows, and public bins fine enough to learn by.

Bins are round numbers: five years of age, the working week of forty hours by itself, thousands of
dollars gained, hundreds of dollars lost up to the 3,000 that may be deducted a year. No edge was
fitted to the records. Left out are ``fnlwgt``, a weight of the sample, and ``educational-num``,
which by the documentation is ``education`` as a number; ``EVERY_COLUMN`` has them, too.
"""

from collections.abc import Mapping

import numpy as np

from noisefloor.tables.public_schemas import PUBLIC_SCHEMAS
from noisefloor.tables.reading import load_table
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Bins, Categories, ColumnDomain, Schema

NAME, LABEL, UNKNOWN = "adult", "income", "?"
WEIGHT, NUMBER = "fnlwgt", "educational-num"
SIZE = 45_222
"""Complete records, as everybody prints it; what divides sums is declared, not counted."""

_BINS: dict[str, ColumnDomain] = {
    "age": Bins((0, *range(20, 81, 5), 150)),
    "capital-gain": Bins((0, 1, *range(1_000, 10_001, 1_000), 15_000, 20_000, 50_000, 100_000)),
    "capital-loss": Bins((0, 1, 1_000, *range(1_500, 3_001, 100), 5_000)),
    "hours-per-week": Bins((0, 10, 20, 30, 35, 40, 41, 45, 50, 55, 60, 70, 100)),
}

_WEIGHTS = Bins((0, *range(50_000, 400_001, 50_000), 600_000, 2_000_000))


def _known(column: ColumnDomain) -> ColumnDomain:
    """Return the column without the sign for what is not known."""
    if isinstance(column, Categories) and UNKNOWN in column.values:
        return Categories(tuple(value for value in column.values if value != UNKNOWN))
    return column


def _schema(columns: Mapping[str, ColumnDomain]) -> Schema:
    return Schema(
        PUBLIC_SCHEMAS[NAME].record,
        {name: _BINS.get(name, _known(column)) for name, column in columns.items()},
    )


_PUBLIC = PUBLIC_SCHEMAS[NAME].columns

LEARNING_SCHEMA = _schema({name: one for name, one in _PUBLIC.items() if name != NUMBER})
"""Twelve columns to learn from, and the label."""

EVERY_COLUMN = _schema({WEIGHT: _WEIGHTS, **_PUBLIC})
"""All fourteen columns that papers count, and the label."""


def load_adult(schema: Schema = LEARNING_SCHEMA) -> Records:
    """Load the complete rows by a schema: each row is kept or dropped by itself.

    Raises:
        MissingData: The data set was not fetched; the text says how.
    """
    table = load_table(NAME, schema.columns)
    texts = [column for column in table.values() if column.dtype.kind not in "iuf"]
    complete = np.all([column != UNKNOWN for column in texts], axis=0)
    return Records.of({name: one[complete] for name, one in table.items()}, schema, NAME)
