"""A model of records: the label first, then each column given the label and perhaps one other.

Noisy counts made consistent: not negative, and of equal margins. All of it post-processing.

What a synthesiser publishes: the noisy tables, and records made of them at will.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_count
from noisefloor.errors import BadParameter
from noisefloor.randomness import Source
from noisefloor.tables import MOST_ROWS, Categories, Codes, ColumnDomain, Records, Schema


class RecordModel(Protocol):
    """Something that makes records."""

    @property
    def size(self) -> float:
        """How many records there were, as estimated from the noisy tables."""

    def sample(self, count: int, source: Source) -> Records:
        """Return ``count`` records."""


@dataclass(frozen=True, slots=True, eq=False)
class Synthesiser:
    """A release: noisy tables, and the model that was made of them alone.

    Attributes:
        tables: Noisy integers by name. They are what was released.
        model: What follows from them.
    """

    tables: Mapping[str, NDArray[np.int64]]
    model: RecordModel

    @property
    def size(self) -> float:
        """How many records there were, as estimated from the noisy tables."""
        return self.model.size

    def sample(self, count: int, source: Source) -> Records:
        """Return synthetic records: post-processing, as often and as many as one likes.

        Args:
            count: How many, at least 1. The true number is not public where records come and go.
            source: Random bits.
        """
        return self.model.sample(count, source)


def other_columns(schema: Schema, label: str) -> tuple[str, ...]:
    """Return the columns besides the label, at least one."""
    if label not in schema.columns:
        raise BadParameter("label", label, f"one of {', '.join(schema.columns)}")
    others = tuple(name for name in schema.columns if name != label)
    if not others:
        raise BadParameter("label", label, "to leave at least one other column")
    return others


def check_records(records: Records, schema: Schema) -> None:
    """Refuse records of another schema: a domain that was not declared beforehand."""
    if records.schema != schema:
        raise BadParameter("records", "<records>", "of the schema that was planned for")


SWEEPS = 30
_FLOOR = 1e-9
"""Given to every cell, in records, so that margins can be met where all cells are empty."""


def pooled(estimates: Sequence[tuple[Floats, float]]) -> tuple[Floats, float]:
    """Return the mean of independent estimates by their variances, and its own variance."""
    weights = np.array([1 / variance for _, variance in estimates])
    whole = sum(weight * one for weight, (one, _) in zip(weights, estimates, strict=True))
    return np.asarray(whole / weights.sum()), float(1 / weights.sum())


def projected(counts: Floats, total: float) -> Floats:
    """Return the nearest counts (last axis) that are not negative and add up to a total.

    Reference: Held, Wolfe and Crowder 1974 (projection on the simplex).
    """
    size = counts.shape[-1]
    falling = -np.sort(-counts, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - total) / np.arange(1, size + 1)
    kept = np.count_nonzero(falling > excess, axis=-1)
    level = np.take_along_axis(excess, np.maximum(kept - 1, 0)[..., None], axis=-1)
    return np.asarray(np.maximum(counts - level, 0.0))


def fitted(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Return a table scaled in turns to the margins of its rows and its columns.

    Reference: Deming and Stephan 1940 (iterative proportional fitting).
    """
    fit = table + _FLOOR
    for _ in range(SWEEPS):
        fit *= _ratio(columns, fit.sum(axis=0))
        fit *= _ratio(rows, fit.sum(axis=1))[:, None]
    return fit


