"""Laws of the noise of whole releases: cells of tables, releases side by side, differences.

Laws of noise added to a vector, as an adversary asks for them: coordinate by coordinate.

A release with such a law is what the data give plus independent noise in each coordinate. Counts
have integer noise, parameters have real noise; that floats have gaps is another attack's business.
``NoNoise`` is the planted leak of every game. ``released_laws`` has those of whole releases.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.checks import Floats, check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms import Reports, TwoSidedGeometric
from noisefloor.publication import CellNoise
from noisefloor.randomness import Source

_ROOT_OF_TURN = math.sqrt(2 * math.pi)


class Density(Protocol):
    """A law that can be asked how likely noise is."""

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-probability (or log-density) of each number on its own."""
        ...


class NoiseDistribution(Density, Protocol):
    """A law that can also be drawn from."""

    def draw(self, shape: tuple[int, ...], source: Source) -> Reports:
        """Return independent noise."""
        ...


class LocationFamily(NoiseDistribution, Protocol):
    """A law that tells what a shift of its centre gives away."""

    def epsilon(self, shift: Floats) -> float:
        """Return the largest log-ratio of two outputs whose inputs differ by the shift."""
        ...

    def moments(self, shift: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of each coordinate's log-ratio, under the true input."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceDistribution:
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

    def epsilon(self, shift: Floats) -> float:
        """Return infinity: Gaussian tails have no largest ratio."""
        return math.inf if np.any(shift) else 0.0

    def moments(self, shift: Floats) -> tuple[Floats, Floats]:
        """Return s^2 / 2 and s^2 for s = shift / sigma."""
        square = (shift / self.sigma) ** 2
        return square / 2, square


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLaplaceDistribution:
    """Two-sided geometric noise on integers, P(k) proportional to e^(-|k| / scale)."""

    scale: float
    distribution: TwoSidedGeometric = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_positive(self.scale, "scale")
        object.__setattr__(self, "distribution", TwoSidedGeometric(Decimal(1 / self.scale)))

    def log_density(self, noise: Reports) -> Floats:
        """Return ln P(noise), by the weights that are drawn from."""
        return self.distribution.log_pmf(np.asarray(noise, dtype=np.int64))

    def draw(self, shape: tuple[int, ...], source: Source) -> Floats:
        """Return integers, as floats."""
        drawn = self.distribution.sampler(source)(math.prod(shape))
        return drawn.reshape(shape).astype(np.float64)

    def epsilon(self, shift: Floats) -> float:
        """Return the sum over coordinates, by the weights that are drawn from."""
        sizes, counts = np.unique(np.abs(shift).astype(np.int64), return_counts=True)
        exact = [self.distribution.epsilon(int(size)) if size else Decimal(0) for size in sizes]
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


_TABLE_END = -60.0
"""Noise whose probability is below e**-60 is left out of sums."""

_LONGEST_TABLE = 1 << 20


class IntegerDistribution(Density, Protocol):
    """A law of whole numbers, all of which can be listed but for a tail that does not count."""

    @property
    def table(self) -> "TabulatedDistribution":
        """The law as a table."""
        ...


@dataclass(frozen=True, slots=True)
class CellNoiseDistribution:
    """The integer noise of a histogram's cells, one cell at a time."""

    noise: CellNoise

    def log_density(self, noise: Reports) -> Floats:
        """Return the exact log-probability of each number: each kind is asked for once."""
        kinds, place = np.unique(np.asarray(noise, dtype=np.int64), return_inverse=True)
        none = np.zeros(1, dtype=np.int64)
        logs = [self.noise.log_likelihood(kind[None], none) for kind in kinds]
        return np.asarray(logs, dtype=np.float64)[place].reshape(np.shape(noise))

    def draw(self, shape: tuple[int, ...], source: Source) -> NDArray[np.int64]:
        """Return independent noise."""
        return self.noise.add(np.zeros(shape, dtype=np.int64), source)

    @property
    def table(self) -> "TabulatedDistribution":
        """The law as a table that holds all but e**-60 of it, whatever side."""
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
        """The law itself."""
        return self

    @property
    def reach(self) -> int:
        """The largest noise."""
        return len(self.chances) // 2

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-probability of each number; beyond the table it is minus infinity."""
        place = np.asarray(noise, dtype=np.int64) + self.reach
        is_held = (place >= 0) & (place < len(self.chances))
        with np.errstate(divide="ignore"):
            logs = np.log(self.chances)
        return np.where(is_held, logs[np.where(is_held, place, 0)], -np.inf)


@dataclass(frozen=True, slots=True)
class StackedDistribution:
    """Several releases side by side, each with noise of its own.

    Attributes:
        laws: Of the parts.
        widths: How many coordinates each part has.
    """

    laws: Sequence[NoiseDistribution]
    widths: Sequence[int]

    def __post_init__(self) -> None:
        if not len(self.laws) == len(self.widths) > 0:
            raise BadParameter("widths", tuple(self.widths), "one for each law")

    def log_density(self, noise: Reports) -> Floats:
        """Return the log-probability or log-density of each number, by its part's law."""
        parts = np.split(np.asarray(noise), np.cumsum(self.widths)[:-1], axis=-1)
        logs = [law.log_density(part) for law, part in zip(self.laws, parts, strict=True)]
        return np.concatenate(logs, axis=-1)

    def draw(self, shape: tuple[int, ...], source: Source) -> Reports:
        """Return independent noise; the last axis holds the parts."""
        parts = [
            law.draw((*shape[:-1], width), source.child("part", place))
            for place, (law, width) in enumerate(zip(self.laws, self.widths, strict=True))
        ]
        return np.concatenate(parts, axis=-1)


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


@dataclass(frozen=True, slots=True)
class _TwoLaplaces:
    """The difference of two independent Laplace numbers, in closed form."""

    narrow: float
    wide: float

    def log_density(self, noise: Reports) -> Floats:
        size, wide = np.abs(np.asarray(noise, dtype=np.float64)), self.wide
        if math.isclose(self.narrow, wide, rel_tol=1e-6):
            return np.log1p(size / wide) - size / wide - math.log(4 * wide)
        share = self.narrow / wide
        rest = np.log1p(-share * np.exp(size / wide - size / self.narrow))
        return rest - size / wide - math.log(2 * wide * (1 - share**2))


def _convolved(first: NoiseDistribution, second: NoiseDistribution) -> Density:
    """Return the law of the difference; all these laws are even, so it is that of the sum."""
    if isinstance(first, GaussianDistribution) and isinstance(second, GaussianDistribution):
        return GaussianDistribution(np.hypot(first.sigma, second.sigma))
    if isinstance(first, LaplaceDistribution) and isinstance(second, LaplaceDistribution):
        return _TwoLaplaces(*sorted((_one(first.scale), _one(second.scale))))
    if isinstance(first, CellNoiseDistribution) and isinstance(second, CellNoiseDistribution):
        return TabulatedDistribution(np.convolve(first.table.chances, second.table.chances))
    if isinstance(first, NoNoise) and isinstance(second, NoNoise):
        return NoNoise(first.grain + second.grain)
    raise BadParameter("second", type(second).__name__, f"a {type(first).__name__}, as the first")


def _one(scale: float | Floats) -> float:
    """Return a scale that all coordinates share."""
    if np.ndim(scale):
        raise BadParameter("scale", "<array>", "one number: the difference needs equal scales")
    return float(scale)
