"""One real server for all tests of the streams; each test has keys of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from noisefloor_services.store.durability import Durability
from noisefloor_services.store.embedded import EmbeddedServer
from noisefloor_services.store.server import Server


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory, binary: Path) -> Iterator[EmbeddedServer]:
    """Start a server, Valkey or Redis, that keeps everything in memory."""
    folder = tmp_path_factory.mktemp("valkey")
    with EmbeddedServer(folder, Durability.MEMORY, binary=binary) as embedded:
        yield embedded


@pytest.fixture(scope="session")
def server(valkey: EmbeddedServer) -> Iterator[Server]:
    """Connect to it."""
    connected = Server(valkey.url)
    yield connected
    connected.close()
