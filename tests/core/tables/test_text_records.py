"""Labelled texts are read by a public schema; errors name file, column, row and rule, no text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from noisefloor.errors import BadParameter, BadTable, MissingData, UnknownDataSet
from noisefloor.tables import (
    Categories,
    TextSchema,
    is_text_schema,
    load_records,
    load_table,
    load_texts,
    text_schema_fields,
    text_schema_of,
)
from noisefloor.tables.scaled_records import ScaledSchema

SCHEMA: dict[str, Any] = {
    "record": "one review",
    "columns": {"review": {"text": 12}, "mood": {"categories": ["bad", "good"]}},
    "label": "mood",
}
ROWS = ["secret words\tgood\t1", "more secret words\tbad\t2"]


def own(folder: Path, rows: list[str] = ROWS, schema: Any = SCHEMA) -> Path:
    path = folder / "reviews.tsv"
    path.write_text("\n".join(["review\tmood\tunused", *rows, ""]))
    path.with_suffix(".schema.json").write_text(json.dumps(schema))
    return path


def changed(label: str = "mood", **columns: Any) -> dict[str, Any]:
    return {**SCHEMA, "columns": {**SCHEMA["columns"], **columns}, "label": label}


def test_texts_are_kept_whole_and_labels_become_places(tmp_path: Path) -> None:
    records = load_texts(own(tmp_path))
    assert records.schema == TextSchema(
        "one review", {"review": 12}, "mood", Categories(("bad", "good"))
    )
    assert records.texts["review"].tolist() == ["secret words", "more secret words"]
    assert records.labels.tolist() == [1, 0]
    assert records.count == 2
    assert records[1:].texts["review"].tolist() == ["more secret words"]
    with pytest.raises(ValueError):
        records.labels[0] = 1


def test_two_texts_and_three_classes_that_are_words(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('first,second,kind\na b,"c, ""d""",NA\ne,f,true\ng,h,other\n')
    schema = TextSchema(
        "a pair", {"first": 4, "second": 8}, "kind", Categories(("NA", "true", "other"))
    )
    records = load_texts(path, schema)
    assert records.texts["second"].tolist() == ['c, "d"', "f", "h"]
    assert records.labels.tolist() == [0, 1, 2]
    assert text_schema_of(json.loads(json.dumps(text_schema_fields(schema)))) == schema
    assert is_text_schema(text_schema_fields(schema))


def test_texts_that_look_like_numbers_or_nothing_are_texts(tmp_path: Path) -> None:
    records = load_texts(own(tmp_path, ["12\tgood\t1", "NA\tbad\t1", "3.5\tgood\t1"]))
    assert records.texts["review"].tolist() == ["12", "NA", "3.5"]


def test_parquet_is_read_too_and_has_to_hold_texts(tmp_path: Path) -> None:
    own(tmp_path)
    path = tmp_path / "reviews.parquet"
    pyarrow.parquet.write_table(pa.table({"review": ["a", "b"], "mood": ["bad", "good"]}), path)
    assert load_texts(path).labels.tolist() == [0, 1]
    pyarrow.parquet.write_table(pa.table({"review": [1, 2], "mood": ["bad", "good"]}), path)
    with pytest.raises(BadTable, match=r"column 'review': Expected texts, .* in row 1"):
        load_texts(path)
    broken = pa.array([b"a\xff", b"b"]).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"review": broken, "mood": ["bad", "good"]}), path)
    with pytest.raises(BadTable, match="column 'review': Expected UTF-8"):
        load_texts(path)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            "\tgood\t1",
            "column 'review': Expected a text in every row, found an empty one in row 3",
        ),
        ("  \tgood\t1", "found an empty one in row 3"),
        ("private\tawful\t1", "column 'mood': Expected one of its 2 categories .* in row 3"),
        ("private\t\t1", "column 'mood': Expected one of its 2 categories .* in row 3"),
        ("private\tgood", "Expected 3 cells a row, found 2 in row 3"),
    ],
)
def test_a_bad_row_is_named_and_never_shown(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(BadTable, match=rf"reviews\.tsv: .*{said}") as caught:
        load_texts(own(tmp_path, [*ROWS, row]))
    assert not {"private", "awful", "secret"} & set(str(caught.value).split())


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = own(tmp_path, schema=changed(reveiw={"text": 3}))
    with pytest.raises(BadTable, match=r"column 'reveiw': .* missing\. Did you mean 'review'"):
        load_texts(path)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (changed(review={"text": 0}), r"column 'review': Expected text: the longest length"),
        (changed(review={"text": True}), r"in \[1, 4096\]"),
        (changed(review={"text": [3]}), r"in \[1, 4096\]"),
        (changed(mood={"categories": ["good"]}), "label: 2 to 1000 classes"),
        (changed(mood={"bins": [0, 1, 2]}), "column 'mood': Expected categories"),
        (changed(mood={"text": 3}), "one other column of categories, which label names"),
        (changed(page={"bins": [0, 1]}), "one other column of categories, which label names"),
        (changed(label="review"), "one other column of categories, which label names"),
        (changed(a={"text": 3}, b={"text": 3}), "columns: one text at least, 2 at most"),
        ({**SCHEMA, "record": ""}, "record: a text of at most 200 signs"),
        (
            {**SCHEMA, "label": {"name": "mood", "negative": "bad", "positive": "good"}},
            "label to be a name",
        ),
    ],
)
def test_bad_schemas_are_refused_with_file_and_rule(
    tmp_path: Path, schema: Any, said: str
) -> None:
    with pytest.raises(BadTable, match=rf"reviews\.schema\.json: .*{said}"):
        load_texts(own(tmp_path, schema=schema))


def test_what_is_made_of_categories_alone_takes_no_texts(tmp_path: Path) -> None:
    path = own(tmp_path)
    with pytest.raises(BadTable, match=r"column 'review': .*texts are for models of texts alone"):
        load_records(path)
    with pytest.raises(BadTable, match="texts are not collected"):
        ScaledSchema.read(path.with_suffix(".schema.json"))


def test_a_source_is_a_known_name_or_a_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("NOISEFLOOR_DATA", str(tmp_path))
    with pytest.raises(MissingData, match="noisefloor data fetch rotten-tomatoes"):
        load_texts("rotten-tomatoes")
    with pytest.raises(UnknownDataSet):
        load_texts("tomatoes")
    with pytest.raises(BadParameter, match="one of rotten-tomatoes, imdb"):
        load_texts("adult")
    with pytest.raises(BadTable, match="there is none of that name"):
        load_texts(tmp_path / "none.csv", text_schema_of(SCHEMA))


def test_reviews_of_one_file_are_parted_by_their_source(real_data: Callable[[str], None]) -> None:
    real_data("rotten-tomatoes")
    records = load_texts("rotten-tomatoes")
    assert (records.count, int(records.labels.sum())) == (8_530, 4_265)
    assert set(load_table("rotten-tomatoes", ["label"])) == {"label"}
    assert load_texts("imdb").count == 25_000
