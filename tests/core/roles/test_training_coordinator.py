"""The learner learns from each report once, in its round, whatever the order of frames."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.ads.training.bit_training import BitTraining
from noisefloor.ads.training.factorisation import AdModel, Ratings
from noisefloor.ads.training.rounds import Broadcast
from noisefloor.errors import BadFrame, BadParameter, BadSnapshot
from noisefloor.randomness import SeededSource, new_run
from noisefloor.roles import (
    KIND_BUILDERS,
    AggregationLimits,
    FrameStatus,
    TrainingCoordinator,
    kinds_from_sizes,
)
from noisefloor.tasks import AdTask, read_broadcast
from noisefloor.tasks.ad_task import write_broadcast
from noisefloor.wire import symbol_kind
from noisefloor.wire.frames import seal, split_frames
from properties import examples

TRAINING = BitTraining(4, 2, 8.0, 3, clip=0.1)
TASK = AdTask(TRAINING)
KIND = TRAINING.kind(0)


def frames(number: int, sent: Broadcast, users: int = 200) -> list[bytes]:
    """Write the frames of some users' reports on a broadcast."""
    draw = SeededSource(1, "ratings").generator()
    rating = draw.random((users, 4), dtype=np.float32)
    ratings = Ratings(draw.random((users, 4)) < 0.5, rating)
    tastes = np.zeros((users, 2), dtype=np.float32)
    with new_run():
        report = TRAINING.report(number, sent, tastes, ratings, SeededSource(2, "report", number))
        source = SeededSource(2, "frames", number)
        return list(split_frames(KIND, number, report.reports, source, most_rows=60))


FIRST = frames(0, TRAINING.start())
AHEAD = seal(KIND, 1, KIND.encode(np.array([1])), bytes(16))
OTHER = seal(symbol_kind("other", 2), 0, symbol_kind("other", 2).encode(np.array([1])), bytes(16))


def broadcast(learner: TrainingCoordinator) -> Broadcast:
    """Read what devices are told."""
    number, sent = read_broadcast(learner.content)
    assert number == learner.number
    return sent


def fed(deliveries: Sequence[bytes]) -> TrainingCoordinator:
    learner = TrainingCoordinator(TASK)
    for data in deliveries:
        learner.apply(data)
    return learner


def test_a_round_is_trained_from_its_reports() -> None:
    learner = fed(FIRST)
    assert [len(FIRST), learner.counters.counted] == [4, 4]
    before = broadcast(learner)
    learner.close(0)
    reports = np.concatenate(
        [
            KIND.rows(outcome.frame.batch)
            for outcome in map(TrainingCoordinator(TASK).apply, FIRST)
            if outcome.frame
        ]
    )
    expected = TRAINING.update(0, before, TRAINING.bit.tally(reports), 200)
    assert broadcast(learner).model.factors.tobytes() == expected.model.factors.tobytes()
    assert learner.number == 1 and not learner.is_done
    assert learner.summary(0).rows == 200


def test_all_rounds_are_closed_in_turn() -> None:
    learner = TrainingCoordinator(TASK)
    for number in range(3):
        assert not learner.is_done
        for data in frames(number, broadcast(learner)):
            assert learner.apply(data).status is FrameStatus.COUNTED
        learner.close(number)
    assert learner.is_done and learner.number == 3
    last = learner.content
    learner.close(2)
    assert learner.content == last
    with pytest.raises(BadParameter, match="number"):
        learner.close(3)


@examples(30)
@given(st.permutations([*FIRST, AHEAD, OTHER, b"nonsense"]), st.data())
def test_order_and_repetition_leave_no_trace(order: list[bytes], data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from(order), max_size=6))
    once, often = fed(order), fed([*order, *again])
    assert often.counters.duplicates == len(again)
    assert once.counters.dead_letters == 3
    assert once.snapshot() == fed([*FIRST, AHEAD, OTHER, b"nonsense"]).snapshot()
    for learner in (once, often):
        learner.close(0)
        assert learner.counters.is_conserved
    assert once.content == often.content


def test_late_frames_are_refused_and_counted() -> None:
    learner = fed(FIRST[:2])
    learner.close(0)
    before = learner.content
    outcomes = [learner.apply(data).status for data in [*FIRST, FIRST[3]]]
    repeated, late = FrameStatus.DUPLICATE, FrameStatus.LATE
    assert outcomes == [repeated, repeated, late, late, repeated]
    assert learner.summary(0).late_rows == 80
    learner.close(0)
    assert learner.content == before


