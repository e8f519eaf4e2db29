"""Whatever is done to a frame, it counts as it is written or leaves no trace in the sums."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostile_frames import FORGED, GOOD, Judge, changed
from noisefloor.roles import Aggregator, FrameOutcome, FrameStatus
from noisefloor.wire import Kind

COMMAND = Path(__file__).resolve().parents[2] / "fuzz_frames.py"
FRAMES = 20_000
MOST_ARROW_BYTES = 4 << 20


class Drawn:
    """Draws of hypothesis, which finds the fewest changes that fail."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def below(self, bound: int) -> int:
        return self._data.draw(st.integers(0, bound - 1))


@given(st.data())
def test_a_changed_frame_counts_as_written_or_not_at_all(data: st.DataObject) -> None:
    judge = Judge()
    draws = Drawn(data)
    outcomes = [judge(changed(draws)) for _ in range(5)]
    judge.compare()  # raises where a sum is not that of the frames that count
    assert FrameStatus.LATE not in {one.status for one in outcomes}  # no epoch was closed


def test_good_frames_count_and_forged_ones_are_refused() -> None:
    for frame in GOOD:
        assert Judge()(frame).status is FrameStatus.COUNTED
    assert {Judge()(frame).status for frame in FORGED} == {FrameStatus.DEAD_LETTER}


def test_many_changed_frames_meet_every_rule_within_bounded_memory() -> None:
    done = subprocess.run(
        [sys.executable, str(COMMAND), f"--frames={FRAMES}"],
        env={**os.environ, "PYTHONPATH": str(COMMAND.parents[1] / "platform")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert sum(report["outcomes"].values()) == FRAMES
    assert report["outcomes"]["counted"] > FRAMES // 20
    assert report["outcomes"]["dead_letters"] > FRAMES // 2
    rules = " ".join(report["reasons"])
    for rule in (
        *("header is not", "does not stop at the end", "cannot be read by Arrow", "compressed"),
        *("in the one form", "1 to 65536 rows", "outside [0, 299]", "has nulls", "padding bits"),
        *("not ten digits", "32 hexadecimal digits", "more than 12 bytes", "too far ahead"),
    ):
        assert rule in rules
    assert 0 < report["most_arrow_bytes"] < MOST_ARROW_BYTES


def test_a_batch_that_unpacks_would_not_have_stayed_within_that_memory() -> None:
    sink = pa.BufferOutputStream()
    zeros = pa.RecordBatch.from_arrays([pa.array([0] * (1 << 20), pa.int64())], names=["x"])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, zeros.schema, options=options) as writer:
        writer.write_batch(zeros)
    packed = sink.getvalue().to_pybytes()
    assert len(packed) < 4096
    before = pa.total_allocated_bytes()
    batch = pa.ipc.open_stream(packed).read_next_batch()
    assert pa.total_allocated_bytes() - before > MOST_ARROW_BYTES
    assert batch.num_rows == 1 << 20


class Leaky(Aggregator):
    """Counts what it refuses."""

    def apply(self, data: bytes, kinds: Mapping[str, Kind] | None = None) -> FrameOutcome:
        outcome = super().apply(data, kinds)
        if outcome.status is FrameStatus.DEAD_LETTER:
            super().apply(GOOD[0])
        return outcome


class Blurred(Aggregator):
    """Refuses without a field."""

    def apply(self, data: bytes, kinds: Mapping[str, Kind] | None = None) -> FrameOutcome:
        outcome = super().apply(data, kinds)
        if outcome.status is FrameStatus.DEAD_LETTER:
            return FrameOutcome(outcome.status, "Something is wrong.", outcome.frame)
        return outcome


@pytest.mark.parametrize("faulty", [Leaky, Blurred])
def test_an_aggregator_that_counts_or_blurs_what_it_refuses_is_found(
    faulty: type[Aggregator],
) -> None:
    judge = Judge(judged=faulty)
    with pytest.raises(AssertionError):
        judge(FORGED[0])
        judge.compare()
