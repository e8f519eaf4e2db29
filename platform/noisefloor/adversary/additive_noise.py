"""Laws of noise added to a vector, as an adversary needs them: ratios, their moments, and draws.

Continuous laws are those of real numbers; that floats have gaps is another attack's business.
"""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noisefloor.adversary.intervals import Floats
from noisefloor.checks import check_finite
from noisefloor.errors import BadParameter
from noisefloor.mechanisms.geometric import TwoSidedGeometric
from noisefloor.randomness import Source


class Noise(Protocol):
    """Independent noise on each coordinate of a vector."""

    def log_density(self, noise: Floats) -> Floats:
        """Return the log-density of each coordinate, up to what does not depend on the noise."""
        ...

    def draw(self, shape: tuple[int, ...], source: Source) -> Floats:
        """Return noise for so many games by so many coordinates."""
        ...

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

    def log_density(self, noise: Floats) -> Floats:
        """Return -|noise| / scale."""
        return np.asarray(-np.abs(noise) / self.scale)

    def draw(self, shape: tuple[int, ...], source: Source) -> Floats:
        """Invert the law from 53 bits and a sign; no logarithm of zero can come up."""
        words = source.words(math.prod(shape)).reshape(shape)
        size = -np.log(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
        return np.asarray(np.where(words & np.uint64(1), size, -size) * self.scale)

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

    deviation: float | Floats

    def __post_init__(self) -> None:
        _check_positive(self.deviation, "deviation")

    def log_density(self, noise: Floats) -> Floats:
        """Return -(noise / deviation)^2 / 2."""
        return np.asarray(-((noise / self.deviation) ** 2) / 2)

    def draw(self, shape: tuple[int, ...], source: Source) -> Floats:
        """Return normal numbers from the source."""
        drawn = source.normals(math.prod(shape)).astype(np.float64).reshape(shape)
        return np.asarray(drawn * self.deviation)

    def epsilon(self, shift: Floats) -> float:
        """Return infinity: Gaussian tails have no largest ratio."""
        return math.inf if np.any(shift) else 0.0

    def moments(self, shift: Floats) -> tuple[Floats, Floats]:
        """Return s^2 / 2 and s^2 for s = shift / deviation."""
        square = (shift / self.deviation) ** 2
        return square / 2, square


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLaplaceLaw:
    """Two-sided geometric noise on integers, P(k) proportional to e^(-|k| / scale)."""

    scale: float
    law: TwoSidedGeometric = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_positive(self.scale, "scale")
        object.__setattr__(self, "law", TwoSidedGeometric(Decimal(1 / self.scale)))

    def log_density(self, noise: Floats) -> Floats:
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


def _check_positive(value: float | Floats, name: str) -> None:
    if np.ndim(value) == 0:
        if check_finite(float(value), name) <= 0:
            raise BadParameter(name, value, "> 0")
        return
    scales: NDArray[np.float64] = np.asarray(value)
    if not (np.isfinite(scales).all() and scales.min() > 0):
        raise BadParameter(name, "<array>", "finite and > 0 in each coordinate")
