"""Frames in, for a service with many requests at once: group commit, and no queue without a bound.

Group commit: while one micro-batch is being written, the next one gathers; each is one MULTI/EXEC,
which the server syncs to disk once, however many requests share it. A plain pipeline would sync
once for each command (17 times for 32 frames in a trial). A request returns when its frame is
accepted: under durability ``disk`` that is when it is on disk. The streams are never trimmed: when
too many frames wait, new ones are refused and the device tries again.

Admission, whether an epoch is open and has capacity, is decided by the store in one step with the
append: one script for the frames of a kind and epoch in a partition. So an accepted frame counts.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from noisefloor.checks import check_count
from noisefloor.errors import NoisefloorError
from noisefloor.roles import AggregationLimits
from noisefloor.wire import Frame, Reduction
from noisefloor_services import store
from noisefloor_services.streams.batch import kept_bytes, packed
from noisefloor_services.streams.epoch_store import partition_share
from noisefloor_services.streams.write_path import HIGH_WATER, WritePath

MOST_WAITING = 1024
MOST_WAITING_BYTES = 1 << 26
MOST_BATCH = 256
MOST_BATCH_BYTES = 1 << 23

_REFRESH_S = 0.05
_START, _END = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n"
_REFUSALS = {
    ord("c"): store.Refusal.CLOSED,
    ord("a"): store.Refusal.AHEAD,
    ord("f"): store.Refusal.FULL,
}
_WAIT = ord("w")
_START_WORDS, _MOST_STARTS = 15, 1024

_Group = tuple[int, str, int]
"""Partition, kind and epoch."""


@dataclass(slots=True)  # a frozen one takes three times as long to construct
class _Request:
    """A frame as it came and as it was read, and the future that its request awaits."""

    place: int
    data: bytes
    frame: Frame
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
        limits: Of an epoch, the same that the aggregators have.
        writes: Counts what became of appends.
    """

    def __init__(
        self,
        url: str,
        layout: store.Layout,
        *,
        high_water: int = HIGH_WATER,
        most_waiting: int = MOST_WAITING,
        timeout_s: float = store.TIMEOUT_S,
        limits: AggregationLimits | None = None,
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
        self._keys = [layout.keys(place) for place in range(layout.partitions)]
        self._limits = partition_share(limits or AggregationLimits(), layout.partitions)
        self._starts: dict[_Group, bytes] = {}
        self._length_queries = [_command("XLEN", keys.frames) for keys in self._keys]
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

    async def append(self, data: bytes, frame: Frame) -> None:
        """Take a frame that was checked, or raise and promise nothing.

        Args:
            data: The frame as it came.
            frame: What was read of it.

        Raises:
            FrameRefused: Its epoch is closed, too far ahead or full.
            StreamFull: Too much waits; send the same again.
            StoreAway: The store does not answer; send the same again.
        """
        place = self._layout.partition_of(data, frame.batch_id)
        if self._is_stopping or self._task is None:
            raise store.StoreAway("the service stops")
        full = self._full(place, len(data))
        if full:
            error = store.StreamFull(full)
            self._failed(error, [place])
            raise error
        request = _Request(place, data, frame, asyncio.get_running_loop().create_future())
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
            await asyncio.sleep(0)  # requests that are ready now share this micro-batch
            await self._refresh()
            while self._waiting:
                await self._flush(self._next())

    async def _refresh(self) -> None:
        """Look whether streams that were full still are, now and then."""
        now_s = asyncio.get_running_loop().time()
        full = [at for at, length in enumerate(self._lengths) if length >= self._high_water]
        if full and now_s >= self._refreshed_s + _REFRESH_S:
            self._refreshed_s = now_s
            with suppress(NoisefloorError, RedisError):
                await self._exchange({}, full)

    def _next(self) -> list[_Request]:
        """Return the requests of the next micro-batch, the oldest first."""
        taken: list[_Request] = []
        size = 0
        while self._waiting and len(taken) < MOST_BATCH and size < MOST_BATCH_BYTES:
            request = self._waiting.popleft()
            self._waiting_bytes -= len(request.data)
            if self._lengths[request.place] >= self._high_water:
                full = store.StreamFull(f"Partition {request.place}")
                self._failed(full, [request.place])
                _fail(request, full)
            elif not request.taken.done():  # a client that disconnected has cancelled its future
                taken.append(request)
                size += len(request.data)
        return taken

    async def _flush(self, requests: list[_Request]) -> None:
        if not requests:
            return
        groups = _grouped(requests)
        places = sorted({place for place, _, _ in groups})
        try:
            answers = await self._exchange(groups, places)
        except (NoisefloorError, RedisError) as error:
            self._failed(error, places, len(requests))
            for request in requests:
                _fail(request, error)
            if isinstance(error, store.StoreAway):
                self._refuse_all(error)
            return
        if self._writes is not None:
            self._writes.succeeded(places)
        for group, letters in zip(groups.values(), answers, strict=True):
            _settle(group, letters)

    def _failed(self, error: Exception, places: Sequence[int], frames: int = 1) -> None:
        if self._writes is not None:
            self._writes.failed(error, places, frames)

    def _refuse_all(self, error: store.StoreAway) -> None:
        """Refuse all waiting requests: none waits longer than the time-out of one micro-batch."""
        self._failed(error, (), len(self._waiting))
        while self._waiting:
            _fail(self._waiting.popleft(), error)
        self._waiting_bytes = 0

    async def _exchange(
        self, groups: Mapping[_Group, list[_Request]], places: Sequence[int]
    ) -> list[bytes]:
        """Send one transaction and return its answers; nothing is promised unless it returns."""
        parts = [_START]
        for group, requests in groups.items():
            self._write(parts, group, requests)
        parts += [self._length_queries[place] for place in places]
        parts.append(_END)
        sent = b"".join(parts)
        try:
            async with asyncio.timeout(self._timeout_s):
                replies = await self._answers(sent, 2 + len(groups) + len(places))
        except TimeoutError:
            await self._connection.disconnect(nowait=True)
            raise store.StoreAway("no answer in time") from None
        except RedisError as error:
            raise store.translated_error(error) from None
        for place, length in zip(places, replies[len(groups) :], strict=True):
            self._lengths[place] = length
        return replies[: len(groups)]

    def _write(self, parts: list[bytes], group: _Group, requests: list[_Request]) -> None:
        """Add the call that appends the frames of one kind and epoch to their partition."""
        frames = [request.frame for request in requests]
        start = self._starts.get(group)
        if start is None:
            start = self._start(group)
        rows = packed([frame.batch.num_rows for frame in frames])
        ids = b"".join([frame.batch_id for frame in frames])
        is_summed = frames[0].kind.reduction is Reduction.SUM
        sizes = bytes(4 * len(frames)) if is_summed else packed(map(kept_bytes, frames))
        words = [ids, rows, sizes, *[one.data for one in requests]]
        parts.append(b"*%d\r\n" % (_START_WORDS + len(words)) + start)
        for word in words:
            parts += [b"$%d\r\n" % len(word), word, b"\r\n"]

    def _start(self, group: _Group) -> bytes:
        """Return what the calls for a kind and epoch in a partition begin with."""
        place, kind, epoch = group
        keys, limits = self._keys[place], self._limits
        names = (
            keys.frames,
            keys.window(kind),
            keys.epoch(kind, epoch),
            keys.seen(kind, epoch),
            keys.late(kind, epoch),
            keys.admission,
            keys.admission_of(kind, epoch),
        )
        bounds = (limits.open_epochs, limits.frames, limits.rows, limits.collected_bytes)
        words = store.scripts.APPEND.command(names, (epoch, *bounds))
        assert len(words) == _START_WORDS  # noqa: S101  our own script has as many
        if len(self._starts) >= _MOST_STARTS:  # clients can name many epochs that are refused
            self._starts.clear()
        return self._starts.setdefault(group, _words(*words))

    async def _answers(self, sent: bytes, count: int) -> list[Any]:
        """Send a transaction and return what its commands answered.

        A server that was restarted has forgotten the script. Then none of the calls did anything.
        """
        try:
            return await self._once(sent, count)
        except NoScriptError:
            await self._once(_command("SCRIPT", "LOAD", store.scripts.APPEND.text), 1)
            return await self._once(sent, count)

    async def _once(self, sent: bytes, count: int) -> list[Any]:
        await self._connection.send_packed_command([sent])
        last = (await self._replies(count))[-1]
        return last if isinstance(last, list) else []

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


def _grouped(requests: Sequence[_Request]) -> dict[_Group, list[_Request]]:
    """Return requests by partition, kind and epoch."""
    groups: dict[_Group, list[_Request]] = {}
    for request in requests:
        frame = request.frame
        groups.setdefault((request.place, frame.kind.name, frame.epoch), []).append(request)
    return groups


def _settle(requests: Sequence[_Request], letters: bytes) -> None:
    """Resolve the future of each request; without letters, all frames were accepted."""
    if not letters:
        for request in requests:
            if not request.taken.done():
                request.taken.set_result(None)
        return
    for request, letter in zip(requests, letters, strict=True):
        if letter in _REFUSALS:
            _fail(request, store.FrameRefused(_REFUSALS[letter]))
        elif letter == _WAIT:
            _fail(request, store.StreamFull("The epoch"))
        elif not request.taken.done():
            request.taken.set_result(None)


def _command(*words: store.Word) -> bytes:
    """Return a command as it goes over the wire."""
    return b"*%d\r\n" % len(words) + _words(*words)


def _words(*words: store.Word) -> bytes:
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
