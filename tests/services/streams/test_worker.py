"""A worker may die, sleep or stumble at any point: every frame counts exactly once."""

import threading
import time
from collections.abc import Sequence

import pytest

from noisefloor.wire.frames import Frame, decode_frame
from noisefloor_services.chaos.workers import NaiveGroup, load_naive_script
from noisefloor_services.store.errors import BadStore, StoreStalled
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams import batch
from noisefloor_services.streams.batch import DeliveryBatch, FrameGroup, StreamDelivery
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import ABANDONED_S, MOST_DELIVERIES, Worker
from stream_cases import (
    BAD,
    CLICKS,
    GOOD,
    KINDS,
    HandClock,
    broken,
    frame,
    new_store,
    released,
    sent,
    worked,
)

FRAMES = [frame(CLICKS, 0, number) for number in range(8)]
ROWS = sum(number % 3 + 1 for number in range(8))
AT_ONCE = 0.001


def taken_over(store: EpochStore, group: type[FrameGroup] = FrameGroup) -> int:
    """Let a worker look, wait for its limit by a clock of its own, and look again."""
    clock = HandClock()
    worker = Worker(store, group=group, clock=clock)
    assert worker.sweep() == 0
    clock.now += ABANDONED_S
    return worker.sweep()


def clicks(store: EpochStore) -> object:
    store.close("clicks", 0)
    return released(store, CLICKS, 0)


def after_a_zombie(store: EpochStore, group: type[FrameGroup]) -> EpochStore:
    """Let one worker fall asleep with all frames in hand, another do its work, the first wake."""
    zombie = Worker(sent(store, FRAMES), group=group)
    deliveries = zombie._read(block_s=0.0)
    asleep = DeliveryBatch(zombie._context, zombie._keys)
    asleep.add(deliveries)
    commands = asleep.commands()  # decoded, merged, about to be sent
    assert taken_over(store, group) == len(FRAMES)
    asleep.take(store.server.all(commands))
    while commands := asleep.commands():
        asleep.take(store.server.all(commands))
    return store


def test_a_zombie_adds_nothing(server: Server) -> None:
    store = after_a_zombie(new_store(server), FrameGroup)
    assert clicks(store) == clicks(worked(new_store(server), FRAMES))
    account = store.conservation()
    assert (account.counted, account.duplicates, account.missing) == (len(FRAMES), 0, 0)


def test_the_naive_twin_counts_a_zombie_twice(server: Server) -> None:
    load_naive_script(server)
    store = after_a_zombie(new_store(server), NaiveGroup)
    store.close("clicks", 0)
    assert store.release("clicks", 0)[1] == 2 * ROWS
    assert store.conservation().missing == -len(FRAMES)


def test_the_naive_twin_counts_what_is_sent_twice_twice(server: Server) -> None:
    load_naive_script(server)
    store = sent(new_store(server), FRAMES + FRAMES)
    Worker(store, group=NaiveGroup).drain()
    store.close("clicks", 0)
    assert store.release("clicks", 0)[1] > ROWS


def test_a_zombie_cannot_count_what_was_buried(server: Server) -> None:
    store = sent(new_store(server), FRAMES[:1])
    zombie = Worker(store)
    deliveries = zombie._read(block_s=0.0)
    other = Worker(store)
    for _ in range(MOST_DELIVERIES):
        keys = store.layout.keys(0).frames
        server.call("XCLAIM", keys, "aggregators", other.name, 0, deliveries[0].entry_id)
    assert taken_over(store) == 1
    zombie._settle(deliveries, reads_ahead=False)
    account = store.conservation()
    assert (account.counted, account.dead_letters, account.missing) == (0, 1, 0)


def test_a_zombie_is_late_once(server: Server) -> None:
    store = new_store(server)
    store.close("clicks", 0)
    account = after_a_zombie(store, FrameGroup).conservation()
    assert (account.late, account.duplicates, account.missing) == (len(FRAMES), 0, 0)


def test_a_zombie_buries_nothing_twice(server: Server) -> None:
    store = sent(new_store(server), [b"x", broken(1)])
    zombie = Worker(store)
    deliveries = zombie._read(block_s=0.0)
    assert taken_over(store) == 2
    zombie._settle(deliveries, reads_ahead=False)
    account = store.conservation()
    assert (account.dead_letters, account.duplicates, account.missing) == (2, 0, 0)


