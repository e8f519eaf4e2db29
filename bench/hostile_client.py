"""A client that holds hostile connections, in a process of its own.

It opens connections of one kind, and opens each again as soon as it is ended; an empty request
makes it open none again. Requests come as JSON lines, answers go back as JSON lines (see
``bench.worker.Worker``).
"""

import asyncio
import json
import socket
import sys
import threading
from collections import Counter
from typing import Any

import uvloop

HEAD = b"POST /frames HTTP/1.1\r\nHost: 127.0.0.1\r\n"
MODEL = b"GET /model HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HEADER = b"X-Long: "
BODY = 1 << 20
UNFINISHED = "unfinished header"
ENDLESS = "endless header"
SILENT = "silent"
SLOW_HEAD = "slow header"
SLOW_BODY = "slow body"
IDLE = "idle"
SLOW_READER = "slow reader"
KINDS = (UNFINISHED, ENDLESS, SILENT, SLOW_HEAD, SLOW_BODY, IDLE, SLOW_READER)

_FIRST = {
    UNFINISHED: HEAD + HEADER + b"a" * (4 << 20),
    ENDLESS: HEAD + HEADER,
    SILENT: b"",
    SLOW_HEAD: HEAD + HEADER,
    SLOW_BODY: HEAD + b"Content-Length: %d\r\n\r\n" % BODY + bytes(BODY - 4096),
    IDLE: HEALTH,
    SLOW_READER: MODEL,
}
_PIECE = b"a" * (1 << 16)
_PAUSE_S = 0.1
_SIP_S = 1.0
"""Between two reads, of 4 KiB at most, of a client that reads slowly."""


class _Connection(asyncio.Protocol):
    """One hostile connection."""

    def __init__(self, crowd: "Crowd", kind: str) -> None:
        self._crowd = crowd
        self._kind = kind
        self._transport: Any = None
        self._is_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(_FIRST[self._kind])
        if self._kind == ENDLESS:
            self.resume_writing()
        if self._kind in (SLOW_HEAD, SLOW_BODY):
            self._drip()

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 "):
            self._crowd.statuses[data[9:12].decode("latin-1")] += 1
        if self._kind == SLOW_READER:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(_SIP_S, self._sip)

    def resume_writing(self) -> None:
        """Send more of what never ends, as soon as there is room for it."""
        if self._kind == ENDLESS and not self._is_ended:
            while self._transport.get_write_buffer_size() < len(_PIECE):
                self._transport.write(_PIECE)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_ended = True
        self._crowd.lost(self._kind)

    def _sip(self) -> None:
        if not self._is_ended:
            self._transport.resume_reading()

    def _drip(self) -> None:
        if not self._is_ended:
            self._transport.write(b"a")
            asyncio.get_running_loop().call_later(_PAUSE_S, self._drip)


class Crowd:
    """Hostile connections, opened again as long as they are to be held."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self._port = self._open = 0
        self._reopens = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def hold(self, port: int, kind: str, connections: int) -> dict[str, Any]:  # Any: JSON
        """Open connections of a kind, beside those that are held."""
        self._port, self._reopens = port, True
        for _ in range(connections):
            await self._connect(kind)
        return {"open": self._open}

    async def leave(self) -> dict[str, Any]:
        """Open none again, and return what was answered so far."""
        self._reopens = False
        statuses = dict(self.statuses)
        self.statuses.clear()
        return {"statuses": statuses}

    def lost(self, kind: str) -> None:
        """Open the connection again."""
        self._open -= 1
        if self._reopens:
            task = asyncio.get_running_loop().create_task(self._connect(kind))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, kind: str) -> None:
        plain = socket.socket()
        plain.setblocking(False)
        if kind == SLOW_READER:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(plain, ("127.0.0.1", self._port))
        self._open += 1
        await loop.create_connection(lambda: _Connection(self, kind), sock=plain)


def main() -> None:
    """Serve requests from standard input until the input closes."""
    loop, crowd = uvloop.new_event_loop(), Crowd()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    for line in sys.stdin:
        request = json.loads(line)
        doing = crowd.hold(**request) if request else crowd.leave()
        answer = asyncio.run_coroutine_threadsafe(doing, loop).result()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
