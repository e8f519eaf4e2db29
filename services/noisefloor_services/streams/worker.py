"""A worker: frames out of the streams, into the sums, exactly once each.

It may be killed or paused at any point, and several may serve one partition: a batch is applied by
one script, which checks which entries the worker still owns and which batch ids were seen. So a
worker that resumes after its entries were claimed, a frame that is delivered again and a producer
that sends twice all count once.
"""

import logging
import os
import secrets
import time
from collections.abc import Sequence
from typing import Any

from noisefloor.checks import check_count
from noisefloor.wire import read_batch_id
from noisefloor_services.store import GROUP, Command, StoreAway, StoreStalled, StreamFull
from noisefloor_services.streams.batch import (
    BatchContext,
    DeliveryBatch,
    FrameGroup,
    RejectedDelivery,
    StreamDelivery,
)
from noisefloor_services.streams.epoch_store import EpochStore
from noisefloor_services.streams.pending import Abandonment, Clock

BATCH = 64
MOST_DELIVERIES = 5
ABANDONED_S = 5.0
FORGOTTEN_S = 600.0
"""How long a consumer that holds nothing is remembered."""

_BLOCK_S = 0.2
_LONGEST_PAUSE_S = 1.0
_EMPTY_S = 0.02

_log = logging.getLogger(__name__)