def test_two_workers_that_read_the_same_repeat_count_it_once(server: Server) -> None:
    store = sent(new_store(server), FRAMES + FRAMES)
    one, two = Worker(store, batch=len(FRAMES)), Worker(store, batch=len(FRAMES))
    first, second = one._read(block_s=0.0), two._read(block_s=0.0)
    assert len(first) == len(second) == len(FRAMES)
    two._settle(second, reads_ahead=False)
    one._settle(first, reads_ahead=False)
    account = store.conservation()
    assert (account.counted, account.duplicates, account.missing) == (8, 8, 0)
    assert clicks(store) == clicks(worked(new_store(server), FRAMES))


def test_work_of_the_dead_is_taken_over(server: Server) -> None:
    store = sent(new_store(server, 2), GOOD + BAD)
    assert Worker(store)._read(block_s=0.0)  # and never heard of again
    Worker(store, abandoned_s=0.01).drain(patience_s=20)
    account = store.conservation()
    assert (account.counted, account.pending, account.missing) == (len(GOOD), 0, 0)


def test_a_frame_that_breaks_its_worker_ends_as_a_dead_letter_and_spares_the_others(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def fails_on_one(data: bytes, *args: object, **options: int) -> Frame:
        if data == FRAMES[3]:
            attempts.append(1)
            raise MemoryError
        return decode_frame(data, *args, **options)  # type: ignore[arg-type]  # handed through

    monkeypatch.setattr(batch, "decode_frame", fails_on_one)
    store = sent(new_store(server), FRAMES)
    Worker(store, abandoned_s=AT_ONCE).drain(patience_s=20)
    account = store.conservation()
    assert (account.counted, account.dead_letters, account.missing) == (len(FRAMES) - 1, 1, 0)
    assert [letter.key for letter in store.dead_letters()] == [f"id:{3:032x}"]
    assert len(attempts) == MOST_DELIVERIES


class Mortal(Worker):
    """A worker that dies of the fourth frame."""

    def _settle(self, deliveries: Sequence[StreamDelivery], *, reads_ahead: bool) -> int:
        if any(delivery.entry_id == "0-4" for delivery in deliveries):
            raise SystemExit
        return super()._settle(deliveries, reads_ahead=reads_ahead)


def test_a_frame_that_kills_its_worker_does_not_use_up_the_chances_of_others(
    server: Server,
) -> None:
    store = sent(new_store(server), FRAMES)
    for _ in range(MOST_DELIVERIES):
        with pytest.raises(SystemExit):
            Mortal(store, abandoned_s=AT_ONCE).drain()
    Mortal(store, abandoned_s=AT_ONCE).drain()
    account = store.conservation()
    assert (account.counted, account.dead_letters, account.pending) == (7, 1, 0)


def test_poison_is_buried_once_however_often_it_comes(server: Server) -> None:
    store = worked(new_store(server), [broken(1), broken(2), b"x", broken(1), b"x", b"y"] * 2)
    assert [letter.key[:9] for letter in store.dead_letters()].count("id:000000") == 2
    account = store.conservation()
    assert (account.dead_letters, account.duplicates, account.missing) == (4, 8, 0)


def test_a_worker_stops_on_request_and_leaves_nothing_behind(server: Server) -> None:
    store = sent(new_store(server, 2), GOOD)
    worker = Worker(store)
    thread = threading.Thread(target=worker.run)
    thread.start()
    for _ in range(1000):
        if not store.waiting():
            break
        time.sleep(0.01)
    worker.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert store.conservation().counted == len(GOOD)
    frames = store.layout.keys(0).frames
    assert server.call("XINFO", "CONSUMERS", frames, "aggregators") == []


def test_a_drain_does_not_wait_for_ever(server: Server) -> None:
    store = sent(new_store(server), FRAMES)
    Worker(store)._read(block_s=0.0)
    with pytest.raises(StoreStalled, match=r"0\.1 s"):
        Worker(store, abandoned_s=60).drain(patience_s=0.1)


def test_a_store_that_was_never_prepared_or_lost_its_data_is_reported(server: Server) -> None:
    with pytest.raises(BadStore, match="lost"):
        Worker(EpochStore(server, Layout("nowhere"), KINDS)).drain()
    store = sent(new_store(server), FRAMES)
    server.call("DEL", store.layout.keys(0).window("clicks"))
    with pytest.raises(BadStore, match="lost"):
        Worker(store).drain()
    assert store.conservation().pending == len(FRAMES)
