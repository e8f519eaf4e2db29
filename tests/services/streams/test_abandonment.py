"""What was given up is found by the clock of the worker that looks, and by no other."""

from noisefloor_services.store.keys import GROUP
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.pending import MOST_ENTRIES, AgeTracker
from noisefloor_services.streams.worker import ABANDONED_S, FORGOTTEN_S, Worker
from stream_cases import CLICKS, HandClock, frame, new_store, sent

FRAMES = [frame(CLICKS, 0, number) for number in range(8)]


def consumers(store: EpochStore) -> set[bytes]:
    listed = store.server.call("XINFO", "CONSUMERS", store.layout.keys(0).frames, GROUP)
    return {one[1] for one in listed}


def test_ages_are_since_the_last_change() -> None:
    clock = HandClock()
    things: AgeTracker[str] = AgeTracker(clock)
    assert things.ages({"a": 1, "b": None}) == {"a": 0, "b": 0}
    clock.now += 2
    assert things.ages({"a": 1, "b": None, "c": 1}) == {"a": 2, "b": 2, "c": 0}
    clock.now += 2
    assert things.ages({"a": 2, "c": 1}) == {"a": 0, "c": 2}
    assert things.ages({"b": None}) == {"b": 0}
    things.forget()
    assert things.ages({"b": None}) == {"b": 0}


def test_a_worker_that_gives_signs_of_life_keeps_what_it_holds(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES), HandClock()
    slow, other = Worker(store, clock=clock), Worker(store, clock=clock)
    entry = slow._read(block_s=0.0)
    for _ in range(3):
        assert other.sweep() == 0
        clock.now += ABANDONED_S - 0.1
        slow._beat()
    assert slow._settle(entry, reads_ahead=False) == len(FRAMES)
    assert store.conservation().counted == len(FRAMES)


def test_a_slow_batch_gives_signs_of_life_and_a_fast_one_writes_nothing(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES), HandClock()
    beats = store.layout.keys(0).beats
    worker = Worker(store, batch=4, clock=clock)
    worker._turn(block_s=0.0)
    assert server.call("EXISTS", beats) == 0
    clock.now += ABANDONED_S / 4
    worker._settle(worker._ahead, reads_ahead=False)
    assert server.call("HGETALL", beats) == [worker.name.encode(), b"1"]
    worker._leave()
    assert server.call("EXISTS", beats) == 0


def test_a_silent_worker_loses_every_frame_one_at_a_time(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES), HandClock()
    dead, other = Worker(store, clock=clock), Worker(store, clock=clock)
    dead._read(block_s=0.0)
    other.sweep()
    clock.now += ABANDONED_S - 0.01
    assert other.sweep() == 0
    clock.now += 0.01
    assert other.sweep() == len(FRAMES)
    assert store.conservation().counted == len(FRAMES)


def test_of_two_workers_that_judge_alike_one_takes_over(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES[:1]), HandClock()
    Worker(store, clock=clock)._read(block_s=0.0)
    one, two = Worker(store, clock=clock), Worker(store, clock=clock)
    one.sweep(), two.sweep()
    clock.now += ABANDONED_S
    (entry,) = two._abandonments[0].look(server, ())
    (also,) = one._abandonments[0].look(server, ())
    assert entry == also
    assert server.call(*two._abandonments[0].claim(entry))
    assert server.call(*one._abandonments[0].claim(also)) == []
    assert server.call("XPENDING", store.layout.keys(0).frames, GROUP, "-", "+", 9)[0][3] == 2


def test_what_was_read_ahead_is_not_taken_from_oneself(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES), HandClock()
    worker = Worker(store, batch=4, clock=clock)
    worker._turn(block_s=0.0)
    assert len(worker._ahead) == 4
    clock.now += ABANDONED_S
    worker.sweep()
    clock.now += ABANDONED_S
    assert worker.sweep() == 0
    worker._ahead = []  # lost on the way: then it is
    assert worker.sweep() == 4


def test_a_consumer_that_holds_nothing_for_long_is_forgotten(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES), HandClock()
    gone, holds, looks = (Worker(store, batch=2, clock=clock) for _ in range(3))
    gone.step()
    holds._read(block_s=0.0)
    looks.step()
    looks.sweep()
    clock.now += FORGOTTEN_S - 1
    looks._abandonments[0].look(server, ())
    assert consumers(store) == {one.name.encode() for one in (gone, holds, looks)}
    clock.now += 1
    looks._abandonments[0].look(server, ())
    assert consumers(store) == {holds.name.encode(), looks.name.encode()}


def test_more_than_can_be_seen_at_once_comes_into_view(server: Server) -> None:
    store, clock = new_store(server), HandClock()
    many = [frame(CLICKS, 0, number) for number in range(MOST_ENTRIES + 3)]
    dead = Worker(sent(store, many), batch=1024, clock=clock)
    while dead._read(block_s=0.0):
        pass
    looks = Worker(store, clock=clock)
    abandonment = looks._abandonments[0]
    abandonment.look(server, ())
    clock.now += ABANDONED_S
    first = abandonment.look(server, ())
    assert len(first) == MOST_ENTRIES
    server.call("XACK", store.layout.keys(0).frames, GROUP, *(one.entry_id for one in first))
    abandonment.look(server, ())
    clock.now += ABANDONED_S
    assert len(abandonment.look(server, ())) == 3


def test_a_worker_looks_around_twice_within_its_limit(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES), HandClock()
    dead, other = Worker(store, clock=clock), Worker(store, clock=clock)
    dead._read(block_s=0.0)
    for expected in (0, 0, len(FRAMES)):
        assert other._turn(block_s=0.0) == expected
        clock.now += ABANDONED_S / 2
    assert store.conservation().counted == len(FRAMES)


def test_what_was_handed_out_again_since_is_not_taken_over(server: Server) -> None:
    store, clock = sent(new_store(server), FRAMES[:1]), HandClock()
    holder, other = Worker(store, clock=clock), Worker(store, clock=clock)
    holder._read(block_s=0.0)
    other.sweep()
    clock.now += ABANDONED_S
    (entry,) = other._abandonments[0].look(server, ())
    server.call(*holder._abandonments[0].claim(entry))  # by itself, a second time
    assert server.call(*other._abandonments[0].claim(entry)) == []


def test_a_consumer_with_pending_frames_is_not_forgotten(server: Server) -> None:
    store = sent(new_store(server), FRAMES)
    holder, other = Worker(store), Worker(store)
    holder._read(block_s=0.0)
    assert server.call(*other._abandonments[0].leave(holder.name)) == 0
    assert consumers(store) == {holder.name.encode()}
    assert other._abandonments[0].look(server, ()) == []
