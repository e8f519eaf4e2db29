"""Every service as a process, among hostile connections: small, alive, and free again soon."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from live_apps import process

NAMES = ("ad-server", "aggregator", "model-publisher")
MOST_MB = 256
SLOTS = 50
VARIABLES = {
    "REDIS_URL": "redis://127.0.0.1:1/0",  # nobody there: what is tested comes before it
    "CONNECTIONS": str(SLOTS),
    "HEAD_TIME_S": "0.5",
    "IDLE_TIME_S": "0.5",
    "BODY_TIME_S": "0.5",
}
HEAD = b"POST /frames HTTP/1.1\r\nHost: here\r\n"
SENT = {
    "unfinished": HEAD + b"X: " + b"a" * (2 << 20),
    "silent": b"",
    "half a head": HEAD,
    "half a body": HEAD + b"Content-Length: 1000000\r\n\r\n" + bytes(900_000),
    "idle": b"GET /healthz HTTP/1.1\r\n\r\n",
}


@contextmanager
def open_connections(port: int, sent: bytes, count: int) -> Iterator[list[socket.socket]]:
    """Hold connections that sent what the service would take of it."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            for _ in range(count)
        ]
        for one in made:
            one.setblocking(False)
        for start in range(0, len(sent), 1 << 18):
            for one in made:
                with suppress(OSError):  # full, or ended already
                    one.send(sent[start : start + (1 << 18)])
        yield made


def is_ended(one: socket.socket) -> bool:
    """Whether the other side has ended a connection."""
    try:
        while one.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def memory_mb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_service_among_hostile_connections_stays_small_and_alive(
    name: str, tmp_path: Path
) -> None:
    with process(name, tmp_path, VARIABLES) as service, ExitStack() as stack:
        port = urlsplit(service.url).port
        assert port is not None
        everybody = []
        for sent in SENT.values():  # several times as many as there are slots
            everybody += stack.enter_context(open_connections(port, sent, SLOTS))
            for path, status in (("/healthz", 200), ("/readyz", 503), ("/metrics", 401)):
                answer = httpx.get(f"{service.url}{path}", timeout=10)
                assert answer.status_code == status
                assert ("retry-after" in answer.headers) == (status == 503)
        assert memory_mb(service.process.pid) < MOST_MB
        for _ in range(1500):
            everybody = [one for one in everybody if not is_ended(one)]
            if not everybody:
                break
            time.sleep(0.01)
        assert not everybody
        assert service.end() == 0
