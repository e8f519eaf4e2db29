"""Epochs in Redis: closed, released and retired as the aggregator role does it in memory.

Each partition holds its own part of an epoch. Closing has two phases in each partition: first the
store refuses new frames of the epoch, then, once every frame that was accepted is settled, the
epoch is frozen. It is closed when it is frozen in every partition; ``close`` is repeated until it
is. So every frame that was accepted counts, and the result is that of one aggregator that saw the
frames in some order. ``Conservation`` accounts for every frame, by Redis' own numbers.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from redis.exceptions import ResponseError

from noisefloor.canonical_json import canonical_json
from noisefloor.checks import check_count
from noisefloor.errors import AnswerChanged, BadParameter, EpochOpen
from noisefloor.roles import (
    AggregationLimits,
    BatchTerms,
    CollectionConfig,
    DeadLetter,
    EpochSummary,
    rows_answer,
    sums_answer,
)
from noisefloor.wire import FIRST, MOST_EPOCH, Kind, Reduction, Tally, joined, sorted_rows
from noisefloor_services import store
from noisefloor_services.streams.batch import cells_of


@dataclass(frozen=True, slots=True)
class Conservation:
    """Frames by what became of them. Nothing is estimated, and nothing is counted twice.

    Attributes:
        accepted: Frames that were promised to count: entries ever added to the streams, as the
            streams themselves count them, and repeats that were recognised before.
        counted: In the sums, or among the collected rows.
        duplicates: Repeats of frames that were settled before.
        dead_letters: Frames that can never count.
        late: Accepted, and then refused because their epoch was closed. It has to be 0: no frame
            is admitted to an epoch that is closed or being closed.
        pending: In the streams still, handed out or not.
        reports: Rows of the counted frames.
        refused_closed: Refused at admission: the epoch was closed, or being closed.
        refused_again: The same frames, refused once more.
        refused_ahead: Refused at admission for now: the epoch was too far ahead.
        refused_full: Refused at admission: the epoch was full.
    """

    accepted: int = 0
    counted: int = 0
    duplicates: int = 0
    dead_letters: int = 0
    late: int = 0
    pending: int = 0
    reports: int = 0
    refused_closed: int = 0
    refused_again: int = 0
    refused_ahead: int = 0
    refused_full: int = 0

    @property
    def missing(self) -> int:
        """Frames without an outcome; negative if some have two. It has to be 0."""
        settled = self.counted + self.duplicates + self.dead_letters + self.late
        return self.accepted - settled - self.pending

    @property
    def is_conserved(self) -> bool:
        """Whether every frame that was accepted has exactly one outcome, or waits for one."""
        return self.missing == 0

    @classmethod
    def total(cls, parts: Iterable["Conservation"]) -> "Conservation":
        """Return the sum of several partitions."""
        listed = list(parts)
        return cls(*(sum(getattr(part, one.name) for part in listed) for one in fields(cls)))


def _conservation_query(keys: store.PartitionKeys) -> store.Command:
    return store.scripts.ACCOUNT.command([keys.frames, keys.counters, keys.admission], [])


def _read_conservation(reply: Sequence[int]) -> Conservation:
    accepted, pending, counted, duplicates, dead_letters, late, *more = reply
    return Conservation(accepted, counted, duplicates, dead_letters, late, pending, *more)


CLOSE_S = 5.0
"""How long closing waits for frames that were taken and are not settled, before it is repeated."""

_LOOK_S = 0.01
_MINIMUM = "minimum_batch"
_DRAINING, _AHEAD = 2, -1


class EpochStore:
    """Sums and collections of several kinds, by epoch, in Redis.

    Args:
        server: Where they are.
        layout: How they are spread.
        kinds: What is accepted.
        limits: Bounds of the whole; every partition gets an equal share of them.
        terms: On which batches are released; by default every one is, and states nothing.
        frame_names: The names of collections of which a frame may have one.
    """

    __slots__ = ("_terms", "frame_names", "kinds", "layout", "limits", "server")

    def __init__(
        self,
        server: store.Server,
        layout: store.Layout,
        kinds: Iterable[Kind],
        *,
        limits: AggregationLimits | None = None,
        terms: BatchTerms | None = None,
        frame_names: Sequence[str] = FIRST,
    ) -> None:
        listed = list(kinds)
        self.kinds: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in listed})
        if not listed or len(self.kinds) < len(listed):
            raise BadParameter("kinds", sorted(self.kinds), "at least one, each named once")
        self.server = server
        self.layout = layout
        self.limits = partition_share(limits or AggregationLimits(), layout.partitions)
        self.frame_names = tuple(frame_names)
        self._terms = terms or BatchTerms()

    @classmethod
    def of(
        cls, server: store.Server, layout: store.Layout, collection: CollectionConfig
    ) -> "EpochStore":
        """Return the store of a collection."""
        return cls(
            server,
            layout,
            collection.kinds.values(),
            terms=collection.terms,
            frame_names=collection.frame_names,
        )

    @property
    def terms(self) -> BatchTerms:
        """On which batches are released now: another service may have raised the minimum."""
        stored = self.server.call("HGET", self.layout.settings, _MINIMUM)
        return replace(self._terms, minimum=max(self._terms.minimum, int(stored or 1)))

    def prepare(self, first_epoch: int = 0) -> None:
        """Make groups and windows where there are none; what is there is left as it is."""
        check_count(first_epoch, "first_epoch", least=0, most=MOST_EPOCH)
        self._check_settings()
        for keys in self._partitions:
            windows = [("HSETNX", keys.window(name), "floor", first_epoch) for name in self.kinds]
            self.server.all(windows)
            try:
                self.server.call("XGROUP", "CREATE", keys.frames, store.GROUP, "0", "MKSTREAM")
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    def close(self, kind: str, epoch: int, *, patience_s: float = CLOSE_S) -> None:
        """Close an epoch, once or again: refuse its frames, wait for those taken, freeze it.

        Args:
            kind: Of the reports.
            epoch: Which.
            patience_s: How long to wait for frames that were taken and are not counted yet.

        Raises:
            EpochClosing: They are not counted in that time. No more frames are taken; call again,
                from any process.
        """
        self._kind(kind)
        check_count(epoch, "epoch", least=0, most=MOST_EPOCH)
        deadline, left = time.monotonic() + patience_s, self._partitions
        while left := [keys for keys in left if self._is_draining(keys, kind, epoch)]:
            if time.monotonic() > deadline:
                raise store.EpochClosing
            time.sleep(_LOOK_S)

    def is_closed(self, kind: str, epoch: int) -> bool:
        """Whether the epoch takes no more frames, in any partition."""
        self._kind(kind)
        return all(
            self._is_shut(window, epoch)
            for (window,) in self._query(lambda keys: [_window_query(keys.window(kind), epoch)])
        )

    def answer(self, kind: str, epoch: int) -> bytes:
        """Return what is released of a closed epoch, with its parameters: ever the same bytes.

        The first answer freezes the parameters and the digest; what would differ is refused.
        """
        known, collects = self._kind(kind), self._kind(kind).reduction is Reduction.COLLECT
        batch = self.release_rows(kind, epoch) if collects else None
        cells, rows = self.release(kind, epoch) if batch is None else (None, batch.num_rows)
        stated = canonical_json(self.terms.parameters(known, rows))
        parameters = json.loads(self._frozen(kind, epoch, "parameters", stated))
        if cells is not None:
            content = sums_answer(kind, epoch, cells, parameters)
        else:
            content = rows_answer(batch, parameters)
        digest = hashlib.sha256(content).hexdigest().encode()
        if self._frozen(kind, epoch, "digest", digest) != digest:
            raise AnswerChanged(f"Epoch {epoch} of {kind} was answered with other bytes before.")
        return content

    def _frozen(self, kind: str, epoch: int, name: str, value: bytes) -> bytes:
        """Keep a value of an epoch's answer unless there is one, and return the one there is."""
        keys = self.layout.keys(0)
        names = [keys.epoch(kind, epoch), keys.released(kind, epoch)]
        stored = self.server.call(*store.scripts.FREEZE.command(names, [name, value]))
        if stored is None:
            raise BadParameter("epoch", epoch, "one that is kept (it was retired)")
        return bytes(stored)

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        cells = np.zeros(self._kind(kind, Reduction.SUM).cells, dtype=np.int64)
        rows = 0
        for count, part in self._closed(kind, epoch, "GET"):
            cells += cells_of(part, len(cells))
            rows += count
        return cells, rows

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed epoch collected, sorted by content."""
        known = self._kind(kind, Reduction.COLLECT)
        parts = [
            part for _, listed in self._closed(kind, epoch, "LRANGE", 0, -1) for part in listed
        ]
        batches = [pa.ipc.read_record_batch(pa.py_buffer(part), known.schema) for part in parts]
        return sorted_rows(joined(known, batches))

    def retire(self, kind: str, epoch: int) -> None:
        """Drop sums, rows and seen ids of a closed epoch; its frames stay refused for ever."""
        if not self.is_closed(kind, epoch):
            raise EpochOpen(f"Epoch {epoch} of {kind} is open: close it before it is retired.")
        for keys in self._partitions:
            names = [
                keys.window(kind),
                keys.epochs(kind),
                keys.epoch(kind, epoch),
                keys.seen(kind, epoch),
                keys.late(kind, epoch),
                keys.kept(kind, epoch),
                keys.admission_of(kind, epoch),
                keys.released(kind, epoch),
            ]
            self.server.call(*store.scripts.RETIRE.command(names, [epoch]))

    def drop(self) -> None:
        """Drop everything that is stored, waiting frames included; no worker may count now.

        No user has the right to delete a stream of frames: it is emptied, and stays.
        """
        for keys in self._partitions:
            while self.server.call(*store.scripts.EMPTY.command([keys.frames], [store.GROUP])):
                pass
            names = [keys.counters, keys.letters, keys.beats, keys.admission]
            for kind in self.kinds:
                names += [keys.window(kind), keys.epochs(kind)]
                for epoch in self._touched(keys, kind):
                    names += [
                        keys.epoch(kind, epoch),
                        keys.seen(kind, epoch),
                        keys.late(kind, epoch),
                        keys.kept(kind, epoch),
                        keys.admission_of(kind, epoch),
                        keys.released(kind, epoch),
                    ]
            self.server.all([("UNLINK", name) for name in names])
        self.server.call("UNLINK", self.layout.settings)

    def summary(self, kind: str, epoch: int) -> EpochSummary:
        """Return an epoch in numbers; one that nothing is kept of has none."""
        self._kind(kind)
        parts = self._query(
            lambda keys: [
                _window_query(keys.window(kind), epoch),
                ("SCARD", keys.seen(kind, epoch)),
                ("SCARD", keys.late(kind, epoch)),
                ("HMGET", keys.epoch(kind, epoch), "rows", "late_rows"),
                ("HGET", keys.admission_of(kind, epoch), "late_rows"),
            ]
        )
        numbers = [
            (seen, int(one[0] or 0), late, int(one[1] or 0) + int(refused or 0))
            for _, seen, late, one, refused in parts
        ]
        is_closed = all(self._is_shut(window, epoch) for window, *_ in parts)
        return EpochSummary(is_closed, *(sum(column) for column in zip(*numbers, strict=True)))

    def fullness(self) -> float:
        """Return the share of its bounds that the fullest open epoch has used, anywhere."""
        places = [
            (keys, kind, epoch)
            for kind in self.kinds
            for epoch in self.epochs(kind)
            for keys in self._partitions
        ]
        commands: list[store.Command] = []
        for keys, kind, epoch in places:
            commands += [
                _window_query(keys.window(kind), epoch),
                ("SCARD", keys.seen(kind, epoch)),
                ("HMGET", keys.epoch(kind, epoch), "rows", "bytes"),
            ]
        replies, shares = iter(self.server.all(commands) if commands else ()), [0.0]
        for (_, _, epoch), window, frames, (rows, size) in zip(
            places, replies, replies, replies, strict=True
        ):
            if not self._is_shut(window, epoch):
                shares += [
                    frames / self.limits.frames,
                    int(rows or 0) / self.limits.rows,
                    int(size or 0) / self.limits.collected_bytes,
                ]
        return max(shares)

    def epochs(self, kind: str) -> tuple[int, ...]:
        """Return the epochs of a kind that something is kept of."""
        self._kind(kind)
        parts = self._query(lambda keys: [("SMEMBERS", keys.epochs(kind))])
        return tuple(sorted({int(epoch) for (members,) in parts for epoch in members}))

    def dead_letters(self) -> tuple[DeadLetter, ...]:
        """Return the dead letters that are kept, sorted by key."""
        letters = []
        for (pairs,) in self._query(lambda keys: [("HGETALL", keys.letters)]):
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                size, reason = value.decode().split(" ", 1)
                letters.append(DeadLetter(key.decode(), reason, int(size)))
        return tuple(sorted(letters))

    def conservation(self) -> Conservation:
        """Return what became of every frame; a partition's numbers are of one instant."""
        replies = self.server.all([_conservation_query(keys) for keys in self._partitions])
        return Conservation.total(map(_read_conservation, replies))

    def waiting(self) -> int:
        """Return how many frames are not settled yet."""
        return int(sum(self.server.all([("XLEN", keys.frames) for keys in self._partitions])))

    @property
    def _partitions(self) -> list[store.PartitionKeys]:
        return [self.layout.keys(place) for place in range(self.layout.partitions)]

    def _query(
        self, queries: Callable[[store.PartitionKeys], Sequence[store.Command]]
    ) -> list[list[Any]]:
        """Return the replies of every partition, a partition's all of one instant."""
        return [self.server.atomically(queries(keys)) for keys in self._partitions]

    def _touched(self, keys: store.PartitionKeys, kind: str) -> set[int]:
        """Return the epochs that there may be keys of: those kept, and those frames wait for."""
        kept, floor = self.server.all(
            [("SMEMBERS", keys.epochs(kind)), ("HGET", keys.window(kind), "floor")]
        )
        first = int(floor or 0)
        return {*map(int, kept), *range(first, first + self.limits.open_epochs)}

    def _is_draining(self, keys: store.PartitionKeys, kind: str, epoch: int) -> bool:
        """Take one step of closing in a partition, and say whether more are needed."""
        names = [keys.window(kind), keys.epochs(kind), keys.epoch(kind, epoch), keys.frames]
        step = self.server.call(
            *store.scripts.CLOSE.command(names, [epoch, self.limits.open_epochs])
        )
        if step == _AHEAD:
            raise BadParameter("epoch", epoch, "within the window of open epochs")
        return bool(step == _DRAINING)

    def _kind(self, name: str, reduction: Reduction | None = None) -> Kind:
        if name not in self.kinds:
            raise BadParameter("kind", name, f"one of {', '.join(sorted(self.kinds))}")
        if reduction not in (None, self.kinds[name].reduction):
            raise BadParameter("kind", name, "one of the other reduction")
        return self.kinds[name]

    def _closed(self, kind: str, epoch: int, read: str, *more: int) -> list[tuple[int, Any]]:
        """Return rows and contents of a closed epoch, partition by partition."""
        parts = self._query(
            lambda keys: [
                _window_query(keys.window(kind), epoch),
                ("HGET", keys.epoch(kind, epoch), "rows"),
                (read, keys.kept(kind, epoch), *more),
            ]
        )
        if not all(self._is_shut(window, epoch) for window, *_ in parts):
            raise EpochOpen(f"Epoch {epoch} of {kind} is open: close it before it is released.")
        if any(rows is None for _, rows, _ in parts):
            raise BadParameter("epoch", epoch, "one that is kept (it was retired, or never open)")
        self.terms.check_rows(kind, epoch, sum(int(rows) for _, rows, _ in parts))
        return [(int(rows), kept) for _, rows, kept in parts]

    @staticmethod
    def _is_shut(window: list[bytes | None], epoch: int) -> bool:
        floor, mark = window
        return mark is not None or (floor is not None and epoch < int(floor))

    def _check_settings(self) -> None:
        """Refuse keys that were written with another layout or with other kinds."""
        settings = {"partitions": str(self.layout.partitions)} | {
            f"kind:{name}": hashlib.sha256(repr(kind).encode()).hexdigest()
            for name, kind in self.kinds.items()
        }
        key = self.layout.settings
        self._raise_minimum()
        self.server.all([("HSETNX", key, name, value) for name, value in settings.items()])
        for name, kept in zip(settings, self.server.call("HMGET", key, *settings), strict=True):
            if kept.decode() != settings[name]:
                raise store.BadStore(
                    f"Redis holds {key} with another {name}: choose another namespace."
                )

    def _raise_minimum(self) -> None:
        """Store the minimum: it may be raised, and never lowered where batches are closed."""
        key, ours = self.layout.settings, self._terms.minimum
        self.server.call("HSETNX", key, _MINIMUM, ours)
        stored = self.server.call("HGET", key, _MINIMUM)
        while int(stored) < ours:
            self.server.call(*store.scripts.REPLACE.command([key], [_MINIMUM, stored, ours]))
            stored = self.server.call("HGET", key, _MINIMUM)
        if int(stored) > ours:
            raise store.BadStore(
                f"Redis holds {key} with a minimum_batch of {int(stored)}, which cannot be "
                f"lowered: ask for {int(stored)} or more, or choose another namespace."
            )


def _window_query(window: str, epoch: int) -> store.Command:
    return ("HMGET", window, "floor", epoch)


def partition_share(limits: AggregationLimits, partitions: int) -> AggregationLimits:
    """Return a partition's share: the sum over all of them then still fits in 64 bits."""
    return replace(
        limits,
        frames=max(1, limits.frames // partitions),
        rows=max(1, limits.rows // partitions),
        collected_bytes=max(1, limits.collected_bytes // partitions),
        dead_letters=limits.dead_letters // partitions,
    )
