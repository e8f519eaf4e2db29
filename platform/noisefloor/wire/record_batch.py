"""What every frame of one kind and size has in common: all bytes but those of id, epoch and rows.

A batch is proved to be in the one form by being written again. Where all rows of a column have the
same width, everything but the rows' own bytes follows from the batch's header, so a second batch
with the same header need not be written again: it has to agree with the first one everywhere but
there. What does not agree is not refused here; it goes the long way, which knows why.

The few numbers of an Arrow record batch message that have to be known before it is read.

Arrow unpacks a compressed buffer while it reads a batch, into as much memory as the sender says.
So whether a batch is compressed, and how many rows it claims, is looked up in the message's
flatbuffer first. pyarrow shows neither. The layout is that of Arrow's ``Message.fbs``:
``Message {version, header_type, header, bodyLength, custom_metadata}`` and
``RecordBatch {length, nodes, buffers, compression, variadicBufferCounts}``.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from noisefloor.errors import BadFrame

_HEADER = 2
_LENGTH = 0
_COMPRESSION = 3
_U16, _I32, _U32, _I64 = (struct.Struct(form) for form in ("<H", "<i", "<I", "<q"))


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """What a record batch says of itself."""

    rows: int
    is_compressed: bool


def read_batch_header(metadata: bytes) -> BatchHeader:
    """Read the flatbuffer of a record batch message, or raise BadFrame."""
    message = _number(metadata, _U32, 0)
    at = _field(metadata, message, _HEADER)
    if at is None:
        raise BadFrame("batch", "has no header")
    batch = at + _number(metadata, _U32, at)
    length = _field(metadata, batch, _LENGTH)
    return BatchHeader(
        rows=0 if length is None else _number(metadata, _I64, length),
        is_compressed=_field(metadata, batch, _COMPRESSION) is not None,
    )


def _field(metadata: bytes, table: int, index: int) -> int | None:
    """Return where a table's field lies, or None if the table has no such field."""
    entries = table - _number(metadata, _I32, table)
    place = 4 + 2 * index  # after the sizes of the list of entries and of the table
    if place + 2 > _number(metadata, _U16, entries):
        return None
    offset = _number(metadata, _U16, entries + place)
    return table + offset if offset else None


def _number(metadata: bytes, form: struct.Struct, at: int) -> int:
    """Read one little-endian integer within bounds."""
    if not 0 <= at <= len(metadata) - form.size:
        raise BadFrame("batch", "has a header that points outside itself")
    number: int = form.unpack_from(metadata, at)[0]
    return number


MOST_TEMPLATES = 256
"""Of one kind. Clients send few sizes of frames; one that sends many only evicts entries."""


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
