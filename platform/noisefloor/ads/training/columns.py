"""The wire column of noisy gradients: for each ad a bit, and grid integers beside it.

The server needs sums of bit times integer, which no two separate columns could give: so one row
holds both, and its tally has the integers' sums and the sums over the rows whose bit is one.

Rows of signs that add up pair by pair: in how many rows two places agree.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.checks import blocks, check_count, check_integers
from noisefloor.errors import OutOfDomain
from noisefloor.mechanisms import pair_agreements
from noisefloor.wire import MOST_CELLS, Bits, Kind, Tally

MOST_SIGNS = 1024


@dataclass(frozen=True, slots=True)
class SignPairs:
    """Rows of ``size`` bits, packed; their tally is how often each pair of places agrees.

    The pairs come row by row of the upper triangle. A second moment of n places needs no
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

    @property
    def sensitivity(self) -> int:
        """Every pair agrees."""
        return self.cells

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
            counts += pair_agreements(self.decode(some))
        return counts

    @property
    def _bits(self) -> Bits:
        return Bits(self.size)


def sign_pair_kind(name: str, size: int) -> Kind:
    """Make the kind whose reports are rows of ``size`` bits that are summed pair by pair."""
    return Kind(name, (("signs", SignPairs(size)),))


GRADIENT_NOISE = "gradient-noise"
"""The kind of frame that carries noisy gradients of all ads."""

LIMIT = (1 << 31) - 1
"""Grid integers lie within plus and minus this: 2**31 rows of them add up within 64 bits."""

Rows = NDArray[np.int32]
"""Shape (n, ads, 1 + dimension): the bit, then the integers."""


def gradient_noise_kind(ads: int, dimension: int) -> Kind:
    """Make the kind of noisy gradients of n ads and latent factors."""
    return Kind(GRADIENT_NOISE, (("gradient", GradientRows(ads, dimension)),))


@dataclass(frozen=True, slots=True)
class GradientRows:
    """Rows of ``ads`` bits, packed from the lowest on, then ``ads * dimension`` integers.

    Integers are little-endian, four bytes each; the padding bits are zero.
    """

    ads: int
    dimension: int

    def __post_init__(self) -> None:
        check_count(self.ads, "ads", most=MOST_CELLS)
        check_count(self.dimension, "dimension", most=MOST_CELLS // (2 * self.ads))

    @property
    def type(self) -> pa.DataType:
        """Fixed-size binary."""
        return pa.binary(self.row_bytes)

    @property
    def cells(self) -> int:
        """Two for each integer of a row."""
        return 2 * self.ads * self.dimension

    @property
    def row_bytes(self) -> int:
        """Whole bytes that hold the bits, and four for each integer."""
        return self._bit_bytes + 4 * self.ads * self.dimension

    @property
    def sensitivity(self) -> int:
        """Every integer at its limit, and every bit a one."""
        return self.cells * LIMIT

    @property
    def _bit_bytes(self) -> int:
        return -(-self.ads // 8)

    def encode(self, values: object) -> pa.Array:
        """Pack an (n, ads, 1 + dimension) array of bits and integers."""
        rows = self._checked(values)
        packed = np.empty((len(rows), self.row_bytes), dtype=np.uint8)
        bits = rows[:, :, 0].astype(np.bool_)
        packed[:, : self._bit_bytes] = np.packbits(bits, axis=1, bitorder="little")
        numbers = rows[:, :, 1:].astype("<i4").reshape(len(rows), -1)
        packed[:, self._bit_bytes :] = numbers.view(np.uint8)
        data = pa.py_buffer(packed)
        return pa.FixedSizeBinaryArray.from_buffers(self.type, len(rows), [None, data])

    def _checked(self, values: object) -> NDArray[np.integer]:
        """Return rows whose bits are bits and whose integers lie in their range."""
        rows = np.asarray(values)
        if rows.ndim != 3 or rows.shape[1:] != (self.ads, 1 + self.dimension):
            raise OutOfDomain("Expected a bit and the integers of each ad, for each report.")
        flat = rows.reshape(len(rows), -1)
        check_integers(flat, -LIMIT, LIMIT, width=flat.shape[1])
        check_integers(rows[:, :, 0], 0, 1, width=self.ads)
        return rows

    def broken_rule(self, array: pa.Array) -> str:
        """Padding bits have to be zero, and the least integer of the type is not used."""
        packed, used = self._packed(array), self.ads % 8
        if used and np.any(packed[:, self._bit_bytes - 1] >> np.uint8(used)):
            return "has padding bits that are not zero"
        for rows in blocks(len(packed), self.row_bytes):
            if np.any(self._numbers(packed[rows]) < -LIMIT):
                return f"has a number outside [{-LIMIT}, {LIMIT}]"
        return ""

    def decode(self, array: pa.Array) -> Rows:
        """Return the (n, ads, 1 + dimension) array of bits and integers."""
        packed = self._packed(array)
        rows = np.empty((len(packed), self.ads, 1 + self.dimension), dtype=np.int32)
        rows[:, :, 0] = self._bits(packed)
        rows[:, :, 1:] = self._numbers(packed)
        return rows

    def tally(self, array: pa.Array) -> Tally:
        """Return the sums of the integers, then their sums over rows whose bit is one."""
        packed = self._packed(array)
        sums = np.zeros((2, self.ads, self.dimension), dtype=np.int64)
        for rows in blocks(len(packed), self.row_bytes):
            sums += gradient_sums(self._bits(packed[rows]), self._numbers(packed[rows]))
        return sums.reshape(-1)

    def _bits(self, packed: NDArray[np.uint8]) -> NDArray[np.bool_]:
        part = np.ascontiguousarray(packed[:, : self._bit_bytes])
        return np.unpackbits(part, axis=1, count=self.ads, bitorder="little").view(np.bool_)

    def _numbers(self, packed: NDArray[np.uint8]) -> NDArray[np.int32]:
        part = np.ascontiguousarray(packed[:, self._bit_bytes :])
        return part.view("<i4").reshape(len(packed), self.ads, self.dimension)

    def _packed(self, array: pa.Array) -> NDArray[np.uint8]:
        width, count, data = self.row_bytes, len(array), array.buffers()[1]
        if not count:
            return np.empty((0, width), dtype=np.uint8)
        rows = np.frombuffer(data, np.uint8, count * width, offset=array.offset * width)
        return rows.reshape(count, width)


def gradient_sums(bits: NDArray[np.bool_], numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the sums of numbers, and of those whose bit is one: shape (2, ads, dimension)."""
    kept = np.multiply(numbers, bits[:, :, None], dtype=np.int32)
    return np.stack([numbers.sum(axis=0, dtype=np.int64), kept.sum(axis=0, dtype=np.int64)])
