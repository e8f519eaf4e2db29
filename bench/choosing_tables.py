"""The tables on which the rule for class counts was chosen; none of them judges it.

Eight families are synthetic, each a stated distribution at several sizes; seven are real: the
numbers of Adult, of five tables out of the archive that has Ionosphere, and of two kinds of iris.
Ranges are such as one may know before anybody reports: documented ends, or, for a quantity of
which the order of size is known, zero (minus as much, if it can be negative) to the next power of
two.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from noisefloor.checks import Floats
from noisefloor.randomness import Generator, SeededSource
from noisefloor.tables.cache import read_cached
from noisefloor.tables.data_sets import ADULT, IONOSPHERE, DataSet, Member
from noisefloor.tables.fetching import fetch_data_sets
from noisefloor.tables.reading import load_table
from noisefloor.tables.scaled_records import (
    Continuous,
    Label,
    Labels,
    ScaledRecords,
    ScaledSchema,
)
from noisefloor_sim.pipelines.collection.synthetic_wearables import SCHEMA, health_records

TESTED = 2000
"""Fresh records that each model is scored on."""

POSITIVE = 0.4
_SHARED = 0.5
"""Of a standard deviation, what all numbers of a record have in common."""

PARTS = 5
"""Of a real table."""

Draw = Callable[[Generator, int], tuple[ScaledSchema, ScaledRecords]]
"""Makes the schema, and the records of a number of people."""

Fold = tuple[ScaledSchema, ScaledRecords, ScaledRecords]
"""The schema, records to train on and records to score."""


class ChoosingTable(Protocol):
    """Records to choose on."""

    @property
    def family(self) -> str:
        """Tables of one family weigh together as much as any other family."""
        ...

    @property
    def owners(self) -> int:
        """About how many train."""
        ...

    @property
    def attributes(self) -> int:
        """How many there are."""
        ...

    @property
    def is_real(self) -> bool:
        """Whether people or things were measured."""
        ...

    def folds(self, seed: int) -> Iterator[Fold]:
        """Return schema, records to train on and records to score, once or several times."""
        ...


@dataclass(frozen=True, slots=True)
class SyntheticTable:
    """Records of one distribution, as many as are wanted."""

    family: str
    owners: int
    attributes: int
    draw: Draw
    is_real: bool = False

    def folds(self, seed: int) -> Iterator[Fold]:
        """Draw once; what nobody trains on is scored."""
        name = f"{self.family} {self.attributes} {self.owners}"
        chance = SeededSource(seed, "choosing", name).generator()
        schema, records = self.draw(chance, self.owners + TESTED)
        yield schema, records[slice(0, self.owners)], records[slice(self.owners, None)]


@dataclass(frozen=True, slots=True)
class RealTable:
    """Rows of one table, each scored once in the parts of a shuffle."""

    family: str
    schema: ScaledSchema
    records: ScaledRecords
    is_real: bool = True

    @property
    def owners(self) -> int:
        """Those of all parts but one."""
        return len(self.records) * (PARTS - 1) // PARTS

    @property
    def attributes(self) -> int:
        """Those of the schema."""
        return len(self.schema)

    def folds(self, seed: int) -> Iterator[Fold]:
        """Train on all parts but one, for each part."""
        words = SeededSource(seed, "choosing", self.family).words(len(self.records))
        parts = np.array_split(np.argsort(words), PARTS)
        for place, part in enumerate(parts):
            rest = np.concatenate([*parts[:place], *parts[place + 1 :]])
            yield self.schema, self.records[rest], self.records[part]


def next_power(values: Floats) -> Floats:
    """Return the next power of two of each value."""
    return np.asarray(2.0 ** np.ceil(np.log2(values)))


def scaled(
    values: Floats, labels: Labels, lows: Floats, highs: Floats
) -> tuple[ScaledSchema, ScaledRecords]:
    """Return records of numbers in public ranges."""
    ends = zip(lows.tolist(), highs.tolist(), strict=True)
    attributes = tuple(Continuous(f"x{place}", *pair) for place, pair in enumerate(ends))
    columns = [one.scale(values[:, place], "table") for place, one in enumerate(attributes)]
    schema = ScaledSchema(attributes, Label("label", "no", "yes"))
    return schema, ScaledRecords(np.column_stack(columns), labels > 0)


def gaussian(family: str, owners: int, attributes: int, *, is_loose: bool) -> SyntheticTable:
    """Normal numbers whose mean the label moves, in [0, next power of two] or +-3 deviations."""
    fixed = SeededSource(attributes, family).generator()
    shifts = 1.2 * fixed.uniform(-1, 1, attributes)
    means = fixed.uniform(2, 6, attributes)
    lows = np.zeros(attributes) if is_loose else means - 3
    highs = next_power(means + 3) if is_loose else means + 3

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        labels = chance.random(count) < POSITIVE
        return scaled(
            means + shifts * labels[:, None] + _noise(chance, count, attributes),
            labels,
            lows,
            highs,
        )

    return SyntheticTable(family, owners, attributes, draw)


def lognormal(family: str, owners: int, attributes: int, *, is_loose: bool) -> SyntheticTable:
    """Skewed numbers whose logarithm the label moves, up to the next power or a high quantile."""
    fixed = SeededSource(attributes, family).generator()
    shifts, widths = 1.8 * fixed.random(attributes), fixed.uniform(0.3, 0.9, attributes)
    middles = fixed.uniform(-2, 4, attributes)
    tops = np.exp(middles + 3 * widths)

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        labels = chance.random(count) < POSITIVE
        logs = shifts * labels[:, None] + _noise(chance, count, attributes)
        values = np.exp(middles + widths * logs)
        return scaled(values, labels, np.zeros(attributes), next_power(tops) if is_loose else tops)

    return SyntheticTable(family, owners, attributes, draw)


def spread(family: str, owners: int, attributes: int) -> SyntheticTable:
    """Numbers in [-1, 1] whose spread depends on the label, and their mean a little."""
    fixed = SeededSource(attributes, family).generator()
    narrow, wide = fixed.uniform(0.2, 0.5, attributes), fixed.uniform(0.5, 1.2, attributes)
    means = fixed.uniform(0, 0.4, attributes)

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        labels = chance.random(count) < 1 - POSITIVE
        noise = _noise(chance, count, attributes)
        values = np.where(labels[:, None], means + narrow * noise, wide * noise)
        ends = np.ones(attributes)
        return scaled(np.clip(values, -1, 1), labels, -ends, ends)

    return SyntheticTable(family, owners, attributes, draw)


def mixture(family: str, owners: int, attributes: int) -> SyntheticTable:
    """Two groups of each label around centres of their own, in [0, next power of two]."""
    fixed = SeededSource(attributes, family).generator()
    centres = fixed.uniform(1, 3, (2, 2, attributes))

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        labels = (chance.random(count) < POSITIVE).astype(np.int64)
        values = centres[labels, chance.integers(0, 2, count)]
        values = values + 1.5 * _noise(chance, count, attributes)
        return scaled(values, labels, np.zeros(attributes), np.full(attributes, 8.0))

    return SyntheticTable(family, owners, attributes, draw)


def logistic(family: str, owners: int, attributes: int) -> SyntheticTable:
    """Even numbers in [0, 1], and a label by a logistic rule."""
    weights = SeededSource(attributes, family).generator().standard_normal(attributes)
    weights *= 8 / np.sqrt(attributes)

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        values = chance.random((count, attributes))
        labels = chance.random(count) < 1 / (1 + np.exp(-(values - 0.5) @ weights))
        return scaled(values, labels, np.zeros(attributes), np.ones(attributes))

    return SyntheticTable(family, owners, attributes, draw)


def wearables(owners: int) -> SyntheticTable:
    """The synthetic records of the simulator."""
    return SyntheticTable(
        "wearables",
        owners,
        len(SCHEMA),
        lambda chance, count: (SCHEMA, health_records(count, chance)),
    )


@cache
def _adult() -> tuple[Floats, Labels]:
    table = load_table("adult")
    label = next(name for name in table if name.startswith("income"))
    numbers = [column for name, column in table.items() if column.dtype.kind in "iuf"]
    rich = np.array([str(one).startswith(">") for one in table[label]])
    return np.column_stack(numbers).astype(np.float64), rich


def adult(owners: int) -> SyntheticTable:
    """Numerical columns of Adult, in [0, next power of two]."""
    values, labels = _adult()

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        some = chance.permutation(len(values))[:count]
        highs = next_power(values.max(axis=0) + 1)
        return scaled(values[some], labels[some], np.zeros(values.shape[1]), highs)

    return SyntheticTable("adult", owners, values.shape[1], draw, is_real=True)


ORANGE = DataSet(
    name="orange-tables",
    title="Small tables that come with Orange",
    archive=IONOSPHERE.archive,
    members=(
        Member(
            "Orange/datasets/heart_disease.tab",
            "heart.tsv",
            "954e44e3d93a97682b5466c7ea166e16f376f8dd93deef5855f511734e4d6224",
            24_031,
        ),
        Member(
            "Orange/datasets/housing.tab",
            "housing.tsv",
            "2d729b907004916d7485d2af6a27afa23fdfb1b901d5ff8483bdf71d2cba5c51",
            34_742,
        ),
        Member(
            "Orange/tests/datasets/imports-85.tab",
            "autos.tsv",
            "74f74d1b57617ee22895ec0067ff6fbd0f746f5c919e7af1a1f62303b8b50f90",
            26_300,
        ),
        Member(
            "Orange/tests/datasets/breast-cancer-wisconsin.tab",
            "cells.tsv",
            "28a04d47023d8199ab5e4ab121ef6963f1d8a5907b1df573df59a34a68114fcc",
            35_787,
        ),
        Member(
            "Orange/datasets/brown-selected.tab",
            "yeast.tsv",
            "a18d1cf06ee090246c754bc0572e5b1d6467911d3300d0ba11313e7551f2ec15",
            98_010,
        ),
    ),
    licence="CC BY 4.0 (UCI), public domain",
    source="UCI Machine Learning Repository; StatLib; Brown and others 2000",
    rows=1943,
    columns=81,
    redistributable=True,
    note="For bench/class_counts.py.",
)

_LABELS: dict[str, tuple[str, str]] = {
    "heart.tsv": ("diameter narrowing", "1"),
    "housing.tsv": ("MEDV", ""),
    "autos.tsv": ("price", ""),
    "cells.tsv": ("type", "benign"),
    "yeast.tsv": ("function", "Ribo"),
}
"""The column to predict and its positive class; nothing: above its median."""


def orange(member: Member) -> RealTable:
    """Return the numbers of a table; rows with gaps are left out, and columns that mostly are."""
    lines = read_cached(ORANGE, member).decode().splitlines()
    cells = np.array([[one.strip() for one in line.split("\t")] for line in lines if line.strip()])
    names, kinds, rows = cells[0], cells[1], cells[3:]
    label, positive = _LABELS[member.file]
    said = rows[:, names == label][:, 0]
    is_number = np.isin(kinds, ("c", "continuous")) & (names != label)
    columns = rows[:, is_number]
    columns = columns[:, (columns == "?").mean(axis=0) < 0.1]
    is_whole = (columns != "?").all(axis=1) & (said != "?")
    values, said = columns[is_whole].astype(np.float64), said[is_whole]
    labels = said == positive if positive else _above_median(said.astype(np.float64))
    return _real(member.file.removesuffix(".tsv"), values[:, values.std(axis=0) > 0], labels)


def iris() -> RealTable:
    """Return the two kinds of iris that are hard to tell apart."""
    from sklearn.datasets import load_iris

    found = load_iris()
    return _real("iris", found.data[50:], found.target[50:] == 2)


def _real(family: str, values: Floats, labels: Labels) -> RealTable:
    highs = next_power(np.abs(values).max(axis=0))
    lows = np.where(values.min(axis=0) < 0, -highs, 0.0)
    return RealTable(family, *scaled(values, labels, lows, highs))


def _above_median(values: Floats) -> Labels:
    return np.asarray(values > np.median(values))


def choosing_tables() -> list[ChoosingTable]:
    """Return all of them: few to many owners, few to many attributes."""
    fetch_data_sets([ORANGE, ADULT])
    loose = ((400, 10), (500, 30), (2000, 30), (8000, 8))
    skewed = ((400, 12), (500, 30), (3000, 20), (8000, 8))
    documented = ((500, 30), (2000, 10))
    return [
        *(gaussian("gauss, loose", *size, is_loose=True) for size in loose),
        *(gaussian("gauss, documented", *size, is_loose=False) for size in documented),
        *(lognormal("skewed, loose", *size, is_loose=True) for size in skewed),
        *(lognormal("skewed, documented", *size, is_loose=False) for size in documented),
        *(spread("spread", *size) for size in ((350, 30), (400, 8), (2000, 20))),
        *(mixture("mixture", *size) for size in ((400, 15), (2000, 10))),
        *(logistic("logistic", *size) for size in ((450, 12), (4000, 12))),
        *(wearables(owners) for owners in (500, 2000, 10000)),
        *(adult(owners) for owners in (500, 5000, 20000)),
        *(orange(member) for member in ORANGE.members),
        iris(),
    ]


def _noise(chance: Generator, count: int, attributes: int) -> Floats:
    """Return standard normal numbers of which a part is common to the record."""
    own = chance.standard_normal((count, attributes))
    common = chance.standard_normal((count, 1))
    return np.asarray(_SHARED * common + np.sqrt(1 - _SHARED**2) * own)
