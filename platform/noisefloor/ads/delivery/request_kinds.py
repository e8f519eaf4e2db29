"""The frames that carry ad requests: one ad's index, or a slate as one bit for each ad.

A request has no field besides: neither the scores nor who asks. The tally of both kinds is how
many requests each ad is in.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisefloor.ads.delivery.slates import Slates, places_of
from noisefloor.checks import blocks, check_count, check_integers
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

    def encode(self, values: object) -> pa.Array:
        """Pack an (n, slate) array of indices, each row in the order of the index."""
        rows = check_integers(values, 0, self.size - 1, width=self.slate)
        if (rows[:, 1:] <= rows[:, :-1]).any():
            raise OutOfDomain(f"Expected slates of {self.slate} ads in the order of their index.")
        bits = np.zeros((len(rows), self.size), dtype=np.bool_)
        np.put_along_axis(bits, rows.astype(np.intp), values=True, axis=1)
        return self._bits.encode(bits)

    def broken_rule(self, array: pa.Array) -> str:
        """Padding bits have to be zero, and every slate has its number of ads."""
        rule = self._bits.broken_rule(array)
        if rule:
            return rule
        for rows in blocks(len(array), self.size):
            some = self._bits.decode(array.slice(rows.start, rows.stop - rows.start))
            if (some.sum(axis=1) != self.slate).any():
                return f"has a slate that is not of {self.slate} ads"
        return ""

    def decode(self, array: pa.Array) -> Slates:
        """Return the (n, slate) array of indices, as it was encoded."""
        return places_of(self._bits.decode(array), self.slate)

    def tally(self, array: pa.Array) -> Tally:
        """Return in how many slates each ad is."""
        return self._bits.tally(array)

    @property
    def _bits(self) -> Bits:
        return Bits(self.size)
