"""A stream worker beside an API: in a thread, started again if it fails, stopped in order."""

import logging
import threading
import time
from collections.abc import Callable

from redis.exceptions import RedisError

from noisefloor.errors import NoisefloorError
from noisefloor.roles import CollectionConfig
from noisefloor_services.store import (
    BadStore,
    CollectionRegistry,
    Durability,
    StoreAway,
    StreamFull,
)
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.worker import Worker

PAUSE_S = 0.5
_UNWELL_S = 3.0

_log = logging.getLogger(__name__)


class CountingThread:
    """Counts frames until it is stopped.

    Args:
        store: Where they are; its groups are made at the start.
        durability: Under ``memory``, a Redis that lost everything is prepared again; under
            ``disk`` that must not happen, so it is left to people: closed epochs would reopen.
        first_epoch: The oldest epoch that is open at the start.
    """

    def __init__(self, store: EpochStore, durability: Durability, first_epoch: int = 0) -> None:
        self._store = store
        self._durability = durability
        self._first_epoch = first_epoch
        self._stopping = threading.Event()
        self._worker: Worker | None = None
        self._failed_s = float("-inf")
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def start(self) -> None:
        """Start to count."""
        self._thread.start()

    def stop(self, timeout_s: float = 6.0) -> bool:
        """Settle the current batch, and say whether that was done in time; it blocks."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def lacks(self) -> str:
        """Return why nothing is counted, or nothing."""
        is_well = self._worker is not None and self._thread.is_alive()
        if is_well and time.monotonic() - self._failed_s > _UNWELL_S:
            return ""
        return "No worker counts."

    def _run(self) -> None:
        is_prepared = False
        while not self._stopping.is_set():
            try:
                if not is_prepared:
                    self._store.prepare(self._first_epoch)
                    is_prepared = True
                self._worker = Worker(self._store)
                if self._stopping.is_set():  # stop() ran before there was this worker
                    self._worker.stop()
                self._worker.run()
            except (StoreAway, StreamFull):
                self._stopping.wait(PAUSE_S)
            except Exception as error:
                is_prepared = self._failed(error, is_prepared=is_prepared)

    def _failed(self, error: Exception, *, is_prepared: bool) -> bool:
        """Note a failure; return whether the store still counts as prepared."""
        self._failed_s = time.monotonic()
        text = str(error) if isinstance(error, NoisefloorError) else type(error).__name__
        _log.error("the worker failed: %s", text)
        self._stopping.wait(PAUSE_S)
        has_lost = isinstance(error, BadStore) and self._durability is Durability.MEMORY
        return is_prepared and not has_lost


class CountingThreads:
    """Counts in the first collection and in every one that is registered beside it.

    Args:
        first: The first collection.
        counting: Makes the counter of a collection.
        registry: Which others there are.
    """

    def __init__(
        self,
        first: CollectionConfig,
        counting: Callable[[CollectionConfig], CountingThread],
        registry: CollectionRegistry,
    ) -> None:
        self._counting = counting
        self._registry = registry
        self._first = counting(first)
        self._others: dict[str, CountingThread] = {}

    def run(self, is_stopping: Callable[[float], bool]) -> None:
        """Count until ``is_stopping``, which waits for the given seconds, returns true."""
        self._first.start()
        while not is_stopping(PAUSE_S):
            try:
                self._look()
            except (NoisefloorError, RedisError) as error:
                _log.warning("collections cannot be looked up: %s", type(error).__name__)
        for counting in (self._first, *self._others.values()):
            counting.stop()

    def _look(self) -> None:
        names = set(self._registry.names())
        for name in set(self._others) - names:
            self._others.pop(name).stop()
        for name in names - set(self._others):
            collection = self._registry.find(name)
            if collection is not None:
                self._others[name] = self._counting(collection)
                self._others[name].start()
