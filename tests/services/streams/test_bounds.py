"""Bounds and counters of the scripts, exactly at the bound: one less, one more."""

from collections.abc import Sequence

import pytest

from noisefloor.roles import AggregationLimits
from noisefloor.wire.frames import Frame, decode_frame
from noisefloor_services.store.keys import PartitionKeys
from noisefloor_services.store.server import Server
from noisefloor_services.streams import batch
from noisefloor_services.streams.batch import BatchContext, FrameGroup
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from stream_cases import CLICKS, GOOD, KINDS, NOTES, broken, frame, new_store, sent

CLICK_FRAMES = [frame(CLICKS, 0, number) for number in range(6)]  # of 1, 2, 3, 1, 2, 3 rows
NOTE_FRAMES = [frame(NOTES, 0, number) for number in range(6)]
NOTE_BYTES = [
    decode_frame(data, {kind.name: kind for kind in KINDS}).batch.nbytes for data in NOTE_FRAMES
]
BATCHES = pytest.mark.parametrize("batch", [1, 64])


def counted(store: EpochStore, frames: Sequence[bytes], batch: int = 64) -> tuple[int, int]:
    """Count frames, and return how many counted and how many were refused for good."""
    worker = Worker(sent(store, frames), batch=batch)
    while worker.step():
        pass
    account = store.conservation()
    assert (account.pending, account.missing) == (0, 0)
    return account.counted, account.dead_letters


@BATCHES
def test_an_epoch_takes_as_many_frames_as_it_may(server: Server, batch: int) -> None:
    store = new_store(server, limits=AggregationLimits(frames=5))
    assert counted(store, CLICK_FRAMES[:5], batch) == (5, 0)
    assert counted(store, CLICK_FRAMES[5:], batch) == (5, 1)
    assert counted(new_store(server, limits=AggregationLimits(frames=5)), CLICK_FRAMES, batch) == (
        5,
        1,
    )


@BATCHES
def test_an_epoch_takes_as_many_rows_as_it_may(server: Server, batch: int) -> None:
    assert counted(
        new_store(server, limits=AggregationLimits(rows=6)), CLICK_FRAMES[:4], batch
    ) == (3, 1)
    assert counted(
        new_store(server, limits=AggregationLimits(rows=7)), CLICK_FRAMES[:4], batch
    ) == (4, 0)


@BATCHES
def test_a_collection_takes_as_many_bytes_as_it_may(server: Server, batch: int) -> None:
    exact = sum(NOTE_BYTES[:4])
    for bound, outcome in ((exact, (4, 0)), (exact - 1, (3, 1)), (exact + 1, (4, 0))):
        store = new_store(server, limits=AggregationLimits(collected_bytes=bound))
        assert counted(store, NOTE_FRAMES[:4], batch) == outcome
    assert counted(store, NOTE_FRAMES[4:5], batch) == (4, 1)


def test_sums_use_no_capacity_for_collected_bytes(server: Server) -> None:
    store = new_store(server, limits=AggregationLimits(collected_bytes=1))
    assert counted(store, CLICK_FRAMES) == (6, 0)


def test_a_frame_of_too_many_bytes_is_a_dead_letter(server: Server) -> None:
    size = max(map(len, CLICK_FRAMES))
    assert counted(
        new_store(server, limits=AggregationLimits(frame_bytes=size)), CLICK_FRAMES
    ) == (6, 0)
    store = new_store(server, limits=AggregationLimits(frame_bytes=size - 1))
    assert counted(store, [max(CLICK_FRAMES, key=len)]) == (0, 1)


def test_dead_letters_are_kept_up_to_their_bound_and_all_are_counted(server: Server) -> None:
    store = new_store(server, limits=AggregationLimits(dead_letters=2))
    assert counted(store, [broken(number) for number in range(4)]) == (0, 4)
    assert len(store.dead_letters()) == 2


def test_late_frames_are_kept_up_to_their_bound_and_all_are_counted(server: Server) -> None:
    store = new_store(server, limits=AggregationLimits(frames=3))
    store.close("clicks", 0)
    counted(store, CLICK_FRAMES)
    summary = store.summary("clicks", 0)
    assert (summary.late_frames, summary.late_rows) == (3, 1 + 2 + 3)
    assert store.conservation().late == 6
    counted(store, CLICK_FRAMES[:3])
    assert (store.conservation().late, store.conservation().duplicates) == (6, 3)


