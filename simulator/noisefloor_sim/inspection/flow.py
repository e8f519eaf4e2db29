"""One flow of reports as it is inspected: what is declared of its frames, rows and price."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from noisefloor.adversary.fit import FitResult
from noisefloor.checks import Array
from noisefloor.randomness import SeededSource
from noisefloor.wire import Frame, Kind, Order, SealedFrame, address_frame, sealed_frames


@dataclass(frozen=True, slots=True, eq=False)
class DeviceFrame:
    """A frame on its way, and what only scoring may know of it.

    Attributes:
        flow: The name of the flow.
        cohort: Whose devices sent it.
        frame: Bytes, batch id and order of the rows.
        truth: What the rows were made of, in the order before they were permuted; the flow that
            inspects the frame reads it.
        paid: Rows of the frame that a budget was debited for.
        epoch: Of the frame.
        connections: The user of each report, in the same order as the truth; None if a server
            that tells connections apart learns nothing that is of use in a game.
    """

    flow: str
    cohort: int
    frame: SealedFrame
    truth: object
    paid: int
    epoch: int = 0
    connections: NDArray[np.int64] | None = None

    @property
    def data(self) -> bytes:
        """The bytes, which are all that is sent."""
        return self.frame.data

    def addressed(self, kinds: Mapping[str, Kind], collection: str) -> "DeviceFrame":
        """Return it as a frame that names its collection; its kind is one of those."""
        data = address_frame(self.data, kinds, collection)
        return replace(self, frame=replace(self.frame, data=data))


def device_frames(
    flow: str,
    cohort: int,
    kind: Kind,
    epoch: int,
    reports: object,
    source: SeededSource,
    *,
    truth: object,
    paid: NDArray[np.bool_] | None = None,
) -> Iterator[DeviceFrame]:
    """Write reports as frames, each with what it was made of.

    Args:
        flow: The name of the flow.
        cohort: Whose devices send them.
        kind: Of the frames.
        epoch: Likewise.
        reports: As ``wire.split_frames`` takes them.
        source: Of order and batch ids.
        truth: What the reports were made of, in their order.
        paid: Which reports a budget was debited for; all of them if left out.
    """
    for frame in sealed_frames(kind, epoch, reports, source):
        debited = len(frame.order) if paid is None else np.count_nonzero(paid[frame.order])
        yield DeviceFrame(flow, cohort, frame, truth, int(debited), epoch)


@dataclass(frozen=True, slots=True, eq=False)
class SeenFrame:
    """A frame as it arrived, matched to what it was made of.

    Attributes:
        frame: As decoded from the bytes that arrived.
        order: Row ``i`` was made of entry ``order[i]`` of the truth.
        truth: What the sender stated.
        cohort: Whose devices sent it.
    """

    frame: Frame
    order: Order
    truth: object
    cohort: int

    @property
    def rows(self) -> Array:
        """The reports of a kind of one column."""
        return self.frame.kind.rows(self.frame.batch)

    def rows_at(self, places: NDArray[np.int64]) -> Array:
        """Return some of the reports: no others are decoded."""
        return self.frame.kind.rows(self.frame.batch.take(pa.array(places)))

    def in_order(self) -> tuple[Order, Array]:
        """Return places in the truth, increasing, and the reports made of them."""
        rows, last = self.rows, int(self.order.max(initial=-1))
        if last + 1 == len(rows):  # all that was sent is in this frame
            placed = np.empty_like(rows)
            placed[self.order] = rows
            return np.arange(len(rows)), placed
        back = np.argsort(self.order)
        return self.order[back], rows[back]


@dataclass(frozen=True, slots=True)
class LedgerPrice:
    """What the ledger has to say of a flow.

    Attributes:
        ledger: What accounts call it.
        micro: What a paid report costs, in micro-epsilon: from the mechanism, not from what was
            debited.
    """

    ledger: str
    micro: int


class Flow(ABC):
    """A flow of reports: its frames are read where they arrive, and compared with the truth."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the flow."""

    @property
    @abstractmethod
    def columns(self) -> dict[str, str]:
        """Every column that a frame may carry, and its type as Arrow writes it."""

    def columns_at(self, epoch: int) -> dict[str, str]:
        """Return the columns of an epoch, where they are not the same in all."""
        return self.columns

    @property
    def mechanism_name(self) -> str:
        """What protects a report; by default the flow's own name."""
        return self.name

    @abstractmethod
    def kind_at(self, epoch: int) -> Kind:
        """Return the kind of frame of an epoch."""

    epochs: range
    """The epochs in which frames are sent."""

    @property
    def price(self) -> LedgerPrice | None:
        """What a report costs; nothing where no budget is debited."""
        return None

    def price_at(self, epoch: int) -> LedgerPrice | None:
        """Return what a report of an epoch costs, where that is not the same in all."""
        return self.price

    @abstractmethod
    def inspect(self, seen: SeenFrame) -> None:
        """Count what the rows of a frame say of their distribution."""

    @abstractmethod
    def fit(self) -> FitResult:
        """Test everything that was counted."""
