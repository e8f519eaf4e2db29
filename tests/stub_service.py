"""A made-up service on the loopback address: it takes frames, counts ids, and says so.

It answers ``/readyz`` and ``/collections/NAME/conservation`` as ours do. What it says to a request
can be scripted, so that a client's book-keeping can be checked to the last request.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_ID = re.compile(rb"[0-9a-f]{32}")
Script = Callable[[int, bytes], tuple[int, float | None]]
"""Takes the number of a request and its batch id; returns status and Retry-After. A status of 0
ends the connection without an answer."""


def accepted(number: int, batch_id: bytes) -> tuple[int, float | None]:
    """Take every request."""
    return 202, None


class StubService:
    """What the service has seen.

    Args:
        script: What it says to each request.
        ready: What ``/readyz`` answers.
    """

    def __init__(self, script: Script, ready: dict[str, Any]) -> None:
        self.script = script
        self.ready = ready
        self.seen: Counter[bytes] = Counter()
        self.taken: Counter[bytes] = Counter()
        self.missing = 0
        self._lock = threading.Lock()
        self._number = 0

    def judge(self, body: bytes) -> tuple[int, float | None]:
        """Note a request, and return what is said to it."""
        found = _ID.search(body)
        batch_id = found.group(0) if found else b""
        with self._lock:
            number = self._number
            self._number += 1
            self.seen[batch_id] += 1
        answer = self.script(number, batch_id)
        with self._lock:
            if answer[0] in (200, 202):
                self.taken[batch_id] += 1
        return answer

    def account(self) -> dict[str, Any]:
        """Return the conservation report."""
        accepted, distinct = self.taken.total(), len(self.taken)
        return {
            "accepted": accepted, "counted": distinct, "duplicates": accepted - distinct,
            "dead_letters": 0, "late": 0, "pending": 0, "reports": 0,
            "missing": self.missing, "is_conserved": not self.missing,
        }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: StubService

    def do_GET(self) -> None:
        body = self.service.ready if self.path == "/readyz" else self.service.account()
        self._answer(200, json.dumps(body).encode(), None)

    def do_POST(self) -> None:
        status, retry_s = self.service.judge(self.rfile.read(int(self.headers["Content-Length"])))
        if status:
            self._answer(status, b"", retry_s)
        else:
            self.close_connection = True

    def _answer(self, status: int, body: bytes, retry_s: float | None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if retry_s is not None:
            self.send_header("Retry-After", f"{retry_s:g}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # of 5, connections beyond would wait for seconds

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that waited no longer."""


READY = {"lacks": [], "durability": "memory", "promise": "Nothing is kept."}


@contextmanager
def serving(
    script: Script = accepted, ready: dict[str, Any] | None = None
) -> Iterator[tuple[int, StubService]]:
    """Run a service, and yield its port and what it has seen."""
    service = StubService(script, READY if ready is None else ready)
    handler = type("Handler", (_Handler,), {"service": service})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1], service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
