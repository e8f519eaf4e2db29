"""An accepted frame counts, whatever is closed meanwhile; what cannot count is refused."""

import asyncio
import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from noisefloor.errors import BadParameter
from noisefloor.roles import AggregationLimits, Aggregator
from noisefloor.wire.frames import decode_frame
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.errors import EpochClosing
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.ingest import Ingest
from noisefloor_services.streams.worker import Worker
from properties import examples
from stream_cases import (
    CLICKS,
    GOOD,
    KINDS,
    NAMED,
    NOTES,
    answered,
    differences,
    frame,
    new_store,
    taken_in,
    worked,
)

CLOSED, AHEAD, FULL = "epoch-closed", "epoch-ahead", "epoch-full"
EPOCHS = 20

# One server for all examples: each has keys of its own.
shared = examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
closes = st.tuples(st.sampled_from([kind.name for kind in KINDS]), st.integers(0, 2))


def ids(store: EpochStore, epoch: int) -> int:
    return store.summary("clicks", epoch).frames


@shared
@given(st.lists(st.sampled_from(GOOD) | closes, max_size=40), st.sampled_from([1, 3]))
def test_admission_and_the_role_agree_on_any_history(
    valkey: EmbeddedServer,
    server: Server,
    actions: list[bytes | tuple[str, int]],
    partitions: int,
) -> None:
    store, role = new_store(server, partitions), Aggregator(KINDS)
    waiting: list[bytes] = []
    for action in [*actions, ("clicks", 0), *GOOD[:2], ("clicks", 1)]:
        if isinstance(action, bytes):
            role.apply(action)
            waiting.append(action)
        else:
            assert set(answered(valkey.url, store, waiting)) <= {"taken", CLOSED}
            worked(store, []).close(*action)
            role.close(*action)
            waiting = []
    assert differences(store, role) == []
    assert store.conservation().late == 0  # nobody was promised what does not count


def test_closed_and_far_epochs_are_refused_and_repeats_of_counted_frames_are_not(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server)
    one, other = frame(CLICKS, 0, 1), frame(CLICKS, 0, 2)
    assert answered(valkey.url, store, [one, frame(CLICKS, 32, 1)]) == ["taken", AHEAD]
    worked(store, []).close("clicks", 0)
    assert answered(valkey.url, store, [one, other, other]) == ["taken", CLOSED, CLOSED]
    assert answered(valkey.url, store, [frame(CLICKS, 32, 1)]) == ["taken"]  # the window moved on
    store.retire("clicks", 0)
    assert server.call("KEYS", f"{store.layout.namespace}:*:clicks:0") == []
    assert answered(valkey.url, store, [one, other]) == [CLOSED, CLOSED]
    account = worked(store, []).conservation()
    assert (account.accepted, account.counted, account.duplicates) == (3, 2, 1)
    assert (account.refused_closed, account.refused_again, account.refused_ahead) == (3, 1, 1)
    assert (account.late, account.dead_letters, account.missing) == (0, 0, 0)


def test_closing_refuses_new_frames_waits_for_accepted_ones_and_can_be_resumed(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server, 2)
    frames = [frame(CLICKS, 0, number) for number in range(8)]
    assert answered(valkey.url, store, frames) == ["taken"] * 8
    for _ in range(2):
        with pytest.raises(EpochClosing) as closing:
            store.close("clicks", 0, patience_s=0)  # nobody counts; the closing service dies here
    assert closing.value.retry_after_s == 1
    assert not store.is_closed("clicks", 0)
    assert answered(valkey.url, store, [frame(CLICKS, 0, 9)]) == [CLOSED]
    # Frames of other epochs that come afterwards are not waited for.
    assert answered(valkey.url, store, [frame(CLICKS, 1, n) for n in range(8)]) == ["taken"] * 8
    worker = Worker(store, batch=2)
    while ids(store, 0) < 8:
        worker.step()
    assert store.waiting() > 0
    other = EpochStore(server, store.layout, KINDS)
    other.close("clicks", 0, patience_s=0)
    assert other.release("clicks", 0)[1] == sum(number % 3 + 1 for number in range(8))
    assert answered(valkey.url, store, frames) == ["taken"] * 8  # repeats
    worker.drain()
    account = store.conservation()
    assert (account.counted, account.late, account.missing) == (16, 0, 0)


