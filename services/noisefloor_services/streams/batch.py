"""A batch of deliveries on its way into the sums: decoded once, merged, judged by the script.

Each kind defines its own reduction. Frames of one kind, epoch and partition make a group, whose
merged delta is applied by one call. The worker claims that all of them are new. If the script
finds otherwise it changes nothing and returns the truth; the others are then subtracted from the
delta and the call is repeated. Each round settles an entry or drops one that another worker owns,
so there is at most one round more than there are entries.
"""

import hashlib
import logging
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from noisefloor.errors import BadFrame
from noisefloor.roles import AggregationLimits
from noisefloor.wire import FIRST, Frame, Kind, Reduction, Tally, decode_frame, joined
from noisefloor_services.store import GROUP, Command, PartitionKeys, Word, scripts

PIECE_CELLS = 512
"""Cells that are added at once; a piece without a change is not sent."""

NEW, REPEAT, FULL, AHEAD = "n", "r", "f", "a"
_REASONS = {FULL: "Frame: epoch is full.", AHEAD: "Frame: epoch is too far ahead."}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamDelivery:
    """An entry as it was handed out; ``attempt`` counts how often, this time included."""

    partition: int
    entry_id: str
    data: bytes
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class BatchContext:
    """What every call has in common."""

    kinds: Mapping[str, Kind]
    limits: AggregationLimits
    consumer: str
    group: "type[FrameGroup]"
    frame_names: tuple[str, ...] = FIRST


@dataclass(slots=True)
class _Entry:
    """A delivery that could be read, and what is claimed of it."""

    delivery: StreamDelivery
    frame: Frame
    claim: str = NEW


class FrameGroup:
    """Frames of one kind, epoch and partition, each id once, in the order of their entries."""

    __slots__ = ("_delta", "context", "entries", "epoch", "keys", "kind")

    def __init__(self, context: BatchContext, keys: PartitionKeys, entries: list[_Entry]) -> None:
        self.context = context
        self.keys = keys
        self.entries = entries
        self.kind, self.epoch = entries[0].frame.kind, entries[0].frame.epoch
        self._delta: Tally | None = None
        if self.kind.reduction is Reduction.SUM:
            self._delta = self._tally(entries)

    def command(self) -> Command:
        """Return the call that applies what is claimed to be new."""
        kind, epoch, keys, limits = self.kind.name, self.epoch, self.keys, self.context.limits
        frames = [entry.frame for entry in self.entries]
        names = [
            keys.frames,
            keys.counters,
            keys.window(kind),
            keys.epochs(kind),
            keys.epoch(kind, epoch),
            keys.seen(kind, epoch),
            keys.late(kind, epoch),
            keys.kept(kind, epoch),
            keys.admission_of(kind, epoch),
        ]
        fixed: list[Word] = [
            GROUP,
            self.context.consumer,
            epoch,
            limits.open_epochs,
            limits.frames,
            limits.rows,
            limits.collected_bytes,
            self.kind.reduction.value,
            len(frames),
            "".join(entry.claim for entry in self.entries),
            b"".join(frame.batch_id for frame in frames),
            packed(frame.batch.num_rows for frame in frames),
            packed(map(kept_bytes, frames)),
        ]
        entry_ids = (entry.delivery.entry_id for entry in self.entries)
        return scripts.APPLY.command(names, [*fixed, *entry_ids, *self._payload()])

    def take(self, truth: str) -> "list[RejectedDelivery]":
        """Take over the script's verdict; return the dead letters among the entries.

        An entry that is lost is left out. So is a repeat that is new after all (the server was
        rolled back in between): it stays pending, and comes again by itself.
        """
        dropped, letters, kept = [], [], []
        for entry, is_now in zip(self.entries, truth, strict=True):
            if entry.claim == NEW and is_now != NEW:
                dropped.append(entry)
            if is_now in _REASONS:
                letters.append(
                    RejectedDelivery(entry.delivery, entry.frame.batch_id, _REASONS[is_now])
                )
            elif is_now == REPEAT or is_now == entry.claim:
                kept.append(_Entry(entry.delivery, entry.frame, is_now))
        if self._delta is not None and dropped:
            self._delta -= self._tally(dropped)
        self.entries = kept
        return letters

    def _tally(self, entries: Iterable[_Entry]) -> Tally:
        return self.kind.tally(joined(self.kind, [entry.frame.batch for entry in entries]))

    def _payload(self) -> Iterator[Word]:
        """Return what is to be added, as the script takes it."""
        if self._delta is None:
            for entry in self.entries:
                if entry.claim == NEW:
                    yield entry.frame.batch.serialize().to_pybytes()
            return
        cells = self._delta.astype("<i8", copy=False)
        for start in range(0, len(cells), PIECE_CELLS):
            piece = cells[start : start + PIECE_CELLS]
            if piece.any():
                yield 8 * start
                yield piece.tobytes()


