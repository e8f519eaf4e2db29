"""Small worlds of records to learn from: a schema, and people drawn from a stated law."""

import numpy as np

from noisefloor.collection.schema import Categorical, Continuous, Label, Records, Schema
from noisefloor.randomness import SeededSource

LABEL = Label("label", "no", "yes")


def ranges(count: int) -> Schema:
    """Return a schema of so many numbers in [-1, 1]."""
    return Schema(tuple(Continuous(f"x{place}", -1.0, 1.0) for place in range(count)), LABEL)


def mixed_schema() -> Schema:
    """Return two ranges, and lists of two and of three categories."""
    listed = (Categorical("flag", ("a", "b")), Categorical("level", ("low", "middle", "high")))
    return Schema((Continuous("x", -1.0, 1.0), *listed, Continuous("y", -1.0, 1.0)), LABEL)


def two_groups(schema: Schema, n: int, path: str, apart: float = 0.4) -> Records:
    """Return n records, 40 % of them positive and each of their values larger by ``apart``."""
    draw = SeededSource(11, "records", path).generator()
    labels = draw.random(n) < 0.4
    values = draw.normal(np.where(labels, apart / 2, -apart / 2)[:, None], 0.3, (n, len(schema)))
    for place, one in enumerate(schema.attributes):
        if isinstance(one, Categorical):
            last = len(one.values) - 1
            steps = np.clip(np.rint((values[:, place] + 1) * last / 2), 0, last)
            values[:, place] = steps * 2 / last - 1
    return Records(np.clip(values, -1.0, 1.0), labels)


def accuracy(told: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], records: Records) -> float:
    """Return the share of true labels."""
    return float(np.mean(told == records.labels))
