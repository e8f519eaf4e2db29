"""A column of texts: collected as they are, never summed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisefloor.checks import Array, check_count
from noisefloor.errors import BadParameter, OutOfDomain
from noisefloor.wire.columns import Tally


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
        if self.broken_rule(array):
            raise OutOfDomain(f"Expected {domain}; one is longer.")
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
