"""How far a noisy count may be off: exact, from the distribution that is drawn from."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95

_MOST_SUMMED = 1 << 13
"""Half-widths up to here are summed up; wider noise is Laplace, and its tail is a power."""


class IntegerNoise(Protocol):
    """Noise of one integer; what counts and tables draw from."""

    def log_likelihood(self, released: NDArray[np.int64], counts: NDArray[np.int64], /) -> float:
        """Return ln P(released | counts) of all together."""


@dataclass(frozen=True, slots=True)
class CellError:
    """What noise does to one count.

    Attributes:
        standard_error: Of the noise.
        half_width: The true count lies this near to the released one, with 95 % confidence.
    """

    standard_error: float
    half_width: int

    def __str__(self) -> str:
        return (
            f"standard error {self.standard_error:.4g}, within {self.half_width:,} of the true "
            f"count with {CONFIDENCE:.0%} confidence"
        )


def cell_error(noise: IntegerNoise, variance: float) -> CellError:
    """Return how far noise carries a count.

    Args:
        noise: Symmetric.
        variance: Of one draw.
    """
    deviation, zero = math.sqrt(variance), np.zeros(1, dtype=np.int64)
    if 4 * deviation > _MOST_SUMMED:
        return CellError(deviation, math.ceil(math.log(1 / (1 - CONFIDENCE)) * deviation / 2**0.5))
    mass = math.exp(noise.log_likelihood(zero, zero))
    for half_width in range(_MOST_SUMMED):
        if mass >= CONFIDENCE:
            return CellError(deviation, half_width)
        mass += 2 * math.exp(noise.log_likelihood(zero + half_width + 1, zero))
    raise ArithmeticError("the chances of the noise do not add up")
