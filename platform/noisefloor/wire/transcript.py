"""What a curious server sees: rows by connection if the threat model grants it, else a heap.

A server that can tell connections apart links the reports of one device over time. Whether it can
is a switch of the threat model. If it cannot, labels are thrown away as frames come in, and rows
are shown in the order of their content, so that neither order nor frame tells anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.checks import Array, check_count
from noisefloor.errors import BadParameter, TranscriptFull
from noisefloor.wire.frames import Frame
from noisefloor.wire.kinds import Kind, joined, row_order

MOST_BYTES = 1 << 28

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Transcript:
    """Rows of one kind, sorted by connection, epoch and content.

    Attributes:
        kind: Of all frames here.
        is_linked: Whether the server can tell connections apart.
        epochs: Of each row.
        connections: Label of each row; empty if not linked.
        batch: The rows in columns.
    """

    kind: Kind
    is_linked: bool
    epochs: Labels
    connections: Labels
    batch: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def rows(self) -> Array:
        """Return the reports, for a kind of one column."""
        return self.kind.rows(self.batch)

    def starts(self) -> Labels:
        """Return where each connection's rows start; refuse if they are not linked."""
        if not self.is_linked:
            raise BadParameter("is_linked", False, "to be true for rows to have a connection")
        changes = np.flatnonzero(np.diff(self.connections)) + 1
        return np.concatenate([np.zeros(min(1, len(self)), dtype=np.int64), changes])

    def by_connection(self) -> Iterator[tuple[int, Labels, Array]]:
        """Yield each connection's label, the epochs of its rows, and its rows."""
        starts, rows = self.starts(), self.rows()
        for start, stop in pairwise([*starts.tolist(), len(self)]):
            yield int(self.connections[start]), self.epochs[start:stop], rows[start:stop]


class TranscriptRecorder:
    """Collects what is delivered; a frame that comes twice is recorded once.

    Args:
        kind: Frames of other kinds are refused.
        is_linked: Whether the threat model grants the server to tell connections apart.
        most_bytes: Bound of what is kept; beyond it ``see`` raises TranscriptFull.
    """

    __slots__ = ("_batches", "_connections", "_epochs", "_is_linked", "_kind", "_left", "_seen")

    def __init__(self, kind: Kind, *, is_linked: bool, most_bytes: int = MOST_BYTES) -> None:
        self._kind = kind
        self._is_linked = is_linked
        self._left = check_count(most_bytes, "most_bytes", most=1 << 40)
        self._seen: set[bytes] = set()
        self._batches: list[pa.RecordBatch] = []
        self._epochs: list[Labels] = []
        self._connections: list[Labels] = []

    def see(self, frame: Frame, connections: int | Labels) -> None:
        """Record a frame that came by one connection.

        A simulated cohort sends one frame for many devices: then ``connections`` labels each row.
        """
        if frame.kind != self._kind:
            raise BadParameter("kind", frame.kind.name, f"to be {self._kind.name}")
        if frame.batch_id in self._seen:
            return
        rows = frame.batch.num_rows
        labels = np.broadcast_to(np.asarray(connections, dtype=np.int64), (rows,))
        cost = frame.batch.nbytes + 16 * rows + 128  # labels, epochs, batch id
        if cost > self._left:
            raise TranscriptFull("The transcript is full: record fewer connections or epochs.")
        self._left -= cost
        self._seen.add(frame.batch_id)
        self._batches.append(frame.batch)
        self._epochs.append(np.full(rows, frame.epoch, dtype=np.int64))
        if self._is_linked:
            self._connections.append(labels.copy())

    def transcript(self) -> Transcript:
        """Return everything seen so far, in an order that does not depend on arrival."""
        none = np.empty(0, dtype=np.int64)
        epochs = np.concatenate([none, *self._epochs])
        connections = np.concatenate([none, *self._connections])
        batch = joined(self._kind, self._batches)
        keys = (connections, epochs) if self._is_linked else (epochs,)
        order = row_order(batch, *keys)
        return Transcript(
            self._kind,
            self._is_linked,
            epochs[order],
            connections[order] if self._is_linked else none,
            batch.take(pa.array(order)),
        )
