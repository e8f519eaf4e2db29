"""Rows of signs that add up pair by pair."""

import numpy as np
import pytest

from noisefloor.ads.training.columns import SignPairs, sign_pair_kind
from noisefloor.errors import BadFrame, BadParameter, OutOfDomain
from noisefloor.mechanisms.axis_signs import pair_agreements
from noisefloor.randomness import SeededSource
from noisefloor.roles.aggregator import Aggregator
from noisefloor.wire.columns import Column
from noisefloor.wire.frames import decode_frame, encode_frame, split_frames
from noisefloor.wire.kinds import bit_vector_kind


def rows(count: int, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    drawn = SeededSource(3, "signs").generator().random((count, size)) < 0.4
    return np.asarray(drawn)


@pytest.mark.parametrize(("count", "size"), [(1, 2), (50, 5), (3000, 130)])
def test_the_tally_counts_agreements_of_each_pair(count: int, size: int) -> None:
    bits = rows(count, size)
    first, second = np.triu_indices(size, 1)
    counted = (bits[:, first] == bits[:, second]).sum(axis=0)
    kind = sign_pair_kind("pairs", size)
    assert np.array_equal(kind.tally(kind.encode(bits)), counted)
    assert np.array_equal(pair_agreements(bits), counted)
    assert kind.cells == len(counted)
    assert isinstance(SignPairs(size), Column)


def test_frames_add_up_and_hold_no_more_than_the_signs() -> None:
    kind, bits = sign_pair_kind("pairs", 20), rows(5000, 20)
    aggregator = Aggregator([kind])
    for data in split_frames(kind, 0, bits, SeededSource(1, "frames"), most_rows=999):
        aggregator.apply(data)
    aggregator.close("pairs", 0)
    tally, count = aggregator.release("pairs", 0)
    assert count == 5000
    assert np.array_equal(tally, pair_agreements(bits))
    assert kind.row_bytes == bit_vector_kind("bits", 20).row_bytes == 3


def test_rows_come_back_as_they_were_sent() -> None:
    kind, bits = sign_pair_kind("pairs", 11), rows(1, 11)
    frame = decode_frame(encode_frame(kind, 0, bits, SeededSource(1, "one")), {"pairs": kind})
    assert np.array_equal(kind.rows(frame.batch), bits)


def test_padding_that_carries_something_is_refused() -> None:
    wide, narrow = sign_pair_kind("pairs", 16), sign_pair_kind("pairs", 11)
    data = encode_frame(wide, 0, np.ones((4, 16), dtype=bool), SeededSource(1, "padding"))
    with pytest.raises(BadFrame, match="padding"):
        decode_frame(data, {"pairs": narrow})


@pytest.mark.parametrize("size", [0, 1, 1025, 2.0])
def test_a_bad_size_is_refused(size: int) -> None:
    with pytest.raises(BadParameter, match="size"):
        SignPairs(size)


def test_what_are_no_bits_is_refused() -> None:
    with pytest.raises(OutOfDomain):
        sign_pair_kind("pairs", 3).encode(np.full((2, 3), 7))
