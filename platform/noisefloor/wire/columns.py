"""Columns of a frame: what a report may hold, how it lies in Arrow, and how it adds up.

Each column is a frozen value with an exact Arrow type and an exact domain. Encoding refuses what
lies outside; ``broken_rule`` says which rule received data break, and never shows a value. A
pipeline that needs another column writes one that satisfies ``Column``.

A column of texts: collected as they are, never summed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.checks import Array, blocks, check_bits, check_count, check_integers
from noisefloor.errors import BadParameter, OutOfDomain

Tally = NDArray[np.int64]

MOST_CELLS = 1 << 20
"""Cells of one column: an epoch's tally takes eight bytes for each."""

LARGEST_INTEGER = 1 << 31
"""Bound of summed integers: 2**31 rows of them still fit in 64 bits."""


@runtime_checkable
class Column(Protocol):
    """One column of a kind; ``check`` of the kind has refused nulls before these are called."""

    @property
    def type(self) -> pa.DataType:
        """The exact Arrow type."""
        ...

    @property
    def cells(self) -> int:
        """How many integers its tally has; 0 if it cannot be summed."""
        ...

    @property
    def row_bytes(self) -> int:
        """The most bytes that one row takes."""
        ...

    @property
    def sensitivity(self) -> int:
        """The most that one row changes the tally, summed over the cells; 0 if it has none."""
        ...

    def encode(self, values: object) -> pa.Array:
        """Return the values as Arrow holds them, or raise OutOfDomain."""
        ...

    def broken_rule(self, array: pa.Array) -> str:
        """Return the rule that the array breaks, read after the column's name; else nothing."""
        ...

    def decode(self, array: pa.Array) -> Array:
        """Return what was encoded."""
        ...

    def tally(self, array: pa.Array) -> Tally:
        """Return the integer sums of the array."""
        ...


