"""Wire: what crosses the bus, the bus itself, and what a curious server sees of it.

``columns`` and ``kinds`` say what a report may hold, ``frames`` writes and reads batches of them,
``bus`` carries bytes at least once, ``transcript`` is the server's view. Nothing here knows a
pipeline, a user or a clock.
"""

from noisefloor.wire.bus import Backlog, Bus, Delivery, drain
from noisefloor.wire.columns import Bits, Column, Integers, Symbols
from noisefloor.wire.frames import (
    MOST_BYTES,
    MOST_EPOCH,
    MOST_ROWS,
    Frame,
    decode_frame,
    encode_frame,
    encode_with_order,
    read_batch_id,
    split_frames,
)
from noisefloor.wire.kinds import (
    Kind,
    Reduction,
    bit_vector_kind,
    grid_kind,
    record_kind,
    symbol_kind,
)
from noisefloor.wire.memory_bus import MemoryBus
from noisefloor.wire.text import Text
from noisefloor.wire.transcript import Transcript, TranscriptRecorder

__all__ = [
    "MOST_BYTES",
    "MOST_EPOCH",
    "MOST_ROWS",
    "Backlog",
    "Bits",
    "Bus",
    "Column",
    "Delivery",
    "Frame",
    "Integers",
    "Kind",
    "MemoryBus",
    "Reduction",
    "Symbols",
    "Text",
    "Transcript",
    "TranscriptRecorder",
    "bit_vector_kind",
    "decode_frame",
    "drain",
    "encode_frame",
    "encode_with_order",
    "grid_kind",
    "read_batch_id",
    "record_kind",
    "split_frames",
    "symbol_kind",
]
