"""Frames: batches of reports as bytes, the only thing that crosses the bus.

A frame is an Arrow IPC *stream* of one schema message, one record batch and the end mark. (The
file form repeats the schema and adds a table of offsets: a second place that can disagree with
the first, and more bytes for a frame of one row.) The schema's metadata has four entries of
constant width: version, kind, epoch and a random batch id. Nothing names a user, device, address
or time, and the rows are permuted.

A frame counts in one collection. In version 1 it names none, and belongs to a service's first; in
version 2 a fifth entry names another one. Without that, the same frames could be counted in two
collections but for one, and the difference of the two sums would be that one's.

There is exactly one way to write a frame. A reader compares the schema message byte by byte
with that of the kinds it knows before Arrow sees it, and writes the batch again to compare it with
what came: compression, dictionaries, further metadata, other buffers, padding that is not zero and
trailing bytes all fail, without a rule for each. (A frame that differs from one that passed in id,
epoch and rows alone is not written again, see ``templates``.) pyarrow 20 and 26 write the same
bytes; a writer that does not is refused.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.checks import check_count
from noisefloor.errors import BadFrame, BadParameter
from noisefloor.randomness import Source
from noisefloor.wire.kinds import Kind, joined
from noisefloor.wire.record_batch import Template, Templates, read_batch_header

VERSION = 1
VERSION_OF_NAMED = 2
"""Of frames that name their collection."""

FIRST = ("",)
"""Which frames a first collection takes: those that name none."""

MOST_ROWS = 1 << 16
MOST_BYTES = 1 << 20
MOST_EPOCH = 10**10 - 1
ID_BYTES = 16

Order = NDArray[np.int64]

_END = b"\xff\xff\xff\xff\0\0\0\0"
_EPOCH_FORM = re.compile(rb"[0-9]{10}")
_ID_FORM = re.compile(rb"[0-9a-f]{32}")
_COLLECTION = re.compile(r"([a-z0-9][a-z0-9-]{0,63})?", re.ASCII)
_LONGEST_NAME = "c" * 64


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A frame as read: every rule of its kind holds."""

    kind: Kind
    epoch: int
    batch_id: bytes
    batch: pa.RecordBatch


def encode_frame(
    kind: Kind,
    epoch: int,
    reports: object,
    source: Source,
    *,
    most_bytes: int = MOST_BYTES,
    collection: str = "",
) -> bytes:
    """Write reports as one frame, in random order; a retry has to send the same bytes again.

    Args:
        kind: Of the reports.
        epoch: In which they count.
        reports: As the kind encodes them.
        source: Of order and batch id.
        most_bytes: Of the frame.
        collection: In which they count, by its name; nothing for a service's first.
    """
    return encode_with_order(
        kind, epoch, reports, source, most_bytes=most_bytes, collection=collection
    )[0]


def encode_with_order(
    kind: Kind,
    epoch: int,
    reports: object,
    source: Source,
    *,
    most_bytes: int = MOST_BYTES,
    collection: str = "",
) -> tuple[bytes, Order]:
    """Write a frame, and return the order as well: row ``i`` is report ``order[i]``.

    For a simulated network that has to know which connection a row came by. The order is what the
    frame exists to hide: it never leaves the simulation.
    """
    batch = kind.encode(reports)
    order = source.stage("order").permutation(batch.num_rows)
    batch_id = _draw_id(source, 0)
    permuted = batch.take(pa.array(order))
    return seal(
        kind, epoch, permuted, batch_id, most_bytes=most_bytes, collection=collection
    ), order


@dataclass(frozen=True, slots=True, eq=False)
class SealedFrame:
    """A frame as it is sent, with what only a simulation may know of it.

    Attributes:
        data: The bytes.
        batch_id: Of the frame.
        order: Row ``i`` is report ``order[i]``: what the frame exists to hide.
    """

    data: bytes
    batch_id: bytes
    order: Order


def split_frames(
    kind: Kind,
    epoch: int,
    reports: object,
    source: Source,
    *,
    most_rows: int = MOST_ROWS,
    most_bytes: int = MOST_BYTES,
) -> Iterator[bytes]:
    """Write any number of reports as frames of constant size, the last one smaller.

    All reports are permuted together before they are cut, so that a frame does not tell which
    part of the reports it holds.
    """
    sealed = sealed_frames(
        kind, epoch, reports, source, most_rows=most_rows, most_bytes=most_bytes
    )
    return (frame.data for frame in sealed)


