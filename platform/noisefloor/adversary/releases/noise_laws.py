"""Laws of noise added to a vector, as an adversary asks for them: coordinate by coordinate.

A release with such a law is what the data give plus independent noise in each coordinate. Counts
have integer noise, parameters have real noise; that floats have gaps is another attack's business.
``NoNoise`` is the planted leak of every game. ``released_laws`` has those of whole releases.
"""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Reports
from noisefloor.mechanisms.geometric import TwoSidedGeometric
from noisefloor.randomness import Source

_ROOT_OF_TURN = math.sqrt(2 * math.pi)


class Density(Protocol):
    """A law that can be asked how likely noise is."""

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-probability (or log-density) of each number on its own."""
        ...


class NoiseLaw(Density, Protocol):
    """A law that can also be drawn from."""

    def draw(self, shape: tuple[int, ...], source: Source) -> Reports:
        """Return independent noise."""
        ...


class ShiftedLaw(NoiseLaw, Protocol):
    """A law that tells what a shift of its centre gives away."""

    def epsilon(self, shift: Floats) -> float:
        """Return the largest log-ratio of two outputs whose inputs differ by the shift."""
        ...

    def moments(self, shift: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of each coordinate's log-ratio, under the true input."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceLaw:
    """Laplace noise; one scale, or one for each coordinate."""

    scale: float | Floats

    def __post_init__(self) -> None:
        _check_positive(self.scale, "scale")

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-density of each number."""
        size = np.abs(np.asarray(noise, dtype=np.float64))
        return np.asarray(-size / self.scale - np.log(2 * np.asarray(self.scale)))

    def draw(self, shape: tuple[int, ...], source: Source) -> Floats:
        """Return independent noise."""
        drawn = source.stage("noise").laplaces(math.prod(shape)).astype(np.float64)
        return np.asarray(drawn.reshape(shape) * self.scale)

    def epsilon(self, shift: Floats) -> float:
        """Return the sum of |shift| / scale: reached where all coordinates lie outside."""
        return float((np.abs(shift) / self.scale).sum())

    def moments(self, shift: Floats) -> tuple[Floats, Floats]:
        """Return h - 1 + e^-h, and the variance, for h = |shift| / scale."""
        step = np.abs(shift) / self.scale
        mean = step + np.expm1(-step)
        square = step**2 - 2 * step + 4 - np.exp(-step) * (2 * step + 4)
        return mean, np.maximum(square - mean**2, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class GaussianLaw:
    """Gaussian noise; one standard deviation, or one for each coordinate."""

    sigma: float | Floats

    def __post_init__(self) -> None:
        _check_positive(self.sigma, "sigma")

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-density of each number."""
        scaled = np.asarray(noise, dtype=np.float64) / self.sigma
        return np.asarray(-(scaled**2) / 2 - np.log(np.asarray(self.sigma) * _ROOT_OF_TURN))

    def draw(self, shape: tuple[int, ...], source: Source) -> Floats:
        """Return independent noise."""
        drawn = source.stage("noise").normals(math.prod(shape)).astype(np.float64)
        return np.asarray(drawn.reshape(shape) * self.sigma)

    def epsilon(self, shift: Floats) -> float:
        """Return infinity: Gaussian tails have no largest ratio."""
        return math.inf if np.any(shift) else 0.0

    def moments(self, shift: Floats) -> tuple[Floats, Floats]:
        """Return s^2 / 2 and s^2 for s = shift / sigma."""
        square = (shift / self.sigma) ** 2
        return square / 2, square


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLaplaceLaw:
    """Two-sided geometric noise on integers, P(k) proportional to e^(-|k| / scale)."""

    scale: float
    law: TwoSidedGeometric = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_positive(self.scale, "scale")
        object.__setattr__(self, "law", TwoSidedGeometric(Decimal(1 / self.scale)))

    def log_density(self, noise: Reports) -> Floats:
        """Return ln P(noise), by the weights that are drawn from."""
        return self.law.log_pmf(np.asarray(noise, dtype=np.int64))

    def draw(self, shape: tuple[int, ...], source: Source) -> Floats:
        """Return integers, as floats."""
        drawn = self.law.sampler(source)(math.prod(shape))
        return drawn.reshape(shape).astype(np.float64)

    def epsilon(self, shift: Floats) -> float:
        """Return the sum over coordinates, by the weights that are drawn from."""
        sizes, counts = np.unique(np.abs(shift).astype(np.int64), return_counts=True)
        exact = [self.law.epsilon(int(size)) if size else Decimal(0) for size in sizes]
        return float(sum(int(n) * loss for n, loss in zip(counts, exact, strict=True)))

    def moments(self, shift: Floats) -> tuple[Floats, Floats]:
        """Sum the log-ratio and its square over the integers, once for each size of shift."""
        sizes, place = np.unique(np.abs(shift), return_inverse=True)
        pairs = np.array([self._moments_of(size) for size in sizes])
        mean, variance = pairs[place.reshape(np.shape(shift))].transpose(
            -1, *range(np.ndim(shift))
        )
        return mean, variance

    def _moments_of(self, size: float) -> tuple[float, float]:
        reach = math.ceil(40 * self.scale + size)
        noise = np.arange(-reach, reach + 1)
        chance = np.exp(-np.abs(noise) / self.scale)
        chance /= chance.sum()
        loss = (np.abs(noise - size) - np.abs(noise)) / self.scale
        mean = float(chance @ loss)
        return mean, float(chance @ loss**2) - mean**2


@dataclass(frozen=True, slots=True)
class NoNoise:
    """No noise at all: what is released is what the data give. The planted leak.

    Attributes:
        grain: Numbers closer than this count as equal; 0 for counts.
    """

    grain: float = 0.0

    def log_density(self, noise: Reports) -> Floats:
        """Return 0 where nothing was added, else minus infinity."""
        return np.where(np.abs(np.asarray(noise)) <= self.grain, 0.0, -np.inf)

    def draw(self, shape: tuple[int, ...], source: Source) -> NDArray[np.int64]:
        """Return zeros."""
        return np.zeros(shape, dtype=np.int64)


def _check_positive(value: float | Floats, name: str) -> None:
    if np.ndim(value) == 0:
        if check_finite(float(value), name) <= 0:
            raise BadParameter(name, value, "> 0")
        return
    scales: NDArray[np.float64] = np.asarray(value)
    if not (np.isfinite(scales).all() and scales.min() > 0):
        raise BadParameter(name, "<array>", "finite and > 0 in each coordinate")
