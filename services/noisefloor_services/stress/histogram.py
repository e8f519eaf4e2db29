"""HDR histograms of latencies: three significant digits from 1 microsecond to 60 seconds.

Buckets, percentiles and the encoding are those of HdrHistogram, so that other tools read what is
written here. Values are microseconds. Histograms of several processes are added bucket by bucket:
the sum is the histogram of all values, which no average of percentiles is.

The package ``hdrhistogram`` does the same. It needs ``pbr`` and ``setuptools`` at run time and a
compiled extension, and records one value a call; here a step is recorded at once, after its last
answer, so that recording delays no request.

Reference: HdrHistogram 2.1, encoding version 2 (``org.HdrHistogram.AbstractHistogram``).
"""

import base64
import struct
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisefloor.errors import BadParameter

LEAST_US, MOST_US = 1, 60_000_000
DIGITS = 3
_HALF_BITS = 10
_HALF = 1 << _HALF_BITS
"""Buckets of one power of two: values of three digits differ by one part in 1,000 or less."""

_BUCKETS = 16  # 2048 << 15 is the first power of two above 60 s
CELLS = (_BUCKETS + 1) * _HALF

_PLAIN, _COMPRESSED = 0x1C849313, 0x1C849314
_HEAD = struct.Struct(">iiiiqqd")
_OUTER = struct.Struct(">ii")

Counts = NDArray[np.int64]


def bucket_of(values_us: ArrayLike) -> Counts:
    """Return the bucket of each value; what is below or above the range counts at its end."""
    values = np.clip(np.asarray(values_us, np.int64), 0, MOST_US)
    lengths = np.frexp(values.astype(np.float64))[1].astype(np.int64)  # in bits
    shifts = np.maximum(lengths - (_HALF_BITS + 1), 0)
    found: Counts = (shifts << _HALF_BITS) + (values >> shifts)
    return found


def highest_of(bucket: int) -> int:
    """Return the largest value of a bucket."""
    shift = max((bucket >> _HALF_BITS) - 1, 0)
    low = (bucket - (shift << _HALF_BITS)) << shift
    return low + (1 << shift) - 1


class LatencyHistogram:
    """Counts of latencies by bucket.

    Args:
        counts: By bucket; empty without.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: Counts | None = None) -> None:
        self.counts: Counts = np.zeros(CELLS, np.int64) if counts is None else counts

    @classmethod
    def of(cls, values_us: ArrayLike) -> "LatencyHistogram":
        """Return the histogram of some values, in microseconds."""
        return cls(np.bincount(bucket_of(values_us), minlength=CELLS).astype(np.int64))

    @classmethod
    def merged(cls, parts: "Iterable[LatencyHistogram]") -> "LatencyHistogram":
        """Return the histogram of the values of all parts."""
        whole = cls()
        for part in parts:
            whole.counts += part.counts
        return whole

    @property
    def total(self) -> int:
        """How many values were recorded."""
        return int(self.counts.sum())

    @property
    def longest_us(self) -> int:
        """The largest value, to three digits; 0 if there is none."""
        used = np.flatnonzero(self.counts)
        return highest_of(int(used[-1])) if len(used) else 0

    def percentile_us(self, percent: float) -> int:
        """Return the smallest bucket's end at or below which a share of values lies; 0 of none."""
        if not 0 <= percent <= 100:
            raise BadParameter("percent", percent, "in [0, 100]")
        total = self.total
        if not total:
            return 0
        # Rounded first: 99.9 % of 1,000 is the 999th value, and 0.999 * 1000 is a little more.
        rank = max(1, int(np.ceil(round(percent / 100 * total, 6))))
        return highest_of(int(np.searchsorted(np.cumsum(self.counts), rank)))

    def share_above(self, limit_us: int) -> float:
        """Return the share of values in buckets above that of a limit; 0 of none."""
        above = int(self.counts[int(bucket_of(limit_us)) + 1 :].sum())
        return above / max(1, self.total)

    def encoded(self) -> str:
        """Return the compressed form of version 2, in base 64."""
        used = np.flatnonzero(self.counts)
        body = _packed(self.counts[: int(used[-1]) + 1] if len(used) else self.counts[:1])
        head = _HEAD.pack(_PLAIN, len(body), 0, DIGITS, LEAST_US, MOST_US, 1.0)
        squeezed = zlib.compress(head + body)
        return base64.b64encode(_OUTER.pack(_COMPRESSED, len(squeezed)) + squeezed).decode()

    @classmethod
    def decoded(cls, text: str) -> "LatencyHistogram":
        """Read what ``encoded`` wrote.

        Raises:
            BadParameter: It is something else, or of another range.
        """
        try:
            data = base64.b64decode(text, validate=True)
            plain = zlib.decompress(data[_OUTER.size :])
            head, outer = _HEAD.unpack_from(plain), _OUTER.unpack_from(data)
            counts = _unpacked(plain[_HEAD.size :])
        except (ValueError, zlib.error, struct.error, IndexError):
            raise BadParameter("histogram", "<text>", "an encoded histogram") from None
        own = (_PLAIN, len(plain) - _HEAD.size, 0, DIGITS, LEAST_US, MOST_US, 1.0)
        if head != own or outer[0] != _COMPRESSED or len(counts) > CELLS:
            raise BadParameter("histogram", "<text>", "of 3 digits, from 1 us to 60 s")
        whole = cls()
        whole.counts[: len(counts)] = counts
        return whole


def _packed(counts: Counts) -> bytes:
    """Write counts as numbers of variable length; runs of zeros are one negative number."""
    made = bytearray()
    place, size = 0, len(counts)
    filled = [*np.flatnonzero(counts).tolist(), size]
    for at in filled:
        if at > place:
            made += _number(-(at - place) if at > place + 1 else 0)
        if at < size:
            made += _number(int(counts[at]))
        place = at + 1
    return bytes(made)


def _number(value: int) -> bytes:
    """Write a number in zigzag order, seven bits a byte, the lowest first."""
    left = 2 * value if value >= 0 else -2 * value - 1
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


def _unpacked(data: bytes) -> list[int]:
    counts: list[int] = []
    place = 0
    while place < len(data):
        left = shift = 0
        while True:
            byte = data[place]
            place += 1
            left |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        value = left >> 1 if left % 2 == 0 else -((left + 1) >> 1)
        if value < -CELLS:
            raise ValueError
        counts += [0] * -value if value < 0 else [value]
    return counts
