"""The bounds of what waits for the next micro-batch, and of a micro-batch, to the frame."""

import asyncio

import pytest

from noisefloor.wire.frames import decode_frame
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.errors import StreamFull
from noisefloor_services.store.server import Server
from noisefloor_services.streams import ingest as module
from noisefloor_services.streams.ingest import Ingest
from stream_cases import CLICKS, NAMED, frame, new_store

DATA = [frame(CLICKS, 0, 3 * number) for number in range(20)]  # each of one row: equal sizes
FRAMES = [(data, decode_frame(data, NAMED)) for data in DATA]


def transactions(server: Server) -> int:
    stats = server.call("INFO", "commandstats").decode()
    lines = [line for line in stats.splitlines() if line.startswith("cmdstat_exec:")]
    return int(lines[0].split("calls=")[1].split(",")[0]) if lines else 0


def refused(valkey: EmbeddedServer, server: Server, *rounds: int) -> list[int]:
    """Append a number of frames at once, round by round; return how many of each were refused."""
    store = new_store(server)

    async def scenario() -> list[int]:
        ingest = Ingest(valkey.url, store.layout)
        await ingest.start()
        found = []
        for count in rounds:
            work = [ingest.append(*one) for one in FRAMES[:count]]
            done = await asyncio.gather(*work, return_exceptions=True)
            found.append(sum(isinstance(one, StreamFull) for one in done))
        await ingest.stop()
        return found

    return asyncio.run(scenario())


def test_bytes_that_wait_are_bounded_and_free_again(
    valkey: EmbeddedServer, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len({len(data) for data in DATA}) == 1
    monkeypatch.setattr(module, "MOST_WAITING_BYTES", 4 * len(DATA[0]))
    assert refused(valkey, server, 4, 5, 4, 6) == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("bound", "value", "expected"), [("MOST_BATCH", 4, 5), ("MOST_BATCH_BYTES", 1, 20)]
)
def test_a_micro_batch_is_bounded(
    valkey: EmbeddedServer,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    *,
    bound: str,
    value: int,
    expected: int,
) -> None:
    monkeypatch.setattr(module, bound, value)
    before = transactions(server)
    assert refused(valkey, server, 20) == [0]
    assert transactions(server) - before == expected
