"""A store that takes no frames is counted, logged once, and makes a service unready."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import starmap

import pytest
from redis.exceptions import RedisError, ResponseError

from noisefloor.errors import NoisefloorError
from noisefloor.wire.frames import Frame, decode_frame
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.errors import StoreAway, StreamFull
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.ingest import Ingest
from noisefloor_services.streams.worker import Worker
from noisefloor_services.streams.write_path import WritePath, cause_of
from stream_cases import CLICKS, NAMED, HandClock, frame, new_store

FRAMES = [(one, decode_frame(one, NAMED)) for one in (frame(CLICKS, 0, n) for n in range(8))]
TYPE = "Frames cannot be appended: a stream's key holds something else."
RIGHT = "Frames cannot be appended: the store's user may not append."
WINDOW = "Frames cannot be appended: no aggregator has opened the epochs of the collection."
ENTRY = "Frames cannot be appended: the store refuses the next entry id."


def append(
    url: str, store: EpochStore, writes: WritePath, frames: Sequence[tuple[bytes, Frame]]
) -> int:
    """Append each frame by itself, and return how many were taken."""

    async def scenario() -> int:
        ingest = Ingest(url, store.layout, high_water=1000, writes=writes)
        await ingest.start()
        taken = 0
        for one in frames:
            try:
                await ingest.append(*one)
                taken += 1
            except (NoisefloorError, RedisError):
                continue
        await ingest.stop()
        return taken

    return asyncio.run(scenario())


def counts(writes: WritePath) -> dict[str, float]:
    return {one.labels["cause"]: one.value for one in writes.samples() if one.value}


def watched(store: EpochStore) -> tuple[WritePath, HandClock]:
    clock = HandClock()
    return WritePath(store.server, store.layout, store.kinds, clock), clock


def test_a_key_of_another_type_is_logged_once_and_cleared_by_the_probe(
    valkey: EmbeddedServer, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    store = new_store(server)
    writes, _ = watched(store)
    assert writes.lacks() == ""
    server.call("SET", store.layout.keys(0).frames, "something else")
    with caplog.at_level(logging.WARNING):
        assert append(valkey.url, store, writes, FRAMES) == 0
        assert writes.lacks() == TYPE
        assert counts(writes) == {"wrong-type": len(FRAMES)}
        assert [one.message for one in caplog.records] == [
            "frames cannot be appended: a stream's key holds something else"
        ]
        server.call("DEL", store.layout.keys(0).frames)
        assert writes.lacks() == ""
    assert len(caplog.records) == 2
    store.prepare()
    assert append(valkey.url, store, writes, FRAMES) == len(FRAMES)
    assert counts(writes) == {"wrong-type": len(FRAMES)}


def test_a_missing_right_is_found_before_a_frame_comes(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server)
    needed = ("multi", "exec", "discard", "xlen", "ping", "evalsha", "script|load", "hmget")
    needed += ("scard", "hincrby", *(("client|setinfo",) if _is_new(server) else ()))
    rights = [f"+{one}" for one in needed]
    server.call("ACL", "SETUSER", "poor", "on", ">secret", "~*", *rights)
    url = valkey.url.replace("redis://", "redis://poor:secret@")
    poor = Server(url)
    writes = WritePath(poor, store.layout)
    assert writes.lacks() == RIGHT
    assert append(url, store, writes, FRAMES[:2]) == 0
    assert counts(writes) == {"no-permission": 2}
    server.call("ACL", "SETUSER", "poor", "+xadd")
    assert writes.lacks() == ""
    assert store.waiting() == 0  # the probe appended nothing
    assert append(url, store, writes, FRAMES[:2]) == 2
    server.call("ACL", "DELUSER", "poor")
    poor.close()


def _is_new(server: Server) -> bool:
    """Whether a server has CLIENT SETINFO, which clients send on connecting."""
    return bool(server.call("COMMAND", "INFO", "client|setinfo")[0])


def test_what_the_probe_cannot_see_lasts_until_a_frame_is_taken(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server)
    writes, _ = watched(store)
    stream = store.layout.keys(0).frames
    server.call("XADD", stream, "5-1", "f", b"x")  # so that the next plain number is too small
    assert append(valkey.url, store, writes, FRAMES[:3]) == 0
    assert writes.lacks() == ENTRY
    assert counts(writes) == {"bad-entry-id": 3}
    server.call("DEL", stream)
    store.prepare()
    assert writes.lacks() == ENTRY
    assert append(valkey.url, store, writes, FRAMES[:1]) == 1
    assert writes.lacks() == ""


def test_a_store_without_windows_is_found_before_a_frame_comes(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server)
    writes, _ = watched(store)
    server.call("DEL", store.layout.keys(0).window(CLICKS.name))
    assert writes.lacks() == WINDOW
    assert append(valkey.url, store, writes, FRAMES[:2]) == 0
    assert counts(writes) == {"no-window": 2}
    store.prepare()
    assert writes.lacks() == ""


def test_a_working_store_is_probed_now_and_then(server: Server) -> None:
    store = new_store(server)
    writes, clock = watched(store)
    assert writes.lacks() == ""
    server.call("SET", store.layout.keys(0).frames, "something else")
    assert writes.lacks() == ""
    clock.now += 0.5
    assert writes.lacks() == TYPE


def test_a_success_elsewhere_forgives_nothing(server: Server) -> None:
    store = new_store(server, 2)
    writes, _ = watched(store)
    writes.lacks()
    writes.failed(ResponseError("unheard of"), [0, 1], 5)
    writes.succeeded([0])
    assert writes.lacks() == "Frames cannot be appended: the store refuses them."
    writes.succeeded([1])
    assert writes.lacks() == ""
    assert counts(writes) == {"other": 5}


def test_transient_failures_are_counted_and_leave_the_service_ready(server: Server) -> None:
    store = new_store(server)
    writes, _ = watched(store)
    writes.failed(StoreAway("no connection"), [0], 3)
    writes.failed(StreamFull("Partition 0"), [0], 2)
    assert writes.lacks() == ""
    assert counts(writes) == {"store-away": 3, "full": 2}


def test_full_streams_and_queues_are_counted(valkey: EmbeddedServer, server: Server) -> None:
    store = new_store(server)
    writes, _ = watched(store)

    async def scenario() -> list[object]:
        ingest = Ingest(valkey.url, store.layout, high_water=5, most_waiting=6, writes=writes)
        await ingest.start()
        first = asyncio.gather(*starmap(ingest.append, FRAMES), return_exceptions=True)
        done: list[object] = [*await first]
        done += await asyncio.gather(*starmap(ingest.append, FRAMES), return_exceptions=True)
        await ingest.stop()
        return done

    refused = [one for one in asyncio.run(scenario()) if isinstance(one, StreamFull)]
    assert (len(refused), counts(writes)) == (10, {"full": 10})
    Worker(store).drain()
    assert store.conservation().accepted == 6


def test_an_away_store_says_nothing_of_the_write_path(server: Server) -> None:
    writes = WritePath(Server("redis://127.0.0.1:1/0"), new_store(server).layout)
    assert writes.lacks() == ""
    writes.failed(ResponseError("WRONGTYPE x"), [0])
    assert writes.lacks() == TYPE


def test_causes_are_words_of_a_fixed_list() -> None:
    text = "The stream has exhausted the last possible ID, unable to add more items"
    assert cause_of(ResponseError(text)) == "bad-entry-id"
    assert cause_of(RuntimeError("secret")) == "other"
