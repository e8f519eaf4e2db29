"""Records as bytes: one way to write them, places in the declared domain, and nothing else."""

import numpy as np
import pytest

from noisefloor.errors import BadTable
from noisefloor.tables import Records
from noisefloor.tables.coded_records import decode_records, encode_records
from noisefloor.tables.schema import schema_of

SCHEMA = schema_of(
    {
        "record": "one visit",
        "columns": {
            "age": {"bins": [*range(400)]},
            "pages": {"bins": [*range(257)]},
            "buys": {"categories": ["no", "yes"]},
        },
    }
)
TABLE = {
    "age": np.array([0.5, 398.9]),
    "pages": np.array([2.5, 255.5]),
    "buys": np.array(["yes", "no"], dtype=object),
}


def test_a_row_has_a_byte_for_each_column_and_two_where_256_places_do_not_suffice() -> None:
    records = Records.of(TABLE, SCHEMA, "table")
    data = encode_records(records)
    assert data == bytes([0, 0, 2, 1]) + (398).to_bytes(2, "little") + bytes([255, 0])
    again = decode_records(data, SCHEMA)
    assert again.count == 2
    for name, column in records.codes.items():
        assert again.codes[name].tolist() == column.tolist()
        assert again.codes[name].dtype == column.dtype
    assert encode_records(again) == data
    assert encode_records(records[np.array([1])]) == data[4:]
    assert not again.values  # 398.9 was not sent, its bin was


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "one row or more of 4 bytes"),
        (bytes(7), "one row or more of 4 bytes"),
        ((399).to_bytes(2, "little") + bytes(2), "column 'age': Expected places below 399"),
        (bytes([0, 0, 0, 2]), "column 'buys': Expected places below 2"),
    ],
)
def test_bytes_that_are_no_rows_of_the_schema_are_refused(data: bytes, rule: str) -> None:
    with pytest.raises(BadTable, match=rule):
        decode_records(data, SCHEMA)
