"""Connections of clients: uvicorn's protocol, within bounds on number, bytes and time.

uvicorn bounds neither the bytes nor the time of a request head, and its parser joins the pieces of
a header by copying all of them, piece after piece: a few megabytes of one header keep the loop
busy for seconds. Here a head that is too long, too slow or of too many headers is refused; so are
trailers, requests far ahead of their answers, and bodies in very many chunks.

Every connection takes a slot. When all are taken, the connection that has waited longest for its
client is dropped, so that silent or slow clients cannot keep others out. Only if every connection
has a request that is being answered is a new one refused; some slots beyond the limit still
answer whether the service is alive and ready.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from noisefloor_services.http.bodies import error_body, refuse
from noisefloor_services.http.body_limits import WHOLE

HEALTH = ("/healthz", "/readyz")
RESERVE = 64
"""Connections beyond the limit, which answer about health only."""

_LOOKS = 4
"""Checks for late connections within the shortest time limit."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What a connection may take.

    Attributes:
        head_bytes: Of a request line and its headers.
        head_time_s: Within which a head has to be there, from its first byte.
        idle_time_s: Without a request under way; also for a client to take 64 KiB of an answer.
        connections: At the same time.
    """

    head_bytes: int = 1 << 14
    head_time_s: float = 5.0
    idle_time_s: float = 10.0
    connections: int = 4096


class Peer(Protocol):
    """A connection, as far as it matters here."""

    def look(self, now_s: float) -> None:
        """End it if it is late."""

    def drop(self) -> None:
        """End it at once."""


class ConnectionLimits:
    """All connections of a service.

    Args:
        bounds: What each may take, and how many there may be.
    """

    __slots__ = ("_is_watched", "_open", "_waiting", "bounds")

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.bounds = bounds
        self._open: set[Peer] = set()
        self._waiting: dict[Peer, None] = {}
        self._is_watched = False

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, peer: Peer, app: ASGIApp) -> ASGIApp:
        """Give a connection a slot, and return what answers its requests; it may be dropped."""
        self._watch()
        self._open.add(peer)
        if len(self._open) > self.bounds.connections:
            self._drop_oldest()
        self._waiting[peer] = None
        over = len(self._open) - self.bounds.connections
        if over > RESERVE:
            self.lose(peer)
            peer.drop()
        return app if over <= 0 else health_only(app)

    def wait(self, peer: Peer) -> None:
        """Note that a connection waits for its client from now on."""
        if peer in self._open:
            self._waiting[peer] = None

    def work(self, peer: Peer) -> None:
        """Note that a connection has sent a whole request, which is to be answered."""
        self._waiting.pop(peer, None)

    def lose(self, peer: Peer) -> None:
        """Forget a connection that has ended."""
        self._open.discard(peer)
        self._waiting.pop(peer, None)

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._waiting), None)
        if oldest is not None:
            self.lose(oldest)
            oldest.drop()

    def _watch(self) -> None:
        """Start the timer that checks all connections, unless it runs or there are none."""
        if not self._is_watched:
            self._is_watched = True
            shortest_s = min(self.bounds.head_time_s, self.bounds.idle_time_s)
            asyncio.get_running_loop().call_later(shortest_s / _LOOKS, self._look)

    def _look(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for peer in list(self._open):
            peer.look(now_s)
        self._is_watched = False
        if self._open:
            self._watch()


def health_only(app: ASGIApp) -> ASGIApp:
    """Return an application that answers health checks, and 503 to everything else."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and scope["path"] in HEALTH:
            await app(scope, receive, send)
            return
        detail = "Too many connections: send the same again."
        headers = {"Retry-After": "1", "Connection": "close"}
        await refuse(send, 503, "too-many-connections", detail, headers=headers)

    return answer


MOST_HEADERS = 100
MOST_CHUNKS = 4096
MOST_AHEAD = 16
"""Requests that may come before the one in front is answered."""

_LEAST_READ = 1 << 16
"""Bytes of an answer that a client takes within the idle time, unless fewer are left."""

_LINGER_S = 1.0
"""Between a refusal and the end of the connection. Closing at once, with unread data, would reset
the connection before the client reads the refusal, and let a hostile client connect again."""

_BAD = (400, "bad-request", "This is no HTTP request.")
_TOO_LONG = (431, "head-too-long", "The request line and headers are longer than is accepted.")
_TOO_SLOW = (408, "head-too-slow", "The request line and headers took too long.")
_TOO_MANY_CHUNKS = (413, "too-many-chunks", "The body came in more chunks than are accepted.")


class _TooMuch(Exception):
    """The client sends more than is accepted: the parser has to stop."""


