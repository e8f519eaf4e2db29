"""LDP-SGD: logistic regression from one randomised gradient of each owner.

Owners are put into batches by public chance. The server sends the weights to one batch after the
other; each owner of it answers once, with its own gradient at these weights, randomised at the
whole epsilon; the server takes a step along the mean. Two randomisers: ``PrivUnit`` and the
hybrid mechanism on sampled coordinates. With more than two labels there is one row of weights for
each (one against the rest). A list of three or more categories is one column for each of them.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from noisefloor.checks import Floats, check_count, check_epsilon
from noisefloor.mechanisms import Hybrid
from noisefloor.privacy import Guarantee, Neighbours
from noisefloor.randomness import SeededSource
from noisefloor.tables.scaled_records import Categorical, ScaledSchema

EPSILON_A_COORDINATE = 2.5
"""Of one sampled coordinate: k = epsilon / 2.5 of them (Wang et al. 2019, algorithm 4)."""

_SPLITS = 200
"""Splits of epsilon between cap and coin that are tried."""


class VectorMechanism(Protocol):
    """What randomises gradients."""

    @property
    def scale(self) -> float:
        """What 1 in the domain stands for, where coordinates are of the order of 1."""
        ...

    def bound(self, vectors: Floats) -> Floats:
        """Return vectors clipped into the domain."""
        ...

    def randomise(self, vectors: Floats, source: SeededSource) -> Floats:
        """Return one unbiased vector for each."""
        ...

    def guarantee(self) -> Guarantee:
        """Return what is proved of one report."""
        ...


@dataclass(frozen=True, slots=True)
class PrivUnit:
    """Report a unit vector: with probability ``inside`` from the cap around the own direction.

    The cap is {v: <v, u> >= edge}, and has the share q of the sphere. A report is even over the
    cap with probability ``inside``, and even over the rest otherwise. Its density is at most
    inside / q and at least (1 - inside) / (1 - q), and both are reached. So

        epsilon = ln(inside / (1 - inside)) + ln((1 - q) / q):

    the first term is spent on the coin (epsilon_0), the second on the cap. Of all splits the one
    of the least variance is taken; it depends on dimension and epsilon only. A vector shorter
    than 1 is first rounded to full length, forwards or backwards, without bias.

    Guarantee:  pure DP, the epsilon above, per report, for real numbers; draws are in double
                precision, whose rounding is not accounted for.
    Neighbours: item = user: any vector to any other; one user holds one vector (local model).
    Domain:     vectors of Euclidean length at most 1; longer ones are shortened by ``bound``.
    Reference:  Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018, arXiv 1812.00984 (PrivUnit2).

    Attributes:
        dimension: Numbers per vector, at least 2.
        epsilon: As requested.
        edge: Least product of a vector of the cap with the own direction.
        inside: Probability of the cap.
    """

    dimension: int
    epsilon: float
    edge: float = field(init=False)
    inside: float = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.dimension, "dimension", least=2, most=1 << 16)
        spent = check_epsilon(self.epsilon) * np.arange(1, _SPLITS + 1) / _SPLITS
        edges = 1 - 2 * special.betaincinv(self._half, self._half, special.expit(-spent))
        insides = special.expit(self.epsilon - spent)
        best = int(np.argmax(self._gain(edges, insides)))
        object.__setattr__(self, "edge", float(edges[best]))
        object.__setattr__(self, "inside", float(insides[best]))

    @property
    def cap(self) -> float:
        """The share of the sphere that is in the cap."""
        return float(special.betainc(self._half, self._half, (1 - self.edge) / 2))

    @property
    def epsilon_of_cap(self) -> float:
        """What is spent on the cap; the rest is spent on the coin."""
        return math.log((1 - self.cap) / self.cap)

    @property
    def gain(self) -> float:
        """The mean product of a report with the own direction."""
        return float(self._gain(np.array([self.edge]), np.array([self.inside]))[0])

    def guarantee(self) -> Guarantee:
        """Return the logarithm of the ratio of the two densities."""
        choice = math.log(self.inside / (1 - self.inside))
        return Guarantee(choice + self.epsilon_of_cap, Neighbours.USER)

    @property
    def scale(self) -> float:
        """The length of a vector whose coordinates are 1."""
        return math.sqrt(self.dimension)

    def bound(self, vectors: Floats) -> Floats:
        """Shorten to length 1."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1))

    def randomise(self, vectors: Floats, source: SeededSource) -> Floats:
        """Return one vector for each: unbiased, of length 1 / gain."""
        draw = source.generator()
        lengths = np.linalg.norm(vectors, axis=1)
        forward = draw.random(len(vectors)) < (1 + lengths) / 2
        own = np.where(forward, 1.0, -1.0)[:, None] * _units(vectors, draw)
        is_inside, even = draw.random((2, len(vectors)))
        cap = self.cap
        tail = np.where(is_inside < self.inside, even * cap, cap + even * (1 - cap))
        products = 1 - 2 * special.betaincinv(self._half, self._half, tail)[:, None]
        across = draw.standard_normal(vectors.shape)
        across -= (across * own).sum(axis=1, keepdims=True) * own
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        reports = products * own + np.sqrt(np.maximum(1 - products**2, 0)) * across
        return np.asarray(reports / self.gain)

    @property
    def _half(self) -> float:
        """(1 - <v, u>) / 2 of an even direction v has the distribution Beta(half, half)."""
        return (self.dimension - 1) / 2

    def _gain(self, edges: Floats, insides: Floats) -> Floats:
        """Return inside E[t | t >= edge] + (1 - inside) E[t | t < edge], t = <v, u>."""
        d, half = self.dimension, self._half
        caps = special.betainc(half, half, (1 - edges) / 2)
        whole = math.exp((d - 2) * math.log(2) + special.betaln(half, half))
        above = (1 - edges**2) ** half / ((d - 1) * whole)
        return np.asarray(above * (insides / caps - (1 - insides) / (1 - caps)))


