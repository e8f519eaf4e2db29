"""The table of metrics: one column per swept key, typed, after the columns that always exist."""

import csv
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisefloor_sim.pipelines import BLOCKS
from noisefloor_sim.pipelines.api import Findings, Metric
from noisefloor_sim.runs.results import PointResult, RunDirectory
from noisefloor_sim.runs.tables import COLUMNS, write_tables
from noisefloor_sim.scenario import Scenario, expand, loads

SCENARIO = """
name: columns
seed: 3
question: Does pandas read this without parsing?
pipelines: {clicks: {}}
sweep:
"""
FOUND = {"clicks": Findings((Metric("rmse", 0.5, n=7),), ())}


def written(axes: str, folder: Path) -> tuple[pa.Table, list[dict[str, str]]]:
    """Write the tables of a sweep in which every point found the same, and read both back."""
    points = expand(loads(SCENARIO + axes, BLOCKS), BLOCKS)
    results = [
        PointResult(one.id, "", one.scenario.seed, one.scenario.variant, FOUND, 0.0, 0.0)
        for one in points
    ]
    directory = RunDirectory(folder)
    directory.create("", force=False, resume=False)
    write_tables(directory, results, points)
    text = (folder / "metrics.csv").read_text(encoding="utf-8")
    return pq.read_table(folder / "metrics.parquet"), list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("key", "given", "kind", "values", "cells"),
    [
        # A whole number is a fraction where the key takes fractions, on every axis alike.
        ("pipelines.clicks.epsilon", "[1, 2]", pa.float64(), [1.0, 2.0], ["1.0", "2.0"]),
        ("pipelines.clicks.epsilon", "[0.5, 2]", pa.float64(), [0.5, 2.0], ["0.5", "2.0"]),
        ("days", "[2, 30]", pa.int64(), [2, 30], ["2", "30"]),
        ("threat.linked", "[true, false]", pa.bool_(), [True, False], ["true", "false"]),
        (
            "pipelines.clicks.form",
            "[split, memoised]",
            pa.string(),
            ["split", "memoised"],
            ["split", "memoised"],
        ),
        (
            "behaviour.peak_hours",
            "[[8], [8, 20.5]]",
            pa.string(),
            ["[8.0]", "[8.0, 20.5]"],
            ["[8.0]", "[8.0, 20.5]"],
        ),
    ],
)
def test_a_swept_key_is_a_typed_column_after_the_others(
    key: str, given: str, kind: pa.DataType, values: list[object], cells: list[str], tmp_path: Path
) -> None:
    table, rows = written(f"  {key}: {given}", tmp_path / "run")
    assert table.column_names == [*COLUMNS, key]
    assert table.schema.field(key).type == kind
    assert table[key].to_pylist() == values
    assert list(rows[0]) == [*COLUMNS, key]
    assert [row[key] for row in rows] == cells


def test_every_row_has_the_values_of_its_own_point(tmp_path: Path) -> None:
    axes = "  days: [1, 2]\n  pipelines.clicks.epsilon: [0.5, 4]\n"
    table, _ = written(axes, tmp_path / "run")
    found = table.select(["days", "pipelines.clicks.epsilon", "point"]).to_pylist()
    assert [(row["days"], row["pipelines.clicks.epsilon"]) for row in found] == [
        (1, 0.5), (1, 4.0), (2, 0.5), (2, 4.0),
    ]  # fmt: skip
    for row in found:
        assert f"days-{row['days']}-" in row["point"]


def test_seed_and_variant_keep_their_own_column_and_get_no_second(tmp_path: Path) -> None:
    table, rows = written("  seeds: 2\n  variant: [paper, corrected]\n", tmp_path / "run")
    assert table.column_names == list(COLUMNS)
    assert table["seed"].to_pylist() == [3, 4, 3, 4]
    assert [row["variant"] for row in rows] == ["paper", "paper", "corrected", "corrected"]


def test_no_other_key_of_a_scenario_has_the_name_of_a_column() -> None:
    assert set(Scenario.model_fields) & set(COLUMNS) == {"seed", "variant"}


def test_a_section_that_is_swept_as_a_whole_is_a_text(tmp_path: Path) -> None:
    table, _ = written("  devices.offline: [{mean_h: 2}, {mean_h: 3}]", tmp_path / "run")
    assert table["devices.offline"].to_pylist() == [
        '{"start_per_day": 0.05, "mean_h": 2.0}',
        '{"start_per_day": 0.05, "mean_h": 3.0}',
    ]
