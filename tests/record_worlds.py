"""Small worlds of records to learn from: a schema, and people drawn from a stated distribution."""

import numpy as np

from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import (
    Categorical,
    Continuous,
    Label,
    ScaledRecords,
    ScaledSchema,
)

LABEL = Label("label", "no", "yes")


def ranges(count: int) -> ScaledSchema:
    """Return a schema of n numbers in [-1, 1]."""
    return ScaledSchema(tuple(Continuous(f"x{place}", -1.0, 1.0) for place in range(count)), LABEL)


def mixed_schema() -> ScaledSchema:
    """Return two ranges, and lists of two and of three categories."""
    listed = (Categorical("flag", ("a", "b")), Categorical("level", ("low", "middle", "high")))
    return ScaledSchema((Continuous("x", -1.0, 1.0), *listed, Continuous("y", -1.0, 1.0)), LABEL)


def two_groups(schema: ScaledSchema, n: int, path: str, apart: float = 0.4) -> ScaledRecords:
    """Return n records, 40 % of them positive and each of their values larger by ``apart``."""
    draw = SeededSource(11, "records", path).generator()
    labels = draw.random(n) < 0.4
    values = draw.normal(np.where(labels, apart / 2, -apart / 2)[:, None], 0.3, (n, len(schema)))
    for place, one in enumerate(schema.attributes):
        if isinstance(one, Categorical):
            last = len(one.values) - 1
            steps = np.clip(np.rint((values[:, place] + 1) * last / 2), 0, last)
            values[:, place] = steps * 2 / last - 1
    return ScaledRecords(np.clip(values, -1.0, 1.0), labels)


def accuracy(
    predicted: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], records: ScaledRecords
) -> float:
    """Return the share of true labels."""
    return float(np.mean(predicted == records.labels))
