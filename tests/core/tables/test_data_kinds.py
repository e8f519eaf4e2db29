"""Tables of categories and of texts go through one door, and uploads give the same records."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadTable
from noisefloor.tables import (
    Categories,
    Records,
    Schema,
    TextRecords,
    TextSchema,
    data_schema_digest,
    data_schema_fields,
    data_schema_of,
    decode_data,
    encode_data,
    load_data,
    load_data_schema,
)
from own_tables import write_visits
from properties import examples

PAIR = TextSchema("a pair", {"a": 4, "b": 8}, "kind", Categories(("x", "y", "z")))
ROW = b"\x02\x00" + b"\x01\x00\x00\x00p" + b"\x02\x00\x00\x00\xc3\xa9"


def test_a_schema_says_of_which_kind_a_table_is(tmp_path: Path) -> None:
    assert isinstance(load_data(write_visits(tmp_path)), Records)
    path = tmp_path / "pairs.csv"
    path.write_text("a,b,kind\np,q,z\n")
    path.with_suffix(".schema.json").write_text(json.dumps(data_schema_fields(PAIR)))
    assert load_data_schema(path) == PAIR
    assert isinstance(load_data(path), TextRecords)
    assert isinstance(data_schema_of(data_schema_fields(PAIR)), TextSchema)
    assert isinstance(load_data_schema("imdb"), TextSchema)
    assert isinstance(load_data_schema("adult"), Schema)
    assert data_schema_digest(PAIR) != data_schema_digest(load_data_schema("imdb"))
    with pytest.raises(BadTable, match="Expected a schema beside it"):
        path.with_suffix(".schema.json").unlink()
        load_data(path)
    with pytest.raises(BadTable, match="there is none of that name"):
        load_data(tmp_path / "none.csv")


_TEXTS = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: f"w{text}")


@examples(30)
@given(st.lists(st.tuples(_TEXTS, _TEXTS, st.integers(0, 2)), min_size=1, max_size=6))
def test_uploaded_texts_are_what_they_were(rows: list[tuple[str, str, int]]) -> None:
    first, second, labels = zip(*rows, strict=True)
    names = np.asarray(["x", "y", "z"], dtype=object)[list(labels)]
    records = TextRecords.of({"a": first, "b": second, "kind": names}, PAIR, "rows")
    again = decode_data(encode_data(records), PAIR)
    assert isinstance(again, TextRecords)
    assert again.texts["a"].tolist() == list(first)
    assert again.texts["b"].tolist() == list(second)
    assert again.labels.tolist() == list(labels)


def test_one_row_is_class_lengths_and_texts() -> None:
    records = decode_data(ROW, PAIR)
    assert isinstance(records, TextRecords)
    assert (records.texts["a"][0], records.texts["b"][0]) == ("p", "é")
    assert encode_data(records) == ROW


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "at least one row"),
        (ROW[:-1], "row 1 cut off"),
        (ROW + ROW[:4], "row 2 cut off"),
        (ROW + b"\x01", "row 2 cut off"),
        (b"\x03" + ROW[1:], "column 'kind': Expected places below 3"),
        (ROW[:-1] + b"\xff", "UTF-8, found other bytes in row 1"),
        (ROW.replace(b"p", b" "), "column 'a': .* an empty one in row 1"),
        (b"\x00\x00\xff\xff\xff\xff", "row 1 cut off"),
    ],
)
def test_bytes_that_are_no_rows_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(BadTable, match=said):
        decode_data(data, PAIR)
