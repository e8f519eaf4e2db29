"""The tables of a run: metrics as CSV and Parquet, claims as JSON.

``metrics`` is tidy: one row per point, pipeline and metric. After the fixed columns there is one
column per swept key, named by the dotted key, so that pandas and R group by it without parsing
the id or the settings of a point. ``seed`` and ``variant`` are fixed columns already: a sweep of
them adds none.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from noisefloor_sim.runs.results import Json, PointResult, RunDirectory, claim_json
from noisefloor_sim.scenario import SweepPoint

COLUMNS = (
    *("point", "settings", "seed", "pipeline", "variant", "metric"),
    *("value", "ci_low", "ci_high", "n"),
)

Scalar = str | int | float | None
SweptColumns = Mapping[str, Mapping[str, Scalar]]
"""By swept key: its value at each point, by the point's id."""


def write_tables(
    directory: RunDirectory, results: Sequence[PointResult], points: Sequence[SweepPoint]
) -> None:
    """Write metrics and claims of all points.

    Args:
        directory: Where to.
        results: In the order of the points.
        points: Of the sweep; their settings become columns.
    """
    swept = swept_columns(points)
    rows = [(*row, *(swept[key][str(row[0])] for key in swept)) for row in metric_rows(results)]
    directory.write("metrics.csv", _csv(rows, swept))
    directory.write("metrics.parquet", _parquet(rows, swept))
    text = json.dumps(privacy_rows(results), indent=1, allow_nan=False)
    directory.write("privacy.json", text + "\n")


def metric_rows(results: Iterable[PointResult]) -> list[tuple[object, ...]]:
    """Return the fixed columns: one row per point, pipeline and metric."""
    return [
        (
            *(result.id, result.settings, result.seed, name, result.variant, metric.name),
            *(metric.value, metric.low, metric.high, metric.n),
        )
        for result in results
        for name, found in sorted(result.findings.items())
        for metric in found.metrics
    ]


def privacy_rows(results: Iterable[PointResult]) -> list[Json]:
    """Return every claim with the point it was made at."""
    return [
        {"point": result.id, "settings": result.settings, "seed": result.seed}
        | {"pipeline": name, "variant": result.variant}
        | claim_json(claim)
        for result in results
        for name, found in sorted(result.findings.items())
        for claim in found.claims
    ]


def swept_columns(points: Sequence[SweepPoint]) -> SweptColumns:
    """Return the swept keys without a fixed column, each with one type for all its values.

    Numbers and booleans stay what they are. Values of several types, lists and sections become
    texts: JSON, or the text itself.
    """
    values = {point.id: point.values for point in points}
    keys = [key for key in (points[0].values if points else ()) if key not in COLUMNS]
    return {key: _column({name: one[key] for name, one in values.items()}) for key in keys}


def _column(values: Mapping[str, object]) -> dict[str, Scalar]:
    kinds = {type(value) for value in values.values() if value is not None}
    is_typed = kinds <= {int, float} or kinds == {bool}
    return {name: _cell(value, is_typed=is_typed) for name, value in values.items()}


def _cell(value: object, *, is_typed: bool) -> Scalar:
    if value is None or isinstance(value, str):
        return value
    if is_typed and isinstance(value, int | float):
        return value
    return json.dumps(value)


def _csv(rows: Iterable[tuple[object, ...]], swept: SweptColumns) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*COLUMNS, *swept))
    for row in rows:
        writer.writerow(map(_csv_cell, row))
    return out.getvalue()


def _csv_cell(cell: object) -> object:
    """Write a missing number as an empty cell, and booleans as a scenario has them."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if isinstance(cell, float) and math.isnan(cell) else cell


def _parquet(rows: Sequence[tuple[object, ...]], swept: SweptColumns) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fixed = [pa.string(), pa.string(), pa.int64(), *[pa.string()] * 3, *[pa.float64()] * 3]
    types = [*fixed, pa.int64(), *(_arrow_type(column.values()) for column in swept.values())]
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays, names=[*COLUMNS, *swept]), sink)
    return sink.getvalue()


def _arrow_type(cells: Iterable[Scalar]) -> Any:  # Any: pyarrow has no types
    import pyarrow as pa

    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()
