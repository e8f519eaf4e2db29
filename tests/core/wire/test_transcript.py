"""The transcript shows rows by connection when that is granted, and otherwise a heap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter, TranscriptFull
from noisefloor.wire import (
    Frame,
    Transcript,
    TranscriptRecorder,
    bit_vector_kind,
    decode_frame,
    symbol_kind,
)
from noisefloor.wire.frames import seal

KIND = symbol_kind("symbols", 1000)


def frame(epoch: int, symbols: list[int], name: int) -> Frame:
    data = seal(KIND, epoch, KIND.encode(np.array(symbols)), name.to_bytes(16, "big"))
    return decode_frame(data, {"symbols": KIND})


SENT = [
    (frame(epoch, [100 * device + epoch], 10 * device + epoch), device)
    for device in range(4)
    for epoch in range(3)
]


def record(sent: list[tuple[Frame, int]], *, is_linked: bool) -> Transcript:
    recorder = TranscriptRecorder(KIND, is_linked=is_linked)
    for seen, connection in sent:
        recorder.see(seen, connection)
    return recorder.transcript()


def test_a_linked_transcript_groups_rows_by_connection_and_epoch() -> None:
    groups = list(record(SENT[::-1], is_linked=True).by_connection())
    assert [label for label, _, _ in groups] == [0, 1, 2, 3]
    for label, epochs, rows in groups:
        assert epochs.tolist() == [0, 1, 2]
        assert rows.tolist() == [100 * label, 100 * label + 1, 100 * label + 2]


def test_an_unlinked_transcript_has_no_labels_and_cannot_be_grouped() -> None:
    transcript = record(SENT, is_linked=False)
    assert transcript.connections.size == 0
    assert transcript.epochs.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    with pytest.raises(BadParameter, match="is_linked"):
        list(transcript.by_connection())


@given(st.permutations(SENT), st.booleans(), st.integers(0, 12))
def test_neither_arrival_nor_repetition_changes_a_transcript(
    order: list[tuple[Frame, int]], is_linked: bool, repeated: int
) -> None:
    one = record(SENT, is_linked=is_linked)
    other = record([*order, *order[:repeated]], is_linked=is_linked)
    assert one.batch.equals(other.batch)
    assert one.epochs.tolist() == other.epochs.tolist()
    assert one.connections.tolist() == other.connections.tolist()


@given(st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_an_unlinked_transcript_is_the_same_whoever_sent_what(labels: list[int]) -> None:
    relabelled = [(seen, label) for (seen, _), label in zip(SENT, labels, strict=True)]
    one, other = record(SENT, is_linked=False), record(relabelled, is_linked=False)
    assert one.batch.equals(other.batch)
    assert one.epochs.tolist() == other.epochs.tolist()


def test_a_frame_for_many_devices_has_a_label_for_each_row() -> None:
    recorder = TranscriptRecorder(KIND, is_linked=True)
    recorder.see(frame(0, [7, 8, 9], 1), np.array([30, 10, 20]))
    transcript = recorder.transcript()
    assert transcript.connections.tolist() == [10, 20, 30]
    assert transcript.rows().tolist() == [8, 9, 7]
    with pytest.raises(ValueError, match="broadcast"):
        recorder.see(frame(0, [7, 8, 9], 2), np.array([1, 2]))
    assert len(recorder.transcript()) == 3


def test_an_empty_transcript_has_no_groups() -> None:
    for is_linked in (True, False):
        assert len(record([], is_linked=is_linked)) == 0
    assert list(record([], is_linked=True).by_connection()) == []


def test_another_kind_is_refused() -> None:
    with pytest.raises(BadParameter, match="kind"):
        TranscriptRecorder(bit_vector_kind("bits", 4), is_linked=True).see(*SENT[0])


def test_a_transcript_stays_within_its_bound() -> None:
    recorder = TranscriptRecorder(KIND, is_linked=True, most_bytes=1000)
    with pytest.raises(TranscriptFull):
        for seen, connection in SENT:
            recorder.see(seen, connection)
    assert 0 < len(recorder.transcript()) < len(SENT)
