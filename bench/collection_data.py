"""The data sets of `bench/collection.py`, each with a schema and a note on where it is from."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from noisefloor.checks import Floats
from noisefloor.tables.adult import LABEL, LEARNING_SCHEMA, load_adult
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
from noisefloor.tables.schema import Bins

PARTS = 10


@dataclass(frozen=True)
class Data:
    """A data set ready to be split.

    Attributes:
        schema: Of its records.
        records: In [-1, 1], with labels.
        note: Where it is from, and where its ranges are.
        cost: The C of the support vector machine; 0 where the paper's methods are not run.
        seeds: How many of the requested shuffles it has: those of a large table differ less.
        folds: How many of the ten parts are left out in turn.
    """

    schema: ScaledSchema
    records: ScaledRecords
    note: str
    cost: float = 0.0
    seeds: int = 1
    folds: int = PARTS

    @property
    def majority(self) -> float:
        """The share of the largest label, in per cent."""
        counts = np.bincount(self.records.labels.astype(np.int64))
        return 100 * float(counts.max() / counts.sum())

    @property
    def has_two_labels(self) -> bool:
        """Whether every method can be run: the paper's, and linear ones, take two labels."""
        return self.records.labels.dtype == np.bool_


@cache
def load(name: str) -> Data:
    """Return a data set by name."""
    return TABLES[name]()


def wdbc() -> Data:
    """WDBC with the extremes of all its records as ranges: as is usual, and as the paper does."""
    return _wdbc(is_public=False)


def wdbc_public() -> Data:
    """WDBC, whose ranges no standard documents, with what its order of size alone would tell."""
    return _wdbc(is_public=True)


def _wdbc(*, is_public: bool) -> Data:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    values = np.asarray(found.data, dtype=np.float64)
    lows, highs = values.min(axis=0), values.max(axis=0)
    if is_public:
        lows, highs = np.zeros_like(lows), 2.0 ** np.ceil(np.log2(highs))
    ranges = "[0, next power of two]" if is_public else "extremes of all records"
    note = (
        f"UCI Breast Cancer Wisconsin (Diagnostic), CC BY 4.0, by scikit-learn. Ranges: {ranges}."
    )
    # The paper's methods are compared at the paper's ranges.
    cost = 0.0 if is_public else 2.1
    return _data(_ranges(lows, highs), values, np.asarray(found.target == 0), note, cost=cost)


def ionosphere() -> Data:
    """Ionosphere without its constant column."""
    table = load_table("ionosphere")
    names = [name for name in table if name not in ("y", "a2")]
    values = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])
    # Returns are normalised to [-1, 1]; the first attribute is a flag, and a2 is constant.
    attributes = _ranges(np.full(len(names), -1.0), np.ones(len(names)))
    flag = Categorical("x0", ("0", "1"))
    note = "UCI Ionosphere, CC BY 4.0. Ranges: [-1, 1], as documented."
    return _data((flag, *attributes[1:]), values, np.asarray(table["y"]) == "g", note, cost=3.9)


_DIABETES = {
    "age": (18, 80),
    "bmi": (15, 45),
    "bp": (60, 140),
    "s1": (100, 300),
    "s2": (40, 240),
    "s3": (20, 100),
    "s4": (2, 10),
    "s5": (3, 6.5),
    "s6": (50, 130),
}


def diabetes() -> Data:
    """Whether the disease progresses by more than 140, the middle of the target."""
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    values = np.asarray(found.data, dtype=np.float64)
    attributes = tuple(
        Continuous(name, *_DIABETES[name]) if name in _DIABETES else Categorical(name, ("1", "2"))
        for name in found.feature_names
    )
    note = "Diabetes (Efron et al. 2004), by scikit-learn; target above 140. Ranges: round numbers"
    note += " around what is usual for adults, written by hand."
    return _data(attributes, values, np.asarray(found.target > 140), note)


def wine() -> Data:
    """Three growers: more labels than two."""
    from sklearn.datasets import load_wine

    found = load_wine()
    values = np.asarray(found.data, dtype=np.float64)
    note = "UCI Wine, CC BY 4.0, by scikit-learn; three labels. Ranges: extremes of all records."
    attributes = _ranges(values.min(axis=0), values.max(axis=0))
    return _data(attributes, values, found.target.astype(np.uint8), note)


def adult() -> Data:
    """Adult by its public schema: a column with bins is the number of its bin."""
    found = load_adult()
    columns = {name: one for name, one in LEARNING_SCHEMA.columns.items() if name != LABEL}
    values = np.column_stack([found.codes[name] for name in columns]).astype(np.float64)
    attributes = tuple(
        Continuous(name, 0, one.size - 1)
        if isinstance(one, Bins)
        else Categorical(name, tuple(str(place) for place in range(one.size)))
        for name, one in columns.items()
    )
    note = "UCI Adult, CC BY 4.0, complete rows, bins and categories of the public schema. The"
    note += " first of ten parts is left out; a quarter of the seeds. The rule was chosen on its"
    note += " numerical columns, among others: no independent judge of the class count."
    labels = np.asarray(found.codes[LABEL] == 1)
    return _data(attributes, values, labels, note, seeds=4, folds=1)


def digits() -> Data:
    """Odd against even digits."""
    from sklearn.datasets import load_digits

    found = load_digits()
    values = np.asarray(found.data, dtype=np.float64)
    attributes = _ranges(np.zeros(values.shape[1]), np.full(values.shape[1], 16.0))
    note = "UCI Optical Recognition of Handwritten Digits (test part), CC BY 4.0, by "
    note += "scikit-learn; odd against even. Ranges: [0, 16], as documented. Used for no choice."
    labels = np.asarray(found.target % 2 == 1)
    return _data(attributes, values, labels, note, cost=1.0, seeds=2)


TABLES: dict[str, Callable[[], Data]] = {
    "wdbc": wdbc,
    "wdbc-public": wdbc_public,
    "ionosphere": ionosphere,
    "diabetes": diabetes,
    "wine": wine,
    "adult": adult,
    "digits": digits,
}


def _ranges(lows: Floats, highs: Floats) -> tuple[Attribute, ...]:
    pairs = zip(lows.tolist(), highs.tolist(), strict=True)
    return tuple(Continuous(f"x{place}", *pair) for place, pair in enumerate(pairs))


def _data(
    attributes: tuple[Attribute, ...],
    values: Floats,
    labels: Labels,
    note: str,
    *,
    cost: float = 0.0,
    seeds: int = 1,
    folds: int = PARTS,
) -> Data:
    label = Label("label", "negative", "positive")
    if labels.dtype != np.bool_:
        names = tuple(str(place) for place in range(int(labels.max()) + 1))
        label = Label("label", names[0], names[1], names[2:])
    assert math.isfinite(float(values.sum()))  # noqa: S101  our own data sets
    scaled = [one.scale(values[:, place], "data") for place, one in enumerate(attributes)]
    records = ScaledRecords(np.column_stack(scaled), labels)
    schema = ScaledSchema(attributes, label)
    return Data(schema, records, note, cost, seeds, folds)
