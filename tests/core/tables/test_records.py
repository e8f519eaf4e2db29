"""Tables are read by a public schema: what lies outside is told by file, column and rule."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from noisefloor.errors import BadParameter, BadTable, MissingData, UnknownDataSet
from noisefloor.tables import Bins, Categories, Schema, load_records, read_schema, schema_path

SCHEMA = {
    "record": "one visit",
    "columns": {
        "country": {"categories": ["CH", "DE", "AT"]},
        "page": {"categories": [3, 1, 2]},
        "age": {"bins": [0, 18, 65, 120]},
    },
}
ROWS = ["CH,1,17,x", "DE,3,18,x", "DE,2,120,x", "AT,1,0,x"]


def own(folder: Path, rows: list[str] = ROWS, schema: Any = SCHEMA) -> Path:
    path = folder / "visits.csv"
    path.write_text("\n".join(["country,page,age,unused", *rows, ""]))
    text = schema if isinstance(schema, str) else json.dumps(schema)
    schema_path(path).write_text(text)
    return path


def test_values_become_places_in_the_public_domain(tmp_path: Path) -> None:
    records = load_records(own(tmp_path))
    assert schema_path(tmp_path / "visits.csv").name == "visits.schema.json"
    assert records.schema.record == "one visit"
    assert records.codes["country"].tolist() == [0, 1, 1, 2]
    assert records.codes["page"].tolist() == [1, 0, 2, 1]
    assert records.codes["age"].tolist() == [0, 1, 2, 0]
    assert set(records.values) == {"country", "page", "age"}
    counts = records.counts(("country", "age"))
    assert counts.tolist() == [[1, 0, 0], [0, 1, 1], [1, 0, 0]]
    assert records.counts(("page",)).tolist() == [1, 2, 1]
    with pytest.raises(ValueError):
        records.codes["age"][0] = 1


@pytest.mark.parametrize(
    ("row", "column", "rule"),
    [
        ("FR,1,20,x", "country", "one of its 3 categories in every row, found another in row 5"),
        ("CH,9,20,x", "page", "one of its 3 categories in every row, found another in row 5"),
        ("CH,1,121,x", "age", r"a number in \[0, 120\] in every row, found another in row 5"),
        ("CH,1,-1,x", "age", r"a number in \[0, 120\] in every row, found another in row 5"),
        ("CH,1,nan,x", "age", "a value in every row, found none in row 5"),
        ("CH,1,,x", "age", "a value in every row, found none in row 5"),
        ("CH,1,old,x", "age", "Expected numbers, since it has bins"),
        ("CH,one,20,x", "page", "Expected whole numbers, as its categories are"),
        ("CH,1.5,20,x", "page", "Expected whole numbers, as its categories are"),
    ],
)
def test_a_row_outside_names_file_column_and_rule(
    tmp_path: Path, row: str, column: str, rule: str
) -> None:
    with pytest.raises(BadTable, match=rf"visits\.csv: column '{column}': .*{rule}") as caught:
        load_records(own(tmp_path, [*ROWS, row]))
    assert not {"FR", "121", "old", "1.5"} & set(str(caught.value).split())


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    columns = {**SCHEMA["columns"], "town": {"categories": ["A"]}}  # type: ignore[dict-item]
    with pytest.raises(BadTable, match="column 'town': Expected this column, it is missing"):
        load_records(own(tmp_path, schema={**SCHEMA, "columns": columns}))


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ("{", "Expected JSON"),
        ("[" * 10_000, "Expected JSON"),
        ([], "record and columns"),
        ({"record": "x"}, "record and columns"),
        ({**SCHEMA, "more": 1}, "record and columns"),
        ({**SCHEMA, "record": 3}, "record: a text"),
        ({**SCHEMA, "columns": []}, "columns to be an object"),
        ({**SCHEMA, "columns": {}}, "columns: at least one"),
        ({**SCHEMA, "columns": {"a,b": {"bins": [0, 1]}}}, "no comma"),
        ({**SCHEMA, "columns": {"a": [0, 1]}}, "column 'a': Expected {"),
        ({**SCHEMA, "columns": {"a": {"values": []}}}, "column 'a': Expected {"),
        ({**SCHEMA, "columns": {"a": {"bins": [0], "categories": []}}}, "column 'a': Expected {"),
        ({**SCHEMA, "columns": {"a": {"categories": []}}}, "column 'a': .* all texts"),
        ({**SCHEMA, "columns": {"a": {"categories": ["x", 1]}}}, "column 'a': .* all texts"),
        ({**SCHEMA, "columns": {"a": {"categories": [True]}}}, "column 'a': .* texts or numbers"),
        ({**SCHEMA, "columns": {"a": {"categories": [["x"]]}}}, "column 'a': .* texts or num"),
        ({**SCHEMA, "columns": {"a": {"categories": ["x", "x"]}}}, "column 'a': .* each once"),
        ({**SCHEMA, "columns": {"a": {"bins": [1]}}}, "column 'a': .* two edges"),
        ({**SCHEMA, "columns": {"a": {"bins": [1, 1]}}}, "column 'a': .* to rise"),
        ({**SCHEMA, "columns": {"a": {"bins": [0, "1"]}}}, "column 'a': .* finite numbers"),
        ({**SCHEMA, "columns": {"a": {"bins": [0, 1e999]}}}, "column 'a': .* finite numbers"),
    ],
)
def test_a_bad_schema_names_its_file_and_its_rule(tmp_path: Path, schema: Any, rule: str) -> None:
    with pytest.raises(BadTable, match=rf"(?s)visits\.schema\.json: .*{rule}"):
        load_records(own(tmp_path, schema=schema))


def test_a_missing_column_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="noisefloor data fetch movielens-100k"):
        load_records("movielens-100k")
    with pytest.raises(UnknownDataSet, match="Did you mean 'adult'"):
        load_records("adults")
    with pytest.raises(BadParameter, match="a file of one's own, or one of movielens-100k"):
        load_records("open-bandit")
    with pytest.raises(BadTable, match=r"none\.csv: Expected a file, there is none"):
        load_records(tmp_path / "none.csv")
    own(tmp_path).unlink()
    with pytest.raises(BadTable, match=r"visits\.csv: Expected a file"):
        load_records(tmp_path / "visits.csv")
    big = tmp_path / "big.schema.json"
    big.write_text(" " * (1 << 20) + "{}")
    with pytest.raises(BadTable, match="at most"):
        read_schema(big)


def test_a_domain_is_a_value() -> None:
    schema = Schema("one", {"a": Categories(("x",)), "b": Bins((0, 0.5))})
    assert [schema.column(name).size for name in "ab"] == [1, 1]
    assert schema.column("b").fields == {"bins": [0, 0.5]}
    with pytest.raises(BadParameter, match="some of a, b"):
        schema.column("c")


@pytest.mark.parametrize(
    ("name", "rows"), [("movielens-100k", 100_000), ("adult", 48_842), ("ionosphere", 351)]
)
def test_real_data_lie_in_their_public_domains(
    real_data: Callable[[str], None], name: str, rows: int
) -> None:
    real_data(name)
    records = load_records(name)
    for column in records.schema.columns:
        counts = records.counts((column,))
        assert int(counts.sum()) == rows
    if name == "movielens-100k":
        assert np.array_equal(records.counts(("rating",)), [6110, 11370, 27145, 34174, 21201])