def test_reports_are_the_rows_of_frames_that_counted(server: Server) -> None:
    store = new_store(server, 2)
    counted(store, [*CLICK_FRAMES, *NOTE_FRAMES, *CLICK_FRAMES, broken(9)])
    account = store.conservation()
    assert (account.counted, account.duplicates, account.reports) == (12, 6, 2 * 12)
    store.close("clicks", 0)
    counted(store, [frame(CLICKS, 0, 7)])
    assert store.conservation().reports == 2 * 12


def test_several_repeats_in_one_batch_are_counted_one_by_one(server: Server) -> None:
    store = new_store(server)
    counted(store, CLICK_FRAMES)
    counted(store, CLICK_FRAMES)
    assert store.conservation().duplicates == 6


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_every_partition_has_its_share_of_the_bounds(server: Server, partitions: int) -> None:
    limits = AggregationLimits(frames=21, rows=43, collected_bytes=65, dead_letters=2)
    share = new_store(server, partitions, limits=limits).limits
    assert (share.frames, share.rows) == (21 // partitions, 43 // partitions)
    assert (share.collected_bytes, share.dead_letters) == (65 // partitions, 2 // partitions)
    small = new_store(
        server, partitions, limits=AggregationLimits(frames=1, rows=1, collected_bytes=1)
    ).limits
    assert (small.frames, small.rows, small.collected_bytes) == (1, 1, 1)


def test_a_store_begins_with_its_first_epoch(server: Server) -> None:
    store = EpochStore(server, new_store(server).layout, KINDS)
    server.call("DEL", *(store.layout.keys(0).window(kind.name) for kind in KINDS))
    store.prepare(5)
    assert store.is_closed("clicks", 4)
    assert not store.is_closed("clicks", 5)
    assert counted(store, [frame(CLICKS, epoch, epoch) for epoch in (4, 5)]) == (1, 0)
    assert store.conservation().late == 1


class Unmergeable(FrameGroup):
    """Frames that cannot be merged."""

    __slots__ = ()

    def __init__(
        self, context: BatchContext, keys: PartitionKeys, entries: list[batch._Entry]
    ) -> None:
        raise MemoryError


def test_frames_that_cannot_be_merged_are_not_settled(server: Server) -> None:
    store = sent(new_store(server), [*CLICK_FRAMES[:3], *CLICK_FRAMES[:2]])
    assert Worker(store, group=Unmergeable).step() == 0
    account = store.conservation()
    assert (account.pending, account.counted, account.duplicates) == (5, 0, 0)
    rest = sent(new_store(server), [*CLICK_FRAMES[:3], b"no frame"])
    assert Worker(rest, group=Unmergeable).step() == 1


def test_a_frame_that_breaks_the_decoder_is_not_settled(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(data: bytes, *args: object, **options: int) -> Frame:
        if data in CLICK_FRAMES[:2]:
            raise MemoryError
        return decode_frame(data, *args, **options)  # type: ignore[arg-type]  # handed through

    monkeypatch.setattr(batch, "decode_frame", breaks)
    store = sent(new_store(server), CLICK_FRAMES)
    assert Worker(store).step() == 4
    assert store.conservation().pending == 2


def test_every_kind_and_epoch_is_bounded_by_itself(server: Server) -> None:
    assert counted(new_store(server, limits=AggregationLimits(frames=4, rows=8)), GOOD) == (
        len(GOOD),
        0,
    )


@pytest.mark.parametrize("order", [1, -1])
def test_of_dead_letters_with_one_id_the_smallest_is_kept_whatever_the_order(
    server: Server, order: int
) -> None:
    letters = [broken(1, rows=rows) for rows in (1, 9)][::order]
    store = new_store(server)
    for data in letters:
        counted(store, [data])
    assert [one.size_bytes for one in store.dead_letters()] == [min(map(len, letters))]
    assert (store.conservation().dead_letters, store.conservation().duplicates) == (1, 1)
