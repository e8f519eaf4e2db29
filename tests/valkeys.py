"""A Valkey or Redis server for tests: the real one, on a unix socket, with its own folder.

Unlike ``EmbeddedServer`` it may want passwords, takes any option, and ends without a warning.
"""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, RedisError

from noisefloor_services.store.embedded import server_binary

VALKEY, REDIS = "valkey", "redis"
DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")


def binary_of(product: str) -> Path:
    """Return the server of a product; where there is no Redis, the test is skipped."""
    if product == VALKEY:
        return server_binary()
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("redis-server is not on PATH: Debian has it as a package")
    return Path(found)


def is_recent(binary: Path) -> bool:
    """Tell whether a server is Valkey, or Redis of 7.2 or later."""
    shown = subprocess.run([str(binary), "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"v=(\d+)\.(\d+)", shown.stdout)
    assert found is not None, shown.stdout
    return (int(found.group(1)), int(found.group(2))) >= (7, 2)


@contextmanager
def running_valkey(*options: str, binary: Path | None = None) -> Iterator[str]:
    """Start a server in a new folder, and yield its address."""
    with folder() as place, server(place, *options, binary=binary) as address:
        yield address


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder with a short name: a socket's path is at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="nf-"))
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextmanager
def server(place: Path, *options: str, binary: Path | None = None) -> Iterator[str]:
    """Start a server that keeps what it acknowledges, and kill it in the end."""
    socket = place / "s"
    socket.unlink(missing_ok=True)
    where = ("--port", "0", "--unixsocket", str(socket), "--dir", str(place))
    process = subprocess.Popen(
        [str(binary or server_binary()), *where, *DURABLE, *options], stdout=subprocess.DEVNULL
    )
    try:
        _wait(f"unix://{socket}", process)
        yield f"unix://{socket}"
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Ask until the server answers, for ten seconds at most."""
    with Redis.from_url(url) as client:
        for _ in range(500):
            assert process.poll() is None, "the server did not start"
            try:
                client.ping()
                return
            except AuthenticationError:
                return  # it is up, and wants a password
            except RedisError:
                time.sleep(0.02)
    raise AssertionError("the server did not answer")
