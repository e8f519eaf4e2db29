"""The data sets of `bench/collection.py`, each with a schema and a note on where it is from."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from noisefloor.checks import Floats
from noisefloor.tables.reading import load_table
from noisefloor.tables.scaled_records import (
    Attribute,
    Categorical,
    Continuous,
    Label,
    Labels,
    ScaledRecords,
    ScaledSchema,
)

Bounds = Literal["empirical", "public"]
"""Of WDBC, whose ranges no standard documents: the extremes of all its records, as is usual and
as the paper does, or [0, the next power of two], which its order of size alone would tell."""

TABLES = ("wdbc", "ionosphere", "digits")


@dataclass(frozen=True)
class Data:
    """A data set ready to be split.

    Attributes:
        schema: Of its records.
        records: In [-1, 1], with labels.
        cost: The C of the support vector machine.
        note: Where it is from, and where its ranges are.
    """

    schema: ScaledSchema
    records: ScaledRecords
    cost: float
    note: str

    @property
    def majority(self) -> float:
        """The share of the larger class, in per cent."""
        share = 100 * float(self.records.labels.mean())
        return max(share, 100 - share)


@cache
def load(name: str, bounds: Bounds) -> Data:
    """Return a data set by name."""
    return {"wdbc": wdbc, "ionosphere": ionosphere, "digits": digits}[name](bounds)


def wdbc(bounds: Bounds) -> Data:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    values = np.asarray(found.data, dtype=np.float64)
    lows, highs = values.min(axis=0), values.max(axis=0)
    if bounds == "public":
        lows, highs = np.zeros_like(lows), 2.0 ** np.ceil(np.log2(highs))
    attributes = _ranges(lows, highs)
    ranges = "extremes of all records" if bounds == "empirical" else "[0, next power of two]"
    note = (
        f"UCI Breast Cancer Wisconsin (Diagnostic), CC BY 4.0, by scikit-learn. Ranges: {ranges}."
    )
    return _data(attributes, values, np.asarray(found.target == 0), 2.1, note)


def ionosphere(bounds: Bounds) -> Data:
    table = load_table("ionosphere")
    names = [name for name in table if name not in ("y", "a2")]
    values = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])
    # Returns are normalised to [-1, 1]; the first attribute is a flag, and a2 is constant.
    attributes = _ranges(np.full(len(names), -1.0), np.ones(len(names)))
    flag = Categorical("x0", ("0", "1"))
    note = "UCI Ionosphere, CC BY 4.0. Ranges: [-1, 1], as documented."
    return _data((flag, *attributes[1:]), values, np.asarray(table["y"]) == "g", 3.9, note)


def digits(bounds: Bounds) -> Data:
    from sklearn.datasets import load_digits

    found = load_digits()
    values = np.asarray(found.data, dtype=np.float64)
    attributes = _ranges(np.zeros(values.shape[1]), np.full(values.shape[1], 16.0))
    note = "UCI Optical Recognition of Handwritten Digits (test part), CC BY 4.0, by "
    note += "scikit-learn; odd against even. Ranges: [0, 16], as documented. Used for no choice."
    return _data(attributes, values, np.asarray(found.target % 2 == 1), 1.0, note)


def _ranges(lows: Floats, highs: Floats) -> tuple[Attribute, ...]:
    pairs = zip(lows.tolist(), highs.tolist(), strict=True)
    return tuple(Continuous(f"x{place}", *pair) for place, pair in enumerate(pairs))


def _data(
    attributes: tuple[Attribute, ...], values: Floats, labels: Labels, cost: float, note: str
) -> Data:
    schema = ScaledSchema(attributes, Label("label", "negative", "positive"))
    assert math.isfinite(float(values.sum()))
    scaled = [one.scale(values[:, place], "data") for place, one in enumerate(attributes)]
    return Data(schema, ScaledRecords(np.column_stack(scaled), labels), cost, note)