def sealed_frames(
    kind: Kind,
    epoch: int,
    reports: object,
    source: Source,
    *,
    most_rows: int = MOST_ROWS,
    most_bytes: int = MOST_BYTES,
) -> Iterator[SealedFrame]:
    """Write frames as ``split_frames`` does, and return batch id and order of each as well.

    For a simulation that compares what arrives with what devices hold: neither leaves it.
    """
    check_count(most_rows, "most_rows", most=MOST_ROWS)
    step = min(most_rows, _rows_within(kind, most_bytes))
    batch = kind.encode(reports)
    order = source.stage("order").permutation(batch.num_rows)
    for place, start in enumerate(range(0, len(order), step)):
        rows, batch_id = order[start : start + step], _draw_id(source, place)
        data = seal(kind, epoch, batch.take(pa.array(rows)), batch_id, most_bytes=most_bytes)
        yield SealedFrame(data, batch_id, rows)


def seal(
    kind: Kind,
    epoch: int,
    batch: pa.RecordBatch,
    batch_id: bytes,
    *,
    most_bytes: int = MOST_BYTES,
    collection: str = "",
) -> bytes:
    """Write a batch whose rows are already in random order; the bytes follow from the input."""
    check_count(epoch, "epoch", least=0, most=MOST_EPOCH)
    check_count(batch.num_rows, "rows", most=MOST_ROWS)
    if len(batch_id) != ID_BYTES:
        raise BadParameter("batch_id", f"<{len(batch_id)} bytes>", f"of {ID_BYTES} bytes")
    if not _COLLECTION.fullmatch(collection):
        raise BadParameter("collection", "<name>", f"to match {_COLLECTION.pattern}")
    head = _head(kind, collection).written(epoch, batch_id)
    data = b"".join((head, _batch_message(kind, batch), _END))
    if len(data) > most_bytes:
        raise BadParameter("frame", f"<{len(data)} bytes>", f"of at most {most_bytes} bytes")
    return data


def decode_frame(
    data: bytes,
    kinds: Mapping[str, Kind],
    *,
    most_bytes: int = MOST_BYTES,
    collections: Sequence[str] = FIRST,
) -> Frame:
    """Read a frame of one of the kinds, or raise BadFrame, whatever the bytes are.

    Args:
        data: The bytes.
        kinds: By name.
        most_bytes: Of the frame.
        collections: The names of which the frame may have one; an empty one for no name.
    """
    if not isinstance(data, bytes):
        raise BadFrame("frame", "is not bytes")
    if len(data) > most_bytes:
        raise BadFrame("frame", f"has more than {most_bytes} bytes")
    head, kind, epoch, batch_id = _read_header(data, kinds.values(), collections)
    try:
        batch = _read_batch(data, kind, head)
    except BadFrame as error:
        raise BadFrame(error.field, error.rule, batch_id) from None
    return Frame(kind, epoch, batch_id, batch)


def address_frame(data: bytes, kinds: Mapping[str, Kind], collection: str) -> bytes:
    """Write a frame that names no collection anew, as one for a named collection.

    Epoch, batch id and rows stay, and so does their order. For a simulation, which makes its
    frames before it is known where they are counted; a device names the collection at once.
    """
    frame = decode_frame(data, kinds)
    return seal(frame.kind, frame.epoch, frame.batch, frame.batch_id, collection=collection)


def read_batch_id(
    data: bytes, kinds: Mapping[str, Kind], collections: Sequence[str] = FIRST
) -> bytes | None:
    """Return a frame's own id if its header can be read; its rows are not looked at."""
    try:
        return _read_header(data, kinds.values(), collections)[3]
    except BadFrame:
        return None


def _draw_id(source: Source, place: int) -> bytes:
    return source.stage("batch", place).bytes_of(ID_BYTES)[:ID_BYTES].tobytes()


def _schema_message(kind: Kind, collection: str, epoch: str, batch_id: str) -> bytes:
    metadata = {"version": str(VERSION), "kind": kind.name, "epoch": epoch, "batch": batch_id}
    if collection:
        metadata |= {"version": str(VERSION_OF_NAMED), "collection": collection}
    message: bytes = kind.schema.with_metadata(metadata).serialize().to_pybytes()
    return message


def _batch_message(kind: Kind, batch: pa.RecordBatch) -> pa.Buffer:
    """Write a batch from a copy: Arrow would write up to seven bytes past a buffer's last row."""
    return joined(kind, [batch]).serialize()


@dataclass(frozen=True, slots=True)
class _Head:
    """The schema message of a kind, where epoch and batch id go in it, and what may follow it."""

    blank: bytes
    message: Template
    epoch: slice
    batch_id: slice
    batches: Templates

    def written(self, epoch: int, batch_id: bytes) -> bytes:
        """Write the message of a frame."""
        made = bytearray(self.blank)
        made[self.epoch], made[self.batch_id] = b"%010d" % epoch, batch_id.hex().encode()
        return bytes(made)