@dataclass(frozen=True, slots=True)
class SampledHybrid:
    """Draw k coordinates, and report each by the hybrid mechanism with epsilon / k.

    Guarantee:  pure DP, k times that of one coordinate, per report; which are drawn does not
                depend on the vector.
    Neighbours: item = user: any vector to any other; one user holds one vector (local model).
    Domain:     vectors of numbers in [-1, 1]; others are moved to the nearest end by ``bound``.
    Reference:  Wang et al. 2019, arXiv 1907.00782 (algorithm 4, and section 5 for gradients).

    Attributes:
        dimension: Numbers per vector.
        epsilon: As requested.
        chosen: Coordinates that an owner draws.
    """

    dimension: int
    epsilon: float
    chosen: int = field(init=False)

    def __post_init__(self) -> None:
        check_count(self.dimension, "dimension", most=1 << 16)
        share = int(check_epsilon(self.epsilon) / EPSILON_A_COORDINATE)
        object.__setattr__(self, "chosen", max(1, min(self.dimension, share)))

    @property
    def each(self) -> Hybrid:
        """What one coordinate goes through."""
        return _hybrid(self.epsilon / self.chosen)

    def guarantee(self) -> Guarantee:
        """Return the sum over the coordinates that are sent."""
        return Guarantee(self.chosen * self.each.guarantee().epsilon, Neighbours.USER)

    @property
    def scale(self) -> float:
        """Coordinates are taken as they are."""
        return 1.0

    def bound(self, vectors: Floats) -> Floats:
        """Move each coordinate into [-1, 1]."""
        return np.clip(vectors, -1.0, 1.0)

    def randomise(self, vectors: Floats, source: SeededSource) -> Floats:
        """Return vectors with d / k times the debiased reports, and 0 elsewhere."""
        n, d = vectors.shape
        keys = source.child("coordinates").words(n * d).reshape(n, d)
        drawn = np.argpartition(keys, self.chosen - 1, axis=1)[:, : self.chosen]
        own = np.take_along_axis(vectors, drawn, axis=1)
        cells = self.each.randomise(own.reshape(-1), source.child("values"))
        reports = np.zeros((n, d))
        numbers = debiased(self.each, cells).reshape(own.shape) * (d / self.chosen)
        np.put_along_axis(reports, drawn, numbers, axis=1)
        return reports


