"""What the routes of the aggregator share: a counting thread, the epoch store, and alarms.

An alarm is a condition that needs an operator, such as an acknowledged frame that does not count.
Each is a metric, `noisefloor_alarm` by reason, and a sentence in `GET /conservation`, which
`noisefloor status` shows.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from fastapi import HTTPException

from noisefloor.roles import CollectionConfig
from noisefloor.wire import Kind
from noisefloor_services.aggregator.rounds import RoundTraining
from noisefloor_services.http import Readiness
from noisefloor_services.metrics import MetricSample, available_samples
from noisefloor_services.settings import Settings
from noisefloor_services.store import Durability, Layout, LogRewriting, ModelBroadcast, Server
from noisefloor_services.streams import Conservation, CountingThread, EpochStore, LagWatch

NEARLY_FULL = 0.8
"""The share of its bounds from which an open epoch raises an alarm."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One reason for an alarm; the text is empty unless it is raised."""

    reason: str
    text: str


def possible_alarms(account: Conservation, fullness: float, log_trouble: str) -> Iterator[Alarm]:
    """Yield every reason, raised or not.

    Args:
        account: Frames by what became of them.
        fullness: Share of its bounds that the fullest open epoch has used.
        log_trouble: Why deleted frames stay on disk, or nothing.
    """
    count = account.late
    text = f"{count} frames were answered with 202 and do not count: their epoch was closed."
    yield Alarm("late", text if count else "")
    count = account.dead_letters
    text = f"{count} frames were accepted and can never count: see the dead letters."
    yield Alarm("dead_letters", text if count else "")
    count = account.refused_full
    text = f"{count} frames were refused: their epoch is full. Close epochs earlier."
    yield Alarm("full", text if count else "")
    text = f"An open epoch is {fullness:.0%} full: close it, or its devices are refused."
    yield Alarm("nearly_full", text if fullness >= NEARLY_FULL else "")
    yield Alarm("log_rewriting", log_trouble)


def alarm_samples(alarms: Iterable[Alarm]) -> Iterator[MetricSample]:
    """Write alarms as numbers: 1 where one is raised."""
    for one in alarms:
        text = "Whether something needs a person: 1 if so."
        yield MetricSample("alarm", text, int(bool(one.text)), {"reason": one.reason})


TIMEOUT_S = 5.0
"""For Redis. A stop takes at most ten seconds, and waits for threads that wait for Redis."""


class AggregatorState:
    """Counts one collection.

    Args:
        settings: From the environment.
        collection: Catalogue, kinds, and the training task.
        log_rewriting: Removes from the disk what was retired.
        is_first: Whether this is the collection whose service runs it: one server has one log.
    """

    def __init__(
        self,
        settings: Settings,
        collection: CollectionConfig,
        log_rewriting: LogRewriting,
        *,
        is_first: bool = False,
    ) -> None:
        self.settings = settings
        self.log_rewriting = log_rewriting
        self._is_first = is_first
        self.server = Server(settings.redis_url, timeout_s=TIMEOUT_S)
        layout, task = Layout(collection.namespace, settings.partitions), collection.task
        self.broadcast = ModelBroadcast(self.server, layout)
        self.store = EpochStore.of(self.server, layout, collection)
        self.durability = Durability(settings.durability)
        self.counting = CountingThread(self.store, self.durability, collection.first_epoch)
        self.rounds: RoundTraining | None = None
        if task is not None:
            is_lossy = self.durability is Durability.MEMORY
            self.rounds = RoundTraining(self.store, self.broadcast, task, restarts=is_lossy)
        self.lag = LagWatch(self.server, layout)
        self.readiness = Readiness(
            settings.redis_url,
            self.durability,
            (self.counting.lacks, self._rounds_lack, self.lag.lacks),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the counting and training threads beside the API."""
        self.counting.start()
        if self.rounds is not None:
            self.rounds.start()
        if self._is_first:
            self.log_rewriting.start()
        try:
            yield
        finally:
            if self._is_first:
                await asyncio.to_thread(self.log_rewriting.stop)
            if self.rounds is not None:
                await asyncio.to_thread(self.rounds.stop)
            await asyncio.to_thread(self.counting.stop)
            self.server.close()

    def _rounds_lack(self) -> str:
        return "" if self.rounds is None else self.rounds.lacks()

    def kind(self, name: str) -> Kind:
        """Return a kind, or answer 404."""
        if name not in self.store.kinds:
            raise HTTPException(404, "There is no such kind.")
        return self.store.kinds[name]

    def retire(self, kind: str, epoch: int) -> None:
        """Drop what is kept of a closed epoch, in memory at once and on disk soon."""
        self.store.retire(kind, epoch)
        self.log_rewriting.note()

    def alarms(self, account: Conservation) -> list[Alarm]:
        """Return every reason for an alarm, raised or not."""
        return list(possible_alarms(account, self.store.fullness(), self.log_rewriting.trouble()))

    def samples(self) -> Iterable[MetricSample]:
        """Return the metrics of this process and of the store."""
        yield MetricSample(
            "worker_up", "Whether frames are counted.", int(not self.counting.lacks())
        )
        rounds = () if self.rounds is None else (self.rounds.samples, self.rounds.progress)
        yield from available_samples(*rounds, self._outcomes, self._lags)

    def _outcomes(self) -> Iterable[MetricSample]:
        account = self.store.conservation()
        yield from alarm_samples(self.alarms(account))
        yield from self.log_rewriting.samples()
        outcomes = asdict(account)
        reports = self.store.terms.coarse(outcomes.pop("reports"))
        for name, value in outcomes.items():
            text = "Frames by what became of them; refused ones were not accepted."
            yield MetricSample("frames", text, value, {"outcome": name})
        yield MetricSample("reports_counted", "Reports that were counted.", reports)
        yield MetricSample(
            "frames_missing", "Frames without an outcome: has to be 0.", account.missing
        )
        text = "Whether every accepted frame has one outcome or waits."
        yield MetricSample("conserved", text, int(account.is_conserved))
        yield MetricSample("stream_length", "Frames that wait in the streams.", account.pending)

    def _lags(self) -> Iterable[MetricSample]:
        for place, behind in enumerate(self.lag.look()):
            if behind is None:
                continue
            label = {"partition": str(place)}
            text = "Frames that no worker has been given."
            yield MetricSample("stream_undelivered", text, behind.undelivered, label)
            text = "Frames that a worker holds and has not settled."
            yield MetricSample("stream_unacknowledged", text, behind.unacknowledged, label)
            text = "Seconds for which the first of those has been pending at the same worker."
            yield MetricSample("stream_oldest_held_seconds", text, behind.oldest_pending_s, label)
            text = "Seconds for which frames have waited and none was given to a worker."
            yield MetricSample("stream_unread_seconds", text, behind.unread_s, label)
            text = "Whether frames wait and none was delivered or settled for too long."
            yield MetricSample("stream_stalled", text, int(behind.is_stalled), label)
