"""Records as bytes for an upload: of each value its place in the declared domain, and no more.

A row has one unsigned number for each column, in the order of the schema: one byte, or two
(little-endian) where the domain has more than 256 places. There is no header: the schema says how
long a row is. So there is one way to write a table, nothing to unpack, and an exact age does not
leave the data holder where only its bin is published from.
"""

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadTable
from noisefloor.tables.records import Records
from noisefloor.tables.schema import Schema

_ONE_BYTE = 1 << 8


def encode_records(records: Records) -> bytes:
    """Write records as bytes; the same rows in the same order give the same bytes."""
    rows = np.empty(records.count, dtype=_row_type(records.schema))
    for name, codes in records.codes.items():
        rows[name] = codes
    return rows.tobytes()


def decode_records(data: bytes, schema: Schema) -> Records:
    """Read records that have only codes, or raise BadTable; its text never holds a value."""
    row_type = _row_type(schema)
    if not data or len(data) % row_type.itemsize:
        rule = f"Expected one row or more of {row_type.itemsize} bytes, found a rest."
        raise BadTable("records", rule)
    rows: NDArray[np.void] = np.frombuffer(data, dtype=row_type)
    codes = {name: rows[name].astype(np.int64) for name in schema.columns}
    for name, column in schema.columns.items():
        if codes[name].max() >= column.size:
            raise BadTable("records", f"Expected places below {column.size} in every row.", name)
        codes[name].flags.writeable = False
    return Records(schema, {}, codes)


def _row_type(schema: Schema) -> np.dtype[np.void]:
    """Return the type of one row; numpy packs its fields without padding."""
    return np.dtype(
        [
            (name, "u1" if column.size <= _ONE_BYTE else "<u2")
            for name, column in schema.columns.items()
        ]
    )
