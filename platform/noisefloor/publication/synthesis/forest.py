"""A model of records: the label first, then each column given the label and perhaps one other."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.publication.records import MOST_ROWS, Records
from noisefloor.publication.schema import Categories, Codes, Column, Schema
from noisefloor.publication.synthesis.consistency import fitted, pooled, projected
from noisefloor.randomness import Source

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measured:
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
        """Return so many records of the model; nothing but noisy tables is looked at."""
        check_count(count, "count", most=MOST_ROWS)
        stream = source.stage("sample")
        codes: dict[str, Codes] = {}
        codes[self.label] = drawn(
            self.totals[None], np.zeros(count, dtype=np.int64), _uniforms(stream, count)
        )
        for name, parent in self.parents.items():
            table = self.chances[name]
            given = codes[self.label]
            if parent is not None:
                given = given * table.shape[1] + codes[parent]
            rows = table.reshape(-1, table.shape[-1])
            codes[name] = drawn(rows, given, _uniforms(stream, count))
        return records_of(self.schema, codes)


def forest(
    schema: Schema,
    label: str,
    ones: Mapping[str, Measured],
    twos: Mapping[tuple[str, str], Measured],
    labels: Measured | None = None,
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


def drawn(weights: Floats, rows: Codes, uniforms: Floats) -> Codes:
    """Return a place of the last axis for each row of weights that is named."""
    ends = np.cumsum(_shares(weights), axis=1)
    ends[:, -1] = 1.0
    # One rising line of all rows: row r lies between r and r + 1.
    line = (ends + np.arange(len(ends))[:, None]).reshape(-1)
    place = np.searchsorted(line, rows + uniforms, side="right") - rows * weights.shape[1]
    return np.asarray(np.clip(place, 0, weights.shape[1] - 1), dtype=np.int64)


def records_of(schema: Schema, codes: Mapping[str, Codes]) -> Records:
    """Return records of given places; the value of a bin is its lower edge."""
    places = {name: codes[name] for name in schema.columns}
    values = {name: _values(schema.columns[name])[places[name]] for name in schema.columns}
    for column in (*values.values(), *places.values()):
        column.flags.writeable = False
    return Records(schema, values, places)


def _values(column: Column) -> NDArray[np.generic]:
    return np.array(column.values if isinstance(column, Categories) else column.edges[:-1])


def _uniforms(source: Source, count: int) -> Floats:
    return (source.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _shares(table: Floats) -> Floats:
    """Return the table with a last axis that adds up to one; an empty one is uniform."""
    sums = table.sum(axis=-1, keepdims=True)
    uniform = np.full_like(table, 1 / table.shape[-1])
    return np.asarray(np.divide(table, sums, out=uniform, where=sums > 0))


def _margins(
    ones: Mapping[str, Measured], twos: Mapping[tuple[str, str], Measured]
) -> dict[str, tuple[Floats, float]]:
    """Return what all tables say of each column given the label, with its variance."""
    margins = {}
    for name, one in ones.items():
        told = [(one.counts.astype(np.float64), one.variance)]
        for (parent, child), two in twos.items():
            if name in (parent, child):
                other = 2 if name == parent else 1
                sums = two.counts.sum(axis=other).astype(np.float64)
                told.append((sums, two.variance * two.counts.shape[other]))
        margins[name] = pooled(told)
    return margins


def _pair(two: Measured, parent: Floats, child: Floats) -> Floats:
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
    names: tuple[str, ...], twos: Mapping[tuple[str, str], Measured]
) -> dict[str, str | None]:
    """Return the parent of each column, parents first."""
    above = {child: parent for parent, child in twos}
    ordered: dict[str, str | None] = {}
    while len(ordered) < len(names):
        for name in names:
            if name not in ordered and (name not in above or above[name] in ordered):
                ordered[name] = above.get(name)
    return ordered
