"""Laws of the noise of whole releases: cells of tables, releases side by side, differences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.releases.noise_laws import (
    Density,
    GaussianLaw,
    LaplaceLaw,
    NoiseLaw,
    NoNoise,
)
from noisefloor.checks import Floats
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.base import Reports
from noisefloor.publication.cell_noise import CellNoise
from noisefloor.randomness import Source

_TABLE_END = -60.0
"""Noise whose probability is below e**-60 is left out of sums."""

_LONGEST_TABLE = 1 << 20


class IntegerLaw(Density, Protocol):
    """A law of whole numbers, all of which can be listed but for a tail that does not count."""

    @property
    def table(self) -> "TabulatedLaw":
        """The law as a table."""
        ...


@dataclass(frozen=True, slots=True)
class CellLaw:
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
    def table(self) -> "TabulatedLaw":
        """The law as a table that holds all but e**-60 of it, whatever side."""
        reach = 1
        while self.log_density(np.array([reach]))[0] > _TABLE_END and reach < _LONGEST_TABLE:
            reach *= 2
        return TabulatedLaw(np.exp(self.log_density(np.arange(-reach, reach + 1))))


@dataclass(frozen=True, slots=True, eq=False)
class TabulatedLaw:
    """Integer noise from -reach to reach, by its probabilities."""

    chances: Floats

    def __post_init__(self) -> None:
        if self.chances.ndim != 1 or len(self.chances) % 2 == 0:
            raise BadParameter("chances", self.chances.shape, "of -reach, ..., reach")

    @property
    def table(self) -> "TabulatedLaw":
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
class StackedLaw:
    """Several releases side by side, each with noise of its own.

    Attributes:
        laws: Of the parts.
        widths: How many coordinates each part has.
    """

    laws: Sequence[NoiseLaw]
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
class DifferenceLaw:
    """What is left of the noise when one release is taken from another, each with fresh noise.

    Attributes:
        first: The noise that is taken away.
        second: The noise that it is taken from; of the same kind.
    """

    first: NoiseLaw
    second: NoiseLaw
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


def _convolved(first: NoiseLaw, second: NoiseLaw) -> Density:
    """Return the law of the difference; all these laws are even, so it is that of the sum."""
    if isinstance(first, GaussianLaw) and isinstance(second, GaussianLaw):
        return GaussianLaw(np.hypot(first.sigma, second.sigma))
    if isinstance(first, LaplaceLaw) and isinstance(second, LaplaceLaw):
        return _TwoLaplaces(*sorted((_one(first.scale), _one(second.scale))))
    if isinstance(first, CellLaw) and isinstance(second, CellLaw):
        return TabulatedLaw(np.convolve(first.table.chances, second.table.chances))
    if isinstance(first, NoNoise) and isinstance(second, NoNoise):
        return NoNoise(first.grain + second.grain)
    raise BadParameter("second", type(second).__name__, f"a {type(first).__name__}, as the first")


def _one(scale: float | Floats) -> float:
    """Return a scale that all coordinates share."""
    if np.ndim(scale):
        raise BadParameter("scale", "<array>", "one number: the difference needs equal scales")
    return float(scale)
