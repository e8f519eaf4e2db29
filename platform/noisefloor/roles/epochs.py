"""The state of one kind and epoch: what was counted, what was seen, and whether it is closed."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisefloor.checks import check_count
from noisefloor.wire import Frame, Kind, Reduction, Tally, joined, sorted_rows


@dataclass(frozen=True, slots=True)
class AggregationLimits:
    """Bounds of what an aggregator keeps, so that no sender can fill its memory.

    Attributes:
        open_epochs: Epochs of a kind from the oldest open one on; later ones are refused.
        frames: Frames of an epoch, counted and late alike, whose batch ids are kept.
        rows: Rows of an epoch; 2**31 rows of the largest integers still fit in 64 bits.
        collected_bytes: Rows that a collecting epoch keeps.
        dead_letters: Dead letters that are kept; beyond, they are only counted.
        frame_bytes: Size of one frame.
    """

    open_epochs: int = 32
    frames: int = 1 << 20
    rows: int = 1 << 31
    collected_bytes: int = 1 << 28
    dead_letters: int = 4096
    frame_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        check_count(self.open_epochs, "open_epochs", most=1 << 16)
        check_count(self.frames, "frames")
        check_count(self.rows, "rows", most=1 << 31)
        check_count(self.collected_bytes, "collected_bytes", most=1 << 30)
        check_count(self.dead_letters, "dead_letters", least=0)
        check_count(self.frame_bytes, "frame_bytes", most=1 << 30)


@dataclass(frozen=True, slots=True)
class EpochSummary:
    """One epoch in numbers: frames and rows that count, and those that came too late."""

    is_closed: bool
    frames: int
    rows: int
    late_frames: int
    late_rows: int


class EpochState:
    """What is kept of one kind and epoch. Equal sets of frames give equal states."""

    __slots__ = (
        "_is_sorted",
        "_kept_bytes",
        "_parts",
        "kind",
        "late",
        "late_rows",
        "rows",
        "seen",
        "tally",
    )

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.rows = 0
        self.late_rows = 0
        self.seen: set[bytes] = set()
        self.late: set[bytes] = set()
        self.tally: Tally = np.zeros(kind.cells, dtype=np.int64)
        self._parts: list[pa.RecordBatch] = []
        self._kept_bytes = 0
        self._is_sorted = False

    def has(self, batch_id: bytes) -> bool:
        """Whether a frame of that id was counted, or refused as late."""
        return batch_id in self.seen or batch_id in self.late

    def has_room_for(self, frame: Frame, limits: AggregationLimits) -> bool:
        """Whether the frame stays within every bound."""
        collects = self.kind.reduction is Reduction.COLLECT
        kept = self._kept_bytes + frame.batch.nbytes if collects else 0
        return (
            len(self.seen) < limits.frames
            and self.rows + frame.batch.num_rows <= limits.rows
            and kept <= limits.collected_bytes
        )

    def count(self, frame: Frame) -> None:
        """Add a frame that is new here."""
        if self.kind.reduction is Reduction.SUM:
            self.tally += self.kind.tally(frame.batch)
        else:
            self._parts.append(frame.batch)
            self._kept_bytes += frame.batch.nbytes
            self._is_sorted = False
        self.rows += frame.batch.num_rows
        self.seen.add(frame.batch_id)

    def refuse_late(self, frame: Frame, limits: AggregationLimits) -> None:
        """Remember a frame that came after the close, within bounds."""
        if len(self.late) < limits.frames:
            self.late.add(frame.batch_id)
            self.late_rows += frame.batch.num_rows

    def collected(self) -> pa.RecordBatch:
        """Return the rows in the order of their content: which came together is forgotten."""
        if not self._is_sorted:
            self.keep(joined(self.kind, self._parts))
        return self._parts[0]

    def keep(self, rows: pa.RecordBatch) -> None:
        """Replace what was collected by one sorted batch of these rows."""
        self._parts = [sorted_rows(rows)]
        self._kept_bytes = self._parts[0].nbytes
        self._is_sorted = True


class EpochWindow:
    """The epochs of one kind: the oldest open one, those closed after it, and their states.

    Everything before ``floor`` is closed. Epochs may be opened by frames from ``floor`` on, as
    many as the window is wide.
    """

    __slots__ = ("closed", "floor", "kind", "states", "width")

    def __init__(self, kind: Kind, floor: int, width: int) -> None:
        self.kind = kind
        self.floor = floor
        self.width = width
        self.closed: set[int] = set()
        self.states: dict[int, EpochState] = {}

    def is_ahead(self, epoch: int) -> bool:
        """Whether the epoch is too far ahead to be opened."""
        return epoch >= self.floor + self.width

    def is_closed(self, epoch: int) -> bool:
        """Whether the epoch takes no more frames."""
        return epoch < self.floor or epoch in self.closed

    def state(self, epoch: int) -> EpochState:
        """Return the state of an epoch, opened if need be."""
        if epoch not in self.states:
            self.states[epoch] = EpochState(self.kind)
        return self.states[epoch]

    def close(self, epoch: int) -> None:
        """Close an epoch of the window, and move the window past what is closed."""
        self.state(epoch)
        self.closed.add(epoch)
        while self.floor in self.closed:
            self.closed.remove(self.floor)
            self.floor += 1

    def summary(self, epoch: int) -> EpochSummary:
        """Return an epoch in numbers; one that nothing is kept of has none."""
        state = self.states.get(epoch) or EpochState(self.kind)
        frames, late = len(state.seen), len(state.late)
        return EpochSummary(self.is_closed(epoch), frames, state.rows, late, state.late_rows)