def test_an_epoch_beyond_the_window_is_not_shut(valkey: EmbeddedServer, server: Server) -> None:
    store = new_store(server)
    with pytest.raises(BadParameter, match="window"):
        store.close("clicks", 32)
    assert answered(valkey.url, store, [frame(CLICKS, 31, 1)]) == ["taken"]


@pytest.mark.parametrize("bound", ["frames", "rows", "collected_bytes"])
def test_a_full_epoch_is_refused_at_admission_and_never_after_a_202(
    valkey: EmbeddedServer, server: Server, bound: str
) -> None:
    kind = NOTES if bound == "collected_bytes" else CLICKS
    frames = [frame(kind, 0, 3 * number) for number in range(4)]  # of one row each
    size = decode_frame(frames[0], NAMED).batch.nbytes if kind == NOTES else 1
    limits = replace(AggregationLimits(), **{bound: 3 * size})
    store = new_store(server, limits=limits)

    def sends(*numbers: int) -> list[str]:
        return answered(valkey.url, store, [frames[number] for number in numbers], limits)

    # Frames that wait may all be new: a repeat takes room until it is known for one.
    assert sends(0, 0, 1, 2) == ["taken", "taken", "taken", "wait"]
    worked(store, [])
    assert sends(2, 3) == ["taken", "wait"]
    worked(store, [])
    assert store.fullness() == 1
    assert sends(3, 0, 1, 2) == [FULL, "taken", "taken", "taken"]
    account = worked(store, []).conservation()
    assert (account.counted, account.dead_letters, account.refused_full) == (3, 0, 1)
    assert account.missing == 0
    store.close(kind.name, 0)
    assert store.fullness() == 0  # an epoch that is closed needs no room


def test_capacity_that_was_never_given_back_is_recovered(
    valkey: EmbeddedServer, server: Server
) -> None:
    bound = AggregationLimits(frames=2)
    store = new_store(server, limits=bound)
    key = store.layout.keys(0).admission_of("clicks", 0)
    server.call("HSET", key, "frames", 2)  # as after a frame that was buried unread
    assert answered(valkey.url, store, [frame(CLICKS, 0, 1)], limits=bound) == ["taken"]
    worked(store, [])
    assert server.call("HGETALL", key) == []  # all of it was given back


def test_closing_under_load_counts_every_frame_that_was_taken(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server, 2)
    taken = [0] * EPOCHS
    is_over = threading.Event()

    async def device(ingest: Ingest, place: int) -> None:
        """Send to each epoch until it is refused, as devices do that do not know of the close."""
        epoch, number = 0, place << 32
        while epoch < EPOCHS:
            number += 1
            answer = await taken_in(ingest, frame(CLICKS, epoch, number))
            assert answer in ("taken", CLOSED)
            taken[epoch] += answer == "taken"
            epoch += answer == CLOSED

    async def load() -> None:
        ingests = [Ingest(valkey.url, store.layout) for _ in range(2)]  # two ad servers
        for ingest in ingests:
            await ingest.start()
        await asyncio.gather(*(device(ingests[place % 2], place) for place in range(16)))
        for ingest in ingests:
            await ingest.stop()

    def close() -> None:
        for epoch in range(EPOCHS):
            while taken[epoch] < 16 and not is_over.is_set():
                is_over.wait(0.002)
            store.close("clicks", epoch, patience_s=20)

    worker, counts = Worker(store), threading.Thread(target=lambda: worker.run())
    closes = threading.Thread(target=close)
    counts.start()
    closes.start()
    try:
        asyncio.run(load())
    finally:
        is_over.set()
        closes.join(60)
        worker.stop()
        counts.join(60)
    assert min(taken) >= 16
    assert [ids(store, epoch) for epoch in range(EPOCHS)] == taken
    account = store.conservation()
    assert (account.late, account.dead_letters, account.missing) == (0, 0, 0)
    assert account.refused_closed == 16 * EPOCHS
