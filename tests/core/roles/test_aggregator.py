"""The aggregator counts each frame once, whatever the order, and never after the close."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter, EpochOpen
from noisefloor.roles import AggregationLimits, Aggregator, FrameCounters, FrameStatus
from noisefloor.wire import (
    Integers,
    Kind,
    MemoryBus,
    Text,
    bit_vector_kind,
    drain,
    grid_kind,
    record_kind,
    symbol_kind,
)
from noisefloor.wire.frames import seal
from properties import examples

CLICKS = bit_vector_kind("clicks", 5)
GRID = grid_kind("grid", -100, 100)
NOTES = record_kind("notes", {"age": Integers(0, 120), "note": Text(8)})
KINDS = (CLICKS, GRID, NOTES)


def frame(kind: Kind, epoch: int, number: int) -> bytes:
    """Write a frame of a few rows that follow from its number."""
    batch_id = number.to_bytes(16, "big")
    numbers = np.arange(number % 3 + 1) + number
    if kind == CLICKS:
        rows: object = (numbers[:, None] >> np.arange(5)) & 1
    elif kind == GRID:
        rows = numbers % 201 - 100
    else:
        rows = {"age": numbers % 120, "note": [f"n{one}" for one in numbers]}
    return seal(kind, epoch, kind.encode(rows), batch_id)


def broken(number: int) -> bytes:
    """Write a frame whose batch id can be read and whose rows break a rule."""
    padded = pa.RecordBatch.from_arrays([pa.array([b"\xff"], pa.binary(1))], schema=CLICKS.schema)
    return seal(CLICKS, 0, padded, number.to_bytes(16, "big"))


GOOD = [frame(kind, epoch, number) for kind in KINDS for epoch in range(3) for number in range(4)]
OTHER = seal(symbol_kind("other", 3), 0, symbol_kind("other", 3).encode(np.array([1])), bytes(16))
BAD = [b"", b"nonsense", broken(1), broken(2), OTHER]


def fed(deliveries: Sequence[bytes], **limits: int) -> Aggregator:
    aggregator = Aggregator(KINDS, limits=AggregationLimits(**limits))
    for data in deliveries:
        aggregator.apply(data)
    return aggregator


deliveries = st.permutations(GOOD + BAD).flatmap(
    lambda frames: st.lists(st.sampled_from(frames), max_size=20).map(lambda more: frames + more)
)


@given(deliveries)
def test_order_and_repetition_leave_no_trace(frames: list[bytes]) -> None:
    repeated = len(frames) - len(GOOD) - len(BAD)
    aggregator = fed(frames)
    expected = fed(GOOD + BAD + [GOOD[0]] * repeated)
    assert aggregator.snapshot() == expected.snapshot()
    assert aggregator.counters == FrameCounters(len(frames), len(GOOD), repeated, 0, len(BAD))


@given(st.lists(st.sampled_from(GOOD + BAD), max_size=60), st.lists(st.integers(0, 2), max_size=3))
def test_every_frame_has_exactly_one_outcome(frames: list[bytes], closed: list[int]) -> None:
    aggregator = Aggregator(KINDS)
    for place, data in enumerate(frames):
        if place % 7 == 3 and closed:
            aggregator.close("clicks", closed[place % len(closed)])
        outcome = aggregator.apply(data)
        assert isinstance(outcome.status, FrameStatus)
    assert aggregator.counters.is_conserved
    assert aggregator.counters.accepted == len(frames)


def test_sums_are_those_of_the_distinct_frames() -> None:
    aggregator = fed(GOOD * 3)
    for kind in (CLICKS, GRID):
        aggregator.close(kind.name, 1)
        tally, n = aggregator.release(kind.name, 1)
        rows = [(np.arange(number % 3 + 1) + number) for number in range(4)]
        numbers = np.concatenate(rows)
        bits = ((numbers[:, None] >> np.arange(5)) & 1).sum(axis=0)
        expected = bits if kind == CLICKS else [(numbers % 201 - 100).sum()]
        assert (tally.tolist(), n) == (list(expected), len(numbers))


def test_collected_rows_are_a_multiset_in_the_order_of_their_content() -> None:
    aggregator = fed(GOOD[::-1] + GOOD)
    aggregator.close("notes", 0)
    rows = aggregator.release_rows("notes", 0)
    ages = rows.column("age").to_pylist()
    assert ages == sorted(ages)
    assert sorted(ages) == sorted(
        one for number in range(4) for one in range(number, number + number % 3 + 1)
    )


def test_an_open_epoch_is_not_released() -> None:
    aggregator = fed(GOOD)
    for refused in (aggregator.release, aggregator.retire):
        with pytest.raises(EpochOpen, match="clicks"):
            refused("clicks", 0)
    with pytest.raises(EpochOpen):
        aggregator.release_rows("notes", 0)


def test_a_closed_epoch_never_changes() -> None:
    aggregator = fed([frame(CLICKS, 0, number) for number in range(5)])
    aggregator.close("clicks", 0)
    tally, n = aggregator.release("clicks", 0)
    tally[:] = -1  # what is handed out is a copy
    late = [frame(CLICKS, 0, number) for number in range(9)]
    statuses = [aggregator.apply(data).status for data in late]
    assert statuses == [FrameStatus.DUPLICATE] * 5 + [FrameStatus.LATE] * 4
    aggregator.close("clicks", 0)
    again, m = aggregator.release("clicks", 0)
    assert (again.min(), m) == (again.clip(0).min(), n)
    assert aggregator.counters == FrameCounters(14, 5, 5, 4, 0)


def test_late_frames_and_rows_are_counted_once_each() -> None:
    aggregator = fed([frame(CLICKS, 0, 0)])
    aggregator.close("clicks", 0)
    for number in (1, 2, 2, 1):
        aggregator.apply(frame(CLICKS, 0, number))
    summary = aggregator.summary("clicks", 0)
    assert (summary.is_closed, summary.frames, summary.rows) == (True, 1, 1)
    assert (summary.late_frames, summary.late_rows) == (2, 2 + 3)
    assert aggregator.counters == FrameCounters(5, 1, 2, 2, 0)


def test_the_replay_of_a_closed_epoch_counts_nothing_even_when_it_was_retired() -> None:
    frames = [frame(CLICKS, 0, number) for number in range(6)]
    aggregator = fed(frames)
    aggregator.close("clicks", 0)
    assert {aggregator.apply(data).status for data in frames} == {FrameStatus.DUPLICATE}
    aggregator.retire("clicks", 0)
    assert {aggregator.apply(data).status for data in frames} == {FrameStatus.LATE}
    assert aggregator.epochs("clicks") == ()
    with pytest.raises(BadParameter, match="retired"):
        aggregator.release("clicks", 0)
    assert aggregator.counters == FrameCounters(18, 6, 6, 6, 0)


def test_an_epoch_without_frames_can_be_closed_and_is_zero() -> None:
    aggregator = Aggregator(KINDS)
    aggregator.close("clicks", 3)
    tally, n = aggregator.release("clicks", 3)
    assert (tally.tolist(), n) == ([0] * 5, 0)
    aggregator.close("notes", 0)
    assert aggregator.release_rows("notes", 0).num_rows == 0
    assert aggregator.apply(frame(CLICKS, 3, 1)).status is FrameStatus.LATE
    assert aggregator.apply(frame(CLICKS, 2, 1)).status is FrameStatus.COUNTED


def test_epochs_far_ahead_are_refused_and_open_nothing() -> None:
    aggregator = Aggregator([CLICKS], 10, limits=AggregationLimits(open_epochs=4))
    outcomes = {
        epoch: aggregator.apply(frame(CLICKS, epoch, epoch))
        for epoch in (9, 10, 13, 14, 10**10 - 1)
    }
    assert [outcome.status for outcome in outcomes.values()] == [
        FrameStatus.LATE,
        FrameStatus.COUNTED,
        FrameStatus.COUNTED,
        FrameStatus.DEAD_LETTER,
        FrameStatus.DEAD_LETTER,
    ]
    assert aggregator.epochs("clicks") == (10, 13)
    with pytest.raises(BadParameter, match="epoch"):
        aggregator.close("clicks", 14)


def test_the_window_moves_only_past_what_is_closed() -> None:
    aggregator = Aggregator([CLICKS], limits=AggregationLimits(open_epochs=2))
    aggregator.close("clicks", 1)
    assert aggregator.apply(frame(CLICKS, 2, 1)).status is FrameStatus.DEAD_LETTER
    aggregator.close("clicks", 0)
    assert aggregator.apply(frame(CLICKS, 2, 1)).status is FrameStatus.COUNTED
    assert aggregator.apply(frame(CLICKS, 3, 1)).status is FrameStatus.COUNTED
    assert aggregator.apply(frame(CLICKS, 1, 1)).status is FrameStatus.LATE


def test_dead_letters_are_distinguished_by_batch_id_and_else_by_their_bytes() -> None:
    aggregator = fed([*BAD, *BAD, broken(1)])
    assert aggregator.counters == FrameCounters(11, 0, 6, 0, 5)
    keys = [letter.key for letter in aggregator.dead_letters]
    assert keys == sorted(keys)
    assert [key.split(":")[0] for key in keys].count("id") == 2
    assert f"id:{(1).to_bytes(16, 'big').hex()}" in keys


def test_of_two_faults_under_one_id_the_same_is_kept_in_any_order() -> None:
    one = broken(1)
    other = frame(CLICKS, 0, 1) + b"\0"
    assert fed([one, other]).dead_letters == fed([other, one]).dead_letters
    assert len(fed([one, other]).dead_letters) == 1


def test_a_spoilt_copy_does_not_keep_the_good_frame_out() -> None:
    aggregator = fed([broken(1), frame(CLICKS, 0, 1), broken(1), frame(CLICKS, 0, 1)])
    assert aggregator.counters == FrameCounters(4, 1, 2, 0, 1)


def test_a_dead_letter_keeps_no_bytes_of_the_frame() -> None:
    letters = fed([b"sentinel-4711 10.0.0.1"]).dead_letters
    assert "sentinel" not in repr(letters)
    assert letters[0].size_bytes == 22


def test_what_is_kept_of_dead_letters_is_bounded() -> None:
    aggregator = fed([bytes([number]) for number in range(50)], dead_letters=10)
    assert len(aggregator.dead_letters) == 10
    assert aggregator.counters == FrameCounters(50, 0, 0, 0, 50)


def test_a_full_epoch_takes_no_more() -> None:
    frames = [frame(CLICKS, 0, number) for number in range(5)]
    assert fed(frames, frames=3).counters == FrameCounters(5, 3, 0, 0, 2)
    assert fed(frames, rows=7).counters.counted == 4
    notes = [frame(NOTES, 0, number) for number in range(50)]
    assert 0 < fed(notes, collected_bytes=300).counters.counted < 50
    assert fed(frames, collected_bytes=1).counters.counted == 5
    assert fed(frames, frame_bytes=100).counters.dead_letters == 5


def test_the_outcome_hands_on_the_frame_that_was_read() -> None:
    aggregator = fed([])
    outcome = aggregator.apply(frame(CLICKS, 2, 1))
    assert outcome.frame is not None
    assert (outcome.frame.kind, outcome.frame.epoch) == (CLICKS, 2)
    assert aggregator.apply(b"x").frame is None


@pytest.mark.parametrize("kinds", [(), (CLICKS, CLICKS)])
def test_impossible_lists_of_kinds_are_refused(kinds: tuple[Kind, ...]) -> None:
    with pytest.raises(BadParameter, match="kinds"):
        Aggregator(kinds)


def test_a_request_for_the_wrong_kind_is_refused() -> None:
    aggregator = fed(GOOD)
    aggregator.close("notes", 0)
    aggregator.close("clicks", 0)
    with pytest.raises(BadParameter, match="unknown"):
        aggregator.close("unknown", 0)
    with pytest.raises(BadParameter, match="sum"):
        aggregator.release("notes", 0)
    with pytest.raises(BadParameter, match="collect"):
        aggregator.release_rows("clicks", 0)


@examples(40)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.integers(1, 4))
def test_a_network_that_loses_repeats_and_reorders_changes_no_sum(
    reclaims: list[int], width: int
) -> None:
    bus, aggregator = MemoryBus(), Aggregator(KINDS)
    for data in GOOD:
        bus.publish("reports", data)
    for step in reclaims:  # a worker that dies between handling and acknowledging
        for delivery in bus.receive("reports", width)[:step]:
            aggregator.apply(delivery.data)
        bus.reclaim("reports")
    drain(bus, "reports", aggregator.apply)
    clean = fed(GOOD)
    assert aggregator.counters.counted == clean.counters.counted
    for kind in (CLICKS, GRID):
        for epoch in range(3):
            for one in (aggregator, clean):
                one.close(kind.name, epoch)
            tally, n = aggregator.release(kind.name, epoch)
            expected, m = clean.release(kind.name, epoch)
            assert (tally.tolist(), n) == (expected.tolist(), m)
