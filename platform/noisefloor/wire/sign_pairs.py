"""Rows of signs that add up pair by pair: in how many rows two places agree."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.agreements import agreements
from noisefloor.checks import blocks, check_count
from noisefloor.wire.columns import Bits, Tally
from noisefloor.wire.kinds import Kind

MOST_SIGNS = 1024


@dataclass(frozen=True, slots=True)
class SignPairs:
    """Rows of ``size`` bits, packed; their tally is how often each pair of places agrees.

    The pairs come row by row of the upper triangle. A second moment of so many places needs no
    more bits on the wire than the places themselves.
    """

    size: int

    def __post_init__(self) -> None:
        check_count(self.size, "size", least=2, most=MOST_SIGNS)

    @property
    def type(self) -> pa.DataType:
        """Fixed-size binary."""
        return self._bits.type

    @property
    def cells(self) -> int:
        """One for each pair."""
        return self.size * (self.size - 1) // 2

    @property
    def row_bytes(self) -> int:
        """Whole bytes that hold the bits."""
        return self._bits.row_bytes

    def encode(self, values: object) -> pa.Array:
        """Pack an (n, size) array of bits."""
        return self._bits.encode(values)

    def broken_rule(self, array: pa.Array) -> str:
        """Padding bits have to be zero."""
        return self._bits.broken_rule(array)

    def decode(self, array: pa.Array) -> NDArray[np.bool_]:
        """Return the (n, size) array of bits."""
        return self._bits.decode(array)

    def tally(self, array: pa.Array) -> Tally:
        """Return the number of agreements of each pair."""
        counts = np.zeros(self.cells, dtype=np.int64)
        for rows in blocks(len(array), self.size):
            some = array.slice(rows.start, rows.stop - rows.start)
            counts += agreements(self.decode(some))
        return counts

    @property
    def _bits(self) -> Bits:
        return Bits(self.size)


def sign_pair_kind(name: str, size: int) -> Kind:
    """Make the kind whose reports are rows of ``size`` bits that are summed pair by pair."""
    return Kind(name, (("signs", SignPairs(size)),))
