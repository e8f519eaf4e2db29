"""A durable server, Valkey or Redis, for the tests of one file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from valkeys import running_valkey


@pytest.fixture(scope="module")
def url(binary: Path) -> Iterator[str]:
    """Start it, and return its address."""
    with running_valkey(binary=binary) as address:
        yield address
