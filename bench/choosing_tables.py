"""The tables on which the rule for class counts was chosen; none of them judges it.

Ranges are such as one may know before anybody reports: documented ends, or, for a quantity that is
never negative and of which the order of size is known, zero to the next power of two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from noisefloor.checks import Floats
from noisefloor.randomness import Generator, SeededSource
from noisefloor.tables.reading import load_table
from noisefloor.tables.scaled_records import Continuous, Label, ScaledRecords, ScaledSchema
from noisefloor_sim.pipelines.collection.synthetic_wearables import SCHEMA, health_records

TESTED = 2000
"""Fresh records that each model is scored on."""

POSITIVE = 0.4
_SHARED = 0.5
"""Of a standard deviation, what all numbers of a record have in common."""

Draw = Callable[[Generator, int], tuple[Floats, Floats]]
"""Values and labels of so many records."""


@dataclass(frozen=True, slots=True)
class ChoosingTable:
    """Records of one kind, as many as are wanted.

    Attributes:
        family: Tables of one family weigh as much as one.
        owners: How many train.
        attributes: How many there are.
        draw: Makes the schema, and records of so many people.
    """

    family: str
    owners: int
    attributes: int
    draw: Callable[[Generator, int], tuple[ScaledSchema, ScaledRecords]]

    @property
    def name(self) -> str:
        """Family, attributes and owners."""
        return f"{self.family} {self.attributes} x {self.owners}"

    def split(self, seed: int) -> tuple[ScaledSchema, ScaledRecords, ScaledRecords]:
        """Return the schema, records to train on and records to score."""
        chance = SeededSource(seed, "choosing", self.name).generator()
        schema, records = self.draw(chance, self.owners + TESTED)
        train, test = slice(0, self.owners), slice(self.owners, None)
        return schema, records[train], records[test]


def next_power(values: Floats) -> Floats:
    """Return the next power of two of each value."""
    return np.asarray(2.0 ** np.ceil(np.log2(values)))


def scaled(
    values: Floats, labels: Floats, lows: Floats, highs: Floats
) -> tuple[ScaledSchema, ScaledRecords]:
    """Return records of numbers in public ranges."""
    ends = zip(lows.tolist(), highs.tolist(), strict=True)
    attributes = tuple(Continuous(f"x{place}", *pair) for place, pair in enumerate(ends))
    columns = [one.scale(values[:, place], "table") for place, one in enumerate(attributes)]
    schema = ScaledSchema(attributes, Label("label", "no", "yes"))
    return schema, ScaledRecords(np.column_stack(columns), labels > 0)


def gaussian(family: str, owners: int, attributes: int, *, is_loose: bool) -> ChoosingTable:
    """Normal numbers whose mean the label moves, in [0, next power of two] or in +-3 deviations."""
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

    return ChoosingTable(family, owners, attributes, draw)


def lognormal(family: str, owners: int, attributes: int, *, is_loose: bool) -> ChoosingTable:
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

    return ChoosingTable(family, owners, attributes, draw)


def spread(family: str, owners: int, attributes: int) -> ChoosingTable:
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

    return ChoosingTable(family, owners, attributes, draw)


def mixture(family: str, owners: int, attributes: int) -> ChoosingTable:
    """Two groups of each label around centres of their own, in [0, next power of two]."""
    fixed = SeededSource(attributes, family).generator()
    centres = fixed.uniform(1, 3, (2, 2, attributes))

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        labels = (chance.random(count) < POSITIVE).astype(np.int64)
        values = centres[labels, chance.integers(0, 2, count)]
        values = values + 1.5 * _noise(chance, count, attributes)
        return scaled(values, labels, np.zeros(attributes), np.full(attributes, 8.0))

    return ChoosingTable(family, owners, attributes, draw)


def logistic(family: str, owners: int, attributes: int) -> ChoosingTable:
    """Even numbers in [0, 1], and a label by a logistic rule."""
    weights = SeededSource(attributes, family).generator().standard_normal(attributes)
    weights *= 8 / np.sqrt(attributes)

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        values = chance.random((count, attributes))
        labels = chance.random(count) < 1 / (1 + np.exp(-(values - 0.5) @ weights))
        return scaled(values, labels, np.zeros(attributes), np.ones(attributes))

    return ChoosingTable(family, owners, attributes, draw)


def wearables(owners: int) -> ChoosingTable:
    """The synthetic records of the simulator."""
    return ChoosingTable(
        "wearables",
        owners,
        len(SCHEMA),
        lambda chance, count: (SCHEMA, health_records(count, chance)),
    )


@cache
def _adult() -> tuple[Floats, Floats]:
    table = load_table("adult")
    label = next(name for name in table if name.startswith("income"))
    numbers = [column for name, column in table.items() if column.dtype.kind in "iuf"]
    rich = np.array([str(one).startswith(">") for one in table[label]])
    return np.column_stack(numbers).astype(np.float64), rich


def adult(owners: int) -> ChoosingTable:
    """Numerical columns of Adult, in [0, next power of two]."""
    values, labels = _adult()

    def draw(chance: Generator, count: int) -> tuple[ScaledSchema, ScaledRecords]:
        some = chance.permutation(len(values))[:count]
        highs = next_power(values.max(axis=0) + 1)
        return scaled(values[some], labels[some], np.zeros(values.shape[1]), highs)

    return ChoosingTable("adult", owners, values.shape[1], draw)


def choosing_tables() -> list[ChoosingTable]:
    """Return all of them: few to many owners, few to many attributes."""
    return [
        *(gaussian("gauss, loose", *size, is_loose=True) for size in ((400, 10), (2000, 30))),
        *(gaussian("gauss, loose", *size, is_loose=True) for size in ((500, 30), (8000, 8))),
        *(
            gaussian("gauss, documented", *size, is_loose=False)
            for size in ((500, 30), (2000, 10))
        ),
        *(lognormal("skewed, loose", *size, is_loose=True) for size in ((500, 30), (400, 12))),
        *(lognormal("skewed, loose", *size, is_loose=True) for size in ((3000, 20), (8000, 8))),
        *(
            lognormal("skewed, documented", *size, is_loose=False)
            for size in ((500, 30), (2000, 10))
        ),
        *(spread("spread", *size) for size in ((350, 30), (400, 8), (2000, 20))),
        *(mixture("mixture", *size) for size in ((400, 15), (2000, 10))),
        *(logistic("logistic", *size) for size in ((450, 12), (4000, 12))),
        *(wearables(owners) for owners in (500, 2000, 10000)),
        *(adult(owners) for owners in (500, 5000, 20000)),
    ]


def _noise(chance: Generator, count: int, attributes: int) -> Floats:
    """Return standard normal numbers of which a part is common to the record."""
    own = chance.standard_normal((count, attributes))
    common = chance.standard_normal((count, 1))
    return np.asarray(_SHARED * common + np.sqrt(1 - _SHARED**2) * own)
