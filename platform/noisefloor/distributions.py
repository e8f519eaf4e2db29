"""A finite distribution as 64-bit integer weights, and the lazy inversion that samples it.

Sixteen random bits settle nearly every draw by one table look-up; only when they fall on a cell
that straddles a boundary are 48 more bits drawn. The distribution is exactly ``weights / 2**64``.

Probabilities as 64-bit integers: computed in 60 digits, rounded to the private side.

In float64 the usual formulas land on the non-private side of the request in a quarter of the
cases; here the rounding is always chosen, and the guarantee is computed from what came out.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from functools import wraps
from itertools import accumulate
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadParameter

ONE = 1 << 64
"""The denominator of every probability here."""

STRADDLES = -1
"""Marks a cell of the guide that sixteen bits cannot settle."""

_CELLS = 1 << 16
_CELL_WIDTH = ONE // _CELLS


@dataclass(frozen=True, slots=True, eq=False)
class FiniteDistribution:
    """Outcome ``i`` has probability exactly ``weights[i] / 2**64``.

    Attributes:
        weights: Positive integers that sum to 2**64.
        guide: The outcome for each value of the first sixteen bits, or STRADDLES.
        bounds: Cumulative weights without the last, for the draws that straddle.
    """

    weights: tuple[int, ...]
    guide: NDArray[np.signedinteger] = field(repr=False)
    bounds: NDArray[np.uint64] = field(repr=False)

    @classmethod
    def of(cls, weights: Iterable[int]) -> "FiniteDistribution":
        """Build the distribution; the weights have to be positive and sum to 2**64 exactly."""
        whole = tuple(int(weight) for weight in weights)
        if not whole or min(whole) <= 0 or sum(whole) != ONE:
            raise BadParameter("weights", f"<{len(whole)} integers>", "> 0, summing to 2**64")
        ends = list(accumulate(whole))[:-1]
        bounds = np.array(ends, dtype=np.uint64)
        starts = np.arange(_CELLS, dtype=np.uint64) * np.uint64(_CELL_WIDTH)
        first = np.searchsorted(bounds, starts, side="right")
        last = np.searchsorted(bounds, starts + np.uint64(_CELL_WIDTH - 1), side="right")
        narrow = np.int16 if len(whole) <= np.iinfo(np.int16).max else np.int32
        return cls(whole, np.where(first == last, first, STRADDLES).astype(narrow), bounds)

    def __len__(self) -> int:
        return len(self.weights)


P = ParamSpec("P")
R = TypeVar("R")

_CONTEXT = Context(prec=60)


def in_sixty_digits(function: Callable[P, R]) -> Callable[P, R]:
    """Make plain sums and products of decimals in the function exact to 60 digits as well.

    Decimal operators use the caller's context; a guarantee must not depend on that.
    """

    @wraps(function)
    def precise(*args: P.args, **kwargs: P.kwargs) -> R:
        with localcontext(_CONTEXT):
            return function(*args, **kwargs)

    return precise


def exp(exponent: float | Decimal) -> Decimal:
    """Return e to the exponent, to 60 digits; a float counts as the rational it is."""
    return _CONTEXT.exp(Decimal(exponent))


def ratio(numerator: Decimal | int, denominator: Decimal | int) -> Decimal:
    """Return a quotient to 60 digits."""
    return _CONTEXT.divide(Decimal(numerator), Decimal(denominator))


def floor64(probability: Decimal) -> int:
    """Return the largest integer below ``probability * 2**64``."""
    return int(_CONTEXT.multiply(probability, ONE).to_integral_value(ROUND_FLOOR))


def ceil64(probability: Decimal) -> int:
    """Return the smallest integer above ``probability * 2**64``."""
    return int(_CONTEXT.multiply(probability, ONE).to_integral_value(ROUND_CEILING))


def weights64(shares: Sequence[Decimal]) -> list[int]:
    """Return integers within one of ``shares * 2**64`` that sum to 2**64.

    The running sums are rounded, not the shares: so no rounding error piles up anywhere.
    """
    ends = [round(_CONTEXT.multiply(end, ONE)) for end in accumulate(shares)]
    ends[-1] = ONE
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def log_ratio(numerator: int, denominator: int) -> Decimal:
    """Return ln(numerator / denominator) to 60 digits."""
    return _CONTEXT.ln(ratio(numerator, denominator))


def round_up(exact: Decimal) -> float:
    """Return the smallest float that is not below the exact number.

    A request is a float too: so what is at most the request stays so when it is rounded up.
    """
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def epsilon_of(numerator: int, denominator: int) -> float:
    """Return ln(numerator / denominator) as a float that is never below the exact value."""
    return round_up(log_ratio(numerator, denominator))
