"""Frames in, for a service with many requests at once: group commit, and no queue without a bound.

While one micro-batch is on its way, the next one gathers; each is one transaction, which the
server syncs to disk once, however many requests share it. A request returns when its frame is
taken: under durability ``disk`` that is when it is on disk. The streams are never trimmed: when
too much waits, new frames are refused and the device tries again.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from noisefloor.checks import check_count
from noisefloor_services.streams.errors import StoreAway, StreamFull
from noisefloor_services.streams.keys import ENTRY_ID, FIELD, Layout
from noisefloor_services.streams.producer import HIGH_WATER
from noisefloor_services.streams.server import TIMEOUT_S, ours
from noisefloor_services.streams.write_path import WritePath

MOST_WAITING = 1024
MOST_WAITING_BYTES = 1 << 26
MOST_BATCH = 256
MOST_BATCH_BYTES = 1 << 23

_REFRESH_S = 0.05
_START, _END = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"


@dataclass(slots=True)  # frozen ones take thrice as long to make
class _Request:
    """A frame and whoever waits for it."""

    place: int
    data: bytes
    taken: asyncio.Future[None]


class Ingest:
    """Append frames for many requests at once; belongs to one event loop.

    Args:
        url: Of the server; it may hold a password and is never shown.
        layout: How frames are spread.
        high_water: Frames of a partition beyond which nothing is taken. A stream may pass it by
            one micro-batch of each process.
        most_waiting: Requests that may wait for the next micro-batch.
        timeout_s: For one micro-batch.
        writes: Is told what became of appends.
    """

    def __init__(
        self,
        url: str,
        layout: Layout,
        *,
        high_water: int = HIGH_WATER,
        most_waiting: int = MOST_WAITING,
        timeout_s: float = TIMEOUT_S,
        writes: WritePath | None = None,
    ) -> None:
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": None,  # one bound for a whole micro-batch instead, see _exchange
            "socket_connect_timeout": min(timeout_s, 2.0),
        }
        pool: Any = ConnectionPool.from_url(url, **options)
        self._connection = pool.make_connection()
        self._layout = layout
        self._high_water = check_count(high_water, "high_water")
        self._most_waiting = check_count(most_waiting, "most_waiting")
        self._timeout_s = timeout_s
        self._writes = writes
        names = [layout.keys(place).frames for place in range(layout.partitions)]
        self._adding = [_packed("XADD", name, ENTRY_ID, FIELD, more=1) for name in names]
        self._asking = [_packed("XLEN", name) for name in names]
        self._lengths = [0] * layout.partitions
        self._refreshed_s = 0.0
        self._waiting: deque[_Request] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False

    async def start(self) -> None:
        """Start to take frames."""
        self._task = asyncio.create_task(self._run(), name="ingest")

    async def stop(self) -> None:
        """Refuse new frames, finish those that wait, and close the connection."""
        self._is_stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
        await self._connection.disconnect()

    async def append(self, data: bytes, batch_id: bytes | None = None) -> None:
        """Take a frame that was checked, or raise StreamFull or StoreAway and promise nothing.

        Args:
            data: The frame as it came.
            batch_id: Its own id where that could be read.
        """
        place = self._layout.partition_of(data, batch_id)
        if self._is_stopping or self._task is None:
            raise StoreAway("the service stops")
        full = self._full(place, len(data))
        if full:
            error = StreamFull(full)
            self._failed(error, [place])
            raise error
        request = _Request(place, data, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._waiting_bytes += len(data)
        self._wake.set()
        await request.taken

    def _full(self, place: int, size: int) -> str:
        """Return what has no room for a frame, if anything."""
        is_long = len(self._waiting) >= self._most_waiting
        if is_long or self._waiting_bytes + size > MOST_WAITING_BYTES:
            return "The queue"
        if self._lengths[place] >= self._high_water:
            self._wake.set()
            return f"Partition {place}"
        return ""

    @property
    def waiting(self) -> int:
        """Requests that wait for the next micro-batch."""
        return len(self._waiting)

    async def _run(self) -> None:
        while self._waiting or not self._is_stopping:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(0)  # whoever is ready now shares this micro-batch
            await self._refresh()
            while self._waiting:
                await self._flush(self._next())

    async def _refresh(self) -> None:
        """Look whether streams that were full still are, now and then."""
        now_s = asyncio.get_running_loop().time()
        full = [at for at, length in enumerate(self._lengths) if length >= self._high_water]
        if full and now_s >= self._refreshed_s + _REFRESH_S:
            self._refreshed_s = now_s
            with suppress(StoreAway, StreamFull, RedisError):
                await self._exchange([], full)

    def _next(self) -> list[_Request]:
        """Return the requests of the next micro-batch, the oldest first."""
        taken: list[_Request] = []
        size = 0
        while self._waiting and len(taken) < MOST_BATCH and size < MOST_BATCH_BYTES:
            request = self._waiting.popleft()
            self._waiting_bytes -= len(request.data)
            if self._lengths[request.place] >= self._high_water:
                full = StreamFull(f"Partition {request.place}")
                self._failed(full, [request.place])
                _fail(request, full)
            elif not request.taken.done():  # who went away in the meantime is not waited for
                taken.append(request)
                size += len(request.data)
        return taken

    async def _flush(self, requests: list[_Request]) -> None:
        if not requests:
            return
        places = sorted({request.place for request in requests})
        try:
            await self._exchange(requests, places)
        except (StoreAway, StreamFull, RedisError) as error:
            self._failed(error, places, len(requests))
            for request in requests:
                _fail(request, error)
            if isinstance(error, StoreAway):
                self._refuse_all(error)
            return
        if self._writes is not None:
            self._writes.succeeded(places)
        for request in requests:
            if not request.taken.done():
                request.taken.set_result(None)

    def _failed(self, error: Exception, places: Sequence[int], frames: int = 1) -> None:
        if self._writes is not None:
            self._writes.failed(error, places, frames)

    def _refuse_all(self, error: StoreAway) -> None:
        """Refuse whoever gathered meanwhile: nobody waits longer than one micro-batch may take."""
        self._failed(error, (), len(self._waiting))
        while self._waiting:
            _fail(self._waiting.popleft(), error)
        self._waiting_bytes = 0

    async def _exchange(self, requests: Sequence[_Request], places: Sequence[int]) -> None:
        """Send one transaction and take its replies; nothing is promised unless it returns."""
        parts = [_START]
        for request in requests:
            data = request.data
            parts += [self._adding[request.place], b"$%d\r\n" % len(data), data, b"\r\n"]
        parts += [self._asking[place] for place in places]
        parts.append(_END)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._connection.send_packed_command([b"".join(parts)])
                replies = await self._replies(2 + len(requests) + len(places))
        except TimeoutError:
            await self._connection.disconnect(nowait=True)
            raise StoreAway("no answer in time") from None
        except RedisError as error:
            raise ours(error) from None
        for place, length in zip(places, replies[-1][len(requests) :], strict=True):
            self._lengths[place] = length

    async def _replies(self, count: int) -> list[Any]:
        """Read every reply, also behind one that is an error, and then raise the first error."""
        replies: list[Any] = []
        for _ in range(count):
            try:
                replies.append(await self._connection.read_response(disable_decoding=True))
            except ResponseError as error:
                replies.append(error)
        within = replies[-1] if isinstance(replies[-1], list) else []
        for reply in (*replies, *within):
            if isinstance(reply, Exception):
                raise reply
        return replies


def _fail(request: _Request, error: Exception) -> None:
    if not request.taken.done():
        request.taken.set_exception(error)


def _packed(*words: str, more: int = 0) -> bytes:
    """Return a command, or its start with ``more`` words to come, as it goes over the wire."""
    encoded = [word.encode() for word in words]
    head = b"*%d\r\n" % (len(encoded) + more)
    return head + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