@lru_cache(maxsize=64)
def _hybrid(epsilon: float) -> Hybrid:
    return Hybrid(epsilon)


def debiased(hybrid: Hybrid, reports: NDArray[np.uint32]) -> Floats:
    """Return one unbiased number for each cell or bit."""
    bits = reports.astype(np.int64) - hybrid.piecewise.window.cells
    size = hybrid.one_bit.size
    numbers = hybrid.piecewise.debias(np.where(bits < 0, reports, 0))
    return np.where(bits < 0, numbers, np.where(bits == 1, size, -size))


def _units(vectors: Floats, draw: np.random.Generator) -> Floats:
    """Return the directions; a vector of no length has any."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    spare = draw.standard_normal(vectors.shape[1])
    return np.asarray(
        np.where(lengths > 0, vectors, spare)
        / np.where(lengths > 0, lengths, np.linalg.norm(spare))
    )


@dataclass(frozen=True, slots=True)
class Descent:
    """How steps are taken.

    Attributes:
        batches: Of owners, one step each.
        step: The t-th step is step / sqrt(t) times the mean gradient.
        clip: Bound of a coordinate, or of the length over the root of the dimension.
    """

    batches: int
    step: float
    clip: float


@dataclass(frozen=True, slots=True, eq=False)
class LogisticModel:
    """The label whose row of weights gives the largest product; of one row, its sign.

    Attributes:
        schema: What the values are.
        weights: A row for each label, or one row where there are two.
    """

    schema: ScaledSchema
    weights: Floats

    def predict(self, values: Floats) -> NDArray[np.int64]:
        """Return the labels of records in [-1, 1], counted from 0."""
        scores = features_of(self.schema, values) @ self.weights.T
        found = scores[:, 0] > 0 if len(self.weights) == 1 else scores.argmax(axis=1)
        return np.asarray(found, dtype=np.int64)


def features_of(schema: ScaledSchema, values: Floats) -> Floats:
    """Return numbers as they are, a column for each of three or more categories, and a 1."""
    columns: list[NDArray[Any]] = []  # Any: numbers, or bits of categories
    for place, one in enumerate(schema.attributes):
        if isinstance(one, Categorical) and len(one.values) > 2:
            spots = np.linspace(-1, 1, len(one.values))
            columns.append(np.abs(values[:, place, None] - spots) * len(spots) < 0.5)
        else:
            columns.append(values[:, place, None])
    return np.column_stack([*columns, np.ones(len(values))])


def width_of(schema: ScaledSchema) -> int:
    """Return how many features a record has."""
    return int(features_of(schema, np.zeros((1, len(schema)))).shape[1])


def fit_gradients(
    mechanism: VectorMechanism,
    descent: Descent,
    schema: ScaledSchema,
    values: Floats,
    labels: NDArray[np.int64],
    source: SeededSource,
    *,
    label_count: int = 2,
) -> LogisticModel:
    """Fit the weights by one pass over the owners, each of whom answers once.

    Args:
        mechanism: Of gradients; as many numbers as weights.
        descent: How steps are taken.
        schema: What the values are.
        values: Records in [-1, 1].
        labels: Theirs, counted from 0.
        source: Of batches and reports.
        label_count: How many labels there are.
    """
    features = features_of(schema, values)
    known = np.arange(1, 2) if label_count == 2 else np.arange(label_count)
    targets = (labels[:, None] == known).astype(np.float64)
    weights = np.zeros((len(known), features.shape[1]))
    order = source.child("batches").permutation(len(features))
    unit = descent.clip * mechanism.scale
    for at, rows in enumerate(np.array_split(order, descent.batches)):
        if not len(rows):
            continue
        residuals = special.expit(features[rows] @ weights.T) - targets[rows]
        own = (residuals[:, :, None] * features[rows, None, :]).reshape(len(rows), -1)
        inside = mechanism.bound(own / unit)
        mean = mechanism.randomise(inside, source.child("reports", at)).mean(axis=0) * unit
        weights -= descent.step / math.sqrt(at + 1) * mean.reshape(weights.shape)
    return LogisticModel(schema, weights)
