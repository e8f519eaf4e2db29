"""Small records for tests of the collection: some attributes tell the label, others nothing."""

import numpy as np

from noisefloor.collection.classes import Classes
from noisefloor.collection.schema import Categorical, Continuous, Label, Records, Schema
from noisefloor.randomness import SeededSource

LABEL = Label("y", "0", "1")


def schema(attributes: int = 6, categories: int = 0) -> Schema:
    """Return continuous attributes, the last of them categorical if asked for."""
    listed = () if not categories else (Categorical("c", tuple(map(str, range(categories)))),)
    ranges = tuple(Continuous(f"x{at}", -1, 1) for at in range(attributes - len(listed)))
    return Schema((*ranges, *listed), LABEL)


def records(n: int = 2000, attributes: int = 6, telling: int = 2, seed: int = 1) -> Records:
    """Return records whose first attributes lie on the label's side, the others anywhere."""
    draws = SeededSource(seed, "records").generator()
    labels = draws.random(n) < 0.5
    values = draws.uniform(-1, 1, (n, attributes))
    sides = np.where(labels, 0.5, -0.5)[:, None]
    values[:, :telling] = np.clip(sides + draws.normal(0, 0.3, (n, telling)), -1, 1)
    return Records(values, labels)


def classes(most: int = 2, attributes: int = 6) -> Classes:
    """Return classes of continuous attributes."""
    return Classes(schema(attributes), most)
