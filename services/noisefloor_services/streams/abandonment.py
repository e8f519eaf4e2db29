"""What was handed out in a partition and given up, judged by the clock of the judging worker.

An entry is abandoned if for a whole limit it stayed with the same consumer, was not handed out
again, and its consumer gave no sign of life. A sign of life is a counter that a worker raises when
a batch takes long; a time of day would be worth no more than the clock that it came from.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass

from noisefloor_services.store import CLAIM, GROUP, LEAVE, Command, PartitionKeys, Server, Word
from noisefloor_services.streams.age_tracker import AgeTracker, Clock

MOST_ENTRIES = 1024
"""Entries that are looked at, the oldest first; those behind them come into view as they go."""


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """An entry as it was seen in somebody's hands."""

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

    __slots__ = ("_abandoned_s", "_consumer", "_empty", "_forgotten_s", "_held", "_keys")

    def __init__(
        self,
        keys: PartitionKeys,
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
        self._held: AgeTracker[PendingEntry] = AgeTracker(clock)
        self._empty: AgeTracker[Word] = AgeTracker(clock)

    def look(self, server: Server, in_hand: Collection[str]) -> list[PendingEntry]:
        """Return what is abandoned, and remove consumers that have held nothing for long.

        Args:
            server: Where the partition is.
            in_hand: Entries that the worker itself is about to settle.
        """
        pending, fields, consumers = server.atomically(
            [
                ("XPENDING", self._keys.frames, GROUP, "-", "+", MOST_ENTRIES),
                ("HGETALL", self._keys.beats),
                ("XINFO", "CONSUMERS", self._keys.frames, GROUP),
            ]
        )
        beats = dict(zip(fields[::2], fields[1::2], strict=True))
        # Its own entries that are not in hand failed: they need no sign of life of itself.
        beats.pop(self._consumer.encode(), None)
        seen = {
            PendingEntry(entry_id.decode(), holder.decode(), deliveries): beats.get(holder)
            for entry_id, holder, _, deliveries in pending
        }
        self._forget(server, consumers)
        return [
            held
            for held, age_s in self._held.ages(seen).items()
            if age_s >= self._abandoned_s
            and not (held.consumer == self._consumer and held.entry_id in in_hand)
        ]

    def claim(self, held: PendingEntry) -> Command:
        """Return the call that takes an entry over if it is still where it was seen."""
        seen: list[Word] = [held.entry_id, held.consumer, held.deliveries]
        return CLAIM.command([self._keys.frames], [GROUP, self._consumer, *seen])

    def leave(self, consumer: Word) -> Command:
        """Return the call that removes a consumer from the group unless it holds something."""
        return LEAVE.command([self._keys.frames, self._keys.beats], [GROUP, consumer])

    def _forget(self, server: Server, consumers: list[list[bytes | int]]) -> None:
        facts = [dict(zip(one[::2], one[1::2], strict=True)) for one in consumers]
        empty: dict[Word, int] = {one[b"name"]: 0 for one in facts if one[b"pending"] == 0}
        for name, age_s in self._empty.ages(empty).items():
            # One that lives after all is in the group again with its next read.
            if age_s >= self._forgotten_s and name != self._consumer.encode():
                server.call(*self.leave(name))
