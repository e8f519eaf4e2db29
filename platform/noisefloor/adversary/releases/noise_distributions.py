"""Distributions of the noise of a release, coordinate by coordinate, and of their differences.

A release is a function of the data plus independent noise in each coordinate. Counts have integer
noise, parameters have real noise; the gaps between floats are not modelled here. ``NoNoise`` is
the planted leak of every game.
"""

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports
from noisefloor.publication import CellNoise
from noisefloor.randomness import Source

_ROOT_OF_TURN = math.sqrt(2 * math.pi)


class Density(Protocol):
    """A distribution with a log-density."""

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-probability (or log-density) of each number on its own."""
        ...


class NoiseDistribution(Density, Protocol):
    """A distribution that can also be drawn from."""

    def draw(self, shape: tuple[int, ...], source: Source) -> Reports:
        """Return independent noise."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class GaussianDistribution:
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


_TABLE_END = -60.0
"""Noise whose probability is below e**-60 is left out of sums."""

_LONGEST_TABLE = 1 << 20


class IntegerDistribution(Density, Protocol):
    """A distribution on integers that can be listed up to a negligible tail."""

    @property
    def table(self) -> "TabulatedDistribution":
        """The distribution as a table."""
        ...


@dataclass(frozen=True, slots=True)
class CellNoiseDistribution:
    """The integer noise of a histogram's cells, one cell at a time."""

    noise: CellNoise

    def log_density(self, noise: Reports) -> Floats:
        """Return the exact log-probability of each number: each kind is requested once."""
        kinds, place = np.unique(np.asarray(noise, dtype=np.int64), return_inverse=True)
        none = np.zeros(1, dtype=np.int64)
        logs = [self.noise.log_likelihood(kind[None], none) for kind in kinds]
        return np.asarray(logs, dtype=np.float64)[place].reshape(np.shape(noise))

    def draw(self, shape: tuple[int, ...], source: Source) -> NDArray[np.int64]:
        """Return independent noise."""
        return self.noise.add(np.zeros(shape, dtype=np.int64), source)

    @property
    def table(self) -> "TabulatedDistribution":
        """The distribution as a table that holds all but e**-60 of it, on both sides."""
        reach = 1
        while self.log_density(np.array([reach]))[0] > _TABLE_END and reach < _LONGEST_TABLE:
            reach *= 2
        return TabulatedDistribution(np.exp(self.log_density(np.arange(-reach, reach + 1))))


@dataclass(frozen=True, slots=True, eq=False)
class TabulatedDistribution:
    """Integer noise from -reach to reach, by its probabilities."""

    chances: Floats

    def __post_init__(self) -> None:
        if self.chances.ndim != 1 or len(self.chances) % 2 == 0:
            raise BadParameter("chances", self.chances.shape, "of -reach, ..., reach")

    @property
    def table(self) -> "TabulatedDistribution":
        """The distribution itself."""
        return self

    @property
    def reach(self) -> int:
        """The largest noise."""
        return len(self.chances) // 2

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-probability of each number; beyond the table it is minus infinity."""
        place = np.asarray(noise, dtype=np.int64) + self.reach
        is_inside = (place >= 0) & (place < len(self.chances))
        with np.errstate(divide="ignore"):
            logs = np.log(self.chances)
        return np.where(is_inside, logs[np.where(is_inside, place, 0)], -np.inf)


@dataclass(frozen=True, slots=True)
class DifferenceDistribution:
    """What is left of the noise when one release is taken from another, each with fresh noise.

    Attributes:
        first: The noise that is taken away.
        second: The noise that it is taken from; of the same kind.
    """

    first: NoiseDistribution
    second: NoiseDistribution
    density: Density = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "density", _convolved(self.first, self.second))

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-probability or log-density of each number."""
        return self.density.log_density(noise)

    def draw(self, shape: tuple[int, ...], source: Source) -> Reports:
        """Return the difference of two draws."""
        second = self.second.draw(shape, source.child("second"))
        return np.asarray(second - self.first.draw(shape, source.child("first")))


def _convolved(first: NoiseDistribution, second: NoiseDistribution) -> Density:
    """Return the distribution of the difference; all are even, so it is that of the sum."""
    if isinstance(first, GaussianDistribution) and isinstance(second, GaussianDistribution):
        return GaussianDistribution(np.hypot(first.sigma, second.sigma))
    if isinstance(first, CellNoiseDistribution) and isinstance(second, CellNoiseDistribution):
        return TabulatedDistribution(np.convolve(first.table.chances, second.table.chances))
    if isinstance(first, NoNoise) and isinstance(second, NoNoise):
        return NoNoise(first.grain + second.grain)
    raise BadParameter("second", type(second).__name__, f"a {type(first).__name__}, as the first")
