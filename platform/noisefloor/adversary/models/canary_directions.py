"""Directions for gradient canaries: orthogonal, so that many fit into one run unmixed."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.intervals import Floats
from noisefloor.checks import check_count
from noisefloor.randomness import Source


class Directions(Protocol):
    """Orthonormal vectors in the space of gradients."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def combine(self, weights: Floats) -> Floats:
        """Return the sum of the directions by weights."""
        ...

    def project(self, vectors: Floats) -> Floats:
        """Return how far vectors (along the last axis) reach in each direction."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DiracDirections:
    """Single coordinates: cheap for any number of parameters."""

    places: NDArray[np.int64]
    dimension: int

    @classmethod
    def draw(cls, count: int, dimension: int, source: Source) -> "DiracDirections":
        """Choose coordinates at random, each once at most."""
        check_count(count, "count", most=check_count(dimension, "dimension"))
        return cls(source.permutation(dimension)[:count], dimension)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.places)

    def combine(self, weights: Floats) -> Floats:
        """Return a vector with the weights at the places."""
        vector = np.zeros(self.dimension)
        vector[self.places] = weights
        return vector

    def project(self, vectors: Floats) -> Floats:
        """Return the values at the places."""
        return np.asarray(vectors[..., self.places], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class RandomDirections:
    """Uniformly random directions, made orthogonal: no coordinate gives them away."""

    basis: Floats

    @classmethod
    def draw(cls, count: int, dimension: int, source: Source) -> "RandomDirections":
        """Orthogonalise normal vectors; the memory is count times dimension."""
        check_count(count, "count", most=check_count(dimension, "dimension"))
        drawn = source.normals(count * dimension).astype(np.float64).reshape(dimension, count)
        return cls(np.ascontiguousarray(np.linalg.qr(drawn)[0].T))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.basis)

    def combine(self, weights: Floats) -> Floats:
        """Return the weighted sum."""
        return np.asarray(weights @ self.basis)

    def project(self, vectors: Floats) -> Floats:
        """Return the inner products."""
        return np.asarray(vectors @ self.basis.T)