def test_a_round_that_is_not_open_yet_takes_nothing() -> None:
    learner = fed(FIRST)
    assert learner.apply(AHEAD).status is FrameStatus.DEAD_LETTER
    with pytest.raises(BadParameter, match="number"):
        learner.close(1)
    learner.close(0)
    assert learner.apply(AHEAD).status is FrameStatus.COUNTED


def test_a_round_without_reports_leaves_the_model_as_it_is() -> None:
    learner = TrainingCoordinator(TASK)
    before, tag = broadcast(learner).model, learner.etag
    learner.close(0)
    assert broadcast(learner).model.factors.tobytes() == before.factors.tobytes()
    assert learner.number == 1
    assert learner.etag != tag  # it is another round's broadcast


def test_a_snapshot_brings_everything_back() -> None:
    learner = fed([*FIRST, b"nonsense"])
    learner.close(0)
    more = frames(1, broadcast(learner))
    learner.apply(more[0])
    copy = TrainingCoordinator.restore(learner.snapshot(), TASK)
    assert copy.snapshot() == learner.snapshot()
    for one in (learner, copy):
        statuses = [one.apply(data).status for data in [*more, FIRST[0]]]
        assert statuses.count(FrameStatus.DUPLICATE) == 2
        one.close(1)
    assert copy.content == learner.content
    assert copy.counters == learner.counters


def test_other_snapshots_are_refused() -> None:
    data = fed(FIRST).snapshot()
    spoilt = json.loads(data)
    spoilt["checksum"] = "0" * 64
    for bad in (b"", b"{}", data[:-5], json.dumps(spoilt).encode(), data.replace(b'"', b" ", 1)):
        with pytest.raises(BadSnapshot):
            TrainingCoordinator.restore(bad, TASK)
    for other in (BitTraining(4, 3, 8.0, 3), BitTraining(5, 2, 8.0, 3)):
        with pytest.raises(BadSnapshot):
            TrainingCoordinator.restore(data, AdTask(other))
    done = fed(FIRST)
    for number in range(3):
        done.close(number)
    with pytest.raises(BadSnapshot):
        TrainingCoordinator.restore(done.snapshot(), AdTask(BitTraining(4, 2, 8.0, 2, clip=0.1)))


def test_a_broadcast_is_read_as_it_was_written() -> None:
    model = AdModel(0.25, np.arange(3, dtype=np.float32), np.full((3, 2), 1 / 3, dtype=np.float32))
    rates = np.array([0.1, 0.2, 0.3], dtype=np.float32)
    for sent in (Broadcast(model), Broadcast(model, rates)):
        number, got = read_broadcast(write_broadcast(7, sent))
        assert (number, got.model.centre) == (7, 0.25)
        assert got.model.factors.tobytes() == model.factors.tobytes()
        assert got.model.factors.shape == (3, 2)
        assert got.model.offsets.tolist() == [0, 1, 2]
        if sent.rates is None:
            assert got.rates is None
        else:
            assert got.rates is not None and got.rates.tobytes() == rates.tobytes()


def test_bytes_that_are_no_broadcast_are_refused() -> None:
    good = write_broadcast(0, TRAINING.start())
    wild = Broadcast(AdModel(0.5, np.full(2, np.nan, np.float32), np.ones((2, 1), np.float32)))
    bad = [b"", good[:-1], good + b"\0", b"XXXX" + good[4:], good[:4] + b"\2" + good[5:]]
    for data in [*bad, write_broadcast(0, wild), good[:6] + b"\1" + good[7:]]:
        with pytest.raises(BadFrame, match="broadcast"):
            read_broadcast(data)


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with pytest.raises(BadFrame):
        read_broadcast(data)


def test_the_kinds_of_training_are_listed() -> None:
    assert {"gradient-bits", "gradient-noise"} <= set(KIND_BUILDERS)
    listed = kinds_from_sizes(
        {"gradient-bits": {"size": 12}, "gradient-noise": {"ads": 3, "dimension": 2}}
    )
    assert listed["gradient-bits"] == KIND
    assert listed["gradient-noise"].cells == 12
    assert TrainingCoordinator(TASK, limits=AggregationLimits(frames=5)).kinds == (KIND,)
