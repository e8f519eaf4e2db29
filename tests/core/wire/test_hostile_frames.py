"""Whatever bytes come in, a reader returns a frame that obeys every rule or raises BadFrame."""

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noisefloor.errors import BadFrame
from noisefloor.randomness import SeededSource
from noisefloor.wire import (
    MOST_ROWS,
    Integers,
    Kind,
    Text,
    bit_vector_kind,
    decode_frame,
    encode_frame,
    record_kind,
    symbol_kind,
)
from noisefloor.wire.frames import seal
from noisefloor.wire.record_batch import read_batch_header

CLICKS = bit_vector_kind("clicks", 11)
SYMBOLS = symbol_kind("symbols", 300)
NOTES = record_kind("notes", {"age": Integers(0, 120), "note": Text(12)})
KINDS = {kind.name: kind for kind in (CLICKS, SYMBOLS, NOTES)}
ID = bytes(range(16))
SENTINEL = "u-4711"
END = b"\xff\xff\xff\xff\0\0\0\0"
NOTE_ROWS = {"age": np.arange(5), "note": ["", "a", "bc", "déf", "ghij"]}
FRAMES = (
    seal(CLICKS, 3, CLICKS.encode(np.eye(11, dtype=np.bool_)), ID),
    seal(SYMBOLS, 3, SYMBOLS.encode(np.array([299])), ID),
    seal(NOTES, 3, NOTES.encode(NOTE_ROWS), ID),
)
METADATA = {"version": "1", "kind": "symbols", "epoch": "0000000003", "batch": ID.hex()}
ONE = SYMBOLS.encode(np.array([299, 1, 2]))
WORDS = st.sampled_from([0, 1, 2, 3, 4, 7, 8, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1])


def check_refused_or_one_form(data: bytes) -> bool:
    """Read bytes; return whether they were refused. A frame that is read writes the same bytes."""
    try:
        frame = decode_frame(data, KINDS)
    except BadFrame:
        return True
    frame.kind.check(frame.batch)
    # Written anew from the values alone: nothing but them can have been in the bytes.
    values = frame.kind.encode(frame.kind.decode(frame.batch))
    assert seal(frame.kind, frame.epoch, values, frame.batch_id) == data
    return False


