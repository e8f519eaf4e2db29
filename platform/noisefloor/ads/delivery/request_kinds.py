"""The frames that carry ad requests: one ad's index, or a slate as one bit for each ad.

A request has no field besides: neither the scores nor who asks. The tally of both kinds is how
many requests each ad is in.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisefloor.ads.delivery.slates import Slates, places_of
from noisefloor.checks import check_count, check_integers
from noisefloor.errors import OutOfDomain
from noisefloor.wire import Bits, Kind, Tally, symbol_kind

AD_REQUESTS = "ad-requests"
"""The kind of frame that carries one requested ad per row."""

AD_SLATES = "ad-slates"
"""The kind of frame that carries one requested slate per row."""


def ad_requests_kind(size: int) -> Kind:
    """Make the kind of requests for one of ``size`` ads."""
    return symbol_kind(AD_REQUESTS, size)


def ad_slates_kind(size: int, slate: int) -> Kind:
    """Make the kind of requests for ``slate`` of ``size`` ads."""
    return Kind(AD_SLATES, (("slate", SlateRows(size, slate)),))


@dataclass(frozen=True, slots=True)
class SlateRows:
    """Rows of ``size`` bits, packed, of which exactly ``slate`` are ones; counted by place.

    Bits have no order, so the order of a slate cannot carry anything; neither can its length.
    """

    size: int
    slate: int

    def __post_init__(self) -> None:
        check_count(self.slate, "slate", most=Bits(self.size).size)

    @property
    def type(self) -> pa.DataType:
        """Fixed-size binary."""
        return self._bits.type

    @property
    def cells(self) -> int:
        """One for each ad."""
        return self.size

    @property
    def row_bytes(self) -> int:
        """Whole bytes that hold the bits."""
        return self._bits.row_bytes

    @property
    def sensitivity(self) -> int:
        """As many ads as a slate has."""
        return self.slate

    def encode(self, values: object) -> pa.Array:
        """Pack an (n, slate) array of indices, each row in the order of the index."""
        rows = check_integers(values, 0, self.size - 1, width=self.slate)
        if (rows[:, 1:] <= rows[:, :-1]).any():
            raise OutOfDomain(f"Expected slates of {self.slate} ads in the order of their index.")
        packed, every = np.zeros((len(rows), self.row_bytes), np.uint8), np.arange(len(rows))
        for ads in rows.T:  # the bits are never unpacked: a long catalogue would need much memory
            packed[every, ads >> 3] |= np.left_shift(1, ads & 7).astype(np.uint8)
        data = pa.py_buffer(packed)
        return pa.FixedSizeBinaryArray.from_buffers(self.type, len(packed), [None, data])

    def broken_rule(self, array: pa.Array) -> str:
        """Padding bits have to be zero, and every slate has its number of ads."""
        rule, width, count = self._bits.broken_rule(array), self.row_bytes, len(array)
        if rule or not count:
            return rule
        data = np.frombuffer(array.buffers()[1], np.uint8, count * width, array.offset * width)
        ads = np.bitwise_count(data.reshape(count, width)).sum(axis=1, dtype=np.uint32)
        return "" if (ads == self.slate).all() else f"has a slate that is not of {self.slate} ads"

    def decode(self, array: pa.Array) -> Slates:
        """Return the (n, slate) array of indices, as it was encoded."""
        return places_of(self._bits.decode(array), self.slate)

    def tally(self, array: pa.Array) -> Tally:
        """Return in how many slates each ad is."""
        return self._bits.tally(array)

    @property
    def _bits(self) -> Bits:
        return Bits(self.size)
