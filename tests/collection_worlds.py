"""Small records for tests of the collection: some attributes tell the label, others nothing."""

import numpy as np

from noisefloor.collection.encoding.discretisation import Discretiser
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import (
    Categorical,
    Continuous,
    Label,
    ScaledRecords,
    ScaledSchema,
)

LABEL = Label("y", "0", "1")


def schema(attributes: int = 6, categories: int = 0) -> ScaledSchema:
    """Return continuous attributes, the last of them categorical if asked for."""
    listed = () if not categories else (Categorical("c", tuple(map(str, range(categories)))),)
    ranges = tuple(Continuous(f"x{at}", -1, 1) for at in range(attributes - len(listed)))
    return ScaledSchema((*ranges, *listed), LABEL)


def records(n: int = 2000, attributes: int = 6, telling: int = 2, seed: int = 1) -> ScaledRecords:
    """Return records whose first attributes lie on the label's side, the others anywhere."""
    draws = SeededSource(seed, "records").generator()
    labels = draws.random(n) < 0.5
    values = draws.uniform(-1, 1, (n, attributes))
    sides = np.where(labels, 0.5, -0.5)[:, None]
    values[:, :telling] = np.clip(sides + draws.normal(0, 0.3, (n, telling)), -1, 1)
    return ScaledRecords(values, labels)


def classes(most: int = 2, attributes: int = 6) -> Discretiser:
    """Return classes of continuous attributes."""
    return Discretiser(schema(attributes), most)