@dataclass(frozen=True, slots=True)
class Bits:
    """Rows of ``size`` bits, packed from the lowest bit on; the padding bits are zero."""

    size: int

    def __post_init__(self) -> None:
        check_count(self.size, "size", most=MOST_CELLS)

    @property
    def type(self) -> pa.DataType:
        """Fixed-size binary."""
        return pa.binary(self.row_bytes)

    @property
    def cells(self) -> int:
        """One for each place."""
        return self.size

    @property
    def row_bytes(self) -> int:
        """Whole bytes that hold the bits."""
        return -(-self.size // 8)

    @property
    def sensitivity(self) -> int:
        """A row of ones."""
        return self.size

    def encode(self, values: object) -> pa.Array:
        """Pack an (n, size) array of bits."""
        packed = np.packbits(check_bits(values, width=self.size), axis=1, bitorder="little")
        data = pa.py_buffer(np.ascontiguousarray(packed))
        return pa.FixedSizeBinaryArray.from_buffers(self.type, len(packed), [None, data])

    def broken_rule(self, array: pa.Array) -> str:
        """Padding bits have to be zero: they could carry something."""
        used, width, count = self.size % 8, self.row_bytes, len(array)
        if not used or not count:
            return ""
        data = np.frombuffer(array.buffers()[1], np.uint8, count * width, array.offset * width)
        if int(np.maximum.reduce(data[width - 1 :: width])) >> used:
            return "has padding bits that are not zero"
        return ""

    def decode(self, array: pa.Array) -> NDArray[np.bool_]:
        """Return the (n, size) array of bits."""
        packed = self._packed(array)
        bits = np.unpackbits(packed, axis=1, count=self.size, bitorder="little")
        return bits.view(np.bool_)

    def tally(self, array: pa.Array) -> Tally:
        """Return the number of ones in each place."""
        packed, counts = self._packed(array), np.zeros(self.size, dtype=np.int64)
        for rows in blocks(len(packed), self.size):
            bits = np.unpackbits(packed[rows], axis=1, count=self.size, bitorder="little")
            # Exact, since a frame has fewer than 2**24 rows; ten times as fast as a sum.
            ones = np.ones(len(bits), dtype=np.float32)
            counts += (ones @ bits.astype(np.float32)).astype(np.int64)
        return counts

    def _packed(self, array: pa.Array) -> NDArray[np.uint8]:
        width, count, data = self.row_bytes, len(array), array.buffers()[1]
        if not count:
            return np.empty((0, width), dtype=np.uint8)
        rows = np.frombuffer(data, np.uint8, count * width, offset=array.offset * width)
        return rows.reshape(count, width)


@dataclass(frozen=True, slots=True)
class Integers:
    """Integers in [low, high], in the narrowest type that holds both; their tally is the sum."""

    low: int
    high: int

    def __post_init__(self) -> None:
        check_count(self.low, "low", least=-LARGEST_INTEGER, most=LARGEST_INTEGER)
        check_count(self.high, "high", least=self.low, most=LARGEST_INTEGER)

    @property
    def type(self) -> pa.DataType:
        """The narrowest integer type, unsigned where nothing is negative."""
        return pa.from_numpy_dtype(_narrowest(self.low, self.high))

    @property
    def cells(self) -> int:
        """The sum alone."""
        return 1

    @property
    def row_bytes(self) -> int:
        """The width of the type."""
        return _narrowest(self.low, self.high).itemsize

    @property
    def sensitivity(self) -> int:
        """The integer farthest from 0."""
        return max(abs(self.low), abs(self.high))

    def encode(self, values: object) -> pa.Array:
        """Return one integer for each row."""
        numbers = check_integers(values, self.low, self.high)
        return pa.array(numbers.astype(_narrowest(self.low, self.high)))

    def broken_rule(self, array: pa.Array) -> str:
        """The type is wider than the domain: look at the extremes."""
        numbers = self.decode(array)
        if len(numbers) and not (self.low <= numbers.min() and numbers.max() <= self.high):
            return f"has a number outside [{self.low}, {self.high}]"
        return ""

    def decode(self, array: pa.Array) -> Array:
        """Return the integers, without a copy."""
        return np.asarray(array.to_numpy(zero_copy_only=True))

    def tally(self, array: pa.Array) -> Tally:
        """Return the sum."""
        return np.array([self.decode(array).sum(dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class Symbols:
    """Integers in range(size), in the narrowest type; their tally is how often each occurs."""

    size: int

    def __post_init__(self) -> None:
        check_count(self.size, "size", most=MOST_CELLS)

    @property
    def type(self) -> pa.DataType:
        """The narrowest unsigned integer type."""
        return self._range.type

    @property
    def cells(self) -> int:
        """One for each symbol."""
        return self.size

    @property
    def row_bytes(self) -> int:
        """The width of the type."""
        return self._range.row_bytes

    @property
    def sensitivity(self) -> int:
        """One symbol."""
        return 1

    def encode(self, values: object) -> pa.Array:
        """Return one symbol for each row."""
        return self._range.encode(values)

    def broken_rule(self, array: pa.Array) -> str:
        """The type may be wider than the domain."""
        return self._range.broken_rule(array)

    def decode(self, array: pa.Array) -> Array:
        """Return the symbols, without a copy."""
        return self._range.decode(array)

    def tally(self, array: pa.Array) -> Tally:
        """Return the number of rows of each symbol."""
        symbols, counts = self.decode(array), np.zeros(self.size, dtype=np.int64)
        for rows in blocks(len(symbols)):  # bincount copies to eight bytes each
            counts += np.bincount(symbols[rows], minlength=self.size)
        return counts

    @property
    def _range(self) -> Integers:
        return Integers(0, self.size - 1)


def _narrowest(low: int, high: int) -> np.dtype[np.integer]:
    """Return the narrowest integer type that holds both."""
    # A signed type that holds -high - 1 holds high as well.
    return np.min_scalar_type(high if low >= 0 else min(low, -high - 1))


@dataclass(frozen=True, slots=True)
class Text:
    """Texts of at most ``most_bytes`` bytes of UTF-8; they are collected, never summed."""

    most_bytes: int

    def __post_init__(self) -> None:
        check_count(self.most_bytes, "most_bytes", most=1 << 20)

    @property
    def type(self) -> pa.DataType:
        """UTF-8 with 32-bit offsets."""
        return pa.string()

    @property
    def cells(self) -> int:
        """None: a text has no sum."""
        return 0

    @property
    def row_bytes(self) -> int:
        """The longest text and its offset."""
        return self.most_bytes + 4

    @property
    def sensitivity(self) -> int:
        """None: a text has no sum."""
        return 0

    def encode(self, values: object) -> pa.Array:
        """Return one text for each row."""
        domain = f"texts of at most {self.most_bytes} bytes"
        if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str | bytes):
            raise OutOfDomain(f"Expected a sequence of {domain}; got {type(values).__name__}.")
        if not all(isinstance(value, str) for value in values):
            raise OutOfDomain(f"Expected {domain}; one is no text.")
        try:
            array = pa.array(list(values), type=self.type)
        except UnicodeEncodeError:
            raise OutOfDomain(f"Expected {domain}; one is not Unicode.") from None
        rule = self.broken_rule(array)
        if rule:
            raise OutOfDomain(f"Expected {domain}; the column {rule}.")
        return array

    def broken_rule(self, array: pa.Array) -> str:
        """No text may be longer than the bound."""
        count, offsets = len(array), array.buffers()[1]
        if not count:
            return ""
        ends = np.frombuffer(offsets, np.int32, count + 1, offset=4 * array.offset)
        if np.diff(ends).max() > self.most_bytes:
            return f"has a text of more than {self.most_bytes} bytes"
        return ""

    def decode(self, array: pa.Array) -> Array:
        """Return the texts as an array of objects."""
        return np.asarray(array.to_numpy(zero_copy_only=False))

    def tally(self, array: pa.Array) -> Tally:
        """Refuse: a text has no sum."""
        raise BadParameter("column", "text", "to be one that can be summed")