@lru_cache(maxsize=1024)
def _head(kind: Kind, collection: str = "") -> _Head:
    """Find where epoch and batch id lie by changing them, not by knowing Arrow's layout."""
    blank = _schema_message(kind, collection, "0" * 10, "0" * 32)
    epoch = _changed(blank, _schema_message(kind, collection, "1" * 10, "0" * 32))
    batch_id = _changed(blank, _schema_message(kind, collection, "0" * 10, "1" * 32))
    first, second = sorted((epoch, batch_id), key=lambda hole: hole.start)
    rests = (slice(0, first.start), slice(first.stop, second.start), slice(second.stop, None))
    fixed = tuple((rest.start or 0, blank[rest]) for rest in rests)
    return _Head(blank, Template(len(blank), fixed), epoch, batch_id, Templates())


def _changed(first: bytes, second: bytes) -> slice:
    places = np.flatnonzero(np.frombuffer(first, np.uint8) != np.frombuffer(second, np.uint8))
    return slice(int(places[0]), int(places[-1]) + 1)


def _read_header(
    data: bytes, kinds: Iterable[Kind], collections: Sequence[str]
) -> tuple[_Head, Kind, int, bytes]:
    """Return the form of the header, kind, epoch and batch id."""
    for kind in kinds:
        for collection in collections:
            head = _head(kind, collection)
            if head.message.fits(data):
                epoch, batch_id = data[head.epoch], data[head.batch_id]
                if not _EPOCH_FORM.fullmatch(epoch):
                    raise BadFrame("epoch", "is not ten digits")
                if not _ID_FORM.fullmatch(batch_id):
                    raise BadFrame("batch id", "is not 32 hexadecimal digits")
                return head, kind, int(epoch), bytes.fromhex(batch_id.decode())
        if "" not in collections and _head(kind).message.fits(data):
            raise BadFrame("collection", "is not named: a frame for this one has to name it")
    if collections != FIRST:
        raise BadFrame("header", "is not that of a kind and collection known here")
    raise BadFrame("header", f"is not that of version {VERSION} of a kind known here")


def _read_batch(data: bytes, kind: Kind, head: _Head) -> pa.RecordBatch:
    """Read what follows the schema message: one batch and the end mark."""
    start = head.message.size
    tail = pa.py_buffer(data).slice(start)
    is_known = head.batches.has(data, start)
    batch = _known_batch(tail, kind) if is_known else _unknown_batch(tail, kind)
    kind.check(batch)
    if not is_known:
        head.batches.learn(data, start, batch)
    return batch


def _known_batch(tail: pa.Buffer, kind: Kind) -> pa.RecordBatch:
    """Read a batch that is in the one form, whatever its rows hold."""
    return _arrow(pa.ipc.read_record_batch, _arrow(pa.ipc.read_message, tail), kind.schema)


def _unknown_batch(tail: pa.Buffer, kind: Kind) -> pa.RecordBatch:
    """Read a batch, and make sure that it is in the one form by writing it again."""
    length = tail.size - len(_END)
    if length < 0 or tail.slice(length).to_pybytes() != _END:
        raise BadFrame("frame", "does not stop at the end mark")
    body = tail.slice(0, length)
    message = _arrow(pa.ipc.read_message, body)
    if message.type != "record batch":
        raise BadFrame("batch", "is another kind of message")
    header = read_batch_header(message.metadata.to_pybytes())
    if header.is_compressed:
        raise BadFrame("batch", "is compressed")
    if not 1 <= header.rows <= MOST_ROWS:
        raise BadFrame("batch", f"does not have 1 to {MOST_ROWS} rows")
    batch = _arrow(pa.ipc.read_record_batch, message, kind.schema)
    _arrow(batch.validate, full=True)
    # Before any other rule: columns then look at buffers of exactly the length they should have.
    if not _batch_message(kind, batch).equals(body):
        raise BadFrame("batch", "is not written in the one form")
    return batch


def _arrow(
    step: Callable[..., pa.RecordBatch], *args: object, **options: object
) -> pa.RecordBatch:
    """Take one step of Arrow's on bytes that nobody vouches for."""
    try:
        return step(*args, **options)
    # Any exception: Arrow has dozens for bad bytes, and its texts may quote a value.
    except Exception:
        raise BadFrame("batch", "cannot be read by Arrow") from None


def _rows_within(kind: Kind, most_bytes: int) -> int:
    """Return how many rows of the widest sort fit in a frame, whatever collection it names.

    Room for a name is left in every frame: ``address_frame`` may add one afterwards.
    """
    empty = joined(kind, [])
    fixed = (
        _head(kind, _LONGEST_NAME).message.size
        + empty.serialize().size
        + len(_END)
        + 24 * len(kind.columns)
    )
    rows: int = (most_bytes - fixed) // kind.row_bytes
    if rows < 1:
        raise BadParameter("most_bytes", most_bytes, f"enough for a row of {kind.name}")
    return rows
