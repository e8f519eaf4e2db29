"""How far the counting is behind, and whether it moves: by the clock of the process that looks.

Frames that nobody settles would wait in silence: nothing is lost, nothing is wrong, nothing comes.
So a partition in which frames wait and nothing changes hands for a limit is reported as stalled.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from redis.exceptions import RedisError

from noisefloor.errors import NoisefloorError
from noisefloor_services.store import GROUP, Command, Layout, PartitionKeys, Server, StoreAway
from noisefloor_services.streams.age_tracker import AgeTracker, Clock

STALLED_S = 15.0
"""Longer than workers take to notice that another one is dead, twice their limit of 5 s."""

_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Lag:
    """One partition at one instant.

    Attributes:
        undelivered: Frames that no worker has been given.
        unacknowledged: Frames that a worker holds and has not settled.
        oldest_held_s: For how long the first of those has been seen in the same hands; 0 if there
            is none.
        unread_s: For how long frames have waited and none was given to a worker; 0 if none waits.
    """

    undelivered: int
    unacknowledged: int
    oldest_held_s: float
    unread_s: float

    @property
    def is_stalled(self) -> bool:
        """Whether something waits and nothing has changed hands for too long."""
        return max(self.oldest_held_s, self.unread_s) >= STALLED_S


class LagWatch:
    """Follows every partition of a collection; safe to share between threads.

    Args:
        server: Where they are.
        layout: Which there are.
        clock: Seconds that never run backwards.
    """

    def __init__(self, server: Server, layout: Layout, clock: Clock = time.monotonic) -> None:
        self._server = server
        self._keys = [layout.keys(place) for place in range(layout.partitions)]
        self._clock = clock
        self._held: list[AgeTracker[str]] = [AgeTracker(clock) for _ in self._keys]
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
        """Return which partitions do not move, or nothing; then Redis is not asked every time."""
        if self._lacks or self._clock() >= self._next_s:
            self._next_s = self._clock() + _LOOK_S
            try:
                self._lacks = _said(self.look())
            except StoreAway:
                self._forget()  # nobody can settle anything: readiness reports that
        return self._lacks

    def _look(self, place: int) -> Lag | None:
        try:
            replies = self._server.atomically(_questions(self._keys[place]))
        except StoreAway:
            raise
        except (NoisefloorError, RedisError):
            return None
        length, (count, *_), first, groups = replies
        held = {"first": (*first[0][:2], first[0][3])} if first else {}
        unread = {"last": _last_delivered(groups)} if length > count else {}
        return Lag(
            length - count,
            count,
            self._held[place].ages(held).get("first", 0.0),
            self._unread[place].ages(unread).get("last", 0.0),
        )

    def _forget(self) -> None:
        with self._lock:
            for one in (*self._held, *self._unread):
                one.forget()
        self._lacks = ""


def _questions(keys: PartitionKeys) -> list[Command]:
    """Return what to ask of a partition, all at one instant.

    Not XINFO's lag: it is unknown once entries are deleted, and here each one is when it is
    settled. So what is in the stream and not held was never handed out.
    """
    return [
        ("XLEN", keys.frames),
        ("XPENDING", keys.frames, GROUP),
        ("XPENDING", keys.frames, GROUP, "-", "+", 1),
        ("XINFO", "GROUPS", keys.frames),
    ]


def _last_delivered(groups: Sequence[Sequence[Any]]) -> object:  # Any: names and values in turn
    facts = [dict(zip(one[::2], one[1::2], strict=True)) for one in groups]
    return next(one[b"last-delivered-id"] for one in facts if one[b"name"] == GROUP.encode())


def _said(lags: Sequence[Lag | None]) -> str:
    """Say what is wrong, in one sentence."""
    lost = [str(place) for place, lag in enumerate(lags) if lag is None]
    if lost:
        return f"The stream of partition {', '.join(lost)} cannot be read."
    stalled = [str(place) for place, lag in enumerate(lags) if lag and lag.is_stalled]
    if stalled:
        where = ", ".join(stalled)
        return f"Frames wait and none was settled for {STALLED_S:g} s in partition {where}."
    return ""
