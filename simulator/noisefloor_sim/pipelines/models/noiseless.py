"""Noiseless recomputations of what releases add noise to, from the records.

They share no code with the releases: counts from sorted cells, gradients from rows in double
precision.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.publication import LogisticPlan
from noisefloor.tables import OneHot, Records

Floats = NDArray[np.float64]

_CLIP_MARGIN = 3e-3
"""How much shorter than its bound a clipped gradient may be: norms are rounded up before they are
clipped, by 1e-5 of terms that are at most 20 times the number of columns."""

_FEATURE_FLOOR = 0.05
"""Added to the mean of a feature before its root is taken, as the plan says."""


def counted(records: Records, columns: Sequence[str]) -> Floats:
    """Return how many records lie in each cell of some columns, as one vector."""
    sizes = [records.schema.column(name).size for name in columns]
    cells = np.zeros(records.count, dtype=np.int64)
    for name, size in zip(columns, sizes, strict=True):
        cells = cells * size + np.asarray(records.codes[name])
    ordered = np.sort(cells)
    ends = np.searchsorted(ordered, np.arange(math.prod(sizes)), side="right")
    return np.diff(ends, prepend=0).astype(np.float64)


def feature_sums(records: Records, encoding: OneHot) -> Floats:
    """Return how often each value of each column occurs, in the order of the features."""
    return np.concatenate([counted(records, (name,)) for name in encoding.columns])


@dataclass(frozen=True, slots=True, eq=False)
class LogisticReference:
    """Sums of clipped gradients of logistic regression, as its plan defines them.

    Attributes:
        plan: Clip and size.
        rows: Centred and scaled features of each record, and a 1 for the bias.
        labels: The class of each record.
    """

    plan: LogisticPlan
    rows: Floats
    labels: NDArray[Any]  # Any: integers of some width

    @classmethod
    def of(
        cls, plan: LogisticPlan, records: Records, encoding: OneHot, noised_sums: Floats
    ) -> "LogisticReference":
        """Centre and scale the features by the noisy sums, which are released."""
        columns = [
            np.eye(records.schema.column(name).size)[records.codes[name]]
            for name in encoding.columns
        ]
        features = np.concatenate(columns, axis=1)
        means = np.clip(noised_sums / plan.size, 0.0, 1.0)
        scaled = (features - means) / np.sqrt(means + _FEATURE_FLOOR)
        rows = np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)
        return cls(plan, rows, np.asarray(records.codes[encoding.label]))

    def gradient(self, at: Floats) -> tuple[Floats, float]:
        """Return the sum of clipped gradients, and how far from it a rounded sum may lie.

        Args:
            at: A row for each feature and one for the bias, a column for each head.
        """
        logits = self.rows @ at
        if at.shape[1] == 1:
            errors = 1 / (1 + np.exp(-np.clip(logits, -30, 30))) - self.labels[:, None]
        else:
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            errors = shares / shares.sum(axis=1, keepdims=True)
            errors -= np.eye(at.shape[1])[self.labels]
        norms = np.linalg.norm(self.rows, axis=1) * np.linalg.norm(errors, axis=1)
        factors = np.minimum(1.0, self.plan.clip / np.maximum(norms, 1e-12))
        total = self.rows.T @ (errors * factors[:, None])
        return total.ravel(), _CLIP_MARGIN * float((norms * factors).sum())
