"""One file says what a table holds, to whoever publishes from it and to whoever collects."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from noisefloor.errors import BadTable
from noisefloor.tables import load_records, read_schema, schema_path
from noisefloor.tables.declarations import declaration_of
from noisefloor.tables.scaled_records import Categorical, Continuous, Label
from noisefloor.tables.scaled_records import ScaledSchema as CollectionSchema
from noisefloor.tables.schema import Bins, Categories, schema_fields, schema_of

DECLARATION: dict[str, Any] = {
    "record": "one patient",
    "columns": {
        "pulse": {"range": [40, 180]},
        "age": {"bins": [0, 18, 65, 120]},
        "stage": {"categories": [1, 2, 3]},
        "ill": {"categories": ["no", "yes"]},
    },
    "label": "ill",
}


@pytest.fixture(params=["json", "yaml"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"patients.schema.{request.param}"
    write = json.dumps if request.param == "json" else yaml.safe_dump
    path.write_text(write(DECLARATION), encoding="utf-8")
    return path


def test_one_file_serves_both(file: Path) -> None:
    published, collected = read_schema(file), CollectionSchema.read(file)
    assert published.columns["age"] == Bins((0, 18, 65, 120))
    assert published.columns["stage"] == Categories((1, 2, 3))
    pulse = published.columns["pulse"]
    assert isinstance(pulse, Bins)
    assert pulse.size == 16
    assert np.allclose(np.diff(pulse.edges), 140 / 16)
    assert (pulse.edges[0], pulse.edges[-1]) == (40, 180)
    assert published.label == "ill"
    assert set(collected.attributes) == {
        Continuous("pulse", 40, 180),
        Continuous("age", 0, 120),
        Categorical("stage", ("1", "2", "3")),
    }
    assert collected.label == Label("ill", "no", "yes")
    assert CollectionSchema.of_json(collected.as_json()) == collected


def test_what_is_written_is_read_again() -> None:
    schema = schema_of(DECLARATION)
    again = schema_of(json.loads(json.dumps(schema_fields(schema))))
    assert again == schema
    assert list(again.columns) == list(schema.columns)
    assert schema_of({key: DECLARATION[key] for key in ("record", "columns")}).label == ""


def test_a_table_finds_its_schema_in_either_form(file: Path) -> None:
    table = file.with_name("patients.csv")
    table.write_text("pulse,age,stage,ill\n40,17,1,no\n180,120,3,yes\n")
    assert schema_path(table) == file
    records = load_records(table)
    assert records.codes["pulse"].tolist() == [0, 15]
    assert records.schema.label == "ill"


def test_classes_of_a_label_may_be_named() -> None:
    label = {"name": "stage", "negative": 3, "positive": 1}
    collected = CollectionSchema.declared(declaration_of({**DECLARATION, "label": label}))
    assert collected.label == Label("stage", "3", "1")
    assert schema_of({**DECLARATION, "label": label}).label == "stage"
    every = CollectionSchema.declared(declaration_of({**DECLARATION, "label": "stage"}))
    assert every.label == Label("stage", "1", "2", ("3",))
    assert CollectionSchema.of_json(every.as_json()) == every


def changed(**columns: Any) -> dict[str, Any]:
    return {**DECLARATION, "columns": {**DECLARATION["columns"], **columns}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "an object with record and columns, and perhaps label"),
        ({**DECLARATION, "more": 1}, "an object with record and columns"),
        ({"columns": {}}, "an object with record and columns"),
        ({**DECLARATION, "columns": []}, "columns to be an object"),
        ({**DECLARATION, "label": "town"}, "label to name one of the columns"),
        ({**DECLARATION, "label": {"name": "ill"}}, "label: Expected a name, or"),
        (
            {**DECLARATION, "label": {"name": "ill", "negative": 1, "positive": 1}},
            "label: Expected",
        ),
        (
            {**DECLARATION, "label": {"name": "ill", "negative": [], "positive": 1}},
            "label: Expected",
        ),
        (changed(age=3), "column 'age': Expected {\"categories\""),
        (changed(age={"bins": [0, 1], "range": [0, 1]}), "column 'age': Expected {"),
        (changed(age={"edges": [0, 1]}), "column 'age': Expected {"),
        (changed(age={"range": [1, 1]}), "column 'age': Expected range: two finite numbers"),
        (changed(age={"range": [0, 1, 2]}), "Expected range: two finite numbers"),
        (changed(age={"range": [0, "x"]}), "Expected range: two finite numbers"),
        (changed(age={"range": [0, float("inf")]}), "Expected range: two finite numbers"),
        (changed(ill={"categories": [False, True]}), "a bare no or yes of YAML is neither"),
        (changed(ill={"categories": [["no"]]}), "Expected texts or numbers"),
    ],
)
def test_bad_declarations_are_refused_with_column_and_rule(document: Any, said: str) -> None:
    with pytest.raises(BadTable) as caught:
        declaration_of(document, "f.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("f.yaml: ")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {key: DECLARATION[key] for key in ("record", "columns")},
            "to name the column that is predicted",
        ),
        ({**DECLARATION, "label": "pulse"}, "negative and positive, or to be a column of two"),
        (
            {**DECLARATION, "label": {"name": "ill", "negative": "a", "positive": "b"}},
            "two of its",
        ),
        (changed(age={"bins": [3]}), "to have two edges at least"),
        (changed(age={"bins": ["a", "b"]}), "to be a number"),
        (changed(stage={"categories": [1]}), "2 to 65536 categories"),
    ],
)
def test_a_collection_wants_two_classes_and_ranges(
    document: Any, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.raises(BadTable) as caught:
        CollectionSchema.read(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(("name", "form"), [("a.json", "JSON"), ("a.yaml", "YAML")])
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, name: str, form: str) -> None:
    path = tmp_path / name
    with pytest.raises(BadTable, match="Cannot be read"):
        read_schema(path)
    for content in (b"{: :", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(BadTable, match=f"Expected {form} in UTF-8"):
            read_schema(path)
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(BadTable, match="at most 1048576 bytes"):
        read_schema(path)
