"""The few numbers of an Arrow record batch message that have to be known before it is read.

Arrow unpacks a compressed buffer while it reads a batch, into as much memory as the sender says.
So whether a batch is compressed, and how many rows it claims, is looked up in the message's
flatbuffer first. pyarrow shows neither. The layout is that of Arrow's ``Message.fbs``:
``Message {version, header_type, header, bodyLength, custom_metadata}`` and
``RecordBatch {length, nodes, buffers, compression, variadicBufferCounts}``.
"""

import struct
from dataclasses import dataclass

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
