"""What training reports are about, and what is declared of them, computed apart from the devices.

Tastes, gradients, clipping, grids and ranks are worked out in this package anew, in double
precision and by formulas of their own; of the mechanisms only public constants are read: weights,
grids and the codebook. Devices compute in single precision, so that a value may be off by one step
of its grid, which moves no probability by more than 1e-4.

Every form says of a report: the transformed values that are uniform if it follows its declared
distribution, and its log-likelihood, up to what does not depend on the data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.ads.training import (
    AdModel,
    Broadcast,
)
from noisefloor.adversary.fit import (
    Distribution,
)
from noisefloor.checks import Floats
from noisefloor.mechanisms import (
    Reports,
)
from noisefloor.randomness import SeededSource

ALL = 1 << 62
"""More reports than there are."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RatingInputs:
    """What some reports are about.

    Attributes:
        rated: Whether an ad is rated.
        rating: How, where it is.
        tastes: The tastes that the reports are made with, where they are remembered over rounds.
    """

    rated: Flags
    rating: NDArray[np.float32]
    tastes: Floats | None = None

    def __len__(self) -> int:
        return len(self.rated)

    def __getitem__(self, rows: NDArray[np.int64] | slice) -> "RatingInputs":
        tastes = None if self.tastes is None else self.tastes[rows]
        return RatingInputs(self.rated[rows], self.rating[rows], tastes)

    @classmethod
    def joined(cls, parts: Sequence["RatingInputs"]) -> "RatingInputs":
        """Return several one after the other; all have tastes, or none has."""
        tastes = [part.tastes for part in parts if part.tastes is not None]
        return cls(
            np.concatenate([part.rated for part in parts]),
            np.concatenate([part.rating for part in parts]),
            np.concatenate(tastes) if tastes else None,
        )

    def above(self, base: Floats) -> Floats:
        """Return ratings less a base, and 0 where there are none."""
        return np.where(self.rated, self.rating.astype(np.float64) - base, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Transformed:
    """Some reports, transformed.

    Attributes:
        values: Uniform, one row for each of the first reports; columns are independent.
        named: Values to be counted by themselves: what they are, and how the planted fault would
            distribute them.
    """

    values: Floats
    named: "Named"


Named = tuple[tuple[str, Floats, Distribution | None], ...]
"""Transformed values, what they are, and how the planted fault would distribute them."""


class ReportReference(Protocol):
    """What is declared of the reports of one way of training."""

    @property
    def most(self) -> int:
        """Reports of a cohort's round that are transformed, the first of them."""
        ...

    def noise(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Named:
        """Return only what says how much noise there is."""
        ...

    def transformed(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs, draws: Floats
    ) -> Transformed:
        """Return what is uniform if reports follow their distribution; two draws each."""
        ...

    def log_likelihood(
        self, number: int, sent: Broadcast, reports: Reports, inputs: RatingInputs
    ) -> Floats:
        """Return ln P(report | ratings), up to what no data change."""
        ...

    def planted(
        self, number: int, sent: Broadcast, inputs: RatingInputs, source: SeededSource
    ) -> Reports:
        """Return reports with noise a quarter too small."""
        ...


def ridge_tastes(model: AdModel, inputs: RatingInputs, ridge: float, radius: float) -> Floats:
    """Return the tastes that fit ratings best, by the normal equations, within a ball."""
    factors = model.factors.astype(np.float64)
    ads, wide = factors.shape
    products = (factors[:, :, None] * factors[:, None, :]).reshape(ads, wide * wide)
    gram = (inputs.rated.astype(np.float64) @ products).reshape(-1, wide, wide)
    gram += ridge * np.eye(wide)
    right = inputs.above(base_ratings(model)) @ factors
    found = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
    return _within(np.asarray(found, dtype=np.float64), radius)


def stepped_tastes(
    model: AdModel,
    inputs: RatingInputs,
    before: Floats,
    *,
    rate: float,
    weight: float,
    radius: float,
) -> Floats:
    """Return tastes after one gradient step from those before."""
    factors = model.factors.astype(np.float64)
    error = np.where(inputs.rated, inputs.above(base_ratings(model)) - before @ factors.T, 0.0)
    moved = before + 2 * rate * (error @ factors - weight * before)
    return _within(moved, radius)


def base_ratings(model: AdModel) -> Floats:
    """Return what a model predicts of each ad for somebody without tastes."""
    return model.offsets.astype(np.float64) + model.centre


def _within(rows: Floats, radius: float) -> Floats:
    if math.isinf(radius):
        return rows
    norm = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.maximum(norm / radius, 1.0))
