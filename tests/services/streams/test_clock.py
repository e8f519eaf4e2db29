"""The store's clock is set an hour back and forth: the frames of a dead worker are settled.

The server runs under libfaketime, which sets its wall clock and leaves its monotonic one alone.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer, server_binary
from noisefloor_services.store.keys import GROUP
from noisefloor_services.store.server import Server
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker
from stream_cases import CLICKS, frame, new_store, sent

HOUR = 3600
FRAMES = [frame(CLICKS, 0, number) for number in range(30)]

SetClock = Callable[[int], None]


def preloaded(folder: Path, offset: Path) -> Path:
    """Write a program that starts a server whose clock is off by what a file says.

    Valkey's: Debian's Redis hangs in its allocator under the library.
    """
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if shutil.which("faketime") is None or not libraries:
        pytest.skip("faketime is not installed: Debian has it as a package")
    options = {
        "LD_PRELOAD": libraries[0],
        "FAKETIME_TIMESTAMP_FILE": offset,
        "FAKETIME_NO_CACHE": 1,
        "FAKETIME_DONT_FAKE_MONOTONIC": 1,
    }
    words = " ".join(f"{name}={value}" for name, value in options.items())
    script = folder / "server"
    script.write_text(f'#!/bin/sh\nexec env {words} {server_binary()} "$@"\n')
    script.chmod(0o700)
    return script


@pytest.fixture
def clock_of(tmp_path: Path) -> Iterator[tuple[Server, SetClock]]:
    """Start a server, and return it with what sets its clock."""
    offset = tmp_path / "offset"
    offset.write_text("+0s\n")
    program = preloaded(tmp_path, offset)
    with EmbeddedServer(tmp_path / "data", Durability.MEMORY, binary=program) as embedded:
        server = Server(embedded.url)

        def set_clock(seconds: int) -> None:
            fresh = offset.with_suffix(".new")
            fresh.write_text(f"{seconds:+d}s\n")
            os.replace(fresh, offset)
            for _ in range(500):  # the server looks at the file now and then
                if abs(int(server.call("TIME")[0]) - time.time() - seconds) < 60:
                    return
                time.sleep(0.01)
            raise AssertionError("the clock of the server was not set")

        yield server, set_clock
        server.close()


def idle_ms(store: EpochStore) -> int:
    stream = store.layout.keys(0).frames
    ((_, _, idle, _),) = store.server.call("XPENDING", stream, GROUP, "-", "+", 1)
    return int(idle)


def test_a_clock_that_is_set_stalls_nothing_and_takes_over_nothing(
    clock_of: tuple[Server, SetClock],
) -> None:
    server, set_clock = clock_of
    store = new_store(server)
    Worker(sent(store, FRAMES))._read(block_s=0.0)  # and never heard of again
    set_clock(-HOUR)
    assert idle_ms(store) == 0  # for an hour to come, by the server's word
    Worker(store, abandoned_s=0.1).drain(patience_s=20)
    assert store.conservation().counted == len(FRAMES)

    living = Worker(sent(store, FRAMES[:5]))
    deliveries = living._read(block_s=0.0)
    set_clock(HOUR)
    assert idle_ms(store) > 1000 * HOUR  # though it was given a moment ago
    assert Worker(store).sweep() == 0
    assert living._settle(deliveries, reads_ahead=False) == 5

    Worker(sent(store, FRAMES[:5]))._read(block_s=0.0)
    Worker(store, abandoned_s=0.1).drain(patience_s=20)
    account = store.conservation()
    assert (account.counted, account.duplicates, account.pending) == (len(FRAMES), 10, 0)
