"""Requests share transactions, are refused in time, and are promised nothing that is not kept."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path

import pytest

from noisefloor.wire.frames import decode_frame
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.errors import StoreAway, StreamFull
from noisefloor_services.store.scripts import APPEND
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.ingest import Ingest
from noisefloor_services.streams.worker import Worker
from noisefloor_services.streams.write_path import Producer, WritePath
from stream_cases import CLICKS, NAMED, frame, new_store, sent

FRAMES = [(one, decode_frame(one, NAMED)) for one in (frame(CLICKS, 0, n) for n in range(64))]


def transactions(server: Server) -> int:
    stats = server.call("INFO", "commandstats").decode()
    lines = [line for line in stats.splitlines() if line.startswith("cmdstat_exec:")]
    return int(lines[0].split("calls=")[1].split(",")[0]) if lines else 0


async def outcomes(work: list[Coroutine[object, object, None]]) -> list[str]:
    done = await asyncio.gather(*work, return_exceptions=True)
    return [type(one).__name__ for one in done]


async def appended(ingest: Ingest, count: int) -> list[str]:
    return await outcomes([ingest.append(data, read) for data, read in FRAMES[:count]])


def test_concurrent_requests_share_a_transaction(valkey: EmbeddedServer, server: Server) -> None:
    store = new_store(server, 3)
    server.call("SCRIPT", "LOAD", APPEND.text)  # a server that lacks it is asked twice

    async def scenario() -> list[str]:
        ingest = Ingest(valkey.url, store.layout)
        await ingest.start()
        try:
            return await appended(ingest, 64)
        finally:
            await ingest.stop()

    before = transactions(server)
    assert asyncio.run(scenario()) == ["NoneType"] * 64
    assert transactions(server) - before == 1
    Worker(store).drain()
    account = store.conservation()
    assert (account.accepted, account.counted, account.missing) == (64, 64, 0)


def test_a_retry_by_way_of_the_producer_finds_the_same_partition(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server, 5)

    async def scenario() -> None:
        ingest = Ingest(valkey.url, store.layout)
        await ingest.start()
        await appended(ingest, 64)
        await ingest.stop()

    asyncio.run(scenario())
    Worker(sent(store, [data for data, _ in FRAMES])).drain()
    assert store.conservation().duplicates == 64


def test_a_long_stream_refuses_until_it_is_shorter(valkey: EmbeddedServer, server: Server) -> None:
    store = new_store(server)

    async def scenario() -> tuple[list[str], list[str], list[str]]:
        ingest = Ingest(valkey.url, store.layout, high_water=10)
        await ingest.start()
        first = await appended(ingest, 10)
        refused = await appended(ingest, 20)
        await asyncio.to_thread(Worker(store).drain)
        for _ in range(200):
            again = await appended(ingest, 1)
            if again == ["NoneType"]:
                break
            await asyncio.sleep(0.01)
        await ingest.stop()
        return first, refused, again

    first, refused, again = asyncio.run(scenario())
    assert first == ["NoneType"] * 10
    assert refused == ["StreamFull"] * 20
    assert again == ["NoneType"]
    assert store.conservation().accepted == 11


def test_the_queue_of_requests_is_bounded(valkey: EmbeddedServer, server: Server) -> None:
    store = new_store(server)

    async def scenario() -> list[str]:
        ingest = Ingest(valkey.url, store.layout, most_waiting=16)
        await ingest.start()
        try:
            return await appended(ingest, 64)
        finally:
            await ingest.stop()

    done = asyncio.run(scenario())
    assert done.count("StreamFull") == 48
    assert store.conservation().accepted == 16


def test_stopping_finishes_what_waits_and_refuses_what_comes(
    valkey: EmbeddedServer, server: Server
) -> None:
    store = new_store(server)

    async def scenario() -> tuple[list[str], list[str]]:
        ingest = Ingest(valkey.url, store.layout)
        await ingest.start()
        waiting = asyncio.create_task(appended(ingest, 64))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await ingest.stop()
        return await waiting, await appended(ingest, 3)

    done, refused = asyncio.run(scenario())
    assert done == ["NoneType"] * 64
    assert refused == ["StoreAway"] * 3
    assert store.conservation().accepted == 64


def test_a_server_that_is_away_promises_nothing_and_comes_back(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as embedded:
        store = new_store(Server(embedded.url))

        async def scenario() -> list[list[str]]:
            ingest = Ingest(embedded.url, store.layout)
            await ingest.start()
            seen = [await appended(ingest, 3)]
            embedded.kill()
            seen.append(await appended(ingest, 3))
            embedded.start()
            seen.append(await appended(ingest, 3))
            await ingest.stop()
            return seen

        assert asyncio.run(scenario()) == [["NoneType"] * 3, ["StoreAway"] * 3, ["NoneType"] * 3]
        Worker(store).drain()
        account = store.conservation()
        assert (account.counted, account.missing) == (3, 0)


def test_a_server_that_hangs_refuses_also_those_who_gathered_meanwhile(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as embedded:
        store = new_store(Server(embedded.url))

        writes = WritePath(store.server, store.layout)

        async def scenario() -> list[list[str]]:
            ingest = Ingest(embedded.url, store.layout, timeout_s=0.5, writes=writes)
            await ingest.start()
            seen = [await appended(ingest, 3)]
            os.kill(embedded.pid, signal.SIGSTOP)
            first = asyncio.create_task(appended(ingest, 3))
            await asyncio.sleep(0.1)  # these are on their way; the next ones gather
            second = asyncio.create_task(appended(ingest, 3))
            seen.append(await first)
            for _ in range(10):
                await asyncio.sleep(0)
            assert second.done()  # refused with the first: no second wait for the server
            seen.append(await second)
            os.kill(embedded.pid, signal.SIGCONT)
            seen.append(await appended(ingest, 3))
            await ingest.stop()
            return seen

        away = ["StoreAway"] * 3
        assert asyncio.run(scenario()) == [["NoneType"] * 3, away, away, ["NoneType"] * 3]
        assert [one.value for one in writes.samples() if one.value] == [6]
        Worker(store).drain()
        account = store.conservation()
        assert (account.counted, account.missing) == (3, 0)


def test_full_memory_refuses_producers_and_lets_workers_free_it(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as embedded:
        server = Server(embedded.url)
        store = new_store(server)

        async def scenario() -> list[list[str]]:
            ingest = Ingest(embedded.url, store.layout)
            await ingest.start()
            seen = [await appended(ingest, 8)]
            server.call("CONFIG", "SET", "maxmemory", "1mb")
            seen.append(await appended(ingest, 8))
            server.call("CONFIG", "SET", "maxmemory", "1gb")
            seen.append(await appended(ingest, 8))
            await ingest.stop()
            return seen

        assert asyncio.run(scenario()) == [["NoneType"] * 8, ["StreamFull"] * 8, ["NoneType"] * 8]
        server.call("CONFIG", "SET", "maxmemory", "1mb")
        Worker(store).drain()  # memory is only freed if what waits can still be counted
        account = store.conservation()
        assert (account.accepted, account.counted, account.missing) == (16, 8, 0)


def test_a_producer_respects_the_high_water_mark(server: Server) -> None:
    store: EpochStore = new_store(server)
    producer = Producer(server, store.layout, store.kinds, high_water=5)
    producer.append([data for data, _ in FRAMES[:5]])
    with pytest.raises(StreamFull, match="Partition 0") as refused:
        producer.append([FRAMES[5][0]])
    assert refused.value.retry_after_s == 1
    assert store.waiting() == 5


def test_an_address_with_a_password_is_not_shown() -> None:
    server = Server("redis://:hunter2@127.0.0.1:1/0")
    with pytest.raises(StoreAway) as away:
        server.call("PING")
    assert "hunter2" not in str(away.value)
    assert away.value.__cause__ is None
