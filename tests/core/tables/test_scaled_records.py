"""The schema decides what a record is; data that disagree are refused, by column and rule."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter, BadTable, NoisefloorError, OutOfDomain
from noisefloor.tables.reading import Table
from noisefloor.tables.scaled_records import (
    Categorical,
    Continuous,
    Label,
    ScaledRecords,
    ScaledSchema,
)

SCHEMA = ScaledSchema(
    (Continuous("age", 0, 120), Categorical("region", ("north", "east", "south"))),
    Label("ill", "no", "yes"),
)
SECRET = 7123456.5


def table(**changes: Any) -> Table:
    columns = {
        "age": np.array([0.0, 60.0, 120.0]),
        "region": np.array(["north", "east", "south"]),
        "ill": np.array(["no", "yes", "no"]),
    }
    return {name: np.asarray(column) for name, column in (columns | changes).items()}


def test_values_lie_between_minus_one_and_one_by_the_schema_alone() -> None:
    records = SCHEMA.records(table())
    assert records.values.tolist() == [[-1, -1], [0, 0], [1, 1]]
    assert records.labels.tolist() == [False, True, False]
    assert len(records[np.array([0, 2])]) == 2


def test_what_lies_outside_a_range_is_moved_to_its_end() -> None:
    records = SCHEMA.records(table(age=np.array([-5, 500, 30])))
    assert records.values[:, 0].tolist() == [-1, 1, -0.5]


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20),
)
def test_scaled_values_never_leave_the_range(low: float, width: float, values: Any) -> None:
    scaled = Continuous("x", low, low + width).scale(np.array(values), "here")
    assert ((scaled >= -1) & (scaled <= 1)).all()


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"age": np.array([1.0, SECRET, np.nan])}, "age"),
        ({"age": np.array([1.0, SECRET, np.inf])}, "age"),
        ({"age": np.array(["1", "7123456.5", "3"])}, "age"),
        ({"age": np.array([[1.0], [SECRET], [2.0]])}, "age"),
        ({"region": np.array(["north", "7123456.5", "east"])}, "region"),
        ({"region": np.array([1, SECRET, None], dtype=object)}, "region"),
        ({"region": np.array([["north"], ["east"], ["east"]])}, "region"),
        ({"ill": np.array(["no", "yes", "7123456.5"])}, "ill"),
    ],
)
def test_data_that_disagree_with_the_schema_are_refused_without_showing_them(
    changes: Table, column: str
) -> None:
    with pytest.raises(BadTable) as caught:
        SCHEMA.records(table(**changes))
    assert caught.value.column == column
    assert "7123456" not in str(caught.value)


@pytest.mark.parametrize("name", SCHEMA.columns)
def test_a_missing_column_is_named(name: str) -> None:
    with pytest.raises(BadTable, match="schema names") as caught:
        SCHEMA.records({key: value for key, value in table().items() if key != name})
    assert caught.value.column == name


def test_columns_of_unlike_length_and_empty_tables_are_refused() -> None:
    with pytest.raises(BadTable, match="one length"):
        SCHEMA.records(table(age=np.array([1.0])))
    with pytest.raises(BadTable, match="at least one record"):
        SCHEMA.records({name: column[:0] for name, column in table().items()})


def test_numbers_count_as_categories_as_a_person_writes_them() -> None:
    schema = ScaledSchema((Categorical("a", ("0", "1")),), Label("y", "0", "1"))
    for dtype in (np.float64, np.int64, np.object_):
        records = schema.records({"a": np.array([0, 1], dtype), "y": np.array([1, 0], dtype)})
        assert records.values[:, 0].tolist() == [-1, 1]
        assert records.labels.tolist() == [True, False]


def test_a_column_that_is_constant_in_the_data_is_no_fault() -> None:
    records = SCHEMA.records(table(age=np.full(3, 60.0)))
    assert records.values[:, 0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Continuous("x", 1, 1),
        lambda: Continuous("x", 2, 1),
        lambda: Continuous("x", float("nan"), 1),
        lambda: Continuous("x", -1e308, 1e308),
        lambda: Continuous("x", 0, 5e-324),
        lambda: Continuous("", 0, 1),
        lambda: Continuous(5, 0, 1),  # type: ignore[arg-type]
        lambda: Categorical("x", ("only",)),
        lambda: Categorical("x", ("a", "b", "a")),
        lambda: Label("y", "same", "same"),
        lambda: ScaledSchema((), Label("y", "0", "1")),
        lambda: ScaledSchema((Continuous("x", 0, 1), Continuous("x", 0, 1)), Label("y", "0", "1")),
        lambda: ScaledSchema((Continuous("y", 0, 1),), Label("y", "0", "1")),
    ],
)
def test_a_schema_that_says_nothing_clear_is_refused(make: Any) -> None:
    with pytest.raises(BadParameter):
        make()


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_schema_reads_back_as_it_was_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"schema.{ending}"
    path.write_text(json.dumps(SCHEMA.as_json()), encoding="utf-8")
    assert ScaledSchema.read(path) == SCHEMA


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{attributes: [], label: {}}",
        "{attributes: [{name: a, low: 0}], label: {name: y, negative: 0, positive: 1}}",
        "{attributes: [{name: a, values: ab}], label: {name: y, negative: 0, positive: 1}}",
        "{attributes: [{name: a, low: 0, high: x}], label: {name: y, negative: 0, positive: 1}}",
        "{attributes: [{name: a, low: 0, high: 1, mean: 1}], label: {name: y}}",
        "{attributes: 5, label: {name: y, negative: 0, positive: 1}}",
        "{attributes: [5], label: {name: y, negative: 0, positive: 1}}",
        "{label: {name: y, negative: 0, positive: 1}}",
        "{: :",
    ],
)
def test_a_file_that_is_no_schema_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadTable, match=r"Expected (a schema|YAML)"):
        ScaledSchema.read(path)


def test_a_schema_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTable):
        ScaledSchema.read(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([[2.0]], [True]),
        ([[np.nan]], [True]),
        ([0.5], [True]),
        (0.5, [True]),
        ([[0.5]], [2]),
        ([[0.5]], [True, False]),
    ],
)
def test_records_outside_their_domain_are_refused(values: Any, labels: Any) -> None:
    with pytest.raises(NoisefloorError) as caught:
        ScaledRecords(np.array(values), np.array(labels))
    assert isinstance(caught.value, BadParameter | OutOfDomain)
