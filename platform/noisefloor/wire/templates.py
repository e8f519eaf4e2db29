"""What every frame of one kind and size has in common: all bytes but those of id, epoch and rows.

A batch is proved to be in the one form by being written again. Where all rows of a column have the
same width, everything but the rows' own bytes follows from the batch's header, so a second batch
with the same header need not be written again: it has to agree with the first one everywhere but
there. What does not agree is not refused here; it goes the long way, which knows why.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

MOST_TEMPLATES = 256
"""Of one kind. Clients send frames of few sizes; whoever sends many only makes us forget."""


@dataclass(frozen=True, slots=True)
class Template:
    """Bytes that lie at fixed places."""

    size: int
    fixed: tuple[tuple[int, bytes], ...]

    def fits(self, data: bytes) -> bool:
        """Whether data have these bytes in these places."""
        for start, part in self.fixed:
            if not data.startswith(part, start):
                return False
        return len(data) >= self.size


class Templates:
    """Batches of one kind that went the long way and were found right, by their headers."""

    __slots__ = ("_by_header", "_header_bytes")

    def __init__(self) -> None:
        self._by_header: dict[bytes, Template] = {}
        self._header_bytes = 0

    def has(self, data: bytes, start: int) -> bool:
        """Whether the batch that starts there, and ends with the frame, is in the one form."""
        known = self._by_header.get(data[start : start + self._header_bytes])
        return known is not None and len(data) == known.size and known.fits(data)

    def learn(self, data: bytes, start: int, batch: pa.RecordBatch) -> None:
        """Remember a batch that was read without a copy from a frame that was found right."""
        base = pa.py_buffer(data).address
        rows = sorted((at - base, at - base + size) for at, size in _rows_of(batch))
        if len(rows) < batch.num_columns or not start < rows[0][0] <= rows[-1][1] <= len(data):
            return
        header = data[start : rows[0][0]]
        if self._header_bytes != len(header) or len(self._by_header) >= MOST_TEMPLATES:
            self._by_header.clear()
            self._header_bytes = len(header)
        edges = [start, *(edge for pair in rows for edge in pair), len(data)]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        fixed = tuple((gap, data[gap:end]) for gap, end in gaps)
        self._by_header[header] = Template(len(data), fixed)


def _rows_of(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield address and length of the rows of each column that has rows of one width."""
    for array in batch.columns:
        buffers, kind = array.buffers(), array.type
        is_even = pa.types.is_integer(kind) or pa.types.is_fixed_size_binary(kind)
        if is_even and len(buffers) == 2 and buffers[0] is None and not array.offset:
            yield buffers[1].address, len(array) * kind.bit_width // 8