def _ratio(targets: Floats, sums: Floats) -> Floats:
    """Return by what to multiply; what is empty stays so."""
    return np.divide(targets, sums, out=np.zeros_like(sums), where=sums > 0)


Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NoisyTable:
    """Noisy counts of some columns, the label first, and the variance of their noise."""

    counts: Counts
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Chances of the label, of a column given the label, or given the label and its parent.

    Attributes:
        schema: Of the records that it makes.
        label: The column that comes first.
        totals: Records of each label, as estimated; not negative.
        parents: Of each other column, None where it hangs on the label alone; a parent stands
            before its children.
        chances: Of each other column, the last axis: given label, or label and parent.
    """

    schema: Schema
    label: str
    totals: Floats
    parents: Mapping[str, str | None]
    chances: Mapping[str, Floats]

    @property
    def size(self) -> float:
        """How many records there were, as estimated from the noisy tables."""
        return float(self.totals.sum())

    def sample(self, count: int, source: Source) -> Records:
        """Return ``count`` records of the model; nothing but noisy tables is looked at."""
        check_count(count, "count", most=MOST_ROWS)
        stream = source.stage("sample")
        codes: dict[str, Codes] = {}
        codes[self.label] = sample_rows(
            self.totals[None], np.zeros(count, dtype=np.int64), stream.uniforms(count)
        )
        for name, parent in self.parents.items():
            table = self.chances[name]
            given = codes[self.label]
            if parent is not None:
                given = given * table.shape[1] + codes[parent]
            rows = table.reshape(-1, table.shape[-1])
            codes[name] = sample_rows(rows, given, stream.uniforms(count))
        return decode_records(self.schema, codes)


def fit_forest(
    schema: Schema,
    label: str,
    ones: Mapping[str, NoisyTable],
    twos: Mapping[tuple[str, str], NoisyTable],
    labels: NoisyTable | None = None,
) -> Forest:
    """Make noisy tables consistent and turn them into chances.

    Args:
        schema: Of the records.
        label: The first axis of every table.
        ones: For each other column, counts of label and column.
        twos: For edges (parent, child) of a forest, counts of label, parent and child.
        labels: Counts of the label alone, where they were measured apart.
    """
    margins = _margins(ones, twos)
    sums = [(table.sum(axis=1), variance * table.shape[1]) for table, variance in margins.values()]
    if labels is not None:
        sums.append((labels.counts.astype(np.float64), labels.variance))
    # Half a record in all at least: a label of noise alone must not divide by zero.
    totals = np.maximum(pooled(sums)[0], 0.5)
    smooth = {
        name: np.stack([projected(row, total) for row, total in zip(table, totals, strict=True)])
        for name, (table, _) in margins.items()
    }
    parents = _ordered(tuple(ones), twos)
    chances = {}
    for name, parent in parents.items():
        if parent is None:
            chances[name] = _shares(smooth[name])
        else:
            chances[name] = _pair(twos[parent, name], smooth[parent], smooth[name])
    return Forest(schema, label, totals, parents, chances)


def sample_rows(weights: Floats, rows: Codes, uniforms: Floats) -> Codes:
    """Return a place of the last axis for each row of weights that is named."""
    ends = np.cumsum(_shares(weights), axis=1)
    ends[:, -1] = 1.0
    # One rising line of all rows: row r lies between r and r + 1.
    line = (ends + np.arange(len(ends))[:, None]).reshape(-1)
    place = np.searchsorted(line, rows + uniforms, side="right") - rows * weights.shape[1]
    return np.asarray(np.clip(place, 0, weights.shape[1] - 1), dtype=np.int64)


def decode_records(schema: Schema, codes: Mapping[str, Codes]) -> Records:
    """Return records of given places; the value of a bin is its lower edge."""
    places = {name: codes[name] for name in schema.columns}
    values = {name: _values(schema.columns[name])[places[name]] for name in schema.columns}
    for column in (*values.values(), *places.values()):
        column.flags.writeable = False
    return Records(schema, values, places)


def _values(column: ColumnDomain) -> NDArray[np.generic]:
    return np.array(column.values if isinstance(column, Categories) else column.edges[:-1])


def _shares(table: Floats) -> Floats:
    """Return the table with a last axis that adds up to one; an empty one is uniform."""
    sums = table.sum(axis=-1, keepdims=True)
    uniform = np.full_like(table, 1 / table.shape[-1])
    return np.asarray(np.divide(table, sums, out=uniform, where=sums > 0))


def _margins(
    ones: Mapping[str, NoisyTable], twos: Mapping[tuple[str, str], NoisyTable]
) -> dict[str, tuple[Floats, float]]:
    """Return what all tables say of each column given the label, with its variance."""
    margins = {}
    for name, one in ones.items():
        estimates = [(one.counts.astype(np.float64), one.variance)]
        for (parent, child), two in twos.items():
            if name in (parent, child):
                other = 2 if name == parent else 1
                sums = two.counts.sum(axis=other).astype(np.float64)
                estimates.append((sums, two.variance * two.counts.shape[other]))
        margins[name] = pooled(estimates)
    return margins


def _pair(two: NoisyTable, parent: Floats, child: Floats) -> Floats:
    """Return the chances of a child given label and parent, of the smooth margins."""
    tables = []
    for counts, rows, columns in zip(two.counts, parent, child, strict=True):
        whole = projected(counts.reshape(-1).astype(np.float64), float(rows.sum()))
        tables.append(fitted(whole.reshape(counts.shape), rows, columns))
    shares = np.stack(tables)
    # A parent that never occurs tells nothing: its children follow the label.
    empty = shares.sum(axis=-1) <= 0
    return _shares(np.where(empty[..., None], child[:, None, :], shares))


def _ordered(
    names: tuple[str, ...], twos: Mapping[tuple[str, str], NoisyTable]
) -> dict[str, str | None]:
    """Return the parent of each column, parents first."""
    above = {child: parent for parent, child in twos}
    ordered: dict[str, str | None] = {}
    while len(ordered) < len(names):
        for name in names:
            if name not in ordered and (name not in above or above[name] in ordered):
                ordered[name] = above.get(name)
    return ordered
