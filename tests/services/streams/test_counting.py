"""A worker beside an API: what it says of itself, and which collections it counts."""

import threading

import pytest

from noisefloor.roles.collection_config import CollectionConfig, example_collection
from noisefloor_services.store.collection_registry import CollectionRegistry
from noisefloor_services.store.durability import Durability
from noisefloor_services.store.errors import BadStore
from noisefloor_services.store.keys import Layout
from noisefloor_services.store.server import Server
from noisefloor_services.streams import counting as module
from noisefloor_services.streams.counting import CountingThread, CountingThreads
from stream_cases import CLICKS, HandClock, frame, new_store, sent


def wait_until_empty(counting: CountingThread) -> None:
    for _ in range(1000):
        if not counting._store.waiting():
            return
        threading.Event().wait(0.01)
    raise AssertionError("frames were not counted")


def test_it_says_whether_it_counts(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    store = sent(new_store(server), [frame(CLICKS, 0, 1)])
    counting = CountingThread(store, Durability.DISK)
    assert counting.lacks() == "No worker counts."
    counting.start()
    wait_until_empty(counting)
    assert counting.lacks() == ""
    monkeypatch.setattr("noisefloor_services.streams.counting.time.monotonic", clock)
    counting._failed_s = clock.now
    clock.now += module._UNWELL_S
    assert counting.lacks() == "No worker counts."  # it may fail again at any moment
    clock.now += 0.01
    assert counting.lacks() == ""
    monkeypatch.undo()
    assert counting.stop()
    assert counting.lacks() == "No worker counts."


@pytest.mark.parametrize("durability", list(Durability))
def test_only_in_memory_a_store_that_lost_its_data_is_prepared_again(
    server: Server, durability: Durability
) -> None:
    counting = CountingThread(new_store(server), durability)
    counting._stopping.set()  # no pause
    is_memory = durability is Durability.MEMORY
    assert counting._failed(BadStore("lost"), is_prepared=True) is not is_memory
    assert counting._failed(ValueError("other"), is_prepared=True) is True
    assert counting._failed(ValueError("other"), is_prepared=False) is False


class Hanging(CountingThread):
    """A counter that does not stop when it is told to."""

    release = threading.Event()

    def _run(self) -> None:
        self.release.wait(20)


def test_a_stop_says_whether_it_was_in_time(server: Server) -> None:
    Hanging.release.clear()
    hanging = Hanging(new_store(server), Durability.DISK)
    hanging.start()
    assert not hanging.stop(timeout_s=0.01)
    hanging.release.set()
    assert hanging.stop()


class Noted(CountingThread):
    """A counter that notes what it is told and counts nothing."""

    def __init__(self, calls: list[str], collection: CollectionConfig, server: Server) -> None:
        super().__init__(new_store(server), Durability.DISK)
        self._calls = calls
        self._name = collection.namespace

    def start(self) -> None:
        self._calls.append(f"start {self._name}")

    def stop(self, timeout_s: float = 6.0) -> bool:
        self._calls.append(f"stop {self._name}")
        return True


def test_every_registered_collection_is_counted_as_long_as_it_is_there(server: Server) -> None:
    calls: list[str] = []
    registry = CollectionRegistry(server, Layout(new_store(server).layout.namespace))
    root = registry._root
    first = registry.placed("first", example_collection())
    turns = iter(("add", "add", "again", "drop", "stop"))

    def is_stopping(_: float) -> bool:
        turn = next(turns)
        if turn == "add":
            registry.add(f"c{len(registry.names())}", example_collection())
        elif turn == "drop":
            registry.drop("c0")
        return turn == "stop"

    CountingThreads(first, lambda one: Noted(calls, one, server), registry).run(is_stopping)
    assert calls == [
        f"start {root}.first",
        f"start {root}.c0",
        f"start {root}.c1",
        f"stop {root}.c0",
        f"stop {root}.first",
        f"stop {root}.c1",
    ]