def stream(
    schema: pa.Schema,
    *batches: pa.RecordBatch,
    options: pa.ipc.IpcWriteOptions = None,
    custom: Mapping[str, str] | None = None,
) -> bytes:
    """Write an Arrow stream as any writer may."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch, custom_metadata=custom)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def symbols_stream(array: pa.Array, **changes: str) -> bytes:
    """Write a stream of the kind of symbols whose metadata differ as told."""
    schema = SYMBOLS.schema.with_metadata({**METADATA, **changes})
    return stream(schema, pa.RecordBatch.from_arrays([array], schema=schema))


def refused(data: bytes) -> BadFrame:
    with pytest.raises(BadFrame) as caught:
        decode_frame(data, KINDS)
    return caught.value


def test_the_writer_of_these_tests_writes_good_frames() -> None:
    data = symbols_stream(ONE.column(0))
    assert data == seal(SYMBOLS, 3, ONE, ID)
    assert not check_refused_or_one_form(data)
    assert [check_refused_or_one_form(frame) for frame in FRAMES] == [False] * 3


@given(st.binary(max_size=2000))
def test_random_bytes_are_refused(data: bytes) -> None:
    assert check_refused_or_one_form(data)


@given(st.sampled_from(FRAMES), st.binary(max_size=1000), st.booleans())
def test_a_good_header_before_random_bytes_is_refused(
    frame: bytes, tail: bytes, has_end: bool
) -> None:
    start = frame.index(b"\xff\xff\xff\xff", 8)
    assert check_refused_or_one_form(frame[:start] + tail + END * has_end)


@pytest.mark.parametrize("frame", FRAMES)
def test_every_truncation_and_every_extension_is_refused(frame: bytes) -> None:
    for length in range(len(frame)):
        assert check_refused_or_one_form(frame[:length])
    for extra in (b"\0", END, frame, b"x" * 8):
        assert check_refused_or_one_form(frame + extra)
        assert check_refused_or_one_form(frame[: -len(END)] + extra + END)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_flip_of_any_bit_is_refused_or_gives_another_good_frame(frame: bytes) -> None:
    for place in range(len(frame)):
        for bit in range(8):
            flipped = bytearray(frame)
            flipped[place] ^= 1 << bit
            check_refused_or_one_form(bytes(flipped))


@given(st.sampled_from(FRAMES), st.lists(st.tuples(st.integers(0, 2**16), WORDS), max_size=4))
def test_words_changed_anywhere_are_refused_or_give_a_good_frame(
    frame: bytes, changes: list[tuple[int, int]]
) -> None:
    changed = bytearray(frame)
    for place, word in changes:
        struct.pack_into("<I", changed, 4 * (place % (len(frame) // 4)), word)
    check_refused_or_one_form(bytes(changed))


@given(
    st.sampled_from(FRAMES),
    st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 2**64 - 1)), min_size=1, max_size=2),
)
def test_wide_numbers_in_the_batch_are_refused_or_give_a_good_frame(
    frame: bytes, changes: list[tuple[int, int]]
) -> None:
    start = frame.index(b"\xff\xff\xff\xff", 8)
    changed = bytearray(frame)
    for place, number in changes:
        struct.pack_into("<Q", changed, start + 8 * (place % ((len(frame) - start) // 8)), number)
    check_refused_or_one_form(bytes(changed))


@pytest.mark.parametrize("data", ["text", None, 7, bytearray(FRAMES[0]), memoryview(FRAMES[0])])
def test_what_is_not_bytes_is_refused(data: bytes) -> None:
    assert refused(data).field == "frame"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", "2"),
        ("version", ""),
        ("kind", "unknown"),
        ("kind", "clicks"),
        ("kind", "symbol"),
        ("epoch", "-000000003"),
        ("epoch", "3"),
        ("epoch", "00000000003"),
        ("epoch", " 000000003"),
        ("epoch", "\uff10\uff10\uff10x"),
        ("batch", ID.hex().upper()),
        ("batch", "0" * 30),
        ("batch", "g" * 32),
        ("user", SENTINEL),
        ("", ""),
    ],
)
def test_other_metadata_are_refused_and_not_shown(key: str, value: str) -> None:
    error = refused(symbols_stream(ONE.column(0), **{key: value}))
    assert error.field in ("header", "epoch", "batch id")
    assert SENTINEL not in str(error)


def test_metadata_that_lack_a_key_or_come_in_another_order_are_refused() -> None:
    for keys in (["version", "kind", "epoch"], ["kind", "version", "epoch", "batch"], []):
        schema = SYMBOLS.schema.with_metadata({key: METADATA[key] for key in keys})
        batch = pa.RecordBatch.from_arrays(ONE.columns, schema=schema)
        assert refused(stream(schema, batch)).field == "header"


def nested(depth: int) -> pa.DataType:
    deep = pa.uint16()
    for _ in range(depth):
        deep = pa.list_(deep)
    return deep


@pytest.mark.parametrize(
    "field",
    [
        pa.field("symbol", pa.uint16(), nullable=True),
        pa.field("symbol", pa.uint8(), nullable=False),
        pa.field("symbol", pa.int16(), nullable=False),
        pa.field("user", pa.uint16(), nullable=False),
        pa.field("symbol", pa.uint16(), nullable=False, metadata={"a": "b"}),
        pa.field("symbol", pa.dictionary(pa.int8(), pa.uint16()), nullable=False),
        pa.field("symbol", pa.null()),
        pa.field("symbol", pa.list_view(pa.uint16()), nullable=False),
        pa.field("symbol", nested(60), nullable=False),
        pa.field("symbol", pa.struct([("a", pa.uint16())]), nullable=False),
        pa.field("symbol", pa.timestamp("ms"), nullable=False),
    ],
    ids=str,
)
def test_another_schema_is_refused_before_arrow_sees_it(field: pa.Field) -> None:
    schema = pa.schema([field], metadata=METADATA)
    assert refused(stream(schema, pa.RecordBatch.from_pylist([], schema=schema))).field == "header"


def test_a_second_column_is_refused() -> None:
    schema = SYMBOLS.schema.append(pa.field("extra", pa.int8())).with_metadata(METADATA)
    batch = pa.RecordBatch.from_arrays(
        [ONE.column(0), pa.array([1, 2, 3], pa.int8())], schema=schema
    )
    assert refused(stream(schema, batch)).field == "header"


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_compressed_batch_is_refused_before_it_is_unpacked(codec: str) -> None:
    schema = SYMBOLS.schema.with_metadata(METADATA)
    zeros = pa.array(np.zeros(60_000, dtype=np.uint16))
    batch = pa.RecordBatch.from_arrays([zeros], schema=schema)
    data = stream(schema, batch, options=pa.ipc.IpcWriteOptions(compression=codec))
    assert len(data) < 4000
    error = refused(data)
    assert (error.field, error.rule, error.batch_id) == ("batch", "is compressed", ID)


def test_nulls_are_refused() -> None:
    error = refused(symbols_stream(pa.array([1, None, 3], pa.uint16())))
    assert (error.field, error.rule, error.batch_id) == ("symbol", "has nulls", ID)


def test_a_map_of_nulls_that_has_none_is_refused() -> None:
    data = symbols_stream(pa.array([1, None, 3], pa.uint16()))
    one_null = struct.pack("<qq", 3, 1)
    assert data.count(one_null) == 1
    error = refused(data.replace(one_null, struct.pack("<qq", 3, 0)))
    assert (error.field, error.rule) == ("batch", "is not written in the one form")


def test_a_value_out_of_range_is_refused_and_not_shown() -> None:
    error = refused(symbols_stream(pa.array([1, 45_678], pa.uint16())))
    assert (error.field, error.rule) == ("symbol", "has a number outside [0, 299]")


def test_padding_bits_are_refused() -> None:
    array = pa.array([b"\xff\xff"], pa.binary(2))
    batch = pa.RecordBatch.from_arrays([array], schema=CLICKS.schema)
    assert refused(seal(CLICKS, 3, batch, ID)).rule == "has padding bits that are not zero"


def test_texts_that_are_not_utf8_or_run_out_of_bounds_are_refused() -> None:
    good = seal(NOTES, 3, NOTES.encode(NOTE_ROWS), ID)
    text = "bcdéfghij".encode()
    for wrong in (b"\xff" + text[1:], b"bcd\xa9\xc3fghij"):
        assert len(wrong) == len(text)
        assert refused(good.replace(text, wrong)).field == "batch"
    offsets = struct.pack("<6i", 0, 0, 1, 3, 7, 11)
    assert good.count(offsets) == 1
    for ends in (
        (0, 0, 1, 3, 7, 2**31 - 1),
        (0, 0, 1, 3, -7, 11),
        (0, 0, 3, 1, 7, 11),
        (1, 1, 1, 3, 7, 11),
    ):
        assert refused(good.replace(offsets, struct.pack("<6i", *ends))).field == "batch"


@pytest.mark.parametrize("rows", [0, -1, 2, 4, MOST_ROWS + 1, 2**31, 2**40, 2**62, -(2**63)])
def test_a_false_number_of_rows_is_refused(rows: int) -> None:
    data = seal(SYMBOLS, 3, ONE, ID)
    claimed = struct.pack("<q", 3)
    assert data.count(claimed) == 2  # of the batch, and of its only column
    assert refused(data.replace(claimed, struct.pack("<q", rows))).field == "batch"
    assert refused(data.replace(claimed, struct.pack("<q", rows), 1)).field == "batch"


def test_no_rows_and_too_many_rows_are_refused() -> None:
    schema = SYMBOLS.schema.with_metadata(METADATA)
    for count in (0, MOST_ROWS + 1):
        batch = pa.RecordBatch.from_arrays([pa.array(np.zeros(count, np.uint16))], schema=schema)
        assert refused(stream(schema, batch)).rule == f"does not have 1 to {MOST_ROWS} rows"


def test_two_batches_or_none_or_remarks_on_a_batch_are_refused() -> None:
    schema = SYMBOLS.schema.with_metadata(METADATA)
    batch = pa.RecordBatch.from_arrays(ONE.columns, schema=schema)
    assert not check_refused_or_one_form(stream(schema, batch))
    for data in (
        stream(schema, batch, batch),
        stream(schema),
        stream(schema, batch, custom={"user": SENTINEL}),
    ):
        assert SENTINEL not in str(refused(data))


def test_older_forms_and_the_file_form_are_refused() -> None:
    schema = SYMBOLS.schema.with_metadata(METADATA)
    batch = pa.RecordBatch.from_arrays(ONE.columns, schema=schema)
    legacy = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    fourth = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch)
    files = [sink.getvalue().to_pybytes()]
    for data in [
        stream(schema, batch, options=legacy),
        stream(schema, batch, options=fourth),
        *files,
    ]:
        assert check_refused_or_one_form(data)


def test_bytes_hidden_in_the_padding_are_refused() -> None:
    data = seal(SYMBOLS, 3, ONE, ID)
    body = ONE.column(0).to_numpy().tobytes()
    assert data.count(body + b"\0\0") == 1
    error = refused(data.replace(body + b"\0\0", body + b"\0u"))
    assert (error.field, error.rule) == ("batch", "is not written in the one form")


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xff" * 40)
def test_the_header_of_a_batch_is_read_within_bounds(metadata: bytes) -> None:
    try:
        read_batch_header(metadata)
    except BadFrame as error:
        assert error.field == "batch"


def test_the_header_of_a_batch_says_its_rows_and_whether_it_is_compressed() -> None:
    for codec in (None, "zstd"):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_stream(sink, ONE.schema, options=options) as writer:
            writer.write_batch(ONE)
        reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
        reader.read_next_message()
        header = read_batch_header(reader.read_next_message().metadata.to_pybytes())
        assert (header.rows, header.is_compressed) == (3, codec is not None)


def test_a_frame_of_a_kind_that_is_not_expected_is_refused() -> None:
    data = encode_frame(symbol_kind("other", 300), 3, np.array([1]), SeededSource(1))
    assert refused(data).field == "header"
    other: Kind = symbol_kind("symbols", 299)
    with pytest.raises(BadFrame):
        decode_frame(seal(SYMBOLS, 3, SYMBOLS.encode(np.array([299])), ID), {"symbols": other})
