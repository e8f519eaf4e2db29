"""The interfaces of the roles, for roles in this process and behind a socket."""

from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.roles.epochs import EpochSummary
from noisefloor.roles.frame_outcomes import FrameCounters
from noisefloor.wire import Kind, Tally


class EpochReleases(Protocol):
    """EpochReleases what closed epochs hold."""

    def release(self, kind: str, epoch: int) -> tuple[Tally, int]:
        """Return the sums of a closed epoch and the number of rows behind them."""
        ...

    def release_rows(self, kind: str, epoch: int) -> pa.RecordBatch:
        """Return the rows that a closed epoch collected, sorted by content."""
        ...


class Aggregation(EpochReleases, Protocol):
    """Counts frames exactly once, by kind and epoch."""

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome, once everything that was sent is settled."""
        ...

    def apply(self, data: bytes) -> object:
        """Take one frame as it came."""
        ...

    def close(self, kind: str, epoch: int) -> None:
        """Freeze an epoch, once or again, after everything that came before."""
        ...

    def summary(self, kind: str, epoch: int) -> EpochSummary:
        """Return an epoch in numbers."""
        ...


class ImpressionServer(Protocol):
    """Counts which ads were shown."""

    @property
    def kind(self) -> Kind:
        """The kind of frame that it counts."""
        ...

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        ...

    def apply(self, data: bytes) -> object:
        """Take one frame of impressions."""
        ...

    def close(self, epoch: int) -> None:
        """Freeze an epoch's impressions."""
        ...

    def impressions(self, epoch: int) -> Tally:
        """Return the impressions of each ad in a closed epoch."""
        ...


class TrainingServer(Protocol):
    """Tells devices something, counts a round's reports, and learns from them."""

    @property
    def content(self) -> bytes:
        """The broadcast of the current round; after the last round, the fitted model."""
        ...

    @property
    def counters(self) -> FrameCounters:
        """Frames by outcome."""
        ...

    def apply(self, data: bytes) -> object:
        """Take one frame of reports."""
        ...

    def close(self, number: int) -> None:
        """Close the current round and learn from it."""
        ...

    def answers(self, data: bytes) -> NDArray[np.bool_]:
        """Return a decision for each protected query of a frame, by the fitted model."""
        ...

    def summary(self, number: int) -> EpochSummary:
        """Return a round in numbers."""
        ...