class BoundedConnection(HttpToolsProtocol):
    """A connection within bounds.

    Args:
        shared: All connections, and the bounds.
        given: What uvicorn gives (Any: its own types).
    """

    def __init__(self, shared: ConnectionLimits, **given: Any) -> None:
        super().__init__(**given)
        self._shared = shared
        self._bounds = shared.bounds
        self._most = shared.bounds.head_bytes
        self._refusal = _BAD
        self._is_refused = self._is_in_head = False
        self._chunks = 0
        # Bytes of a head, or since a part of a body was passed on: the parser keeps them.
        self._unread = 0
        self.headers = []  # trailers are counted here as well
        self._head_s = self._idle_s = self._read_s = self.loop.time()
        self._unsent = 0

    def connection_made(self, transport: Any) -> None:  # Any: as uvicorn types it
        """Take a slot."""
        super().connection_made(transport)
        self.app = self._shared.admit(self, self.app)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the slot back."""
        self._shared.lose(self)
        super().connection_lost(exc)

    def data_received(self, data: Any) -> None:  # Any: bytes, or a view of them
        """Parse what came, in pieces no longer than a head may be."""
        most = self._most
        if len(data) > most:
            rest = memoryview(data)
            for start in range(0, len(rest), most):
                self.data_received(rest[start : start + most])
        elif not self._is_refused:
            self._unread += len(data)
            super().data_received(data)
            if self._unread > most or len(self.headers) > MOST_HEADERS:
                self._refuse(*_TOO_LONG)

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser stopped at."""
        self._refuse(*self._refusal)

    def on_message_begin(self) -> None:
        """Count and time a new head."""
        if len(self.pipeline) >= MOST_AHEAD:
            raise _TooMuch
        self._is_in_head = True
        self._head_s = self.loop.time()
        self._chunks = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """End the head.

        Its size is looked at only if it may be too long: a callback for each header would cost
        more than all other bounds together.
        """
        if len(self.headers) > MOST_HEADERS or (
            self._unread > self._most and self._head_bytes() > self._most
        ):
            self._refusal = _TOO_LONG
            raise _TooMuch
        super().on_headers_complete()
        self._unread = 0
        self._is_in_head = False

    def on_chunk_header(self) -> None:
        """Count a chunk: each costs the same, however short it is."""
        self._unread = 0
        self._chunks += 1
        if self._chunks > MOST_CHUNKS:
            self._refusal = _TOO_MANY_CHUNKS
            raise _TooMuch

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._unread = 0
        self.scope[WHOLE] = True  # type: ignore[literal-required]  # our own entry
        if not self.cycle.response_complete:
            self._shared.work(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next request, or wait for the client.

        It replaces uvicorn's method, which sets a keep-alive timer after every request: here one
        timer checks all connections.
        """
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
                return
        self._idle_s = self.loop.time()
        self._shared.wait(self)

    def shutdown(self) -> None:
        """End when what is under way is answered; a client that was refused has had its answer."""
        if self._is_refused and not self._is_under_way:
            self.drop()
        else:
            super().shutdown()

    def drop(self) -> None:
        """End at once."""
        self.transport.abort()

    def look(self, now_s: float) -> None:
        """End if the client is late with a head, with taking an answer, or with anything."""
        if self._is_late_reader(now_s):
            self.drop()
        elif self._is_refused:
            pass  # it ends by itself
        elif self._is_in_head:
            if now_s - self._head_s >= self._bounds.head_time_s:
                self._refuse(*_TOO_SLOW)
        elif not self._is_under_way and now_s - self._idle_s >= self._bounds.idle_time_s:
            self.transport.close()

    @property
    def _is_under_way(self) -> bool:
        """Whether a request waits for its answer."""
        return self.cycle is not None and not self.cycle.response_complete

    def _is_late_reader(self, now_s: float) -> bool:
        unsent = self.transport.get_write_buffer_size()
        if not unsent or self._unsent - unsent >= _LEAST_READ or not self._unsent:
            self._unsent, self._read_s = unsent, now_s
        return now_s - self._read_s >= self._bounds.idle_time_s

    def _head_bytes(self) -> int:
        """Return the length of the address and the headers."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse(self, status: int, error: str, detail: str) -> None:
        """Read no more, answer if it is this request's turn, and end."""
        if self._is_refused:
            return
        self._is_refused = True
        self.flow.pause_reading()
        if self._is_under_way and not self.cycle.more_body:
            self.cycle.keep_alive = False  # earlier requests get their answers, then it ends
        elif self._is_under_way and (self.pipeline or self.cycle.response_started):
            self.drop()
        else:
            self._answer(status, error_body(status, error, detail))

    def _answer(self, status: int, body: bytes) -> None:
        if self._is_under_way:  # its body is refused, so the application will not answer it
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        pairs = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in pairs)
        self.transport.write(STATUS_LINE[status] + lines + b"\r\n" + body)
        self.loop.call_later(_LINGER_S, self.drop)
        self._shared.wait(self)


def connection_factory(shared: ConnectionLimits) -> Any:  # Any: what uvicorn takes for a class
    """Return what makes the connections of a server."""
    return partial(BoundedConnection, shared)
