"""Limits on request bodies: size, depth, time and encoding, before any route sees them.

A body is read completely here, within its limits, and passed on in one piece, so that a refused
request has no effect. That holds for chunked bodies, too, of which no length is announced.
Compressed bodies are refused: a kilobyte may decompress to a gigabyte. Unfinished bodies share a
bounded buffer: when it is full, the oldest unfinished body is dropped.

One timer serves the deadlines of all bodies: a timer each costs more than reading a body. The
depth of JSON is found without parsing it, since a parser may fail on JSON that is too deep.
"""

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noisefloor.checks import check_count, check_finite
from noisefloor.errors import BadParameter
from noisefloor_services.http.bodies import refuse

_BRACKETS = b"[]{}"
_OTHERS = bytes(code for code in range(256) if code not in _BRACKETS)
# An unterminated string matches to the end of the data. Otherwise the pattern would be tried
# again from each of its quotes, in quadratic time. The possessive *+ forbids backtracking.
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def is_deeper(data: bytes, most: int) -> bool:
    """Tell whether brackets ever nest deeper than ``most``; brackets within texts do not count."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False  # the usual case, at the speed of counting
    depth = 0
    for code in _TEXTS.sub(b"", data).translate(None, _OTHERS):
        depth += 1 if code in b"[{" else -1
        if depth > most:
            return True
    return False


_T = TypeVar("_T")
_SWEEPS = 4
"""Checks within one time limit: a body is ended at most this fraction of the limit too late."""


class Deadline:
    """Cancels work that takes longer than a limit; the delay is up to a quarter of the limit.

    Args:
        time_s: The limit.
    """

    __slots__ = ("_late", "_loop", "_started", "_time_s")

    def __init__(self, time_s: float) -> None:
        self._time_s = time_s
        self._started: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def bound(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait for the work in the current task; TimeoutError if it takes too long."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a coroutine runs in one
        loop = task.get_loop()
        if loop is not self._loop:
            self._watch(loop)
        self._started[task] = loop.time()
        try:
            return await work
        except asyncio.CancelledError:
            # If the task was cancelled from outside as well, that cancellation has to go on.
            if task in self._late and not task.uncancel():
                raise TimeoutError from None
            raise
        finally:
            self._late.discard(task)
            self._started.pop(task, None)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._started.clear()
        loop.call_later(self._time_s / _SWEEPS, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task, start_s in self._started.items():
            if now - start_s >= self._time_s and task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._started:
            loop.call_later(self._time_s / _SWEEPS, self._sweep, loop)
        else:
            self._loop = None  # no body is being read: the next one starts the timer again


@dataclass(frozen=True, slots=True)
class BodyBounds:
    """Bounds of a request body.

    Attributes:
        size_bytes: Largest length.
        depth: Deepest nesting of JSON.
        time_s: Within which the whole body has to arrive; up to a quarter more is allowed.
    """

    size_bytes: int = 1 << 20
    depth: int = 32
    time_s: float = 10.0

    def __post_init__(self) -> None:
        check_count(self.size_bytes, "size_bytes", least=0)
        check_count(self.depth, "depth")
        if check_finite(self.time_s, "time_s") <= 0:
            raise BadParameter("time_s", self.time_s, "> 0")


WHOLE = "noisefloor.whole"
"""Set in the scope of a request whose body was there before the application was called."""

MOST_BUFFERED = 32
"""Size of the buffer for unfinished bodies, in bodies of the largest size."""


class _Refused(Exception):
    """A body breaks a limit: status, name, sentence."""


class _Unfinished:
    """The part of a body that has arrived, unless it was dropped."""

    __slots__ = ("is_given_up", "parts", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.is_given_up = False

    def whole(self, last: bytes) -> bytes:
        """Return all of it, now that the last part is there."""
        if self.is_given_up:
            raise _Refused(*_GIVEN_UP)
        return b"".join((*self.parts, last)) if self.parts else last


_TOO_LARGE = (413, "body-too-large", "The body is longer than is accepted here.")
_TOO_SLOW = (408, "body-too-slow", "The body took longer than is waited for here.")
_GIVEN_UP = (503, "too-many-bodies", "Too many bodies come in slowly: send the same again.")
_TOO_DEEP = (422, "json-too-deep", "The JSON nests deeper than is accepted here.")
_ENCODED = (415, "encoded-body", "Content-Encoding is not accepted: send it as it is.")
_LENGTH = (400, "bad-length", "Content-Length is not one whole number.")


class BodyLimits:
    """Reads each body within its limits, or refuses it.

    Args:
        app: What gets the bodies.
        limits: Their bounds.
    """

    __slots__ = ("_app", "_buffered_bytes", "_deadline", "_limits", "_unfinished")

    def __init__(self, app: ASGIApp, limits: BodyBounds | None = None) -> None:
        self._app = app
        self._limits = limits or BodyBounds()
        self._deadline = Deadline(self._limits.time_s)
        self._unfinished: dict[_Unfinished, None] = {}
        self._buffered_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            has_body, may_be_json = _announced(scope, self._limits.size_bytes)
            if not has_body:
                await self._app(scope, receive, send)
                return
            # A body that has arrived needs no deadline, which would cost a twentieth of the rate.
            reading = self._gathered(receive)
            body = await (reading if scope.get(WHOLE) else self._in_time(reading))
            if body and may_be_json and is_deeper(body, self._limits.depth):
                raise _Refused(*_TOO_DEEP)
        except _Refused as error:
            status, name, detail = error.args
            later = {"Retry-After": "1"} if status == 503 else {}
            await refuse(send, status, name, detail, headers={"Connection": "close", **later})
            return
        if body is not None:
            await self._app(scope, _replayed(body, receive), send)

    async def _in_time(self, reading: Coroutine[Any, Any, bytes | None]) -> bytes | None:
        """Return what is read, within the time that a body may take."""
        try:
            return await self._deadline.bound(reading)
        except TimeoutError:
            raise _Refused(*_TOO_SLOW) from None

    async def _gathered(self, receive: Receive) -> bytes | None:
        """Return the whole body; None if the caller went away."""
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            whole: bytes = message.get("body", b"")  # the usual case
            if len(whole) <= self._limits.size_bytes:
                return whole
        return await self._joined(message, receive)

    async def _joined(self, message: Message, receive: Receive) -> bytes | None:
        body = _Unfinished()
        try:
            while True:
                if message["type"] == "http.disconnect":
                    return None
                part = message.get("body", b"")
                if body.size + len(part) > self._limits.size_bytes:
                    raise _Refused(*_TOO_LARGE)
                if not message.get("more_body", False):
                    return body.whole(part)
                self._buffer(body, part)
                message = await receive()
        finally:
            self._release(body)

    def _buffer(self, body: _Unfinished, part: bytes) -> None:
        """Buffer a part of an unfinished body; if the buffer is full, drop the oldest body.

        A dropped body is still read until its deadline: an immediate answer would only make a
        hostile client send the next one.
        """
        body.size += len(part)
        if body.is_given_up:
            return
        body.parts.append(part)
        self._unfinished[body] = None
        self._buffered_bytes += len(part)
        while self._buffered_bytes > MOST_BUFFERED * self._limits.size_bytes:
            oldest = next(iter(self._unfinished))
            oldest.is_given_up = True
            oldest.parts.clear()
            self._release(oldest)

    def _release(self, body: _Unfinished) -> None:
        if body in self._unfinished:
            del self._unfinished[body]
            self._buffered_bytes -= body.size


def _announced(scope: Scope, most_bytes: int) -> tuple[bool, bool]:
    """Read the headers, once, and refuse by them what can be refused by them.

    Returns:
        Whether there may be a body, and whether it may be parsed as JSON: FastAPI tries where no
        type is given, too.
    """
    has_body = scope["method"] not in ("GET", "HEAD")
    has_length = has_type = False
    may_be_json = True
    for name, value in scope["headers"]:
        if name == b"content-length":
            _check_length(value, most_bytes, is_second=has_length)
            has_length = has_body = True
        elif name == b"content-type":
            may_be_json = b"json" in value.lower() or (has_type and may_be_json)
            has_type = True
        elif name == b"transfer-encoding":
            has_body = True
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise _Refused(*_ENCODED)
    return has_body, may_be_json


def _check_length(value: bytes, most_bytes: int, *, is_second: bool) -> None:
    if is_second or not value.isdigit() or len(value) > 19:
        raise _Refused(*_LENGTH)
    if int(value) > most_bytes:
        raise _Refused(*_TOO_LARGE)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Hand the body on once; then whatever comes, which is the caller going away."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay
