"""Frames come back as they were written, in one form, in an order that tells nothing."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from noisefloor.errors import BadFrame, BadParameter, StreamReopened
from noisefloor.mechanisms import UnaryEncoding
from noisefloor.privacy import Neighbours
from noisefloor.randomness import SecureSource, SeededSource, new_run
from noisefloor.wire import (
    MOST_BYTES,
    MOST_EPOCH,
    MOST_ROWS,
    Integers,
    Kind,
    Text,
    address_frame,
    bit_vector_kind,
    decode_frame,
    encode_frame,
    encode_with_order,
    grid_kind,
    record_kind,
    split_frames,
    symbol_kind,
)
from noisefloor.wire.frames import seal
from statistics_of_tests import FALSE_ALARM, binomial_p

CLICKS = bit_vector_kind("clicks", 11)
SYMBOLS = symbol_kind("symbols", 300)
GRID = grid_kind("grid", -1000, 1000)
NOTES = record_kind("notes", {"age": Integers(0, 120), "note": Text(12)})
KINDS = {kind.name: kind for kind in (CLICKS, SYMBOLS, GRID, NOTES)}
KEYS = {b"version", b"kind", b"epoch", b"batch"}

bits = hnp.arrays(np.bool_, st.tuples(st.integers(1, 40), st.just(11)))
notes = st.lists(st.tuples(st.integers(0, 120), st.text(max_size=3)), min_size=1, max_size=20)
epochs = st.integers(0, MOST_EPOCH)


def write(kind: Kind, epoch: int, reports: object, seed: int = 0) -> bytes:
    with new_run():
        return encode_frame(kind, epoch, reports, SeededSource(seed, "frame"))


@given(bits, epochs, st.integers(0, 1000))
def test_what_is_written_is_what_is_read(rows: NDArray[np.bool_], epoch: int, seed: int) -> None:
    with new_run():
        data, order = encode_with_order(CLICKS, epoch, rows, SeededSource(seed))
    frame = decode_frame(data, KINDS)
    assert (frame.kind, frame.epoch, len(frame.batch_id)) == (CLICKS, epoch, 16)
    assert np.array_equal(CLICKS.rows(frame.batch), rows[order])
    assert sorted(order.tolist()) == list(range(len(rows)))


@given(notes, epochs)
def test_records_with_texts_come_back_as_the_same_set(
    records: list[tuple[int, str]], epoch: int
) -> None:
    reports = {
        "age": np.array([age for age, _ in records]),
        "note": [note for _, note in records],
    }
    frame = decode_frame(write(NOTES, epoch, reports), KINDS)
    read = NOTES.decode(frame.batch)
    assert sorted(zip(read["age"].tolist(), read["note"].tolist(), strict=True)) == sorted(records)


@given(bits, notes, epochs)
def test_what_was_read_is_written_as_the_same_bytes(
    rows: NDArray[np.bool_], records: list[tuple[int, str]], epoch: int
) -> None:
    texts = {"age": np.array([age for age, _ in records]), "note": [note for _, note in records]}
    for data in (write(CLICKS, epoch, rows), write(NOTES, epoch, texts)):
        frame = decode_frame(data, KINDS)
        assert seal(frame.kind, frame.epoch, frame.batch, frame.batch_id) == data


def test_a_frame_is_an_ordinary_arrow_stream_with_four_metadata_entries() -> None:
    data = write(SYMBOLS, 7, np.array([299, 0, 5]))
    reader = pa.ipc.open_stream(data)
    assert set(reader.schema.metadata) == KEYS
    assert reader.schema.metadata[b"epoch"] == b"0000000007"
    assert reader.schema.names == ["symbol"]
    assert not any(field.metadata for field in reader.schema)
    assert sorted(reader.read_all()["symbol"].to_pylist()) == [0, 5, 299]
    sink = pa.BufferOutputStream()
    frame = decode_frame(data, KINDS)
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        writer.write(pa.RecordBatch.from_arrays(frame.batch.columns, schema=reader.schema))
    assert sink.getvalue().to_pybytes() == data


def test_frames_of_one_shape_have_one_size_whatever_they_hold() -> None:
    sizes = {
        len(write(SYMBOLS, epoch, np.array(symbols), seed))
        for seed, (epoch, symbols) in enumerate(
            [(0, [0, 0]), (MOST_EPOCH, [299, 298]), (12, [7, 9])]
        )
    }
    assert len(sizes) == 1


def test_batch_ids_are_random_and_follow_the_source() -> None:
    rows = np.array([1, 2, 3])
    assert write(SYMBOLS, 0, rows, 1) == write(SYMBOLS, 0, rows, 1)
    ids = {decode_frame(write(SYMBOLS, 0, rows, seed), KINDS).batch_id for seed in range(50)}
    secure = {decode_frame(encode_frame(SYMBOLS, 0, rows, SecureSource()), KINDS).batch_id}
    assert len(ids | secure) == 51


def test_one_source_writes_one_frame() -> None:
    source = SeededSource(3, "frame")
    encode_frame(SYMBOLS, 0, np.array([1]), source)
    with pytest.raises(StreamReopened):
        encode_frame(SYMBOLS, 0, np.array([1]), source)


@pytest.mark.parametrize("epoch", [-1, MOST_EPOCH + 1, True, 1.0])
def test_an_epoch_that_is_no_small_whole_number_is_not_written(epoch: int) -> None:
    with pytest.raises(BadParameter, match="epoch"):
        write(SYMBOLS, epoch, np.array([1]))


def test_neither_no_rows_nor_too_many_are_written() -> None:
    for count in (0, MOST_ROWS + 1):
        with pytest.raises(BadParameter, match="rows"):
            write(SYMBOLS, 0, np.zeros(count, dtype=np.int64))
    full = decode_frame(write(SYMBOLS, 0, np.zeros(MOST_ROWS, dtype=np.int64)), KINDS)
    assert full.batch.num_rows == MOST_ROWS


def test_a_frame_over_the_byte_cap_is_neither_written_nor_read() -> None:
    wide = bit_vector_kind("wide", 1 << 13)
    rows = np.zeros((1100, 1 << 13), dtype=np.bool_)
    with pytest.raises(BadParameter, match="frame"):
        encode_frame(wide, 0, rows, SecureSource())
    data = encode_frame(wide, 0, rows, SecureSource(), most_bytes=2 * MOST_BYTES)
    with pytest.raises(BadFrame, match="more than 1048576 bytes"):
        decode_frame(data, {"wide": wide})
    assert decode_frame(data, {"wide": wide}, most_bytes=len(data)).batch.num_rows == 1100
    assert len(encode_frame(wide, 0, rows, SecureSource(), most_bytes=len(data))) == len(data)


@given(st.integers(0, 60), st.integers(1, 20))
def test_many_reports_are_split_into_pieces_of_constant_size(count: int, most_rows: int) -> None:
    symbols = np.arange(count)
    with new_run():
        pieces = list(split_frames(SYMBOLS, 4, symbols, SeededSource(0), most_rows=most_rows))
    frames = [decode_frame(piece, KINDS) for piece in pieces]
    sizes = [frame.batch.num_rows for frame in frames]
    assert sizes[:-1] == [most_rows] * (len(sizes) - 1)
    assert sum(sizes) == count
    assert len({frame.batch_id for frame in frames}) == len(frames)
    assert sorted(row for frame in frames for row in SYMBOLS.rows(frame.batch)) == list(
        range(count)
    )


def test_pieces_are_cut_after_the_permutation_so_that_a_piece_tells_no_range() -> None:
    pieces = split_frames(SYMBOLS, 0, np.arange(200), SeededSource(1), most_rows=100)
    low_in_first = np.count_nonzero(SYMBOLS.rows(decode_frame(next(pieces), KINDS).batch) < 100)
    # Hypergeometric: outside [20, 80] with a probability below 1e-16.
    assert 20 <= low_in_first <= 80


def test_a_split_that_fits_in_one_frame_is_that_frame() -> None:
    with new_run():
        (piece,) = split_frames(SYMBOLS, 9, np.arange(30), SeededSource(5, "frame"))
    assert piece == write(SYMBOLS, 9, np.arange(30), 5)


def test_pieces_stay_under_the_byte_cap_even_with_the_longest_texts() -> None:
    kind = record_kind("long", {"note": Text(1000)})
    pieces = list(split_frames(kind, 0, ["x" * 1000] * 3000, SecureSource()))
    assert len(pieces) == 3
    named = [address_frame(piece, {"long": kind}, "c" * 64) for piece in pieces]
    assert all(len(piece) <= MOST_BYTES for piece in [*pieces, *named])
    with pytest.raises(BadParameter, match="most_bytes"):
        next(split_frames(kind, 0, ["x"], SecureSource(), most_bytes=600))


def follow_places(seed: int, *, is_permuted: bool) -> tuple[int, int]:
    """Guess users' bits from the place of their row over 30 epochs; return hits and guesses."""
    users, size, days = 200, 8, 30
    kind = bit_vector_kind("clicks", size)
    response = UnaryEncoding.symmetric(size, 1.0, neighbours=Neighbours.BIT)
    places = np.argsort(
        SeededSource(seed, int(is_permuted), "truth").words(users * size).reshape(users, size),
        axis=0,
    )
    truth = places % 2 == 0  # half ones in each place: a guess without knowledge hits half
    seen = np.zeros((users, size), dtype=np.int64)
    for day in range(days):
        reports = response.randomise(truth, SeededSource(seed, int(is_permuted), day))
        if is_permuted:
            data = encode_frame(kind, day, reports, SeededSource(seed, "frame", day))
        else:
            data = seal(kind, day, kind.encode(reports), bytes(16))
        seen += kind.rows(decode_frame(data, {"clicks": kind}).batch)
    hits = int(np.count_nonzero((2 * seen > days) == truth))
    return hits, truth.size


