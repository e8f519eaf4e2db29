"""What was learnt of earlier frames changes no verdict on a later one."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadFrame
from noisefloor.wire import (
    Integers,
    Kind,
    Symbols,
    Text,
    bit_vector_kind,
    decode_frame,
    grid_kind,
    record_kind,
    symbol_kind,
)
from noisefloor.wire.frames import seal
from noisefloor.wire.record_batch import MOST_TEMPLATES, Templates

CLICKS = bit_vector_kind("clicks", 11)
GRID = grid_kind("grid", -1000, 1000)
PAIRS = Kind("pairs", (("first", Symbols(5)), ("second", Integers(0, 70_000))))
NOTES = record_kind("notes", {"age": Integers(0, 120), "note": Text(12)})
KINDS = {kind.name: kind for kind in (CLICKS, GRID, PAIRS, NOTES)}
ROWS: dict[Kind, object] = {
    CLICKS: np.eye(11, dtype=np.bool_)[:7],
    GRID: np.arange(5),
    PAIRS: {"first": np.array([4, 0, 1]), "second": np.array([70_000, 1, 2])},
    NOTES: {"age": np.arange(3), "note": ["", "a", "bc"]},
}
ID = bytes(range(16))


def frame(kind: Kind) -> bytes:
    return seal(kind, 3, kind.encode(ROWS[kind]), ID)


FRAMES = [frame(kind) for kind in KINDS.values()]


def verdict(data: bytes) -> object:
    """Return all there is to know of a frame, or why it was refused."""
    try:
        read = decode_frame(data, KINDS)
    except BadFrame as error:
        return error.field, error.rule, error.batch_id
    rows = {name: column.tolist() for name, column in read.kind.decode(read.batch).items()}
    return read.kind.name, read.epoch, read.batch_id, rows


def verdict_without_memory(data: bytes) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Templates, "has", lambda *_: False)
        patch.setattr(Templates, "learn", lambda *_: None)
        return verdict(data)


@pytest.fixture(autouse=True)
def with_known_templates() -> Iterator[None]:
    for data in FRAMES:
        decode_frame(data, KINDS)
    yield


@pytest.mark.parametrize("data", FRAMES, ids=list(KINDS))
def test_every_byte_that_is_changed_has_the_verdict_of_the_long_way(data: bytes) -> None:
    for place in range(len(data)):
        for change in (1, 0x80, 0xFF):
            other = bytearray(data)
            other[place] ^= change
            assert verdict(bytes(other)) == verdict_without_memory(bytes(other)), place


@pytest.mark.parametrize("data", FRAMES, ids=list(KINDS))
def test_every_length_has_the_verdict_of_the_long_way(data: bytes) -> None:
    for length in range(len(data)):
        assert verdict(data[:length]) == verdict_without_memory(data[:length])
    for more in (b"\0", bytes(8), data[-8:], data):
        assert verdict(data + more) == verdict_without_memory(data + more)


@given(st.data())
def test_frames_that_are_mixed_have_the_verdict_of_the_long_way(drawn: st.DataObject) -> None:
    data = bytearray(drawn.draw(st.sampled_from(FRAMES)))
    for _ in range(drawn.draw(st.integers(1, 4))):
        place = drawn.draw(st.integers(0, len(data) - 1))
        part = drawn.draw(st.sampled_from(FRAMES))[place : place + drawn.draw(st.integers(1, 64))]
        data[place : place + len(part)] = part
    assert verdict(bytes(data)) == verdict_without_memory(bytes(data))


def batch_start(data: bytes) -> int:
    """Return where the schema message ends."""
    metadata = pa.ipc.read_message(data).metadata
    return data.index(metadata.to_pybytes()) + int(metadata.size)


def test_frames_of_rows_of_one_width_are_remembered_and_others_are_not() -> None:
    for kind, data in zip(KINDS.values(), FRAMES, strict=True):
        start, templates = batch_start(data), Templates()
        assert not templates.has(data, start)
        templates.learn(data, start, decode_frame(data, KINDS).batch)
        assert templates.has(data, start) == (kind is not NOTES)


def test_nothing_is_remembered_of_a_batch_that_lies_elsewhere() -> None:
    data, templates = FRAMES[0], Templates()
    templates.learn(data, batch_start(data), decode_frame(bytes(bytearray(data)), KINDS).batch)
    assert not templates.has(data, batch_start(data))


def test_the_same_header_under_another_kind_is_not_known() -> None:
    """Rows of one byte each: what is right for one kind is out of bounds for the other."""
    wide, narrow = symbol_kind("same", 200), symbol_kind("same", 3)
    assert wide.schema == narrow.schema
    data = seal(wide, 0, wide.encode(np.array([150, 2])), ID)
    assert decode_frame(data, {"same": wide}).batch.num_rows == 2
    with pytest.raises(BadFrame, match="outside"):
        decode_frame(data, {"same": narrow})


def test_the_memory_is_bounded() -> None:
    templates = Templates()
    for rows in range(1, MOST_TEMPLATES + 10):
        data = seal(GRID, 0, GRID.encode(np.zeros(rows, dtype=np.int64)), ID)
        templates.learn(data, batch_start(data), decode_frame(data, KINDS).batch)
        assert templates.has(data, batch_start(data))
        assert len(templates._by_header) <= MOST_TEMPLATES


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_frame_starts_with_what_arrow_writes(kind: Kind) -> None:
    for epoch, batch_id in ((0, bytes(16)), (1234567890, ID)):
        entries = {"version": "1", "kind": kind.name, "epoch": f"{epoch:010}"}
        schema = kind.schema.with_metadata({**entries, "batch": batch_id.hex()})
        written = schema.serialize().to_pybytes()
        assert seal(kind, epoch, kind.encode(ROWS[kind]), batch_id).startswith(written)
