"""A finite law as 64-bit integer weights, and the lazy inversion that samples it.

Sixteen random bits settle nearly every draw by one table look-up; only when they fall on a cell
that straddles a boundary are 48 more bits drawn. The law is exactly ``weights / 2**64``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

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
class FiniteLaw:
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
    def of(cls, weights: Iterable[int]) -> "FiniteLaw":
        """Build the law; the weights have to be positive and sum to 2**64 exactly."""
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
