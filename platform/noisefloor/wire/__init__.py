"""Wire: what crosses the bus, and the bus itself.

``columns`` and ``kinds`` say what a report may hold, ``frames`` writes and reads batches of them,
``bus`` carries bytes at least once. Nothing here knows a
pipeline, a user or a clock.
"""

from noisefloor.wire.bus import Backlog, FrameBus, MemoryBus, drain
from noisefloor.wire.columns import MOST_CELLS, Bits, Column, Integers, Symbols, Tally, Text
from noisefloor.wire.frames import (
    FIRST,
    ID_BYTES,
    MOST_BYTES,
    MOST_EPOCH,
    MOST_ROWS,
    Frame,
    Order,
    SealedFrame,
    address_frame,
    decode_frame,
    encode_frame,
    encode_with_order,
    read_batch_id,
    seal,
    sealed_frames,
    split_frames,
)
from noisefloor.wire.kinds import (
    Kind,
    Reduction,
    bit_vector_kind,
    grid_kind,
    joined,
    record_kind,
    sorted_rows,
    symbol_kind,
)

__all__ = [
    "FIRST",
    "ID_BYTES",
    "MOST_BYTES",
    "MOST_CELLS",
    "MOST_EPOCH",
    "MOST_ROWS",
    "Backlog",
    "Bits",
    "Column",
    "Frame",
    "FrameBus",
    "Integers",
    "Kind",
    "MemoryBus",
    "Order",
    "Reduction",
    "SealedFrame",
    "Symbols",
    "Tally",
    "Text",
    "address_frame",
    "bit_vector_kind",
    "decode_frame",
    "drain",
    "encode_frame",
    "encode_with_order",
    "grid_kind",
    "joined",
    "read_batch_id",
    "record_kind",
    "seal",
    "sealed_frames",
    "sorted_rows",
    "split_frames",
    "symbol_kind",
]
