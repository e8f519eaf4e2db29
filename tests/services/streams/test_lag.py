"""The lag of counting is exact, by the clock of the process that looks."""

from noisefloor_services.store.keys import GROUP
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.pending import STALLED_S, Lag, LagWatch
from noisefloor_services.streams.worker import ABANDONED_S, Worker
from stream_cases import CLICKS, HandClock, frame, new_store, sent, worked

FRAMES = [frame(CLICKS, 0, number) for number in range(20)]
NONE = Lag(0, 0, 0.0, 0.0)


def watched(store: EpochStore) -> tuple[LagWatch, HandClock]:
    clock = HandClock()
    return LagWatch(store.server, store.layout, clock), clock


def test_undelivered_and_pending_frames_are_distinguished(server: Server) -> None:
    store = new_store(server)
    watch, clock = watched(store)
    assert watch.look() == [NONE]
    worked(store, FRAMES[:3])
    assert watch.look() == [NONE]
    sent(store, FRAMES[3:9])
    assert watch.look() == [Lag(6, 0, 0.0, 0.0)]
    clock.now += 2
    stream = store.layout.keys(0).frames
    server.call("XREADGROUP", "GROUP", GROUP, "me", "COUNT", 2, "STREAMS", stream, ">")
    assert watch.look() == [Lag(4, 2, 0.0, 0.0)]  # some were handed out: it moves
    clock.now += 3
    assert watch.look() == [Lag(4, 2, 3.0, 3.0)]
    assert store.conservation().pending == 6


def test_each_partition_is_reported_separately(server: Server) -> None:
    store = sent(new_store(server, 3), FRAMES)
    lags = [one for one in watched(store)[0].look() if one is not None]
    assert len(lags) == 3
    assert sum(one.undelivered for one in lags) == 20
    assert len({one.undelivered for one in lags} | {0}) > 1


def test_frames_that_no_worker_reads_or_settles_are_an_alarm(server: Server) -> None:
    store = sent(new_store(server), FRAMES[:8])
    watch, clock = watched(store)
    assert watch.lacks() == ""
    clock.now += STALLED_S - 0.01
    assert watch.lacks() == ""
    clock.now += 1
    assert watch.lacks() == "Frames wait and none was settled for 15 s in partition 0."
    assert Worker(store, batch=4)._read(block_s=0.0)  # and never heard of again
    clock.now += 1
    assert watch.lacks() == ""
    for _ in range(4):  # others go on: only what was abandoned does not move
        sent(store, [FRAMES[8]])
        Worker(store).step()
        clock.now += STALLED_S / 3
    assert watch.lacks() == "Frames wait and none was settled for 15 s in partition 0."
    rescue = Worker(store, clock=clock)
    rescue.sweep()
    clock.now += ABANDONED_S
    assert rescue.sweep() == 4
    assert watch.lacks() == ""
    assert watch.look() == [NONE]


def test_a_worker_that_takes_over_in_time_is_no_alarm() -> None:
    assert 2 * ABANDONED_S < STALLED_S < 30


def test_what_cannot_be_read_has_no_numbers(server: Server) -> None:
    store = sent(new_store(server, 2), FRAMES)
    watch, _ = watched(store)
    server.call("SET", store.layout.keys(1).frames, "something else")
    first, second = watch.look()
    assert first is not None
    assert second is None
    assert watch.lacks() == "The stream of partition 1 cannot be read."


def test_the_time_of_an_outage_is_no_stall(server: Server) -> None:
    store = sent(new_store(server), FRAMES)
    watch, clock = watched(store)
    assert watch.lacks() == ""
    watch._server = Server("redis://127.0.0.1:1/0")
    clock.now += STALLED_S
    assert watch.lacks() == ""
    watch._server = server
    clock.now += 1
    assert watch.lacks() == ""
    clock.now += STALLED_S
    assert "none was settled" in watch.lacks()


def test_a_frame_that_changes_hands_or_is_tried_again_moves(server: Server) -> None:
    store = sent(new_store(server), FRAMES[:1])
    watch, clock = watched(store)
    (delivery,) = Worker(store)._read(block_s=0.0)
    for consumer in ("one", "two", "two"):
        watch.look()
        clock.now += 2
        assert watch.look() == [Lag(0, 1, 2.0, 0.0)]
        stream = store.layout.keys(0).frames
        server.call("XCLAIM", stream, GROUP, consumer, 0, delivery.entry_id)
        assert watch.look() == [Lag(0, 1, 0.0, 0.0)]
