"""What a report is about, computed from a record by formulas of its own.

Only scoring uses it, to compare what arrived with what is declared. It shares no step with a
device: neither its classes nor its grid, its label or its decision.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats
from noisefloor.tables import Attribute, Categorical, ScaledRecords, ScaledSchema
from noisefloor.tasks import FittedModel

Inputs = NDArray[np.int64]
"""A row for each record; an input that is not known exactly is UNKNOWN."""

UNKNOWN = -1
STEPS = 1 << 16
"""Positions of the grid that a value in [-1, 1] is taken to, less one."""

_TIE = 1e-9
"""A decision is known where the two best log-odds are at least this far apart."""


def range_schema(schema: ScaledSchema) -> tuple[ScaledSchema, list[int]]:
    """Return the numbers of a schema, whose ranges are asked for, and their places."""
    places = [at for at, one in enumerate(schema.attributes) if not isinstance(one, Categorical)]
    numbers = tuple(schema.attributes[at] for at in places)
    return ScaledSchema(numbers, schema.label), places


def in_ranges(
    records: ScaledRecords, ranges: Sequence[tuple[float, float]] | None
) -> ScaledRecords:
    """Return records as values of the ranges that were learnt, or as they are.

    One column after the other, in the order of operations that is published: values on the edge
    of a class would otherwise fall on either side.
    """
    if ranges is None:
        return records
    columns = []
    for place, (low, high) in enumerate(ranges):
        column = (records.values[:, place] - low) * (2 / (high - low)) - 1
        columns.append(np.minimum(np.maximum(column, -1.0), 1.0))
    return ScaledRecords(np.column_stack(columns), records.labels)


def class_sizes(schema: ScaledSchema, most: int) -> list[int]:
    """Return how many classes each attribute has."""
    return [len(_centres(one, most)) for one in schema.attributes]


def class_inputs(
    schema: ScaledSchema, most: int, records: ScaledRecords, columns: Sequence[int]
) -> Inputs:
    """Return the class of each value, and that of the label behind them."""
    parts = [_classes(schema.attributes[one], most, records.values[:, one]) for one in columns]
    return np.column_stack([*parts, records.labels.astype(np.int64)])


def _classes(attribute: Attribute, most: int, values: Floats) -> Inputs:
    """Cut a range into equal parts, each with its upper end; group neighbours in a list."""
    shifted = np.clip(values, -1.0, 1.0) + 1
    if isinstance(attribute, Categorical):
        count = len(attribute.values)
        return _group_of_place(count, most)[np.rint(shifted * (count - 1) / 2).astype(np.int64)]
    return np.maximum(np.ceil(shifted * most / 2).astype(np.int64), 1) - 1


@lru_cache(maxsize=1 << 13)
def _group_of_place(count: int, most: int) -> Inputs:
    """Return the class of each place of a list: equally many places in each."""
    size = min(count, most)
    return np.asarray(((np.arange(count) + 1) * size + count - 1) // count - 1)


@lru_cache(maxsize=1 << 13)
def _centres(attribute: Attribute, most: int) -> Floats:
    """Return the middle of each class: of a part of the range, or of the places in a group."""
    if isinstance(attribute, Categorical):
        groups = _group_of_place(len(attribute.values), most)
        places = np.linspace(-1.0, 1.0, len(groups))
        return np.array([places[groups == one].mean() for one in range(groups[-1] + 1)])
    edges = np.linspace(-1.0, 1.0, most + 1)
    return np.asarray((edges[1:] + edges[:-1]) / 2)


def printed_sizes(schema: ScaledSchema, most: int) -> list[int]:
    """Return how many classes the paper's response has for each attribute."""
    counts = [
        len(one.values) if isinstance(one, Categorical) else most + 2 for one in schema.attributes
    ]
    return [count if count <= most + 1 else most for count in counts]


def printed_inputs(
    schema: ScaledSchema, most: int, records: ScaledRecords, columns: Sequence[int]
) -> Inputs:
    """Return the paper's classes: 0 for the minimum of a range and for every negative label."""
    parts = []
    for one in columns:
        attribute, shifted = schema.attributes[one], np.clip(records.values[:, one], -1, 1) + 1
        if isinstance(attribute, Categorical):
            place = np.rint(shifted * (len(attribute.values) - 1) / 2).astype(np.int64)
            parts.append((place + 1) % most)
        else:
            parts.append(np.ceil(shifted * most / 2).astype(np.int64))
    return np.column_stack([*parts, most * records.labels.astype(np.int64)])


def grid_inputs(records: ScaledRecords, columns: Sequence[int]) -> Inputs:
    """Return the grid position of each value, and of the label as -1 or +1."""
    values = np.column_stack(
        [records.values[:, list(columns)], np.where(records.labels, 1.0, -1.0)]
    )
    return np.asarray(np.rint((np.clip(values, -1, 1) + 1) * (STEPS / 2)), dtype=np.int64)


def product_counts(schema: ScaledSchema, most: int) -> list[int]:
    """Return how many products of class and label each attribute has."""
    return [len(_products(one, most)) for one in schema.attributes]


def product_inputs(schema: ScaledSchema, most: int, records: ScaledRecords) -> Inputs:
    """Return for each attribute the rank of class times label among all such products."""
    classes = class_inputs(schema, most, records, range(len(schema)))
    signs = np.where(records.labels, 1.0, -1.0)
    parts = []
    for place, attribute in enumerate(schema.attributes):
        centres = np.round(_centres(attribute, most), 12)
        products = _products(attribute, most)
        # The nearest product: two of them are never closer than the rounding.
        sent = centres[classes[:, place]] * signs
        parts.append(np.searchsorted(products + 1e-9, sent))
    return np.column_stack(parts)


def _products(attribute: Attribute, most: int) -> Floats:
    centres = np.round(_centres(attribute, most), 12)
    return np.unique(np.round(np.concatenate([centres, -centres]), 11) + 0.0)


def decision_inputs(
    schema: ScaledSchema, most: int, records: ScaledRecords, model: FittedModel
) -> Inputs:
    """Return the decision of the published naive Bayes, the place of a label.

    Between the middles of two classes of a range the log-odds run straight.
    """
    if model.form != "bayes":
        always = int(model.arrays["label"][0] > 0)
        return np.full((len(records), 1), always, dtype=np.int64)
    prior = model.arrays["prior"]
    left = model.arrays["odds"].reshape(-1, len(prior))
    # The first label has log-odds 0 by definition.
    odds = np.zeros((1 + len(prior), len(records)))
    for label, own_prior in enumerate(prior.tolist(), start=1):
        odds[label] = own_prior
        rest = left[:, label - 1]
        for place, attribute in enumerate(schema.attributes):
            centres, values = _centres(attribute, most), records.values[:, place]
            own, rest = rest[: len(centres)], rest[len(centres) :]
            if isinstance(attribute, Categorical):
                odds[label] += own[_classes(attribute, most, values)]
            else:
                odds[label] += np.interp(values, centres, own)
    second, first = np.sort(odds, axis=0)[-2:]
    decided = np.where(first - second < _TIE, UNKNOWN, odds.argmax(axis=0))
    return np.asarray(decided, dtype=np.int64)[:, None]
