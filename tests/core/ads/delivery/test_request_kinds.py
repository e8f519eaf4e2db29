"""Requests as frames: what was drawn reads back exactly, and a frame holds nothing besides."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.ads.delivery import (
    AD_REQUESTS,
    AD_SLATES,
    AdDelivery,
    AdSelection,
    SlateRows,
    ad_slates_kind,
)
from noisefloor.errors import BadFrame, BadParameter, OutOfDomain
from noisefloor.randomness import SeededSource, new_run
from noisefloor.wire import bit_vector_kind, decode_frame, encode_frame, sealed_frames


@given(st.data())
def test_slates_read_back_as_they_were_drawn(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    slate = data.draw(st.integers(1, size))
    one = st.permutations(range(size)).map(lambda order: sorted(order[:slate]))
    rows = np.array(data.draw(st.lists(one, min_size=1, max_size=20)))
    kind = ad_slates_kind(size, slate)
    with new_run():
        (sealed,) = sealed_frames(kind, 0, rows, SeededSource(1))
    batch = decode_frame(sealed.data, {kind.name: kind}).batch
    assert kind.rows(batch).tolist() == rows[sealed.order].tolist()
    assert kind.tally(batch).tolist() == np.bincount(rows.reshape(-1), minlength=size).tolist()


@pytest.mark.parametrize("choice", list(AdSelection))
def test_a_frame_tells_the_requests_and_nothing_besides(choice: AdSelection) -> None:
    delivery = AdDelivery(7, 1.5, choice, slate=3)
    kind = delivery.kind
    assert kind.name == (AD_SLATES if delivery.is_slate else AD_REQUESTS)
    assert kind.schema.names == (["slate"] if delivery.is_slate else ["symbol"])
    with new_run():
        scores = SeededSource(2, "scores").generator().random((50, 7))
        requests = delivery.request(scores, SeededSource(2, "requests"))
        frames = list(sealed_frames(kind, 3, requests, SeededSource(2, "frames"), most_rows=20))
    assert [len(frame.order) for frame in frames] == [20, 20, 10]
    tally = np.zeros(7, dtype=np.int64)
    for frame in frames:
        read = decode_frame(frame.data, {kind.name: kind})
        assert (read.epoch, read.batch_id) == (3, frame.batch_id)
        assert np.array_equal(kind.rows(read.batch), requests[frame.order])
        tally += kind.tally(read.batch)
    assert np.array_equal(tally, delivery.tally(requests))


@pytest.mark.parametrize(
    "rows", [[[0, 0]], [[1, 0]], [[0]], [[0, 5]], [[-1, 0]], [0, 1], [[0.0, 1.0]]]
)
def test_what_is_no_slate_is_not_written(rows: object) -> None:
    with pytest.raises(OutOfDomain):
        ad_slates_kind(5, 2).encode(np.array(rows))


@pytest.mark.parametrize("ones", [0, 1, 3, 5])
def test_a_slate_of_another_number_of_ads_is_refused(ones: int) -> None:
    kind = ad_slates_kind(5, 2)
    bits = np.arange(5)[None] < np.array([[2], [ones]])
    array = bit_vector_kind("bits", 5).encode(bits).column(0)
    batch = pa.RecordBatch.from_arrays([array], schema=kind.schema)
    with pytest.raises(BadFrame, match="slate has a slate that is not of 2 ads"):
        kind.check(batch)


def test_a_slate_in_the_padding_is_refused() -> None:
    kind = ad_slates_kind(5, 2)
    raw = pa.py_buffer(bytes([0b01100000]))
    array = pa.FixedSizeBinaryArray.from_buffers(pa.binary(1), 1, [None, raw])
    with pytest.raises(BadFrame, match="padding"):
        kind.check(pa.RecordBatch.from_arrays([array], schema=kind.schema))


@pytest.mark.parametrize(("size", "slate"), [(0, 1), (5, 0), (5, 6)])
def test_impossible_slates_are_refused(size: int, slate: int) -> None:
    with pytest.raises(BadParameter):
        SlateRows(size, slate)


def test_too_many_rows_make_no_frame() -> None:
    with new_run(), pytest.raises(BadParameter, match="rows"):
        rows = np.zeros((1 << 16) + 1, dtype=np.uint8)
        encode_frame(AdDelivery(7, 1.0, AdSelection.ARGMAX).kind, 0, rows, SeededSource(3))
