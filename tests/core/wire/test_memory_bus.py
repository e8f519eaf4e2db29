"""The memory bus delivers at least once, in order, within its bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter, BusFull
from noisefloor.wire import Backlog, FrameBus, MemoryBus, drain

FRAMES = [bytes([number]) for number in range(10)]


def loaded(*frames: bytes, most_frames: int = 100) -> MemoryBus:
    bus = MemoryBus(most_frames)
    for frame in frames:
        bus.publish("reports", frame)
    return bus


def test_the_memory_bus_is_a_bus() -> None:
    assert isinstance(MemoryBus(), FrameBus)


def test_frames_come_in_the_order_in_which_they_were_published() -> None:
    bus = loaded(*FRAMES)
    first, second = bus.receive("reports", 4), bus.receive("reports", 100)
    assert [delivery.data for delivery in (*first, *second)] == FRAMES
    assert {delivery.attempt for delivery in (*first, *second)} == {1}
    assert bus.backlog("reports") == Backlog(waiting=0, unacknowledged=10)


def test_topics_do_not_mix_and_an_unknown_topic_is_empty() -> None:
    bus = loaded(b"a")
    assert bus.receive("other") == []
    assert (bus.acknowledge("other", ["0"]), bus.reclaim("other")) == (0, 0)
    assert bus.backlog("other").total == 0
    assert bus.backlog("reports").total == 1


def test_what_was_not_acknowledged_comes_again_before_the_rest() -> None:
    bus = loaded(*FRAMES[:4])
    taken = bus.receive("reports", 3)
    assert bus.acknowledge("reports", [taken[1].delivery_id]) == 1
    assert bus.reclaim("reports") == 2
    again = bus.receive("reports")
    assert [delivery.data for delivery in again] == [FRAMES[0], FRAMES[2], FRAMES[3]]
    assert [delivery.attempt for delivery in again] == [2, 2, 1]


def test_acknowledging_twice_or_after_the_reclaim_does_nothing() -> None:
    bus = loaded(b"a")
    (delivery,) = bus.receive("reports")
    bus.reclaim("reports")
    assert bus.acknowledge("reports", [delivery.delivery_id]) == 0
    (again,) = bus.receive("reports")
    assert bus.acknowledge("reports", [again.delivery_id]) == 1
    assert bus.acknowledge("reports", [again.delivery_id]) == 0
    assert bus.backlog("reports").total == 0


def test_a_full_bus_takes_nothing_until_something_is_acknowledged() -> None:
    bus = loaded(b"a", b"b", most_frames=2)
    taken = bus.receive("reports", 1)
    with pytest.raises(BusFull, match="reports"):
        bus.publish("reports", b"c")
    assert bus.backlog("reports") == Backlog(1, 1)
    bus.acknowledge("reports", [taken[0].delivery_id])
    bus.publish("reports", b"c")
    bus.publish("other", b"d")
    assert [delivery.data for delivery in bus.receive("reports")] == [b"b", b"c"]


@pytest.mark.parametrize("most", [0, -1, True])
def test_bounds_have_to_be_positive(most: int) -> None:
    with pytest.raises(BadParameter):
        MemoryBus(most)
    with pytest.raises(BadParameter):
        loaded(b"a").receive("reports", most)
    with pytest.raises(BadParameter):
        drain(loaded(b"a"), "reports", len, most=most)


def test_only_bytes_are_published() -> None:
    with pytest.raises(BadParameter):
        MemoryBus().publish("reports", bytearray(b"a"))  # type: ignore[arg-type]  # the fault


def test_draining_handles_everything_and_stops() -> None:
    handled: list[bytes] = []
    bus = loaded(*FRAMES)
    assert drain(bus, "reports", handled.append, most=3) == 10
    assert handled == FRAMES
    assert bus.backlog("reports").total == 0
    assert drain(bus, "reports", handled.append) == 0


def test_draining_also_handles_what_is_published_meanwhile() -> None:
    bus = loaded(b"a")

    def handle(data: bytes) -> None:
        if len(data) < 5:
            bus.publish("reports", data + b"a")

    assert drain(bus, "reports", handle) == 5


def test_a_handler_that_fails_gets_its_batch_again() -> None:
    handled: list[bytes] = []
    bus = loaded(*FRAMES[:5])

    def fail_once(data: bytes) -> None:
        handled.append(data)
        if len(handled) == 4:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        drain(bus, "reports", fail_once, most=2)
    assert bus.reclaim("reports") == 2
    assert drain(bus, "reports", fail_once, most=2) == 3
    assert handled == [*FRAMES[:4], *FRAMES[2:5]]


@given(st.lists(st.sampled_from(["publish", "receive", "ack", "reclaim"]), max_size=60))
def test_nothing_is_lost_whatever_happens_in_between(steps: list[str]) -> None:
    bus, published, done = MemoryBus(8), 0, set[bytes]()
    for step in steps:
        if step == "publish" and bus.backlog("reports").total < 8:
            bus.publish("reports", bytes([published]))
            published += 1
        elif step == "receive":
            bus.receive("reports", 2)
        elif step == "reclaim":
            bus.reclaim("reports")
        elif step == "ack":
            taken = bus.receive("reports", 1)
            bus.acknowledge("reports", [delivery.delivery_id for delivery in taken])
            done |= {delivery.data for delivery in taken}
    bus.reclaim("reports")
    drain(bus, "reports", done.add)
    assert done == {bytes([number]) for number in range(published)}
