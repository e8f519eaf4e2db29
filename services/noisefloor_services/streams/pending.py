"""How long frames have been pending, by the clock of the process that looks: abandonment and lag.

The idle times of Redis are differences of its wall clock: after that is set back by an hour they
are zero for an hour, and after it is set forward everything is an hour old. A process's monotonic
clock is never set, so ages are measured here.

*Abandonment*: an entry is abandoned if for a whole limit it stayed with the same consumer, was not
delivered again, and its consumer gave no heartbeat. A heartbeat is a counter that a worker
increments when a batch takes long; a time of day would depend on the clock it came from.

*Lag*: frames that no worker settles would wait without an error anywhere. So a partition in which
frames wait and none is delivered or settled for a limit is reported as stalled.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

from redis.exceptions import RedisError

from noisefloor.errors import NoisefloorError
from noisefloor_services import store

K = TypeVar("K")

Clock = Callable[[], float]
"""Seconds that never run backwards."""


class AgeTracker(Generic[K]):
    """Remembers since when each of some things has been seen with the same value.

    Args:
        clock: Seconds that never run backwards.
    """

    __slots__ = ("_clock", "_since")

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[K, tuple[object, float]] = {}

    def ages(self, values: Mapping[K, object]) -> dict[K, float]:
        """Note the present values, and return for how many seconds each has been seen so.

        What is not among them is forgotten.
        """
        now_s = self._clock()
        before, self._since = self._since, {}
        for key, value in values.items():
            old = before.get(key)
            self._since[key] = old if old and old[0] == value else (value, now_s)
        return {key: now_s - since_s for key, (_, since_s) in self._since.items()}

    def forget(self) -> None:
        """Begin anew."""
        self._since = {}


MOST_ENTRIES = 1024
"""Entries that are looked at, the oldest first; those behind them come into view as they go."""


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """An entry as it was seen in the pending list."""

    entry_id: str
    consumer: str
    deliveries: int


class Abandonment:
    """Watches one partition for one worker.

    Args:
        keys: Of the partition.
        consumer: The worker's name.
        abandoned_s: The limit.
        forgotten_s: After this time a consumer that holds nothing is removed from the group.
        clock: Seconds that never run backwards.
    """

    __slots__ = ("_abandoned_s", "_consumer", "_empty", "_forgotten_s", "_keys", "_pending")

    def __init__(
        self,
        keys: store.PartitionKeys,
        consumer: str,
        *,
        abandoned_s: float,
        forgotten_s: float,
        clock: Clock = time.monotonic,
    ) -> None:
        self._keys = keys
        self._consumer = consumer
        self._abandoned_s = abandoned_s
        self._forgotten_s = forgotten_s
        self._pending: AgeTracker[PendingEntry] = AgeTracker(clock)
        self._empty: AgeTracker[store.Word] = AgeTracker(clock)

    def look(self, server: store.Server, in_hand: Collection[str]) -> list[PendingEntry]:
        """Return abandoned entries, and remove consumers that had none pending for long.

        Args:
            server: Where the partition is.
            in_hand: Entries that the worker has read ahead and is about to settle.
        """
        pending, fields, consumers = server.atomically(
            [
                ("XPENDING", self._keys.frames, store.GROUP, "-", "+", MOST_ENTRIES),
                ("HGETALL", self._keys.beats),
                ("XINFO", "CONSUMERS", self._keys.frames, store.GROUP),
            ]
        )
        beats = dict(zip(fields[::2], fields[1::2], strict=True))
        # Its own entries that it did not read ahead have failed: its heartbeat must not keep them.
        beats.pop(self._consumer.encode(), None)
        seen = {
            PendingEntry(entry_id.decode(), holder.decode(), deliveries): beats.get(holder)
            for entry_id, holder, _, deliveries in pending
        }
        self._forget(server, consumers)
        return [
            entry
            for entry, age_s in self._pending.ages(seen).items()
            if age_s >= self._abandoned_s
            and not (entry.consumer == self._consumer and entry.entry_id in in_hand)
        ]

    def claim(self, entry: PendingEntry) -> store.Command:
        """Return the call that takes an entry over if it is still where it was seen."""
        seen: list[store.Word] = [entry.entry_id, entry.consumer, entry.deliveries]
        return store.scripts.CLAIM.command(
            [self._keys.frames], [store.GROUP, self._consumer, *seen]
        )

    def leave(self, consumer: store.Word) -> store.Command:
        """Return the call that removes a consumer from the group unless it holds something."""
        return store.scripts.LEAVE.command(
            [self._keys.frames, self._keys.beats], [store.GROUP, consumer]
        )

    def _forget(self, server: store.Server, consumers: list[list[bytes | int]]) -> None:
        facts = [dict(zip(one[::2], one[1::2], strict=True)) for one in consumers]
        empty: dict[store.Word, int] = {one[b"name"]: 0 for one in facts if one[b"pending"] == 0}
        for name, age_s in self._empty.ages(empty).items():
            # One that still runs joins the group again with its next read.
            if age_s >= self._forgotten_s and name != self._consumer.encode():
                server.call(*self.leave(name))


STALLED_S = 15.0
"""Longer than workers take to notice that another one is dead, twice their limit of 5 s."""

_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Lag:
    """One partition at one instant.

    Attributes:
        undelivered: Frames that no worker has been given.
        unacknowledged: Frames that a worker holds and has not settled.
        oldest_pending_s: For how long the first of those has been seen pending at the same worker;
            0 if there is none.
        unread_s: For how long frames have waited and none was given to a worker; 0 if none waits.
    """

    undelivered: int
    unacknowledged: int
    oldest_pending_s: float
    unread_s: float

    @property
    def is_stalled(self) -> bool:
        """Whether frames wait and none was delivered or settled for too long."""
        return max(self.oldest_pending_s, self.unread_s) >= STALLED_S


class LagWatch:
    """Follows every partition of a collection; safe to share between threads.

    Args:
        server: Where they are.
        layout: Which there are.
        clock: Seconds that never run backwards.
    """

    def __init__(
        self, server: store.Server, layout: store.Layout, clock: Clock = time.monotonic
    ) -> None:
        self._server = server
        self._keys = [layout.keys(place) for place in range(layout.partitions)]
        self._clock = clock
        self._pending: list[AgeTracker[str]] = [AgeTracker(clock) for _ in self._keys]
        self._unread: list[AgeTracker[str]] = [AgeTracker(clock) for _ in self._keys]
        self._lock = Lock()
        self._next_s = float("-inf")
        self._lacks = ""

    def look(self) -> list[Lag | None]:
        """Return each partition's lag; None where the partition cannot be read.

        Raises:
            StoreAway: Nothing can be read.
        """
        with self._lock:
            return [self._look(place) for place in range(len(self._keys))]

    def lacks(self) -> str:
        """Return which partitions are stalled, or nothing; Redis is not queried every time."""
        if self._lacks or self._clock() >= self._next_s:
            self._next_s = self._clock() + _LOOK_S
            try:
                self._lacks = _stall_text(self.look())
            except store.StoreAway:
                self._forget()  # no worker can settle anything: readiness reports that
        return self._lacks

    def _look(self, place: int) -> Lag | None:
        try:
            replies = self._server.atomically(_queries(self._keys[place]))
        except store.StoreAway:
            raise
        except (NoisefloorError, RedisError):
            return None
        length, (count, *_), first, groups = replies
        entry = {"first": (*first[0][:2], first[0][3])} if first else {}
        unread = {"last": _last_delivered(groups)} if length > count else {}
        return Lag(
            length - count,
            count,
            self._pending[place].ages(entry).get("first", 0.0),
            self._unread[place].ages(unread).get("last", 0.0),
        )

    def _forget(self) -> None:
        with self._lock:
            for one in (*self._pending, *self._unread):
                one.forget()
        self._lacks = ""


def _queries(keys: store.PartitionKeys) -> list[store.Command]:
    """Return what to ask of a partition, all at one instant.

    Not XINFO's lag: it is unknown once entries are deleted, and here each one is when it is
    settled. So an entry that is in the stream and not pending was never delivered.
    """
    return [
        ("XLEN", keys.frames),
        ("XPENDING", keys.frames, store.GROUP),
        ("XPENDING", keys.frames, store.GROUP, "-", "+", 1),
        ("XINFO", "GROUPS", keys.frames),
    ]


def _last_delivered(groups: Sequence[Sequence[Any]]) -> object:  # Any: names and values in turn
    facts = [dict(zip(one[::2], one[1::2], strict=True)) for one in groups]
    return next(one[b"last-delivered-id"] for one in facts if one[b"name"] == store.GROUP.encode())


def _stall_text(lags: Sequence[Lag | None]) -> str:
    """Say what is wrong, in one sentence."""
    lost = [str(place) for place, lag in enumerate(lags) if lag is None]
    if lost:
        return f"The stream of partition {', '.join(lost)} cannot be read."
    stalled = [str(place) for place, lag in enumerate(lags) if lag and lag.is_stalled]
    if stalled:
        where = ", ".join(stalled)
        return f"Frames wait and none was settled for {STALLED_S:g} s in partition {where}."
    return ""