@pytest.mark.statistical
def test_row_order_identifies_bits_unless_it_is_permuted(seed: int) -> None:
    """1,600 bits at epsilon 1 a day; binomial against guessing, false alarm 1e-6."""
    hits, guesses = follow_places(seed, is_permuted=True)
    assert binomial_p(hits, guesses, 0.5) > FALSE_ALARM
    # The twin without the permutation: places give nearly every bit away.
    hits, guesses = follow_places(seed, is_permuted=False)
    assert binomial_p(hits, guesses, 0.5) < FALSE_ALARM
    assert hits > 0.95 * guesses


def test_a_frame_that_names_a_collection_is_read_there_and_nowhere_else() -> None:
    rows = np.array([1, 2])
    plain, tea = (
        encode_frame(SYMBOLS, 3, rows, SeededSource(1, name), collection=name)
        for name in ("", "tea")
    )
    assert decode_frame(tea, KINDS, collections=("tea",)).batch.num_rows == 2
    assert decode_frame(plain, KINDS, collections=("", "tea")).epoch == 3
    for data, names, rule in (
        (tea, ("",), "header is not that of version 1"),
        (tea, ("coffee",), "header is not that of a kind and collection"),
        (tea, ("", "teas"), "header is not that of a kind and collection"),
        (plain, ("tea",), "collection is not named"),
        (plain.replace(b"symbols", b"symbolt"), ("tea",), "header"),
    ):
        with pytest.raises(BadFrame, match=rule):
            decode_frame(data, KINDS, collections=names)
    assert address_frame(plain, KINDS, "") == plain
    with new_run():
        again = encode_frame(SYMBOLS, 3, rows, SeededSource(1, ""), collection="tea")
    assert address_frame(plain, KINDS, "tea") == again
    with pytest.raises(BadFrame, match="header"):
        address_frame(tea, KINDS, "coffee")
    for wrong in ("Tea", "te a", "-tea", "t" * 65, "tea\n"):
        with pytest.raises(BadParameter, match="collection"):
            encode_frame(SYMBOLS, 3, rows, SeededSource(1, "wrong", wrong), collection=wrong)
