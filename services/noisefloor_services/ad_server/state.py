"""What the routes of the ad server share: frames in, the model broadcast out, protected queries.

Queries are answered by one thread for all collections, so that accepting reports does not wait for
predictions; when too many wait, the next one is refused with Retry-After.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pyarrow as pa
from fastapi import HTTPException
from redis import Redis
from redis.exceptions import RedisError

from noisefloor.errors import BusFull, NoisefloorError, NotFitted
from noisefloor.randomness import Source
from noisefloor.roles import Catalogue, CollectionConfig
from noisefloor.tables import Labels
from noisefloor.tasks import TrainingTask, answer_queries
from noisefloor.wire import MOST_BYTES, Frame, Kind, decode_frame, seal
from noisefloor_services import store
from noisefloor_services.ad_server.report_tokens import ReportTokens
from noisefloor_services.http import Readiness
from noisefloor_services.metrics import MetricCounter, MetricSample, available_samples
from noisefloor_services.settings import Settings
from noisefloor_services.streams import Ingest, WritePath

MOST_WAITING = 16


class PredictionQueue:
    """Answers queries; made for one event loop."""

    __slots__ = ("_pool", "_waiting")

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="predictions")
        self._waiting = 0

    async def answers(
        self, task: TrainingTask, broadcast_content: store.BroadcastContent | None, data: bytes
    ) -> Labels:
        """Return a decision for each query of a frame.

        Raises:
            BadFrame: It holds no queries of this task.
            NotFitted: There is no fitted model yet.
            BusFull: Too many wait.
        """
        if broadcast_content is None:
            raise NotFitted("There is no model yet.")
        if self._waiting >= MOST_WAITING:
            raise BusFull("Too many queries wait.")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._pool, answer_queries, task, broadcast_content.content, data
            )
        finally:
            self._waiting -= 1


TOKEN_HEADER = "Report-Token"  # noqa: S105  the name of a header
_MODEL_EVERY_S = 0.2
TIMEOUT_S = 5.0
"""For Redis. A stop takes at most ten seconds, and waits for requests that wait for Redis."""


class AdServerState:
    """What the routes share: frames into Redis, and the model broadcast out of it.

    Args:
        settings: From the environment.
        collection: Kinds, and the catalogue if there is one.
        source: Of batch ids for reports that came without one.
        readiness: Whether anything may be promised.
        predictions: Answers queries.
    """

    def __init__(
        self,
        settings: Settings,
        collection: CollectionConfig,
        source: Source,
        readiness: Readiness,
        predictions: PredictionQueue,
    ) -> None:
        self.settings = settings
        self.catalogue: Catalogue | None = collection.catalogue
        self.task = collection.task
        self.predictions = predictions
        self.kinds: Mapping[str, Kind] = collection.kinds
        self.terms = collection.terms
        self.frame_names = collection.frame_names
        self.requests: Mapping[str, Kind] = collection.requests
        self.most_bytes = min(settings.body_bytes, MOST_BYTES)
        self.layout = store.Layout(collection.namespace, settings.partitions)
        self.source = source
        self.readiness = readiness
        self.server = store.Server(settings.redis_url, timeout_s=TIMEOUT_S)
        self.broadcast = store.ModelBroadcast(self.server, self.layout)
        self.writes = WritePath(self.server, self.layout, self.kinds)
        readiness.add(self.writes.lacks)
        self.ingest: Ingest | None = None
        self.broadcast_content: store.BroadcastContent | None = None
        self.reports = MetricCounter(
            "reports_accepted", "Reports that were taken.", "kind", self.kinds
        )
        self.frames = MetricCounter(
            "frames_accepted", "Frames that were taken.", "kind", self.kinds
        )
        text = "Frames that were refused for their epoch."
        reasons = [one.value for one in store.Refusal]
        self.refused = MetricCounter("frames_refused", text, "reason", reasons)
        # ReportTokens uses scripts as redis-py registers them, so it needs redis-py's own client.
        self.token_client = Redis.from_url(settings.redis_url, socket_timeout=TIMEOUT_S)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take frames, and look for a new model now and then."""
        self.ingest = Ingest(
            self.settings.redis_url,
            self.layout,
            high_water=self.settings.high_water,
            timeout_s=TIMEOUT_S,
            writes=self.writes,
        )
        await self.ingest.start()
        await asyncio.to_thread(self.look)
        watch = asyncio.create_task(self._watch(), name="model")
        try:
            yield
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
            await self.ingest.stop()
            self.server.close()
            self.token_client.close()

    def look(self) -> None:
        """Look for a new model; without Redis the last one stays."""
        with suppress(NoisefloorError, RedisError):
            found = self.broadcast.read()
            # Keep the old object if it is equal: responses in progress then share one copy.
            if found != self.broadcast_content:
                self.broadcast_content = found

    async def take(self, data: bytes, frame: Frame) -> None:
        """Hand a checked frame to Redis, or raise and promise nothing."""
        if self.ingest is None or not self.readiness.is_promise_kept:
            raise store.StoreAway("it does not keep what is promised")
        try:
            await self.ingest.append(data, frame)
        except store.FrameRefused as refused:
            self.refused.add(refused.reason.value)
            raise
        self.frames.add(frame.kind.name)
        self.reports.add(frame.kind.name, frame.batch.num_rows)

    async def take_frame(self, data: bytes, token: str | None, kinds: Mapping[str, Kind]) -> None:
        """Check a frame of one of the kinds and its token, and hand it to Redis.

        Raises:
            BadFrame: It is none, or of another kind.
        """
        frame = decode_frame(data, kinds, most_bytes=self.most_bytes, collections=self.frame_names)
        await self.admit(token, frame.epoch, frame.batch_id)
        await self.take(data, frame)

    async def take_one(self, kind: Kind, epoch: int, row: pa.RecordBatch) -> None:
        """Hand one report to Redis, as a frame of one row."""
        await self.take(*self.framed(kind, epoch, row))

    def framed(self, kind: Kind, epoch: int, row: pa.RecordBatch) -> tuple[bytes, Frame]:
        """Write one report as a frame, and return that as well; one row needs no order."""
        frame = Frame(kind, epoch, self.source.words(2).tobytes(), row)
        return seal(kind, epoch, row, frame.batch_id, collection=self.frame_names[-1]), frame

    async def admit(self, token: str | None, epoch: int, batch_id: bytes) -> None:
        """Spend a one-use token where reports need one."""
        if not self.settings.report_tokens:
            return
        tokens = self.tokens(epoch)
        if token is None or not await asyncio.to_thread(tokens.spend, token, batch_id):
            raise HTTPException(403, f"Reports take a one-use token here: header {TOKEN_HEADER}.")

    def tokens(self, epoch: int) -> ReportTokens:
        """Return the one-use tokens of an epoch."""
        return ReportTokens(self.token_client, epoch, namespace=self.layout.namespace)

    def samples(self) -> Iterable[MetricSample]:
        """Return what was taken and what waits."""
        yield from self.frames.samples()
        for one in self.reports.samples():  # in whole minimums, as every count of reports
            yield replace(one, value=self.terms.coarse(int(one.value)))
        yield from self.refused.samples()
        yield from self.writes.samples()
        if self.ingest is not None:
            text = "Requests that wait for the next micro-batch."
            yield MetricSample("ingest_waiting", text, self.ingest.waiting)
        yield from available_samples(self._lengths)

    def _lengths(self) -> Iterable[MetricSample]:
        """Return how long the streams are, unless the collection was dropped."""
        settings: store.Command = ("HMGET", self.layout.settings, "partitions")
        keys = [self.layout.keys(place) for place in range(self.layout.partitions)]
        (found,), *lengths = self.server.all([settings, *(("XLEN", one.frames) for one in keys)])
        if found is not None:
            yield MetricSample("stream_length", "Frames that wait in the streams.", sum(lengths))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_MODEL_EVERY_S)
            await asyncio.to_thread(self.look)