class Worker:
    """Serve some partitions of a store until it is stopped, or until they are empty.

    Args:
        store: Where frames and sums are.
        partitions: Which of its partitions; all by default.
        batch: Frames that are taken at once, from all partitions together.
        abandoned_s: A frame that stayed pending for this time at a worker without a heartbeat is
            taken over.
        group: How frames are applied; another one than this is for comparison only.
        clock: Seconds that never run backwards.
    """

    __slots__ = (
        "_abandoned_s",
        "_abandonments",
        "_ahead",
        "_batch",
        "_clock",
        "_context",
        "_is_stopping",
        "_keys",
        "_next_beat",
        "_next_sweep",
        "_store",
    )

    def __init__(
        self,
        store: EpochStore,
        partitions: Sequence[int] | None = None,
        *,
        batch: int = BATCH,
        abandoned_s: float = ABANDONED_S,
        group: type[FrameGroup] = FrameGroup,
        clock: Clock = time.monotonic,
    ) -> None:
        served = range(store.layout.partitions) if partitions is None else partitions
        self._store = store
        self._keys = {place: store.layout.keys(place) for place in served}
        # Divided among the partitions, so that memory does not grow with their number.
        self._batch = max(1, check_count(batch, "batch", most=1024) // len(self._keys))
        self._abandoned_s = abandoned_s
        # A new name each time: two processes with one name would own the same entries.
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._context = BatchContext(
            store.kinds, store.limits, name, group, frame_names=store.frame_names
        )
        self._clock = clock
        self._abandonments = {
            place: Abandonment(
                keys, name, abandoned_s=abandoned_s, forgotten_s=FORGOTTEN_S, clock=clock
            )
            for place, keys in self._keys.items()
        }
        self._ahead: list[StreamDelivery] = []
        self._next_sweep = float("-inf")
        self._next_beat = clock() + abandoned_s / 4
        self._is_stopping = False

    @property
    def name(self) -> str:
        """What the group calls this worker."""
        return self._context.consumer

    def stop(self) -> None:
        """Ask the worker to settle what it holds and to leave; a signal handler may call this."""
        # A plain flag: the code that the signal interrupts might own a lock.
        self._is_stopping = True

    def run(self) -> None:
        """Work until ``stop``; while Redis is away, wait for it."""
        pause_s = 0.0
        while not self._is_stopping:
            try:
                self._turn(block_s=_BLOCK_S)
                pause_s = 0.0
            except (StoreAway, StreamFull) as error:
                pause_s = self._recover(error, pause_s)
        self._leave()

    def drain(self, *, patience_s: float = 60.0) -> None:
        """Work until the partitions are empty (burst mode); wait for what others hold.

        Raises:
            StoreStalled: Nothing was settled for ``patience_s``.
        """
        pause_s, waiting, deadline = 0.0, -1, time.monotonic() + patience_s
        while not self._is_stopping:
            if time.monotonic() > deadline:
                raise StoreStalled(f"No frame was settled for {patience_s:g} s.")
            try:
                handled = self._turn(block_s=0.0)
                left = -1 if handled else self._waiting()
            except (StoreAway, StreamFull) as error:
                pause_s = self._recover(error, pause_s)
                continue
            pause_s = 0.0
            if left == 0:
                break
            if handled or left != waiting:
                waiting, deadline = left, time.monotonic() + patience_s
            if not handled:
                time.sleep(min(_EMPTY_S, self._abandoned_s))
        self._leave()

    def step(self) -> int:
        """Take one batch, settle it, and return how many frames it had."""
        return self._settle(self._read(block_s=0.0), reads_ahead=False)

    def sweep(self) -> int:
        """Take over what was abandoned, one frame at a time, and return how many there were."""
        return sum(self._sweep(place) for place in self._keys)

    def _turn(self, *, block_s: float) -> int:
        """Settle what was read ahead, or else what there is; at times look for the abandoned."""
        swept = 0
        self._next_beat = self._clock() + self._abandoned_s / 4
        if self._clock() >= self._next_sweep:
            swept = self.sweep()
            self._next_sweep = self._clock() + self._abandoned_s / 2
        deliveries, self._ahead = self._ahead, []
        deliveries = deliveries or self._read(block_s=0.0 if swept else block_s)
        return swept + self._settle(deliveries, reads_ahead=True)

    def _settle(self, deliveries: Sequence[StreamDelivery], *, reads_ahead: bool) -> int:
        """Apply a batch in as few round trips as it takes; the first also reads the next batch."""
        if not deliveries:
            return 0
        batch = DeliveryBatch(self._context, self._keys)
        batch.add(deliveries)
        self._beat()
        if reads_ahead and not self._is_stopping:
            commands = batch.commands()
            *replies, found = self._store.server.all([*commands, self._reading()])
            self._ahead = self._deliveries(found)
            batch.take(replies)
        while commands := batch.commands():
            self._beat()
            batch.take(self._store.server.all(commands))
        return len(deliveries) - batch.failed

    def _beat(self) -> None:
        """Give a sign of life if this turn takes long; a fast worker never has to."""
        if self._clock() >= self._next_beat:
            beats = [("HINCRBY", keys.beats, self.name, 1) for keys in self._keys.values()]
            self._store.server.all(beats)
            self._next_beat = self._clock() + self._abandoned_s / 4

    def _reading(self, block_s: float = 0.0) -> Command:
        wait = ("BLOCK", int(1000 * block_s)) if block_s else ()
        names = [keys.frames for keys in self._keys.values()]
        words = ("XREADGROUP", "GROUP", GROUP, self.name, "COUNT", self._batch, *wait)
        return (*words, "STREAMS", *names, *([">"] * len(names)))

    def _read(self, *, block_s: float) -> list[StreamDelivery]:
        return self._deliveries(self._store.server.call(*self._reading(block_s)))

    def _deliveries(self, found: list[Any] | None) -> list[StreamDelivery]:
        places = {keys.frames.encode(): place for place, keys in self._keys.items()}
        return [
            StreamDelivery(places[stream], entry_id.decode(), fields[1])
            for stream, entries in found or ()
            for entry_id, fields in entries
        ]

    def _sweep(self, place: int) -> int:
        abandonment, taken = self._abandonments[place], 0
        in_hand = {one.entry_id for one in self._ahead if one.partition == place}
        for entry in abandonment.look(self._store.server, in_hand):
            fields = self._store.server.call(*abandonment.claim(entry))
            if fields:  # no other worker was quicker
                attempt = entry.deliveries + 1
                self._retry(StreamDelivery(place, entry.entry_id, fields[1], attempt))
                taken += 1
        return taken

    def _retry(self, delivery: StreamDelivery) -> None:
        """Settle a frame that another worker abandoned; bury it after too many attempts."""
        if delivery.attempt <= MOST_DELIVERIES:
            self._settle([delivery], reads_ahead=False)
            return
        _log.error("a frame was handed out %d times and never settled", delivery.attempt - 1)
        batch_id = read_batch_id(delivery.data, self._store.kinds, self._store.frame_names)
        batch = DeliveryBatch(self._context, self._keys)
        batch.bury(RejectedDelivery(delivery, batch_id, "Frame: was handed out too often."))
        batch.take(self._store.server.all(batch.commands()))

    def _recover(self, error: Exception, pause_s: float) -> float:
        """Wait for Redis, a little longer each time, and return for how long it was."""
        self._ahead = []
        pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s or 0.02)
        _log.warning("waiting for Redis: %s", error)
        time.sleep(pause_s)
        return pause_s

    def _waiting(self) -> int:
        lengths = [("XLEN", keys.frames) for keys in self._keys.values()]
        return int(sum(self._store.server.all(lengths)))

    def _leave(self) -> None:
        """Settle what was read ahead and leave the group; what fails is taken over by others."""
        try:
            deliveries, self._ahead = self._ahead, []
            self._settle(deliveries, reads_ahead=False)
            for abandonment in self._abandonments.values():
                self._store.server.call(*abandonment.leave(self.name))
        except (StoreAway, StreamFull):
            _log.warning("left without settling everything: it will be taken over")
