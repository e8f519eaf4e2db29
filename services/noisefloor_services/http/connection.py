"""One connection of a client: uvicorn's, within bounds on what the client may make us keep.

uvicorn bounds neither the bytes nor the time of a request head, and its parser joins the pieces of
a header by copying all of them, piece after piece: a few megabytes of one header keep the loop
busy for seconds. Here a head that is too long, too slow or of too many headers is refused; so are
trailers, requests far ahead of their answers, and bodies in crumbs.
"""

from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from noisefloor_services.http.body_limits import WHOLE
from noisefloor_services.http.connection_limits import ConnectionLimits
from noisefloor_services.http.refusals import error_body

MOST_HEADERS = 100
MOST_CHUNKS = 4096
MOST_AHEAD = 16
"""Requests that may come before the one in front is answered."""

_LEAST_READ = 1 << 16
"""Bytes of an answer that a client takes within the idle time, unless fewer are left."""

_LINGER_S = 1.0
"""Between a refusal and the end: an end at once would take the refusal from the client, and make a
hostile one connect again."""

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
        """Go on with the next request, or wait for the client; uvicorn would set a timer each."""
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
            self._answer(status, error_body(error, detail))

    def _answer(self, status: int, body: bytes) -> None:
        if self._is_under_way:  # its body is what is refused: nobody else answers it
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