@dataclass(frozen=True, slots=True)
class RejectedDelivery:
    """A delivery that can never count, and why."""

    delivery: StreamDelivery
    batch_id: bytes | None
    reason: str

    @property
    def words(self) -> tuple[Word, ...]:
        """What the script takes: entry, key, reason, size; the key as the aggregator has it."""
        data = self.delivery.data
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        key = f"id:{self.batch_id.hex()}" if self.batch_id else f"digest:{digest}"
        return self.delivery.entry_id, key, self.reason, len(data)


@dataclass(slots=True)
class DeliveryBatch:
    """Deliveries that were handed out together, until each is settled or left to others.

    Attributes:
        context: What every call has in common.
        keys: The keys of each partition that is served.
        failed: Deliveries whose handling broke: they stay pending and come again, one by one.
    """

    context: BatchContext
    keys: Mapping[int, PartitionKeys]
    failed: int = 0
    _groups: list[FrameGroup] = field(default_factory=list)
    _letters: list[RejectedDelivery] = field(default_factory=list)
    _again: list[list[_Entry]] = field(default_factory=list)
    _sent: list[FrameGroup] = field(default_factory=list)

    def add(self, deliveries: Iterable[StreamDelivery]) -> None:
        """Decode deliveries and merge them by kind, epoch and partition."""
        sorted_: dict[tuple[int, str, int], list[_Entry]] = {}
        for delivery in deliveries:
            frame = self._decode(delivery)
            if frame is not None:
                place = (delivery.partition, frame.kind.name, frame.epoch)
                sorted_.setdefault(place, []).append(_Entry(delivery, frame))
        for entries in sorted_.values():
            self._merge(entries)

    def bury(self, letter: RejectedDelivery) -> None:
        """Add a dead letter."""
        self._letters.append(letter)

    def commands(self) -> list[Command]:
        """Return the next round of calls, none if all is done."""
        self._sent, self._groups = self._groups, []
        if not self._sent:
            # Repeats within the batch wait for the first of their id.
            again, self._again = self._again, []
            for entries in again:
                self._merge(entries)
            self._sent, self._groups = self._groups, []
        letters, self._letters = self._letters, []
        return [group.command() for group in self._sent] + self._burials(letters)

    def take(self, replies: Iterable[bytes | int]) -> None:
        """Take the replies of a round in the order of its calls."""
        for group, reply in zip(self._sent, replies, strict=False):
            if isinstance(reply, bytes) and reply:
                self._letters += group.take(reply.decode())
                if group.entries:
                    self._groups.append(group)
        self._sent = []

    def _decode(self, delivery: StreamDelivery) -> Frame | None:
        try:
            most = self.context.limits.frame_bytes
            return decode_frame(
                delivery.data,
                self.context.kinds,
                most_bytes=most,
                collections=self.context.frame_names,
            )
        except BadFrame as error:
            self._letters.append(RejectedDelivery(delivery, error.batch_id, str(error)))
        # Our fault, not the frame's: it stays pending and is delivered again, a few times at most.
        except Exception as error:
            _log.error("a frame could not be handled: %s", type(error).__name__)
            self.failed += 1
        return None

    def _merge(self, entries: list[_Entry]) -> None:
        firsts: dict[bytes, _Entry] = {}
        repeats = [one for one in entries if firsts.setdefault(one.frame.batch_id, one) is not one]
        keys = self.keys[entries[0].delivery.partition]
        try:
            self._groups.append(self.context.group(self.context, keys, list(firsts.values())))
        except Exception as error:
            _log.error("frames could not be merged: %s", type(error).__name__)
            self.failed += len(firsts)
        if repeats:
            self._again.append(repeats)

    def _burials(self, letters: list[RejectedDelivery]) -> list[Command]:
        by_place: dict[int, list[Word]] = {}
        for letter in letters:
            by_place.setdefault(letter.delivery.partition, []).extend(letter.words)
        fixed = (GROUP, self.context.consumer, self.context.limits.dead_letters)
        return [
            scripts.BURY.command(
                [self.keys[place].frames, self.keys[place].counters, self.keys[place].letters],
                [*fixed, *words],
            )
            for place, words in by_place.items()
        ]


def kept_bytes(frame: Frame) -> int:
    """Return how many bytes a frame adds to its epoch: none where it is summed."""
    size: int = 0 if frame.kind.reduction is Reduction.SUM else frame.batch.nbytes
    return size


def packed(numbers: Iterable[int]) -> bytes:
    """Write numbers as the scripts read them, four bytes each."""
    listed = list(numbers)
    return struct.pack(f"<{len(listed)}I", *listed)


def cells_of(blob: bytes | None, count: int) -> Tally:
    """Return sums as the script keeps them; cells that never changed may be missing at the end."""
    cells: Tally = np.zeros(count, dtype=np.int64)
    kept = np.frombuffer(blob or b"", dtype="<i8")
    cells[: len(kept)] = kept
    return cells
